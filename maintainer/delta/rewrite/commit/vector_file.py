"""Write deletion vectors for new files, in one file as Delta does ("Deletion Vector Format" in Delta's protocol)."""

from __future__ import annotations

import struct
import uuid
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from maintainer.delta.storage.table_storage import TableStorage
from maintainer.model.table.log_names import z85_encode

_FORMAT_VERSION = b"\x01"
_MAGIC = struct.pack("<i", 1681511377)


def write_vectors(
    storage: TableStorage, deleted_rows: Mapping[str, Sequence[int]]
) -> tuple[str, dict[str, dict[str, Any]]]:
    """Write the deletion vectors of some files, durably.

    Args:
        storage: The table's.
        deleted_rows: Row numbers by path of the file.

    Returns:
        The URI of the new file, and the ``deletionVector`` of each ``add`` action by path.

    Raises:
        OSError: It cannot be written; nothing of it is left.
    """
    from pyroaring import BitMap64

    name = z85_encode(uuid.uuid4().bytes)
    content = bytearray(_FORMAT_VERSION)
    vectors: dict[str, dict[str, Any]] = {}
    for path, rows in deleted_rows.items():
        bitmap = _MAGIC + BitMap64(rows).serialize()
        vectors[path] = {
            "storageType": "u",
            "pathOrInlineDv": name,
            "offset": len(content),
            "sizeInBytes": len(bitmap),
            "cardinality": len(rows),
        }
        content += struct.pack(">i", len(bitmap)) + bitmap + struct.pack(">I", zlib.crc32(bitmap))
    uri = storage.vector_uri("u", name)
    storage.files.write(uri, bytes(content))
    return uri, vectors
