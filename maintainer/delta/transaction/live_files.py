"""Read the live files of a table's version once, and hand them on to everything that looks at this version.

A rewrite asks for the files that it takes, its checks for those of the versions before and after the commit, the next
batch for those of the version that the last one made. All of them share one reader, which keeps what it read.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from maintainer.delta.jvm import DeltaJvm, JavaObject
from maintainer.delta.log.actions import LoggedFile, live_rows, removed_key
from maintainer.delta.log.replay.checkpoint_actions import StatisticsWanted
from maintainer.delta.log.replay.version_replay import LogState, replay_version
from maintainer.delta.storage.file_store import StoredFile
from maintainer.delta.storage.table_log import LogEntry
from maintainer.delta.storage.table_storage import KnownVersion, KnownVersions, TableStorage
from maintainer.model.table.log_names import COMMIT_NAME
from maintainer.model.table.table_facts import FileKey, TableFacts

_LOG = logging.getLogger(__name__)

AddAction = dict[str, Any]
"""The fields of an ``add`` action. Of its statistics, most of a log, only ``numRecords`` is there."""

VERSIONS_KEPT = 2
"""A commit's checks ask for N-1 and N several times."""

UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError)
"""What ``replay_version`` raises of a log that it does not read: Spark reads it, or says what is wrong."""

MAX_FILES_KEPT = 50_000
"""Versions with more files are not kept: a file costs about a kilobyte, for each worker."""


@dataclass(frozen=True, slots=True)
class LiveFiles:
    """The live files of one version of a table, as the log had them when it was read.

    ``commit`` is the commit file of the version, looked at before the files were read; None if it is not there any
    more. ``complete`` is False where a table has so many files that only those asked for are here. ``log`` is what else
    the version is made of, without its files; None where its commits were not replayed as a whole. ``statistics`` are
    those of the files that were asked for, by path, where the log was read for them; they are not kept.
    """

    table_id: str
    version: int
    metadata: dict[str, Any]
    protocol: dict[str, Any]
    commit: StoredFile | None
    adds: Mapping[FileKey, AddAction]
    complete: bool = True
    log: LogState | None = None
    statistics: Mapping[str, str] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the version's columns, in order."""
        return tuple(str(field["name"]) for field in json.loads(self.metadata["schemaString"])["fields"])

    @property
    def rows(self) -> int | None:
        """Rows that the log counts, deleted ones taken off; None where it does not count them."""
        return live_rows(self.adds.values())


