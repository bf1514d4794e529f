"""Files that the log removed and that still lie on storage: what vacuum may delete."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from maintainer.delta.file_store import StoredFile
from maintainer.delta.log_replay import LogReplay, Removal, live_uris
from maintainer.delta.storage import TableStorage
from maintainer.model.table import RemovedFile, TableFacts

LIST_FROM = 8
"""From so many candidates in one folder on, the folder is listed instead of asking for each file."""


def expired(storage: TableStorage, facts: TableFacts, log: LogReplay, *, removed_before_ms: int) -> dict[str, Removal]:
    """Removals before the time given, by URI.

    Never a file or deletion vector that the version in ``facts``, or any version that was current at or after
    ``removed_before_ms``, refers to by this spelling; never anything outside the table's root. A data file and its
    successors with other deletion vectors are one file: it is kept as long as any of them is. Whether one of those on
    storage is needed under another spelling is asked of the storage (see ``file_identity``).
    """
    protected = protected_uris(storage, facts, log, removed_before_ms)
    return {
        uri: one
        for uri, one in log.removals.items()
        if one.removed_at_ms < removed_before_ms and uri not in protected and storage.is_below_root(uri)
    }


def protected_uris(storage: TableStorage, facts: TableFacts, log: LogReplay, removed_before_ms: int) -> set[str]:
    """URIs of all that the version in ``facts``, or any that was current at the moment or after it, refers to."""
    return live_uris(storage, facts) | log.needed_since(removed_before_ms)


def as_removed_files(found: dict[str, Removal], present: dict[str, StoredFile]) -> tuple[RemovedFile, ...]:
    """Those removals whose files are there, with their sizes on storage; oldest removal first."""
    files = [
        RemovedFile(one.path, present[uri].size_bytes, one.removed_at_ms, one.kind, one.version, one.replaced)
        for uri, one in found.items()
        if uri in present
    ]
    return tuple(sorted(files, key=lambda one: (one.removed_at_ms, one.path)))


def entries_of(storage: TableStorage, uris: Iterable[str]) -> dict[str, StoredFile]:
    """Those of the URIs that are on storage now, whatever they are. Symlinks are not followed."""
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
    return found


def stored_files(storage: TableStorage, uris: Iterable[str]) -> dict[str, StoredFile]:
    """Those of the URIs that are regular files on storage now."""
    return {uri: one for uri, one in entries_of(storage, uris).items() if not one.is_dir and not one.is_symlink}
