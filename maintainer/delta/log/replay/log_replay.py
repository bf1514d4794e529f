"""Read a table's whole log once: removals with their times, files still needed, and how long writes took.

Delta's snapshot no longer holds expired tombstones, so the actions are read from the commit files. A file counts as
removed at the time of the *commit*, not at ``deletionTimestamp`` when the remover began: until the commit, readers of
the version before it need the file.

What plans read is kept until the deletions that follow, so that these read only what came since.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from maintainer.delta.log.commit_history import commit_of, commit_time_ms, info_of
from maintainer.delta.storage.log_paths import is_absolute, short_uri, whole_uri
from maintainer.delta.storage.table_log import LogEntry
from maintainer.delta.storage.table_storage import KnownVersion, KnownVersions, TableStorage
from maintainer.model.table.commit_records import MAINTENANCE, TableCommit, newest_maintenance
from maintainer.model.table.table_facts import RemovedFile, TableFacts

REVIVING = ("RESTORE", "CLONE", "CONVERT")
"""Operations that add files that are older than their commit."""

LONGEST_WRITE_BELIEVED_MS = 30 * 86_400_000
"""A file that is older than this when it is committed was not written by that commit but brought in."""


@dataclass(slots=True)
class LogReplay:
    """What the commits still in the log say, up to ``head``.

    ``named`` has every file or deletion vector that any commit names, and the change files of each commit, wherever
    they lie, by short URI: its last removal, with the size that the log says, or the version that added it where it was
    never removed. A file costs some 300 bytes: its path is its key, too. ``times`` are (version, when committed).

    ``entries`` are the commits that were read, and what those above ``planned_version`` add or remove is in ``late``:
    needed, whatever its time. After ``shorten`` all removals since ``whole_since_ms`` are in it, and some older ones.
    """

    root_uri: str = ""
    planned_version: int = -1
    entries: list[LogEntry] = field(default_factory=list)
    whole_since_ms: int = 0
    named: dict[str, RemovedFile | int] = field(default_factory=dict)
    times: list[tuple[int, int]] = field(default_factory=list)
    late: set[str] = field(default_factory=set)
    newest_file_ms: int = 0
    longest_write_ms: int = 0
    longest_write_version: int | None = None
    maintenance: tuple[TableCommit, ...] = ()

    @property
    def begins(self) -> tuple[int, int] | None:
        """The oldest commit that the log still holds with all that follow: its version, and when it was committed."""
        first: tuple[int, int] | None = None
        for version, moment in reversed(self.times):
            if first is not None and version != first[0] - 1:
                break
            first = (version, moment)
        return first

    @property
    def first_version(self) -> int | None:
        """The oldest commit that the log still holds with all that follow."""
        return self.begins[0] if self.begins else None

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
        return self.late | {uri for uri, removal in self.removals() if removal.removed_at_ms >= horizon_ms}

    def shorten(self, lying_there: Iterable[str], whole_since_ms: int) -> None:
        """Keep what a deletion looks at again: removals since a moment, and of older ones those of some URIs."""
        named, self.named = self.named, {}
        for key, removal in named.items():
            if isinstance(removal, RemovedFile) and removal.removed_at_ms >= whole_since_ms:
                self.named[key] = removal
        for uri in lying_there:
            removal = named[short_uri(self.root_uri, uri)]
            assert isinstance(removal, RemovedFile), uri
            self.remove(uri, removal)
        self.whole_since_ms = whole_since_ms

    def removals(self) -> Iterator[tuple[str, RemovedFile]]:
        """All removals by URI."""
        for key, removal in self.named.items():
            if isinstance(removal, RemovedFile):
                yield whole_uri(self.root_uri, key), removal

    def removal_of(self, uri: str) -> RemovedFile | None:
        """Return the last removal of a file by its URI; None where no commit removed it."""
        removal = self.named.get(short_uri(self.root_uri, uri))
        return removal if isinstance(removal, RemovedFile) else None

    def added_in(self, uri: str) -> int | None:
        """Return the first version that added a file; None where no commit in the log did."""
        named = self.named.get(short_uri(self.root_uri, uri))
        return named.added_in_version if isinstance(named, RemovedFile) else named

    def named_uris(self) -> Iterator[str]:
        """The URIs of all files that a commit names."""
        return (whole_uri(self.root_uri, key) for key in self.named)

    def is_named(self, uri: str) -> bool:
        """Whether any commit names a file."""
        return short_uri(self.root_uri, uri) in self.named

    def add(self, uri: str, version: int) -> None:
        """Take in that a version adds a file."""
        self.named.setdefault(short_uri(self.root_uri, uri), version)

    def remove(self, uri: str, removal: RemovedFile) -> None:
        """Take in a removal: where the path is the key, one text is kept."""
        key = short_uri(self.root_uri, uri)
        self.named.pop(key, None)
        self.named[removal.path if removal.path == key else key] = removal


def replay(
    storage: TableStorage, version: int, entries: Sequence[LogEntry] | None = None, read: LogReplay | None = None
) -> LogReplay:
    """Read every commit that the log still has.

    Args:
        storage: The table's.
        version: What was planned on.
        entries: The commits in the log where they were listed already.
        read: What was read of commits before them; it is taken on.
    """
    log = LogReplay(storage.root_uri, version) if read is None else read
    committed_at_ms = log.times[-1][1] if log.times else 0
    for entry, actions in storage.brief_commits(storage.commits() if entries is None else entries):
        log.entries.append(entry)
        # A writer whose clock is behind must not make its removals look old: neither older than the commit file
        # is on storage, nor older than the commit before.
        info = info_of(actions)
        said_ms = commit_time_ms(entry, info)
        committed_at_ms = max(committed_at_ms, said_ms, entry.modification_time_ms)
        log.times.append((entry.version, committed_at_ms))
        log.newest_file_ms = entry.modification_time_ms
        if str(info.get("operation")).upper() in MAINTENANCE:
            log.maintenance = newest_maintenance((*log.maintenance, commit_of(entry, info)))
        late, first_ms = entry.version > version, None
        for action in actions:
            if "add" in action:
                body, uri = action["add"], storage.uri(action["add"]["path"])
                if "deletionVector" not in body and not log.is_named(uri):
                    written_ms = int(body["modificationTime"])
                    first_ms = written_ms if first_ms is None else min(first_ms, written_ms)
                _record(log, storage, body, uri, entry.version, late=late)
            elif "remove" in action:
                _take_remove(log, storage, action["remove"], entry.version, committed_at_ms, late=late)
            elif "cdc" in action:
                # The feed of a version is deleted, when its time has come, and never added back.
                body, uri = action["cdc"], storage.uri(action["cdc"]["path"])
                path, size = _path_below(storage, body["path"], uri), int(body.get("size") or 0)
                log.remove(uri, RemovedFile(path, size, committed_at_ms, "change_data", entry.version, True))
        took_ms = write_time_ms(info, first_ms, said_ms)
        if log.longest_write_ms < took_ms <= LONGEST_WRITE_BELIEVED_MS:
            log.longest_write_ms, log.longest_write_version = took_ms, entry.version
    return log


def _record(
    log: LogReplay, storage: TableStorage, body: dict[str, Any], uri: str, added_in: int | None, *, late: bool
) -> str | None:
    """Record a data file and the file of its deletion vector, and which version adds them; return the latter."""
    vector = storage.deletion_vector_uri({"any": body}) if "deletionVector" in body else None
    for named_uri in (uri, vector) if vector is not None else (uri,):
        if added_in is not None:
            log.add(named_uri, added_in)
        if late:
            log.late.add(named_uri)
    if late:
        log.late.update(storage.readings(body["path"]))
    return vector


def _take_remove(
    log: LogReplay, storage: TableStorage, body: dict[str, Any], version: int, committed_at_ms: int, *, late: bool
) -> None:
    path, uri = body["path"], storage.uri(body["path"])
    vector = _record(log, storage, body, uri, None, late=late)
    removed_at_ms = max(committed_at_ms, int(body.get("deletionTimestamp") or 0))
    replaced = body.get("dataChange") is False
    size = int(body.get("size") or 0)
    about = (removed_at_ms, "data", version, replaced, log.added_in(uri))
    log.remove(uri, RemovedFile(_path_below(storage, path, uri), size, *about))
    if vector is not None:
        size = int(body["deletionVector"].get("sizeInBytes") or 0)
        below = _path_below(storage, vector, vector)
        about = (removed_at_ms, "deletion_vector", version, replaced, log.added_in(vector))
        log.remove(vector, RemovedFile(below, size, *about))


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


def write_time_ms(info: Mapping[str, Any], first_file_ms: int | None, committed_at_ms: int) -> int:
    """Estimate how long a commit's writing took: since its first new file, or by its own metrics.

    Old files that a commit brings back (RESTORE, CLONE, a new deletion vector on an old file) do not count.
    """
    metrics = info.get("operationMetrics") or {}
    try:
        took = int(metrics.get("executionTimeMs") or 0)
    except (TypeError, ValueError):
        took = 0
    if first_file_ms is None or any(word in str(info.get("operation") or "").upper() for word in REVIVING):
        return took
    return max(took, committed_at_ms - first_file_ms)


MAX_REMOVALS_KEPT, MAX_LOGS_KEPT = 1_500_000, 1_000
"""Of all logs that were read for a plan, until the deletion: a file that is to go costs 100 bytes, one that was removed
lately 300.
"""


class PlannedLogs:
    """What plans of this process read of logs, for the deletions that follow; used by several threads."""

    def __init__(self) -> None:
        self._known = KnownVersions[LogReplay](MAX_REMOVALS_KEPT, MAX_LOGS_KEPT)
        self._lock = threading.Lock()

    def keep(self, location: str, log: LogReplay) -> None:
        """Keep what was read of a table's log, while there is room."""
        with self._lock:
            self._known.keep(location, KnownVersion(log, log.planned_version, None, len(log.named)))

    def take(self, location: str) -> LogReplay | None:
        """Return what was read of a table's log last, and keep it no longer: a deletion takes it on."""
        with self._lock:
            known = self._known.kept(location)
            self._known.forget(location)
            return None if known is None else known.read
