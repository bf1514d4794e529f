"""Read the live files of a table's version once, and hand them on to everything that looks at this version.

A rewrite asks for the files that it takes, its checks for those of the versions before and after the commit, the next
batch for those of the version that the last one made. All of them share one reader, which keeps what it read.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from maintainer.delta.jvm import DeltaJvm, JavaObject
from maintainer.delta.log.actions import live_rows, num_records
from maintainer.delta.log.conflicting_commit import removed_key
from maintainer.delta.log.replay.log_state import LogState
from maintainer.delta.log.replay.version_replay import replay_version
from maintainer.delta.storage.file_store import StoredFile
from maintainer.delta.storage.log_paths import COMMIT_NAME
from maintainer.delta.storage.table_storage import LogEntry, TableStorage
from maintainer.model.table.table_facts import TableFacts

FileKey = tuple[str, str]
"""Path and deletion vector id: what Delta reconciles by."""

AddAction = dict[str, Any]
"""The fields of an ``add`` action. Of its statistics, most of a log, only ``numRecords`` is there."""

VERSIONS_KEPT = 2
"""A commit's checks ask for N-1 and N several times."""

MAX_FILES_KEPT = 50_000
"""Versions with more files are not kept: a file costs about a kilobyte, for each worker."""


@dataclass(frozen=True, slots=True)
class LiveFiles:
    """The live files of one version of a table, as the log had them when it was read.

    ``commit`` is the commit file of the version, looked at before the files were read; None if it is not there any
    more. ``complete`` is False where a table has so many files that only those asked for are here. ``columns`` are
    those of the version's schema, in order. ``log`` is what else the version is made of, without its files; None where
    its commits were not replayed as a whole.
    """

    table_id: str
    version: int
    columns: tuple[str, ...]
    commit: StoredFile | None
    adds: Mapping[FileKey, AddAction]
    complete: bool = True
    log: LogState | None = None

    @property
    def rows(self) -> int | None:
        """Rows that the log counts, deleted ones taken off; None where it does not count them."""
        return live_rows(self.adds.values())


