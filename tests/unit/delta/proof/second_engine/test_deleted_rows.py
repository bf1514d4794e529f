"""Deletion vectors as the protocol describes them, and damaged ones."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from pyroaring import BitMap64

from maintainer.delta.proof.second_engine.column_values import MAGIC, CannotCompareError, deleted_rows

ROWS = [0, 5, 65_536, 2**33 + 1]
STORED = struct.pack("<i", MAGIC) + BitMap64(ROWS).serialize()


def vector_in(path: Path, stored: bytes = STORED, *, crc: int | None = None, **changes: Any) -> dict[str, Any]:
    head = b"\x01" + struct.pack(">i", len(stored))
    path.write_bytes(head + stored + struct.pack(">I", zlib.crc32(stored) if crc is None else crc))
    vector = {"storageType": "u", "offset": 1, "sizeInBytes": len(stored), "cardinality": len(ROWS)}
    return {**vector, **changes}


def test_rows_are_read_from_a_file_and_from_the_log(tmp_path: Path) -> None:
    path = tmp_path / "deletion_vector.bin"
    assert deleted_rows(vector_in(path), str(path)) == ROWS
    # The example of Delta's protocol.
    inline = {"storageType": "i", "pathOrInlineDv": "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
              "sizeInBytes": 44, "cardinality": 6}  # fmt: skip
    assert deleted_rows(inline, None) == [3, 4, 7, 11, 18, 29]


@pytest.mark.parametrize(
    ("stored", "changes", "text"),
    [
        (STORED, {"cardinality": 5}, "holds 4 rows, the log says 5"),
        (STORED, {"crc": 1}, "its checksum"),
        (STORED, {"sizeInBytes": len(STORED) + 1}, "its size"),
        (STORED, {"offset": 9_000}, "cannot be read"),
        (struct.pack("<i", MAGIC - 1) + STORED[4:], {}, "begins with"),
        (STORED[:-3], {}, "cannot be read"),
        (b"", {}, "cannot be read"),
    ],
)
def test_a_damaged_vector_is_read_by_nobody(tmp_path: Path, stored: bytes, changes: dict[str, Any], text: str) -> None:
    path = tmp_path / "deletion_vector.bin"
    with pytest.raises(CannotCompareError, match=text):
        deleted_rows(vector_in(path, stored, **changes), str(path))


def test_a_vector_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(CannotCompareError, match="No such file"):
        deleted_rows({"sizeInBytes": 1, "cardinality": 1}, str(tmp_path / "gone.bin"))
