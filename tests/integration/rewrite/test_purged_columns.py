"""Purges on real Delta, from policy to commits; content by another engine; a second run does nothing."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from tests.integration.rewrite.partitioned_tables import partitioned_table
from tests.support.product import (
    LIQUID,
    ZCUBE_ID_TAG,
    Codec,
    DeltaTableEngine,
    Lane,
    PurgePolicy,
    PurgeStep,
    SessionLease,
    TableStatus,
    copy_lane,
    lane_choice,
    worker_session,
)
from tests.support.runs.delta_runs import Maintenance
from tests.support.tables.builders import make_optimize
from tests.support.tables.delta_tables import GIB, history, second_engine_rows, spark_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.nightly, pytest.mark.sampled(1)]


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
        assert [len(bin_.files) for batch in step.batches for bin_ in batch.bins] == [1, 1]
        outcome = maintenance.apply(plan)
        assert outcome.status is TableStatus.DONE
        (commit,) = outcome.steps[0].commits
        assert (commit.num_files_removed, commit.num_files_added) == (2, 2)
        (row,) = worker_session(lease).sql(f"REORG TABLE delta.`{copy}` APPLY (PURGE)").collect()
        assert (row["metrics"]["numFilesRemoved"], row["metrics"]["numFilesAdded"]) == (2, 2)
        ours, theirs = (history(spark, table_path)[0] for table_path in (path, copy))
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
        monkeypatch.setattr(copy_lane, "MIN_ROW_GROUP_BYTES", 1)
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
        monkeypatch.setattr(copy_lane, "MIN_ROW_GROUP_BYTES", 1)
        path = lake / f"codec-{lane}"
        partitioned_table(spark, path, 2, files_each=3)
        before = second_engine_rows(path)
        optimize = replace(make_optimize(max_size=GIB, min_size=GIB), lanes=(lane,), codec=Codec.ZSTD)
        outcome = maintenance.apply(maintenance.plan(path, optimize))
        assert outcome.status is TableStatus.DONE
        receipts = [receipt for step in outcome.steps for receipt in step.commits]
        uses = [use for receipt in receipts if receipt.proof for use in receipt.proof.lanes]
        taken_by = Lane.SPARK if lane is Lane.COPY else lane  # what is copied keeps its codec
        assert {(use.lane, use.prover, use.note is None) for use in uses} == {(taken_by, "DuckDB", lane is taken_by)}
        codecs = {pq.read_metadata(path / file.path).row_group(0).column(0).compression
                  for file in maintenance.facts(path).files}  # fmt: skip
        assert codecs == {"ZSTD"}
        assert second_engine_rows(path) == before
        assert maintenance.plan(path, optimize).steps == ()
        # The session writes as it did before.
        partitioned_table(spark, path, 1, files_each=1)
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
    return {frozenset(names.get(name, name) for name in pq.read_schema(path / file.path).names) for file in files}


def _nested_in_files(path: Path, maintenance: Maintenance, column: str) -> set[frozenset[str]]:
    """The fields of a struct in each live file, by their logical names; unknown ones by their own."""
    schema = json.loads(maintenance.facts(path).schema_json)
    (field,) = (field for field in schema["fields"] if field["name"] == column)
    physical = "delta.columnMapping.physicalName"
    names = {inner_field["metadata"][physical]: inner_field["name"] for inner_field in field["type"]["fields"]}
    files = maintenance.facts(path).files
    kinds = [pq.read_schema(path / file.path).field(field["metadata"][physical]) for file in files]
    inner = [{field.name.rpartition(".")[2] for field in kind.flatten()} for kind in kinds]
    return {frozenset(names.get(field, field) for field in fields) for fields in inner}
