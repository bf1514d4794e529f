"""Select the partitions and files of a rewrite, with a reason for everything that is left out.

File rules are those of OPTIMIZE: ``size < minFileSize``, a deletion vector without statistics, or a share of
soft-deleted rows above ``maxDeletedRowsRatio``, both strict. Partition rules are ours: ``where``,
``skipNewestPartitions`` and ``quietFor``, in that order; the first that refuses gives the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

from maintainer.errors import TableError
from maintainer.model.plan.plan import LeftAlone
from maintainer.model.plan.reasons import ReasonCode
from maintainer.model.table.table_facts import DataFile, TableFacts
from maintainer.planning.plan_input import TableInput
from maintainer.planning.selection.decision import Partition, count_of, leave_partitions
from maintainer.planning.selection.packing import file_order
from maintainer.planning.selection.schema_columns import partition_types
from maintainer.policy.predicate.partition_predicate import PredicateTypeError
from maintainer.policy.predicate.predicate_lex import read_date, read_timestamp
from maintainer.policy.resolve.resolved import OptimizePolicy, ResolvedPolicy
from maintainer.units import format_duration

_NUMBERS = ("byte", "short", "integer", "long", "float", "double", "decimal")


@dataclass(frozen=True, slots=True)
class Selection:
    """Partitions that may be rewritten, in order of their values, and those that may not, with reasons."""

    partitions: tuple[Partition, ...]
    left_alone: tuple[LeftAlone, ...] = ()


def is_small(file: DataFile, optimize: OptimizePolicy) -> bool:
    """Return whether the file counts as small: strictly under ``min_file_size_bytes``, as recorded in the log.

    The size is that of the Parquet file, also when a deletion vector hides most of its rows.
    """
    return file.size_bytes < optimize.min_file_size_bytes


def has_many_deleted_rows(file: DataFile, optimize: OptimizePolicy) -> bool:
    """Return whether so many rows are soft-deleted that the file is rewritten whatever its size.

    Strictly above ``max_deleted_rows_ratio``; a deletion vector without statistics always counts, because
    nobody can say how many of the rows are gone.
    """
    if file.deletion_vector is None:
        return False
    ratio = file.deleted_rows_ratio
    return ratio is None or ratio > optimize.max_deleted_rows_ratio


def group_by_partition(files: Iterable[DataFile]) -> tuple[Partition, ...]:
    """Group files by partition: partitions in order of their values (null first), files smallest first."""
    groups: dict[tuple[tuple[str, str | None], ...], list[DataFile]] = {}
    for file in files:
        groups.setdefault(file.partition_values, []).append(file)

    def order(item: tuple[Any, Any]) -> list[tuple[bool, str]]:
        return [(value is not None, value or "") for _, value in item[0]]

    return tuple(
        Partition(values, tuple(sorted(group, key=file_order))) for values, group in sorted(groups.items(), key=order)
    )


def select_partitions(table: TableInput) -> Selection:
    """Apply ``where``, ``skipNewestPartitions`` and ``quietFor`` to the partitions that hold live files.

    ``quietFor`` is counted back from the time of planning to a partition's newest file.

    Raises:
        TableError: T410, ``where`` does not fit the table's partition columns.
    """
    policy, facts, optimize = table.policy, table.facts, table.policy.optimize
    partitions = group_by_partition(facts.files)
    newest = _newest(partitions, facts, optimize.skip_newest_partitions)
    left_alone: list[LeftAlone] = []
    if optimize.where is not None:
        where, selected = optimize.where.text, _where_test(policy, facts, table.today)
        partitions, dropped = _split(partitions, selected)
        left_alone += leave_partitions(
            ReasonCode.OUTSIDE_WHERE,
            lambda files, partitions: f"{_files_text(files, partitions)} outside where: {where}",
            dropped,
            policy.place_of("optimize.where"),
        )
    if newest:
        partitions, dropped = _split(partitions, lambda partition: partition.values not in newest)
        left_alone += leave_partitions(
            ReasonCode.NEWEST_PARTITION,
            lambda files, partitions: (
                f"{_files_text(files, partitions)} among the newest {optimize.skip_newest_partitions} "
                "(skipNewestPartitions)"
            ),
            dropped,
            policy.place_of("optimize.skipNewestPartitions"),
        )
    if optimize.quiet_for_seconds:
        quiet_since_ms = table.now_ms - optimize.quiet_for_seconds * 1000
        partitions, dropped = _split(partitions, lambda partition: partition.modified_at_ms <= quiet_since_ms)
        quiet_for = format_duration(optimize.quiet_for_seconds)
        left_alone += leave_partitions(
            ReasonCode.HOT_PARTITION,
            lambda files, partitions: f"{_files_text(files, partitions)} written less than {quiet_for} ago (quietFor)",
            dropped,
            policy.place_of("optimize.quietFor"),
        )
    return Selection(partitions, tuple(left_alone))


def _files_text(files: int, partitions: int) -> str:
    return count_of(files, "file") + (f" of {partitions:,} partitions" if partitions > 1 else "")


def _split(
    partitions: tuple[Partition, ...], keep: Callable[[Partition], bool]
) -> tuple[tuple[Partition, ...], tuple[Partition, ...]]:
    verdicts = [(partition, keep(partition)) for partition in partitions]
    return tuple(p for p, selected in verdicts if selected), tuple(p for p, selected in verdicts if not selected)


def _where_test(policy: ResolvedPolicy, facts: TableFacts, today: date) -> Callable[[Partition], bool]:
    assert policy.optimize.where is not None
    where = policy.place_of("optimize.where")
    try:
        selects = policy.optimize.where.bind(partition_types(facts), today)
    except PredicateTypeError as error:
        raise _placed(error, where) from error

    def test(partition: Partition) -> bool:
        try:
            return selects(dict(partition.values))
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
    types (so year, month, day works). Nulls are oldest. An unpartitioned table has no newest partition.
    """
    if number <= 0 or not facts.partition_columns:
        return frozenset()
    types = partition_types(facts)
    columns = list(types)
    keys = {p.values: tuple(_sortable(value, types[column]) for column, value in p.values) for p in partitions}
    for position, column in enumerate(columns):
        if _is_time(types[column], [p.values[position][1] for p in partitions]):
            keys = {values: (key[position],) for values, key in keys.items()}
            break
    highest = sorted(set(keys.values()), reverse=True)[:number]
    chosen = set(highest)
    return frozenset(values for values, key in keys.items() if key in chosen)


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
