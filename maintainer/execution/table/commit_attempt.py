"""Try one commit or deletion of a run: what has to hold right before it, INTENT, the attempt, RESULT.

The table may have changed since it was planned. The rules are those of ``planning.recheck.staleness``: another table,
schema, partitioning or protocol refuses; missing files drop their bins; nothing is ever added. Other writers are looked
for once more. The window is checked before each step and commit, so that a long run does not outlast it.

A commit landed, did not land, or is unknown. When the engine raises after INTENT without saying which, the stamp is
looked up in the table's log.

That a batch's files are being written is recorded before the first, so that the next run can remove them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TypeVar

from maintainer.engine.protocols import TableReader
from maintainer.errors import (
    CommitConflict,
    CommitNotLanded,
    CommitUnknown,
    EngineGone,
    MaintainerError,
    TableAltered,
    TableHot,
    WindowClosed,
)
from maintainer.execution.run_context import problem_of
from maintainer.execution.table.recovery import deletion_receipt, end_of, receipt_from_log
from maintainer.execution.table.table_worker import StepWork, TableWorker
from maintainer.model.cached_property import cached_property
from maintainer.model.plan.plan import Problem, TablePlan
from maintainer.model.plan.steps import SetPropertiesStep, Step
from maintainer.model.run.receipts import CommitReceipt, Proof, VacuumReceipt
from maintainer.model.run.run_events import CommitEnd, Intent, Result, Writing, named
from maintainer.model.table.commit_records import CommitStamp
from maintainer.model.table.table_facts import PartitionValues, TableFacts
from maintainer.planning.recheck.staleness import StaleReasons, recheck, refusal
from maintainer.units import format_duration


def check_quiet(
    worker: TableWorker,
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


AnyStep = TypeVar("AnyStep", bound=Step)


def step_now(plan: TablePlan, step: AnyStep, facts: TableFacts) -> AnyStep | None:
    """Return the part of the step that still holds; None when nothing of it is left.

    Args:
        plan: The table's plan.
        step: One of its steps, or a part of one (a single batch).
        facts: The table now.

    Raises:
        TableAltered: A403, the table is not the one that was planned for; all differences at once.
        Refused: A403, it has lost versions: no writer of Delta's does that.
    """
    # Properties that the plan itself sets are no difference, so these steps come along; the others cost time.
    own: list[Step] = [planned for planned in plan.steps if isinstance(planned, SetPropertiesStep) and planned != step]
    now = recheck(replace(plan, steps=(*own, step)), facts, plan.policy_digest)
    if isinstance(now, StaleReasons):
        observed = plan.observed
        if observed is not None and facts.table_id == observed.table_id and facts.version < observed.version:
            raise refusal((now,))
        raise TableAltered(
            "the table was altered after it was planned",
            where=plan.ref.identifier,
            found="; ".join(now.reasons),
            help="nothing more of this step is committed; the next apply plans the table as it is now",
        )
    return next(
        (current for current in now.steps if isinstance(current, type(step)) and current.kind == step.kind), None
    )


def check_window(worker: TableWorker) -> None:
    """End here if the window in which the table was planned has closed.

    Raises:
        WindowClosed: C716; what is left is found again by the next plan.
    """
    closes = worker.plan.window_closes_ms
    if closes is not None and worker.context.clock.now_ms() >= closes:
        at = datetime.fromtimestamp(closes / 1000, tz=UTC)
        raise WindowClosed(
            f"the window closed at {at:%Y-%m-%d %H:%M} UTC",
            where=worker.plan.ref.identifier,
            help="the rest is planned again in the next window; `--ignore-window` does it now",
        )


@dataclass
class CommitAttempt:
    """One try of a commit, or of a deletion: INTENT before it, and what became of it.

    Within its block the engine is given the stamp and the attempt itself, which it calls right before it commits. After
    the block the caller hands over the receipt.

    Args:
        worker: The table's run.
        work: The step.
        facts: The table as read for this try.
        batch: Number of the batch within the step, from 0.
        figures: Files and bytes at stake, for INTENT.
        partitions: Those of a rewrite's files, for the last look at other writers; None takes no such look.
        kind: What is tried; None: what the step is.
    """

    worker: TableWorker
    work: StepWork
    facts: TableFacts
    batch: int
    figures: tuple[int, int] = (0, 0)
    partitions: frozenset[PartitionValues] | None = None
    kind: str | None = None
    read_version: int | None = None
    """The version that the newest INTENT names."""
    proof: Proof | None = None

    @cached_property
    def stamp(self) -> CommitStamp:
        """What marks the commit in the log as ours."""
        journal, plan = self.worker.context.journal, self.worker.plan
        return CommitStamp(journal.run_id, self.work.step_id, self.batch, plan.policy_digest)

    def __enter__(self) -> CommitAttempt:
        return self

    def __call__(self, read_version: int, proof: Proof | None) -> None:
        """Check what has to hold right before a commit, and write INTENT. Implements ``BeforeCommit``."""
        worker, context, facts = self.worker, self.worker.context, self.facts
        context.verifier_check.wait()
        worker.control.check_commit()
        if self.partitions is not None:
            carried_versions = () if proof is None else proof.carried_versions
            check_quiet(worker, facts, self.partitions, carried_versions=carried_versions)
        if worker.lease is not None and context.leases is not None:
            context.leases.check(worker.lease, worker.plan.ref.identifier)
        if self.read_version is not None and self.proof is proof:
            return  # another try of the same commit: its INTENT stands
        # First the mark, then one more look: whoever gives this thread up does it in the other order.
        self.work.unsettled = True
        worker.control.check_commit()
        about = (context.clock.now_ms(), *named(facts), self.stamp, self.kind or self.work.kind)
        proven = proof is not None and proof.holds
        context.journal.record(Intent(*about, read_version, proven, *self.figures, proof))
        self.read_version, self.proof = read_version, proof

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """After an error: find out what became of the commit, and write RESULT.

        Raises:
            FolderUnwritable: RESULT could not be written.
        """
        if not isinstance(error, Exception):
            return
        if self.read_version is None:
            self.work.unsettled = False
            return
        end, landed = self._what_landed(self.read_version, error)
        self.work.unsettled = end is CommitEnd.UNKNOWN
        self._record(end, landed, problem_of(error))

    def landed(self, receipt: CommitReceipt | VacuumReceipt) -> None:
        """Add the receipt to the step's work, so that nothing that landed is lost, and write RESULT.

        Raises:
            FolderUnwritable: RESULT could not be written.
        """
        if isinstance(receipt, CommitReceipt):
            self.work.commits.append(receipt)
        else:
            self.work.vacuum = receipt
        self.work.unsettled = False
        if self.read_version is not None:
            self._record(end_of(receipt), receipt)

    def _record(
        self, end: CommitEnd, receipt: CommitReceipt | VacuumReceipt | None, problem: Problem | None = None
    ) -> None:
        context = self.worker.context
        about = (context.clock.now_ms(), *named(self.facts), self.stamp, self.kind or self.work.kind)
        context.journal.record(Result(*about, end, receipt, problem))

    def _what_landed(
        self, read_version: int, error: Exception
    ) -> tuple[CommitEnd, CommitReceipt | VacuumReceipt | None]:
        """Settle an attempt that raised after INTENT; a landed commit is added to the step's work."""
        engine, work = self.worker.engine, self.work
        if work.deletion is not None:
            if work.num_deleted is None and isinstance(error, CommitNotLanded):
                return CommitEnd.NOT_LANDED, None  # VACUUM START did not land
            try:
                tried = work.deletion if work.num_deleted is not None else replace(work.deletion, files=())
                counted = error.receipt if isinstance(error, MaintainerError) else None
                # Which planned files are not there now does not say who took them.
                work.vacuum = (
                    counted if isinstance(counted, VacuumReceipt)
                    else deletion_receipt(engine, self.facts, tried, self.stamp, read_version)
                )  # fmt: skip
            except Exception:  # the engine is gone: the next run looks
                return CommitEnd.UNKNOWN, None
            return end_of(work.vacuum), work.vacuum
        match error:
            case CommitUnknown():
                return CommitEnd.UNKNOWN, None
            case CommitConflict() | CommitNotLanded():
                return CommitEnd.NOT_LANDED, None
        # A proof may fail before the commit and after it (V503: it landed in another table), so the log is asked.
        try:
            version = engine.reader.find_commit(self.facts, self.stamp, after_version=read_version)
        except Exception:  # the engine is gone: the next run asks again
            return CommitEnd.UNKNOWN, None
        if version is None:
            return CommitEnd.NOT_LANDED, None
        landed = CommitReceipt(version=version, read_version=read_version)
        with contextlib.suppress(Exception):  # without figures it has landed all the same
            landed = receipt_from_log(engine, self.facts, version, read_version)
        work.commits.append(landed)
        work.notes.append(f"version {version} is ours, but its receipt was lost; it counts as not proven")
        return CommitEnd.LANDED, landed


@contextmanager
def recorded_writing(
    worker: TableWorker, work: StepWork, facts: TableFacts, number: int, partitions: Iterable[PartitionValues]
) -> Iterator[None]:
    """Record that a batch's files are written within the block; where it fails, what of them is gone or may come late.

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
        if error.late_paths:
            ended_ms = worker.context.clock.now_ms()
            journal.record(replace(writing, at_ms=ended_ms, partitions=(), paths=error.late_paths))
        # Where the engine is gone, nobody could remove anything.
        if not (error.left_over or isinstance(error, EngineGone)):
            journal.written_off(writing)
        raise
