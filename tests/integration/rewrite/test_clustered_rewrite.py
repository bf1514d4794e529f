"""Clustered tables: by our own transaction, proven before the commit, and so that Delta's OPTIMIZE agrees with it."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.product import (
    LIQUID,
    ZCUBE_COLUMNS_TAG,
    ZCUBE_ID_TAG,
    ClusterPolicy,
    ClusterStep,
    DeltaEngine,
    DeltaTableEngine,
    SessionLease,
    StepStatus,
    TableStatus,
    TableStorage,
    WrittenFile,
    worker_session,
)
from tests.support.runs.delta_runs import Maintenance
from tests.support.tables.builders import make_optimize
from tests.support.tables.delta_tables import GIB, files_on_disk, history, second_engine_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

CUBES = "spark.databricks.delta.optimize.clustering.mergeStrategy.minCubeSize."


@pytest.fixture(scope="module")
def engine(lease: SessionLease) -> Iterator[DeltaTableEngine]:
    with DeltaEngine(lease).worker("clustering") as worker:
        yield worker


@pytest.fixture
def maintenance(engine: DeltaTableEngine, tmp_path: Path) -> Maintenance:
    return Maintenance(engine, tmp_path / "runs")


def create(spark: SparkSession, path: Path, *columns: str) -> None:
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT, v BIGINT, s STRING) USING delta CLUSTER BY ({', '.join(columns)})"
    )


def append(spark: SparkSession, path: Path, num_files: int, rows_each: int = 500) -> None:
    rows = spark.range(num_files * rows_each).selectExpr(
        "id", "(id * 7919) % 1009 AS v", "md5(cast(id AS STRING)) AS s"
    )
    rows.repartition(num_files).write.format("delta").mode("append").save(str(path))


def optimize_by_delta(lease: SessionLease, path: Path, least: int, wanted: int, max_file: int) -> dict[str, Any]:
    """Run Delta's own OPTIMIZE with these bounds, in a session of its own; its metrics."""
    session = worker_session(lease)
    session.conf.set(CUBES + "threshold", str(least))
    session.conf.set(CUBES + "targetCubeSize", str(wanted))
    session.conf.set("spark.databricks.delta.optimize.maxFileSize", str(max_file))
    (row,) = session.sql(f"OPTIMIZE delta.`{path}`").collect()
    return dict(row["metrics"].asDict())


