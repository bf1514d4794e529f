"""Compute the statistics of a copy from its columns alone, and look whether the log was right about its files.

No bound is carried over. Footers leave NaN out and cut texts, and what the log says was written by anybody: a bound
that hides rows would live on in a commit of ours. So each column with statistics is read, in every file.

Footers are copied with their row groups. Where one leaves a NaN out of its bounds, Spark would skip rows by it, so such
a file is not copied.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from maintainer.delta.proof.second_engine.bound_figures import figures_of
from maintainer.delta.proof.second_engine.column_values import CannotCompareError
from maintainer.delta.proof.statistics_figures import StatisticsColumn
from maintainer.delta.proof.statistics_verdict import Strictness, judge
from maintainer.delta.rewrite.bin_work import LaneUnfit
from maintainer.delta.rewrite.local.arrow_rows import SourceFile, read_rows
from maintainer.delta.rewrite.local.arrow_schema import leaves_of
from maintainer.delta.rewrite.local.local_statistics import ColumnFigures, FileStatistics
from maintainer.model.plan.lanes import SourceStatistics

if TYPE_CHECKING:
    import pyarrow as pa

FOUND_ONLY_WRONG = Strictness(exact=False)


@dataclass(frozen=True, slots=True)
class CopiedFile:
    """A file whose row groups are to be copied.

    Args:
        name: Its path for people.
        path: Its local path.
        stats: Its statistics as the log has them.
        bounded_floats: See ``Footer``.
    """

    name: str
    path: str
    stats: str | None = None
    bounded_floats: frozenset[str] = frozenset()


def compute_statistics(
    sources: Sequence[CopiedFile],
    schema: pa.Schema,
    columns: tuple[StatisticsColumn, ...],
    check_stop: Callable[[], None] = lambda: None,
) -> tuple[FileStatistics, SourceStatistics]:
    """Read the columns with statistics of some files.

    Args:
        sources: The files.
        schema: Of the files, from ``file_schema``.
        columns: The columns that the table's settings collect statistics for.
        check_stop: Raises when the run is to end.

    Returns:
        The statistics of a file with the rows of all, and what the log had wrong about each.

    Raises:
        LaneUnfit: A file cannot be read here, or its footer leaves a NaN out of its bounds.
    """
    import pyarrow as pa

    floats = [path for path, kind in leaves_of(schema) if pa.types.is_floating(kind)]
    listed = tuple((column.physical, column.kind) for column in columns)
    total, wrong = FileStatistics(listed), []
    for source in sources:
        bounded = tuple((path, "double") for path in floats if ".".join(path) in source.bounded_floats)
        statistics, of_floats = FileStatistics(listed), FileStatistics(bounded)
        roots = {path[0] for path, _ in (*listed, *bounded)}
        # Without a column a batch has no rows to count.
        wanted = pa.schema([field for field in schema if field.name in roots] or [schema.field(0)])
        for batch in read_rows([SourceFile(source.path)], wanted, by_id=False, check_stop=check_stop):
            statistics.add(batch)
            of_floats.add(batch)
            if hidden := [".".join(figures.path) for figures in of_floats.figures if figures.has_nan]:
                raise LaneUnfit(f"a footer leaves NaN out of the bounds of {hidden[0]}, by which readers skip rows")
        total.include(statistics)
        wrong += [f"{source.name}: {finding}" for finding in _wrong_in_log(statistics, columns, source.stats)]
    return total, SourceStatistics.of(len(sources) * len(columns), wrong)


def _wrong_in_log(
    statistics: FileStatistics, columns: tuple[StatisticsColumn, ...], text: str | None
) -> tuple[str, ...]:
    """What the log says of a file that its rows do not fit, by the one rule for statistics."""
    nulls = tuple(figures.nulls for figures in statistics.figures)
    extremes = [_extremes(figures) for figures in statistics.figures]
    try:
        figures = figures_of(statistics.num_records, nulls, extremes, columns, text)
    except CannotCompareError:
        return ()  # a bound in a form that readers may not know: nothing is known of it
    return judge({"stats": text}, columns, figures, FOUND_ONLY_WRONG).wrong


def _extremes(figures: ColumnFigures) -> tuple[Any, Any]:
    if not figures.has_nan:
        return figures.lowest, figures.highest
    return math.nan if figures.lowest is None else figures.lowest, math.nan
