"""Prove a file that was made by copying row groups: byte for byte, without decoding a value.

Each row group of the new file must be a row group of a source: all its column chunks with the same bytes, in the same
columns, with the same number of rows; and each row group of the sources must be there exactly once. It shares no code
with what copied them: footers are read by pyarrow, and the bytes by Python.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

from maintainer.model.run.outcome import Fingerprint

if TYPE_CHECKING:
    import pyarrow.parquet as pq

BYTES_AT_ONCE = 4 << 20
DIGEST_BYTES = 16


def compare_chunks(
    sources: Sequence[str], written: Sequence[str], columns: Collection[str]
) -> tuple[Fingerprint, Fingerprint, list[str]]:
    """Read the row groups of both sides.

    Args:
        sources: Local paths of the files that were copied.
        written: Local paths of the files that they were copied to.
        columns: Names in files of the table's columns. Others in the sources were dropped and do not count; in the new
            files they must not be.

    Returns:
        A fingerprint of each side (rows, and sums over the digests of row groups), and what is wrong, as sentences.

    Raises:
        OSError, pyarrow.ArrowException: A file is missing or damaged.
    """
    before = [group for path in sources for group in _row_groups(path, columns)]
    after = [group for path in written for group in _row_groups(path, None)]
    problems = []
    missing, extra = Counter(before) - Counter(after), Counter(after) - Counter(before)
    if missing:
        problems.append(f"{missing.total()} row groups of the sources are not in the new files")
    if extra:
        problems.append(f"{extra.total()} row groups of the new files are none of the sources'")
    return _fingerprint(before), _fingerprint(after), problems


def _fingerprint(groups: Sequence[tuple[int, bytes]]) -> Fingerprint:
    half = DIGEST_BYTES // 2
    sums = (sum(int.from_bytes(digest[part : part + half], "big") for _, digest in groups) for part in (0, half))
    return Fingerprint(sum(rows for rows, _ in groups), tuple(sums))


def _row_groups(path: str, columns: Collection[str] | None) -> list[tuple[int, bytes]]:
    """Rows and digest of each row group of a file. The digest covers what every column chunk is, and its bytes.

    With ``columns`` only the chunks of these count.
    """
    import pyarrow.parquet as pq

    groups = []
    with open(path, "rb") as stored:
        metadata = pq.read_metadata(stored)
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
            chunks = [group.column(place) for place in range(group.num_columns)]
            if columns is not None:
                chunks = [column for column in chunks if _root(column.path_in_schema, columns) in columns]
            digest.update(repr((group.num_rows, len(chunks))).encode())
            for column in chunks:
                digest.update(repr(_described(column)).encode())
                _read_into(digest, stored, column)
            groups.append((int(group.num_rows), digest.digest()))
        if sum(rows for rows, _ in groups) != metadata.num_rows:
            raise ValueError(f"{path}: its footer counts {metadata.num_rows} rows, its row groups hold others")
    return groups


def _root(path: str, columns: Collection[str]) -> str:
    """The top-level column of a chunk; a name may have dots of its own."""
    parts = path.split(".")
    roots = (".".join(parts[:length]) for length in range(1, len(parts) + 1))
    return next((root for root in roots if root in columns), parts[0])


def _described(column: pq.ColumnChunkMetaData) -> tuple[Any, ...]:
    """What a footer says of a column chunk, without its place in the file and without bounds."""
    return (
        column.path_in_schema,
        column.physical_type,
        column.compression,
        sorted(column.encodings),
        column.num_values,
        column.total_compressed_size,
        column.total_uncompressed_size,
        column.has_dictionary_page,
    )


def _read_into(digest: hashlib.blake2b, stored: BinaryIO, column: pq.ColumnChunkMetaData) -> None:
    start = column.data_page_offset
    if column.has_dictionary_page and column.dictionary_page_offset is not None:
        start = min(start, column.dictionary_page_offset)
    stored.seek(start)
    left = column.total_compressed_size
    while left > 0:
        piece = stored.read(min(left, BYTES_AT_ONCE))
        if not piece:
            raise ValueError("a column chunk ends before the size that its footer says")
        digest.update(piece)
        left -= len(piece)
