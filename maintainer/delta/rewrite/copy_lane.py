"""The copy lane: files with large row groups are joined by copying these, without writing a value anew.

Pure rules say by the footers of a bin's files whether their row groups may be copied into one file; the proof is in
``delta.proof``.

The statistics of a copy are computed from its columns alone. No bound is carried over: footers leave NaN out and cut
texts, and what the log says was written by anybody: a bound that hides rows would live on in a commit of ours. So each
column with statistics is read, in every file, and it is told whether the log was right about it. Footers are copied
with their row groups, and Spark skips rows by them. So a file is not copied if the bounds of its footer, of all row
groups together, leave out a NaN of any column, or another value of a column with statistics.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from maintainer.delta.log.statistics_columns import StatisticsColumn
from maintainer.delta.proof.footers import row_groups
from maintainer.delta.proof.second_engine.column_values import CannotCompareError, figures_of
from maintainer.delta.proof.second_engine.hidden_rows import GroupFigures, as_one, hidden_rows
from maintainer.delta.proof.statistics_verdict import Strictness, judge
from maintainer.delta.rewrite.bin_work import BinWork, LaneUnfit, Workplace, WrittenBin
from maintainer.delta.rewrite.local.arrow_rows import (
    SPARK_VERSION,
    SourceFile,
    file_schema,
    is_of_old_calendar,
    key_values,
    leaves_of,
    read_rows,
)
from maintainer.delta.rewrite.local.local_statistics import ColumnFigures, FileStatistics
from maintainer.delta.storage.failures.engine_failures import as_write_error, message_of
from maintainer.delta.storage.local_files import LocalFiles
from maintainer.delta.storage.log_paths import path_uri
from maintainer.errors import CommitNotLanded
from maintainer.model.plan.lanes import SourceStatistics
from maintainer.units import format_size

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

MIN_ROW_GROUP_BYTES = 8 << 20
"""Mean compressed size from which row groups are worth keeping: with smaller ones the new file would read slower."""

READ_BY_KEYS = (SPARK_VERSION, "org.apache.spark.timeZone", "ARROW:schema")
"""Key-value metadata that readers act upon. The new file has it once, so it must be the same in all sources."""

_TRUSTED_WRITERS = re.compile(r"parquet-mr version 1\.1\d|parquet-rs |delta-rs |parquet-cpp-arrow |DuckDB ")
"""Writers whose files no reader treats in a special way. Of others, readers may distrust bounds and not of the copy."""


@dataclass(frozen=True, slots=True)
class Footer:
    """What a file's footer says, as far as it decides about a copy.

    ``schema`` is the message type as text, with field ids and logical types; ``arrow_schema`` the same as pyarrow sees
    it. ``codecs`` are those of all column chunks, ``row_group_bytes`` the compressed sizes of the row groups.
    """

    schema: str
    arrow_schema: pa.Schema
    codecs: frozenset[str]
    row_group_bytes: tuple[int, ...]
    metadata: Mapping[str, str]
    created_by: str
    num_rows: int
    bounded_floats: frozenset[str]
    """Paths of columns of floats with bounds in some row group, joined by dots; those in arrays and maps, too."""


def read_footer(path: str) -> Footer:
    """Read a local file's footer.

    Raises:
        LaneUnfit: The file is missing, damaged or encrypted; Spark then says what is wrong with it.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with open(path, "rb") as stored:
            metadata = pq.read_metadata(stored)
    except (pa.ArrowException, OSError) as error:
        raise LaneUnfit(f"a footer cannot be read here: {' '.join(str(error).split())[:200]}") from error
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    chunks = [[group.column(place) for place in range(group.num_columns)] for group in groups]
    # The first line names an object in memory, the second the root, which readers ignore.
    text = "\n".join(str(metadata.schema).splitlines()[2:])
    return Footer(
        schema=text,
        arrow_schema=_with_int96(metadata.schema),
        codecs=frozenset(chunk.compression.lower() for row in chunks for chunk in row),
        row_group_bytes=tuple(sum(chunk.total_compressed_size for chunk in row) for row in chunks),
        metadata=key_values(metadata),
        created_by=str(metadata.created_by),
        num_rows=int(metadata.num_rows),
        bounded_floats=frozenset(chunk.path_in_schema for row in chunks for chunk in row if _is_bounded_float(chunk)),
    )


