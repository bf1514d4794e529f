"""Files whose footers say what is not true of their bytes. Shares nothing with what reads or judges footers."""

from __future__ import annotations

import struct
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

LEAST_BYTES = 4
"""Bounds of fewer bytes may be found anywhere in a footer."""

PLAIN: dict[str, Any] = {"use_dictionary": False, "compression": "none", "store_schema": False}


def split(path: Path) -> tuple[bytes, bytes]:
    """A file's data, and its footer with what follows."""
    stored = path.read_bytes()
    (length,) = struct.unpack("<I", stored[-8:-4])
    return stored[: -8 - length], stored[-8 - length :]


def spliced(target: Path, rows: pa.Table, said: pa.Table, **options: Any) -> str:
    """Write rows with the footer of other rows, whose bytes take as much room."""
    halves = []
    for table in (rows, said):
        pq.write_table(table, target, **{**PLAIN, **options})
        halves.append(split(target))
    (data, _), (other, footer) = halves
    assert len(data) == len(other)
    target.write_bytes(data + footer)
    return str(target)


def exchange_bounds(path: Path, columns: Collection[str], *, up: bool) -> bool:
    """Give one of these columns one bound twice: the other one leaves rows out.

    False where no bounds are told apart by bytes of one length, which are all that is changed.
    """
    data, footer = split(path)
    before = _bounds(path, columns)
    for low, high in sorted({*before}, key=lambda pair: (-len(pair[0]), pair)):
        old, new = (low, high) if up else (high, low)
        if len(old) != len(new) or len(old) < LEAST_BYTES or old == new or old not in footer:
            continue
        path.write_bytes(data + footer[:-8].replace(old, new) + footer[-8:])
        try:
            if len(after := _bounds(path, columns)) == len(before) and after != before:
                path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
                return True
        except (pa.ArrowException, OSError):
            pass  # other parts of the footer have the same bytes
        path.write_bytes(data + footer)
    return False


def _bounds(path: Path, columns: Collection[str]) -> list[tuple[bytes, bytes]]:
    metadata = pq.read_metadata(path)
    found = []
    for group in range(metadata.num_row_groups):
        for column in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(column)
            said = chunk.statistics
            is_judged = chunk.path_in_schema.split(".")[0] in columns and ".list." not in chunk.path_in_schema
            if is_judged and said is not None and said.has_min_max and said.min <= said.max:  # no NaN
                found.append((_raw(said.min_raw, chunk.physical_type), _raw(said.max_raw, chunk.physical_type)))
    return found


def _raw(bound: Any, kind: str) -> bytes:
    codes = {"INT32": "<i", "INT64": "<q", "FLOAT": "<f", "DOUBLE": "<d", "BOOLEAN": "<?"}
    return struct.pack(codes[kind], bound) if kind in codes else bytes(bound)
