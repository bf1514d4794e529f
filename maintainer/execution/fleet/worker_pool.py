"""The threads of a run: each enters a worker of the engine once and takes tables until none is left.

Tables come in batches. The next batch is opened when every table of the one before has ended, and only if none failed
beyond what the bounds allow and no verification failed.

The main thread only enforces time limits: it cancels overdue tables, abandons threads that do not end, and starts new
workers in their place. It waits for nothing without a limit.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from maintainer.engine.protocols import TableEngine
from maintainer.engine.worker_threads import MAX_GIVEN_UP, PooledThread, WorkerThreads
from maintainer.execution.cancellation import RETRY_THE_REST, TableControl
from maintainer.execution.fleet.fleet_bounds import FleetBounds
from maintainer.execution.fleet.results import Results
from maintainer.execution.run_context import RunContext, problem_of
from maintainer.execution.table.table_run import TableRun, num_batches, table_status
from maintainer.execution.table.table_worker import TableWorker
from maintainer.journal.folder.atomic_files import FolderUnwritable
from maintainer.journal.memory.table_records import TablePast
from maintainer.model.plan.plan import Problem, TablePlan
from maintainer.model.run.outcome import StepOutcome, StepStatus, TableOutcome, TableStatus
from maintainer.model.run.progress import BatchStarted, RunStopping, StepFinished, StepHeartbeat, TableStarted
from maintainer.model.table.table_facts import TableRef
from maintainer.units import count_of

CANCEL_AGAIN_SECONDS = 1.0
"""Seconds between cancels: a cancel ends only running Spark jobs, and jobs that start later need another."""


@dataclass(frozen=True, slots=True)
class Task:
    """One table's work, and what earlier runs left behind."""

    plan: TablePlan
    past: TablePast


@dataclass(slots=True)
class _RunningTable:
    """A table on a worker."""

    run: TableRun
    started: float
    last_beat: float = 0.0
    cancelled_at: float | None = None
    last_cancel: float = 0.0

    @property
    def work(self) -> Callable[[], TableOutcome]:
        return self.run.run


_Pooled = PooledThread[_RunningTable]


