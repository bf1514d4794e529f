"""Make the two commits around a deletion, and notice that the log which it goes by is no longer the one that was read.

The commits are VACUUM START and VACUUM END, as Delta's own VACUUM makes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from typing import Any

from maintainer.delta.jvm import DeltaJvm, JavaObject
from maintainer.delta.log.replay.log_replay import LogReplay, replay
from maintainer.delta.storage.file_store import StoredFile
from maintainer.delta.storage.table_log import LogEntry, commits_among
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.delta.transaction.commit_fate import commit_once
from maintainer.delta.transaction.small_log_files import (
    is_kernels,
    take_over_checksum,
    write_derived_checksum,
    write_if_due,
)
from maintainer.errors import CommitConflict, MaintainerError
from maintainer.model.plan.steps import VacuumStep
from maintainer.model.table.commit_records import CommitStamp
from maintainer.model.table.log_names import LOG_FOLDER, SIDECAR_FOLDER, is_of_log

MAX_START_ATTEMPTS = 3


class VacuumCommits:
    """Makes the commits of one deletion."""

    def __init__(self, jvm: DeltaJvm, storage: TableStorage, stamp: CommitStamp, where: str, num_files: int) -> None:
        self._jvm = jvm
        self._num_files = num_files
        self._storage = storage
        self._stamp = stamp
        self._where = where

    def start(self, step: VacuumStep, table_retention_ms: int, *, after_version: int) -> int:
        """Commit VACUUM START; returns its version."""
        operation = self._jvm.vacuum_start_operation(step.retention_seconds * 1000, table_retention_ms)
        metrics = {"numFilesToDelete": len(step.files), "sizeOfDataToDelete": step.size_bytes}
        attempts = 0
        while True:
            attempts += 1
            try:
                return self._commit(operation, metrics, after_version)
            except CommitConflict:
                # The commit only says that we begin, which is as true after another writer's commit. Whether the files
                # may still go is checked after it has landed.
                if attempts >= MAX_START_ATTEMPTS:
                    raise

    def end(self, *, completed: bool, num_deleted: int, after_version: int) -> int:
        """Commit VACUUM END; if that fails, return the version of VACUUM START: the files are gone either way."""
        metrics = {"numDeletedFiles": num_deleted, "numVacuumedDirectories": 0}
        try:
            operation = self._jvm.vacuum_end_operation("COMPLETED" if completed else "FAILED")
            return self._commit(operation, metrics, after_version)
        except MaintainerError:
            return after_version

    def _commit(self, operation: JavaObject, metrics: dict[str, int], after_version: int) -> int:
        jvm, storage, by_kernel = self._jvm, self._storage, False
        metadata: dict[str, Any] = {}

        def attempt() -> int:
            nonlocal metadata, by_kernel
            # Opened for each attempt: if our commit was overwritten, Delta's view of the log is dropped.
            txn = jvm.start_transaction(jvm.log_at(storage.root_uri))
            jvm.register_metrics(txn, metrics)
            take_over_checksum(jvm, storage, txn)
            metadata = jvm.metadata(txn)
            by_kernel = is_kernels(metadata, jvm.protocol(txn), self._num_files)
            with jvm.without_checkpoint(txn) if by_kernel else nullcontext():
                return jvm.commit(txn, jvm.seq(), operation, None)

        version = commit_once(jvm, storage, self._stamp, self._where, attempt, after_version=after_version)
        log = jvm.log_at(storage.root_uri)
        write_derived_checksum(jvm, storage, log, version)
        if by_kernel:
            write_if_due(jvm, storage, log, metadata, version, self._where)
        return version


MAX_NAMED = 5


class LogWatch:
    """The commits and checkpoints of a table as its log's folder was listed, and what came since.

    ``planned`` is what the plan read of them; None where that is not known here.

    Raises:
        CommitConflict: C701, a commit that the plan read is not as it was, by size, time and tag.
    """

    def __init__(
        self,
        storage: TableStorage,
        where: str,
        listed: Mapping[str, StoredFile],
        planned: LogReplay | None = None,
    ) -> None:
        self._storage = storage
        self._where = where
        self._planned = planned
        now = _of_log(storage, listed)
        if planned is not None:
            self._check_same({entry.uri: entry.file for entry in planned.entries}, now)
        self._listed: dict[str, StoredFile] | None = now
        self.entries = commits_among(now.values())
        self._seen = self.entries[-1].version if self.entries else -1

    def replay(self, version: int, going: Iterable[str], removed_before_ms: int) -> LogReplay:
        """Read the listed commits but for those that the plan read: what it found is taken on.

        Where the plan is another one, or an older commit is gone by now, all are read.

        Args:
            version: The version that was planned on.
            going: The URIs of what is to be deleted.
            removed_before_ms: Before when it was removed.
        """
        log, self._planned = self._planned, None
        if log is not None and log.planned_version == version and log.whole_since_ms <= removed_before_ms:
            known = len(log.entries)
            if self.entries[:known] == log.entries and all(map(log.is_named, going)):
                return replay(self._storage, version, self.entries[known:], log)
        return replay(self._storage, version, self.entries)

    def newer(self) -> list[LogEntry]:
        """Return commits that came since the last call; the first call lists all anew.

        Raises:
            CommitConflict: C701, at the first call: what was there is not as it was, by size, time and tag.
        """
        if self._listed is None:
            entries = self._storage.commits(after_version=self._seen)
        else:
            now = _of_log(self._storage, self._storage.log_files())
            self._check_same(self._listed, now)
            self._listed = None
            entries = commits_among(now.values(), after_version=self._seen)
        self._seen = entries[-1].version if entries else self._seen
        return entries

    def _check_same(self, before: dict[str, StoredFile], now: dict[str, StoredFile]) -> None:
        first = next((entry.version for entry in commits_among(now.values())), None)
        changed = [
            f"{file.name} {'was overwritten' if uri in now else 'is gone'}"
            for uri, file in sorted(before.items())
            if now.get(uri) != file and not (uri not in now and first is not None and _is_before(file.name, first))
        ]
        if changed:
            more = f"\nand {len(changed) - MAX_NAMED:,} more" if len(changed) > MAX_NAMED else ""
            raise CommitConflict(
                "the log is not the one that the deletion was planned on",
                where=self._where, found="\n".join(changed[:MAX_NAMED]) + more,
                allowed="commits and checkpoints of the same size, time and tag",
                help=f"nothing was deleted; plan again. Find out who overwrites or removes files in {LOG_FOLDER}",
            )  # fmt: skip


def _of_log(storage: TableStorage, listed: Mapping[str, StoredFile]) -> dict[str, StoredFile]:
    """The commits and checkpoints among what lies in a log's folder, with their sidecars."""
    found = {uri: file for uri, file in listed.items() if is_of_log(file.name)}
    for folder in (file for file in listed.values() if file.is_dir and file.name == SIDECAR_FOLDER):
        found.update(storage.children(folder.uri))
    return found


def _is_before(name: str, first: int) -> bool:
    """Whether a clean-up of the log takes a file away, if it leaves commits from a version on: sidecars have none."""
    version = name.partition(".")[0]
    return not version.isdigit() or int(version) < first
