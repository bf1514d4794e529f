"""The index of a cache: which content of its files the store has.

It only saves requests. Where it is lost or damaged, objects are fetched again and files published again.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from maintainer.journal.folder.atomic_files import exclusive, write_atomically
from maintainer.model.codec import decode

INDEX_FILE = "store_index.json"


@dataclass(frozen=True, slots=True)
class MirroredObject:
    """One object, and the file (or the part of a file) that it has the content of.

    ``file_size_bytes`` and ``file_time_ns`` are those of the file when both were the same; 0 for a part of a record.
    """

    size_bytes: int
    tag: str
    file_size_bytes: int = 0
    file_time_ns: int = 0

    def is_of(self, file: os.stat_result) -> bool:
        """Whether a file is as it was when both were the same."""
        return (self.file_size_bytes, self.file_time_ns) == (file.st_size, file.st_mtime_ns)


@dataclass(frozen=True, slots=True)
class _Index:
    objects: dict[str, MirroredObject]


class StoreIndex:
    """The index of one cache. Used from several threads; several processes may use one cache."""

    def __init__(self, cache: Path) -> None:
        self._path = cache / INDEX_FILE
        self._lock = threading.Lock()
        self._objects: dict[str, MirroredObject] = {}
        self._changed: dict[str, MirroredObject | None] = {}
        self._read_as: tuple[int, int] | None = None
        self.refresh()

    def refresh(self) -> None:
        """Take in what other processes kept; never raises."""
        with self._lock:
            file = self._file()
            if file != self._read_as:
                self._objects, self._read_as = _present(self._read() | self._changed), file

    def get(self, name: str) -> MirroredObject | None:
        """Return what is known of an object."""
        with self._lock:
            return self._objects.get(name)

    def put(self, name: str, entry: MirroredObject) -> None:
        """Remember that an object has the content of a file here."""
        with self._lock:
            self._objects[name] = self._changed[name] = entry

    def drop(self, name: str) -> None:
        with self._lock:
            self._objects.pop(name, None)
            self._changed[name] = None

    def names(self, folder: str) -> Iterator[str]:
        """Yield the names of the objects below a folder."""
        with self._lock:
            names = tuple(self._objects)
        return (name for name in names if name.startswith(folder))

    def save(self) -> None:
        """Keep what changed, beside what another process kept meanwhile; never raises."""
        with self._lock:
            changed = dict(self._changed)
        if not changed:
            return
        with contextlib.suppress(OSError), exclusive(self._path.with_suffix(".lock")):
            objects = _present(self._read() | changed)
            write_atomically(self._path, json.dumps(asdict(_Index(objects))).encode("utf-8", "surrogatepass"))
            with self._lock:
                for name in [name for name, entry in changed.items() if self._changed[name] is entry]:
                    del self._changed[name]

    def _file(self) -> tuple[int, int] | None:
        with contextlib.suppress(OSError):
            file = self._path.stat()
            return file.st_ino, file.st_mtime_ns
        return None

    def _read(self) -> dict[str, MirroredObject]:
        with contextlib.suppress(OSError, ValueError):
            return decode(_Index, json.loads(self._path.read_bytes())).objects
        return {}


def _present(objects: Mapping[str, MirroredObject | None]) -> dict[str, MirroredObject]:
    return {name: entry for name, entry in objects.items() if entry is not None}
