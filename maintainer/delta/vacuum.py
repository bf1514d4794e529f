"""Deletes exactly the files that a plan names, and says of each whether it went.

Not by VACUUM. In Delta 4.4.0 ``VACUUM ... USING INVENTORY`` also tries to delete the folders of the files named,
decides by a file's own age, overwrites ``_last_vacuum_info`` (after which LITE fails on tables whose first commits
are cleaned away) and swallows every error; for 20 files it took 7 s where this takes 0.9 s. So files are deleted
here one by one through Hadoop's file system, between the same two commits, VACUUM START and VACUUM END, that Delta
writes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from maintainer.delta.error_classes import message_of
from maintainer.delta.fate import commit_once
from maintainer.delta.jvm import DeltaJvm, JavaObject
from maintainer.delta.removed_files import stored_files
from maintainer.delta.rewrite import check_same_table
from maintainer.delta.storage import TableStorage, local_path
from maintainer.delta.winners import Winner, removed_key, winner_of
from maintainer.engine import BeforeCommit
from maintainer.errors import CommitConflict, MaintainerError, Refused, VerificationFailed
from maintainer.model.outcome import CommitStamp, VacuumReceipt
from maintainer.model.steps import VacuumStep
from maintainer.model.table import RemovedFile, TableFacts

MAX_THREADS = 8
CLOCK_SLACK_MS = 60_000
_REVIVING = ("RESTORE", "CLONE")


def vacuum(
    jvm: DeltaJvm, facts: TableFacts, step: VacuumStep, stamp: CommitStamp, before_delete: BeforeCommit
) -> VacuumReceipt:
    """Delete the step's files after a last look at the head of the log.

    Raises:
        CommitConflict: C701, the table was replaced, restored or cloned over, or a file is needed again.
        Refused: A430, a file is younger than the retention allows; A431, it lies outside the table.
        VerificationFailed: V505, a live file that was on storage before is gone after.
        CommitNotLanded: C702, VACUUM START could not be committed; nothing was deleted.
        CommitUnknown: C703.
    """
    started = time.monotonic()
    log = jvm.log_at(facts.location)
    snapshot = jvm.update(log)
    check_same_table(jvm, facts, snapshot)
    storage = TableStorage(jvm, log)
    planned = {_uri(storage, one): one for one in step.files}
    _check_retention(jvm, snapshot, facts, step)
    _check_places(storage, facts, planned)
    _check_log(storage, facts, planned)
    live = _live_uris(jvm, storage, snapshot)
    if needed := sorted(planned.keys() & live):
        raise CommitConflict(
            f"{len(needed)} planned files are live again",
            where=facts.ref.identifier,
            found=needed[0],
            help="plan again",
        )
    read_version = int(snapshot.version())
    if not planned:
        return VacuumReceipt(0, 0, version_before=read_version, version_after=read_version)
    before_delete(read_version, None)
    touched = {uri.rpartition("/")[0] for uri in planned}
    beside = [uri for uri in live if uri.rpartition("/")[0] in touched]
    there = stored_files(storage, beside)
    commits = _Commits(jvm, log, storage, stamp, facts.ref.identifier)
    first = commits.start(step, jvm.table_retention_ms(snapshot), after_version=read_version)
    errors = _delete(storage, planned)
    remaining = stored_files(storage, list(planned))
    deleted = [one for uri, one in planned.items() if uri not in remaining]
    lost = sorted(there.keys() - stored_files(storage, beside).keys())
    status = "FAILED" if lost else "COMPLETED"
    last = commits.end(status, len(deleted), after_version=first)
    if lost:
        raise VerificationFailed(
            f"{len(lost)} live files are gone from storage after the deletion",
            code="V505",
            where=f"{facts.ref.identifier}@{read_version}",
            found=lost[0],
            help="stop all deletion on this storage and restore the files from a backup",
        )
    return VacuumReceipt(
        num_files_deleted=len(deleted),
        bytes_deleted=sum(one.size_bytes for one in deleted),
        remaining=tuple(_told(planned[uri].path, errors.get(uri)) for uri in sorted(remaining)),
        version_before=read_version,
        version_after=last,
        duration_seconds=time.monotonic() - started,
    )


def _told(path: str, error: str | None) -> str:
    return f"{path} ({error})" if error else path


def _uri(storage: TableStorage, one: RemovedFile) -> str:
    return storage.uri(one.path)


def _check_retention(jvm: DeltaJvm, snapshot: JavaObject, facts: TableFacts, step: VacuumStep) -> None:
    """The engine's own floor, whatever the plan says: the step's retention and the table's property."""
    now_ms = int(time.time() * 1000) + CLOCK_SLACK_MS
    longest_ms = max(step.retention_seconds * 1000, jvm.table_retention_ms(snapshot))
    if step.removed_before_ms > now_ms - longest_ms or any(
        one.removed_at_ms >= step.removed_before_ms for one in step.files
    ):
        raise Refused(
            "the plan would delete files that the retention protects",
            code="A430",
            where=facts.ref.identifier,
            found=f"removed before {step.removed_before_ms}",
            allowed=f"removed before {now_ms - longest_ms} (longest of {step.decided_by} and the table's property)",
            help="plan again",
        )


