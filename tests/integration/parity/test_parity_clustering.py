"""Clustered tables: the behaviours E of Delta's own suites, through policies.

Named as in test_parity_a_compaction.py. E1 to E6 and E13 (cubes, their bounds, other columns, FULL) are beside Delta's
OPTIMIZE in test_clustering.py. E14 is a statement of Delta's that we never make.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.product import DeltaEngine, SessionLease
from tests.support.runs.app_runs import Applied, applied, newest_version, planned
from tests.support.tables.delta_tables import second_engine_rows
from tests.support.tables.parity_lake import live_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.long]


def create(spark: SparkSession, path: Path, clause: str, num_files: int = 0, rows_each: int = 25) -> None:
    """A table of two columns, with as many files as asked for."""
    spark.sql(f"CREATE TABLE delta.`{path}` (id BIGINT, v BIGINT) USING delta {clause}")
    if num_files:
        rows = spark.range(num_files * rows_each).selectExpr("id", "(id * 7919) % 1009 AS v")
        rows.repartition(num_files).write.format("delta").mode("append").save(str(path))


def apply_to(lease: SessionLease, root: Path, path: Path, optimize: str) -> Applied:
    return applied(DeltaEngine(lease), root, f"table: {path}\noptimize: {{{optimize}}}\n")


def size_of(path: Path) -> int:
    return sum(int(file["size"]) for file in live_files(path))


def test_e7_full_asks_nothing_of_a_plain_table(spark: SparkSession, lease: SessionLease, tmp_path: Path) -> None:
    """On purpose: OPTIMIZE FULL fails there; a policy for many tables says it once, and it concerns the clustered."""
    path = tmp_path / "t"
    create(spark, path, "", 4)
    outcome = apply_to(lease, tmp_path, path, "cluster: {full: true}")
    assert (outcome.table_plan.steps[0].kind, len(live_files(path))) == ("compact", 1)


def test_e8_a_predicate_or_a_zorder_is_refused_on_a_clustered_table(
    spark: SparkSession, lease: SessionLease, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    create(spark, path, "CLUSTER BY (id)", 4)
    for asked, code in (("where: 'id = 1'", "T410"), ("zorder: {columns: [v]}", "T423")):
        _, plan = planned(DeltaEngine(lease), tmp_path, f"table: {path}\noptimize: {{{asked}}}\n")
        (table,) = plan.tables
        assert table.problem is not None
        assert table.problem.code == code
    assert newest_version(path) == 1


def test_e9_without_clustering_it_is_compacted(spark: SparkSession, lease: SessionLease, tmp_path: Path) -> None:
    path = tmp_path / "t"
    create(spark, path, "CLUSTER BY (id)", 10)
    spark.sql(f"ALTER TABLE delta.`{path}` CLUSTER BY NONE")
    metrics = apply_to(lease, tmp_path, path, "").step.metrics
    assert metrics is not None
    assert (metrics.num_files_removed, metrics.num_files_added) == (10, 1)
    assert (metrics.z_order_stats, metrics.clustering_stats) == (None, None)


@pytest.mark.parametrize(("batch_bytes", "commits"), [(1, 2), (1 << 30, 1)])
def test_e10_one_commit_a_batch_of_cubes(
    spark: SparkSession, lease: SessionLease, tmp_path: Path, batch_bytes: int, commits: int
) -> None:
    path = tmp_path / "t"
    create(spark, path, "CLUSTER BY (id, v)", 4)
    # Files differ by some bytes: room for any two of them, and not for three.
    rows, half = second_engine_rows(path), size_of(path) // 2 + 100
    bounds = f"cluster: {{minCubeSize: {half}, targetCubeSize: {half}}}, batchSize: {batch_bytes}"
    outcome = apply_to(lease, tmp_path, path, bounds)
    assert len(outcome.step.commits) == newest_version(path) - 1 == commits
    assert second_engine_rows(path) == rows


def test_e11_an_empty_table_has_nothing_to_cluster(spark: SparkSession, lease: SessionLease, tmp_path: Path) -> None:
    path = tmp_path / "t"
    create(spark, path, "CLUSTER BY (id)")
    assert apply_to(lease, tmp_path, path, "batchSize: 1").table_plan.state == "up_to_date"
    assert newest_version(path) == 0


def test_e12_files_of_about_the_largest_size(spark: SparkSession, lease: SessionLease, tmp_path: Path) -> None:
    path = tmp_path / "t"
    create(spark, path, "CLUSTER BY (id)", 100)
    rows = second_engine_rows(path)
    largest = size_of(path) // 4
    metrics = apply_to(lease, tmp_path, path, f"minFileSize: {largest}, maxFileSize: {largest}").step.metrics
    assert metrics is not None
    assert (metrics.num_files_removed, metrics.num_files_added) == (100, 4)
    assert second_engine_rows(path) == rows
