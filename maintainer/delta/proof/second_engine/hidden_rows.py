"""Judge the bounds in a file's footer by its rows: readers skip whole row groups by them. Pure.

A bound is wrong if a value lies outside of it, a count of nulls if it is another one. What cannot be judged is left
out: a NaN, which some writers put into bounds and others leave out of them, and types whose order is not known here.
Bounds may be wider than the rows: texts are cut, and zeros get the sign that is safe.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from maintainer.delta.log.statistics_columns import StatisticsColumn


class Order(StrEnum):
    """How values are ordered: those of two orders are not compared."""

    NUMBER = "number"
    FLOAT = "float"
    DECIMAL = "decimal"
    DAYS = "days"
    MICROSECONDS = "microseconds"
    BYTES = "bytes"
    BOOLEAN = "boolean"


_ORDERS = {
    **dict.fromkeys(("byte", "short", "integer", "long"), Order.NUMBER),
    **dict.fromkeys(("float", "double"), Order.FLOAT),
    **dict.fromkeys(("string", "binary"), Order.BYTES),
    **dict.fromkeys(("timestamp", "timestamp_ntz"), Order.MICROSECONDS),
    "date": Order.DAYS,
    "boolean": Order.BOOLEAN,
}


@dataclass(frozen=True, slots=True)
class FooterBounds:
    """What a footer says of one column in one row group; ``order`` is None where its bounds cannot be judged."""

    order: Order | None
    low: Any
    high: Any
    nulls: int | None


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group: how many rows, and what the footer says of its columns, by their paths joined with dots."""

    rows: int
    columns: Mapping[str, FooterBounds]


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """What the rows of a row group say: nulls of each column, least and greatest values, None without any."""

    nulls: Sequence[int]
    extremes: Sequence[tuple[Any, Any]]


def together(figures: Sequence[GroupFigures]) -> GroupFigures:
    """Join the figures of all row groups, of which there is one at least; NaN is the greatest number."""
    if len(figures) == 1:
        return figures[0]
    extremes = []
    for of_column in zip(*(of_group.extremes for of_group in figures), strict=True):
        bounded = [pair for pair in of_column if pair[0] is not None]
        least, most = ([pair[side] for pair in bounded] for side in (0, 1))
        extremes.append((min(least, key=_with_nan, default=None), max(most, key=_with_nan, default=None)))
    return GroupFigures([sum(nulls) for nulls in zip(*(of_group.nulls for of_group in figures), strict=True)], extremes)


def _with_nan(value: Any) -> tuple[bool, Any]:  # noqa: ANN401
    return isinstance(value, float) and math.isnan(value), value


def as_one(groups: Sequence[RowGroup]) -> RowGroup:
    """Join what a footer says of all row groups, of which there is one at least.

    A column has no bound where one of its row groups has none, unless that holds nothing but nulls.
    """
    return RowGroup(
        sum(group.rows for group in groups),
        {path: _joined([(group.rows, group.columns[path]) for group in groups]) for path in groups[0].columns},
    )


def _joined(parts: Sequence[tuple[int, FooterBounds]]) -> FooterBounds:
    bounded = [bounds for rows, bounds in parts if bounds.nulls != rows] or [parts[0][1]]
    lows, highs = ([getattr(bounds, side) for bounds in bounded] for side in ("low", "high"))
    nulls = [bounds.nulls for _, bounds in parts if bounds.nulls is not None]
    return FooterBounds(
        bounded[0].order if len({bounds.order for bounds in bounded}) == 1 else None,
        None if None in lows else min(lows),
        None if None in highs else max(highs),
        sum(nulls) if len(nulls) == len(parts) else None,
    )


def order_of(column: StatisticsColumn) -> Order | None:
    """Return the order of a column's values by its type in the table."""
    return Order.DECIMAL if column.kind.startswith("decimal") else _ORDERS.get(column.kind)


def hidden_rows(
    groups: Sequence[RowGroup],
    columns: Sequence[StatisticsColumn],
    figures: Sequence[GroupFigures],
    *,
    has_deleted_rows: bool = False,
) -> tuple[str, ...]:
    """Return what the footer has wrong, as sentences.

    Args:
        groups: The row groups, as the footer describes them.
        columns: The columns.
        figures: Of each row group, if there are any: times in microseconds, dates in days.
        has_deleted_rows: The figures leave rows out, which footers count.
    """
    paths = [".".join(column.physical) for column in columns]
    ambiguous = {path for path, num in Counter(paths).items() if num > 1}
    return tuple(
        f"the footer's {what} of {column.name} in row group {number}, {wrong}"
        for number, (group, of_group) in enumerate(zip(groups, figures, strict=bool(groups)))
        for place, (path, column) in enumerate(zip(paths, columns, strict=True))
        if path not in ambiguous and (bounds := group.columns.get(path)) is not None
        for what, wrong in _wrong_in(bounds, column, of_group, place, has_deleted_rows)
    )


def _wrong_in(
    bounds: FooterBounds, column: StatisticsColumn, figures: GroupFigures, place: int, has_deleted_rows: bool
) -> Iterator[tuple[str, str]]:
    nulls = figures.nulls[place]
    if bounds.nulls is not None and bounds.nulls != nulls and not has_deleted_rows:
        yield "count of nulls", f"{bounds.nulls}, is wrong: it holds {nulls}"
    least, most = map(_ordered, figures.extremes[place])
    if bounds.order is not None and bounds.order is order_of(column):
        low, high = _ordered(bounds.low), _ordered(bounds.high)
        if low is not None and least is not None and least < low:
            yield "lower bound", f"{low!r}, leaves rows out"
        if high is not None and most is not None and most > high:
            yield "upper bound", f"{high!r}, leaves rows out"


def _ordered(value: Any) -> Any:  # noqa: ANN401
    """A value as it is compared: texts by their bytes; None for a NaN."""
    if isinstance(value, str):
        return value.encode()
    return None if isinstance(value, float) and math.isnan(value) else value
