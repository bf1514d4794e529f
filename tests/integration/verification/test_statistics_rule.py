"""Statistics that are wrong, wide, strange or missing: the proof, the check after the commit and `verify` agree.

Each table goes through every lane that can take it. Spark is asked for MIN, MAX and filtered counts, with data skipping
and without, and its answers are those of the rows as pyarrow reads them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.product import (
    CheckResult,
    Checks,
    DeltaCommitProver,
    DeltaEngine,
    DeltaTableEngine,
    GreatExpectationsVerifier,
    Lane,
    SessionLease,
    TableRef,
    Verdict,
)
from tests.support.runs.rewrites import in_lane
from tests.support.tables.delta_tables import compaction, forge_commit, forget_logs, no_intent, stamp
from tests.support.writers.writers import engine_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.nightly,
    pytest.mark.sampled(4),
    pytest.mark.usefixtures("small_row_groups_are_copied"),
]

SKIPPING = "spark.databricks.delta.stats.skipping"
PUSHDOWN = "spark.sql.parquet.filterPushdown"
"""Parquet itself skips row groups by footers; those of the first writers leave NaN out, which no log can change."""
Stats = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """Rows of each file, how the log's statistics of a file are changed, filters with their rows, what was wrong.

    Files that are not ``copied`` have a footer that leaves NaN out.
    """

    files: tuple[pa.Table, ...]
    filters: dict[str, Callable[[dict[str, Any]], bool]]
    change: Callable[[Stats, int], Stats | str | None] = lambda stats, number: stats
    num_wrong: int = 0
    extremes: tuple[str, ...] = ("id",)
    counted: bool = True
    copied: bool = True


def _table(number: int, **columns: pa.Array) -> pa.Table:
    rows = len(next(iter(columns.values())))
    return pa.table({"id": pa.array(range(number * rows, number * rows + rows), pa.int64()), **columns})


def _doubles(number: int) -> pa.Table:
    values = [0.5, math.nan if number == 2 else 1.5, 2.0 + number]
    floats = pa.array([{"f": value} for value in values], pa.struct([("f", pa.float32())]))
    return _table(number, d=pa.array(values), s=floats)


def _finite(stats: Stats, number: int) -> Stats:
    """A footer's view: no NaN."""
    bounds = {"minValues": {"id": 3 * number, "d": 0.5, "s": {"f": 0.5}},
              "maxValues": {"id": 3 * number + 2, "d": 2.0 + number, "s": {"f": 2.0 + number}}}  # fmt: skip
    return {**stats, **bounds}


def _text(number: int) -> pa.Table:
    return _table(number, t=pa.array([f"{number}{'y' * 60}", f"{number}{'z' * 60}"]))


def _raised(stats: Stats, number: int) -> Stats:
    """Cut by bytes, with the last character raised."""
    stats["minValues"]["t"], stats["maxValues"]["t"] = f"{number}{'y' * 31}", f"{number}{'z' * 30}" + "{"
    return stats


OLD = datetime(1850, 1, 1, 0, 7, 33, tzinfo=UTC)


def _times(number: int) -> pa.Table:
    return _table(number, ts=pa.array([OLD.replace(second=33 + number)] * 2, pa.timestamp("us", "UTC")))


def _zone_cut(stats: Stats, number: int) -> Stats:
    """Offsets of Stockholm without their 28 seconds."""
    for side in ("minValues", "maxValues"):
        stats[side]["ts"] = f"1850-01-01T01:01:{1 + number:02d}.000+00:53"
    return stats


def _strange(stats: Stats, number: int) -> Stats | str | None:
    text = json.dumps(stats)
    return ({"stats_json": text}, "", None, {"numRecords": str(stats["numRecords"])}, {"numRecords": 2})[number]


def _days(number: int) -> pa.Table:
    return _table(number, day=pa.array([date(1500, 3, 1 + number), None], pa.date32()))


def _wide(stats: Stats, number: int) -> Stats:
    """A number and a day that no row reaches: right answers to filters, wrong ones to MIN and MAX."""
    stats["minValues"]["day"], stats["maxValues"]["id"] = "1499-01-01", 1000
    return stats


