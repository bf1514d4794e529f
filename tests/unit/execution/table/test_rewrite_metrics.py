from __future__ import annotations

from dataclasses import replace

from maintainer.execution.table.rewrite_metrics import files_after, rewrite_metrics
from maintainer.execution.table.table_worker import StepWork
from maintainer.model.codec import decode, encode
from maintainer.model.plan.layout_tags import ZCUBE_COLUMNS_TAG, ZCUBE_ID_TAG, ZORDER_TAG
from maintainer.model.plan.plan import LeftAlone, TablePlan
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import Batch, Bin, ClusterStep, CompactStep, RewriteStep, ZOrderStep
from maintainer.model.run.optimize_metrics import (
    NO_FILES,
    ClusteringFileStats,
    ClusteringStats,
    DeletionVectorStats,
    FileSizeMetrics,
    OptimizeMetrics,
    ZOrderFileStats,
)
from maintainer.model.run.receipts import CommitReceipt
from maintainer.model.table.storage_facts import file_sizes
from maintainer.model.table.table_facts import FilesSeen
from maintainer.planning.planner import observe
from tests.support.tables.builders import make_facts, make_file, make_files, make_policy

FILES = make_files(10, 20, 30, 40, 90, 1, 2)
A, B = make_files(10, 20, prefix="a", partition={"p": "a"}), make_files(5, 6, prefix="b", partition={"p": "b"})


def metrics_of(
    *rewritten: tuple[Batch, CommitReceipt],
    left: tuple[LeftAlone, ...] = (),
    columns: tuple[str, ...] = (),
    properties: dict[str, str] | None = None,
    clustered: bool = False,
) -> OptimizeMetrics:
    facts = make_facts(files=FILES, columns={"id": "long", "v": "string"}, properties=properties)
    policy = make_policy()
    observed = observe(policy, facts, with_columns=True)
    plan = TablePlan(policy.table, policy.file, policy.digest, observed, left_alone=left)
    step: RewriteStep = ZOrderStep((), columns, 100, 1, ()) if columns else CompactStep((), 100, 1, ())
    if clustered:
        step = ClusterStep((), ("id",), 100, 1, 1, 1, False, ())
    return rewrite_metrics(plan, step, facts, rewritten, started_at_ms=1000, ended_at_ms=4500)


def receipt(removed: tuple[int, ...], added: tuple[int, ...], vectors: int = 0, deleted: int = 0) -> CommitReceipt:
    return CommitReceipt(
        version=8,
        read_version=7,
        num_deletion_vectors_removed=vectors,
        num_deletion_vector_rows_removed=deleted,
        files_removed=FileSizeMetrics.of(removed),
        files_added=FileSizeMetrics.of(added),
        total_cluster_parallelism=2,
    )


def test_figures_of_all_commits_together() -> None:
    two_bins = (Batch((Bin(A), Bin(B))), receipt((10, 20, 5, 6), (29, 12), vectors=1, deleted=7))
    again = (Batch((Bin(make_files(30, 40, partition={"p": "a"})),)), receipt((30, 40), (65,), vectors=2, deleted=1))
    metrics = metrics_of(two_bins, again)
    assert (metrics.num_files_removed, metrics.num_files_added) == (6, 3)
    assert metrics.files_removed == FileSizeMetrics(5, 40, 111 / 6, 6, 111)
    assert metrics.files_added == FileSizeMetrics(12, 65, 106 / 3, 3, 106)
    assert (metrics.num_bins, metrics.num_batches, metrics.partitions_optimized) == (3, 2, 2)
    assert (metrics.total_considered_files, metrics.total_files_skipped) == (7, 1)
    assert metrics.deletion_vector_stats == DeletionVectorStats(3, 8)
    assert (metrics.start_time_ms, metrics.end_time_ms, metrics.total_cluster_parallelism) == (1000, 4500, 2)
    assert metrics.z_order_stats is None


def test_a_step_that_committed_nothing_has_figures_of_nothing() -> None:
    metrics = metrics_of()
    assert (metrics.num_files_removed, metrics.num_bins, metrics.num_batches, metrics.total_files_skipped) == (
        0,
        0,
        0,
        7,
    )
    assert metrics.files_added == metrics.files_removed == NO_FILES == FileSizeMetrics(None, None, 0.0, 0, 0)
    assert metrics.deletion_vector_stats is None


