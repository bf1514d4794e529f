"""Try one commit or deletion of a run: INTENT, the attempt, RESULT.

A commit landed, did not land, or is unknown. When the engine raises after INTENT without saying which, the stamp is
looked up in the table's log.

What has to hold right before an attempt is decided here too, because the table may have changed since it was planned.
The rules are those of ``planning.recheck.staleness``: another table, schema, partitioning or protocol refuses; missing
files drop their bins; nothing is ever added. The window is checked before each step and commit, so that a long run does
not outlast it. That a batch's files are being written is recorded before the first, so that the next run can remove
them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import TypeVar

from maintainer.engine.process_loss import ENGINE_GONE, engine_gone, is_engine_lost
from maintainer.engine.protocols import BeforeCommit, TableEngine, TableReader
from maintainer.engine.step_meter import StepMeter
from maintainer.errors import (
    CommitConflict,
    CommitNotLanded,
    CommitUnknown,
    MaintainerError,
    TableHot,
    WindowClosed,
)
from maintainer.execution.run.cancellation import TableControl
from maintainer.execution.run.run_context import RunContext
from maintainer.execution.table.deletion_record import deletion_receipt, fate_of, receipt_from_log
from maintainer.journal.events.intents import Fate
from maintainer.journal.events.unfinished_writes import Writing
from maintainer.journal.leases import Lease
from maintainer.model.plan.plan import Problem, TablePlan
from maintainer.model.plan.steps import Batch, SetPropertiesStep, Step, VacuumStep
from maintainer.model.plan.zorder_turn import LayoutChange, TurnOutcome
from maintainer.model.run.exit_codes import BUG_CODE
from maintainer.model.run.outcome import Assertion, CommitReceipt, Proof, VacuumReceipt
from maintainer.model.table.commit_records import CommitStamp
from maintainer.model.table.files_seen import LayoutBoxes
from maintainer.model.table.table_facts import PartitionValues, TableFacts
from maintainer.planning.recheck.staleness import StaleReasons, recheck, refusal
from maintainer.units import format_duration

Receipt = TypeVar("Receipt", CommitReceipt, VacuumReceipt)


@dataclass(slots=True)
class StepWork:
    """What a step has done so far; becomes its outcome, also when it ends by an exception.

    ``rewritten`` has the batches as they really ran, with the commits that they became. ``deletion`` is what a vacuum
    is about to delete, ``num_deleted`` how many of its files are gone at least, None before the first.
    ``unsettled`` says that an INTENT may stand without a known result: without it nothing can have been committed.
    ``wrong_version`` is one of which a check found that it is wrong.
    ``meter`` is how far the engine is with what it does now.
    """

    step_id: str
    kind: str
    commits: list[CommitReceipt] = field(default_factory=list)
    rewritten: list[tuple[Batch, CommitReceipt]] = field(default_factory=list)
    vacuum: VacuumReceipt | None = None
    assertions: list[Assertion] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    turns: list[TurnOutcome] = field(default_factory=list)
    boxes: LayoutBoxes | None = None
    layout: LayoutChange | None = None
    facts: TableFacts | None = None
    deletion: VacuumStep | None = None
    num_deleted: int | None = None
    batches_done: int = 0
    unsettled: bool = False
    wrong_version: int | None = None
    meter: StepMeter = field(default_factory=StepMeter)


@dataclass(frozen=True, slots=True)
class Worker:
    """Everything one table's run works with."""

    plan: TablePlan
    engine: TableEngine
    context: RunContext
    control: TableControl
    lease: Lease | None = None


