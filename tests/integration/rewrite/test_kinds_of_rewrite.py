"""Compaction and rewrites of partitions on real Delta; content by another engine; a second run does nothing."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from tests.integration.rewrite.partitioned_tables import partitioned_table
from tests.support.product import (
    REWRITE_TAG,
    CompactStep,
    DeltaEngine,
    PartitionRewriteStep,
    RewritePolicy,
    SessionLease,
    StepStatus,
    TableStatus,
    TableStorage,
    WrittenFile,
    parse_predicate,
)
from tests.support.runs.delta_runs import Maintenance
from tests.support.tables.builders import make_optimize
from tests.support.tables.delta_tables import GIB, files_on_disk, history, second_engine_rows, spark_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.nightly, pytest.mark.sampled(1)]


class TestCompaction:
    @pytest.mark.every_run
    def test_row_ids_stay_where_row_tracking_is_switched_on_in_capitals(
        self, spark: SparkSession, maintenance: Maintenance, lake: Path
    ) -> None:
        """Delta takes ``TRUE`` for true and keeps the word; such a table once went to a lane that knows no row ids."""
        path = lake / "capitals"
        spark.sql(
            f"CREATE TABLE delta.`{path}` (id BIGINT) USING delta TBLPROPERTIES ('delta.enableRowTracking'='TRUE')"
        )
        for number in range(3):
            rows = spark.range(number * 100, number * 100 + 100).coalesce(1)
            rows.write.format("delta").mode("append").save(str(path))
        assert maintenance.facts(path).property_map["delta.enableRowTracking"] == "TRUE"
        ids = ("_metadata.row_id", "_metadata.row_commit_version")
        before = spark_rows(spark, path, None, *ids)
        outcome = maintenance.apply(maintenance.plan(path, make_optimize(min_size=1 << 20, max_size=1 << 21)))
        assert outcome.status is TableStatus.DONE
        assert len(maintenance.facts(path).files) == 1
        assert spark_rows(spark, path, None, *ids) == before

    def test_with_a_shuffle(self, spark: SparkSession, maintenance: Maintenance, lake: Path) -> None:
        path = lake / "shuffled"
        partitioned_table(spark, path, 2, files_each=3)
        rows = second_engine_rows(path)
        optimize = make_optimize(max_size=GIB, min_size=GIB, repartition=True)
        plan = maintenance.plan(path, optimize)
        (step,) = plan.steps
        assert isinstance(step, CompactStep)
        assert step.repartition
        outcome = maintenance.apply(plan)
        assert outcome.status is TableStatus.DONE
        assert len(maintenance.facts(path).files) == 2
        assert second_engine_rows(path) == rows
        assert maintenance.plan(path, optimize).steps == ()

    def test_batches_that_landed_stay_when_a_later_one_fails(
        self, spark: SparkSession, lease: SessionLease, lake: Path, tmp_path: Path
    ) -> None:
        path = lake / "batches"
        partitioned_table(spark, path, 3)
        rows = second_engine_rows(path)
        before = files_on_disk(path)
        calls: list[int] = []

        def second_batch(storage: TableStorage, written: list[WrittenFile]) -> None:
            calls.append(len(written))
            if len(calls) == 2:
                raise RuntimeError("planted in batch 2")

        optimize = make_optimize(max_size=GIB, min_size=GIB, batch_size=1)
        with DeltaEngine(lease, between_write_and_proof=second_batch).worker("failing") as engine:
            maintenance = Maintenance(engine, tmp_path / "runs")
            plan = maintenance.plan(path, optimize)
            (step,) = plan.steps
            assert isinstance(step, CompactStep)
            assert [len(batch.bins) for batch in step.batches] == [1, 1, 1]
            outcome = maintenance.apply(plan)
        assert calls == [1, 1]
        assert outcome.status is TableStatus.FAILED
        (done,) = outcome.steps
        assert (done.status, len(done.commits)) == (StepStatus.FAILED, 1)
        assert done.error is not None
        assert "planted in batch 2" in str((done.error.what, done.error))
        # One partition is compacted, two are as they were, and nothing of the failed batch is left on storage.
        assert len(files_on_disk(path) - before) == 1
        assert len(maintenance.facts(path).files) == 5
        assert [entry["operation"] for entry in history(spark, path, 2)] == ["OPTIMIZE", "WRITE"]
        assert second_engine_rows(path) == rows
        # The next run does the rest and nothing twice.
        rest = Maintenance(engine=maintenance.engine, runs_dir=tmp_path / "rest", number=1)
        with DeltaEngine(lease).worker("rest") as worker:
            rest.engine = worker
            plan = rest.plan(path, optimize)
            (step,) = plan.steps
            assert isinstance(step, CompactStep)
            assert [len(batch.files) for batch in step.batches] == [2, 2]
            assert rest.apply(plan).status is TableStatus.DONE
            assert rest.plan(path, optimize).steps == ()
        assert len(maintenance.facts(path).files) == 3
        assert second_engine_rows(path) == rows


class TestRewriteOfPartitions:
    """Into a number of files or a size, sorted on request: what OPTIMIZE cannot do."""

    def test_files_of_a_partition_are_split_and_evened_out(
        self, spark: SparkSession, maintenance: Maintenance, lake: Path
    ) -> None:
        path = lake / "split"
        rows = spark.range(4000).selectExpr("id", "id % 2 AS p", "md5(cast(id AS STRING)) AS s").coalesce(1)
        rows.write.format("delta").partitionBy("p").save(str(path))
        before = second_engine_rows(path)
        optimize = make_optimize(rewrite=RewritePolicy(num_files=4), where=parse_predicate("p = 1"))
        plan = maintenance.plan(path, optimize)
        (step,) = plan.steps
        assert step.kind == "rewrite"
        outcome = maintenance.apply(plan)
        assert outcome.status is TableStatus.DONE
        assert (outcome.steps[0].commits[0].num_files_removed, outcome.steps[0].commits[0].num_files_added) == (1, 4)
        files = maintenance.facts(path).files
        counts = sorted((file.partition_values[0][1], file.physical_records) for file in files)
        assert counts == [("0", 2000)] + [("1", 500)] * 4
        assert second_engine_rows(path) == before
        assert maintenance.plan(path, optimize).steps == ()
        (entry,) = history(spark, path)
        assert (entry["operation"], entry["operationMetrics"]["numAddedFiles"]) == ("OPTIMIZE", "4")
        # One more file makes the partition due, and no other.
        spark.sql("SELECT 5001L AS id, 1L AS p, 'x' AS s").write.format("delta").mode("append").save(str(path))
        (again,) = maintenance.plan(path, optimize).steps
        assert isinstance(again, PartitionRewriteStep)
        assert [len(batch.files) for batch in again.batches] == [5]

    def test_sorted_across_files_and_within_each(
        self, spark: SparkSession, maintenance: Maintenance, lake: Path
    ) -> None:
        """Read back file by file, in the order in which the rows lie in it; nulls first, as Spark sorts."""
        path = lake / "sorted"
        spark.range(6000).selectExpr(
            "if(id % 50 = 0, NULL, (id * 7919) % 6000) AS k", "id % 3 AS p", "struct(id % 5 AS a) AS n", "id"
        ).repartition(5).write.format("delta").partitionBy("p").save(str(path))
        before = second_engine_rows(path)
        optimize = make_optimize(rewrite=RewritePolicy(num_files=3, sort_by=("n.a", "k")))
        outcome = maintenance.apply(maintenance.plan(path, optimize))
        assert outcome.status is TableStatus.DONE
        files = maintenance.facts(path).files
        assert Counter(file.partition_values[0][1] for file in files) == {"0": 3, "1": 3, "2": 3}
        for partition in "012":
            ranges = []
            for file in (file for file in files if file.partition_values[0][1] == partition):
                table = pq.ParquetFile(path / file.path).read()
                pairs = zip(table["n"].to_pylist(), table["k"].to_pylist(), strict=True)
                keys = [(n["a"], k is not None, k or 0) for n, k in pairs]
                assert len(keys) > 100
                assert keys == sorted(keys)
                ranges.append((keys[0], keys[-1]))
            ranges.sort()
            assert all(lower[1] <= upper[0] for lower, upper in itertools.pairwise(ranges))
        assert second_engine_rows(path) == before
        assert maintenance.plan(path, optimize).steps == ()

    @pytest.mark.long
    def test_on_a_table_with_column_mapping_row_tracking_and_deletion_vectors(
        self, spark: SparkSession, maintenance: Maintenance, lake: Path
    ) -> None:
        path = lake / "rich"
        spark.sql(
            f"CREATE TABLE delta.`{path}` (id BIGINT, k STRING) USING delta TBLPROPERTIES "
            "('delta.columnMapping.mode'='name', 'delta.enableRowTracking'='true', "
            "'delta.enableDeletionVectors'='true', 'delta.enableChangeDataFeed'='true')"
        )
        for number in range(3):
            spark.range(number * 100, number * 100 + 100).selectExpr("id", "md5(cast(id AS STRING)) AS k").coalesce(
                1
            ).write.format("delta").mode("append").save(str(path))
        spark.sql(f"DELETE FROM delta.`{path}` WHERE id % 10 = 3")
        spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN k TO key")
        ids = ("_metadata.row_id", "_metadata.row_commit_version")
        before = spark_rows(spark, path, None, *ids)
        optimize = make_optimize(rewrite=RewritePolicy(num_files=2, sort_by=("key",)))
        outcome = maintenance.apply(maintenance.plan(path, optimize))
        assert outcome.status is TableStatus.DONE
        assert spark_rows(spark, path, None, *ids) == before
        files = maintenance.facts(path).files
        assert [(file.deletion_vector, file.tag(REWRITE_TAG) is None) for file in files] == [(None, False)] * 2
        assert sum(file.physical_records or 0 for file in files) == 270
        version = maintenance.facts(path).version
        changes = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", version)
        assert changes.load(str(path)).count() == 0
        assert maintenance.plan(path, optimize).steps == ()