@pytest.mark.long
def test_the_life_of_a_clustered_table(
    spark: SparkSession, lease: SessionLease, maintenance: Maintenance, lake: Path
) -> None:
    path = lake / "life"
    create(spark, path, "id", "v")
    append(spark, path, 4)
    before = second_engine_rows(path)
    total = maintenance.facts(path).size_bytes
    max_file = total // 2
    small = make_optimize(max_size=max_file, cluster=ClusterPolicy(1, 1 << 40))

    # Delta's own OPTIMIZE on a copy takes and writes as many files.
    copy = lake / "copy"
    shutil.copytree(path, copy)
    theirs = optimize_by_delta(lease, copy, 1, 1 << 40, max_file)

    plan = maintenance.plan(path, small)
    (step,) = plan.steps
    assert isinstance(step, ClusterStep)
    assert (step.columns, step.num_files_added) == (("id", "v"), 2)
    outcome = maintenance.apply(plan)
    assert outcome.status is TableStatus.DONE
    (commit,) = outcome.steps[0].commits
    assert commit.proof is not None
    assert commit.proof.holds
    assert (commit.num_files_removed, commit.num_files_added) == (4, 2)
    assert (theirs["numFilesRemoved"], theirs["numFilesAdded"]) == (4, 2)
    assert second_engine_rows(path) == before
    files = maintenance.facts(path).files
    assert {file.clustering_provider for file in files} == {LIQUID}
    assert {file.tag(ZCUBE_COLUMNS_TAG) for file in files} == {'["id","v"]'}
    assert len({file.tag(ZCUBE_ID_TAG) for file in files}) == 1
    ours, delta = (history(spark, table_path)[0] for table_path in (path, copy))
    assert ours["operationParameters"] == delta["operationParameters"]
    assert set(ours["operationMetrics"]) == set(delta["operationMetrics"])

    # Done: for us, and for OPTIMIZE with the bounds of the policy or with its own.
    assert maintenance.plan(path, small).steps == ()
    version = maintenance.facts(path).version
    for least, wanted in ((1, 1 << 40), (100 * GIB, 150 * GIB)):
        assert optimize_by_delta(lease, path, least, wanted, max_file)["numFilesRemoved"] == 0
    assert maintenance.facts(path).version == version

    # What came in makes a cube of its own where cubes are sealed, and is merged with them where they are not.
    append(spark, path, 3, 100)
    rows = second_engine_rows(path)
    (step,) = maintenance.plan(path, small).steps
    assert isinstance(step, ClusterStep)
    assert sum(len(batch.files) for batch in step.batches) == 3
    (merging,) = maintenance.plan(path, make_optimize(max_size=max_file, cluster=ClusterPolicy(GIB, GIB))).steps
    assert isinstance(merging, ClusterStep)
    assert sum(len(batch.files) for batch in merging.batches) == 5
    assert maintenance.apply(maintenance.plan(path, small)).status is TableStatus.DONE
    after = maintenance.facts(path).files
    assert {file.path for file in files} < {file.path for file in after}
    assert len({file.tag(ZCUBE_ID_TAG) for file in after}) == 2
    assert second_engine_rows(path) == rows

    # Other columns: what is there stays, until the policy says full.
    spark.sql(f"ALTER TABLE delta.`{path}` CLUSTER BY (v)")
    assert maintenance.plan(path, small).steps == ()
    full = make_optimize(max_size=total // 4, cluster=ClusterPolicy(1, 1 << 40, full=True))
    assert maintenance.apply(maintenance.plan(path, full)).status is TableStatus.DONE
    again = maintenance.facts(path).files
    assert {file.tag(ZCUBE_COLUMNS_TAG) for file in again} == {'["v"]'}
    assert history(spark, path)[0]["operationParameters"]["isFull"] == "true"
    # One column: files are ranges of it, one after the other.
    ranges = sorted(_range_of(path, file.path, "v") for file in again)
    assert len(ranges) > 1
    assert all(lower[1] <= upper[0] for lower, upper in itertools.pairwise(ranges))
    assert maintenance.plan(path, full).steps == ()
    assert second_engine_rows(path) == rows


def _range_of(path: Path, file: str, column: str) -> tuple[int, int]:
    """Least and greatest value of a column in a file, by another reader than ours."""
    import pyarrow.parquet as pq

    values = pq.ParquetFile(path / file).read(columns=[column])[column].to_pylist()
    return min(values), max(values)


def test_a_fault_while_clustering_is_caught_before_anything_is_committed(
    spark: SparkSession, lease: SessionLease, lake: Path, tmp_path: Path
) -> None:
    path = lake / "fault"
    create(spark, path, "id")
    append(spark, path, 2, 50)
    before, disk = second_engine_rows(path), files_on_disk(path)

    def forget_one(storage: TableStorage, written: list[WrittenFile]) -> None:
        del written[0]

    with DeltaEngine(lease, between_write_and_proof=forget_one).worker("faulty") as worker:
        maintenance = Maintenance(worker, tmp_path / "runs")
        outcome = maintenance.apply(maintenance.plan(path))
    assert outcome.status is TableStatus.VERIFY_FAILED
    assert outcome.steps[0].status is StepStatus.VERIFY_FAILED
    assert outcome.steps[0].error is not None
    assert outcome.steps[0].error.code == "V501"
    assert [json.loads(line) for line in _last_commit(path) if "remove" in line] == []
    assert second_engine_rows(path) == before
    assert disk <= files_on_disk(path)


def _last_commit(path: Path) -> list[str]:
    return max((path / "_delta_log").glob("*.json")).read_text(encoding="utf-8").splitlines()
