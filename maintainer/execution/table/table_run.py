"""Run the steps of one table, in order, and return its outcome.

Every planned step ends with exactly one status. After a step that did not succeed the later ones are skipped, above
all the deletion. An unforeseen exception ends this table and no other.
"""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import assert_never

from maintainer.engine.process_loss import engine_gone, is_engine_lost
from maintainer.errors import (
    CommitConflict,
    CommitUnknown,
    DeletionWaits,
    EnvironmentUnfit,
    Interrupted,
    MaintainerError,
    Refused,
    VerificationFailed,
    WindowClosed,
)
from maintainer.execution.run_context import problem_of
from maintainer.execution.table.commit_attempt import check_window
from maintainer.execution.table.planned_ends import planned_problem, status_without_steps
from maintainer.execution.table.recovery import remove_unfinished, settle
from maintainer.execution.table.rewrite_metrics import files_after, rewrite_metrics
from maintainer.execution.table.step_runs import LIFT_HELP, run_properties, run_rewrite, run_vacuum, with_protocol
from maintainer.execution.table.table_worker import StepWork, TableWorker
from maintainer.execution.table.zorder_loop import run_full_zorder, run_turns
from maintainer.journal.folder.atomic_files import FolderUnwritable
from maintainer.journal.leases import Lease
from maintainer.journal.memory.table_records import TablePast
from maintainer.model.plan.plan import Observed, Problem, TablePlan, TableState
from maintainer.model.plan.steps import (
    BatchedStep,
    RewriteStep,
    SetPropertiesStep,
    Step,
    VacuumStep,
    ZOrderStep,
)
from maintainer.model.plan.zorder_turn import ZOrderSettings
from maintainer.model.run.outcome import ENDED_STEPS, FAILED_STEPS, StepOutcome, StepStatus, TableOutcome, TableStatus
from maintainer.model.run.progress import Phase, StepFinished, StepStarted
from maintainer.model.table.table_facts import TableRecord

StepDone = Callable[[], None]
"""Called after each step that is recorded, so that ``results.json`` is not behind."""


