"""Compute from the rows of a file the figures that its statistics are checked with (level L3 of a proof). Pure.

A reader skips a file by its bounds, so a bound that is too narrow hides rows as surely as a lost file. One row of
figures is computed for each file: its rows, the nulls of each column, for each column whether rows lie outside of its
bounds, and for each bound of a number or date whether a row reaches it. Values of fixed width are first aggregated to
their extremes, which are then compared with the bounds: one step for each row instead of three. Each string is
compared directly, because an aggregate over strings would make Spark sort all rows.

What Delta 4.4.0 writes (``StatisticsCollection``): bounds for numbers, dates, timestamps and plain strings, also
inside structs; a null count for every column; names under which the columns are stored. Timestamps are cut to whole
milliseconds downwards, both bounds. Strings of more than 32 characters are cut; the upper bound then gets a last
character that is greater than what was cut off. A column of nulls only has no bounds. A file with a deletion vector
has wide bounds and no exact null counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from maintainer.delta.log.schema_names import dotted, quote
from maintainer.delta.log.statistics_columns import StatisticsColumn, statistics_columns
from maintainer.model.run.receipts import Fingerprint

MAX_COLUMNS = 40
"""Columns whose statistics one Spark job checks: more than Delta collects by default (32)."""

_NUMBERS = frozenset({"byte", "short", "integer", "long", "float", "double"})
_TIMES = frozenset({"timestamp", "timestamp_ntz"})
_NULL_BITS = 32


def is_reached(column: StatisticsColumn) -> bool:
    """Whether a bound must be reached by a row: readers answer MIN and MAX from it.

    Delta's ``OptimizeMetadataOnlyDeltaQuery`` does so for numbers and dates. Texts and time stamps are cut by
    every writer in its own way.
    """
    return column.kind in _NUMBERS or column.kind == "date" or column.kind.startswith("decimal")


def has_bounds(column: StatisticsColumn) -> bool:
    """Whether Delta keeps bounds for the type. The lane that writes them has a rule of its own."""
    return is_reached(column) or column.kind in _TIMES or column.kind == "string"


def is_by_extremes(column: StatisticsColumn) -> bool:
    """Whether the least and the greatest value of a file are compared with its bounds, and not each value."""
    return has_bounds(column) and column.kind != "string"


@dataclass(frozen=True, slots=True)
class RowFigures:
    """Figures of the rows of one written file: measured, not from the log.

    ``hidden`` says which bounds of the file's own footer do not fit the rows, as sentences, as far as that was judged.
    """

    rows: int
    nulls: tuple[int, ...]
    outside: int
    reached: int
    hidden: tuple[str, ...] = ()


def stats_columns(stats_schema: dict[str, Any]) -> tuple[str, ...]:
    """Dotted logical names of the leaf columns that carry minimum and maximum, in the schema's order.

    ``stats_schema`` is what Delta collects for (``dataSkippingNumIndexedCols`` and ``dataSkippingStatsColumns``
    applied); of those, leaves of other types have a null count only.
    """
    return tuple(dotted(column.logical) for column in statistics_columns(stats_schema, ()) if has_bounds(column))


def bounds_schema(columns: tuple[StatisticsColumn, ...]) -> dict[str, Any]:
    """The Spark schema (as JSON) that reads both bounds of the columns from the text of the statistics."""
    tree: dict[str, Any] = {}
    for column in columns:
        if has_bounds(column):
            node = tree
            for name in column.physical[:-1]:
                node = node.setdefault(name, {})
            node[column.physical[-1]] = column.kind
    return _struct({"minValues": tree, "maxValues": tree})


def _struct(tree: dict[str, Any]) -> dict[str, Any]:
    fields = [
        {
            "name": name,
            "type": _struct(kind) if isinstance(kind, dict) else kind,
            "nullable": True,
            "metadata": {},
        }
        for name, kind in tree.items()
    ]
    return {"type": "struct", "fields": fields}


def bound_expressions(columns: tuple[StatisticsColumn, ...], parsed: str) -> list[str]:
    """SQL that takes the bounds of each column out of the parsed statistics, computed once a file.

    Fields ``lo<i>`` and ``hi<i>``.
    """
    expressions = []
    for number, column in enumerate(columns):
        if has_bounds(column):
            low, high = (f"{parsed}.{side}.{_dotted(column.physical)}" for side in ("minValues", "maxValues"))
            expressions += [f"{low} AS lo{number}", f"{high} AS hi{number}"]
    return expressions


def figure_aggregates(columns: tuple[StatisticsColumn, ...], bounds: str) -> list[str]:
    """SQL aggregates over the rows of a file, for `figures_of_file`.

    Args:
        columns: The columns.
        bounds: The struct beside each row with the fields of `bound_expressions` of its file.
    """
    aggregates = []
    for start in range(0, len(columns), 2):
        parts = [
            f"if(isnull({_dotted(column.logical)}), {1 << (_NULL_BITS * place)}L, 0L)"
            for place, column in enumerate(columns[start : start + 2])
        ]
        aggregates.append(f"coalesce(sum({' + '.join(parts)}), 0L) AS n{start // 2}")
    for number, column in enumerate(columns):
        value = _dotted(column.logical)
        if is_by_extremes(column):
            aggregates += [f"min({value}) AS least{number}", f"max({value}) AS most{number}"]
        elif has_bounds(column):
            outside = f"{value} < {bounds}.lo{number} OR {value} > {bounds}.hi{number}"
            aggregates.append(f"coalesce(bool_or({outside}), false) AS beyond{number}")
    return aggregates


def figures_of_file(columns: tuple[StatisticsColumn, ...], bounds: str) -> list[str]:
    """SQL over one row a file with `figure_aggregates`, in the order that `read_figures` takes."""
    outside, reached = ["0L"], [["0L"] for _ in range(_words(columns))]
    for number, column in enumerate(columns):
        if not has_bounds(column):
            continue
        beyond = _beyond(column, number, bounds) if is_by_extremes(column) else f"beyond{number}"
        outside.append(f"if({beyond}, {1 << number}L, 0L)")
        if is_reached(column):
            word, place = divmod(number, 31)
            reached[word].append(f"if(least{number} = {bounds}.lo{number}, {1 << (2 * place)}L, 0L)")
            reached[word].append(f"if(most{number} = {bounds}.hi{number}, {1 << (2 * place + 1)}L, 0L)")
    nulls = [f"n{number}" for number in range((len(columns) + 1) // 2)]
    words = [" | ".join(bits) + f" AS r{word}" for word, bits in enumerate(reached)]
    return [*nulls, " | ".join(outside) + " AS o", *words]


def no_figures(columns: tuple[StatisticsColumn, ...]) -> list[str]:
    """Return empty columns in the place of `figures_of_file`, for the side without statistics."""
    names = [f"n{number}" for number in range((len(columns) + 1) // 2)]
    names += ["o", *(f"r{word}" for word in range(_words(columns)))]
    return [f"0L AS {name}" for name in names]


def read_figures(columns: tuple[StatisticsColumn, ...], rows: int, sums: tuple[int, ...]) -> RowFigures:
    """Put one file's figures together from the aggregates."""
    packed = (len(columns) + 1) // 2
    mask = (1 << _NULL_BITS) - 1
    nulls = tuple((sums[number // 2] >> (_NULL_BITS * (number % 2))) & mask for number in range(len(columns)))
    reached = sum(word << (62 * place) for place, word in enumerate(sums[packed + 1 :]))
    return RowFigures(rows, nulls, sums[packed], reached)


def joined(parts: list[tuple[tuple[StatisticsColumn, ...], RowFigures]]) -> RowFigures:
    """Figures of several groups of columns of one file as one."""
    nulls: tuple[int, ...] = ()
    outside = reached = 0
    for columns, figures in parts:
        outside |= figures.outside << len(nulls)
        reached |= figures.reached << (2 * len(nulls))
        nulls += figures.nulls[: len(columns)]
    return RowFigures(parts[0][1].rows if parts else 0, nulls, outside, reached)


def _words(columns: tuple[StatisticsColumn, ...]) -> int:
    return (len(columns) + 30) // 31


def _dotted(path: tuple[str, ...]) -> str:
    return ".".join(quote(name) for name in path)


def _beyond(column: StatisticsColumn, number: int, bounds: str) -> str:
    """SQL for: a value is outside the bounds; by the file's extremes."""
    low, high, least, most = (f"{bounds}.lo{number}", f"{bounds}.hi{number}", f"least{number}", f"most{number}")
    if column.kind not in _TIMES:
        return f"{least} < {low} OR {most} > {high}"
    # Readers add the millisecond that a bound may be cut by. At either end of the range one of the sums would overflow.
    later = f"{most} - INTERVAL '0.001' SECOND >= {high}", f"{most} >= {high} + INTERVAL '0.001' SECOND"
    return f"{least} < {low} OR if({most} > {high}, if(year({most}) > 0, {later[0]}, {later[1]}), false)"


@dataclass(frozen=True, slots=True)
class Measured:
    """Both sides as they were measured; ``files`` are the figures of the written files, in their order.

    ``sources`` are those of the files that were read, where their statistics are judged, too; None for a file whose
    statistics could not be compared.
    """

    read: Fingerprint
    written: Fingerprint
    columns: tuple[StatisticsColumn, ...]
    files: tuple[RowFigures, ...]
    uncovered_columns: tuple[str, ...]
    sources: tuple[RowFigures | None, ...] = ()
