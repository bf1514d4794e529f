"""Read which rows of a data file are soft-deleted: its deletion vector, decoded by CRoaring.

The lanes read deletion vectors with Delta's own Java classes, so a vector that is read wrong is read wrong by one side
only. The form is that of the protocol ("Deletion Vector Format"): a magic number, then a portable 64-bit bitmap.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Mapping
from typing import Any

from maintainer.delta.proof.second_engine.column_values import CannotCompareError
from maintainer.model.table.vector_names import z85_decode

MAGIC = 1681511377


def deleted_rows(vector: Mapping[str, Any], file: str | bytes | None) -> list[int]:
    """Return the numbers of a file's soft-deleted rows, from 0, in ascending order.

    Args:
        vector: ``deletionVector`` of an ``add`` action.
        file: The local path of the vector's file, or its content; None for one inside the log.

    Raises:
        CannotCompareError: It is damaged or gone, or holds another number of rows than the log says.
    """
    from pyroaring import BitMap64

    try:
        stored = _inline(vector) if file is None else _in_file(vector, file)
        (magic,) = struct.unpack_from("<i", stored)
        if magic != MAGIC:
            raise ValueError(f"it begins with {magic} and not with {MAGIC}")
        rows = list(BitMap64.deserialize(stored[4:]))
    except (OSError, ValueError, OverflowError, struct.error) as error:
        raise CannotCompareError(f"a deletion vector cannot be read: {' '.join(str(error).split())[:200]}") from error
    if len(rows) != int(vector["cardinality"]):
        raise CannotCompareError(f"a deletion vector holds {len(rows)} rows, the log says {vector['cardinality']}")
    return rows


def _inline(vector: Mapping[str, Any]) -> bytes:
    return z85_decode(vector["pathOrInlineDv"])[: int(vector["sizeInBytes"])]


def _in_file(vector: Mapping[str, Any], source: str | bytes) -> bytes:
    """The vector in a file that may hold many: its size, itself, and a checksum, numbers in big-endian order."""
    expected = int(vector["sizeInBytes"])
    with open(source, "rb") if isinstance(source, str) else io.BytesIO(source) as file:
        file.seek(int(vector.get("offset") or 0))
        head, stored, tail = file.read(4), file.read(expected), file.read(4)
    if struct.unpack(">i", head) != (expected,) or struct.unpack(">I", tail) != (zlib.crc32(stored),):
        raise ValueError("its size or its checksum is not the one that was written")
    return stored
