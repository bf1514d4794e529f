"""Rewrites on every kind of table: the same rows, schema, properties and protocol; history as OPTIMIZE writes it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.product import Batch, Bin, CompactStep, DeltaEngine, DeltaTableEngine, SessionLease, TableRef
from tests.support.tables.delta_tables import (
    GIB,
    compaction,
    files_on_disk,
    history,
    no_intent,
    second_engine_rows,
    spark_rows,
    stamp,
    zorder,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.nightly, pytest.mark.sampled(2)]


@pytest.fixture(scope="module")
def engine(lease: SessionLease) -> Iterator[DeltaTableEngine]:
    with DeltaEngine(lease).worker("rewrite") as worker:
        yield worker


@pytest.mark.every_run
def test_plain_compaction_and_its_receipt(spark: SparkSession, engine: DeltaTableEngine, lake: Path) -> None:
    path = lake / "plain"
    spark.range(200).selectExpr("id", "cast(id AS STRING) s").repartition(6).write.format("delta").save(str(path))
    rows, other = spark_rows(spark, path), second_engine_rows(path)
    facts = engine.reader.facts(TableRef(str(path)))
    step, batch = compaction(facts)
    calls: list[tuple[int, int]] = []
    receipt = engine.writer.rewrite(
        facts, step, batch, stamp(), lambda version, proof: calls.append((version, proof.read.rows if proof else -1))
    )
    assert calls == [(0, 200)]
    assert (receipt.version, receipt.read_version, receipt.attempts) == (1, 0, 1)
    assert (receipt.num_files_removed, receipt.num_files_added) == (6, 1)
    assert receipt.bytes_removed == facts.size_bytes
    assert receipt.proof is not None
    assert receipt.proof.holds
    assert (receipt.proof.rows_in_log, receipt.proof.uncovered_columns) == (200, ())
    after = engine.reader.facts(facts.ref)
    assert receipt.bytes_added == after.size_bytes
    assert [dict(file.tags) for file in after.files] == [dict(step.file_tags)]
    assert spark_rows(spark, path) == rows
    assert second_engine_rows(path) == other
    (entry,) = history(spark, path)
    assert (entry["operation"], entry["isolationLevel"]) == ("OPTIMIZE", "SnapshotIsolation")
    assert entry["userMetadata"] == stamp().to_json()
    assert entry["operationParameters"] == {"predicate": "[]", "zOrderBy": "[]", "clusterBy": "[]", "auto": "false"}
    size = str(receipt.bytes_added)
    assert entry["operationMetrics"] == {
        "numRemovedFiles": "6",
        "numRemovedBytes": str(facts.size_bytes),
        "numAddedFiles": "1",
        "numAddedBytes": size,
        "numDeletionVectorsRemoved": "0",
        **dict.fromkeys(("minFileSize", "p25FileSize", "p50FileSize", "p75FileSize", "maxFileSize"), size),
    }
    log = (path / "_delta_log" / f"{1:020d}.json").read_text().splitlines()
    assert {next(iter(json.loads(line))) for line in log} == {"commitInfo", "add", "remove"}
    for line in log[1:]:
        (body,) = json.loads(line).values()
        assert body["dataChange"] is False
    assert engine.reader.find_commit(facts, stamp(), after_version=0) == 1
    assert engine.reader.find_commit(facts, stamp(), after_version=1) is None
    assert engine.reader.find_commit(facts, stamp(batch=1), after_version=0) is None


VALUES = ["NULL", "''", "'a b'", "'50%'", "'x:y'", "'a/b'", "'#1'", "'k=v'", "'🎉é'", "'%20'", "'a\"b'"]


def test_partitions_with_odd_values(spark: SparkSession, engine: DeltaTableEngine, lake: Path) -> None:
    path = lake / "odd"
    union = " UNION ALL ".join(f"SELECT {number} AS n, {value} AS p" for number, value in enumerate(VALUES))
    for _ in range(2):
        spark.sql(union).coalesce(1).write.format("delta").partitionBy("p").mode("append").save(str(path))
    rows = spark_rows(spark, path)
    facts = engine.reader.facts(TableRef(str(path)))
    step, batch = compaction(facts, where=lambda file: file.partition_values != (("p", "a b"),), max_threads=3)
    receipt = engine.writer.rewrite(facts, step, batch, stamp(), no_intent)
    # null and the empty string are one partition in Delta.
    assert len(batch.bins) == len(VALUES) - 2
    assert receipt.num_files_added == len(batch.bins)
    after = engine.reader.facts(facts.ref)
    assert {file.partition_values for file in after.files} == {file.partition_values for file in facts.files}
    assert len(after.files) == len(batch.bins) + 2
    assert spark_rows(spark, path) == rows
    assert spark_rows(spark, path, 1) == rows


def test_everything_at_once(spark: SparkSession, engine: DeltaTableEngine, lake: Path) -> None:
    """Column mapping, renamed and dropped columns, deletion vectors, change feed, row tracking, v2 checkpoints."""
    path = lake / "all"
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT, v STRING, gone INT, p INT) USING delta PARTITIONED BY (p) "
        "TBLPROPERTIES ('delta.columnMapping.mode'='name', 'delta.enableDeletionVectors'='true', "
        "'delta.enableRowTracking'='true', 'delta.enableChangeDataFeed'='true', 'delta.checkpointPolicy'='v2', "
        "'delta.enableInCommitTimestamps'='true', 'delta.appendOnly'='false')"
    )
    for start in (0, 30):
        frame = spark.range(start, start + 30).selectExpr(
            "id", "cast(id AS STRING) v", "1 gone", "cast(id % 2 AS INT) p"
        )
        frame.coalesce(1).write.format("delta").mode("append").save(str(path))
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id % 7 = 0")
    spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN v TO `the value`")
    spark.sql(f"ALTER TABLE delta.`{path}` DROP COLUMN gone")
    spark.sql(f"UPDATE delta.`{path}` SET `the value` = NULL WHERE id = 5")
    tracked = ("_metadata.row_id", "_metadata.row_commit_version")
    rows = spark_rows(spark, path, None, *tracked)
    facts = engine.reader.facts(TableRef(str(path)))
    version = facts.version
    for step, batch in (compaction(facts), zorder(facts, "id", "the value")):
        facts = engine.reader.facts(facts.ref)
        batch = Batch(
            tuple(
                Bin(tuple(f for f in facts.files if f.partition_values == bin_.partition_values)) for bin_ in batch.bins
            )
        )
        receipt = engine.writer.rewrite(facts, step, batch, stamp(step.kind), no_intent)
        version += 1
        assert (receipt.version, receipt.num_files_added) == (version, 2)
        assert spark_rows(spark, path, None, *tracked) == rows
        feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", version)
        assert feed.option("endingVersion", version).load(str(path)).count() == 0
    after = engine.reader.facts(facts.ref)
    assert all(file.deletion_vector is None for file in after.files)
    assert (after.schema_json, after.properties, after.protocol) == (
        facts.schema_json,
        facts.properties,
        facts.protocol,
    )
    assert history(spark, path)[0]["operationParameters"]["zOrderBy"] == '["id","the value"]'


def test_constraints_generated_identity_and_nested_types(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path
) -> None:
    from delta.tables import DeltaTable, IdentityGenerator

    path = lake / "types"
    builder = DeltaTable.create(spark).location(str(path))
    builder = builder.addColumn("n", "BIGINT", generatedAlwaysAs=IdentityGenerator()).addColumn(
        "d", "DATE", nullable=False
    )
    builder = builder.addColumn("y", "INT", generatedAlwaysAs="year(d)")
    kinds = {
        "f": "FLOAT", "g": "DOUBLE", "dec": "DECIMAL(38,10)", "b": "BINARY", "t": "TIMESTAMP", "z": "TIMESTAMP_NTZ",
        "m": "MAP<STRING, DOUBLE>", "l": "ARRAY<STRUCT<a: INT, `b.c`: STRING>>",
        "deep": "STRUCT<x: ARRAY<MAP<INT, INT>>>",
        "`do.t`": "STRING", "`ti``ck`": "STRING", "v": "VARIANT", "c": "CHAR(4)",
    }  # fmt: skip
    for name, kind in kinds.items():
        builder = builder.addColumn(name.strip("`").replace("``", "`"), kind)
    builder.property("delta.columnMapping.mode", "name").execute()
    spark.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT positive CHECK (y > 0)")
    values = [
        "DATE'1500-02-28', 0.0F, -0.0D, 12345678901234567890123456.5BD, X'00FF', TIMESTAMP'1500-01-01 00:00:00', "
        "TIMESTAMP_NTZ'0001-01-01 00:00:00', map('b', -0.0D, 'a', NULL), "
        "array(NULL, named_struct('a', 1, 'b.c', NULL)), "
        "named_struct('x', array(map(1, NULL), NULL)), 'x', 'y', parse_json('{\"a\":[1,null]}'), 'ab'",
        "DATE'2024-02-29', float('NaN'), double('-Infinity'), NULL, NULL, NULL, NULL, map(), array(), NULL, '', NULL, "
        "NULL, NULL",
    ]
    names = ", ".join(["d", *kinds])
    for _ in range(2):
        spark.sql(f"INSERT INTO delta.`{path}` ({names}) " + " UNION ALL ".join(f"SELECT {value}" for value in values))
    rows = spark_rows(spark, path)
    facts = engine.reader.facts(TableRef(str(path)))
    step, batch = compaction(facts)
    receipt = engine.writer.rewrite(facts, step, batch, stamp(), no_intent)
    assert (receipt.num_files_removed, receipt.num_files_added) == (len(facts.files), 1)
    assert len(facts.files) > 1
    assert spark_rows(spark, path) == rows
    assert receipt.proof is not None
    assert (receipt.proof.read.rows, receipt.proof.uncovered_columns) == (4, ())
    after = engine.reader.facts(facts.ref)
    assert (after.schema_json, after.properties, after.protocol) == (
        facts.schema_json,
        facts.properties,
        facts.protocol,
    )


@pytest.mark.every_run
@pytest.mark.parametrize(
    ("mode", "day", "moment"),
    [("LEGACY", "1500-01-01", "1001-02-03 04:05:06"), ("CORRECTED", "2024-01-15", "2024-01-15 12:00:00.123456")],
)
def test_times_of_both_forms_are_rewritten_and_proven_as_spark_reads_them(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path, mode: str, day: str, moment: str
) -> None:
    """DuckDB sees days shifted that a writer in the mode LEGACY wrote, as of tables that Hive reads.

    Spark writes INT96, and a rewrite microseconds: a table that is appended to has both when it is rewritten again.
    """
    path, other = lake / mode, spark.newSession()
    for setting in ("datetimeRebaseModeInWrite", "int96RebaseModeInWrite"):
        other.conf.set(f"spark.sql.parquet.{setting}", mode)
    for form in ("TIMESTAMP_MICROS", "INT96"):
        other.conf.set("spark.sql.parquet.outputTimestampType", form)
        frame = other.sql(f"SELECT id, DATE'{day}' d, TIMESTAMP'{moment}' t FROM range(0, 9, 1, 1)")
        frame.write.format("delta").mode("append").save(str(path))
    rows = spark_rows(spark, path)
    facts = engine.reader.facts(TableRef(str(path)))
    step, batch = compaction(facts)
    receipt = engine.writer.rewrite(facts, step, batch, stamp(), no_intent)
    assert (receipt.num_files_removed, receipt.num_files_added) == (2, 1)
    assert receipt.proof is not None
    assert receipt.proof.holds
    assert spark_rows(spark, path) == rows


@pytest.mark.parametrize("with_stats", [True, False])
def test_a_batch_whose_rows_are_all_deleted_is_committed(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path, with_stats: bool
) -> None:
    """Delta's own DELETE never leaves such a file, other engines do: one is made by hand, with a borrowed vector."""
    path = lake / "emptied"
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT) USING delta TBLPROPERTIES ('delta.enableDeletionVectors'='true')"
    )
    for start, end in ((0, 10), (100, 109)):
        spark.range(start, end).coalesce(1).write.format("delta").mode("append").save(str(path))
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id < 9")
    log = path / "_delta_log"
    lines = [line for version in (2, 3) for line in (log / f"{version:020d}.json").read_text().splitlines()]
    other, first = (json.loads(line)["add"] for line in lines if line.startswith('{"add"'))
    stats = json.dumps({"numRecords": 9, "tightBounds": False}) if with_stats else None
    add = {**other, "deletionVector": first["deletionVector"], "stats": stats}
    remove = {"path": other["path"], "deletionTimestamp": 1, "dataChange": True, "size": other["size"]}
    actions = [{"commitInfo": {"timestamp": 1, "operation": "DELETE"}}, {"remove": remove}, {"add": add}]
    (log / f"{4:020d}.json").write_text("".join(json.dumps(action) + "\n" for action in actions))
    facts = engine.reader.facts(TableRef(str(path)))
    assert (facts.version, len(facts.files)) == (4, 2)
    step, batch = compaction(facts, where=lambda file: file.path == other["path"])
    receipt = engine.writer.rewrite(facts, step, batch, stamp(), no_intent)
    assert (receipt.num_files_removed, receipt.num_files_added) == (1, 0)
    assert receipt.num_deletion_vectors_removed == 1
    assert receipt.proof is not None
    assert (receipt.proof.read.rows, receipt.proof.rows_in_log) == (0, 0 if with_stats else None)
    assert [file.path for file in engine.reader.facts(facts.ref).files] == [first["path"]]
    assert [row.id for row in spark.read.format("delta").load(str(path)).collect()] == [9]
    assert history(spark, path)[0]["operationMetrics"]["numAddedFiles"] == "0"