class LiveFilesReader:
    """Reads the live files of versions from the log's files; keeps the last ones (``KnownVersions``). One worker's."""

    def __init__(self, jvm: DeltaJvm) -> None:
        self._jvm = jvm
        self._known = KnownVersions[LiveFiles](VERSIONS_KEPT * MAX_FILES_KEPT, VERSIONS_KEPT)
        self._last_storage: tuple[str, TableStorage] | None = None

    def forget(self) -> None:
        """Drop all that is kept."""
        self._known.clear()

    def of_version(
        self, facts: TableFacts, version: int, keys: Collection[FileKey] | None = None, *, looks: bool = True
    ) -> LiveFiles:
        """All live files of a version; of very many those of ``keys``. Without ``looks`` what is kept counts as it is.

        Where the log's files do not make it up, or the table's id was another one then, Spark reads it.

        Raises:
            Exception: What Delta raises: the version cannot be read.
        """
        location, table_id = facts.location, facts.table_id
        if not looks and (known := self._known.kept((location, table_id, version))) is not None:
            return known.read
        storage, wanted = self.storage(location), None if keys is None else frozenset(keys)
        return (
            self._unchanged(storage, (location, table_id, version))
            or self._after_previous(storage, location, table_id, version)
            or self._read(storage, location, table_id, version, wanted)
            or self._by_spark(storage, self._jvm.snapshot_at(self._jvm.log_at(location), version), wanted)
        )

    def of_listed(self, facts: TableFacts, listed: Mapping[str, StoredFile]) -> LiveFiles | None:
        """The newest version in a log's folder that was listed just now; None where it cannot be replayed."""
        storage = self.storage(facts.location)
        versions = (int(match[1]) for file in listed.values() if (match := COMMIT_NAME.match(file.name)))
        version = max(versions, default=-1)
        known = self._known.kept((facts.location, facts.table_id, version))
        if known is not None and known.commit == listed[storage.commit_uri(version)]:
            return known.read
        return self._read(storage, facts.location, facts.table_id, version, None, listed)

    def of_snapshot(self, facts: TableFacts, snapshot: JavaObject, keys: Collection[FileKey]) -> LiveFiles:
        """The live files of Delta's snapshot: all of them, or at least those of ``keys`` on a very large table.

        Read at the snapshot's version from the log's files; by Spark, where that does not work.
        """
        storage = self.storage(facts.location)
        key = (facts.location, self._jvm.metadata(snapshot)["id"], int(snapshot.version()))
        wanted = frozenset(keys)
        return (
            self._unchanged(storage, key)
            or self._read(storage, *key, wanted)
            or self._by_spark(storage, snapshot, wanted)
        )

    def _by_spark(self, storage: TableStorage, snapshot: JavaObject, keys: frozenset[FileKey] | None) -> LiveFiles:
        metadata, version = self._jvm.metadata(snapshot), int(snapshot.version())
        commit = storage.status(storage.commit_uri(version))
        adds, complete = _collected(self._jvm.scan_files(snapshot), keys)
        protocol = self._jvm.protocol(snapshot)
        files = LiveFiles(metadata["id"], version, metadata, protocol, commit, adds, complete)
        self._keep((storage.location, metadata["id"], version), files)
        return files

    def statistics(
        self, facts: TableFacts, version: int, wanted: StatisticsWanted = True
    ) -> Iterator[tuple[FileKey, str | None]]:
        """The statistics of each live file of a version as the log has them; of others than ``wanted`` maybe None.

        They are not kept.

        Raises:
            Exception: What Delta raises, where the log's files do not make up the version.
        """
        try:
            storage = self.storage(facts.location)
            files = replay_version(storage, version, storage.listed_with(version), with_statistics=wanted).state.files
        except UNREADABLE:
            snapshot = self._jvm.snapshot_at(self._jvm.log_at(facts.location), version)
            rows = self._jvm.all_files(snapshot).selectExpr("to_json(struct(path, deletionVector)) AS add", "stats")
            yield from ((removed_key(json.loads(row["add"])), row["stats"]) for row in rows.collect())
        else:
            yield from ((key, file.stats) for key, file in files.items())

    def statistics_of(self, facts: TableFacts, version: int, paths: Collection[str]) -> dict[str, str]:
        """The statistics of some files by path, without those that have none; see ``statistics``."""
        return {path: text for (path, _), text in self.statistics(facts, version, paths) if path in paths and text}

    def _after_previous(self, storage: TableStorage, location: str, table_id: str, version: int) -> LiveFiles | None:
        """Read one commit on top of the version before, where that one is kept, and its metadata and protocol stay."""
        previous = self._unchanged(storage, (location, table_id, version - 1))
        if previous is None:
            return None
        try:
            commit = storage.status(storage.commit_uri(version))
            if commit is None:
                return None
            adds = dict(previous.adds)
            actions = list(storage.actions(LogEntry(version, commit), with_adds=True))
        except Exception:
            return None
        if any("metaData" in action or "protocol" in action for action in actions):
            return None
        for action in actions:
            if "remove" in action and adds.pop(removed_key(action["remove"]), None) is None:
                return None  # a file of which nothing is known, or another spelling of one
        added = (LoggedFile.of(action["add"]) for action in actions if "add" in action)
        adds.update((file.key, file.as_add()) for file in added)
        files = replace(previous, version=version, commit=commit, adds=adds, log=None)
        self._keep((location, table_id, version), files)
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
        """Read a version from its log's files; None where they do not make it up.

        A table that was dropped and created again may have a version of the same number: then the ids differ, and the
        result is None.
        """
        try:
            paths = False if keys is None else {path for path, _ in keys}
            replayed = replay_version(storage, version, listed, with_statistics=paths)
        except UNREADABLE as error:
            _LOG.info("%s@%d: left to Spark, as the log cannot be replayed: %s", location, version, error)
            return None
        state = replayed.state
        if state.metadata["id"] != table_id:
            return None
        adds, complete = _collected(map(LoggedFile.as_add, state.files.values()), keys)
        log = replace(state, files={})
        files = LiveFiles(table_id, version, state.metadata, state.protocol, replayed.commit, adds, complete, log)
        self._keep((location, table_id, version), files)
        if keys is None:
            return files
        return replace(files, statistics={file.path: file.stats for file in state.files.values() if file.stats})

    def _unchanged(self, storage: TableStorage, key: tuple[str, str, int]) -> LiveFiles | None:
        """Return what is kept of a version, if its commit file is still the one that was read."""
        known = self._known.get(key, storage)
        return None if known is None else known.read

    def _keep(self, key: tuple[str, str, int], files: LiveFiles) -> None:
        if files.complete and len(files.adds) <= MAX_FILES_KEPT:
            self._known.keep(key, KnownVersion(files, files.version, files.commit, len(files.adds)))

    def keep_open(self, location: str, storage: TableStorage) -> None:
        """Have the storage by which a table was just read serve the looks that follow, with what it has listed."""
        self._last_storage = (location, storage)

    def storage(self, location: str) -> TableStorage:
        """Open a table's storage once for all looks at it that follow one another."""
        if self._last_storage is None or self._last_storage[0] != location:
            self._last_storage = (location, TableStorage(self._jvm, location))
        return self._last_storage[1]


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
