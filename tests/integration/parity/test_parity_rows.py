"""Deleted rows, concurrent writers and neutrality: the behaviours B and F of Delta's own suites, through policies.

Named and marked as in test_parity_a_compaction.py.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from tests.support.product import DeletionVectorStats, DeltaEngine, RewriteJob, SessionLease, table_engine, write_bins
from tests.support.runs.app_runs import Applied, applied, commit_info, newest_version, planned
from tests.support.tables.delta_tables import actions_of as commit_actions
from tests.support.tables.delta_tables import age, spark_rows
from tests.support.tables.parity_lake import live_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.long]

PURGE = "optimize: {minFileSize: 1, maxFileSize: 1GiB, maxDeletedRowsRatio: 1, purge: {}"
"""Files with any deleted rows and no others, as REORG ... APPLY (PURGE) takes them; nothing is left for compaction."""


def apply_to(lease: SessionLease, root: Path, path: Path, policy: str = "") -> Applied:
    return applied(DeltaEngine(lease), root, f"table: {path}\n{policy}")


def table(
    spark: SparkSession, path: Path, rows: int, files: int, properties: str = "delta.enableDeletionVectors"
) -> None:
    writer = spark.range(0, rows, 1, files).write.format("delta")
    for name in properties.split(","):
        writer = writer.option(name, "true")
    writer.save(str(path))


def vectors(path: Path) -> int:
    return sum(file.get("deletionVector") is not None for file in live_files(path))


def test_b1_files_with_many_deleted_rows_and_small_ones(
    spark: SparkSession, lease: SessionLease, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    table(spark, path, 10_000, 10)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id < 60 OR (id >= 1000 AND id < 1060) OR (id >= 2000 AND id < 2010)")
    spark.range(1).coalesce(1).write.format("delta").mode("append").save(str(path))
    tiny = min(int(file["size"]) for file in live_files(path))
    metrics = apply_to(
        lease, tmp_path, path, f"optimize: {{minFileSize: {tiny + 10}, maxFileSize: 1GiB}}\n"
    ).step.metrics
    assert metrics is not None
    assert (metrics.num_files_removed, metrics.num_files_added) == (3, 1)
    assert metrics.deletion_vector_stats == DeletionVectorStats(2, 120)
    assert vectors(path) == 1


def test_b2_deletion_vectors_are_counted(spark: SparkSession, lease: SessionLease, tmp_path: Path) -> None:
    path = tmp_path / "t"
    table(spark, path, 200, 20)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id < 50 AND id % 10 < 2")
    metrics = apply_to(lease, tmp_path, path).step.metrics
    assert metrics is not None
    assert metrics.deletion_vector_stats == DeletionVectorStats(5, 10)
    of_delta = commit_info(path, newest_version(path))["operationMetrics"]
    assert {key: value for key, value in of_delta.items() if "DeletionVector" in key} == {
        "numDeletionVectorsRemoved": "5"
    }


def test_b3_purging_takes_what_has_deleted_rows_and_is_done_then(
    spark: SparkSession, lease: SessionLease, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    table(spark, path, 100, 5)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id IN (0, 99)")
    assert vectors(path) == 2
    metrics = apply_to(lease, tmp_path, path, PURGE + "}\n").step.metrics
    assert metrics is not None
    assert (metrics.num_files_removed, metrics.num_files_added, vectors(path)) == (2, 1, 0)
    assert sorted(row.id for row in spark.read.format("delta").load(str(path)).collect()) == list(range(1, 99))
    assert commit_info(path, newest_version(path))["operation"] == "REORG"
    _, plan = planned(DeltaEngine(lease), tmp_path, f"table: {path}\n{PURGE}}}\n")
    assert plan.tables[0].state == "up_to_date"


def test_b4_b5_only_partitions_inside_where_and_only_files_with_deleted_rows(
    spark: SparkSession, lease: SessionLease, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    frame = spark.range(0, 40, 1, 4).selectExpr("id", "cast(id / 10 as int) part")
    frame.write.format("delta").partitionBy("part").option("delta.enableDeletionVectors", "true").save(str(path))
    _, plan = planned(DeltaEngine(lease), tmp_path, f"table: {path}\n{PURGE}}}\n")
    assert plan.tables[0].state == "up_to_date", "B4: there is nothing to purge"
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id % 10 = 1")
    metrics = apply_to(lease, tmp_path, path, f'{PURGE}, where: "part IN (0, 2)"}}\n').step.metrics
    assert metrics is not None
    assert (metrics.num_files_removed, metrics.num_files_added, vectors(path)) == (2, 2, 2)


def columns_in(path: Path) -> list[int]:
    """How many columns each live file stores."""
    return [len(pq.ParquetFile(path / file["path"]).schema_arrow.names) for file in live_files(path)]


def test_b6_b7_a_dropped_column_is_purged_and_a_renamed_one_stays(
    spark: SparkSession, lease: SessionLease, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    frame = spark.range(0, 50, 1, 5).selectExpr("id", "id + 1 AS a", "id + 2 AS b")
    frame.write.format("delta").option("delta.columnMapping.mode", "name").save(str(path))
    spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN a TO c")
    purge = f"table: {path}\noptimize: {{minFileSize: 1, maxFileSize: 1GiB, purge: {{droppedColumns: true}}}}\n"
    _, plan = planned(DeltaEngine(lease), tmp_path, purge)
    assert plan.tables[0].state == "up_to_date", "B7: the name in the files stays as it is"
    spark.sql(f"ALTER TABLE delta.`{path}` DROP COLUMN b")
    assert columns_in(path) == [3] * 5
    metrics = applied(DeltaEngine(lease), tmp_path, purge).step.metrics
    assert metrics is not None
    assert (metrics.num_files_removed, metrics.num_files_added, columns_in(path)) == (5, 1, [2])
    rows = spark.read.format("delta").load(str(path)).orderBy("id").collect()
    assert [(row.id, row.c) for row in rows] == [(number, number + 1) for number in range(50)]


def test_b8_what_a_purge_leaves_a_vacuum_takes(spark: SparkSession, lease: SessionLease, tmp_path: Path) -> None:
    path = tmp_path / "t"
    table(spark, path, 50, 5)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id % 2 = 0 AND id < 40")
    assert vectors(path) == 4
    purge = "optimize: {minFileSize: 1, maxFileSize: 2, purge: {}}\n"
    assert apply_to(lease, tmp_path, path, purge).step.metrics is not None
    assert (vectors(path), len(live_files(path)), len(list(path.glob("*.parquet")))) == (0, 5, 9)
    assert len(list(path.glob("deletion_vector_*.bin"))) == 1
    # As long ago as a vacuum asks for: by the log's own times, and by those of the files.
    age(path, 30)
    vacuum = "vacuum: {retention: 7d, mode: full, allowLargeDelete: true}\n"
    outcome = apply_to(lease, tmp_path, path, purge + vacuum)
    assert [step.status.value for step in outcome.table.steps] == ["succeeded"]
    assert len(list(path.glob("*.parquet"))) == 5
    assert list(path.glob("deletion_vector_*.bin")) == []
    assert spark.read.format("delta").load(str(path)).count() == 30


def meanwhile(monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> None:
    """Let somebody act once, after our files are written and before we commit."""
    done: list[bool] = []

    def writing(job: RewriteJob) -> None:
        write_bins(job)
        if not done:
            done.append(True)
            action()

    monkeypatch.setattr(table_engine, "write_bins", writing)


def operations(path: Path, after: int) -> list[str]:
    return [commit_info(path, version)["operation"] for version in range(after + 1, newest_version(path) + 1)]


def test_f1_a_delete_wins(
    spark: SparkSession, lease: SessionLease, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On purpose: OPTIMIZE fails; ours takes the deletion vectors over into its new file, and both land."""
    path = tmp_path / "t"
    table(spark, path, 100, 10)
    meanwhile(monkeypatch, lambda: spark.sql(f"DELETE FROM delta.`{path}` WHERE id % 2 = 0"))
    outcome = apply_to(lease, tmp_path, path)
    assert outcome.step.status.value == "succeeded"
    assert [name for name in operations(path, 0) if name in ("DELETE", "OPTIMIZE")] == ["DELETE", "OPTIMIZE"]
    assert spark.read.format("delta").load(str(path)).count() == 50


