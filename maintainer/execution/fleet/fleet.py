"""Run a plan: N tables at once, each on a thread and a session of its own, with one outcome for every table.

The calling thread only watches signals, time limits and heartbeats. However the run ends, every table of the plan has
exactly one status, ``results.json`` is complete, and running tables were awaited or cancelled.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, replace
from functools import partial

from maintainer.engine.protocols import Engine, TablePlaces
from maintainer.errors import CommitConflict, EnvironmentUnfit, TableAltered, TableHot
from maintainer.execution.cancellation import RETRY_THE_REST, signals_stop
from maintainer.execution.fleet.fleet_bounds import FleetBounds, in_batches
from maintainer.execution.fleet.results import Results, append_within
from maintainer.execution.fleet.worker_pool import Task, WorkerPool
from maintainer.execution.run_context import RunContext, problem_of
from maintainer.execution.table.planned_ends import planned_problem, status_without_steps
from maintainer.journal.folder.atomic_files import FolderUnwritable
from maintainer.journal.ledger.ledger_pending import rows_wait
from maintainer.journal.ledger.ledger_rows import LedgerSink, rows_of
from maintainer.journal.memory.table_records import Remembered
from maintainer.journal.stop_request import STOPPED, StopRequest, stopped_on_request
from maintainer.model.plan.plan import Plan, Problem, TablePlan
from maintainer.model.plan.steps import REWRITE_KINDS
from maintainer.model.run.outcome import Preparation, RunEnd, RunOutcome, StepStatus, TableOutcome, TableStatus
from maintainer.model.run.progress import (
    LedgerAppending,
    PlacedTable,
    RunFinished,
    RunStarted,
    TableFinished,
)
from maintainer.model.run.run_events import Listed


@dataclass
class Fleet:
    """A run of a plan.

    Args:
        plan: What to do. Its age and policy digests were checked by the caller; each table is checked again here.
        engine: Makes one worker for each table that runs at once.
        context: The run's open journal, its leases, clock and verifier. SIGINT and SIGTERM throw its switch, too, when
            it is run on the main thread.
        bounds: How many at once, and how long.
        ledger: Where the run's rows end up; None keeps them in the run folder.
        preparation: What came before, for the outcome.
    """

    plan: Plan
    engine: Engine
    context: RunContext
    bounds: FleetBounds
    ledger: LedgerSink | None = None
    preparation: Preparation = Preparation()  # noqa: RUF009 (frozen)

    def __post_init__(self) -> None:
        self.started_at_ms, self.started = self.context.clock.now_ms(), self.context.clock.monotonic()
        self.plans = {table.ref: table for table in self.plan.tables}
        self.results = Results(self.plan, self.context, self.started_at_ms, self.started, self.preparation)

    def run(self) -> RunOutcome:
        """Carry out the plan: every table of it has one outcome, in the plan's order. Closes the journal.

        Raises:
            MaintainerError: Nothing was touched: verification would not be possible, or the run folder cannot be used.
        """
        requests, run_id = self.context.journal.stop_requests(), self.context.run_id
        with (
            self.context.closed_at_end(),
            signals_stop(self.context.switch),
            stopped_on_request(requests, run_id, self._stop),
        ):
            tasks = self._prepare()
            of_ledger = [task for task in tasks if task.plan.is_ledger]
            batches = in_batches([task for task in tasks if not task.plan.is_ledger], self.bounds.batches)
            # Last, so that it is not what a first small batch tries out.
            batches = [*batches[:-1], [*(batches[-1] if batches else ()), *of_ledger]] if of_ledger else batches
            workers = min(self.bounds.jobs, max(map(len, batches), default=0))
            context = self.context
            context.tell(
                RunStarted(
                    at_ms=self.started_at_ms,
                    run_id=context.run_id,
                    num_tables=self.plan.num_tables,
                    num_steps=len(context.step_numbers),
                    num_workers=workers,
                    run_folder=os.fspath(context.journal.folder.path),
                    planned_bytes=sum(step.size_bytes for step in self.plan.rewrites),
                    timeout_seconds=self.bounds.run_timeout_seconds,
                    preparation=self.preparation,
                )
            )
            waiting = {task.plan.ref for task in tasks}
            for table in self.plan.tables:
                if table.observed is not None and table.observed.listed:
                    where = (table.ref.identifier, table.observed.table_id, table.observed.location)
                    context.journal.record(Listed(context.clock.now_ms(), *where, self.plan.created_at_ms))
                if table.ref not in waiting:
                    status, problem = status_without_steps(table), planned_problem(table)
                    self._finish(TableOutcome.of(table, status, problem=problem))
            if tasks:
                WorkerPool(self.engine, context, self.bounds, self.results, self._finish).run(batches, workers)
            return self._close()

    def _stop(self, request: StopRequest) -> None:
        """End the run as a signal does, because somebody asked for it."""
        with contextlib.suppress(FolderUnwritable):  # the run finds that out, too
            self.context.journal.note("stop_requested", what=": ".join(filter(None, (request.by, request.reason))))
        self.context.switch.above.stop(STOPPED)

    def _prepare(self) -> list[Task]:
        """Run every check that may refuse the run.

        Raises:
            MaintainerError: See ``run``.
        """
        assert self.context.other_runs is not None
        runs, places = self.context.other_runs.read(), self.context.places
        tasks = [task for table in self.plan.tables if (task := _task(table, runs, places)) is not None]
        if any(task.plan.steps for task in tasks):
            expectations = {expectation for task in tasks for expectation in task.plan.checks.expectations}
            check = partial(self.context.verifier.preflight, tuple(sorted(expectations, key=repr)))
            if expectations:  # one that is wrong refuses the run as a whole
                check()
            else:
                self.context.verifier_check.start(check)
        self.results.write()
        return tasks

    def _finish(self, outcome: TableOutcome) -> None:
        """Record one table's outcome; called on the watching thread only."""
        planned = self.plans[outcome.ref]
        place = None if planned.observed is None else (planned.observed.table_id, planned.observed.location)
        event = table_finished(outcome, self.context.clock.now_ms(), place, is_hot=planned.hot is not None)
        try:
            self.context.record(event)
            if outcome.steps:  # thousands of tables need nothing: one write at the end is enough for them
                self.results.write_soon()
        except FolderUnwritable as error:
            self.context.folder_lost(error)

    def _close(self) -> RunOutcome:
        """Give unfinished tables their status, and write the run's results and ledger rows."""
        context = self.context
        why = context.switch.halt_reason
        for table in self.plan.tables:
            if not self.results.has(table.ref):
                problem = Problem("C713", f"not started: {why or 'no worker was left'}", help=RETRY_THE_REST)
                self._finish(TableOutcome.of(table, TableStatus.NOT_REACHED, problem=problem))
        outcome = self.results.outcome(context.switch.stop_reason, end=RunEnd.FINISHED)
        try:
            self.results.write(outcome)
            of_ledger = self._append_to_ledger(outcome)
            # A signal may have come meanwhile, or a commit that was given up have landed: every record says the same.
            appended, outcome = outcome.tables, self.results.outcome(context.switch.stop_reason, end=RunEnd.FINISHED)
            outcome = replace(outcome, problems=() if of_ledger is None else (of_ledger,), requests=context.requests())
            self.results.write(outcome)
            rows_known = outcome.tables == appended and (of_ledger is None or rows_wait(context.journal.folder))
            context.journal.record(RunFinished(context.clock.now_ms(), outcome, rows_known))
        except FolderUnwritable as error:
            outcome = replace(outcome, problems=(*outcome.problems, problem_of(error)))
        context.journal.close()
        with contextlib.suppress(OSError, EnvironmentUnfit):  # the next run reads the folders instead
            context.journal.update_state()
        context.emit(RunFinished(context.clock.now_ms(), outcome))
        return outcome

    def _append_to_ledger(self, outcome: RunOutcome) -> Problem | None:
        """Append the run's rows. A ledger that cannot be written fails no table; the next run tries again."""
        context, bounds, journal = self.context, self.bounds, self.context.journal
        rows = rows_of(self.plan, outcome)
        seconds = bounds.ledger_after(context.switch)
        if rows and self.ledger is not None and seconds:
            context.tell(LedgerAppending(context.clock.now_ms(), len(rows), seconds))
        problem = append_within(
            journal.folder, rows, self.ledger, clock=context.clock, switch=context.switch, bounds=bounds
        )
        if problem is not None:
            journal.note("ledger", code=problem.code, what=problem.what)
        return problem


def table_finished(
    outcome: TableOutcome, at_ms: int, place: PlacedTable | None, *, is_hot: bool = False
) -> TableFinished:
    """Return a table's end as an event. ``is_hot`` says that its plan left all rewrites to quieter hours."""
    rewrites = [step for step in outcome.steps if step.kind in REWRITE_KINDS]
    codes = {step.error.code for step in rewrites if step.error is not None and step.status is StepStatus.YIELDED}
    table_id, location = place or (None, None)
    return TableFinished(
        at_ms,
        outcome,
        table_id,
        location,
        lost=not codes.isdisjoint({CommitConflict.default_code, TableAltered.default_code}),
        hot=is_hot or TableHot.default_code in codes,
        rewritten=any(step.commits for step in rewrites),
    )


def _task(table: TablePlan, runs: Remembered, places: TablePlaces) -> Task | None:
    """Return a worker's task for a table; None when the table needs no engine."""
    if table.observed is None or table.problem is not None:
        return None
    past = runs.of_table(table.observed.table_id, table.observed.location, places)
    # In quarantine nothing is settled: the version that failed its check would fail again and halt every later run.
    owes = past.record.quarantined is None and not past.is_settled
    return Task(table, past) if table.steps or owes else None
