"""Select the partitions and files of a rewrite, with a reason for what is left out, and pack them into bins.

File rules are those of OPTIMIZE: ``size < minFileSize``, a deletion vector without statistics, or a share of
soft-deleted rows above ``maxDeletedRowsRatio``, both strict. Partition rules are ours: ``where``,
``skipNewestPartitions`` and ``quietFor``, in that order; the first that refuses gives the reason.

Files are packed into bins and bins into batches as OPTIMIZE does, but deterministically. Delta packs *next-fit*: it
takes the smallest first, and closes a bin at the first file that does not fit. This is not the tightest packing, but
no two closed bins fit into one. So packing the results again joins nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, TypeVar

from maintainer.errors import TableError
from maintainer.model.plan.plan import LeftAlone
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import Batch, Bin
from maintainer.model.table.table_facts import DataFile, PartitionValues, TableFacts
from maintainer.planning.plan_input import TableInput
from maintainer.planning.selection.decision import Partition, files_text, leave_partitions
from maintainer.planning.selection.partition_texts import split_by_text, value_order
from maintainer.planning.selection.schema_columns import partition_types
from maintainer.policy.predicate.partition_predicate import PredicateTypeError
from maintainer.policy.predicate.predicate_grammar import names_zone, read_date, read_timestamp, time_distances
from maintainer.policy.resolve.resolved import OptimizePolicy, ResolvedPolicy
from maintainer.units import count_of, format_duration, grouped

_T = TypeVar("_T")


def file_order(file: DataFile) -> tuple[int, str, str]:
    """Order files as bins take them: smallest first; equal sizes by identity, so that plans are reproducible."""
    return (file.size_bytes, *file.key)


def pack_bins(files: Iterable[DataFile], *, max_bin_bytes: int) -> tuple[Bin, ...]:
    """Group the files of one partition into bins for one rewrite each, as OPTIMIZE does.

    Bins of one file are returned too; OPTIMIZE drops them, we decide by reason (see ``compaction``).

    Args:
        files: Live files of a single partition, in any order.
        max_bin_bytes: Bound of a bin, in bytes on storage; a bin of exactly that size is still one bin. A file
            above the bound gets a bin of its own and is never split: 300 MiB at a bound of 128 MiB is one bin.

    Returns:
        Bins in the order in which they closed; together they hold every file exactly once.

    Raises:
        ValueError: The bound is not positive, or the files belong to more than one partition or spelling of it.
    """
    ordered = sorted(files, key=file_order)
    if any(file.partition_texts != ordered[0].partition_texts for file in ordered):
        raise ValueError("bins are packed one spelling of one partition at a time")
    return tuple(Bin(tuple(group)) for group in _next_fit(ordered, lambda file: file.size_bytes, max_bin_bytes))


def pack_in_order(files: Iterable[DataFile], *, max_bin_bytes: int) -> tuple[Bin, ...]:
    """Group files into bins in the order given, as OPTIMIZE does on clustered tables: cube by cube.

    Args:
        files: Live files of a single partition.
        max_bin_bytes: Bound of a bin; a file above it gets a bin of its own.

    Raises:
        ValueError: The bound is not positive, or the files belong to more than one partition.
    """
    return tuple(Bin(tuple(group)) for group in _next_fit(files, lambda file: file.size_bytes, max_bin_bytes))


def pack_batches(bins: Iterable[Bin], *, batch_size_bytes: int) -> tuple[Batch, ...]:
    """Group bins into batches of one commit each, as OPTIMIZE does with ``optimize.batchSize``.

    Args:
        bins: Bins of any partitions, in any order.
        batch_size_bytes: Bound of a batch, in bytes to read; a bin above it is a batch of its own.

    Returns:
        Batches from small bins to large ones; together they hold every bin exactly once.
    """
    # Fewest bytes first, equal ones by their first file.
    ordered = sorted(bins, key=lambda bin_: (bin_.size_bytes, file_order(bin_.files[0])))
    return tuple(Batch(tuple(group)) for group in _next_fit(ordered, lambda bin_: bin_.size_bytes, batch_size_bytes))


def _next_fit(ordered: Iterable[_T], size_of: Callable[[_T], int], bound: int) -> list[list[_T]]:
    if bound <= 0:
        raise ValueError(f"a bound must be positive, not {bound}")
    groups: list[list[_T]] = []
    room = -1
    for element in ordered:
        size = size_of(element)
        if size > room:
            groups.append([])
            room = bound
        groups[-1].append(element)
        # Below zero after an element above the bound: nothing fits beside it, not even an empty file.
        room -= size
    return groups


_NUMBERS = ("byte", "short", "integer", "long", "float", "double", "decimal")


@dataclass(frozen=True, slots=True)
class Selection:
    """Partitions that may be rewritten, in order of their values, and those that may not, with reasons.

    A partition that the log spells in several ways is there once for each: only files with equal texts are joined.
    """

    partitions: tuple[Partition, ...]
    left_alone: tuple[LeftAlone, ...] = ()


def is_small(file: DataFile, optimize: OptimizePolicy) -> bool:
    """Return whether the file counts as small: strictly under ``min_file_size_bytes``, as recorded in the log.

    The size is that of the Parquet file, also when a deletion vector hides most of its rows.
    """
    return file.size_bytes < optimize.min_file_size_bytes


def has_many_deleted_rows(file: DataFile, max_ratio: float) -> bool:
    """Return whether so many rows are soft-deleted that the file is rewritten whatever its size.

    Strictly above the ratio; a deletion vector without statistics always counts, because
    nobody can say how many of the rows are gone.
    """
    if file.deletion_vector is None:
        return False
    ratio = file.deleted_rows_ratio
    return ratio is None or ratio > max_ratio


def any_has_many_deleted_rows(files: Iterable[DataFile], optimize: OptimizePolicy) -> bool:
    """Return whether the policy has some of the files rewritten for their deleted rows."""
    return any(has_many_deleted_rows(file, optimize.max_deleted_rows_ratio) for file in files)


def deleted_rows_reason(policy: ResolvedPolicy, files: list[DataFile]) -> tuple[Reason, ...]:
    """Say how many of the files are rewritten for their deleted rows; nothing when none is."""
    text = deleted_rows_text(files, policy.optimize.max_deleted_rows_ratio)
    return (Reason(ReasonCode.DELETED_ROWS, text, policy.place_of("optimize.maxDeletedRowsRatio")),) if text else ()


def deleted_rows_text(files: list[DataFile], max_ratio: float) -> str:
    """Say how many files have a larger share of deleted rows, and of how many nobody knows it; empty for none."""
    many = [file for file in files if has_many_deleted_rows(file, max_ratio)]
    known = sum(file.deleted_rows_ratio is not None for file in many)
    parts = []
    if known:
        whose = "its" if known == 1 else "their"
        parts.append(f"{count_of(known, 'file')} with more than {max_ratio * 100:.4g}% of {whose} rows deleted")
    if known < len(many):
        parts.append(f"{count_of(len(many) - known, 'file')} with deleted rows, and no statistics say how many")
    return ", ".join(parts)


def group_by_partition(files: Iterable[DataFile]) -> tuple[Partition, ...]:
    """Group files by the values of their partition, in order (null first), files smallest first.

    Two spellings of a value are one partition here, for everything that protects one; bins are made by text.
    """
    groups = grouped(files, lambda file: file.partition_values)
    return tuple(
        Partition(values, tuple(sorted(groups[values], key=file_order))) for values in sorted(groups, key=value_order)
    )


def select_partitions(table: TableInput) -> Selection:
    """Apply ``where``, ``skipNewestPartitions`` and ``quietFor`` to the partitions that hold live files.

    ``quietFor`` is counted back from the time of planning to a partition's newest data: a rewrite writes none.

    Raises:
        TableError: T410, ``where`` does not fit the table's partition columns.
    """
    policy, facts, optimize = table.policy, table.facts, table.policy.optimize
    partitions = group_by_partition(facts.files)
    newest = _newest(partitions, facts, optimize.skip_newest_partitions)
    left_alone: list[LeftAlone] = []

    def keep(key: str, code: ReasonCode, text: str, is_kept: Callable[[Partition], bool]) -> None:
        nonlocal partitions
        verdicts = [(partition, is_kept(partition)) for partition in partitions]
        partitions = tuple(partition for partition, kept in verdicts if kept)
        dropped = [partition for partition, kept in verdicts if not kept]
        left_alone.extend(
            leave_partitions(
                code, lambda files, number: f"{files_text(files, number)} {text}", dropped,
                policy.place_of(f"optimize.{key}"),
            )
        )  # fmt: skip

    if optimize.where is not None:
        selected = _where_test(policy, facts, table.today)
        keep("where", ReasonCode.OUTSIDE_WHERE, f"outside where: {optimize.where.text}", selected)
    if newest:
        text = f"among the newest {optimize.skip_newest_partitions} (skipNewestPartitions)"
        keep("skipNewestPartitions", ReasonCode.NEWEST_PARTITION, text, lambda each: each.values not in newest)
    if optimize.quiet_for_seconds:
        since_ms, paths = table.now_ms - optimize.quiet_for_seconds * 1000, facts.rewritten_paths
        text = f"where data was written less than {format_duration(optimize.quiet_for_seconds)} ago (quietFor)"
        keep("quietFor", ReasonCode.HOT_PARTITION, text, lambda each: not each.is_written_after(since_ms, paths))
    partitions, apart = split_by_text(partitions, partition_types(facts))
    return Selection(partitions, (*left_alone, *apart))


def _where_test(policy: ResolvedPolicy, facts: TableFacts, today: date) -> Callable[[Partition], bool]:
    assert policy.optimize.where is not None
    where = policy.place_of("optimize.where")
    try:
        selects = policy.optimize.where.bind(partition_types(facts), today)
    except PredicateTypeError as error:
        raise _placed(error, where) from error

    def test(partition: Partition) -> bool:
        try:
            return all(selects(dict(texts)) for texts in {file.partition_texts for file in partition.files})
        except PredicateTypeError as error:
            raise _placed(error, where) from error

    return test


def _placed(error: PredicateTypeError, where: str) -> TableError:
    return TableError(error.what, code="T410", where=where, found=error.found, allowed=error.allowed, help=error.help)


def _newest(partitions: tuple[Partition, ...], facts: TableFacts, number: int) -> frozenset[Any]:
    """Return the values of the newest partitions.

    The order is that of *time* where the table has it: the first partition column that is a date or a
    timestamp, or text that is always a date, decides alone, and all partitions with one of its ``number``
    highest values are newest. Without one, all partition columns decide together, left to right, by their
    types (so year, month, day works). Nulls are oldest. A
    time stamp counts that is newest to a reader in any zone. An unpartitioned table has no newest partition.
    """
    if number <= 0 or not facts.partition_columns:
        return frozenset()
    types = partition_types(facts)
    columns = list(types)
    times: frozenset[PartitionValues] = frozenset()
    keys = {p.values: tuple(_sortable(value, types[column]) for column, value in p.values) for p in partitions}
    for position, column in enumerate(columns):
        if _is_time(types[column], [p.values[position][1] for p in partitions]):
            keys = {values: (key[position],) for values, key in keys.items()}
            times = _newest_to_some_reader(partitions, column, number) if types[column] == "timestamp" else times
            break
    highest = sorted(set(keys.values()), reverse=True)[:number]
    chosen = set(highest)
    return times.union(values for values, key in keys.items() if key in chosen)


def _newest_to_some_reader(partitions: tuple[Partition, ...], column: str, number: int) -> frozenset[PartitionValues]:
    """The partitions that are among the newest in some zone: times without a zone move against those with one."""
    texts: dict[str, PartitionValues] = {}
    for partition in partitions:
        spelled = {dict(texts).get(column) for texts in {file.partition_texts for file in partition.files}}
        texts.update((text, partition.values) for text in spelled if text and read_timestamp(text))
    last: list[str] = []  # of those that name a zone, and of those that do not, the oldest that is still newest
    for zoned in (True, False):
        moments = {read_timestamp(text): text for text in texts if names_zone(text) is zoned}
        last += [text for _, text in sorted(moments.items(), reverse=True)[number - 1 : number]]
    return frozenset(
        values
        for text, values in texts.items()
        if all(min(time_distances(newest, text, "timestamp") or ()) <= timedelta(0) for newest in last)
    )


def _is_time(type_name: str, values: list[str | None]) -> bool:
    if type_name in ("date", "timestamp", "timestamp_ntz"):
        return True
    dates = [value for value in values if value]
    return type_name == "string" and bool(dates) and all(read_date(value) is not None for value in dates)


def _sortable(value: str | None, type_name: str) -> tuple[int, Any]:
    """Make a partition value comparable with the others of its column; unreadable ones sort before all readable."""
    if not value:
        return (0, "")
    read: Any = value
    if type_name in ("timestamp", "timestamp_ntz"):
        read = read_timestamp(value)
    elif type_name.startswith(_NUMBERS):
        try:
            read = Decimal(value)
        except InvalidOperation:
            read = None
        if read is not None and not read.is_finite():
            read = None
    return (1, value) if read is None else (2, read)
