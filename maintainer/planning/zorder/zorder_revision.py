"""Choose a table's revision: the newest one that fits the policy, or a new one from a sample.

The policy's Z-order columns are looked up in the table's schema, or refused by name with the policy's line.
"""

from __future__ import annotations

from maintainer.errors import TableError
from maintainer.model.plan.zorder_turn import LayoutFigures
from maintainer.model.table.table_facts import TableFacts
from maintainer.planning.curve.curve import MAX_ADDRESS_BITS, has_min_and_max, key_of
from maintainer.planning.curve.curve_files import Ranges, layout_figures
from maintainer.planning.curve.revision import (
    MAX_BITS_PER_COLUMN,
    MAX_TEXT_BOUNDARY,
    Revision,
    make_column,
    next_id,
    revisions_in,
)
from maintainer.planning.selection.schema_columns import UNORDERED_TYPES, FoundColumn, find_column, nearest_column
from maintainer.policy.resolve.resolved import ResolvedPolicy

ESCAPED_RATIO = 0.2
"""Share of the table's bytes in files that escape the boundaries, from which a new revision is made.

A new revision means that every file is written once more, batch by batch. A column that only grows escapes every day;
with a fifth, a table that doubles is written four times over in all and not every night.
"""

SAMPLE_ROWS = 20_000
"""Rows that boundaries are chosen from: about 80 for each of 256 ranks, so that ranks differ by a tenth in size."""


def usable_columns(columns: tuple[FoundColumn, ...], where: str) -> tuple[FoundColumn, ...]:
    """Return the columns, unless one has a type of which the log keeps no smallest and largest values.

    Raises:
        TableError: T427, naming all of them.
    """
    wrong = [column for column in columns if not has_min_and_max(column.type_name)]
    if wrong:
        names = ", ".join(f"`{column.dotted}`" for column in wrong)
        raise TableError(
            f"Z-order column {names} has a type of which the log keeps no smallest and largest values",
            code="T427",
            where=where,
            found=", ".join(f"{column.dotted} {column.type_name}" for column in wrong),
            help="leave it out of optimize.zorder.columns",
        )
    return columns


def fitting_revision(columns: tuple[FoundColumn, ...], facts: TableFacts) -> Revision | None:
    """Return the newest revision of just these columns and types, None where the table has none."""
    names_and_types = [(column.quoted, column.type_name) for column in columns]
    fitting = [
        revision
        for revision in revisions_in(facts.properties).values()
        if [(column.name, column.type_name) for column in revision.columns] == names_and_types
    ]
    return fitting[-1] if fitting else None


def escaped_ratio(revision: Revision, facts: TableFacts) -> float:
    """Return the share of bytes in files most of whose values of some column lie outside of the boundaries."""
    ranges = ranges_of(facts, revision)
    escaped = 0
    for file in facts.files:
        for column, (low, high, _) in zip(revision.columns, ranges.get(file.key, ()), strict=False):
            if low is not None and high is not None and column.escapes(low, high):
                escaped += file.size_bytes
                break
    return escaped / facts.size_bytes if facts.size_bytes else 0.0


def ranges_of(facts: TableFacts, revision: Revision) -> Ranges:
    """Return what the log says of the revision's columns; nothing where other columns were read."""
    measured = facts.column_ranges
    return measured.by_file if measured is not None and measured.columns == revision.names() else {}


class NothingToOrder(Exception):
    """The values of the columns do not differ, as the sentence says: no order of them lets a query skip a file."""


