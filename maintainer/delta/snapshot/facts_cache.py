"""Keep the facts of tables already read, bounded by files and tables, whatever the size of the fleet."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from maintainer.delta.storage.file_store import StoredFile
from maintainer.model.table.table_facts import TableFacts

MAX_FILES = 200_000
MAX_TABLES = 1_000
"""What is kept, least recently used first to go. A file costs the driver about 500 bytes."""


@dataclass(frozen=True, slots=True)
class KnownVersion:
    """The facts of a version, and the commit file that made it."""

    facts: TableFacts
    commit: StoredFile


class FactsCache:
    """Known versions by the table's location. One worker's, used on its thread."""

    def __init__(self, max_files: int = MAX_FILES, max_tables: int = MAX_TABLES) -> None:
        self._max_files = max_files
        self._max_tables = max_tables
        self._known: OrderedDict[str, KnownVersion] = OrderedDict()
        self.num_files = 0

    def __len__(self) -> int:
        return len(self._known)

    def get(self, location: str) -> KnownVersion | None:
        """Return what is known of a table, and mark it as the most recently used."""
        entry = self._known.get(location)
        if entry is not None:
            self._known.move_to_end(location)
        return entry

    def keep(self, location: str, entry: KnownVersion) -> None:
        """Keep a version in the place of the one before; a table that is too large is not kept."""
        self.forget(location)
        if len(entry.facts.files) > self._max_files:
            return
        self._known[location] = entry
        self.num_files += len(entry.facts.files)
        while self.num_files > self._max_files or len(self._known) > self._max_tables:
            self.forget(next(iter(self._known)))

    def forget(self, location: str) -> None:
        """Drop what is known of a table."""
        old = self._known.pop(location, None)
        if old is not None:
            self.num_files -= len(old.facts.files)