@dataclass
class TableRun:
    """One run of a table's plan.

    Args:
        worker: The plan, the engine's access for this thread, the run, and how to stop.
        past: What earlier runs left behind, as it was known when the run began. It is asked for again once the table's
            lease is ours.
        on_step: Called after each step.
    """

    worker: TableWorker
    past: TablePast = TablePast()  # noqa: RUF009 (frozen)
    on_step: StepDone = lambda: None
    work: StepWork | None = None
    """The step that runs, or ran last; for heartbeats."""
    steps: list[StepOutcome] = field(default_factory=list)
    problem: Problem | None = None
    failed: StepStatus | None = None

    def __post_init__(self) -> None:
        self.plan, self.record = self.worker.plan, self.past.record

    def run(self) -> TableOutcome:
        """Carry out the plan. Nothing is raised: what goes wrong is in the outcome."""
        with self._leased() as refusal:
            refusal = refusal or self._in_quarantine
            if refusal is not None:
                # It came into quarantine after the plan was saved, or another run works on it.
                for step in self.plan.steps:
                    self._keep(self._skipped(step, f"the table is blocked ({refusal.code})"))
                return TableOutcome.of(self.plan, TableStatus.BLOCKED, self.steps, refusal)
            if self.failed is None and self.record.quarantined is None and not self.past.is_settled:
                self._settle()
            for step in self.plan.steps:
                blocker = next((step for step in self.steps if step.status not in ENDED_STEPS), None)
                if self.failed is not None or blocker is not None:
                    unsettled = "what an earlier run left is not settled"
                    why = f"{blocker.kind} ended {blocker.status.value}" if blocker else unsettled
                    outcome = self._skipped(step, why)
                else:
                    outcome = self._run_step(step)
                self._keep(outcome)
            status = table_status(self.plan, tuple(self.steps), self.failed)
            return TableOutcome.of(self.plan, status, self.steps, self.problem or planned_problem(self.plan))

    @contextlib.contextmanager
    def _leased(self) -> Iterator[Problem | None]:
        """Hold the table's lease within the block; yields why the table is refused, where it is not to be had."""
        leases, observed, table = self.worker.context.leases, self.plan.observed, self.plan.ref.identifier
        if leases is None or observed is None or self._in_quarantine is not None:
            yield None
            return
        refusal: Problem | None = None
        try:
            lease = leases.acquire(observed.table_id, table)
        except (Refused, FolderUnwritable) as error:
            refusal = problem_of(error)
            if isinstance(error, FolderUnwritable):
                self.worker.context.folder_lost(error)
        if refusal is not None:
            yield refusal
            return
        self.worker = replace(self.worker, lease=lease)
        try:
            self._read_past_again(observed, lease)
            yield None
        finally:
            failure = leases.release(lease)
            if failure is not None:
                # Until it ends by itself it names a run that is over.
                with contextlib.suppress(FolderUnwritable):  # said by whatever needs the folder next
                    what = failure.strerror or str(failure)
                    self.worker.context.journal.note("lease_left", table=table, what=what)

    @property
    def _in_quarantine(self) -> Problem | None:
        """Why the table is refused, where it would be changed and is in quarantine."""
        if self.record.quarantined is None or not self.plan.steps:
            return None
        why = f"the table is in quarantine: {self.record.quarantined}"
        return Problem("A411", why, self.plan.ref.identifier, LIFT_HELP)

    def _read_past_again(self, observed: Observed, lease: Lease) -> None:
        """Take in what other runs recorded of the table since this run began: nobody else works on it now."""
        context = self.worker.context
        if context.other_runs is None:
            return
        try:
            runs = context.other_runs.newest(lease.previous_run)
            self.past = runs.of_table(observed.table_id, observed.location, context.places)
        except Exception as error:  # kept as the table's problem; other tables go on
            work = StepWork(f"{self.plan.ref.identifier}/settle", "settle")
            self.failed, self.problem = self._judge(error, work)
            return
        self.record = self.past.record

    def _record_now(self) -> TableRecord:
        """What is remembered of the table right before files are deleted, less what this run has proven.

        Raises:
            MaintainerError: What other runs recorded cannot be read; nothing may be deleted.
        """
        context, observed = self.worker.context, self.plan.observed
        if context.other_runs is None or observed is None:
            return self.record
        runs = context.other_runs.newest(None, max_age_seconds=0.0)
        runs.check_whole()
        record = runs.of_table(observed.table_id, observed.location, context.places).record
        proven = set(self.past.record.unproven_versions) - set(self.record.unproven_versions)
        unproven = ({*record.unproven_versions} - proven) | {*self.record.unproven_versions}
        return replace(record, unproven_versions=tuple(sorted(unproven)))

    def _settle(self) -> None:
        """Settle the past first. If that fails, every step is skipped and the table carries the reason."""
        work = StepWork(f"{self.plan.ref.identifier}/settle", "settle")
        try:
            facts = work.facts = self.worker.engine.reader.facts(self.plan.ref)
            self.record, settled = settle(self.worker, self.past.open_intents, self.record, facts)
            for note in (*settled.notes, *remove_unfinished(self.worker, self.past.writings, facts)):
                self.worker.context.journal.note("settled", table=self.plan.ref.identifier, what=note)
        except Exception as error:  # kept as the table's problem; other tables go on
            self.failed, self.problem = self._judge(error, work)

    def _run_step(self, step: Step) -> StepOutcome:
        context = self.worker.context
        work = self.work = StepWork(
            self.plan.step_id(step), step.kind, meter=self.worker.engine.meter, started=context.clock.monotonic()
        )
        work.meter.begin(Phase.READING_LOG)
        started_at_ms = context.clock.now_ms()
        number, batches = context.step_numbers.get(work.step_id, 0), num_batches(step)
        problem: Problem | None = None
        try:
            table = self.plan.ref.identifier
            context.record(StepStarted(started_at_ms, table, work.step_id, step.kind, number, batches))
            self.worker.control.check()
            check_window(self.worker)
            match step:
                case SetPropertiesStep():
                    status = run_properties(self.worker, work, step)
                    if status is StepStatus.SUCCEEDED:
                        # Our own properties may have raised the protocol; later steps must find that and nothing else.
                        facts = self.worker.engine.reader.facts(self.plan.ref)
                        self.worker = replace(self.worker, plan=with_protocol(self.worker.plan, facts))
                case ZOrderStep(settings=ZOrderSettings()):
                    status = run_turns(self.worker, work, step)
                case ZOrderStep():
                    status = run_full_zorder(self.worker, work, step)
                case BatchedStep():
                    status = run_rewrite(self.worker, work, step)
                case VacuumStep():
                    status = run_vacuum(self.worker, work, step, self._record_now())
                case _:
                    assert_never(step)
        except Exception as error:  # becomes the step's outcome; other tables go on
            status, problem = self._judge(error, work)
        metrics = None
        if work.facts is not None and isinstance(step, RewriteStep):
            ended_at_ms = context.clock.now_ms()
            metrics = rewrite_metrics(
                self.plan, step, work.facts, work.rewritten, started_at_ms=started_at_ms, ended_at_ms=ended_at_ms
            )
        return StepOutcome(
            step_id=work.step_id,
            kind=step.kind,
            status=status,
            metrics=metrics,
            started_at_ms=started_at_ms,
            duration_seconds=context.clock.monotonic() - work.started,
            commits=tuple(work.commits),
            vacuum=work.vacuum,
            assertions=tuple(work.assertions),
            error=problem,
            note="; ".join(work.notes) or None,
            turns=tuple(work.turns),
            files_after=files_after(work, context.clock.now_ms()),
            boxes=work.boxes,
            layout=work.layout,
            goes_on=work.goes_on or (isinstance(step, RewriteStep) and self.plan.is_cut),
        )

    def _judge(self, error: Exception, work: StepWork) -> tuple[StepStatus, Problem]:
        """Return the status that an error gives a step, and stop what else must stop because of it."""
        context, control = self.worker.context, self.worker.control
        problem = problem_of(error)
        if is_engine_lost(error):
            # Every other table would meet the same: they are not reached, and the cause is said once.
            context.switch.halt(str(engine_gone(None)))
        if isinstance(error, EnvironmentUnfit) and error.ends_run:
            context.switch.halt(f"{problem.code}: {problem.what}")
        match error:
            case VerificationFailed():
                context.switch.verification_failed(self.plan.ref.identifier, is_shared=error.is_shared)
                self._quarantine(work, f"{problem.code}: {problem.what}")
                return StepStatus.VERIFY_FAILED, problem
            case FolderUnwritable():
                context.folder_lost(error)
                return StepStatus.FAILED, problem
            case DeletionWaits():
                return StepStatus.SKIPPED, problem
            case CommitUnknown():
                return StepStatus.UNKNOWN, problem
            case _ if work.unsettled:  # whatever ended it: nobody knows what became of its INTENT
                return StepStatus.UNKNOWN, problem
            case _ if control.timed_out:
                seconds = self.plan.timeout_seconds
                return StepStatus.FAILED, Problem("C711", f"not done within {seconds} s: {problem.what}", problem.where,
                                                  "raise limits.timeout, or make batches smaller")  # fmt: skip
            case Interrupted():
                return StepStatus.INTERRUPTED, problem
            case CommitConflict() | WindowClosed():
                return StepStatus.YIELDED, problem
            case _ if control.reason is not None:
                return StepStatus.INTERRUPTED, problem
            case MaintainerError():
                return StepStatus.FAILED, problem
            case _ if is_engine_lost(error):
                return StepStatus.FAILED, problem
            case _:
                self._keep_traceback(error)
                return StepStatus.FAILED, problem

    def _quarantine(self, work: StepWork, reason: str) -> None:
        if work.facts is not None:
            try:
                self.worker.context.journal.quarantine(work.facts, reason, work.wrong_version)
            except FolderUnwritable as error:
                self.worker.context.folder_lost(error)

    def _keep_traceback(self, error: Exception) -> None:
        text = f"{self.plan.ref.identifier}\n" + "".join(traceback.format_exception(error))
        try:
            self.worker.context.journal.folder.write_traceback(text)
        except FolderUnwritable as unwritable:
            self.worker.context.folder_lost(unwritable)

    def _skipped(self, step: Step, why: str) -> StepOutcome:
        return StepOutcome(
            step_id=self.plan.step_id(step),
            kind=step.kind,
            status=StepStatus.SKIPPED,
            started_at_ms=self.worker.context.clock.now_ms(),
            duration_seconds=0.0,
            note=f"skipped: {why}",
        )

    def _keep(self, outcome: StepOutcome) -> None:
        """Record a step's outcome in the journal, the results and the events."""
        self.steps.append(outcome)
        context, table = self.worker.context, self.plan.ref.identifier
        observed, number = self.plan.observed, context.step_numbers.get(outcome.step_id, 0)
        key = (observed.table_id, observed.location) if observed is not None else (None, None)
        try:
            context.record(StepFinished(context.clock.now_ms(), table, number, outcome, *key))
            self.on_step()
        except FolderUnwritable as error:
            context.folder_lost(error)
            self.problem = self.problem or problem_of(error)


