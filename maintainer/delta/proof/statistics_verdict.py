"""Judge the statistics in the log by the figures of the file's rows (level L3 of a proof). Pure.

The one rule for statistics: the proof, the look at the landed commit, `verify` and the look at the files of a copy ask
it. A bound that rows lie outside of hides them, so it is wrong whoever wrote it. A bound that no row reaches is wrong
where readers answer MIN or MAX from it, and a note for writers who are not known to write exact ones. What no reader
can read is unknown: it is neither zero nor wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from maintainer.delta.log.actions import named_in, statistics_in, value_at, whole_count
from maintainer.delta.log.statistics_columns import StatisticsColumn
from maintainer.delta.proof.statistics_figures import Measured, RowFigures, has_bounds, is_reached
from maintainer.model.plan.lanes import SourceStatistics
from maintainer.model.table.statistics_writers import EXACT_WRITERS
from maintainer.units import count_of

_FOUR_DIGITS = re.compile(r"[0-9]{4}-")


@dataclass(frozen=True, slots=True)
class Strictness:
    """What is required of statistics beyond that they must not hide rows.

    Attributes:
        exact: Null counts must be right, and bounds be reached by a row where readers answer MIN and MAX from them;
            else that is a note.
        complete: Statistics must be there, for every column of ``expected`` that Delta keeps them for. Asked before a
            commit only: later nobody knows what the session that wrote them was told.
        expected: Paths, as stored, of the columns that the table's settings collect statistics for.
    """

    exact: bool
    complete: bool = False
    expected: frozenset[tuple[str, ...]] = frozenset()


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is wrong with the statistics of a file, and what is only to be told, as sentences; empty if they fit."""

    wrong: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def strictness_of(commit_info: Mapping[str, Any]) -> Strictness:
    """Return what is required of the statistics of a commit that is in the log, by who wrote it."""
    engine = str(commit_info.get("engineInfo") or "")
    return Strictness(exact=any(writer in engine for writer in EXACT_WRITERS))


def judge(
    add: Mapping[str, Any], columns: tuple[StatisticsColumn, ...], figures: RowFigures, strictness: Strictness
) -> Judgement:
    """Judge the statistics of one file by its rows."""
    findings = list(_findings(add, columns, figures, strictness))
    wrong, notes = (tuple(text for is_wrong, text in findings if is_wrong is kind) for kind in (True, False))
    return Judgement(wrong, notes)


def wrong_statistics(
    adds: Sequence[Mapping[str, Any]],
    columns: tuple[StatisticsColumn, ...],
    files: Sequence[RowFigures | None],
    strictness: Strictness,
) -> list[str]:
    """What is wrong with the statistics of files, as sentences with their paths; files without figures are left out."""
    measured = ((add, figures) for add, figures in zip(adds, files, strict=True) if figures is not None)
    return [
        f"{add['path']}: {text}" for add, figures in measured for text in judge(add, columns, figures, strictness).wrong
    ]


def wrong_sources(sources: Sequence[Mapping[str, Any]], measured: Measured) -> list[str]:
    """What the log had wrong about files that were read, as far as they were measured one by one."""
    if not measured.sources:
        return []
    return wrong_statistics(sources, measured.columns, measured.sources, Strictness(exact=False))


def source_findings(sources: Sequence[Mapping[str, Any]], measured: Measured) -> SourceStatistics:
    """Count what was found, and the files whose statistics could not be judged; see ``wrong_sources``."""
    has_stats = [bool(source.get("stats")) for source in sources]
    num_judged = sum(known for known, figures in zip(has_stats, measured.sources, strict=False) if figures)
    return SourceStatistics.of(
        len(measured.columns) * num_judged, wrong_sources(sources, measured), sum(has_stats) - num_judged
    )


