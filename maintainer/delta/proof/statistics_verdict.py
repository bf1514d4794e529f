"""Judge the statistics in the log by the figures of the file's rows (level L3 of a proof). Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from maintainer.delta.proof.statistics_figures import FileFigures, StatisticsColumn

_FOUR_DIGITS = re.compile(r"[0-9]{4}-")


@dataclass(frozen=True, slots=True)
class Strictness:
    """What is required of statistics beyond that they must not hide rows.

    Attributes:
        complete: Statistics must be there, for every column of ``expected`` that Delta keeps them for.
        exact: Bounds must be reached by a row, up to Delta's cutting; else they may be wider than the rows.
        expected: Paths, as stored, of the columns that the table's settings collect statistics for.
    """

    complete: bool
    exact: bool
    expected: frozenset[tuple[str, ...]] = frozenset()


def judge(
    add: Mapping[str, Any], columns: tuple[StatisticsColumn, ...], figures: FileFigures, strictness: Strictness
) -> list[str]:
    """Return what is wrong with the statistics of one file, as sentences; empty if they fit its rows."""
    text, vector = add.get("stats"), add.get("deletionVector")
    if not text:
        return ["it has no statistics"] if strictness.complete else []
    try:
        stats = json.loads(text)
    except ValueError:
        return ["its statistics are not JSON"]
    problems: list[str] = []
    records = stats.get("numRecords")
    hidden = int(vector["cardinality"]) if vector else 0
    if records is None:
        problems += ["numRecords is missing"] if strictness.complete else []
    elif not isinstance(records, int) or records - hidden != figures.rows:
        problems.append(f"numRecords says {records}" + (f" less {hidden} deleted" if hidden else "")
                     + f", it holds {figures.rows} rows")  # fmt: skip
    wide = stats.get("tightBounds") is False
    if wide and not vector and strictness.exact:
        problems.append("tightBounds is false, and no rows are deleted")
    exact = strictness.exact and not wide and not vector
    for number, column in enumerate(columns):
        problems += _judge_column(stats, column, number, figures, exact=exact, loose=wide or bool(vector))
        if strictness.complete and column.physical in strictness.expected:
            problems += _judge_presence(stats, column, figures.rows - figures.nulls[number])
    return problems


def _judge_column(
    stats: Mapping[str, Any], column: StatisticsColumn, number: int, figures: FileFigures, *, exact: bool, loose: bool
) -> list[str]:
    problems = []
    nulls = value_at(stats.get("nullCount"), column.physical)
    if nulls is not None and not loose and nulls != figures.nulls[number]:
        problems.append(f"nullCount of {column.name} says {nulls}, it holds {figures.nulls[number]} nulls")
    low, high = (value_at(stats.get(side), column.physical) for side in ("minValues", "maxValues"))
    if not column.has_bounds:
        return problems
    if figures.outside >> number & 1:
        problems.append(f"rows lie outside the bounds of {column.name} (minValues says {low!r}, maxValues {high!r})")
    elif exact:
        for place, (side, bound) in enumerate((("minValues", low), ("maxValues", high))):
            if _comparable(bound, column.kind) and not figures.reached >> (2 * number + place) & 1:
                problems.append(f"{side} of {column.name} says {bound!r}, which no row reaches")
    return problems


def _comparable(bound: object, kind: str) -> bool:
    """Whether a bound is there and was read as Delta reads it; years of other than four digits have no one spelling."""
    if bound is None:
        return False
    return kind not in ("date", "timestamp", "timestamp_ntz") or _FOUR_DIGITS.match(str(bound)) is not None


def _judge_presence(stats: Mapping[str, Any], column: StatisticsColumn, values: int) -> list[str]:
    names = ["nullCount"]
    if column.has_bounds and values:
        # Delta leaves the upper bound of a string out where there is no character to cut it with.
        names += ["minValues"] if column.kind == "string" else ["minValues", "maxValues"]
    return [
        f"{side} of {column.name} is missing" for side in names if value_at(stats.get(side), column.physical) is None
    ]


def unknown_names(stats: Mapping[str, Any], columns: tuple[StatisticsColumn, ...]) -> list[str]:
    """Names in the statistics that no stored column of the table has."""
    columns_by_name = {column.physical for column in columns}
    sides = ("minValues", "maxValues", "nullCount")
    return sorted(
        {".".join(path) for side in sides for path in named_in(stats.get(side)) if path not in columns_by_name}
    )


def value_at(tree: object, path: tuple[str, ...]) -> object | None:
    """The value of nested maps at a path, None where there is none."""
    for name in path:
        if not isinstance(tree, Mapping):
            return None
        tree = tree.get(name)
    return tree


def named_in(tree: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of all leaves of nested maps."""
    if isinstance(tree, Mapping):
        for name, value in tree.items():
            yield from named_in(value, (*path, name))
    elif path:
        yield path