def num_batches(step: Step) -> int:
    """Return the number of commits that a step is planned to make."""
    return len(step.batches) if isinstance(step, RewriteStep) else 1


def table_status(plan: TablePlan, steps: tuple[StepOutcome, ...], failed: StepStatus | None = None) -> TableStatus:
    """Return the table status: the most severe step status.

    Args:
        plan: The table's plan; without steps it decides alone.
        steps: How the steps ended.
        failed: How settling earlier runs ended, if it did not succeed.
    """
    statuses = {step.status for step in steps} | ({failed} if failed is not None else set())
    if StepStatus.VERIFY_FAILED in statuses:
        return TableStatus.VERIFY_FAILED
    if statuses & FAILED_STEPS:
        return TableStatus.FAILED
    if StepStatus.INTERRUPTED in statuses:
        return TableStatus.INTERRUPTED
    if StepStatus.YIELDED in statuses:
        return TableStatus.YIELDED
    if plan.state is TableState.CHANGES:
        if StepStatus.SKIPPED in statuses:  # none failed, so it is the vacuum that waits for the next run
            return TableStatus.WAITING
        if StepStatus.SUCCEEDED in statuses:
            return TableStatus.DONE
        return TableStatus.WAITING if plan.hot is not None else TableStatus.UP_TO_DATE
    return status_without_steps(plan)