def _findings(
    add: Mapping[str, Any], columns: tuple[StatisticsColumn, ...], figures: RowFigures, strictness: Strictness
) -> Iterator[tuple[bool, str]]:
    """Yield sentences, each with whether it is wrong."""
    vector, stats = add.get("deletionVector"), statistics_in(add.get("stats"))
    if stats is None:
        if strictness.complete or add.get("stats"):
            yield strictness.complete, "its statistics are not JSON" if add.get("stats") else "it has no statistics"
        return
    records, hidden = whole_count(stats.get("numRecords")), int(vector["cardinality"]) if vector else 0
    if records is None:
        if strictness.complete:
            yield True, "numRecords is missing"
    elif records - hidden != figures.rows:
        less = f" less {hidden:,} deleted" if hidden else ""
        yield True, f"numRecords says {records:,}{less}, it holds {count_of(figures.rows, 'row')}"
    wide = stats.get("tightBounds") is False
    if wide and not vector and strictness.complete:
        yield True, "tightBounds is false, and no rows are deleted"
    for number, column in enumerate(columns):
        if not wide and not vector:
            yield from _of_nulls(stats, column, number, figures, strictness)
        if has_bounds(column):
            yield from _of_bounds(stats, column, number, figures, None if wide or vector else strictness)
        if strictness.complete and column.physical in strictness.expected:
            yield from _of_presence(stats, column, figures.rows - figures.nulls[number])


def _of_nulls(
    stats: Mapping[str, Any], column: StatisticsColumn, number: int, figures: RowFigures, strictness: Strictness
) -> Iterator[tuple[bool, str]]:
    """A wrong count hides rows where it says that there are none with a null, or none with a value."""
    said, nulls = whole_count(value_at(stats.get("nullCount"), column.physical)), figures.nulls[number]
    if said is not None and said != nulls:
        hides = said == 0 or said >= figures.rows > nulls
        yield strictness.exact or hides, f"nullCount of {column.name} says {said}, it holds {count_of(nulls, 'null')}"


def _of_bounds(
    stats: Mapping[str, Any], column: StatisticsColumn, number: int, figures: RowFigures, tight: Strictness | None
) -> Iterator[tuple[bool, str]]:
    """``tight`` is None for bounds that may be wider than the rows, whatever their type."""
    low, high = (value_at(stats.get(side), column.physical) for side in ("minValues", "maxValues"))
    if figures.outside >> number & 1:
        yield True, f"rows lie outside the bounds of {column.name} (minValues says {low!r}, maxValues {high!r})"
    elif tight is not None and is_reached(column):
        for place, (side, bound) in enumerate((("minValues", low), ("maxValues", high))):
            if _comparable(bound, column.kind) and not figures.reached >> (2 * number + place) & 1:
                yield tight.exact, f"{side} of {column.name} says {bound!r}, which no row reaches"


def _comparable(bound: object, kind: str) -> bool:
    """Whether a bound is there and was read as Delta reads it; years of other than four digits have no one spelling."""
    return bound is not None and (kind != "date" or _FOUR_DIGITS.match(str(bound)) is not None)


def _of_presence(stats: Mapping[str, Any], column: StatisticsColumn, values: int) -> Iterator[tuple[bool, str]]:
    names = ["nullCount"]
    if has_bounds(column) and values:
        # Delta leaves the upper bound of a string out where there is no character to cut it with.
        names += ["minValues"] if column.kind == "string" else ["minValues", "maxValues"]
    for side in names:
        if value_at(stats.get(side), column.physical) is None:
            yield True, f"{side} of {column.name} is missing"


def unknown_names(stats: Mapping[str, Any], columns: tuple[StatisticsColumn, ...]) -> list[str]:
    """Names in the statistics that no stored column of the table has."""
    columns_by_name = {column.physical for column in columns}
    sides = ("minValues", "maxValues", "nullCount")
    return sorted(
        {".".join(path) for side in sides for path in named_in(stats.get(side)) if path not in columns_by_name}
    )
