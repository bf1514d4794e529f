"""The copy lane: files with large row groups are joined by copying these, without writing a value anew.

What a footer must say for a bin to be copied stands in ``footers``, the proof in ``delta.proof``.

The statistics of a copy are computed from its columns alone. No bound is carried over: footers leave NaN out and cut
texts, and what the log says was written by anybody: a bound that hides rows would live on in a commit of ours. So each
column with statistics is read, in every file, and it is told whether the log was right about it. Footers are copied
with their row groups. Where one leaves a NaN out of its bounds, Spark would skip rows by it, so such a file is not
copied.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from maintainer.delta.proof.second_engine.bound_figures import figures_of
from maintainer.delta.proof.second_engine.column_values import CannotCompareError
from maintainer.delta.proof.statistics_figures import StatisticsColumn
from maintainer.delta.proof.statistics_verdict import Strictness, judge
from maintainer.delta.rewrite.bin_work import BinWork, LaneUnfit, Workplace, WrittenBin
from maintainer.delta.rewrite.footers import Footer, dropped_columns, is_recompressed, read_footer, why_not_copied
from maintainer.delta.rewrite.local.arrow_rows import SourceFile, read_rows
from maintainer.delta.rewrite.local.arrow_schema import file_schema, leaves_of
from maintainer.delta.rewrite.local.local_statistics import ColumnFigures, FileStatistics
from maintainer.delta.storage.failures.engine_failures import as_write_error, message_of
from maintainer.delta.storage.local_files import LocalFiles
from maintainer.delta.storage.log_paths import path_uri
from maintainer.errors import CommitNotLanded
from maintainer.model.plan.lanes import SourceStatistics

if TYPE_CHECKING:
    import pyarrow as pa

FOUND_ONLY_WRONG = Strictness(exact=False)


def compute_statistics(
    sources: Sequence[tuple[Mapping[str, Any], str, Footer]],
    schema: pa.Schema,
    columns: tuple[StatisticsColumn, ...],
    check_stop: Callable[[], None] = lambda: None,
) -> tuple[FileStatistics, SourceStatistics]:
    """Read the columns with statistics of some files.

    Args:
        sources: The ``add`` action of each file with its statistics in the log, its local path, and its footer.
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
    for add, local_path, footer in sources:
        bounded = tuple((path, "double") for path in floats if ".".join(path) in footer.bounded_floats)
        statistics, of_floats = FileStatistics(listed), FileStatistics(bounded)
        roots = {path[0] for path, _ in (*listed, *bounded)}
        # Without a column a batch has no rows to count.
        wanted = pa.schema([field for field in schema if field.name in roots] or [schema.field(0)])
        for batch in read_rows([SourceFile(local_path)], wanted, by_id=False, check_stop=check_stop):
            statistics.add(batch)
            of_floats.add(batch)
            if hidden := [".".join(figures.path) for figures in of_floats.figures if figures.has_nan]:
                raise LaneUnfit(f"a footer leaves NaN out of the bounds of {hidden[0]}, by which readers skip rows")
        total.include(statistics)
        wrong += [f"{add['path']}: {finding}" for finding in _wrong_in_log(statistics, columns, add.get("stats"))]
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


def write_by_copy(work: BinWork, place: Workplace) -> WrittenBin:
    """Write one bin as one file with the row groups of its files, which have no soft-deleted rows.

    Raises:
        LaneUnfit: Its files do not agree, their row groups are too small, or a footer hides rows; nothing is left.
    """
    check_stop = partial(place.check_stop, work.where)
    schema = file_schema(*work.schema)
    paths = [place.path(uri) for uri in work.source_uris]
    footers = [read_footer(path) for path in paths]
    reason = why_not_copied(footers, schema)
    if reason is not None:
        raise LaneUnfit(reason)
    sources = list(zip(work.sources, paths, footers, strict=True))
    statistics, found = compute_statistics(sources, schema, work.indexed, check_stop)
    target = place.path(work.table.uri(work.path()))
    check_stop()
    try:
        dropped = dropped_columns(footers[0], schema)
        new_codec = work.codec if is_recompressed(footers, work.codec) else None
        with place.size_polled(work, target):
            place.copy_row_groups(map(path_uri, paths), path_uri(target), dropped, new_codec)
        with open(target, "rb") as stored:
            os.fsync(stored.fileno())
    except BaseException as error:
        with contextlib.suppress(OSError):
            LocalFiles().delete(path_uri(target))
        if isinstance(error, Exception) and isinstance(as_write_error(error, work.where, "copying"), CommitNotLanded):
            raise LaneUnfit(f"its row groups cannot be copied: {message_of(error)[:200]}") from error
        raise
    file, in_place = place.published(work, 0, statistics.to_json(tight_bounds=work.tight_bounds))
    return WrittenBin((file,), (in_place,), source_findings=found, recompressed=new_codec is not None)
