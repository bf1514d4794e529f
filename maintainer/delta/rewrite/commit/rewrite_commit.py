"""Commit a proven batch and say what became of it: landed, not landed or unknown.

Delta's own commit steps over commits that do not concern us (appends, other files). What Delta refuses for good is
tried again here, as OPTIMIZE does: from a fresh snapshot, with the same written files. The number of tries is bounded,
nothing that the proof rests on may have changed, and the last look is repeated before each try. Rows that others
deleted from the batch's files meanwhile are deleted in the new files, too (``carried_deletes``). A batch that did not
need Spark has no transaction before its commit: its first try begins in the same way, from a fresh snapshot.

``optimize_metrics`` computes the operation metrics that OPTIMIZE writes into a table's history.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from maintainer.delta.jvm import JavaObject
from maintainer.delta.log.commit_history import find_stamp, lost_to
from maintainer.delta.rewrite.commit.batch_transaction import begin_on, check_all_live, check_head, newest
from maintainer.delta.rewrite.commit.carried_deletes import CannotCarryError, carry_deletes
from maintainer.delta.rewrite.rewrite_job import RewriteJob
from maintainer.delta.rewrite.rewrite_proof import judge_landed, prove_removes, prove_rewrite
from maintainer.delta.storage.failures.engine_failures import describe, is_conflict
from maintainer.delta.transaction.commit_fate import (
    Actions,
    differences,
    landed_actions,
    not_landed,
    rewrite_receipt,
    safe_message,
    settle,
    stamped,
)
from maintainer.delta.transaction.requirements import check_same_table, was_planned_table
from maintainer.delta.transaction.small_log_files import take_over_checksum, write_derived_checksum, write_if_due
from maintainer.engine.protocols import BeforeCommit
from maintainer.errors import CommitConflict, CommitUnknown, VerificationFailed, raise_from
from maintainer.model.plan.steps import Batch, ClusterStep, CompactStep, PurgeStep, ZOrderStep
from maintainer.model.run.progress import Phase
from maintainer.model.run.receipts import CommitReceipt, PlanDifference, Proof
from maintainer.model.table.commit_records import CommitStamp

_LOG = logging.getLogger(__name__)


def optimize_metrics(batch: Batch, added_sizes_bytes: Sequence[int]) -> dict[str, int]:
    """All metrics that Delta's OPTIMIZE registers; Delta itself drops those that its history does not keep.

    The file sizes are of added files; the quantiles are Delta's: the element at ``floor(n * q)`` of the sorted
    sizes. Without added files (a batch whose rows were all soft-deleted) they are 0.
    """
    sizes = sorted(added_sizes_bytes)
    vectors = [file.deletion_vector for file in batch.files if file.deletion_vector is not None]

    def quantile(percent: int) -> int:
        return sizes[min(len(sizes) - 1, len(sizes) * percent // 100)] if sizes else 0

    return {
        "minFileSize": quantile(0),
        "p25FileSize": quantile(25),
        "p50FileSize": quantile(50),
        "p75FileSize": quantile(75),
        "maxFileSize": quantile(100),
        "numAddedFiles": len(sizes),
        "numRemovedFiles": len(batch.files),
        "numAddedBytes": sum(sizes),
        "numRemovedBytes": batch.size_bytes,
        "numDeletionVectorsRemoved": len(vectors),
        "numDeletionVectorRowsRemoved": sum(vector.cardinality for vector in vectors),
        "numDeletionVectorBytesRemoved": sum(vector.size_bytes for vector in vectors),
    }


MAX_ATTEMPTS = 5
FIRST_PAUSE_SECONDS = 0.1


def commit_rewrite(
    job: RewriteJob, proof: Proof, stamp: CommitStamp, before_commit: BeforeCommit, *, started: float
) -> CommitReceipt:
    """Commit the job's written files in the place of its sources.

    Raises:
        CommitConflict: C701, another writer won; what was written is removed. Or another writer's commit was put in the
            place of ours afterwards; what was written stays then, for somebody may have built on it.
        CommitNotLanded: C702, the commit failed; what was written is removed.
        CommitUnknown: C703, the answer was lost and the log could not settle it; nothing is removed.
        VerificationFailed: V502, the commit would remove something else than was planned; V503, the table was replaced
            by another in the very moment of the commit.
    """
    commit_started = time.monotonic()
    job.jvm.start()
    read_version = job.read_version
    actions = _actions(job)
    before_commit(read_version, proof)
    if job.transaction is not None:
        check_head(job)
    elif (moved := _on_newest(job, proof)) is not proof:
        actions, proof = _actions(job), moved
        before_commit(read_version, proof)
    attempts = 1
    with stamped(job.jvm, stamp):
        while isinstance(outcome := _try_once(job, actions, stamp, read_version), BaseException):
            actions, proof = _prepare_next(job, outcome, attempts, actions, proof)
            # Conditions that were checked before the first attempt may have changed.
            before_commit(read_version, proof)
            attempts += 1
    version = outcome
    _check_where_it_landed(job, version, stamp)
    if job.checkpoint_is_kernels:
        write_if_due(
            job.jvm, job.storage, job.log, job.metadata, version, job.where,
            lambda: job.meter.begin(Phase.CHECKPOINT, job.batch.size_bytes),
        )  # fmt: skip
    job.remove_unneeded()
    job.timings.commit = time.monotonic() - commit_started
    landed = landed_actions(job.jvm, job.storage, stamp, job.where, version)
    if landed is not None:
        write_derived_checksum(job.jvm, job.storage, job.log, version)
        judged = judge_landed(job, [action["add"] for action in landed if "add" in action])
        proof = replace(proof, findings=proof.findings + differences(landed, job.written, job.batch) + judged)
    return replace(
        _receipt(job, landed, read_version, version),
        proof=proof,
        attempts=attempts,
        duration_seconds=time.monotonic() - started,
        total_cluster_parallelism=job.jvm.spark.sparkContext.defaultParallelism,
        difference=_difference(job),
    )


def _check_where_it_landed(job: RewriteJob, version: int, stamp: CommitStamp) -> None:
    """Check that the table is still the planned one, with our commit in its log.

    Between our last look and the log's new file lie milliseconds. Delta goes by version numbers, so a table that is
    dropped and created again just then gets our commit, or had it and lost it with the old log.

    Raises:
        CommitConflict: C701, what we committed went with the table.
        CommitUnknown: C703, it cannot be read whether the commit is in the planned table or in the one that took its
            place.
        VerificationFailed: V503, the new table has our commit.
    """
    try:
        check_same_table(job.jvm, job.storage, job.facts, job.jvm.update(job.log))
    except CommitConflict as conflict:
        if find_stamp(job.storage, stamp, after_version=-1) is None:
            raise
        was_planned = was_planned_table(job.storage, job.facts, version)
        if was_planned:
            return  # another writer replaced the table after our commit
        if was_planned is None:
            raise CommitUnknown(
                f"the table was replaced, or dropped and created again, and its log cannot be read: which of the two "
                f"tables has our commit as version {version} is not known",
                where=f"{job.where}@{version}",
                help=f"nothing was removed; check DESCRIBE HISTORY: if version {version} of the new table is ours, "
                f"RESTORE TABLE ... TO VERSION AS OF {version - 1}, which also takes back what was committed after it",
            ) from conflict
        raise VerificationFailed(
            f"the table was dropped and created again while we committed: its version {version} is our rewrite of the "
            "old one",
            code="V503",
            where=f"{job.where}@{version}",
            help=f"bring the new table back to version {version - 1}: RESTORE TABLE ... TO VERSION AS OF {version - 1},"
            " which also takes back what was committed after it",
        ) from conflict
    except Exception:
        # The commit has landed: a storage error after it must not turn success into failure.
        return


def _receipt(job: RewriteJob, landed: Actions | None, read_version: int, version: int) -> CommitReceipt:
    """The receipt, with the figures of the landed commit's actions, or of ours if the log could not be read."""
    adds: list[dict[str, Any]] = [file.add for file in job.written]
    sizes_removed = [file.size_bytes for file in job.batch.files]
    deleted_rows = [file.deletion_vector.cardinality for file in job.batch.files if file.deletion_vector is not None]
    if landed is not None:
        adds = [action["add"] for action in landed if "add" in action]
        removes = [action["remove"] for action in landed if "remove" in action]
        sizes_removed = [int(remove.get("size") or 0) for remove in removes]
        vectors = [remove["deletionVector"] for remove in removes if remove.get("deletionVector")]
        deleted_rows = [int(vector.get("cardinality") or 0) for vector in vectors]
    sizes_added = [int(add.get("size") or 0) for add in adds]
    return rewrite_receipt(version, read_version, sizes_removed, sizes_added, deleted_rows)