def new_revision(columns: tuple[FoundColumn, ...], facts: TableFacts) -> Revision:
    """Make the next revision from the facts' sample.

    Raises:
        NothingToOrder: No column has values that boundaries could divide, or one only differs behind what statistics
            keep.
    """
    sample = facts.column_sample
    if sample is None or sample.columns != tuple(column.quoted for column in columns):
        raise ValueError("a new revision needs a sample of its columns")
    bits = min(MAX_BITS_PER_COLUMN, MAX_ADDRESS_BITS // len(columns))
    made = [
        make_column(column.quoted, column.type_name, values, max_bits=bits)
        for column, values in zip(columns, sample.values, strict=True)
    ]
    for column, values in zip(columns, sample.values, strict=True):
        distinct = {value for value in values if value is not None}
        shortened = {value[:MAX_TEXT_BOUNDARY] for value in distinct}
        if len(distinct) > 1 and len(shortened) == 1 and key_of(column.type_name, "x") == "x":
            raise NothingToOrder(
                f"`{column.dotted}` differs only behind the first {MAX_TEXT_BOUNDARY} characters, and statistics keep "
                "no more"
            )
    if not any(boundaries.boundaries for boundaries in made):
        each = zip(columns, made, strict=True)
        raise NothingToOrder(
            ", ".join(f"`{column.dotted}` is {_values(boundaries.low)}" for column, boundaries in each)
        )
    return Revision(next_id(facts.properties), tuple(made))


def refuse_equal_values(columns: tuple[FoundColumn, ...], facts: TableFacts) -> None:
    """Find by the log alone that no column has two values; unknown ranges are taken to differ.

    Raises:
        NothingToOrder: Each column has one value in all rows, or only nulls.
    """
    ranges = facts.column_ranges
    if ranges is None or ranges.columns != tuple(column.quoted for column in columns):
        return
    words = []
    for number, column in enumerate(columns):
        if all((file.key, number) in ranges.all_null for file in facts.files):
            words.append(f"`{column.dotted}` is {_values(None)}")
            continue
        seen = {ranges.by_file[file.key][number] if file.key in ranges.by_file else None for file in facts.files}
        (only, *others) = seen
        if others or only is None or only[0] is None or only[0] != only[1] or only[2]:
            return
        words.append(f"`{column.dotted}` is {_values(only[0])}")
    raise NothingToOrder(", ".join(words))


def _values(low: str | None) -> str:
    return "all null" if low is None else f"always {low}"


def measured_layout(columns: tuple[FoundColumn, ...], facts: TableFacts) -> LayoutFigures | None:
    """Return the layout's figures under the table's newest fitting revision; None where it has none, or no ranges."""
    revision = fitting_revision(columns, facts)
    if revision is None or facts.column_ranges is None:
        return None
    return layout_figures(facts.files, revision, ranges_of(facts, revision))


_LEAVE_OUT = "leave it out of optimize.zorder.columns"


def zorder_columns(policy: ResolvedPolicy, facts: TableFacts) -> tuple[FoundColumn, ...]:
    """Return the Z-order columns as the schema spells them.

    Raises:
        TableError: T411 no such column, T412 a partition column, T413 a column without statistics, T427 one of
            which there never are any, T414 a type that has no order, T420 a column twice; all wrong columns of one
            kind are named at once.
    """
    zorder = policy.optimize.zorder
    assert zorder is not None
    where = policy.place_of("optimize.zorder.columns")
    partition_columns = {name.lower() for name in facts.partition_columns}
    by_name = [(name, find_column(facts, name)) for name in zorder.columns]
    missing = [name for name, column in by_name if column is None]
    if missing:
        close = nearest_column(facts, missing[0])
        raise TableError(
            f"Z-order column {_names(missing)} does not exist",
            code="T411",
            where=where,
            found=", ".join(missing),
            help=f"did you mean `{close}`?" if close else f"the table has {', '.join(facts.columns)}",
        )
    columns = [column for _, column in by_name if column is not None]
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
        [column for column in columns if column.type_name.startswith(UNORDERED_TYPES)],
        types=True,
    )
    with_stats = {name.lower() for name in facts.columns_with_stats}
    without = [column for column in columns if column.quoted.lower() not in with_stats]
    # For these no setting helps: Delta keeps none of a boolean or of bytes, wherever the column stands.
    usable_columns(tuple(without), where)
    _refuse(
        where,
        "T413",
        "has no statistics, so no file could be skipped by it",
        without,
        help="add it to delta.dataSkippingStatsColumns if the table has that property, else raise "
        "delta.dataSkippingNumIndexedCols; a new list would end the statistics of all columns that it does not name",
    )
    if len(set(columns)) < len(columns):
        raise TableError(
            "a Z-order column is named twice",
            code="T420",
            where=where,
            found=", ".join(zorder.columns),
            help="remove one of the two",
        )
    return tuple(columns)


def _refuse(
    where: str, code: str, what: str, columns: list[FoundColumn], *, types: bool = False, help: str = _LEAVE_OUT
) -> None:
    if not columns:
        return
    names_in_table = [f"{column.dotted} {column.type_name}" if types else column.dotted for column in columns]
    names = _names([column.dotted for column in columns])
    raise TableError(
        f"Z-order column {names} {what}", code=code, where=where, found=", ".join(names_in_table), help=help
    )


def _names(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
