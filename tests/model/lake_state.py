"""A table, its storage and our journal as one frozen value, in which every step of everybody is a small change.

A file is its name and the rows in it; a version is what its commit added and removed. Nothing here is ours: these are
the rules of Delta's protocol, as few of them as the promises need.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

Contents = tuple[tuple[str, tuple[int, ...]], ...]
"""Names of files and the rows in them, by place."""
Key = tuple[str, tuple[int, ...]]
"""A live file: its name, and the places of its soft-deleted rows."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One version: what it added and removed, when, and by which attempt of ours."""

    adds: tuple[Key, ...]
    removes: tuple[Key, ...]
    at: int
    stamp: str | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """A line of our journal: ``intent``, ``result`` or ``settled`` of an attempt, and what it says."""

    kind: str
    stamp: str
    version: int | None = None
    proven: bool = False
    deletes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Lake:
    """Everything that survives a crash, and the rows that the table must have.

    Attributes:
        log: The commits, by version.
        contents: The rows of each file that was ever written, by name.
        storage: Names of the files that are there.
        journal: What our runs wrote down.
        expected: The rows that acknowledged statements of others leave.
        clock: The time, in units of the retention.
    """

    log: tuple[Commit, ...]
    contents: Contents
    storage: frozenset[str]
    journal: tuple[Event, ...] = ()
    expected: frozenset[int] = frozenset()
    clock: int = 0

    @property
    def head(self) -> int:
        """The newest version."""
        return len(self.log) - 1

    def rows_of(self, name: str) -> tuple[int, ...]:
        """The rows of a file, by place."""
        return dict(self.contents)[name]

    def live(self, version: int | None = None) -> frozenset[Key]:
        """The live files of a version, the newest unless one is given."""
        return _live(self.log[: self.head + 1 if version is None else version + 1])

    def visible(self, keys: Iterable[Key]) -> list[int]:
        """The rows that a reader sees in some files, each as often as it is there."""
        rows = dict(self.contents)
        return sorted(row for name, gone in keys for place, row in enumerate(rows[name]) if place not in gone)

    def with_file(self, name: str, rows: Iterable[int]) -> Lake:
        """The lake with another file on storage, not yet in the log."""
        return replace(self, contents=(*self.contents, (name, tuple(rows))), storage=self.storage | {name})

    def without_file(self, name: str) -> Lake:
        """The lake after a file was deleted from storage."""
        return replace(self, storage=self.storage - {name})

    def committed(self, adds: Iterable[Key], removes: Iterable[Key], stamp: str | None = None) -> Lake:
        """The lake with one more version."""
        return replace(self, log=(*self.log, Commit(tuple(adds), tuple(removes), self.clock, stamp)))

    def noted(self, event: Event) -> Lake:
        """The lake with one more line in our journal."""
        return replace(self, journal=(*self.journal, event))

    def version_of(self, stamp: str) -> int | None:
        """The version that carries a stamp."""
        return next((version for version, commit in enumerate(self.log) if commit.stamp == stamp), None)

    def unproven_versions(self) -> tuple[int, ...]:
        """Versions of ours that no line of the journal says are proven."""
        proven = {event.version for event in self.journal if event.kind in ("result", "settled") and event.proven}
        return tuple(v for v, commit in enumerate(self.log) if commit.stamp is not None and v not in proven)


@lru_cache(maxsize=200_000)
def _live(log: tuple[Commit, ...]) -> frozenset[Key]:
    if not log:
        return frozenset()
    return (_live(log[:-1]) - frozenset(log[-1].removes)) | frozenset(log[-1].adds)