def _difference(job: RewriteJob) -> PlanDifference | None:
    """Files that were planned with other deletion vectors, or are no longer live, where that was carried over."""
    deletes = job.carried_deletes
    return None if deletes is None else PlanDifference.of(deletes.batch.files, job.batch.files)


def _actions(job: RewriteJob) -> JavaObject:
    now_ms = int(time.time() * 1000)
    removes = job.jvm.removes_of(job.sources, now_ms)
    prove_removes(job, removes)
    return job.jvm.rewrite_actions([file.to_commit() for file in job.written], removes)


def _try_once(job: RewriteJob, actions: JavaObject, stamp: CommitStamp, read_version: int) -> int | BaseException:
    """Try the commit: the version as which it landed, or Delta's error where another writer stands in the way."""
    job.meter.begin(Phase.COMMITTING, job.batch.size_bytes)
    job.is_kept = True
    try:
        job.jvm.enter_thread(job.group, f"{job.where}: commit")
        assert job.transaction is not None
        txn = job.transaction.txn
        job.jvm.register_metrics(txn, optimize_metrics(job.batch, [file.size_bytes for file in job.written]))
        tags = job.jvm.row_tracking_tags(job.transaction.snapshot)
        take_over_checksum(job.jvm, job.storage, txn)
        job.is_tried = True
        if job.checkpoint_is_kernels:
            job.jvm.without_checkpoint(txn)
        return job.jvm.commit(txn, actions, _operation(job), tags)
    except BaseException as error:
        # Settled is what Java raised: any other error leaves the commit unknown.
        landed = settle(lambda: find_stamp(job.storage, stamp, after_version=read_version), error, where=job.where)
        if landed is not None:
            return landed
        job.is_kept = False
        if is_conflict(describe(error)):
            return error
        raise_from(not_landed(error, job.where), error)


