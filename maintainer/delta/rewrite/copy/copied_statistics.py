"""Compute the statistics of a copy from its columns alone, and look whether the log was right about its files.

No bound is carried over. Footers leave NaN out and cut texts, and what the log says was written by anybody: a bound
that hides rows would live on in a commit of ours. So each column with statistics is read, in every file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from maintainer.delta.proof.second_engine.bound_figures import figures_of
from maintainer.delta.proof.second_engine.column_values import CannotCompareError
from maintainer.delta.proof.statistics_figures import StatisticsColumn
from maintainer.delta.proof.statistics_verdict import Strictness, judge
from maintainer.delta.rewrite.local.arrow_rows import SourceFile, read_rows
from maintainer.delta.rewrite.local.local_statistics import ColumnFigures, FileStatistics
from maintainer.model.plan.lanes import SourceStatistics

if TYPE_CHECKING:
    import pyarrow as pa

FOUND_ONLY_WRONG = Strictness(exact=False)


def compute_statistics(
    sources: Sequence[tuple[str, str, str | None]],
    schema: pa.Schema,
    columns: tuple[StatisticsColumn, ...],
    check_stop: Callable[[], None] = lambda: None,
) -> tuple[FileStatistics, SourceStatistics]:
    """Read the columns with statistics of some files.

    Args:
        sources: Each file's path for people, its local path, and its statistics as the log has them.
        schema: Of the files, from ``file_schema``.
        columns: The columns that the table's settings collect statistics for.
        check_stop: Raises when the run is to end.

    Returns:
        The statistics of a file with the rows of all, and what the log had wrong about each.

    Raises:
        LaneUnfit: A file cannot be read here.
    """
    import pyarrow as pa

    roots = {column.physical[0] for column in columns}
    # Without a column a batch has no rows to count.
    wanted = pa.schema([field for field in schema if field.name in roots] or [schema.field(0)])
    listed = tuple((column.physical, column.kind) for column in columns)
    total, wrong = FileStatistics(listed), []
    for path, file, text in sources:
        statistics = FileStatistics(listed)
        for batch in read_rows([SourceFile(file)], wanted, by_id=False, check_stop=check_stop):
            statistics.add(batch)
        total.include(statistics)
        wrong += [f"{path}: {finding}" for finding in _wrong_in_log(statistics, columns, text)]
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