def _is_bounded_float(chunk: pq.ColumnChunkMetaData) -> bool:
    """Whether readers skip rows by the bounds of a chunk of floats; bounds that are NaN they leave out of account."""
    bounds = chunk.statistics if chunk.physical_type in ("FLOAT", "DOUBLE") else None
    return bounds is not None and bounds.has_min_max and not math.isnan(bounds.min) and not math.isnan(bounds.max)


def _with_int96(schema: pq.ParquetSchema) -> pa.Schema:
    """The schema as pyarrow sees it, but with top-level INT96 as what it means for Spark: an instant in microseconds.

    A copy keeps INT96 as it is, which is how Spark writes time stamps unless it is told otherwise.
    """
    import pyarrow as pa

    arrow = schema.to_arrow_schema()
    for column in (schema.column(number) for number in range(len(schema))):
        if column.physical_type == "INT96" and (place := arrow.get_field_index(column.path)) >= 0:
            arrow = arrow.set(place, arrow.field(place).with_type(pa.timestamp("us", tz="UTC")))
    return arrow


def dropped_columns(footer: Footer, table_schema: pa.Schema) -> list[str]:
    """Return the columns of a file that files of the table do not have today: a copy leaves them out.

    Dropped ones, and partition columns that another writer put into the file: readers take their values from the log.
    """
    return [name for name in footer.arrow_schema.names if name not in table_schema.names]


def why_not_copied(footers: Sequence[Footer], table_schema: pa.Schema, codec: str) -> str | None:
    """Return why the row groups of some files must not be copied into one; None if they may.

    Args:
        footers: Of the files of one bin; at least one.
        table_schema: What a file of today would have, from ``local.arrow_rows.file_schema``.
        codec: That new files are to have, in Spark's words.
    """
    # Nothing is compressed anew: parquet-hadoop would put the bounds of such a chunk together from those of its pages,
    # and leave out pages that have none, such as those with a NaN.
    if any(footer.codecs - {"uncompressed" if codec == "none" else codec} for footer in footers):
        return f"its files have another codec than {codec}"
    first = footers[0]
    for footer in footers:
        if footer.schema != first.schema:
            return "its files have different schemas"
        if is_of_old_calendar(footer.metadata, has_int96=" int96 " in footer.schema):
            return "a file has dates of the old calendar"
        if any(footer.metadata.get(key) != first.metadata.get(key) for key in READ_BY_KEYS):
            return "its files tell readers different things in their metadata"
        if not _TRUSTED_WRITERS.match(footer.created_by):
            return f"a file was written by {footer.created_by}, whose files some readers treat in a special way"
    dropped = dropped_columns(first, table_schema)
    if any("." in name for name in dropped):
        return "a dropped column has a dot in its name"
    if not _is_of_today(first.arrow_schema, table_schema, dropped):
        return "its files have other columns or types than the table has today"
    sizes = [size for footer in footers for size in footer.row_group_bytes]
    if not sizes or sum(sizes) < MIN_ROW_GROUP_BYTES * len(sizes):
        mean = sum(sizes) // max(1, len(sizes))
        return f"row groups of {format_size(mean)} on average are too small to be kept"
    return None


def _is_of_today(stored: pa.Schema, wanted: pa.Schema, without: Collection[str]) -> bool:
    """Whether a file has just the table's columns in their order, beside others that are left out of account."""
    columns = [field for field in stored if field.name not in without]
    return len(columns) == len(wanted) and all(
        _is_same(field_stored, field_wanted) for field_stored, field_wanted in zip(columns, wanted, strict=True)
    )