def test_partitions_ruled_out_are_not_considered_and_what_is_not_worth_it_is_counted() -> None:
    def left(code: ReasonCode, num_files: int, size_bytes: int) -> LeftAlone:
        return LeftAlone(Reason(code, ""), num_files, size_bytes)

    metrics = metrics_of(
        left=(
            left(ReasonCode.OUTSIDE_WHERE, 1, 10),
            left(ReasonCode.HOT_PARTITION, 1, 20),
            left(ReasonCode.NEWEST_PARTITION, 1, 30),
            left(ReasonCode.NOT_WORTH_IT, 2, 130),
        )
    )
    assert metrics.total_considered_files == 4
    assert metrics.num_files_skipped_to_reduce_write_amplification == 2
    assert metrics.num_bytes_skipped_to_reduce_write_amplification == 130


def test_a_zorder_tells_files_already_in_its_order_from_others() -> None:
    ordered = make_file("z", size=50, tags={ZORDER_TAG: '["id"]'})
    other = make_file("y", size=7, tags={ZORDER_TAG: '["v"]'})
    metrics = metrics_of((Batch((Bin((ordered, other)),)), receipt((50, 7), (56,))), columns=("id",)).z_order_stats
    assert metrics is not None
    assert (metrics.strategy_name, metrics.input_num_cubes, metrics.num_output_cubes) == ("all", 1, 1)
    assert (metrics.input_cube_files, metrics.input_other_files) == (ZOrderFileStats(1, 50), ZOrderFileStats(1, 7))
    assert metrics.merged_files == ZOrderFileStats(2, 57)


def test_a_clustering_tells_files_of_cubes_from_others() -> None:
    cubes = [
        make_file(name, size=50, tags={ZCUBE_ID_TAG: cube, ZCUBE_COLUMNS_TAG: '["id"]'})
        for name, cube in (("x", "1"), ("y", "1"), ("z", "2"))
    ]
    batch = Batch((Bin((*cubes, make_file("new", size=7))),))
    metrics = metrics_of((batch, receipt((50, 50, 50, 7), (150,))), clustered=True)
    assert metrics.z_order_stats is None
    assert metrics.clustering_stats == ClusteringStats(
        input_z_cube_files=ClusteringFileStats(3, 150),
        input_other_files=ClusteringFileStats(1, 7),
        input_num_z_cubes=2,
        merged_files=ClusteringFileStats(4, 157),
        num_output_z_cubes=1,
    )
    assert set(encode(metrics)["clusteringStats"]) == {
        "inputZCubeFiles", "inputOtherFiles", "inputNumZCubes", "mergedFiles", "numOutputZCubes"
    }  # fmt: skip


def test_columns_with_statistics_are_counted_as_delta_counts_them() -> None:
    def counted(value: str | None) -> tuple[int, int]:
        metrics = metrics_of(properties={} if value is None else {"delta.dataskippingnumindexedcols": value})
        return metrics.num_table_columns, metrics.num_table_columns_with_stats

    assert [counted(text) for text in (None, "1", "7", "-1")] == [(2, 2), (2, 1), (2, 2), (2, -1)]


def test_documents_spell_the_names_as_delta_does() -> None:
    metrics = metrics_of((Batch((Bin(A),)), receipt((10, 20), (29,))))
    document = encode(metrics)
    assert document["numFilesAdded"] == 1
    assert document["filesRemoved"] == {"min": 10, "max": 20, "avg": 15.0, "totalFiles": 2, "totalSize": 30}
    assert {"zOrderStats", "totalConsideredFiles", "numTableColumnsWithStats", "preserveInsertionOrder"} <= set(
        document
    )
    assert decode(OptimizeMetrics, document) == metrics


def test_what_a_step_leaves_is_its_last_look_and_the_commits_after_it() -> None:
    facts = make_facts(files=make_files(10, 20, 30), version=7)
    seen, later = (
        CommitReceipt(version, version - 1, 2, 1, sizes_removed=file_sizes((1, 1)), sizes_added=file_sizes((2,)))
        for version in (7, 9)
    )
    later = replace(later, sizes_removed=file_sizes((10, 20)), sizes_added=file_sizes((30,)))
    work = StepWork("t/compact", "compact", commits=[seen, later], facts=facts)
    # The commit of version 7 is in what was read. Version 8 is another writer's: no look saw it.
    assert files_after(work, 5) == FilesSeen(5, 9, file_sizes((30, 30)))
    assert files_after(replace(work, commits=[]), 5) == FilesSeen(5, 7, file_sizes((10, 20, 30)))


def test_of_a_commit_whose_figures_were_lost_nothing_is_made_up() -> None:
    work = StepWork("t/compact", "compact", commits=[CommitReceipt(8, 7)], facts=make_facts(files=FILES))
    assert files_after(work, 5) is None
    assert files_after(StepWork("t/compact", "compact"), 5) is None
    properties = replace(work, kind="properties")
    assert files_after(properties, 5) is not None
