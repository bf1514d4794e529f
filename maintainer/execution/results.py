"""The run's outcome while it grows, and ``results.json``, which is never behind by more than the step that runs."""

from __future__ import annotations

import threading

from maintainer.execution.context import RunContext
from maintainer.execution.interruption import APPLY_AGAIN
from maintainer.model.outcome import RunOutcome, StepOutcome, TableOutcome, TableStatus
from maintainer.model.plan import Plan, Problem
from maintainer.model.results_wire import run_to_json
from maintainer.model.table import TableRef


class Results:
    """Collects outcomes from all threads. Tables that are not done yet are shown as what they would be if we died."""

    def __init__(self, plan: Plan, context: RunContext, started_at_ms: int, started: float) -> None:
        self._plan = plan
        self._context = context
        self._started_at_ms = started_at_ms
        self._started = started
        self._lock = threading.Lock()
        self._done: dict[TableRef, TableOutcome] = {}
        self._running: dict[TableRef, list[StepOutcome]] = {}
        self._write_lock = threading.Lock()

    def began(self, ref: TableRef) -> None:
        """A worker took the table."""
        with self._lock:
            self._running[ref] = []

    def step(self, ref: TableRef, outcome: StepOutcome) -> None:
        """A step ended; writes ``results.json``.

        Raises:
            FolderUnwritable: E651.
        """
        with self._lock:
            self._running.setdefault(ref, []).append(outcome)
        self.write()

    def steps_so_far(self, ref: TableRef) -> tuple[StepOutcome, ...]:
        """Steps of a running table that have ended."""
        with self._lock:
            return tuple(self._running.get(ref, ()))

    def finished(self, outcome: TableOutcome) -> bool:
        """A table ended. Only its first end counts: a worker that was given up may still come back with one."""
        with self._lock:
            if outcome.ref in self._done:
                return False
            self._done[outcome.ref] = outcome
            return True

    def has(self, ref: TableRef) -> bool:
        """Whether the table has ended."""
        return ref in self._done

    def outcome(self, interrupted_by: str | None) -> RunOutcome:
        """The run as it stands, every table of the plan once and in its order."""
        with self._lock:
            tables = tuple(self._table(table.ref, table.policy_file, table.owner) for table in self._plan.tables)
        return RunOutcome(
            run_id=self._context.run_id,
            started_at_ms=self._started_at_ms,
            duration_seconds=self._context.clock.monotonic() - self._started,
            tables=tables,
            interrupted_by=interrupted_by,
        )

    def _table(self, ref: TableRef, policy_file: str, owner: str | None) -> TableOutcome:
        if ref in self._done:
            return self._done[ref]
        if ref in self._running:
            problem = Problem("C712", "the run ended while this table was worked on", help=APPLY_AGAIN)
            return TableOutcome(ref, TableStatus.INTERRUPTED, tuple(self._running[ref]), problem, policy_file, owner)
        problem = Problem("C713", "the run ended before this table was started", help=APPLY_AGAIN)
        return TableOutcome(ref, TableStatus.NOT_REACHED, (), problem, policy_file, owner)

    def write(self) -> None:
        """Replace ``results.json``.

        Raises:
            FolderUnwritable: E651.
        """
        with self._write_lock:
            self._context.journal.folder.write_results(run_to_json(self.outcome(self._context.switch.stop_reason)))
