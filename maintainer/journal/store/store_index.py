"""Which content of the cache the store has: by object, the size and tag there, and the file's size and time here.

It only saves requests. Where it is lost or damaged, objects are fetched again and files published again.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from maintainer.journal.folder.atomic_files import exclusive, write_atomically
from maintainer.model.codec import decode

INDEX_FILE = "store_index.json"


@dataclass(frozen=True, slots=True)
class Entry:
    """One object, and the file (or the part of a file) that it has the content of.

    ``file_size_bytes`` and ``file_time_ns`` are those of the file when both were the same; 0 for a part of a record.
    """

    size_bytes: int
    tag: str
    file_size_bytes: int = 0
    file_time_ns: int = 0


@dataclass(frozen=True, slots=True)
class _Index:
    objects: dict[str, Entry]


class StoreIndex:
    """The index of one cache; two processes may use one. Not for several threads at once."""

    def __init__(self, cache: Path) -> None:
        self._path = cache / INDEX_FILE
        self._objects = self._read()
        self._changed: dict[str, Entry | None] = {}

    def get(self, name: str) -> Entry | None:
        """Return what is known of an object."""
        return self._objects.get(name)

    def put(self, name: str, entry: Entry) -> None:
        """Remember that an object has the content of a file here."""
        self._objects[name] = self._changed[name] = entry

    def drop(self, name: str) -> None:
        """Forget an object."""
        self._objects.pop(name, None)
        self._changed[name] = None

    def names(self, folder: str) -> Iterator[str]:
        """Yield the names of the objects below a folder."""
        return (name for name in tuple(self._objects) if name.startswith(folder))

    def save(self) -> None:
        """Keep what changed, beside what another process kept meanwhile; never raises."""
        if not self._changed:
            return
        with contextlib.suppress(OSError), exclusive(self._path.with_suffix(".lock")):
            objects = self._read()
            for name, entry in self._changed.items():
                if entry is None:
                    objects.pop(name, None)
                else:
                    objects[name] = entry
            write_atomically(self._path, json.dumps(asdict(_Index(objects))).encode("utf-8", "surrogatepass"))
            self._changed.clear()

    def _read(self) -> dict[str, Entry]:
        with contextlib.suppress(OSError, ValueError):
            return decode(_Index, json.loads(self._path.read_bytes())).objects
        return {}
