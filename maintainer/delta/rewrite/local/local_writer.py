"""Write rows as one Parquet file in this process, as Spark would write it.

The file is on the disk for good before its ``add`` is returned: Spark leaves that to the operating system.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from maintainer.delta.rewrite.bin_work import LaneUnfit
from maintainer.delta.rewrite.local.arrow_schema import leaves_of
from maintainer.delta.rewrite.local.local_statistics import FileStatistics

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
    """Where and how a file is written; ``columns`` are those of its statistics: physical path and type."""

    path: str
    schema: pa.Schema
    columns: Sequence[tuple[tuple[str, ...], str]]
    codec: str
    tight_bounds: bool


def _with_bounds(schema: pa.Schema) -> list[str]:
    """The columns of which the footer gets bounds: pyarrow leaves NaN out of those of floats.

    Spark skips row groups by them: a filter ``d > 1e300`` would then lose the rows with NaN, which Spark's own footers
    keep. Readers have no use for bounds within arrays and maps.
    """
    import pyarrow as pa

    return [".".join(path) for path, kind in leaves_of(schema) if not pa.types.is_floating(kind)]


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
            writer = pq.ParquetWriter(
                stored,
                target.schema,
                version="2.6",
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
                for group in _row_groups(rows, statistics):
                    writer.write_table(group, row_group_size=max(1, group.num_rows))
            stored.flush()
            os.fsync(stored.fileno())
        if not statistics.num_records:
            os.unlink(target.path)
            return None
        return statistics.to_json(tight_bounds=target.tight_bounds)
    except BaseException as error:
        if not isinstance(error, FileExistsError):
            with contextlib.suppress(OSError):
                os.unlink(target.path)
        raise


def _row_groups(rows: Iterable[pa.RecordBatch], statistics: FileStatistics) -> Iterator[pa.Table]:
    """Yield the rows in pieces for one row group each."""
    import pyarrow as pa

    batches: list[pa.RecordBatch] = []
    size_bytes = 0
    for batch in rows:
        statistics.add(batch)
        batches.append(batch)
        size_bytes += batch.nbytes
        if size_bytes >= ROW_GROUP_BYTES:
            yield pa.Table.from_batches(batches)
            batches, size_bytes = [], 0
    if batches:
        yield pa.Table.from_batches(batches)
