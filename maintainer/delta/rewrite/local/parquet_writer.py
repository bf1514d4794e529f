"""Write rows as a Parquet file with pyarrow, as Spark would write it.

It is on the disk for good before it is named to anybody: Spark leaves that to the operating system.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from maintainer.delta.log.statistics_columns import StatisticsColumn
from maintainer.delta.rewrite.bin_work import LaneUnfit
from maintainer.delta.rewrite.local.arrow_rows import leaves_of
from maintainer.delta.rewrite.local.local_statistics import FileStatistics
from maintainer.model.table.table_features import DEFAULT_TEXT_PREFIX

if TYPE_CHECKING:
    import pyarrow as pa

ROW_GROUP_BYTES = 128 << 20
"""A row group ends after so many bytes in memory, as Spark's does (``parquet.block.size``)."""

PAGE_BYTES = 1 << 20
CODECS = {"snappy": "snappy", "zstd": "zstd", "gzip": "gzip", "none": "none", "uncompressed": "none"}
"""Spark's names of the codecs that are written here, and pyarrow's."""

FILE_METADATA = {"org.apache.spark.version": "4.1.0"}
"""Says in Spark's own words that dates are in the Gregorian calendar: readers may be set to distrust other files."""


@dataclass(frozen=True, slots=True)
class LocalTarget:
    """Where and how a file is written; ``columns`` are those of its statistics."""

    path: str
    schema: pa.Schema
    columns: Sequence[StatisticsColumn]
    codec: str
    tight_bounds: bool
    text_prefix: int = DEFAULT_TEXT_PREFIX


def _with_bounds(schema: pa.Schema) -> list[str]:
    """The columns of which the footer gets bounds: pyarrow leaves NaN out of those of floats.

    Spark skips row groups by them: a filter ``d > 1e300`` would then lose the rows with NaN, which Spark's own footers
    keep. Readers have no use for bounds within arrays and maps.
    """
    import pyarrow as pa

    return [".".join(path) for path, kind in leaves_of(schema) if not pa.types.is_floating(kind)]


SAMPLED_RUNS, RUN_ROWS, UNIQUE_RATIO = 64, 128, 0.98
"""Where so large a share of a column's sampled values differ, it has some 200,000 values, or none twice. A dictionary
would be given up at ``PAGE_BYTES``, and cost more than all the rest of the column.
"""


def _with_dictionary(rows: pa.Table) -> bool | list[str]:
    """The Parquet columns that are worth a dictionary, by the rows of the first row group; of few rows all are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    num_sampled = SAMPLED_RUNS * RUN_ROWS
    if rows.num_rows < num_sampled:
        return True
    starts = range(0, rows.num_rows - RUN_ROWS + 1, (rows.num_rows - RUN_ROWS) // (SAMPLED_RUNS - 1))
    sample = pa.concat_tables([rows.slice(start, RUN_ROWS) for start in starts[:SAMPLED_RUNS]])
    return [
        path
        for field, column in zip(sample.schema, sample.columns, strict=True)
        if pa.types.is_nested(field.type) or pc.count_distinct(column).as_py() < UNIQUE_RATIO * num_sampled
        for path in _parquet_paths(field.name, field.type)
    ]


def _parquet_paths(path: str, kind: pa.DataType) -> Iterator[str]:
    """The names that Parquet has for the columns of a field."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        inner = [(f"{path}.{field.name}", field.type) for field in kind.fields]
    elif pa.types.is_map(kind):
        inner = [(f"{path}.key_value.key", kind.key_type), (f"{path}.key_value.value", kind.item_type)]
    elif pa.types.is_list(kind):
        inner = [(f"{path}.list.element", kind.value_type)]
    else:
        inner = []
        yield path
    for name, of_name in inner:
        yield from _parquet_paths(name, of_name)


def write_local(rows: Iterable[pa.RecordBatch], target: LocalTarget) -> str | None:
    """Write rows as one new file and return its statistics as JSON; None, and no file, where there are none.

    Args:
        rows: Batches of the target's schema, in the order in which they are written.
        target: The file to write. Nothing may be there yet.

    Raises:
        LaneUnfit: From reading the rows, or the codec is none of ``CODECS``; nothing is left.
        OSError: The file cannot be written; nothing is left.
    """
    import pyarrow.parquet as pq

    codec = CODECS.get(target.codec)
    if codec is None:
        raise LaneUnfit(f"codec {target.codec}")
    statistics = FileStatistics(target.columns)
    try:
        with open(target.path, "xb") as stored:
            groups = _row_groups(rows)
            group = next(groups, target.schema.empty_table())
            writer = pq.ParquetWriter(
                stored,
                target.schema,
                version="2.6",
                use_dictionary=_with_dictionary(group),
                compression=codec,
                data_page_size=PAGE_BYTES,
                dictionary_pagesize_limit=PAGE_BYTES,
                write_statistics=_with_bounds(target.schema),
                write_page_index=True,
                write_page_checksum=True,
                store_schema=False,
                store_decimal_as_integer=True,
            )
            with writer:
                writer.add_key_value_metadata(FILE_METADATA)
                while group.num_rows:
                    statistics.add(group)
                    writer.write_table(group, row_group_size=group.num_rows)
                    group = next(groups, target.schema.empty_table())
            stored.flush()
            os.fsync(stored.fileno())
        if not statistics.num_records:
            os.unlink(target.path)
            return None
        return statistics.to_json(tight_bounds=target.tight_bounds, text_prefix=target.text_prefix)
    except BaseException as error:
        if not isinstance(error, FileExistsError):
            with contextlib.suppress(OSError):
                os.unlink(target.path)
        raise


def _row_groups(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield the rows in pieces for one row group each."""
    import pyarrow as pa

    batches: list[pa.RecordBatch] = []
    size_bytes = 0
    for batch in rows:
        batches.append(batch)
        size_bytes += batch.nbytes
        if size_bytes >= ROW_GROUP_BYTES:
            yield pa.Table.from_batches(batches)
            batches, size_bytes = [], 0
    if batches:
        yield pa.Table.from_batches(batches)
