"""Try one commit or deletion of a run: INTENT, the attempt, RESULT.

A commit landed, did not land, or is unknown. When the engine raises after INTENT without saying which, the stamp is
looked up in the table's log.

That a batch's files are being written is recorded before the first, so that the next run can remove them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from maintainer.engine.process_loss import ENGINE_GONE
from maintainer.engine.protocols import BeforeCommit
from maintainer.errors import (
    CommitConflict,
    CommitNotLanded,
    CommitUnknown,
    MaintainerError,
)
from maintainer.execution.run.problem_of_error import problem_of
from maintainer.execution.table.commit_conditions import check_quiet
from maintainer.execution.table.deletion_record import deletion_receipt, fate_of, receipt_from_log
from maintainer.execution.table.table_worker import StepWork, TableWorker
from maintainer.model.run.outcome import CommitReceipt, Proof, VacuumReceipt
from maintainer.model.run.run_events import Fate, Intent, Result, Writing, named
from maintainer.model.table.commit_records import CommitStamp
from maintainer.model.table.table_facts import PartitionValues, TableFacts

Receipt = TypeVar("Receipt", CommitReceipt, VacuumReceipt)


def attempt(
    worker: TableWorker,
    work: StepWork,
    facts: TableFacts,
    batch: int,
    figures: tuple[int, int],
    call: Callable[[CommitStamp, BeforeCommit], Receipt],
    partitions: frozenset[PartitionValues] | None = None,
) -> Receipt:
    """Try one commit, or one deletion.

    Args:
        worker: The table's run.
        work: The step; the receipt is added to it before RESULT is written, so that nothing that landed is lost.
        facts: The table as read for this try.
        batch: Number of the batch within the step, from 0.
        figures: Files and bytes at stake, for INTENT.
        call: Calls the engine with the stamp and with what it must call right before it commits.
        partitions: Those of a rewrite's files, for the last look at other writers; None takes no such look.

    Raises:
        MaintainerError: What the engine raised; the fate is in the journal.
        FolderUnwritable: INTENT could not be written (nothing was committed) or RESULT could not (it may have been).
    """
    journal, now_ms = worker.context.journal, worker.context.clock.now_ms
    stamp = CommitStamp(journal.run_id, work.step_id, batch, worker.plan.policy_digest)
    read_versions: list[int] = []
    proofs: list[Proof | None] = []

    def before_commit(read_version: int, proof: Proof | None) -> None:
        worker.context.verifier_check.wait()
        worker.control.check_commit()
        if partitions is not None:
            check_quiet(worker, facts, partitions, carried_versions=() if proof is None else proof.carried_versions)
        if worker.lease is not None and worker.context.leases is not None:
            worker.context.leases.check(worker.lease, worker.plan.ref.identifier)
        if proofs and proofs[-1] is proof:
            return  # another try of the same commit: its INTENT stands
        # First the mark, then one more look: whoever gives this thread up does it in the other order.
        work.unsettled = True
        worker.control.check_commit()
        num_files, size_bytes = figures
        proven = proof is not None and proof.holds
        about = (now_ms(), *named(facts), stamp, work.kind)
        journal.record(Intent(*about, read_version, proven, num_files, size_bytes, proof))
        read_versions.append(read_version)
        proofs.append(proof)

    try:
        receipt = call(stamp, before_commit)
    except Exception as error:
        if not read_versions:
            work.unsettled = False
            raise
        fate, landed = _what_landed(worker, work, facts, stamp, read_versions[-1], error)
        work.unsettled = fate is Fate.UNKNOWN
        journal.record(Result(now_ms(), *named(facts), stamp, work.kind, fate, landed, problem_of(error)))
        raise
    if isinstance(receipt, CommitReceipt):
        work.commits.append(receipt)
    else:
        work.vacuum = receipt
    work.unsettled = False
    if read_versions:
        journal.record(Result(now_ms(), *named(facts), stamp, work.kind, fate_of(receipt), receipt))
    return receipt


def _what_landed(
    worker: TableWorker, work: StepWork, facts: TableFacts, stamp: CommitStamp, read_version: int, error: Exception
) -> tuple[Fate, CommitReceipt | VacuumReceipt | None]:
    """Settle an attempt that raised after INTENT; a landed commit is added to the step's work."""
    if work.deletion is not None:
        if work.num_deleted is None and isinstance(error, CommitNotLanded):
            return Fate.NOT_LANDED, None  # VACUUM START did not land
        try:
            files = () if work.num_deleted is None else work.deletion.files
            work.vacuum = deletion_receipt(worker.engine, facts, files, stamp, read_version)
        except Exception:  # the engine is gone: the next run looks
            return Fate.UNKNOWN, None
        return fate_of(work.vacuum), work.vacuum
    fate, version = _fate(worker, facts, stamp, read_version, error)
    if version is None:
        return fate, None
    landed = CommitReceipt(version=version, read_version=read_version)
    with contextlib.suppress(Exception):  # without figures it has landed all the same
        landed = receipt_from_log(worker.engine, facts, version, read_version)
    work.commits.append(landed)
    work.notes.append(f"version {version} is ours, but its receipt was lost; it counts as not proven")
    return fate, landed


def _fate(
    worker: TableWorker, facts: TableFacts, stamp: CommitStamp, read_version: int, error: Exception
) -> tuple[Fate, int | None]:
    """Find out whether a commit that raised after INTENT landed, and its version."""
    match error:
        case CommitUnknown():
            return Fate.UNKNOWN, None
        case CommitConflict() | CommitNotLanded():
            return Fate.NOT_LANDED, None
        # A proof may fail before the commit and after it (V503: it landed in another table), so the log is asked.
        case _:
            try:
                version = worker.engine.reader.find_commit(facts, stamp, after_version=read_version)
            except Exception:  # the engine is gone: the next run asks again
                return Fate.UNKNOWN, None
            return (Fate.NOT_LANDED, None) if version is None else (Fate.LANDED, version)


@contextmanager
def recorded_writing(
    worker: TableWorker, work: StepWork, facts: TableFacts, number: int, partitions: Iterable[PartitionValues]
) -> Iterator[None]:
    """Record that a batch's files are written within the block; and, where it fails, that they were removed.

    Raises:
        FolderUnwritable: E651, before anything was written, or after all of it was removed.
    """
    journal = worker.context.journal
    at_ms, sorted_partitions = worker.context.clock.now_ms(), tuple(sorted(partitions, key=repr))
    writing = Writing(at_ms, *named(facts), journal.run_id, work.step_id, number, sorted_partitions)
    journal.record(writing)
    try:
        yield
    except MaintainerError as error:
        # Where the engine is gone, nobody could remove anything.
        if not error.left_over and error.code != ENGINE_GONE:
            journal.written_off(writing)
        raise