def test_zorder_writes_as_many_files_as_optimize(spark: SparkSession, engine: DeltaTableEngine, lake: Path) -> None:
    path = lake / "z"
    frame = spark.range(20000).selectExpr(
        "cast(hash(id) % 1000 AS INT) a", "cast(hash(id + 1) % 1000 AS INT) b", "uuid() u"
    )
    frame.repartition(4).write.format("delta").save(str(path))
    rows = second_engine_rows(path)
    facts = engine.reader.facts(TableRef(str(path)))
    step, batch = zorder(facts, "a", "b", max_file_size_bytes=facts.size_bytes // 3)
    receipt = engine.writer.rewrite(facts, step, batch, stamp(), no_intent)
    assert receipt.num_files_added == step.num_files_added == 3
    assert second_engine_rows(path) == rows
    ranges = [json.loads(text) for text in _stats(path, receipt.version)]
    spans = [
        stats["maxValues"]["a"] - stats["minValues"]["a"] + stats["maxValues"]["b"] - stats["minValues"]["b"]
        for stats in ranges
    ]
    # Without an order every file spans nearly the whole square: 3 x 4000.
    assert sum(spans) < 0.9 * 3 * 3998


def _stats(path: Path, version: int) -> list[str]:
    lines = (path / "_delta_log" / f"{version:020d}.json").read_text().splitlines()
    return [json.loads(line)["add"]["stats"] for line in lines if line.startswith('{"add"')]


def test_only_the_planned_files_are_touched_and_bins_are_bins(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path
) -> None:
    path = lake / "some"
    spark.range(60).repartition(6).write.format("delta").save(str(path))
    facts = engine.reader.facts(TableRef(str(path)))
    first, second, untouched = facts.files[:2], facts.files[2:4], facts.files[4:]
    batch = Batch((Bin(first), Bin(second)))
    receipt = engine.writer.rewrite(facts, CompactStep((batch,), GIB, 4, ()), batch, stamp(), no_intent)
    assert (receipt.num_files_removed, receipt.num_files_added) == (4, 2)
    after = engine.reader.facts(facts.ref)
    assert set(untouched) <= set(after.files)
    assert len(after.files) == 4
    assert sorted(file.physical_records or 0 for file in after.files if file not in untouched) == sorted(
        sum(f.physical_records or 0 for f in files) for files in (first, second)
    )
    assert {file.path for file in after.files} | {file.path for file in facts.files} == files_on_disk(path)
