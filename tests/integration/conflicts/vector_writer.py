"""A writer and a reader of tables with deletion vectors that share no code with Delta, Spark or ours.

They are made of JSON, pyarrow and CRoaring, for tables on a local disk whose log has no checkpoint. A delete is one
commit: it marks rows by place, and removes files of which no row is left, as the protocol asks.
"""

from __future__ import annotations

import base64
import json
import os
import struct
import time
import uuid
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq
from pyroaring import BitMap64

from tests.support.suites.store_lake import is_on_store

Row = dict[str, Any]
_MAGIC = 1681511377
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_RFC_1924 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"


def commits(path: Path) -> list[list[dict[str, Any]]]:
    """The actions of each commit, by version."""
    files = sorted((path / "_delta_log").glob("*.json"))
    return [[json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] for file in files]


def live_adds(path: Path) -> dict[str, dict[str, Any]]:
    """The ``add`` actions of the newest version, by path."""
    live: dict[str, dict[str, Any]] = {}
    for actions in commits(path):
        for action in actions:
            if "remove" in action:
                live.pop(action["remove"]["path"], None)
        live.update((action["add"]["path"], action["add"]) for action in actions if "add" in action)
    return live


def live_rows(path: Path) -> list[Row]:
    """The rows of the newest version, by the table's own names of columns."""
    names = _logical_names(path)
    return [
        {names[name]: value for name, value in row.items()}
        for add in live_adds(path).values()
        for place, row in _stored_rows(path, add, names)
        if place not in deleted_places(path, add)
    ]


def deleted_places(path: Path, add: dict[str, Any]) -> set[int]:
    """The places of a file's soft-deleted rows."""
    vector = add.get("deletionVector")
    if not vector:
        return set()
    assert vector["storageType"] == "u", "only vectors in files beside the table's are read here"
    stored = (path / vector_file(vector)).read_bytes()
    start = vector["offset"]
    (size,) = struct.unpack_from(">i", stored, start)
    data = stored[start + 4 : start + 4 + size]
    assert size == vector["sizeInBytes"]
    assert struct.unpack_from(">I", stored, start + 4 + size) == (zlib.crc32(data),)
    assert struct.unpack_from("<i", data) == (_MAGIC,)
    places = set(BitMap64.deserialize(data[4:]))
    assert len(places) == vector["cardinality"]
    return places


def vector_file(vector: dict[str, Any]) -> str:
    """The name of the file that holds a vector."""
    encoded = vector["pathOrInlineDv"][-20:].translate(str.maketrans(_Z85, _RFC_1924))
    return f"deletion_vector_{uuid.UUID(bytes=base64.b85decode(encoded))}.bin"


def delete(path: Path, is_deleted: Callable[[Row], bool]) -> int:
    """Delete rows in one commit; returns its version."""
    names, actions = _logical_names(path), []
    now_ms = int(time.time() * 1000)
    for add in live_adds(path).values():
        before = deleted_places(path, add)
        rows = [(place, row) for place, row in _stored_rows(path, add, names) if place not in before]
        chosen = {place for place, row in rows if is_deleted({names[name]: value for name, value in row.items()})}
        if not chosen:
            continue
        same = {key: add[key] for key in ("path", "partitionValues", "size", "deletionVector") if add.get(key)}
        actions.append({"remove": {**same, "deletionTimestamp": now_ms, "dataChange": True,
                                   "extendedFileMetadata": True}})  # fmt: skip
        if len(chosen) < len(rows):
            stats = json.dumps({**json.loads(add["stats"]), "tightBounds": False})
            vector = _write_vector(path, sorted(before | chosen))
            actions.append({"add": {**add, "deletionVector": vector, "stats": stats, "dataChange": True}})
    return _commit(path, "DELETE", actions)


def _stored_rows(path: Path, add: dict[str, Any], names: dict[str, str]) -> Iterator[tuple[int, Row]]:
    """The rows of a file with their places, with soft-deleted ones; values of partitions as the log has them."""
    partition = {name: int(value) if value is not None else None for name, value in add["partitionValues"].items()}
    table = pq.ParquetFile(path / unquote(add["path"])).read()
    for place, row in enumerate(table.to_pylist()):
        yield place, {name: row[name] if name in row else partition[name] for name in names}


def _logical_names(path: Path) -> dict[str, str]:
    """The table's names of columns by those that are in the files."""
    metadata = [action["metaData"] for actions in commits(path) for action in actions if "metaData" in action][-1]
    fields = json.loads(metadata["schemaString"])["fields"]
    return {field["metadata"].get("delta.columnMapping.physicalName", field["name"]): field["name"] for field in fields}


def _write_vector(path: Path, places: list[int]) -> dict[str, Any]:
    name = uuid.uuid4()
    data = struct.pack("<i", _MAGIC) + BitMap64(places).serialize()
    content = b"\x01" + struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    (path / f"deletion_vector_{name}.bin").write_bytes(content)
    encoded = base64.b85encode(name.bytes).decode().translate(str.maketrans(_RFC_1924, _Z85))
    return {"storageType": "u", "pathOrInlineDv": encoded, "offset": 1, "sizeInBytes": len(data),
            "cardinality": len(places)}  # fmt: skip


def _commit(path: Path, operation: str, actions: list[dict[str, Any]]) -> int:
    """Put the next version into the log; fails where it exists."""
    version = len(commits(path))
    info = {"commitInfo": {"timestamp": int(time.time() * 1000), "operation": operation, "operationParameters": {},
                           "isolationLevel": "Serializable", "isBlindAppend": False, "engineInfo": "test"}}  # fmt: skip
    target = path / "_delta_log" / f"{version:020d}.json"
    descriptor = os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    if is_on_store():
        # To the server a file without a tag is not there: a writer that creates the name would take its place.
        os.setxattr(descriptor, "user.etag", f'"{uuid.uuid4().hex}"'.encode())
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(action) + "\n" for action in (info, *actions))
    return version