def _is_same(stored: pa.Field, wanted: pa.Field) -> bool:
    import pyarrow as pa

    key = b"PARQUET:field_id"
    wanted_id = (wanted.metadata or {}).get(key)
    if stored.name != wanted.name or (wanted_id is not None and (stored.metadata or {}).get(key) != wanted_id):
        return False
    stored_type, wanted_type = stored.type, wanted.type
    types = pa.types
    if types.is_struct(stored_type) and types.is_struct(wanted_type):
        return stored_type.num_fields == wanted_type.num_fields and all(
            _is_same(stored_type.field(place), wanted_type.field(place)) for place in range(stored_type.num_fields)
        )
    if types.is_list(stored_type) and types.is_list(wanted_type):
        return _is_same(stored_type.value_field, wanted_type.value_field)
    if types.is_map(stored_type) and types.is_map(wanted_type):
        return _is_same(stored_type.key_field, wanted_type.key_field) and _is_same(
            stored_type.item_field, wanted_type.item_field
        )
    return bool(stored_type == wanted_type)


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
        LaneUnfit: A file cannot be read here, or its footer leaves a value out of its bounds.
    """
    import pyarrow as pa

    floats = [path for path, kind in leaves_of(schema) if pa.types.is_floating(kind)]
    total, wrong = FileStatistics(columns), []
    for add, local_path, footer in sources:
        bounded = [StatisticsColumn((), path, "double") for path in floats if ".".join(path) in footer.bounded_floats]
        statistics, of_floats = FileStatistics(columns), FileStatistics(bounded)
        roots = {column.physical[0] for column in (*columns, *bounded)}
        # Without a column a batch has no rows to count.
        wanted = pa.schema([field for field in schema if field.name in roots] or [schema.field(0)])
        for batch in read_rows([SourceFile(local_path)], wanted, by_id=False, check_stop=check_stop):
            statistics.add(batch)
            of_floats.add(batch)
            if hidden := [".".join(figures.column.physical) for figures in of_floats.figures if figures.has_nan]:
                raise LaneUnfit(f"a footer leaves NaN out of the bounds of {hidden[0]}, by which readers skip rows")
        if _hidden_by_footer(local_path, statistics):
            raise LaneUnfit("a footer's bounds leave rows out, which readers would skip")
        total.include(statistics)
        wrong += [f"{add['path']}: {finding}" for finding in _wrong_in_log(statistics, columns, add.get("stats"))]
    return total, SourceStatistics.of(len(sources) * len(columns), wrong)


def _hidden_by_footer(path: str, statistics: FileStatistics) -> tuple[str, ...]:
    """What a file's footer has wrong, all its row groups taken together."""
    groups = row_groups(path)
    figures = GroupFigures(
        [figures.nulls for figures in statistics.figures], [_extremes(figures) for figures in statistics.figures]
    )
    return hidden_rows([as_one(groups)], statistics.columns, [figures]) if groups else ()


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
    reason = why_not_copied(footers, schema, work.codec)
    if reason is not None:
        raise LaneUnfit(reason)
    sources = list(zip(work.sources, paths, footers, strict=True))
    statistics, found = compute_statistics(sources, schema, work.indexed, check_stop)
    target = place.path(work.table.uri(work.path()))
    check_stop()
    try:
        dropped = dropped_columns(footers[0], schema)
        with place.size_polled(work, target):
            place.copy_row_groups(map(path_uri, paths), path_uri(target), dropped)
        with open(target, "rb") as stored:
            os.fsync(stored.fileno())
    except BaseException as error:
        with contextlib.suppress(OSError):
            LocalFiles().delete(path_uri(target))
        if isinstance(error, Exception) and isinstance(as_write_error(error, work.where, "copying"), CommitNotLanded):
            raise LaneUnfit(f"its row groups cannot be copied: {message_of(error)[:200]}") from error
        raise
    said = statistics.to_json(tight_bounds=work.tight_bounds, text_prefix=work.text_prefix)
    file, in_place = place.published(work, 0, said)
    return WrittenBin((file,), (in_place,), source_findings=found)
