"""Every kind of rewrite on real Delta, from policy to commits; content by another engine; a second run does nothing."""

from __future__ import annotations

import itertools
import json
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from maintainer.delta.engine.table_engine import DeltaEngine, DeltaTableEngine
from maintainer.delta.log.staged_file import WrittenFile
from maintainer.delta.rewrite.copy import footers
from maintainer.delta.spark.spark_session import SessionLease, worker_session
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.model.plan.lanes import Codec, Lane
from maintainer.model.plan.layout_tags import LIQUID, REWRITE_TAG, ZCUBE_ID_TAG
from maintainer.model.plan.steps import CompactStep, PartitionRewriteStep, PurgeStep
from maintainer.model.run.outcome import StepStatus, TableStatus
from maintainer.planning.selection import lane_choice
from maintainer.policy.predicate.partition_predicate import parse_predicate
from maintainer.policy.resolve.resolved import PurgePolicy, RewritePolicy
from tests.support.runs.delta_runs import Maintenance
from tests.support.tables.builders import make_optimize
from tests.support.tables.delta_tables import GIB, files_on_disk, history, second_engine_rows, spark_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.sampled(2)]


@pytest.fixture(scope="module")
def engine(lease: SessionLease) -> Iterator[DeltaTableEngine]:
    with DeltaEngine(lease).worker("kinds") as worker:
        yield worker


@pytest.fixture
def maintenance(engine: DeltaTableEngine, tmp_path: Path) -> Maintenance:
    return Maintenance(engine, tmp_path / "runs")


def partitions(spark: SparkSession, path: Path, num_partitions: int, files_each: int = 2) -> None:
    """A table partitioned by ``p`` with several small files in each partition."""
    rows = spark.range(40 * num_partitions).selectExpr("id", f"id % {num_partitions} AS p", "repeat('x', 20) AS s")
    for number in range(files_each):
        part = rows.where(f"id % {files_each} = {number}").coalesce(1)
        part.write.format("delta").partitionBy("p").mode("append").save(str(path))


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
        partitions(spark, path, 2, files_each=3)
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
        partitions(spark, path, 3)
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
            assert all(one[1] <= other[0] for one, other in itertools.pairwise(ranges))
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