CASES = {
    "a NaN behind a finite maximum": Case(
        tuple(map(_doubles, range(4))),
        {"d > 1e300": lambda row: math.isnan(row["d"]), "s.f > 1e30": lambda row: math.isnan(row["s"]["f"])},
        _finite, num_wrong=2, extremes=("id", "d"), copied=False,
    ),
    "a text bound that no row reaches": Case(
        tuple(map(_text, range(4))),
        {f"t = '2{'z' * 60}'": lambda row: row["t"] == f"2{'z' * 60}", "t > '2z'": lambda row: row["t"] > "2z"},
        _raised,
    ),
    "bounds off by a zone": Case(
        tuple(map(_times, range(4))),
        {"ts = timestamp_seconds(-3786825147)": lambda row: row["ts"] == OLD,
         "ts < '1850-01-01 00:07:35'": lambda row: row["ts"] < OLD.replace(second=35)}, _zone_cut, num_wrong=4,
    ),
    "statistics in unknown shapes": Case(
        tuple(map(_text, range(5))), {"id >= 4": lambda row: row["id"] >= 4, "t IS NULL": lambda row: False}, _strange,
        counted=False,
    ),
    "bounds of numbers and dates that no row reaches": Case(
        tuple(map(_days, range(4))),
        {"day IS NULL": lambda row: row["day"] is None, "id > 5": lambda row: row["id"] > 5}, _wide,
        extremes=("id", "day"),
    ),
}  # fmt: skip

CELLS = [
    pytest.param(name, lane, id=f"{name}-{lane}", marks=pytest.mark.every_run if (name, lane) in {
        ("a NaN behind a finite maximum", Lane.COPY), ("statistics in unknown shapes", Lane.COPY)} else ())
    for name in CASES
    for lane in Lane
]  # fmt: skip


@pytest.fixture(scope="module")
def engine(lease: SessionLease) -> Iterator[DeltaTableEngine]:
    with DeltaEngine(lease).worker("statistics") as worker:
        yield worker


def _build(path: Path, case: Case) -> None:
    for number, rows in enumerate(case.files):
        deltalake.write_deltalake(str(path), rows, mode="append")
        forge_commit(path, number, partial(_change, case, number))


def _change(case: Case, number: int, actions: list[dict[str, Any]]) -> None:
    for action in actions:
        if "add" in action:
            stats = case.change(json.loads(action["add"]["stats"]), number)
            action["add"]["stats"] = json.dumps(stats) if isinstance(stats, dict) else stats


def _answers(spark: SparkSession, path: Path, case: Case, *, pushdown: bool) -> dict[str, Any]:
    """What Spark says, with data skipping and without; NaN as a text, since it is not equal to itself."""
    forget_logs(spark)
    found: dict[str, Any] = {}
    for skipping in ("true", "false"):
        spark.conf.set(SKIPPING, skipping)
        spark.conf.set(PUSHDOWN, str(pushdown).lower())
        try:
            for text in case.filters:
                found[f"{text}, skipping {skipping}"] = spark.sql(
                    f"SELECT count(*) FROM delta.`{path}` WHERE {text}"
                ).collect()[0][0]
        finally:
            spark.conf.unset(SKIPPING)
            spark.conf.unset(PUSHDOWN)
    for column in case.extremes:
        row = spark.sql(f"SELECT min({column}), max({column}) FROM delta.`{path}`").collect()[0]
        found[f"extremes of {column}"] = [str(value) for value in row]
    return found


def _truth(case: Case) -> dict[str, Any]:
    rows = [row for table in case.files for row in table.to_pylist()]
    found: dict[str, Any] = {}
    for skipping in ("true", "false"):
        for text, holds in case.filters.items():
            found[f"{text}, skipping {skipping}"] = sum(map(holds, rows))
    for column in case.extremes:
        values = [row[column] for row in rows if row[column] is not None]
        ordered = sorted(values, key=lambda value: (value != value, 0 if value != value else value))
        found[f"extremes of {column}"] = [str(ordered[0]), str(ordered[-1])]
    return found


def _added(path: Path, version: int) -> list[dict[str, Any]]:
    text = (path / "_delta_log" / f"{version:020d}.json").read_text(encoding="utf-8")
    return [action["add"] for action in map(json.loads, text.splitlines()) if "add" in action]