@pytest.mark.parametrize("statement", ["INSERT INTO {} VALUES (100)", "ALTER TABLE {} SET TBLPROPERTIES ('a' = 'b')"])
def test_f2_f3_appends_and_properties_do_not_stop_it(
    spark: SparkSession, lease: SessionLease, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    path = tmp_path / "t"
    table(spark, path, 100, 10)
    meanwhile(monkeypatch, lambda: spark.sql(statement.format(f"delta.`{path}`")))
    outcome = apply_to(lease, tmp_path, path)
    assert outcome.step.status.value == "succeeded"
    assert operations(path, 0)[-1] == "OPTIMIZE"
    assert len(live_files(path)) == (2 if "INSERT" in statement else 1)
    assert spark.read.format("delta").load(str(path)).count() == (101 if "INSERT" in statement else 100)


def test_f4_f5_f6_readers_feeds_streams_and_row_ids_see_nothing(
    spark: SparkSession, lease: SessionLease, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    table(spark, path, 40, 4, "delta.enableChangeDataFeed,delta.enableRowTracking")
    spark.range(100, 104, 1, 1).write.format("delta").mode("append").save(str(path))
    ids = ("_metadata.row_id", "_metadata.row_commit_version")
    rows, version = spark_rows(spark, path, None, *ids), newest_version(path)
    stream = (
        spark.readStream.format("delta").load(str(path)).writeStream.option("checkpointLocation", str(tmp_path / "c"))
    )

    def new_rows() -> int:
        counts: list[int] = []
        query = stream.foreachBatch(lambda frame, _: counts.append(frame.count())).trigger(availableNow=True).start()
        query.awaitTermination(120)
        return sum(counts)

    assert new_rows() == 44
    outcome = apply_to(lease, tmp_path, path)
    assert outcome.step.metrics is not None
    assert (outcome.step.metrics.num_files_removed, outcome.step.metrics.num_files_added) == (5, 1)
    after = newest_version(path)
    assert spark_rows(spark, path, None, *ids) == rows, "F5"
    assert new_rows() == 0, "F4: a stream sees nothing new"
    feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0).load(str(path))
    kinds = {
        (row["_change_type"], row["_commit_version"])
        for row in feed.select("_change_type", "_commit_version").collect()
    }
    assert kinds == {("insert", 0), ("insert", version)}, "F4: the feed has the inserts only"
    actions = [action.get("add") or action.get("remove") for action in commit_actions(path, after)]
    assert {action["dataChange"] for action in actions if action is not None} == {False}, "F6"
