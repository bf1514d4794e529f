"""Find files that the log removed and that still lie on storage: what a vacuum may delete.

``nothing_left`` answers cheaply whether any file removed before a time still exists. On most nights none does: the log
names removals of 30 days, and those older than a week were deleted long ago. So it reads only commits older than the
time, and only the names in their folders. "Yes, something is left" may turn out to be
a protected file; "nothing is left" must be right.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any
from urllib.parse import unquote

from maintainer.delta.log.replay.log_replay import LogReplay, live_uris
from maintainer.delta.storage.file_store import StoredFile, local_path
from maintainer.delta.storage.log_paths import is_absolute, short_uri
from maintainer.delta.storage.table_log import LogEntry
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.model.table.table_facts import RemovedFile, TableFacts

NAMES_AT_ONCE = 200_000
"""Candidates that are in memory at once."""

LIST_FROM = 8
"""From so many candidates in one folder on, the folder is listed instead of asking for each file."""


@dataclass(frozen=True, slots=True)
class Expired(Collection[str]):
    """The URIs of removals before a time. They are not kept: there may be a million.

    Never a file or deletion vector that is protected (``protected_uris`` of this time) by this spelling; never anything
    outside the table's root. A data file and its successors with other deletion vectors are one file: it is kept as
    long as any of them is. Whether one of those on storage is needed under another spelling is asked of the storage
    (see ``file_identity``).
    """

    storage: TableStorage
    log: LogReplay
    protected: Container[str]
    removed_before_ms: int

    def __contains__(self, uri: object) -> bool:
        removal = self.log.removal_of(str(uri))
        return removal is not None and self._is_expired(str(uri), removal)

    def __iter__(self) -> Iterator[str]:
        return (uri for uri, removal in self.log.removals() if self._is_expired(uri, removal))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _is_expired(self, uri: str, removal: RemovedFile) -> bool:
        is_old = removal.removed_at_ms < self.removed_before_ms
        return is_old and uri not in self.protected and self.storage.is_below_root(uri)


def protected_uris(storage: TableStorage, facts: TableFacts, log: LogReplay, removed_before_ms: int) -> set[str]:
    """Return URIs that the version in ``facts`` needs, or any version that was current at or after a time."""
    return live_uris(storage, facts) | log.needed_since(removed_before_ms)


def as_removed_file(log: LogReplay, stored: StoredFile) -> RemovedFile:
    """Return the removal of a file that exists, with its size on storage: nearly always the one that the log says."""
    removal = log.named[short_uri(log.root_uri, stored.uri)]
    assert isinstance(removal, RemovedFile)
    is_same = removal.size_bytes == stored.size_bytes
    return removal if is_same else replace(removal, size_bytes=stored.size_bytes)


def nothing_left(
    storage: TableStorage, facts: TableFacts, removed_before_ms: int, entries: Sequence[LogEntry] | None = None
) -> bool:
    """Whether no file that was removed before a time can still exist; live files do not count.

    A removal counts from its commit file's own time at the earliest (see ``log_replay``), so a commit file that is not
    older holds none. Where storage is not a local disk, old removals alone make the answer no: asking for each file
    would cost as much as looking properly. ``entries`` are the commits in the log where they were listed already.
    """
    entries = storage.commits() if entries is None else entries
    old = [entry for entry in entries if entry.modification_time_ms < removed_before_ms]
    removed = (path for _, actions in storage.brief_commits(old) for path in removed_paths(storage, actions))
    if storage.files.asks_by_request:
        return next(removed, None) is None
    live: frozenset[str] | None = None
    while part := set(islice(removed, NAMES_AT_ONCE)):
        present = _present(storage, part)
        live = _live(facts) if live is None and present else live
        if live is not None and not present <= live:
            return False
    return True


def removed_paths(storage: TableStorage, actions: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Paths below the table's root, decoded, of all files that actions remove: data, vectors, change data."""
    start, vectors = len(storage.root_uri) + 1, set[str]()  # one file holds the vectors of many
    for kind, body in ((kind, body) for action in actions for kind, body in action.items()):
        if kind not in ("remove", "cdc"):
            continue
        path = str(body["path"])
        if not is_absolute(path):
            yield unquote(path) if "%" in path else path
        elif storage.is_below_root(uri := storage.uri(path)):
            yield unquote(uri[start:])
        vectors.update(uri for uri in (storage.deletion_vector_uri({kind: body}),) if uri is not None)
    yield from (unquote(uri[start:]) for uri in vectors if storage.is_below_root(uri))


def _present(storage: TableStorage, removed: Iterable[str]) -> set[str]:
    """Return the paths below the root that exist now."""
    root = local_path(storage.root_uri)
    names: dict[str, set[str]] = defaultdict(set)
    for path in removed:
        folder, _, name = path.rpartition("/")
        names[folder].add(name)
    paths: set[str] = set()
    for folder, folder_names in names.items():
        paths.update(
            f"{folder}/{name}" if folder else name for name in _in_folder(os.path.join(root, folder), folder_names)
        )
    return paths


def _in_folder(folder: str, names: set[str]) -> Iterable[str]:
    if len(names) < LIST_FROM:
        return [name for name in names if os.path.lexists(os.path.join(folder, name))]
    try:
        return names.intersection(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return ()


def _live(facts: TableFacts) -> frozenset[str]:
    return frozenset(unquote(file.path) if "%" in file.path else file.path for file in facts.files)
