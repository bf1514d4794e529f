"""Make the two commits around a deletion, VACUUM START and VACUUM END, as Delta's own VACUUM does."""

from __future__ import annotations

from typing import Any

from maintainer.delta.jvm import DeltaJvm, JavaObject
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
            if by_kernel:
                jvm.without_checkpoint(txn)
            return jvm.commit(txn, jvm.seq(), operation, None)

        version = commit_once(jvm, storage, self._stamp, self._where, attempt, after_version=after_version)
        log = jvm.log_at(storage.root_uri)
        write_derived_checksum(jvm, storage, log, version)
        if by_kernel:
            write_if_due(jvm, storage, log, metadata, version, self._where)
        return version
