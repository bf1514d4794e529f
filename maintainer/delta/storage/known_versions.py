"""Keep what was read of versions of tables, bounded by files and versions, whatever the size of the fleet."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from maintainer.delta.storage.file_store import StoredFile
from maintainer.delta.storage.table_storage import TableStorage

_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True)
class KnownVersion(Generic[_Read]):
    """What was read of a version, the commit file that made it, and how many live files it has."""

    read: _Read
    version: int
    commit: StoredFile | None
    num_files: int


class KnownVersions(Generic[_Read]):
    """Known versions by a key of who reads them; the least recently used goes first. One worker's, used on its thread.

    What is kept counts only while its commit file is the same one: another writer may replace a version, and a table
    may be dropped and created again.
    """

    def __init__(self, max_files: int, max_versions: int) -> None:
        self._max_files = max_files
        self._max_versions = max_versions
        self._known: OrderedDict[Hashable, KnownVersion[_Read]] = OrderedDict()
        self.num_files = 0

    def __len__(self) -> int:
        return len(self._known)

    def kept(self, key: Hashable) -> KnownVersion[_Read] | None:
        """Return what is kept, as it is, and mark it as the most recently used."""
        known = self._known.get(key)
        if known is not None:
            self._known.move_to_end(key)
        return known

    def get(self, key: Hashable, storage: TableStorage) -> KnownVersion[_Read] | None:
        """Return what is kept, if the table's storage has the same commit file; else drop it."""
        known = self.kept(key)
        if known is not None and storage.status(storage.commit_uri(known.version)) != known.commit:
            self.forget(key)
            return None
        return known

    def keep(self, key: Hashable, known: KnownVersion[_Read]) -> None:
        """Keep a version in the place of the one before; one with too many files is not kept."""
        self.forget(key)
        if known.num_files > self._max_files:
            return
        self._known[key] = known
        self.num_files += known.num_files
        while self.num_files > self._max_files or len(self._known) > self._max_versions:
            self.forget(next(iter(self._known)))

    def forget(self, key: Hashable) -> None:
        """Drop what is kept under a key."""
        known = self._known.pop(key, None)
        if known is not None:
            self.num_files -= known.num_files

    def clear(self) -> None:
        """Drop all."""
        self._known.clear()
        self.num_files = 0
