"""Find files that the log removed and that still lie on storage: what a vacuum may delete.

``nothing_left`` answers cheaply whether any file removed before a time still exists. On most nights none does: the log
names removals of 30 days, and those older than a week were deleted long ago. So it reads only commits older than the
time, and only the names in their folders. "Yes, something is left" may turn out to be
a protected file; "nothing is left" must be right.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from maintainer.delta.log.replay.log_replay import LogReplay, live_uris
from maintainer.delta.storage.file_store import StoredFile, local_path
from maintainer.delta.storage.log_paths import is_absolute
from maintainer.delta.storage.table_log import LogEntry
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.model.table.table_facts import RemovedFile, TableFacts

LIST_FROM = 8
"""From so many candidates in one folder on, the folder is listed instead of asking for each file."""


def expired(
    storage: TableStorage, log: LogReplay, protected: set[str], *, removed_before_ms: int
) -> dict[str, RemovedFile]:
    """Return removals before a time, by URI.

    Never a file or deletion vector that is protected (``protected_uris`` of this time) by this spelling; never anything
    outside the table's root. A data file and its successors with other deletion vectors are one file: it is kept as
    long as any of them is. Whether one of those on storage is needed under another spelling is asked of the storage
    (see ``file_identity``).
    """
    return {
        uri: removal
        for uri, removal in log.removals.items()
        if removal.removed_at_ms < removed_before_ms and uri not in protected and storage.is_below_root(uri)
    }


def protected_uris(storage: TableStorage, facts: TableFacts, log: LogReplay, removed_before_ms: int) -> set[str]:
    """Return URIs that the version in ``facts`` needs, or any version that was current at or after a time."""
    return live_uris(storage, facts) | log.needed_since(removed_before_ms)


def as_removed_files(removals: dict[str, RemovedFile], present: dict[str, StoredFile]) -> tuple[RemovedFile, ...]:
    """Return the removals whose files exist, with their sizes on storage, oldest removal first."""
    files = [
        replace(removal, size_bytes=present[uri].size_bytes) for uri, removal in removals.items() if uri in present
    ]
    return tuple(sorted(files, key=lambda file: (file.removed_at_ms, file.path)))


def nothing_left(
    storage: TableStorage, facts: TableFacts, removed_before_ms: int, entries: Sequence[LogEntry] | None = None
) -> bool:
    """Whether no file that was removed before a time can still exist; live files do not count.

    A removal counts from its commit file's own time at the earliest (see ``log_replay``), so a commit file that is not
    older holds none. Where storage is not a local disk, old removals alone make the answer no: asking for each file
    would cost as much as looking properly. ``entries`` are the commits in the log where they were listed already.
    """
    names: dict[str, set[str]] = defaultdict(set)
    entries = storage.commits() if entries is None else entries
    old = [entry for entry in entries if entry.modification_time_ms < removed_before_ms]
    for _, actions in storage.brief_commits(old):
        for path in removed_paths(storage, actions):
            folder, _, name = path.rpartition("/")
            names[folder].add(name)
        if names and storage.files.asks_by_request:
            return False
    if not names:
        return True
    present = _present(storage, names)
    return not present or present <= _live(facts)


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


def _present(storage: TableStorage, names: dict[str, set[str]]) -> set[str]:
    """Return the names that exist now, as paths below the root."""
    root = local_path(storage.root_uri)
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


def _live(facts: TableFacts) -> set[str]:
    return {unquote(file.path) if "%" in file.path else file.path for file in facts.files}
