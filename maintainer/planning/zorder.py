"""Full Z-order: every selected partition is written anew in Z-order, unless it already is.

As ``OPTIMIZE ... ZORDER BY``, it takes all files of a partition into one bin, and a bin gives
``max(1, floor(bytes / maxFileSize))`` files. Unlike it, partitions that are in order are left alone: files that
our Z-order wrote carry its columns as a tag, and a partition where every file carries the same one has had
nothing added, deleted or rewritten since. Where Z-order is configured, compaction is not planned separately.
"""

from __future__ import annotations

from datetime import date

from maintainer.errors import NotSupportedYet, TableError
from maintainer.model.reasons import Reason, ReasonCode
from maintainer.model.steps import PACKED_TAG, ZORDER_TAG, Bin, ZOrderStep, zorder_tag_value
from maintainer.model.table import DataFile, TableFacts
from maintainer.planning.columns import FoundColumn, find_column, nearest_column
from maintainer.planning.compaction import deleted_rows_reason, weigh
from maintainer.planning.decision import Decision, Partition, count_of, leave_files, leave_partitions
from maintainer.planning.packing import pack_batches
from maintainer.planning.selection import has_many_deleted_rows, select_partitions
from maintainer.policy.resolved import OptimizePolicy, ResolvedPolicy, ZOrderMode

_LEAVE_OUT = "leave it out of optimize.zorder.columns"
_UNORDERED_TYPES = ("array", "map", "struct", "variant", "geometry", "geography", "void", "interval")


def plan_zorder(policy: ResolvedPolicy, facts: TableFacts, *, now_ms: int, today: date) -> Decision:
    """Decide which partitions are written in Z-order.

    Raises:
        TableError: T410 ``where``, T411 no such column, T412 a partition column, T413 a column without
            statistics, T414 a type that has no order, T420 a column twice.
        NotSupportedYet: E620, ``mode: incremental``.
    """
    optimize = policy.optimize
    columns = check_zorder_columns(policy, facts)
    tag = zorder_tag_value(columns)
    selection = select_partitions(policy, facts, now_ms=now_ms, today=today)
    origin = str(policy.origin("optimize.zorder"))
    left = list(selection.left_alone)
    in_order: list[Partition] = []
    single: list[Partition] = []
    bins: list[Bin] = []
    for partition in selection.partitions:
        if any(has_many_deleted_rows(file, optimize) for file in partition.files):
            bins.append(Bin(partition.files))
        elif all(_is_ordered(file, tag, optimize) for file in partition.files):
            in_order.append(partition)
        elif len(partition.files) == 1 and partition.size_bytes < 2 * optimize.max_file_size_bytes:
            single.append(partition)
        else:
            bins.append(Bin(partition.files))
    listed = ", ".join(columns)
    if in_order:
        files = [file for partition in in_order for file in partition.files]
        text = f"{count_of(len(files), 'file')} already in Z-order of {listed}"
        left.append(leave_files(ReasonCode.SAME_ZORDER, text, files, origin))
    left += leave_partitions(
        ReasonCode.NO_PARTNER,
        lambda files, _: f"{count_of(files, 'file')} alone in a partition: Z-order within one file skips nothing",
        single,
        origin,
    )
    bins, not_worth_it = weigh(
        policy, bins, lambda file: not _is_ordered(file, tag, optimize), "file not in order", "files not in order"
    )
    left += not_worth_it
    if not bins:
        return Decision(None, tuple(left))
    files = [file for one in bins for file in one.files]
    new = sum(not _is_ordered(file, tag, optimize) for file in files)
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
    return Decision(step, tuple(left))


def _is_ordered(file: DataFile, tag: str, optimize: OptimizePolicy) -> bool:
    """Whether our Z-order wrote the file with these columns and a size of about this one (half to double)."""
    size = file.tag(PACKED_TAG)
    if file.tag(ZORDER_TAG) != tag or size is None or not size.isdecimal():
        return False
    return optimize.max_file_size_bytes <= 2 * int(size) and int(size) <= 2 * optimize.max_file_size_bytes


def check_zorder_columns(policy: ResolvedPolicy, facts: TableFacts) -> tuple[str, ...]:
    """Return the Z-order columns as the schema spells them, safe for Spark to parse again.

    Raises:
        TableError: As ``plan_zorder``; all wrong columns of one kind are named at once.
        NotSupportedYet: ``mode: incremental``.
    """
    zorder = policy.optimize.zorder
    if zorder is None:
        raise ValueError("the policy has no zorder")
    if zorder.mode is not ZOrderMode.FULL:
        raise NotSupportedYet(
            "incremental Z-order is not supported yet",
            where=str(policy.origin("optimize.zorder.mode")),
            help="write `mode: full`; partitions that are already in order are left alone",
        )
    where = str(policy.origin("optimize.zorder.columns"))
    partition_columns = {name.lower() for name in facts.partition_columns}
    found = [(name, find_column(facts, name)) for name in zorder.columns]
    missing = [name for name, column in found if column is None]
    if missing:
        close = nearest_column(facts, missing[0])
        raise TableError(
            f"Z-order column {_names(missing)} does not exist",
            code="T411",
            where=where,
            found=", ".join(missing),
            help=f"did you mean `{close}`?" if close else f"the table has {', '.join(facts.columns)}",
        )
    columns = [column for _, column in found if column is not None]
    _refuse(
        where,
        "T412",
        "is a partition column: all of a file has one value of it",
        [column for column in columns if column.dotted.lower() in partition_columns],
    )
    _refuse(
        where,
        "T414",
        "has a type without order",
        [column for column in columns if column.type_name.startswith(_UNORDERED_TYPES)],
        types=True,
    )
    with_stats = {name.lower() for name in facts.columns_with_stats}
    _refuse(
        where,
        "T413",
        "has no statistics, so no file could be skipped by it",
        [column for column in columns if column.quoted.lower() not in with_stats],
        help="name it in delta.dataSkippingStatsColumns, or raise delta.dataSkippingNumIndexedCols",
    )
    if len(set(columns)) < len(columns):
        raise TableError(
            "a Z-order column is named twice",
            code="T420",
            where=where,
            found=", ".join(zorder.columns),
            help="remove one of the two",
        )
    return tuple(column.quoted for column in columns)


def _refuse(
    where: str, code: str, what: str, columns: list[FoundColumn], *, types: bool = False, help: str = _LEAVE_OUT
) -> None:
    if not columns:
        return
    found = [f"{column.dotted} {column.type_name}" if types else column.dotted for column in columns]
    names = _names([column.dotted for column in columns])
    raise TableError(f"Z-order column {names} {what}", code=code, where=where, found=", ".join(found), help=help)


def _names(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