class LiveFilesReader:
    """Reads the live files of versions, through Kernel without a Spark job; keeps the last ones. One worker's.

    What is kept of a version counts only while its commit file is the same one. A version that another writer
    replaced, or a table that was dropped and created again, is read anew.
    """

    def __init__(self, jvm: DeltaJvm) -> None:
        self._jvm = jvm
        self._kept: OrderedDict[tuple[str, str, int, bool], LiveFiles] = OrderedDict()
        self._last_storage: tuple[str, TableStorage] | None = None

    def forget(self) -> None:
        """Drop all that is kept."""
        self._kept.clear()

    def of_version(self, facts: TableFacts, version: int, *, looks: bool = True) -> LiveFiles | None:
        """All live files of a version; see ``of_table``. Without ``looks`` what is kept counts as it is."""
        for by_spark in (True, False) if not looks else ():
            files = self._kept.get((facts.location, facts.table_id, version, by_spark))
            if files is not None:
                return files
        return self.of_table(facts.location, facts.table_id, version)

    def of_table(self, location: str, table_id: str, version: int) -> LiveFiles | None:
        """All live files of a version of the table at a percent-encoded URI.

        None where Kernel does not read the version, or the table's id was another one then. What Kernel cannot read is
        left to Spark, which reads it or says what is wrong.
        """
        storage = self.storage(location)
        for by_spark in (True, False):
            files = self._unchanged(storage, (location, table_id, version, by_spark))
            if files is not None:
                return files
        next_files = self._after_previous(storage, location, table_id, version)
        return next_files or self._read(storage, location, table_id, version, None)

    def of_listed(self, facts: TableFacts, listed: Mapping[str, StoredFile]) -> LiveFiles | None:
        """All live files of the newest version in a log's folder that was listed just now; see ``of_table``."""
        storage = self.storage(facts.location)
        versions = (int(match[1]) for file in listed.values() if (match := COMMIT_NAME.match(file.name)))
        version = max(versions, default=-1)
        files = self._kept.get((facts.location, facts.table_id, version, False))
        if files is not None and files.commit == listed[storage.commit_uri(version)]:
            return files
        return self._read(storage, facts.location, facts.table_id, version, None, listed)

    def of_snapshot(self, facts: TableFacts, snapshot: JavaObject, keys: Collection[FileKey]) -> LiveFiles:
        """The live files of Delta's snapshot: all of them, or at least those of ``keys`` on a very large table.

        Read at the snapshot's version from the log's commits, or through Kernel; by Spark, where that does not work.
        """
        storage = self.storage(facts.location)
        metadata = self._jvm.metadata(snapshot)
        version, table_id = int(snapshot.version()), metadata["id"]
        # Kernel leaves out who clustered a file.
        clustered = "clustering" in (self._jvm.protocol(snapshot).get("writerFeatures") or ())
        files = self._unchanged(storage, (facts.location, table_id, version, clustered))
        if files is None and not clustered:
            files = self._read(storage, facts.location, table_id, version, frozenset(keys))
        if files is None:
            commit = storage.status(storage.commit_uri(version))
            adds, complete = _collected(self._jvm.scan_files(snapshot), frozenset(keys))
            files = LiveFiles(table_id, version, _columns(metadata), commit, adds, complete)
            self._keep((facts.location, table_id, version, True), files)
        return files

    def statistics_of(self, facts: TableFacts, version: int, paths: Collection[str]) -> dict[str, str]:
        """The statistics of some live files of a version as the log has them, by path; without those that have none.

        Read through Kernel, and not kept.
        """
        folder = self._jvm.folder_at(self._jvm.path(facts.location))
        adds = self._jvm.kernel_adds(folder, self._jvm.kernel_snapshot(folder, version))
        return {str(add["path"]): str(add["stats"]) for add in adds if add["path"] in paths and add.get("stats")}

    def _after_previous(self, storage: TableStorage, location: str, table_id: str, version: int) -> LiveFiles | None:
        """Read one commit on top of the version before, where that one is kept; None where Kernel must read both.

        A commit that changes metadata or protocol is Kernel's.
        """
        previous = self._unchanged(storage, (location, table_id, version - 1, False))
        if previous is None:
            return None
        try:
            commit = storage.status(storage.commit_uri(version))
            if commit is None:
                return None
            adds = dict(previous.adds)
            entry = LogEntry(version, commit.modification_time_ms, commit.uri, commit)
            actions = list(storage.actions(entry, with_adds=True))
        except Exception:
            return None
        if any("metaData" in action or "protocol" in action for action in actions):
            return None
        for action in actions:
            if "remove" in action:
                adds.pop(removed_key(action["remove"]), None)
        adds.update((removed_key(action["add"]), _slim(action["add"])) for action in actions if "add" in action)
        files = replace(previous, version=version, commit=commit, adds=adds, log=None)
        self._keep((location, table_id, version, False), files)
        return files

    def _read(
        self,
        storage: TableStorage,
        location: str,
        table_id: str,
        version: int,
        keys: frozenset[FileKey] | None,
        listed: Mapping[str, StoredFile] | None = None,
    ) -> LiveFiles | None:
        """Read a version from its log's files, or else through Kernel.

        A table that was dropped and created again may have a version of the same number: then the ids differ, and the
        result is None.
        """
        try:
            files = _replayed(storage, version, keys, listed)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            files = None  # Kernel reads it, or says what is wrong
        if files is not None:
            if files.table_id != table_id:
                return None
            self._keep((location, table_id, version, False), files)
            return files
        try:
            commit = storage.status(storage.commit_uri(version))
            folder = self._jvm.folder_at(self._jvm.path(location))
            kernel_snapshot = self._jvm.kernel_snapshot(folder, version)
            metadata, _ = self._jvm.kernel_state(kernel_snapshot)
            if metadata["id"] != table_id:
                return None
            adds, complete = _collected(map(_slim, self._jvm.kernel_adds(folder, kernel_snapshot)), keys)
        except Exception:
            return None
        files = LiveFiles(table_id, version, _columns(metadata), commit, adds, complete)
        self._keep((location, table_id, version, False), files)
        return files

    def _unchanged(self, storage: TableStorage, key: tuple[str, str, int, bool]) -> LiveFiles | None:
        """Return what is kept of a version, if its commit file is still the one that was read."""
        files = self._kept.get(key)
        if files is None:
            return None
        if storage.status(storage.commit_uri(files.version)) != files.commit:
            del self._kept[key]
            return None
        self._kept.move_to_end(key)
        return files

    def _keep(self, key: tuple[str, str, int, bool], files: LiveFiles) -> None:
        if not files.complete or len(files.adds) > MAX_FILES_KEPT:
            return
        self._kept[key] = files
        self._kept.move_to_end(key)
        while len(self._kept) > VERSIONS_KEPT:
            self._kept.popitem(last=False)

    def storage(self, location: str) -> TableStorage:
        """Open a table's storage once for all looks at it that follow one another."""
        if self._last_storage is None or self._last_storage[0] != location:
            self._last_storage = (location, TableStorage(self._jvm, location))
        return self._last_storage[1]


def _replayed(
    storage: TableStorage, version: int, keys: frozenset[FileKey] | None, listed: Mapping[str, StoredFile] | None
) -> LiveFiles | None:
    """Replay the log's files: a tenth of what Kernel takes. None where Kernel must read."""
    replayed = replay_version(storage, version, listed)
    if replayed is None:
        return None
    state = replayed.state
    adds, complete = _collected(map(_slim, state.adds.values()), keys)
    columns, log = _columns(state.metadata), replace(state, adds={})
    return LiveFiles(state.metadata["id"], version, columns, replayed.commit, adds, complete, log)


def _columns(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of a version's columns, in order."""
    return tuple(str(field["name"]) for field in json.loads(metadata["schemaString"])["fields"])


def _collected(adds: Iterable[AddAction], keys: frozenset[FileKey] | None) -> tuple[dict[FileKey, AddAction], bool]:
    """Collect files by key; of very many only those of ``keys``, where some are given. False if some are left out."""
    files: dict[FileKey, AddAction] = {}
    complete = True
    for add in adds:
        key = removed_key(add)
        if complete or keys is None or key in keys:
            files[key] = add
        if complete and keys is not None and len(files) > MAX_FILES_KEPT:
            complete = False
            files = {key: add for key, add in files.items() if key in keys}
    return files, complete


def _slim(add: AddAction) -> AddAction:
    """An ``add`` action as a snapshot has it, of whose statistics only ``numRecords`` is kept."""
    records = num_records(add.get("stats"))
    # A snapshot's files change no data any more, says Delta's own reader of them.
    slim = {**{key: value for key, value in add.items() if key != "stats"}, "dataChange": False}
    return slim if records is None else {**slim, "stats": json.dumps({"numRecords": records}, separators=(",", ":"))}
