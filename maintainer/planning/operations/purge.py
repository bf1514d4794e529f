"""Plan a purge: files with soft-deleted rows or dropped columns are rewritten without them.

As ``REORG TABLE ... APPLY (PURGE)``, a single file is rewritten too, and files are packed up to ``maxFileSize``. Unlike
it, files that another step of the plan rewrites are left out, healthy tables are not opened, and files in an order (of
a Z-order, a rewrite or clustering) are purged one by one, so that they keep it. So are all files where
``optimize.rewrite`` gives partitions a number of files, so that they keep that.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from maintainer.model.plan.layout_tags import has_row_order
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import PurgeStep
from maintainer.model.table.table_facts import DataFile, TableFacts
from maintainer.planning.plan_input import TableInput
from maintainer.planning.schedule import optimize_is_due
from maintainer.planning.selection.decision import Decision, files_of
from maintainer.planning.selection.file_selection import (
    deleted_rows_text,
    has_many_deleted_rows,
    pack_batches,
    pack_bins,
    select_partitions,
)
from maintainer.planning.selection.schema_columns import files_to_open
from maintainer.policy.resolve.resolved import PurgePolicy, ResolvedPolicy
from maintainer.units import count_of, grouped


def files_to_check(table: TableInput) -> tuple[DataFile, ...]:
    """Return the files of which planning needs to know whether they hold dropped columns; none where it is not asked.

    Raises:
        TableError: T403, the schema cannot be read.
    """
    purge = table.policy.optimize.purge
    if purge is None or not purge.dropped_columns or table.record.quarantined is not None:
        return ()
    return files_to_open(table.facts) if optimize_is_due(table) else ()


def with_purged(table: TableInput) -> TableInput:
    """Return the input with the files that a purge takes, where no other step of the plan rewrites them.

    Args:
        table: With ``files_with_dropped_columns`` where ``files_to_check`` names any.

    Raises:
        TableError: T410, ``where`` does not fit the table.
    """
    facts, purge = table.facts, table.policy.optimize.purge
    if purge is None or not facts.files or not optimize_is_due(table):
        return table
    due = {
        file.key: file
        for file in files_of(select_partitions(table).partitions)
        if has_many_deleted_rows(file, purge.deleted_rows_ratio) or _has_dropped_columns(file, facts, purge)
    }
    return replace(table, purged=due)


def plan_purge(table: TableInput, rewritten: Collection[tuple[str, str]]) -> Decision:
    """Decide how the files that a purge takes are packed.

    Args:
        table: From ``with_purged``.
        rewritten: Files that another step of the plan rewrites, which purges them.

    Returns:
        A step or none; what is left alone is for the other step to say.
    """
    policy, facts, optimize, purge = table.policy, table.facts, table.policy.optimize, table.policy.optimize.purge
    due = [file for key, file in table.purged.items() if key not in rewritten]
    if purge is None or not due:
        return Decision()

    def packed_with(file: DataFile) -> tuple[object, ...]:
        alone = optimize.rewrite is not None or has_row_order(file.tags)
        return file.key if alone else file.partition_texts

    groups = grouped(due, packed_with).values()
    bins = [bin_ for group in groups for bin_ in pack_bins(group, max_bin_bytes=optimize.max_file_size_bytes)]
    step = PurgeStep(
        batches=pack_batches(bins, batch_size_bytes=optimize.batch_size_bytes),
        max_file_size_bytes=optimize.max_file_size_bytes,
        max_threads=optimize.max_threads,
        reasons=_reasons(policy, facts, due, purge),
    )
    return Decision(step)


def _has_dropped_columns(file: DataFile, facts: TableFacts, purge: PurgePolicy) -> bool:
    return purge.dropped_columns and file.key in (facts.files_with_dropped_columns or ())


def _reasons(
    policy: ResolvedPolicy, facts: TableFacts, files: list[DataFile], purge: PurgePolicy
) -> tuple[Reason, ...]:
    reasons = []
    if text := deleted_rows_text(files, purge.deleted_rows_ratio):
        origin = policy.place_of("optimize.purge.deletedRowsRatio")
        reasons.append(Reason(ReasonCode.DELETED_ROWS, text, origin))
    dropped = sum(_has_dropped_columns(file, facts, purge) for file in files)
    if dropped:
        text = f"{count_of(dropped, 'file')} with columns that were dropped"
        origin = policy.place_of("optimize.purge.droppedColumns")
        reasons.append(Reason(ReasonCode.DROPPED_COLUMNS, text, origin))
    return tuple(reasons)
