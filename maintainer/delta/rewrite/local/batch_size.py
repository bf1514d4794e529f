"""Decode the rows of a file in batches that fit into memory.

A footer counts a text of a dictionary once, however many rows repeat it: a file of a megabyte may decode to gigabytes.
So the first rows are decoded alone, and each batch has as many as fit by the largest rows before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

BYTES_AT_ONCE = 64 << 20
FIRST_ROWS, LARGEST_GROWTH, ROWS_AT_ONCE = 64, 256, 32 * 1024
"""More rows at once would cost less by nothing that can be measured, and more where long ones come late."""

VALUE_BYTES = 16
"""No value takes more in memory, but a text: that of a decimal."""


def num_fitting(row_bytes: float) -> int:
    """Return how many rows of a size are handled at once; 1 at least."""
    return max(1, min(ROWS_AT_ONCE, int(BYTES_AT_ONCE / max(1, row_bytes))))


def fitting_batches(file: pq.ParquetFile, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file, of these top-level columns."""
    num_rows = ROWS_AT_ONCE if not columns or _fits_surely(file.metadata) else FIRST_ROWS
    row_bytes = 0.0
    for batch in file.iter_batches(batch_size=num_rows, columns=columns, use_threads=False):
        row_bytes = max(row_bytes, batch.nbytes / max(1, batch.num_rows))
        # Its iterator asks before each batch.
        file.reader.set_batch_size(min(num_fitting(row_bytes), LARGEST_GROWTH * max(1, batch.num_rows)))
        yield batch


def _fits_surely(metadata: pq.FileMetaData) -> bool:
    """Whether all rows would fit at once, even if each value were all texts of its column."""
    size_bytes = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for column in range(group.num_columns):
            chunk = group.column(column)
            is_text = chunk.physical_type.endswith("BYTE_ARRAY")
            size_bytes += chunk.num_values * (VALUE_BYTES + (chunk.total_uncompressed_size if is_text else 0))
    return size_bytes <= BYTES_AT_ONCE