def _operation(job: RewriteJob) -> JavaObject:
    """Return the operation for the table's history, as OPTIMIZE would write it."""
    match job.step:
        case CompactStep(auto=auto):
            return job.jvm.optimize_operation((), auto=auto)
        case ZOrderStep(columns=columns):
            return job.jvm.optimize_operation(columns)
        case ClusterStep(columns=columns, full=full):
            return job.jvm.optimize_operation((), cluster_by=columns, full=full)
        case PurgeStep():
            return job.jvm.purge_operation()
        case _:
            return job.jvm.optimize_operation(())


def _prepare_next(
    job: RewriteJob, error: BaseException, attempts: int, actions: JavaObject, proof: Proof
) -> tuple[JavaObject, Proof]:
    """Move the job to a fresh snapshot for another attempt, and return the actions to commit, and their proof."""
    if attempts >= MAX_ATTEMPTS:
        raise_from(_conflict(job, f"another writer won {attempts} times", error), error)
    time.sleep(FIRST_PAUSE_SECONDS * 2 ** (attempts - 1) * (0.5 + random.random()))
    moved = _on_newest(job, proof, error)
    return (actions, proof) if moved is proof else (_actions(job), moved)


def _on_newest(job: RewriteJob, proof: Proof, error: BaseException | None = None) -> Proof:
    """Begin the job's transaction on the newest snapshot; where others deleted rows of the batch, carry that over.

    ``error`` is what stood in the way of the last attempt. Returns the proof, a new one where something was carried
    over.
    """
    try:
        snapshot, live = newest(job)
        is_changed = any(file.key not in live.adds for file in job.batch.files)
        if is_changed:
            try:
                carry_deletes(job, live)
            except CannotCarryError as cannot:
                _LOG.info("%s: deletes of others are not carried over: %s", job.where, cannot)
                raise _conflict(job, "files of the batch were removed or changed", error) from cannot
        check_all_live(job, live.adds)
        begin_on(job, snapshot)
        if is_changed and job.carried_deletes is not None:
            return replace(prove_rewrite(job), carried_versions=job.carried_deletes.versions)
    except Exception as second:
        raise_from(not_landed(second, job.where), second)
    return proof


def _conflict(job: RewriteJob, why: str, error: BaseException | None = None) -> CommitConflict:
    return lost_to(
        f"another writer won: {why}",
        job.storage,
        {file.key for file in job.batch.files},
        after_version=job.read_version if job.transaction is None else int(job.transaction.snapshot.version()),
        where=job.where,
        found=safe_message(error) if error is not None else None,
        help="nothing was committed and what was written was removed; the next plan takes the new state",
    )
