"""Choose a table's revision: the newest one that fits the policy, or a new one from a sample.

The policy's Z-order columns are looked up in the table's schema, or refused by name with the policy's line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from maintainer.errors import MaintainerError
from maintainer.model.plan.zorder_turn import LayoutFigures
from maintainer.model.table.table_facts import TableFacts
from maintainer.model.table.table_features import TEXT_PREFIX_LENGTH, text_prefix_length
from maintainer.planning.curve.curve import MAX_ADDRESS_BITS, has_min_and_max
from maintainer.planning.curve.curve_files import Ranges, layout_figures
from maintainer.planning.curve.revision import (
    MAX_BITS_PER_COLUMN,
    Revision,
    make_column,
    next_id,
    revisions_in,
)
from maintainer.planning.selection.schema_columns import FoundColumn, NamedColumns
from maintainer.policy.resolve.resolved import ResolvedPolicy

ESCAPED_RATIO = 0.2
"""Share of the table's bytes in files that escape the boundaries, from which a new revision is made.

A new revision means that every file is written once more, batch by batch. A column that only grows escapes every day;
with a fifth, a table that doubles is written four times over in all and not every night.
"""

SAMPLE_ROWS = 20_000
"""Rows that boundaries are chosen from: about 80 for each of 256 ranks, so that ranks differ by a tenth in size."""


def fitting_revision(columns: tuple[FoundColumn, ...], facts: TableFacts) -> Revision | None:
    """Return the newest revision of just these columns and types, None where the table has none.

    One made for longer statistics of texts fits no longer: its cubes would be written again without becoming deeper.
    """
    names_and_types = [(column.quoted, column.type_name) for column in columns]
    text_prefix = text_prefix_length(dict(facts.properties))
    fitting = [
        revision
        for revision in revisions_in(facts.properties).values()
        if [(column.name, column.type_name) for column in revision.columns] == names_and_types
        and all(column.fits(text_prefix) for column in revision.columns)
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
        NothingToOrder: No column has values that boundaries could divide.
    """
    sample = facts.column_sample
    if sample is None or sample.columns != tuple(column.quoted for column in columns):
        raise ValueError("a new revision needs a sample of its columns")
    bits = min(MAX_BITS_PER_COLUMN, MAX_ADDRESS_BITS // len(columns))
    text_prefix = text_prefix_length(dict(facts.properties))
    made = [
        make_column(column.quoted, column.type_name, values, max_bits=bits, text_prefix=text_prefix)
        for column, values in zip(columns, sample.values, strict=True)
    ]
    if not any(boundaries.boundaries for boundaries in made):
        behind = (
            f"differs only behind the first {text_prefix} characters, and statistics keep no more; "
            f"`{TEXT_PREFIX_LENGTH}` on the table says how many"
        )
        words = [
            behind if len({*values} - {None}) > 1 else f"is {_values(boundaries.low)}"
            for boundaries, values in zip(made, sample.values, strict=True)
        ]
        raise NothingToOrder(", ".join(f"`{c.dotted}` {said}" for c, said in zip(columns, words, strict=True)))
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


_ADD_STATISTICS = (
    "add it to delta.dataSkippingStatsColumns if the table has that property, else raise "
    "delta.dataSkippingNumIndexedCols; a new list would end the statistics of all columns that it does not name"
)


def zorder_columns(policy: ResolvedPolicy, facts: TableFacts) -> tuple[FoundColumn, ...]:
    """Return the Z-order columns as the schema spells them.

    Raises:
        TableError: T411 no such column, T412 a partition column, T413 a column without statistics, T427 one of
            which there never are any, T414 a type that has no order, T420 a column twice; all wrong columns of one
            kind are named at once.
    """
    zorder = policy.optimize.zorder
    assert zorder is not None
    named = _named(policy, facts)
    columns = named.found(zorder.columns)
    with_stats = {name.lower() for name in facts.columns_with_stats}
    without = [column for column in columns if column.quoted.lower() not in with_stats]
    # For these no setting helps: Delta keeps none of a boolean or of bytes, wherever the column stands.
    _refuse_without_bounds(named, without)
    if without:
        what = f"{named.called(without)} has no statistics, so no file could be skipped by it"
        raise named.wrong(what, without, code="T413", help=_ADD_STATISTICS)
    named.refuse_twice(columns, zorder.columns)
    return columns


def incremental_columns(policy: ResolvedPolicy, facts: TableFacts) -> tuple[FoundColumn, ...]:
    """Return the columns of an incremental Z-order: all of them have a smallest and a largest value in the log.

    Raises:
        TableError: T427, a type that has none; else as ``zorder_columns``.
    """
    columns = zorder_columns(policy, facts)
    _refuse_without_bounds(_named(policy, facts), columns)
    return columns


def columns_or_none(
    find: Callable[[ResolvedPolicy, TableFacts], tuple[FoundColumn, ...]], policy: ResolvedPolicy, facts: TableFacts
) -> tuple[str, ...]:
    """Return the names of the columns that are found; none where planning will end in a problem."""
    try:
        return tuple(column.quoted for column in find(policy, facts))
    except MaintainerError:
        return ()


def _named(policy: ResolvedPolicy, facts: TableFacts) -> NamedColumns:
    key = "optimize.zorder.columns"
    return NamedColumns("Z-order column", key, policy.place_of(key), facts)


def _refuse_without_bounds(named: NamedColumns, columns: Sequence[FoundColumn]) -> None:
    wrong = [column for column in columns if not has_min_and_max(column.type_name)]
    if wrong:
        what = f"{named.called(wrong)} has a type of which the log keeps no smallest and largest values"
        raise named.wrong(what, wrong, code="T427", types=True)