def _check_places(storage: TableStorage, facts: TableFacts, planned: Iterable[str]) -> None:
    """Nothing outside the table, nothing of its log, nothing behind a symlink."""
    for uri in planned:
        inside = storage.is_below_root(uri) and not uri[len(storage.root_uri) + 1 :].startswith("_delta_log/")
        if not inside or not _really_below(storage.root_uri, uri):
            raise Refused(
                "the plan would delete something that is not a data file of the table",
                code="A431",
                where=facts.ref.identifier,
                found=uri,
                allowed=f"files below {storage.root_uri}, no symlinks",
                help="plan again; if it comes back, look at who writes to the table's folder and its log",
            )


def _really_below(root_uri: str, uri: str) -> bool:
    """On a local disk: whether the folder of a file is below the root after all symlinks are followed."""
    if not root_uri.startswith("file:"):
        return True
    root = os.path.realpath(local_path(root_uri))
    folder = os.path.realpath(os.path.dirname(local_path(uri)))
    return os.path.commonpath([root, folder]) == root


def _check_log(storage: TableStorage, facts: TableFacts, planned: dict[str, RemovedFile]) -> None:
    """Look at every commit since the facts: a RESTORE or CLONE, or any word of a planned file, stops us."""
    for entry in storage.commits(after_version=facts.version):
        actions = list(storage.actions(entry, with_adds=True))
        winner = winner_of(entry, actions)
        if winner.operation.upper().startswith(_REVIVING):
            raise _yield(facts, "the table was restored or cloned over", winner)
        for action in actions:
            body: dict[str, Any] | None = action.get("add") or action.get("remove")
            if body is None:
                continue
            vector = storage.deletion_vector_uri(action)
            if storage.uri(removed_key(body)[0]) in planned or vector in planned:
                raise _yield(facts, "a planned file is in use again", winner)


def _yield(facts: TableFacts, why: str, winner: Winner) -> CommitConflict:
    return CommitConflict(
        f"nothing was deleted: {why} ({winner})", where=facts.ref.identifier, help="plan again on the new version"
    )


def _live_uris(jvm: DeltaJvm, storage: TableStorage, snapshot: JavaObject) -> set[str]:
    """URIs of all live data files and deletion vectors of a snapshot."""
    rows = (
        jvm.all_files(snapshot)
        .selectExpr("path", "deletionVector.storageType AS kind", "deletionVector.pathOrInlineDv AS vector")
        .collect()
    )
    found = {storage.uri(row["path"]) for row in rows}
    on_disk = {(row["kind"], row["vector"]) for row in rows if row["kind"] not in (None, "i")}
    return found | {storage.vector_uri(kind, path) for kind, path in on_disk}


class _Commits:
    """The two commits around a deletion, as Delta's VACUUM writes them."""

    def __init__(self, jvm: DeltaJvm, log: JavaObject, storage: TableStorage, stamp: CommitStamp, where: str) -> None:
        self._jvm = jvm
        self._log = log
        self._storage = storage
        self._stamp = stamp
        self._where = where

    def start(self, step: VacuumStep, table_retention_ms: int, *, after_version: int) -> int:
        """Commit VACUUM START; returns its version."""
        operation = self._jvm.vacuum_start_operation(step.retention_seconds * 1000, table_retention_ms)
        metrics = {"numFilesToDelete": len(step.files), "sizeOfDataToDelete": step.size_bytes}
        return self._commit(operation, metrics, after_version)

    def end(self, status: str, num_deleted: int, *, after_version: int) -> int:
        """Commit VACUUM END; if it will not go, the version of VACUUM START: the files are gone either way."""
        metrics = {"numDeletedFiles": num_deleted, "numVacuumedDirectories": 0}
        try:
            return self._commit(self._jvm.vacuum_end_operation(status), metrics, after_version)
        except MaintainerError:
            return after_version

    def _commit(self, operation: JavaObject, metrics: dict[str, int], after_version: int) -> int:
        def attempt() -> int:
            txn = self._jvm.start_transaction(self._log)
            self._jvm.register_metrics(txn, metrics)
            return self._jvm.commit(txn, self._jvm.seq(), operation, None)

        return commit_once(self._jvm, self._storage, self._stamp, self._where, attempt, after_version=after_version)


def _delete(storage: TableStorage, uris: Iterable[str]) -> dict[str, str]:
    """Delete the files with a few threads; returns what went wrong, by URI."""

    def one(uri: str) -> tuple[str, str | None]:
        try:
            storage.delete(uri)
            return uri, None
        except Exception as error:
            return uri, message_of(error).splitlines()[0][:200]

    wanted = list(uris)
    with ThreadPoolExecutor(max(1, min(MAX_THREADS, len(wanted))), thread_name_prefix="maintainer-vacuum") as pool:
        return {uri: error for uri, error in pool.map(one, wanted) if error is not None}
