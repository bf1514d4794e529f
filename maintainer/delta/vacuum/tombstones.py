"""Find files that the log removed and that still lie on storage: what a vacuum may delete.

``nothing_left`` answers cheaply whether any file removed before a time still exists. On most nights none does: the log
names removals of 30 days, and those older than a week were deleted long ago. So it reads only commits older than the
time, only the removals in their text, and only the names in their folders. "Yes, something is left" may turn out to be
a protected file; "nothing is left" must be right.
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import unquote

from maintainer.delta.log.replay.log_replay import LogReplay, Removal, live_uris
from maintainer.delta.storage.file_store import StoredFile, local_path
from maintainer.delta.storage.log_paths import is_absolute
from maintainer.delta.storage.table_log import LogEntry
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.model.table.table_facts import RemovedFile, TableFacts

LIST_FROM = 8
"""From so many candidates in one folder on, the folder is listed instead of asking for each file."""


def expired(
    storage: TableStorage, log: LogReplay, protected: set[str], *, removed_before_ms: int
) -> dict[str, Removal]:
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


def as_removed_files(removals: dict[str, Removal], present: dict[str, StoredFile]) -> tuple[RemovedFile, ...]:
    """Return the removals whose files exist, with their sizes on storage, oldest removal first."""
    files = [
        RemovedFile(
            removal.path,
            present[uri].size_bytes,
            removal.removed_at_ms,
            removal.kind,
            removal.version,
            removal.replaced,
        )
        for uri, removal in removals.items()
        if uri in present
    ]
    return tuple(sorted(files, key=lambda file: (file.removed_at_ms, file.path)))


def entries_of(storage: TableStorage, uris: Iterable[str]) -> dict[str, StoredFile]:
    """Return the entries among the URIs that exist now, of any kind. Symlinks are not followed."""
    return storage.files.look_many(list(uris))


_PATH = re.compile(rb'\n\{"(?:remove|cdc)":\{"path":"([^"\\]*)"')
_REMOVAL = re.compile(rb'\n\{"(?:remove|cdc)":\{"path":"([^"\\]*)"([^\n]*)')
_VECTOR = b'"deletionVector":{"storageType":"'

Vector = tuple[str, str]
"""A deletion vector's storage type, and its path or what it holds."""


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
    for _, commit in storage.bodies(old):
        for path in removed_paths(storage, commit):
            folder, _, name = path.rpartition("/")
            names[folder].add(name)
        if names and storage.files.asks_by_request:
            return False
    if not names:
        return True
    present = _present(storage, names)
    return not present or present <= _live(facts)


def removed_paths(storage: TableStorage, commit: bytes) -> Iterator[str]:
    """Paths below the table's root, decoded, of all files that a commit removes: data, vectors, change data."""
    paths, vectors = _quickly(commit) or _slowly(commit)
    absolute = [storage.vector_uri(kind, name) for kind, name in vectors]
    for path in paths:
        if is_absolute(path):
            absolute.append(storage.uri(path))
        else:
            yield unquote(path) if "%" in path else path
    start = len(storage.root_uri) + 1
    for uri in absolute:
        if storage.is_below_root(uri):
            yield unquote(uri[start:])


def _quickly(commit: bytes) -> tuple[list[str], set[Vector]] | None:
    """Read paths and deletion vector files from a commit as Delta writes it; None for any other form."""
    text = b"\n" + commit
    with_vectors = b'"deletionVector"' in commit
    matches = (_REMOVAL if with_vectors else _PATH).findall(text)
    if len(matches) != commit.count(b'"remove"') + commit.count(b'"cdc"'):
        return None  # spaces, escapes, another order of fields
    if not with_vectors:
        return [path.decode() for path in matches], set()
    vectors: set[bytes] = set()  # one file holds the vectors of many
    for _, fields_after_path in matches:
        at = fields_after_path.find(_VECTOR)
        end = fields_after_path.find(b'","offset"', at)
        if at >= 0 and end >= 0:
            vectors.add(fields_after_path[at + len(_VECTOR) : end])
        elif b'"deletionVector"' in fields_after_path:
            return None
    parts = [vector.decode().split('","pathOrInlineDv":"') for vector in vectors]
    if any(len(part) != 2 or part[0] not in ("u", "p") or "\\" in part[1] for part in parts):
        return None
    return [path.decode() for path, _ in matches], {(kind, name) for kind, name in parts}


def _slowly(commit: bytes) -> tuple[list[str], set[Vector]]:
    """Read the same from a commit of any writer, by parsing JSON."""
    paths: list[str] = []
    vectors: set[Vector] = set()
    for line in commit.split(b"\n"):
        if b'"remove"' not in line and b'"cdc"' not in line:
            continue
        action: dict[str, Any] = json.loads(line)
        for kind in ("remove", "cdc"):
            if kind in action:
                paths.append(action[kind]["path"])
                vector = action[kind].get("deletionVector")
                if vector and vector["storageType"] != "i":
                    vectors.add((vector["storageType"], vector["pathOrInlineDv"]))
    return paths, vectors


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
