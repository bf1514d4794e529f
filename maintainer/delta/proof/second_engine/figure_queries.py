"""SQL of the figures that rows are judged by: nulls of each column, its least and its greatest value. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from maintainer.delta.log.statistics_columns import StatisticsColumn
from maintainer.delta.proof.second_engine.column_values import microseconds, sql_name
from maintainer.delta.proof.statistics_figures import has_bounds


def figure_parts(
    statistics: tuple[StatisticsColumn, ...],
    stored: Mapping[str, str],
    types: Mapping[str, str],
    also: Collection[StatisticsColumn] = (),
) -> Iterator[str]:
    """SQL of what `nulls_and_extremes` takes; ``types`` are those that columns are read as, by their names in files.

    ``also`` have no bounds in the log, and are to have extremes.
    """
    for column in statistics:
        # Of a null without a type DuckDB does not know which time it is.
        value = _path(column, types) if column.physical[0] in stored else "CAST(NULL AS TIMESTAMP)"
        yield f"count(*) - count({value})"
        if has_bounds(column) or column in also:
            yield from (f"{side}({_extreme(value, column)})" for side in ("min", "max"))


def nulls_and_extremes(
    values: Sequence[Any], statistics: tuple[StatisticsColumn, ...], also: Collection[StatisticsColumn] = ()
) -> tuple[tuple[int, ...], list[tuple[Any, Any]]]:
    """Take what `figure_parts` asked for apart; None for the extremes of columns without values, or without bounds."""
    left = iter(values)
    nulls, extremes = [], []
    for column in statistics:
        nulls.append(int(next(left)))
        has_extremes = has_bounds(column) or column in also
        extremes.append((next(left), next(left)) if has_extremes else (None, None))
    return tuple(nulls), extremes


def _path(column: StatisticsColumn, types: Mapping[str, str]) -> str:
    root = column.physical[0]
    value = f"CAST({sql_name(root)} AS {types[root]})" if root in types else sql_name(root)
    for name in column.physical[1:]:
        value = f"struct_extract({value}, '{name.replace(chr(39), chr(39) * 2)}')"
    return value


def _extreme(value: str, column: StatisticsColumn) -> str:
    """SQL of what the least and the greatest value are taken of: times as microseconds, dates as days."""
    if column.kind == "timestamp":
        return microseconds(value)
    if column.kind == "timestamp_ntz":
        return microseconds(f"CAST({value} AS TIMESTAMP)")
    if column.kind == "date":
        return f"CAST({value} AS DATE) - DATE '1970-01-01'"
    return value


def piece_of(value: str, starts: Sequence[int], first: int = 0) -> str:
    """SQL for the place of the last of some ascending numbers that a value is not below."""
    if len(starts) == 1:
        return str(first)
    middle = len(starts) // 2
    below, above = piece_of(value, starts[:middle], first), piece_of(value, starts[middle:], first + middle)
    return f"CASE WHEN {value} < {starts[middle]} THEN {below} ELSE {above} END"
