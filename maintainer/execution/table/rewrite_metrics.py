"""Compute the metrics of a rewrite step, as OPTIMIZE returns them, and what a step left of a table. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from maintainer.execution.table.table_worker import StepWork
from maintainer.model.plan.layout_tags import ZORDER_TAG, zorder_tag_value
from maintainer.model.plan.plan import TablePlan
from maintainer.model.plan.reasons import STILL_WRITTEN, ReasonCode
from maintainer.model.plan.steps import REWRITE_KINDS, Batch, ClusterStep, RewriteStep, ZOrderStep
from maintainer.model.run.optimize_metrics import (
    NO_FILES,
    ClusteringFileStats,
    ClusteringStats,
    DeletionVectorStats,
    OptimizeMetrics,
    ZOrderFileStats,
    ZOrderStats,
)
from maintainer.model.run.receipts import CommitReceipt
from maintainer.model.table.table_facts import FilesSeen, TableFacts
from maintainer.model.table.table_features import NUM_INDEXED_COLUMNS, num_indexed_columns
from maintainer.planning.operations.clustering import cube_of

_NOT_CONSIDERED = STILL_WRITTEN | {
    ReasonCode.OUTSIDE_WHERE,
    ReasonCode.NEWEST_PARTITION,
    ReasonCode.LOST_VALUE,
    ReasonCode.SPELLING_CHANGES,
}
"""Reasons that rule out whole partitions, as OPTIMIZE's WHERE does: their files are not even considered."""


def rewrite_metrics(
    plan: TablePlan,
    step: RewriteStep,
    facts: TableFacts,
    rewritten: Sequence[tuple[Batch, CommitReceipt]],
    *,
    started_at_ms: int,
    ended_at_ms: int,
) -> OptimizeMetrics:
    """Return the metrics of a step.

    Args:
        plan: The table's plan: what is considered, and what is left alone because it is not worth it, is as planned.
        step: The step.
        facts: The table as last read.
        rewritten: The batches that landed, as they ran, with their commits.
        started_at_ms: When the step began.
        ended_at_ms: When it ended.
    """
    receipts = [receipt for _, receipt in rewritten]
    bins = [bin_ for batch, _ in rewritten for bin_ in batch.bins]
    removed = sum((receipt.files_removed for receipt in receipts), NO_FILES)
    added = sum((receipt.files_added for receipt in receipts), NO_FILES)
    considered = _considered(plan, facts)
    vectors = sum(receipt.num_deletion_vectors_removed for receipt in receipts)
    rows = sum(receipt.num_deletion_vector_rows_removed for receipt in receipts)
    spared = [entry for entry in plan.left_alone if entry.reason.code is ReasonCode.NOT_WORTH_IT]
    return OptimizeMetrics(
        num_files_added=added.total_files,
        num_files_removed=removed.total_files,
        files_added=added,
        files_removed=removed,
        partitions_optimized=len({bin_.partition_values for bin_ in bins}),
        num_bins=len(bins),
        num_batches=len(rewritten),
        total_considered_files=considered,
        total_files_skipped=considered - removed.total_files,
        start_time_ms=started_at_ms,
        end_time_ms=ended_at_ms,
        z_order_stats=_zorder(step, rewritten) if isinstance(step, ZOrderStep) else None,
        clustering_stats=_clustering(rewritten) if isinstance(step, ClusterStep) else None,
        deletion_vector_stats=DeletionVectorStats(vectors, rows) if vectors else None,
        num_files_skipped_to_reduce_write_amplification=sum(entry.num_files for entry in spared),
        num_bytes_skipped_to_reduce_write_amplification=sum(entry.size_bytes for entry in spared),
        total_cluster_parallelism=max((receipt.total_cluster_parallelism for receipt in receipts), default=0),
        num_table_columns=len(facts.columns),
        num_table_columns_with_stats=min(_num_indexed_columns(facts), len(facts.columns)),
    )


def files_after(work: StepWork, at_ms: int) -> FilesSeen | None:
    """Return the table as a step left it, from its last look and the commits that came after that look.

    Commits of others after that look are not in it. None where nothing was read, or a commit's figures were lost.

    Args:
        work: The step.
        at_ms: When it ended, milliseconds since 1970 UTC.
    """
    facts = work.facts
    if facts is None or any(work.kind in REWRITE_KINDS and not commit.num_files_removed for commit in work.commits):
        return None
    later = [commit for commit in work.commits if commit.version > facts.version]
    return FilesSeen.of(facts, at_ms).changed(
        [commit.sizes_removed for commit in later],
        [commit.sizes_added for commit in later],
        version=max((commit.version for commit in later), default=facts.version),
        at_ms=at_ms,
    )


def _considered(plan: TablePlan, facts: TableFacts) -> int:
    num_files = len(facts.files) if plan.observed is None else plan.observed.num_files
    return num_files - sum(entry.num_files for entry in plan.left_alone if entry.reason.code in _NOT_CONSIDERED)


def _num_indexed_columns(facts: TableFacts) -> int:
    """The property's name may be in any case."""
    lower = NUM_INDEXED_COLUMNS.lower()
    found = [text for name, text in facts.properties if name.lower() == lower]
    return num_indexed_columns({NUM_INDEXED_COLUMNS: found[0]} if found else {})


def _zorder(step: ZOrderStep, rewritten: Sequence[tuple[Batch, CommitReceipt]]) -> ZOrderStats:
    tag = zorder_tag_value(step.columns)
    files = [file for batch, _ in rewritten for file in batch.files]
    cube = [file for file in files if file.tag(ZORDER_TAG) == tag]
    in_cubes = ZOrderFileStats(len(cube), sum(file.size_bytes for file in cube))
    merged = ZOrderFileStats(len(files), sum(file.size_bytes for file in files))
    return ZOrderStats(
        # Delta's name for taking all files of a partition.
        strategy_name="all",
        input_cube_files=in_cubes,
        input_other_files=ZOrderFileStats(merged.num - in_cubes.num, merged.size - in_cubes.size),
        input_num_cubes=len({file.partition_values for file in cube}),
        merged_files=merged,
        num_output_cubes=len({bin_.partition_values for batch, _ in rewritten for bin_ in batch.bins}),
    )


def _clustering(rewritten: Sequence[tuple[Batch, CommitReceipt]]) -> ClusteringStats:
    files = [file for batch, _ in rewritten for file in batch.files]
    cubes = {file.key: cube for file in files if (cube := cube_of(file)) is not None}
    clustered = [file for file in files if file.key in cubes]
    inside = ClusteringFileStats(len(clustered), sum(file.size_bytes for file in clustered))
    merged = ClusteringFileStats(len(files), sum(file.size_bytes for file in files))
    return ClusteringStats(
        input_z_cube_files=inside,
        input_other_files=ClusteringFileStats(merged.num_files - inside.num_files, merged.size - inside.size),
        input_num_z_cubes=len({name for name, _ in cubes.values()}),
        merged_files=merged,
        num_output_z_cubes=sum(len(batch.bins) for batch, _ in rewritten),
    )