@dataclass(slots=True)
class WorkerPool(WorkerThreads[_RunningTable]):
    """Runs tasks on threads; ``finish`` is called on the watching thread, once for each table that was started."""

    context: RunContext
    bounds: FleetBounds
    results: Results
    finish: Callable[[TableOutcome], None]
    _waiting: deque[Task] = field(default_factory=deque)
    _batches: deque[list[Task]] = field(default_factory=deque)
    _num_batches: int = 0
    _ended: queue.SimpleQueue[TableOutcome] = field(default_factory=queue.SimpleQueue)
    _failed: set[TableRef] = field(default_factory=set)
    _is_wrong: bool = False
    _batch_opened: threading.Condition = field(init=False)

    def __post_init__(self) -> None:
        self._batch_opened = threading.Condition(self._lock)

    def run(self, batches: list[list[Task]], num_workers: int) -> None:
        """Work until every task has ended, was given up, or must not be started any more."""
        self._batches.extend(batches)
        self._num_batches = len(batches)
        self._open_next_batch()
        started = self.context.clock.monotonic()  # before the first table: its time is the run's, too
        for _ in range(num_workers):
            self._new_thread().start()
        stopped_at: float | None = None
        times_said = 0
        while self._busy():
            self._collect(self.bounds.tick_seconds)
            self._open_next_batch()
            self._catch_up()
            now = self.context.clock.monotonic()
            limit = self.bounds.run_timeout_seconds
            if limit is not None and now - started > limit and self.context.switch.stop_reason is None:
                self.context.switch.stop(f"timeout of {limit:g} s")
            if (reason := self.context.switch.stop_reason) is not None:
                stopped_at = now if stopped_at is None else stopped_at
                if times_said < (times_asked := 1 + self.context.switch.urgent):
                    times_said = times_asked
                    self._say_that_it_stops(reason)
            for pooled in list(self._threads):
                self._watch(pooled, now, stopped_at)
        self._collect(0.0)
        self._report_broken_workers()

    def _say_that_it_stops(self, reason: str) -> None:
        grace_seconds = self.bounds.grace_after(self.context.switch)
        switch, bounds = self.context.switch, self.bounds
        # What runs, then what does not end when it is cancelled, then the ledger.
        at_most_seconds = grace_seconds + bounds.hang_after(switch) + bounds.ledger_after(switch)
        self.context.tell(RunStopping(self.context.clock.now_ms(), reason, grace_seconds, at_most_seconds))

    def _catch_up(self) -> None:
        try:
            self.results.catch_up()
        except FolderUnwritable as error:
            self.context.folder_lost(error)

    def _busy(self) -> bool:
        with self._lock:
            startable = bool(self._waiting or self._batches) and self.context.switch.halt_reason is None
            return any(pooled.task is not None for pooled in self._working()) or (startable and bool(self._working()))

    def _open_next_batch(self) -> None:
        """Hand out the next batch once the one before has ended; failures in it keep the rest from being started."""
        with self._lock:
            busy = any(pooled.task is not None for pooled in self._working()) or not self._ended.empty()
            if not self._batches or self._waiting or busy:
                return
            number, failed = self._num_batches - len(self._batches) + 1, len(self._failed)
            # Failures may be allowed; a batch is still not tried out on more tables once what it wrote was wrong.
            if failed < (self.bounds.max_failures or 1) and not self._is_wrong:
                self._waiting.extend(self._batches.popleft())
                opened, num_tables = len(self._waiting), sum(not task.plan.is_ledger for task in self._waiting)
                self._batch_opened.notify_all()
            else:
                opened = num_tables = 0
        if not opened:
            tables = count_of(failed, "table")
            self.context.switch.halt(f"{tables} failed before batch {number} of {self._num_batches}")
        elif self._num_batches > 1:
            self.context.tell(BatchStarted(self.context.clock.now_ms(), number, self._num_batches, num_tables))

    def _thread_name(self, number: int) -> str:
        return f"{self.context.run_id}-w{number}"

    def _broke(self, pooled: _Pooled, task: _RunningTable | None) -> None:
        if task is not None and pooled.broken is not None:
            self._finished(self._failed_outcome(task.run.plan, problem_of(pooled.broken)))

    def _finished(self, result: TableOutcome) -> None:
        """Hand over an outcome. Failures are counted here, before the next table is taken, so that a bound is exact."""
        failed_status = result.status is TableStatus.FAILED and not result.is_ledger
        if failed_status or result.status is TableStatus.VERIFY_FAILED:
            with self._lock:
                self._is_wrong |= result.status is TableStatus.VERIFY_FAILED
                self._failed.add(result.ref)  # one that was given up may still end by itself
                failed, allowed = len(self._failed), self.bounds.max_failures
            if allowed is not None and failed >= allowed:
                self.context.switch.halt(f"{count_of(failed, 'table')} failed, and --max-failures is {allowed}")
        self._ended.put(result)

    def _take(self, pooled: _Pooled, worker: TableEngine) -> _RunningTable | None:
        with self._lock:
            while self._batches and not self._waiting and self.context.switch.halt_reason is None:
                if pooled.given_up:
                    return None
                self._batch_opened.wait(self.bounds.tick_seconds)
            if not self._waiting or self.context.switch.halt_reason is not None or pooled.given_up:
                return None
            task, now = self._waiting.popleft(), self.context.clock.monotonic()
            table = TableWorker(task.plan, worker, self.context, TableControl(self.context.switch))
            running = _RunningTable(TableRun(table, task.past, self.results.write_soon), now)
            worker.begin_table()
            pooled.task = running
        plan, now_ms = task.plan, self.context.clock.now_ms()
        self.context.tell(TableStarted(now_ms, plan.ref.identifier, len(plan.steps), plan.is_ledger))
        return running

    def _collect(self, seconds: float) -> None:
        """Take the outcomes that have arrived; wait for the first."""
        try:
            outcome = self._ended.get(timeout=seconds) if seconds else self._ended.get_nowait()
            while True:
                if not self.results.has(outcome.ref):
                    self.finish(outcome)
                outcome = self._ended.get_nowait()
        except queue.Empty:
            return

    def _watch(self, pooled: _Pooled, now: float, stopped_at: float | None) -> None:
        running = pooled.task
        if running is None:
            return
        if running.cancelled_at is not None and now - running.last_cancel >= CANCEL_AGAIN_SECONDS:
            running.last_cancel = now
            self._cancel_jobs(pooled, running)
        if pooled.given_up:
            return
        seconds = running.run.plan.timeout_seconds
        grace = self.bounds.grace_after(self.context.switch)
        if running.cancelled_at is None:
            if now - running.started > seconds:
                self._cancel(pooled, running, now, f"the table's limit of {seconds} s", timed_out=True)
            elif stopped_at is not None and now - stopped_at >= grace:
                self._cancel(pooled, running, now, self.context.switch.stop_reason or "stopped", timed_out=False)
        elif now - running.cancelled_at > self.bounds.hang_after(self.context.switch):
            self._give_up(pooled, running)
            return
        self._beat(running, now)

    def _cancel(self, pooled: _Pooled, running: _RunningTable, now: float, reason: str, *, timed_out: bool) -> None:
        running.cancelled_at = running.last_cancel = now
        running.run.worker.control.cancel(reason, timed_out=timed_out)
        self._cancel_jobs(pooled, running)

    def _give_up(self, pooled: _Pooled, running: _RunningTable) -> None:
        """Abandon a thread that does not end: report its table without it, and start another worker."""
        with self._lock:
            if pooled.task is None:
                return
            pooled.given_up = True
        running.run.worker.control.abandon()
        if running.run.work is not None:
            self.context.journal.given_up.add(running.run.work.step_id)
        outcome = _hung(running, self.results, self.bounds.hang_after(self.context.switch))
        known = len(self.results.steps_so_far(running.run.plan))
        for step in outcome.steps[known:]:
            number, now_ms = self.context.step_numbers.get(step.step_id, 0), self.context.clock.now_ms()
            self.context.tell(StepFinished(now_ms, outcome.ref.identifier, number, step))
        if not self.results.has(outcome.ref):  # its cancel alone may hang
            self._finished(outcome)
        if self._too_many_given_up():
            self.context.switch.halt(f"{MAX_GIVEN_UP} tables did not end when cancelled")
        elif (self._waiting or self._batches) and self.context.switch.halt_reason is None:
            self._new_thread().start()

    def _beat(self, running: _RunningTable, now: float) -> None:
        work, plan = running.run.work, running.run.plan
        if work is None or now - max(running.last_beat, work.started) < self.bounds.heartbeat_seconds:
            return
        running.last_beat = now
        step = plan.step_of(work.step_id)
        if step is None:
            return
        self.context.emit(
            StepHeartbeat(
                at_ms=self.context.clock.now_ms(),
                table=plan.ref.identifier,
                step_id=work.step_id,
                kind=work.kind,
                number=self.context.step_numbers.get(work.step_id, 0),
                elapsed_seconds=now - work.started,
                num_batches_done=work.batches_done,
                num_batches=num_batches(step),
                bytes_committed=sum(commit.bytes_removed for commit in tuple(work.commits)),
                progress=work.meter.progress(),
            )
        )

    def _failed_outcome(self, plan: TablePlan, problem: Problem) -> TableOutcome:
        return TableOutcome.of(plan, TableStatus.FAILED, self.results.steps_so_far(plan), problem)

    def _report_broken_workers(self) -> None:
        """Fail the tables that could not start because no worker did, with the reason."""
        broken = next((pooled.broken for pooled in self._threads if pooled.broken is not None), None)
        if broken is None or self.context.switch.halt_reason is not None:
            return
        problem = problem_of(broken)
        for task in (*self._waiting, *(task for batch in self._batches for task in batch)):
            self.finish(self._failed_outcome(task.plan, problem))


