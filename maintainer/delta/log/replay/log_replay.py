"""Read a table's whole log once: removals with their times, files still needed, and how long writes took.

Delta's snapshot no longer holds expired tombstones, so the actions are read from the commit files. A file counts as
removed at the time of the *commit*, not at ``deletionTimestamp`` when the remover began: until the commit, readers of
the version before it need the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from maintainer.delta.log.commit_history import info_of
from maintainer.delta.storage.log_paths import is_absolute
from maintainer.delta.storage.table_log import LogEntry
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.model.table.table_facts import RemovedFile, TableFacts

REVIVING = ("RESTORE", "CLONE", "CONVERT")
"""Operations that add files that are older than their commit."""

LONGEST_WRITE_BELIEVED_MS = 30 * 86_400_000
"""A file that is older than this when it is committed was not written by that commit but brought in."""


@dataclass(slots=True)
class LogReplay:
    """What the commits still in the log say, up to ``head``. Keys are qualified URIs.

    ``removals`` holds every file or deletion vector that was removed, and the change files of each commit, wherever
    they lie, with sizes as the log says; ``named_uris`` every file that any commit names. ``times`` are (version, when
    committed).
    """

    removals: dict[str, RemovedFile] = field(default_factory=dict)
    named_uris: set[str] = field(default_factory=set)
    times: list[tuple[int, int]] = field(default_factory=list)
    late: set[str] = field(default_factory=set)
    newest_file_ms: int = 0
    longest_write_ms: int = 0
    longest_write_version: int | None = None

    @property
    def first_version(self) -> int | None:
        """The oldest commit that the log still holds."""
        return self.times[0][0] if self.times else None

    @property
    def head(self) -> int:
        """The newest commit; -1 without any."""
        return self.times[-1][0] if self.times else -1

    def committed_at_ms(self, version: int) -> int | None:
        """Return when a version was committed; None if the log has no such commit."""
        return next((moment for number, moment in self.times if number == version), None)

    def oldest_promised(self, horizon_ms: int) -> int | None:
        """Return the version that was current at the horizon, or the oldest that the log still has after it."""
        before = [version for version, moment in self.times if moment <= horizon_ms]
        return before[-1] if before else self.first_version

    def needed_since(self, horizon_ms: int) -> set[str]:
        """Return files that are not live and that a version needs which was current at or after the horizon."""
        return self.late | {uri for uri, removal in self.removals.items() if removal.removed_at_ms >= horizon_ms}


def replay(storage: TableStorage, version: int, entries: Sequence[LogEntry] | None = None) -> LogReplay:
    """Read every commit that the log still has.

    What commits above ``version`` add or remove is in ``late``: needed, whatever its time. ``entries`` are the commits
    in the log where they were listed already.
    """
    log = LogReplay()
    committed_at_ms = 0
    for entry, actions in storage.brief_commits(storage.commits() if entries is None else entries):
        # A writer whose clock is behind must not make its removals look old: neither older than the commit file
        # is on storage, nor older than the commit before.
        said_ms = commit_time_ms(entry, actions)
        committed_at_ms = max(committed_at_ms, said_ms, entry.modification_time_ms)
        log.times.append((entry.version, committed_at_ms))
        log.newest_file_ms = entry.modification_time_ms
        adds = [(action["add"], storage.uri(action["add"]["path"])) for action in actions if "add" in action]
        new = [body for body, uri in adds if uri not in log.named_uris]
        took_ms = write_time_ms(info_of(actions), new, said_ms)
        if log.longest_write_ms < took_ms <= LONGEST_WRITE_BELIEVED_MS:
            log.longest_write_ms, log.longest_write_version = took_ms, entry.version
        late = entry.version > version
        for body, uri in adds:
            _record(log, storage, body, uri, late=late)
        for action in actions:
            if "remove" in action:
                _take_remove(log, storage, action["remove"], entry.version, committed_at_ms, late=late)
            elif "cdc" in action:
                _take_change_data(log, storage, action["cdc"], entry.version, committed_at_ms)
    return log


def _record(log: LogReplay, storage: TableStorage, body: dict[str, Any], uri: str, *, late: bool) -> str | None:
    """Record a data file and the file of its deletion vector; return the latter."""
    vector = storage.deletion_vector_uri({"any": body}) if "deletionVector" in body else None
    for named_uri in (uri, vector) if vector is not None else (uri,):
        log.named_uris.add(named_uri)
        if late:
            log.late.add(named_uri)
    if late:
        log.late.update(storage.readings(body["path"]))
    return vector


def _take_change_data(
    log: LogReplay, storage: TableStorage, body: dict[str, Any], version: int, committed_at_ms: int
) -> None:
    uri = storage.uri(body["path"])
    log.named_uris.add(uri)
    size = int(body.get("size") or 0)
    # The feed of a version is deleted, when its time has come, and never added back.
    path = _path_below(storage, body["path"], uri)
    log.removals[uri] = RemovedFile(path, size, committed_at_ms, "change_data", version, True)


def _take_remove(
    log: LogReplay, storage: TableStorage, body: dict[str, Any], version: int, committed_at_ms: int, *, late: bool
) -> None:
    path, uri = body["path"], storage.uri(body["path"])
    vector = _record(log, storage, body, uri, late=late)
    removed_at_ms = max(committed_at_ms, int(body.get("deletionTimestamp") or 0))
    replaced = body.get("dataChange") is False
    size = int(body.get("size") or 0)
    log.removals[uri] = RemovedFile(_path_below(storage, path, uri), size, removed_at_ms, "data", version, replaced)
    if vector is not None:
        size = int(body["deletionVector"].get("sizeInBytes") or 0)
        below = _path_below(storage, vector, vector)
        log.removals[vector] = RemovedFile(below, size, removed_at_ms, "deletion_vector", version, replaced)


def _path_below(storage: TableStorage, path: str, uri: str) -> str:
    """Return a path of the log, made relative if it is absolute and lies below the root."""
    below_root = is_absolute(path) and storage.is_below_root(uri)
    return uri[len(storage.root_uri) + 1 :] if below_root else path


def uris_of(storage: TableStorage, action: dict[str, Any]) -> set[str]:
    """Return the data file and the deletion vector file that an add or remove names, in all readings of the path."""
    (body,) = action.values()
    vector = storage.deletion_vector_uri(action)
    return {*storage.readings(body["path"]), *([vector] if vector else [])}


def live_uris(storage: TableStorage, facts: TableFacts) -> set[str]:
    """URIs of all live data files and deletion vector files of the facts' version."""
    ids = {file.deletion_vector.unique_id for file in facts.files if file.deletion_vector is not None}
    vectors = {uri for uri in map(storage.vector_uri_of_id, ids) if uri is not None}
    return {uri for file in facts.files for uri in storage.readings(file.path)} | vectors


def commit_time_ms(entry: LogEntry, actions: list[dict[str, Any]]) -> int:
    """Return when a commit happened: its own timestamp, or else the time of its file."""
    info = info_of(actions)
    timestamp = info.get("inCommitTimestamp") or info.get("timestamp")
    return int(timestamp) if timestamp else entry.modification_time_ms


def write_time_ms(info: Mapping[str, Any], new_adds: list[dict[str, Any]], committed_at_ms: int) -> int:
    """Estimate how long a commit's writing took: since its first new file, or by its own metrics.

    Old files that a commit brings back (RESTORE, CLONE, a new deletion vector on an old file) do not count.
    """
    metrics = info.get("operationMetrics") or {}
    try:
        took = int(metrics.get("executionTimeMs") or 0)
    except (TypeError, ValueError):
        took = 0
    if any(word in str(info.get("operation") or "").upper() for word in REVIVING):
        return took
    written = [int(new_add["modificationTime"]) for new_add in new_adds if "deletionVector" not in new_add]
    return max(took, committed_at_ms - min(written)) if written else took