class TestPurge:
    """Soft-deleted rows and dropped columns are gone from the files that are live; done once, nothing is left to do."""

    def test_lone_files_with_deleted_rows(
        self, spark: SparkSession, lease: SessionLease, maintenance: Maintenance, lake: Path
    ) -> None:
        path = lake / "vectors"
        spark.sql(
            f"CREATE TABLE delta.`{path}` (id BIGINT, p BIGINT) USING delta PARTITIONED BY (p) "
            "TBLPROPERTIES ('delta.enableDeletionVectors'='true')"
        )
        rows = spark.range(800).selectExpr("id", "id % 4 AS p").coalesce(1)
        rows.write.format("delta").mode("append").save(str(path))
        spark.sql(f"DELETE FROM delta.`{path}` WHERE id IN (0, 2)")
        before = spark_rows(spark, path)
        copy = lake / "copy"
        shutil.copytree(path, copy)
        # OPTIMIZE leaves them, and so does compaction: too few rows are deleted. REORG takes the two.
        assert maintenance.plan(path).steps == ()
        optimize = make_optimize(max_size=GIB, purge=PurgePolicy())
        plan = maintenance.plan(path, optimize)
        (step,) = plan.steps
        assert isinstance(step, PurgeStep)
        assert [len(one.files) for batch in step.batches for one in batch.bins] == [1, 1]
        outcome = maintenance.apply(plan)
        assert outcome.status is TableStatus.DONE
        (commit,) = outcome.steps[0].commits
        assert (commit.num_files_removed, commit.num_files_added) == (2, 2)
        (row,) = worker_session(lease).sql(f"REORG TABLE delta.`{copy}` APPLY (PURGE)").collect()
        assert (row["metrics"]["numFilesRemoved"], row["metrics"]["numFilesAdded"]) == (2, 2)
        ours, theirs = (history(spark, one)[0] for one in (path, copy))
        assert ours["operation"] == theirs["operation"] == "REORG"
        assert ours["operationParameters"] == theirs["operationParameters"]
        assert ours["operationMetrics"]["numDeletionVectorsRemoved"] == "2"
        files = maintenance.facts(path).files
        assert sorted(file.physical_records or 0 for file in files) == [199, 199, 200, 200]
        assert all(file.deletion_vector is None for file in files)
        assert spark_rows(spark, path) == before
        # The deleted rows are in no live file any more, the others all are.
        values = [value for file in files for value in pq.ParquetFile(path / file.path).read()["id"].to_pylist()]
        assert sorted(values) == [number for number in range(800) if number not in (0, 2)]
        assert maintenance.plan(path, optimize).steps == ()

    @pytest.mark.long
    def test_dropped_columns_and_what_has_to_be_opened_for_them(
        self, spark: SparkSession, engine: DeltaTableEngine, maintenance: Maintenance, lake: Path, monkeypatch: Any
    ) -> None:
        path = lake / "dropped"
        spark.sql(
            f"CREATE TABLE delta.`{path}` (id BIGINT, secret STRING, s STRUCT<a: INT, b: STRING>) USING delta "
            "TBLPROPERTIES ('delta.columnMapping.mode'='name')"
        )
        opened: list[int] = []
        really = engine.jvm.files_with_extra_columns

        def counted(snapshot: Any, actions: Any) -> list[str]:
            opened.append(int(actions.size()))
            return really(snapshot, actions)

        monkeypatch.setattr(engine.jvm, "files_with_extra_columns", counted)
        optimize = make_optimize(max_size=GIB, min_size=1, purge=PurgePolicy())
        for _ in range(2):
            spark.sql(f"INSERT INTO delta.`{path}` VALUES (1, 'x', named_struct('a', 1, 'b', 'y'))")
        assert maintenance.plan(path, optimize).steps == ()
        spark.sql(f"ALTER TABLE delta.`{path}` DROP COLUMN secret")
        spark.sql(f"INSERT INTO delta.`{path}` VALUES (2, named_struct('a', 2, 'b', 'z'))")
        before = spark_rows(spark, path)
        plan = maintenance.plan(path, optimize)
        (step,) = plan.steps
        assert isinstance(step, PurgeStep)
        assert [len(batch.files) for batch in step.batches] == [2]
        # The statistics name every column, so the log alone has told.
        assert opened == []
        assert maintenance.apply(plan).status is TableStatus.DONE
        assert spark_rows(spark, path) == before
        assert _columns_in_files(path, maintenance) == {frozenset({"id", "s"})}
        assert maintenance.plan(path, optimize).steps == ()

        # A nested field, and statistics that name one column only: now files have to be opened, those of before only.
        spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.dataSkippingNumIndexedCols'='1')")
        spark.sql(f"INSERT INTO delta.`{path}` VALUES (3, named_struct('a', 3, 'b', 'w'))")
        spark.sql(f"ALTER TABLE delta.`{path}` DROP COLUMN s.b")
        spark.sql(f"INSERT INTO delta.`{path}` VALUES (4, named_struct('a', 4))")
        before = spark_rows(spark, path)
        plan = maintenance.plan(path, optimize)
        (step,) = plan.steps
        assert isinstance(step, PurgeStep)
        assert [len(batch.files) for batch in step.batches] == [3]
        assert opened == [2]
        assert maintenance.apply(plan).status is TableStatus.DONE
        assert spark_rows(spark, path) == before
        assert _nested_in_files(path, maintenance, "s") == {frozenset({"a"})}
        assert maintenance.plan(path, optimize).steps == ()

    def test_dropped_columns_are_left_out_of_a_copy(
        self, spark: SparkSession, maintenance: Maintenance, lake: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(lane_choice, "COPY_MIN_FILE_BYTES", 1)
        monkeypatch.setattr(footers, "MIN_ROW_GROUP_BYTES", 1)
        path = lake / "copied"
        spark.sql(
            f"CREATE TABLE delta.`{path}` (id BIGINT, secret STRING, day INT, s STRUCT<a: INT>) USING delta "
            "PARTITIONED BY (day) TBLPROPERTIES ('delta.columnMapping.mode'='name')"
        )
        for number in range(3):
            rows = f"SELECT id, 'xyz' || id, {number % 2}, named_struct('a', id) FROM range({number}, 500)"
            spark.sql(f"INSERT INTO delta.`{path}` {rows}")
        spark.sql(f"ALTER TABLE delta.`{path}` DROP COLUMN secret")
        before = spark_rows(spark, path)
        plan = maintenance.plan(path, make_optimize(max_size=GIB, min_size=1, purge=PurgePolicy()))
        outcome = maintenance.apply(plan)
        assert outcome.status is TableStatus.DONE
        receipts = [receipt for step in outcome.steps for receipt in step.commits]
        uses = [use for receipt in receipts if receipt.proof for use in receipt.proof.lanes]
        assert {(use.lane, use.prover, use.note) for use in uses} == {(Lane.COPY, "column chunks", None)}
        assert spark_rows(spark, path) == before
        assert _columns_in_files(path, maintenance) == {
            frozenset({"id", "day", "s"})
        }  # Delta repeats partition columns
        assert all(b"xyz" not in (path / file.path).read_bytes() for file in maintenance.facts(path).files)

    @pytest.mark.parametrize("lane", list(Lane))
    def test_new_files_have_the_codec_of_the_policy(
        self, spark: SparkSession, maintenance: Maintenance, lake: Path, monkeypatch: pytest.MonkeyPatch, lane: Lane
    ) -> None:
        monkeypatch.setattr(lane_choice, "COPY_MIN_FILE_BYTES", 1)
        monkeypatch.setattr(footers, "MIN_ROW_GROUP_BYTES", 1)
        path = lake / f"codec-{lane}"
        partitions(spark, path, 2, files_each=3)
        before = second_engine_rows(path)
        optimize = replace(make_optimize(max_size=GIB, min_size=GIB), lanes=(lane,), codec=Codec.ZSTD)
        outcome = maintenance.apply(maintenance.plan(path, optimize))
        assert outcome.status is TableStatus.DONE
        receipts = [receipt for step in outcome.steps for receipt in step.commits]
        uses = [use for receipt in receipts if receipt.proof for use in receipt.proof.lanes]
        assert {(use.lane, use.prover, use.note) for use in uses} == {(lane, "DuckDB", None)}
        codecs = {pq.read_metadata(path / file.path).row_group(0).column(0).compression
                  for file in maintenance.facts(path).files}  # fmt: skip
        assert codecs == {"ZSTD"}
        assert second_engine_rows(path) == before
        assert maintenance.plan(path, optimize).steps == ()
        # The session writes as it did before.
        partitions(spark, path, 1, files_each=1)
        newest = max(
            (path / file.path for file in maintenance.facts(path).files), key=lambda file: file.stat().st_mtime
        )
        assert pq.read_metadata(newest).row_group(0).column(0).compression == "SNAPPY"

    @pytest.mark.long
    def test_a_purged_file_keeps_its_cube(self, spark: SparkSession, maintenance: Maintenance, lake: Path) -> None:
        path = lake / "cube"
        spark.sql(
            f"CREATE TABLE delta.`{path}` (id BIGINT, v BIGINT) USING delta CLUSTER BY (id) "
            "TBLPROPERTIES ('delta.enableDeletionVectors'='true')"
        )
        spark.range(1000).selectExpr("id", "id % 7 AS v").repartition(2).write.format("delta").mode("append").save(
            str(path)
        )
        optimize = make_optimize(max_size=GIB, purge=PurgePolicy())
        assert maintenance.apply(maintenance.plan(path, optimize)).status is TableStatus.DONE
        (clustered,) = maintenance.facts(path).files
        spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 5")
        rows = spark_rows(spark, path)
        plan = maintenance.plan(path, optimize)
        assert [step.kind for step in plan.steps] == ["purge"]
        assert maintenance.apply(plan).status is TableStatus.DONE
        (purged,) = maintenance.facts(path).files
        assert purged.tag(ZCUBE_ID_TAG) == clustered.tag(ZCUBE_ID_TAG) is not None
        assert purged.clustering_provider == LIQUID
        assert (purged.physical_records, purged.deletion_vector) == (999, None)
        assert spark_rows(spark, path) == rows
        assert maintenance.plan(path, optimize).steps == ()


def _columns_in_files(path: Path, maintenance: Maintenance) -> set[frozenset[str]]:
    """The columns of each live file as its footer has them, by their logical names; unknown ones by their own."""
    schema = json.loads(maintenance.facts(path).schema_json)
    names = {field["metadata"]["delta.columnMapping.physicalName"]: field["name"] for field in schema["fields"]}
    files = maintenance.facts(path).files
    return {frozenset(names.get(one, one) for one in pq.read_schema(path / file.path).names) for file in files}


def _nested_in_files(path: Path, maintenance: Maintenance, column: str) -> set[frozenset[str]]:
    """The fields of a struct in each live file, by their logical names; unknown ones by their own."""
    schema = json.loads(maintenance.facts(path).schema_json)
    (field,) = (field for field in schema["fields"] if field["name"] == column)
    physical = "delta.columnMapping.physicalName"
    names = {one["metadata"][physical]: one["name"] for one in field["type"]["fields"]}
    files = maintenance.facts(path).files
    kinds = [pq.read_schema(path / file.path).field(field["metadata"][physical]) for file in files]
    inner = [{one.name.rpartition(".")[2] for one in kind.flatten()} for kind in kinds]
    return {frozenset(names.get(one, one) for one in fields) for fields in inner}
