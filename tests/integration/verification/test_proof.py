"""Faults planted between write and proof: each is caught, nothing is committed, nothing is left behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.support.product import (
    CommitNotLanded,
    DeltaEngine,
    DeltaJvm,
    FileSet,
    Fingerprint,
    ObservedRows,
    Proof,
    SessionLease,
    TableError,
    TableRef,
    TableStorage,
    VerificationFailed,
    WrittenFile,
    measure_both,
)
from tests.support.tables.delta_tables import bytes_of, compaction, forge_commit, forget_logs, no_intent, stamp

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.nightly, pytest.mark.sampled(2)]

Fault = Callable[[pa.Table], pa.Table]


def _cell(column: str, row: int, value: object) -> Fault:
    def change(table: pa.Table) -> pa.Table:
        values: list[Any] = table.column(column).to_pylist()
        values[row] = value
        field = table.schema.field(column)
        return table.set_column(table.schema.get_field_index(column), field, pa.array(values, field.type))

    return change


def _swap(table: pa.Table) -> pa.Table:
    values = table.column("s").to_pylist()
    values[3], values[4] = values[4], values[3]
    return _cell("s", 3, values[3])(_cell("s", 4, values[4])(table))


def _shift_null(table: pa.Table) -> pa.Table:
    # Row 2 holds (NULL, 7): moved to (7, NULL), which xxhash64 alone cannot tell apart.
    return _cell("a", 2, 7)(_cell("b", 2, None)(table))


FAULTS: dict[str, Fault] = {
    "drop a row": lambda table: table.slice(1),
    "duplicate a row": lambda table: pa.concat_tables([table, table.slice(0, 1)]),
    "drop one and duplicate another": lambda table: pa.concat_tables([table.slice(1), table.slice(5, 1)]),
    "change a character": _cell("s", 1, "X"),
    "swap two values": _swap,
    "shift a null": _shift_null,
    "null for empty": _cell("s", 0, None),
    "minus zero": _cell("d", 0, -0.0),
    "null moves in an array": _cell("l", 0, [1, None]),
    "null moves in a struct of a map": _cell("m", 0, [("k", {"x": 1, "y": None})]),
    "array empty for null": _cell("l", 1, []),
}


def _build(spark: SparkSession, path: Path, mapping: str = "none") -> None:
    frame = spark.range(8).selectExpr(
        "cast(id AS INT) id",
        "if(id = 0, '', concat('s', id)) s",
        "if(id = 2, NULL, cast(id AS INT)) a",
        "7 b",
        "cast(0 AS DOUBLE) d",
        "if(id = 0, array(NULL, 1), NULL) l",
        "map('k', named_struct('x', CAST(NULL AS INT), 'y', 1)) m",
    )
    frame.repartition(2).write.format("delta").option("delta.columnMapping.mode", mapping).save(str(path))


def _rewrite_with(change: Fault, sort: bool = True) -> Callable[[TableStorage, list[WrittenFile]], None]:
    def plant(storage: TableStorage, written: list[WrittenFile]) -> None:
        (written_file,) = written
        path = Path(storage.uri(written_file.path).removeprefix("file:"))
        table = pq.read_table(path)
        if sort:
            table = table.take(pc.sort_indices(table, [("id", "ascending")]))
        pq.write_table(change(table), path)
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
        # The reader takes the file's size from the log.
        written_file.add["size"] = path.stat().st_size

    return plant


@pytest.mark.every_run
def test_every_fault_is_caught_and_nothing_is_committed(spark: SparkSession, lease: SessionLease, lake: Path) -> None:
    path = lake / "t"
    _build(spark, path)
    with DeltaEngine(lease).worker("faults") as clean:
        facts = clean.reader.facts(TableRef(str(path)))
        before = bytes_of(path)
        step, batch = compaction(facts)
        missed = []
        for name, fault in FAULTS.items():
            with DeltaEngine(lease, between_write_and_proof=_rewrite_with(fault)).worker("faults") as engine:
                try:
                    engine.writer.rewrite(facts, step, batch, stamp(), no_intent)
                    missed.append(name)
                except VerificationFailed as error:
                    if error.code not in {"V501", "V506"} or "rows, fingerprint" not in (error.found or ""):
                        missed.append(error.render())
            assert bytes_of(path) == before, name
        assert missed == []
        # Without a fault, in another row order, the same file passes: no false alarm.
        harmless = _rewrite_with(lambda table: table.take(pa.array(range(len(table)))[::-1]))
        with DeltaEngine(lease, between_write_and_proof=harmless).worker("faults") as engine:
            assert engine.writer.rewrite(facts, step, batch, stamp(), no_intent).version == 1


def test_statistics_that_lie_and_a_file_that_vanishes(spark: SparkSession, lease: SessionLease, lake: Path) -> None:
    path = lake / "t"
    _build(spark, path)

    def lie(storage: TableStorage, written: list[WrittenFile]) -> None:
        stats = json.loads(written[0].add["stats"])
        written[0].add["stats"] = json.dumps({**stats, "numRecords": stats["numRecords"] + 1})

    def vanish(storage: TableStorage, written: list[WrittenFile]) -> None:
        assert storage.delete(storage.uri(written[0].path))

    def garble(storage: TableStorage, written: list[WrittenFile]) -> None:
        path = Path(storage.uri(written[0].path).removeprefix("file:"))
        path.write_bytes(b"x" * path.stat().st_size)
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)

    # A new file that cannot be read is no file of the table: nobody is sent to a backup.
    for plant, expected in ((lie, VerificationFailed), (vanish, TableError), (garble, CommitNotLanded)):
        with DeltaEngine(lease, between_write_and_proof=plant).worker("faults") as engine:
            facts = engine.reader.facts(TableRef(str(path)))
            before = bytes_of(path)
            step, batch = compaction(facts)
            with pytest.raises(expected) as caught:
                engine.writer.rewrite(facts, step, batch, stamp(), no_intent)
            assert (plant is garble) == ("one of them cannot be read" in str(caught.value))
            assert bytes_of(path) == before


def test_damage_of_before_is_named_and_not_blamed_on_us(spark: SparkSession, lease: SessionLease, lake: Path) -> None:
    path = lake / "t"
    _build(spark, path)
    commit = path / "_delta_log" / f"{0:020d}.json"
    good = commit.read_text(encoding="utf-8")

    def count_wrong(actions: list[dict[str, Any]], *, num_records: int = 99, num_files: int = 1) -> None:
        for add in [action["add"] for action in actions if "add" in action][:num_files]:
            add["stats"] = json.dumps({**json.loads(add["stats"]), "numRecords": num_records})

    def rewrite(*, may_leave: bool) -> TableError:
        with DeltaEngine(lease).worker("damage") as engine:
            forget_logs(engine.jvm.spark)
            facts = engine.reader.facts(TableRef(str(path)))
            before = bytes_of(path, checksums=False)
            step, batch = compaction(facts)
            with pytest.raises(TableError) as caught:
                engine.writer.rewrite(facts, step, batch, stamp(), no_intent)
            # A task that fails while it reads may leave the beginning of a file, which no reader sees.
            after = bytes_of(path, checksums=False)
            assert before.items() <= after.items() if may_leave else before == after
        return caught.value

    forge_commit(path, 0, count_wrong)
    error = rewrite(may_leave=False)
    assert error.code == "T421"
    assert "the log says 99 rows, it holds " in (error.found or "")
    # Of a bin without rows nothing is written.
    forge_commit(path, 0, partial(count_wrong, num_records=0, num_files=9))
    error = rewrite(may_leave=False)
    assert (error.code, (error.found or "").count("the log says 0 rows, it holds ")) == ("T421", 2)
    commit.write_text(good, encoding="utf-8")
    victim = next(json.loads(line)["add"]["path"] for line in good.splitlines() if '"add"' in line[:8])
    (path / victim).unlink()
    error = rewrite(may_leave=True)
    assert (error.code, error.found) == ("T422", victim)


def test_an_exception_of_the_intent_aborts(spark: SparkSession, lease: SessionLease, lake: Path) -> None:
    path = lake / "t"
    _build(spark, path)

    def refuse(version: int, proof: object) -> None:
        raise OSError("no space for the intent")

    with DeltaEngine(lease).worker("faults") as engine:
        facts = engine.reader.facts(TableRef(str(path)))
        before = bytes_of(path)
        step, batch = compaction(facts)
        with pytest.raises(OSError, match="no space"):
            engine.writer.rewrite(facts, step, batch, stamp(), refuse)
        assert bytes_of(path) == before


def _assert_proven(proof: Proof | None) -> None:
    assert proof is not None
    assert proof.read == proof.written
    assert proof.read.rows == 8


@pytest.mark.parametrize("said", ["the truth", "too much", "nothing"])
def test_rows_are_added_up_on_their_way_and_read_again_where_that_does_not_fit(
    spark: SparkSession, lease: SessionLease, lake: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    path = lake / "t"
    _build(spark, path, mapping="id")  # read by their ids, columns are Spark's to compare and not DuckDB's
    observed = ObservedRows.fingerprint

    def tell(rows: ObservedRows, jvm: DeltaJvm) -> Fingerprint | None:
        observation = observed(rows, jvm)
        assert observation is not None
        assert observation.rows == 8
        # A shuffle task that ran twice is counted twice.
        return {"the truth": observation, "too much": observation + observation, "nothing": None}[said]

    monkeypatch.setattr(ObservedRows, "fingerprint", tell)
    sources_away: list[Path] = []

    def hide(storage: TableStorage, written: list[WrittenFile]) -> None:
        for file in path.rglob("*.parquet"):
            if "_delta_log" not in file.parts and file.relative_to(path).as_posix() not in {f.path for f in written}:
                sources_away.append(file.rename(file.with_suffix(".away")))

    # Without its sources a rewrite can be proven only if they are not read a second time.
    with DeltaEngine(lease, between_write_and_proof=hide).worker("observed") as engine:
        facts = engine.reader.facts(TableRef(str(path)))
        step, batch = compaction(facts)
        if said == "the truth":
            _assert_proven(engine.writer.rewrite(facts, step, batch, stamp(), no_intent).proof)
        else:
            with pytest.raises(TableError, match="T422"):
                engine.writer.rewrite(facts, step, batch, stamp(), no_intent)
    for source in sources_away:
        source.rename(source.with_suffix(".parquet"))
    if said != "the truth":
        with DeltaEngine(lease).worker("observed") as engine:
            _assert_proven(engine.writer.rewrite(facts, step, batch, stamp(), no_intent).proof)


@pytest.mark.every_run
def test_files_whose_rows_were_all_deleted_are_measured_though_nothing_was_written(
    spark: SparkSession, lease: SessionLease, lake: Path
) -> None:
    path = lake / "t"
    spark.range(10).coalesce(1).write.format("delta").save(str(path))
    lines = (path / "_delta_log" / f"{0:020}.json").read_text(encoding="utf-8").splitlines()
    adds = tuple(action["add"] for action in map(json.loads, lines) if "add" in action)
    with DeltaEngine(lease).worker("nothing") as engine:
        log = engine.jvm.log_at(f"file:{path}")
        snapshot = engine.jvm.update(log)
        measured = measure_both(engine.jvm, log, FileSet(snapshot, adds), FileSet(snapshot, ()), adds, [])
    assert (measured.read.rows, measured.written.rows, len(measured.sources), measured.files) == (10, 0, 1, ())
