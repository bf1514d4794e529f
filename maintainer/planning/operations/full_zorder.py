"""Plan full Z-order: every selected partition is rewritten in Z-order, unless it already is.

As ``OPTIMIZE ... ZORDER BY``, it puts all files of a partition into one bin, and a bin gives
``max(1, floor(bytes / maxFileSize))`` files. Unlike it, partitions in order are left alone: files that our Z-order
wrote carry its columns as a tag, and a partition whose files all carry the same tag has not changed since. Where
Z-order is configured, compaction is not planned separately.
"""

from __future__ import annotations

from maintainer.errors import MaintainerError
from maintainer.model.plan.layout_tags import PACKED_TAG, ZORDER_TAG, zorder_tag_value
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import Bin, ZOrderStep
from maintainer.model.table.table_facts import DataFile, TableFacts
from maintainer.planning.curve.order_change import MAX_FILES_MEASURED
from maintainer.planning.operations.compaction import weigh
from maintainer.planning.plan_input import TableInput
from maintainer.planning.selection.decision import Decision, Partition, leave_counted, leave_partitions
from maintainer.planning.selection.file_selection import (
    deleted_rows_reason,
    has_many_deleted_rows,
    pack_batches,
    select_partitions,
)
from maintainer.planning.zorder.zorder_revision import refuse_equal_values, zorder_columns
from maintainer.policy.resolve.resolved import OptimizePolicy, ResolvedPolicy, ZOrderMode
from maintainer.units import count_of, read_digits


def plan_zorder(table: TableInput) -> Decision:
    """Decide which partitions are written in Z-order.

    Raises:
        TableError: T410 ``where``, T411 no such column, T412 a partition column, T413 a column without
            statistics, T414 a type that has no order, T420 a column twice.
        NothingToOrder: Files would be rewritten, and no column has two values.
    """
    policy, facts = table.policy, table.facts
    optimize = policy.optimize
    found = zorder_columns(policy, facts)
    columns = tuple(column.quoted for column in found)
    tag = zorder_tag_value(columns)
    selection = select_partitions(table)
    origin = policy.place_of("optimize.zorder")
    left_alone = list(selection.left_alone)
    in_order: list[Partition] = []
    single: list[Partition] = []
    bins: list[Bin] = []
    for partition in selection.partitions:
        if any(has_many_deleted_rows(file, optimize.max_deleted_rows_ratio) for file in partition.files):
            bins.append(Bin(partition.files))
        elif all(_is_ordered(file, tag, optimize, facts.zordered_paths) for file in partition.files):
            in_order.append(partition)
        elif len(partition.files) == 1 and partition.size_bytes < 2 * optimize.max_file_size_bytes:
            single.append(partition)
        else:
            bins.append(Bin(partition.files))
    listed = ", ".join(columns)
    ordered = [file for partition in in_order for file in partition.files]
    left_alone += leave_counted(ReasonCode.SAME_ZORDER, f"already in Z-order of {listed}", ordered, origin)
    left_alone += leave_partitions(
        ReasonCode.NO_PARTNER,
        lambda files, _: (
            f"{count_of(files, 'file')} alone in a partition: Z-order within one file lets a query skip no file"
        ),
        single,
        origin,
    )
    if bins:
        refuse_equal_values(found, facts)
    bins, not_worth_it = weigh(
        policy,
        bins,
        lambda file: not _is_ordered(file, tag, optimize, facts.zordered_paths),
        "file not in order",
        "files not in order",
    )
    left_alone += not_worth_it
    if not bins:
        return Decision(None, tuple(left_alone))
    files = [file for bin_ in bins for file in bin_.files]
    new = sum(not _is_ordered(file, tag, optimize, facts.zordered_paths) for file in files)
    reasons = (
        [Reason(ReasonCode.ZORDER_DUE, f"{count_of(new, 'file')} not in Z-order of {listed}", origin)] if new else []
    )
    step = ZOrderStep(
        batches=pack_batches(bins, batch_size_bytes=optimize.batch_size_bytes),
        columns=columns,
        max_file_size_bytes=optimize.max_file_size_bytes,
        max_threads=optimize.max_threads,
        reasons=(*reasons, *deleted_rows_reason(policy, files)),
    )
    return Decision(step, tuple(left_alone))


def history_wanted(policy: ResolvedPolicy, facts: TableFacts) -> tuple[str, ...]:
    """Return the columns for which the table's history is asked which files a Z-order wrote; none where tags say it.

    Empty also where planning will end in a problem, and without full Z-order.
    """
    zorder = policy.optimize.zorder
    if zorder is None or zorder.mode is not ZOrderMode.FULL:
        return ()
    if all(file.tag(PACKED_TAG) is not None for file in facts.files):
        return ()
    try:
        return tuple(column.quoted for column in zorder_columns(policy, facts))
    except MaintainerError:
        return ()


def values_wanted(policy: ResolvedPolicy, facts: TableFacts) -> tuple[str, ...]:
    """Return the columns whose ranges say whether there is anything to put in order; none where no file would be.

    Empty also where planning will end in a problem, and for more files than are measured.
    """
    zorder, files = policy.optimize.zorder, facts.files
    if zorder is None or zorder.mode is not ZOrderMode.FULL or not 1 < len(files) <= MAX_FILES_MEASURED:
        return ()
    try:
        columns = tuple(column.quoted for column in zorder_columns(policy, facts))
    except MaintainerError:
        return ()
    tag = zorder_tag_value(columns)
    return () if all(_is_ordered(file, tag, policy.optimize, facts.zordered_paths) for file in files) else columns


def _is_ordered(
    file: DataFile, tag: str, optimize: OptimizePolicy, zordered_paths: frozenset[str] | None = None
) -> bool:
    """Whether our Z-order wrote the file with these columns and a size of about this one (half to double).

    Or somebody else's with these columns, as the table's history says: their files have no tag, and any size.
    """
    tagged = file.tag(PACKED_TAG)
    if tagged is None and zordered_paths is not None and file.path in zordered_paths:
        return True
    size = read_digits(tagged)
    if file.tag(ZORDER_TAG) != tag or size is None:
        return False
    return optimize.max_file_size_bytes <= 2 * size and size <= 2 * optimize.max_file_size_bytes