def _hung(running: _RunningTable, results: Results, seconds: float) -> TableOutcome:
    """Make the outcome of a table whose thread was given up. What was not begun is skipped.

    Its running step ends as if it had ended in time: what wrote no INTENT cannot have been committed, and it may
    commit nothing any more. Only an INTENT without a result makes it unknown.
    """
    plan, work, control = running.run.plan, running.run.work, running.run.worker.control
    steps = list(results.steps_so_far(plan))
    if work is not None and work.unsettled:
        status, help = StepStatus.UNKNOWN, "the next apply looks into the table's log before it touches the table"
    elif control.timed_out:
        status, help = StepStatus.FAILED, "raise limits.timeout, or make batches smaller"
    else:
        status, help = StepStatus.INTERRUPTED, RETRY_THE_REST
    message = f"did not end within {seconds:g} s of being cancelled ({control.reason or 'cancelled'})"
    problem = Problem("C714", message, plan.ref.identifier, help)
    clock, ended = running.run.worker.context.clock, {step.step_id for step in steps}
    now_ms = clock.now_ms()
    for step in plan.steps:
        step_id = plan.step_id(step)
        if step_id in ended:
            continue
        if work is not None and step_id == work.step_id:
            commits, took = tuple(work.commits), clock.monotonic() - work.started
            began_ms = now_ms - round(1000 * took)
            steps.append(StepOutcome(step_id, step.kind, status, began_ms, took, commits, error=problem))
        else:
            steps.append(StepOutcome(step_id, step.kind, StepStatus.SKIPPED, now_ms, 0.0))
    ended_as = table_status(plan, tuple(steps), status)
    return TableOutcome.of(plan, ended_as, steps, problem)