@pytest.mark.parametrize(("name", "lane"), CELLS)
def test_all_three_checks_agree_and_spark_answers_right(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path, name: str, lane: Lane
) -> None:
    case, path = CASES[name], lake / "t"
    _build(path, case)
    truth = _truth(case)
    before = _answers(spark, path, case, pushdown=False)
    unskipped = [key for key in before if "skipping false" in key]
    assert [before[key] for key in unskipped] == [truth[key] for key in unskipped]

    facts = engine.reader.facts(TableRef(str(path)))
    step, batch = in_lane(facts, *compaction(facts), lane)
    receipt = engine.writer.rewrite(facts, step, batch, stamp(), no_intent)
    proof = receipt.proof
    assert proof is not None
    assert [use.lane for use in proof.lanes] == [lane if lane is not Lane.COPY or case.copied else Lane.SPARK]
    assert (proof.rows_in_log is not None) == case.counted
    assert (proof.source_statistics.num_wrong, proof.source_statistics.num_computed > 0) == (case.num_wrong, True)
    files_named = {text.partition(": ")[0] for text in proof.source_statistics.wrong}
    assert files_named <= {add["path"] for version in range(len(case.files)) for add in _added(path, version)}
    assert bool(files_named) is bool(case.num_wrong)

    after = GreatExpectationsVerifier().after_rewrite(engine.versions, facts, batch, receipt, Checks())
    assert after.verdict is Verdict.PASS, after.detail
    forget_logs(spark)
    verification = DeltaCommitProver(engine.jvm).prove(engine.reader.facts(TableRef(str(path))), receipt.version)
    assert verification.result is CheckResult.PROVEN, verification.checks
    notes = {check.level for check in verification.checks if check.result is CheckResult.NOTED}
    assert notes == ({"inputs"} if case.num_wrong or not case.counted else set())

    assert _answers(spark, path, case, pushdown=False) == truth
    assert _answers(spark, path, case, pushdown=True) == truth
    (add,) = _added(path, receipt.version)
    stats = json.loads(add["stats"])
    rows = pq.read_table(path / unquote(add["path"]), partitioning=None)
    assert stats["numRecords"] == rows.num_rows
    for column in case.files[0].column_names:
        assert column in stats["minValues"]
        assert column in stats["maxValues"]
        if not pa.types.is_struct(rows.schema.field(column).type):
            assert stats["nullCount"][column] == rows.column(column).null_count


def test_bounds_of_others_are_noted_and_of_exact_writers_wrong(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path
) -> None:
    """The same commit, by who says to have written it; and a bound that hides rows, whoever wrote it."""
    path = lake / "t"
    _build(path, CASES["bounds of numbers and dates that no row reaches"])
    deltalake.DeltaTable(str(path)).optimize.compact()

    def results(engine_info: str, **bounds: Any) -> set[CheckResult]:
        def forge(actions: list[dict[str, Any]]) -> None:
            for action in actions:
                if "add" in action:
                    stats = json.loads(action["add"]["stats"])
                    stats["maxValues"].update(bounds)
                    action["add"]["stats"] = json.dumps(stats)
                if "commitInfo" in action:
                    action["commitInfo"]["engineInfo"] = engine_info

        forge_commit(path, 4, forge)
        forget_logs(spark)
        verification = DeltaCommitProver(engine.jvm).prove(engine.reader.facts(TableRef(str(path))), 4)
        return {check.result for check in verification.checks if check.level == "statistics"}

    proven, wrong, noted = CheckResult.PROVEN, CheckResult.WRONG, CheckResult.NOTED
    spark_44, rust = "Apache-Spark/4.1.0 Delta-Lake/4.4.0", "delta-rs:py-1.6.6"
    assert results(rust, id=7) == {proven}
    assert results(rust, id=1000) == {proven, noted}
    assert results(spark_44, id=1000) == {wrong}
    assert results(spark_44, id=7) == {proven}
    assert results(rust, id=6) == results(spark_44, id=6) == {wrong}


def _too_narrow(actions: list[dict[str, Any]]) -> None:
    """The greatest id lies above its bound; names are those of a column mapping."""
    for action in actions:
        if "add" in action:
            stats = json.loads(action["add"]["stats"])
            stats["maxValues"] = {name: bound - 1 for name, bound in stats["maxValues"].items()}
            action["add"]["stats"] = json.dumps(stats)


