"""Files that the log removed and that still lie on storage: what vacuum may delete.

Expired tombstones are no longer in Delta's snapshot, so the ``remove`` actions are read from the commit files
themselves. A file counts as removed when the *commit* happened, not when the remover says it began
(``deletionTimestamp``): until the commit, readers of the version before it need the file.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from maintainer.delta.storage import LogEntry, StoredFile, TableStorage
from maintainer.model.table import RemovedFile, TableFacts

LIST_FROM = 8
"""From so many candidates in one folder on, the folder is listed instead of asking for each file."""


@dataclass(slots=True)
class _Candidate:
    """The last removal of one file: path as in the log (or relative to the root), size, time, kind."""

    path: str
    size_bytes: int
    removed_at_ms: int
    kind: str
    version: int


def find_removed_files(storage: TableStorage, facts: TableFacts, *, removed_before_ms: int) -> tuple[RemovedFile, ...]:
    """Read the whole log and look on storage; oldest removal first.

    Never a file or deletion vector that the version in ``facts``, or any version that was current at or after
    ``removed_before_ms``, refers to; never anything outside the table's root; never a symlink or a folder.
    """
    protected, candidates = _replay(storage, facts, removed_before_ms)
    expired = {uri: one for uri, one in candidates.items() if uri not in protected and storage.is_below_root(uri)}
    present = stored_files(storage, list(expired))
    found = [
        RemovedFile(one.path, present[uri].size_bytes, one.removed_at_ms, one.kind, one.version)
        for uri, one in expired.items()
        if uri in present
    ]
    return tuple(sorted(found, key=lambda one: (one.removed_at_ms, one.path)))


def _replay(storage: TableStorage, facts: TableFacts, removed_before_ms: int) -> tuple[set[str], dict[str, _Candidate]]:
    """URIs that are needed, and by URI the last removal of each file that was removed in time."""
    protected = {storage.uri(one.path) for one in facts.files}
    protected |= _live_vectors(storage, facts)
    candidates: dict[str, _Candidate] = {}
    committed_at_ms = 0
    for entry in storage.commits():
        late = entry.version > facts.version
        actions = list(storage.actions(entry, with_adds=late))
        # A writer whose clock is behind must not make its removals look old: neither older than the commit file
        # is on storage, nor older than the commit before.
        committed_at_ms = max(committed_at_ms, commit_time_ms(entry, actions), entry.modification_time_ms)
        for action in actions:
            if late and "add" in action:
                protected |= _uris_of(storage, action)
            if "remove" not in action:
                continue
            body = action["remove"]
            removed_at_ms = max(committed_at_ms, int(body.get("deletionTimestamp") or 0))
            if late or removed_at_ms >= removed_before_ms:
                protected |= _uris_of(storage, action)
                continue
            size = int(body.get("size") or 0)
            if not _is_absolute(body["path"]):
                candidates[storage.uri(body["path"])] = _Candidate(
                    body["path"], size, removed_at_ms, "data", entry.version
                )
            vector = storage.deletion_vector_uri(action)
            if vector is not None and storage.is_below_root(vector):
                relative = vector[len(storage.root_uri) + 1 :]
                size = int(body["deletionVector"].get("sizeInBytes") or 0)
                candidates[vector] = _Candidate(relative, size, removed_at_ms, "deletion_vector", entry.version)
    return protected, candidates


def _is_absolute(path: str) -> bool:
    """Whether a path in the log names a file of another table (a clone's source), wherever that lies."""
    return path.startswith("/") or bool(urlsplit(path).scheme)


def _uris_of(storage: TableStorage, action: dict[str, Any]) -> set[str]:
    (body,) = action.values()
    vector = storage.deletion_vector_uri(action)
    return {storage.uri(body["path"]), *([vector] if vector else [])}


def _live_vectors(storage: TableStorage, facts: TableFacts) -> set[str]:
    """The deletion vector files that live files of the facts' version refer to."""
    ids = {one.deletion_vector.unique_id for one in facts.files if one.deletion_vector is not None}
    return {uri for uri in map(storage.vector_uri_of_id, ids) if uri is not None}


def commit_time_ms(entry: LogEntry, actions: list[dict[str, Any]]) -> int:
    """When a commit happened: as it says itself, else the time of its file."""
    info: dict[str, Any] = next((one["commitInfo"] for one in actions if "commitInfo" in one), {})
    said = info.get("inCommitTimestamp") or info.get("timestamp")
    return int(said) if said else entry.modification_time_ms


def stored_files(storage: TableStorage, uris: list[str]) -> dict[str, StoredFile]:
    """Those of the URIs that are regular files on storage now."""
    by_folder: dict[str, list[str]] = defaultdict(list)
    for uri in uris:
        by_folder[uri.rpartition("/")[0]].append(uri)
    found: dict[str, StoredFile] = {}
    for folder, wanted in by_folder.items():
        if len(wanted) >= LIST_FROM:
            children = storage.children(folder)
            found.update((uri, children[uri]) for uri in wanted if uri in children)
        else:
            statuses = ((uri, storage.status(uri)) for uri in wanted)
            found.update((uri, status) for uri, status in statuses if status is not None)
    return {uri: one for uri, one in found.items() if not one.is_dir and not one.is_symlink}
