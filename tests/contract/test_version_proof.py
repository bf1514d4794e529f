"""Proving a commit that is already there: Delta's own OPTIMIZE holds, a forged one does not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.product import (
    CommittedFiles,
    DeltaEngine,
    DeltaTableEngine,
    PartitionNames,
    SessionLease,
    TableRef,
    VersionProof,
    committed_files,
    prove_version,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.sampled(1), pytest.mark.nightly]


@pytest.fixture(scope="module")
def engine(lease: SessionLease) -> Iterator[DeltaTableEngine]:
    with DeltaEngine(lease).worker("version-proof") as worker:
        yield worker


def _log(path: Path, version: int) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (path / "_delta_log" / f"{version:020d}.json").read_text().splitlines()]


def _prove(engine: DeltaTableEngine, path: Path, version: int) -> tuple[CommittedFiles, VersionProof]:
    """The files from the log as text, so that what is proven does not come from what reads it."""
    facts = engine.reader.facts(TableRef(str(path)))
    metadata = {"schemaString": facts.schema_json, "partitionColumns": facts.partition_columns}
    files = committed_files(version, _log(path, version), PartitionNames.of(metadata))
    return files, prove_version(engine.jvm.spark, str(path), facts, files)


def test_what_optimize_and_purge_write_holds(spark: SparkSession, engine: DeltaTableEngine, lake: Path) -> None:
    """Odd partition values, column mapping, deletion vectors and row tracking at once; an append in between."""
    path = lake / "it's 100% `odd`"
    quoted = str(path).replace("`", "``")
    spark.sql(
        f"CREATE TABLE delta.`{quoted}` (id BIGINT, `the value` STRING, `p p` STRING) USING delta "
        "PARTITIONED BY (`p p`) TBLPROPERTIES ('delta.columnMapping.mode'='name', "
        "'delta.enableDeletionVectors'='true', 'delta.enableRowTracking'='true')"
    )
    for start in (0, 40):
        frame = spark.range(start, start + 40).selectExpr(
            "id", "cast(id AS STRING) AS `the value`", "element_at(array(NULL, 'a b/%', 'é🎉', '1'), 1 + int(id % 4)) p"
        )
        frame.toDF("id", "the value", "p p").coalesce(1).write.format("delta").mode("append").save(str(path))
    spark.sql(f"DELETE FROM delta.`{quoted}` WHERE id IN (3, 5, 44)")
    spark.sql(f"OPTIMIZE delta.`{quoted}` WHERE `p p` = 'a b/%' OR `p p` IS NULL")
    files, proof = _prove(engine, path, 4)
    assert (len(files.removed), len(files.added), files.data_changed) == (4, 2, False)
    assert proof.holds, proof
    assert (proof.proof.read.rows, proof.proof.written.rows) == (38, 38)
    files, proof = _prove(engine, path, 2)
    assert files.data_changed
    assert (proof.proof.read.rows, proof.proof.written.rows) == (0, 40)
    assert not proof.holds
    files, proof = _prove(engine, path, 3)
    assert proof.proof.read.rows - proof.proof.written.rows == 3
    assert not proof.holds


def _change(column: str, change: Callable[[list[Any]], list[Any]]) -> Callable[[pa.Table], pa.Table]:
    def forge(table: pa.Table) -> pa.Table:
        place = table.schema.get_field_index(column)
        values = pa.array(change(table.column(column).to_pylist()), table.schema.field(place).type)
        return table.set_column(place, table.schema.field(place), values)

    return forge


FORGERIES: dict[str, Callable[[pa.Table], pa.Table]] = {
    "one row for another": lambda table: pa.concat_tables([table.slice(1), table.slice(1, 1)]),
    "a null moved": _change("s", lambda values: [*values[1:], values[0]]),
}


@pytest.mark.long
def test_forged_rewrites_do_not_hold(spark: SparkSession, engine: DeltaTableEngine, lake: Path) -> None:
    path = lake / "true"
    frame = spark.range(20).selectExpr("id", "if(id % 5 = 0, NULL, cast(id AS STRING)) s").repartition(3)
    frame.write.format("delta").save(str(path))
    spark.sql(f"OPTIMIZE delta.`{path}`")
    missed = []
    for number, (name, forge) in enumerate(FORGERIES.items()):
        forged = lake / f"forged-{number}"
        shutil.copytree(path, forged)
        _forge(forged, forge)
        _, proof = _prove(engine, forged, 1)
        if proof.holds or proof.proof.read == proof.proof.written or proof.findings:
            missed.append(name)
    assert missed == []
    assert _prove(engine, path, 1)[1].holds


def _forge(path: Path, forge: Callable[[pa.Table], pa.Table]) -> None:
    """Replace the one added file of version 1, and its size and statistics in the log."""
    entry = path / "_delta_log" / f"{1:020d}.json"
    actions = _log(path, 1)
    (add,) = [action["add"] for action in actions if "add" in action]
    file = path / add["path"]
    table = forge(pq.read_table(file))
    pq.write_table(table, file)
    add["size"] = file.stat().st_size
    add["stats"] = json.dumps({"numRecords": len(table)})
    entry.write_text("".join(json.dumps(action) + "\n" for action in actions))
    for checksum in [*path.rglob(".*.crc"), *path.rglob("*.crc")]:
        checksum.unlink(missing_ok=True)


@pytest.fixture
def table_of_one_file(spark: SparkSession, lake: Path) -> Path:
    path = lake / "t"
    spark.range(20).selectExpr("id", "if(id = 7, double('NaN'), id) AS d", "if(id = 3, NULL, 'x') AS t").repartition(
        3
    ).write.format("delta").save(str(path))
    spark.sql(f"OPTIMIZE delta.`{path}`")
    return path


def _findings(
    engine: DeltaTableEngine, path: Path, engine_info: str | None = None, **said: Any
) -> tuple[str, tuple[str, ...]]:
    """The one added file, and what is found where its statistics say something else."""
    facts, actions = engine.reader.facts(TableRef(str(path))), _log(path, 1)
    for action in actions:
        if "add" in action:
            stats = json.loads(action["add"]["stats"])
            for key, value in said.items():
                stats[key] = {**stats[key], **value} if isinstance(value, dict) else value
            action["add"]["stats"] = json.dumps(stats)
        elif "commitInfo" in action and engine_info:
            action["commitInfo"]["engineInfo"] = engine_info
    files = committed_files(1, actions, PartitionNames((), ()))
    proof = prove_version(engine.jvm.spark, str(path), facts, files)
    assert proof.proof.holds
    assert proof.holds is not bool(proof.findings)
    return files.added[0].path, proof.findings


@pytest.mark.every_run
def test_statistics_that_lie_are_found(engine: DeltaTableEngine, table_of_one_file: Path) -> None:
    path = table_of_one_file
    assert _prove(engine, path, 1)[1].holds
    said: dict[str, Any] = {"numRecords": 19, "maxValues": {"d": 19.0}, "nullCount": {"t": 0}}
    name, findings = _findings(engine, path, **said)
    assert findings == (
        f"{name}: numRecords says 19, it holds 20 rows",
        f"{name}: rows lie outside the bounds of d (minValues says 0.0, maxValues 19.0)",
        f"{name}: nullCount of t says 0, it holds 1 null",
    )


def test_bounds_that_no_row_reaches_count_by_their_writer_and_no_file_proves_nothing(
    engine: DeltaTableEngine, table_of_one_file: Path
) -> None:
    path = table_of_one_file
    name, findings = _findings(engine, path, maxValues={"id": 40})
    assert findings == (f"{name}: maxValues of id says 40, which no row reaches",)
    assert _findings(engine, path, "Apache-Spark/3.5.0 Delta-Lake/3.3.0", maxValues={"id": 40})[1] == ()
    facts, (files, _) = engine.reader.facts(TableRef(str(path))), _prove(engine, path, 1)
    # A file that cannot be found by its name proves nothing, even if none is found on either side.
    elsewhere = prove_version(engine.jvm.spark, str(path), replace(facts, location=facts.location + "x"), files)
    assert (elsewhere.proof.read.rows, elsewhere.proof.written.rows) == (0, 0)
    assert not elsewhere.holds