def test_of_rows_that_spark_counted_on_their_way_the_small_files_are_judged(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path
) -> None:
    """Nobody else reads a table with column mapping by id; a tenth of its bytes is read again for it."""
    path = lake / "t"
    spark.sql(f"CREATE TABLE delta.`{path}` (id LONG) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'id')")
    for number in range(4):
        rows = spark.range(0, 3 if number == 1 else 50_000, 1, 1).selectExpr("xxhash64(id) AS id")
        rows.write.format("delta").mode("append").save(str(path))
    small, large = ([add["path"] for add in _added(path, version)] for version in (2, 4))
    for version in (2, 4):
        forge_commit(path, version, _too_narrow)
    forget_logs(spark)
    facts = engine.reader.facts(TableRef(str(path)))
    step, batch = in_lane(facts, *compaction(facts), Lane.SPARK)
    proof = engine.writer.rewrite(facts, step, batch, stamp(), no_intent).proof
    assert proof is not None
    found = proof.source_statistics
    assert (found.num_computed, found.num_wrong, found.num_files_not_judged) == (1, 1, 3)
    assert [text.partition(": ")[0] for text in found.wrong] == small
    assert found.note is not None
    assert found.note.endswith("; those of 3 files were not looked at")
    # `verify` reads all of both sides, and finds the other one, too.
    verification = DeltaCommitProver(engine.jvm).prove(engine.reader.facts(TableRef(str(path))), 5)
    (inputs,) = (check for check in verification.checks if check.level == "inputs")
    assert inputs.result is CheckResult.NOTED
    assert inputs.detail is not None
    assert all(name in inputs.detail for name in (*small, *large))


@pytest.mark.parametrize("which", ["very large table", "command", "connect"])
def test_statistics_of_sources_are_judged(
    lease: SessionLease,
    engine: DeltaTableEngine,
    lake: Path,
    connect_url: str,
    monkeypatch: pytest.MonkeyPatch,
    which: str,
) -> None:
    """Of a table whose files are not kept in memory, and of what Delta's own OPTIMIZE rewrote."""
    case, path = CASES["a NaN behind a finite maximum"], lake / "t"
    _build(path, case)
    if which != "very large table":
        with engine_of(which, lease, connect_url) as worker:
            facts = worker.reader.facts(TableRef(str(path)))
            proof = worker.writer.rewrite(facts, *compaction(facts), stamp(), no_intent).proof
    else:
        monkeypatch.setattr("maintainer.delta.transaction.live_files.MAX_FILES_KEPT", 2)
        facts = engine.reader.facts(TableRef(str(path)))
        proof = engine.writer.rewrite(facts, *in_lane(facts, *compaction(facts), Lane.SPARK), stamp(), no_intent).proof
    assert proof is not None
    found = proof.source_statistics
    assert (found.num_computed, found.num_wrong, found.num_files_not_judged) == (4 * 3, case.num_wrong, 0)


def test_time_stamps_at_the_ends_of_their_range_are_rewritten_and_proven(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path
) -> None:
    path = lake / "t"
    for part, micros in enumerate(("9223372036854775807L - 500", "-9223372036854775807L - 1", "0L")):
        rows = spark.range(part * 3, part * 3 + 3).selectExpr("id", f"timestamp_micros({micros}) AS ts")
        rows.write.format("delta").mode("append").save(str(path))
    engine_facts = engine.reader.facts(TableRef(str(path)))
    for number, lane in enumerate((Lane.COPY, Lane.SPARK)):
        engine_facts = engine.reader.facts(TableRef(str(path)))
        step, batch = in_lane(engine_facts, *compaction(engine_facts), lane)
        receipt = engine.writer.rewrite(engine_facts, step, batch, stamp(batch=number), no_intent)
        verification = DeltaCommitProver(engine.jvm).prove(engine.reader.facts(TableRef(str(path))), receipt.version)
        assert verification.result is CheckResult.PROVEN, verification.checks
    found = spark.sql(f"SELECT unix_micros(ts) FROM delta.`{path}` ORDER BY 1").collect()
    assert [row[0] for row in found[::3]] == [-(2**63), 0, 2**63 - 501]