def attempt(
    worker: Worker,
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
    journal = worker.context.journal
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
        journal.intent(
            stamp, facts, work.kind,
            read_version=read_version, num_files=num_files, size_bytes=size_bytes, proof=proof,
        )  # fmt: skip
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
        journal.result(stamp, facts, work.kind, fate, receipt=landed, problem=problem_of(error))
        raise
    if isinstance(receipt, CommitReceipt):
        work.commits.append(receipt)
    else:
        work.vacuum = receipt
    work.unsettled = False
    if read_versions:
        journal.result(stamp, facts, work.kind, fate_of(receipt), receipt=receipt)
    return receipt


def _what_landed(
    worker: Worker, work: StepWork, facts: TableFacts, stamp: CommitStamp, read_version: int, error: Exception
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
    worker: Worker, facts: TableFacts, stamp: CommitStamp, read_version: int, error: Exception
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


def check_quiet(
    worker: Worker,
    facts: TableFacts,
    partitions: frozenset[PartitionValues],
    *,
    carried_versions: Collection[int] = (),
) -> None:
    """Hold a rewrite back as ``check_no_update`` does, by the plan's quiet time.

    Asked before files are written and again right before each try of the commit. One delete of another writer that was
    carried over holds nothing back; a second one during the same rewrite shows that more may come.

    Raises:
        TableHot: C718.
        TableError: The log cannot be read.
    """
    quiet_seconds, now_ms = worker.plan.quiet_after_updates_seconds, worker.context.clock.now_ms()
    own_versions = carried_versions if len(carried_versions) == 1 else ()
    check_no_update(
        worker.engine.reader, facts, partitions,
        quiet_seconds=quiet_seconds, now_ms=now_ms, own_versions=own_versions,
    )  # fmt: skip


def check_no_update(
    reader: TableReader,
    facts: TableFacts,
    partitions: frozenset[PartitionValues],
    *,
    quiet_seconds: int,
    now_ms: int,
    own_versions: Collection[int] = (),
) -> None:
    """Hold a rewrite back if somebody else updated what it rewrites since it read the table, or a moment before.

    Args:
        reader: Reads the log.
        facts: The table as the rewrite read it.
        partitions: Those of the files that it rewrites.
        quiet_seconds: How long a moment is; 0 never holds back.
        now_ms: The time of the look.
        own_versions: Commits that are the caller's own, or whose deletes it carried over, so that nobody loses.

    Raises:
        TableHot: C718.
        TableError: The log cannot be read.
    """
    if not quiet_seconds:
        return
    updates = reader.updates(facts, since_ms=now_ms - quiet_seconds * 1000, after_version=facts.version)
    update = next(
        (update for update in updates if update.version not in own_versions and update.meets(partitions)), None
    )
    if update is not None:
        ago = format_duration(max(0, now_ms - update.at_ms) // 1000)
        raise TableHot(
            f"hot: {update.operation} by another writer {ago} ago (version {update.version}), "
            f"quietAfterUpdates is {format_duration(quiet_seconds)}",
            where=facts.ref.identifier,
            help="nothing was committed and no new file is left; the next apply rewrites it when its writers are quiet",
        )


def problem_of(error: BaseException) -> Problem:
    """Return an error as data."""
    if isinstance(error, MaintainerError):
        value = f" (found: {error.found})" if error.found else ""
        return Problem(error.code, f"{error.what}{value}", error.where, error.help)
    if is_engine_lost(error):
        # A signal to the whole process group ends the JVM beside us: no bug of ours, and the next apply goes on.
        return problem_of(engine_gone(None))
    text = " ".join(str(error).split())[:500]
    return Problem(
        BUG_CODE, f"a bug in maintainer: {type(error).__name__}: {text}", help="report it with traceback.txt"
    )


AnyStep = TypeVar("AnyStep", bound=Step)


def step_now(plan: TablePlan, step: AnyStep, facts: TableFacts) -> AnyStep | None:
    """Return the part of the step that still holds; None when nothing of it is left.

    Args:
        plan: The table's plan.
        step: One of its steps, or a part of one (a single batch).
        facts: The table now.

    Raises:
        Refused: A403, the table is not the one that was planned for; all differences at once.
    """
    # Properties that the plan itself sets are no difference, so these steps come along; the others cost time.
    own: list[Step] = [planned for planned in plan.steps if isinstance(planned, SetPropertiesStep) and planned != step]
    now = recheck(replace(plan, steps=(*own, step)), facts, plan.policy_digest)
    if isinstance(now, StaleReasons):
        raise refusal((now,))
    return next(
        (current for current in now.steps if isinstance(current, type(step)) and current.kind == step.kind), None
    )


def check_window(worker: Worker) -> None:
    """End here if the window in which the table was planned has closed.

    Raises:
        WindowClosed: C716; what is left is found again by the next plan.
    """
    closes = worker.plan.window_closes_ms
    if closes is not None and worker.context.clock.now_ms() >= closes:
        at = datetime.fromtimestamp(closes / 1000, tz=timezone.utc)
        raise WindowClosed(
            f"the window closed at {at:%Y-%m-%d %H:%M} UTC",
            where=worker.plan.ref.identifier,
            help="the rest is planned again in the next window; `--ignore-window` does it now",
        )


@contextmanager
def recorded_writing(
    worker: Worker, work: StepWork, facts: TableFacts, number: int, partitions: Iterable[PartitionValues]
) -> Iterator[None]:
    """Record that a batch's files are written within the block; and, where it fails, that they were removed.

    Raises:
        FolderUnwritable: E651, before anything was written, or after all of it was removed.
    """
    journal = worker.context.journal
    writing = Writing(
        journal.run_id,
        work.step_id,
        number,
        worker.plan.ref.identifier,
        facts.table_id,
        facts.location,
        tuple(sorted(partitions, key=repr)),
    )
    journal.writing(writing)
    try:
        yield
    except MaintainerError as error:
        # Where the engine is gone, nobody could remove anything.
        if not error.left_over and error.code != ENGINE_GONE:
            journal.written_off(writing)
        raise
