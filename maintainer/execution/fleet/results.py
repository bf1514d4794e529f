"""Keep ``results.json`` up to date with a run's events, and append the run's rows to the ledger at its end.

The file is written after each step. With thousands of tables the bytes would grow by the square of their number, so
each table's text is made once, and a write waits until a hundredth of the tables changed or five minutes passed, and
until the pause after the last write is over. All writes together take at most a twentieth of the run. A kill loses
nothing: every INTENT and RESULT is in ``events.jsonl`` before and after its commit.

The append to the ledger is the run's last act, within a time limit that a signal cuts short. The rows are in the run
folder before it. The next run appends what did not land in time; each append carries the run as its token, so no row
lands twice.
"""

from __future__ import annotations

import threading
import zlib
from concurrent.futures import wait
from dataclasses import dataclass, field

from maintainer.engine.side_call import side_call
from maintainer.execution.cancellation import RETRY_THE_REST, StopSwitch
from maintainer.execution.fleet.fleet_bounds import FleetBounds
from maintainer.execution.run_context import Clock, RunContext
from maintainer.journal.folder.run_folder import RunFolder
from maintainer.journal.ledger.ledger_pending import LATER, flush
from maintainer.journal.ledger.ledger_rows import LedgerRow, LedgerSink
from maintainer.model.plan.plan import Plan, Problem, TablePlan
from maintainer.model.run.outcome import (
    Preparation,
    RunEnd,
    RunOutcome,
    StepOutcome,
    TableOutcome,
    run_from_fragments,
    table_to_json,
)
from maintainer.model.table.table_facts import TableRef

WRITE_AT_MOST_EACH = 19.0
"""After a write, the pause before the next one as a multiple of what it took."""

FEW_TABLES = 100
"""Runs of at most so many tables are written after every step, however long it takes."""

TABLES_A_WRITE = 100
"""In larger runs a write is due when the tables divided by this ended a step or themselves since the last one."""

STALE_AFTER_SECONDS = 300.0
"""In larger runs a write is due as well when the file has missed something for so long: people look at it."""


_UNFINISHED = (
    Problem("C712", "the run ended while this table was worked on", help=RETRY_THE_REST),
    Problem("C713", "the run ended before this table was started", help=RETRY_THE_REST),
)


@dataclass
class Results:
    """A run as ``results.json`` has it. Unfinished tables count as interrupted or not reached, as after a kill."""

    plan: Plan
    context: RunContext
    started_at_ms: int
    started: float
    preparation: Preparation = Preparation()  # noqa: RUF009 (frozen)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _write_lock: threading.Lock = field(default_factory=threading.Lock)
    _texts: dict[TableRef, tuple[TableOutcome, bytes]] = field(default_factory=dict)
    """Compressed, to a quarter."""
    _missed: int = 0
    _ended: bool = False
    _next_write: float = 0.0
    _stale_at: float = 0.0

    def steps_so_far(self, table: TablePlan) -> tuple[StepOutcome, ...]:
        """Return the steps of a table that have ended."""
        return self._table(table).steps

    def has(self, ref: TableRef) -> bool:
        """Return whether the table has ended."""
        return ref in self.context.journal.fold.ended

    def outcome(self, interrupted_by: str | None, *, end: RunEnd = RunEnd.RUNNING) -> RunOutcome:
        """Return the run as it is now, every table of the plan once and in its order."""
        return RunOutcome(
            run_id=self.context.run_id,
            started_at_ms=self.started_at_ms,
            duration_seconds=self.context.clock.monotonic() - self.started,
            tables=tuple(map(self._table, self.plan.tables)),
            interrupted_by=interrupted_by,
            end=end,
            preparation=self.preparation,
        )

    def _table(self, table: TablePlan) -> TableOutcome:
        return self.context.journal.fold.outcome(table, _UNFINISHED, None)

    def write(self, outcome: RunOutcome | None = None) -> None:
        """Replace ``results.json``, now.

        Args:
            outcome: The run's end, the same that is handed on; None is the run as it stands.

        Raises:
            FolderUnwritable: E651.
        """
        with self._write_lock:
            if self._ended and outcome is None:
                return  # a worker that was given up came back: the run's end stands
            self._ended = outcome is not None
            self._missed = 0
            started = self.context.clock.monotonic()
            outcome = outcome or self.outcome(self.context.switch.stop_reason)
            text = run_from_fragments(outcome, (self._text(table) for table in outcome.tables))
            self.context.journal.folder.write_results(text)
            ended = self.context.clock.monotonic()
            pause = 0.0 if self._few else (ended - started) * WRITE_AT_MOST_EACH
            self._next_write = ended + pause
            self._stale_at = ended + STALE_AFTER_SECONDS

    def write_soon(self) -> None:
        """Replace ``results.json`` if that is due; else `catch_up` does it later.

        Raises:
            FolderUnwritable: E651.
        """
        with self._lock:
            self._missed += 1
        self.catch_up()

    def catch_up(self) -> None:
        """Write what `write_soon` put off, if it is time. Called again and again by whoever watches the run.

        Raises:
            FolderUnwritable: E651.
        """
        now = self.context.clock.monotonic()
        if not self._missed or now < self._next_write:
            return
        if self._few or self._missed >= len(self.plan.tables) / TABLES_A_WRITE or now >= self._stale_at:
            self.write()

    @property
    def _few(self) -> bool:
        return len(self.plan.tables) <= FEW_TABLES

    def _text(self, table: TableOutcome) -> bytes:
        """A table's text, kept as long as its outcome is the same object."""
        entry = self._texts.get(table.ref)
        if entry is None or entry[0] is not table:
            entry = self._texts[table.ref] = (table, zlib.compress(table_to_json(table)))
        return zlib.decompress(entry[1])


TICK_SECONDS = 0.1


def append_within(
    folder: RunFolder,
    rows: tuple[LedgerRow, ...],
    sink: LedgerSink | None,
    *,
    clock: Clock,
    switch: StopSwitch,
    bounds: FleetBounds,
) -> Problem | None:
    """Append a run's rows and those that wait from earlier runs, on a thread of its own.

    Args:
        folder: The run's folder.
        rows: The run's rows.
        sink: The ledger; None keeps the rows in the folder.
        clock: For the limits.
        switch: Once it is thrown by SIGTERM, the append is not begun.
        bounds: How long the append may take, at most and after a stop.

    Returns:
        What went wrong, for the report; the run does not fail by it.
    """
    if switch.terminated and sink is not None:
        left = _left_to_the_next_run(switch.stop_reason, folder) if rows else None
        return flush(folder, rows, None) or left
    started = clock.monotonic()
    stopped_at = started if switch.stop_reason is not None else None
    append = side_call(lambda: flush(folder, rows, sink), "ledger")
    while not wait([append], TICK_SECONDS).done:
        now = clock.monotonic()
        if stopped_at is None and switch.stop_reason is not None:
            stopped_at = now
        if now - started > bounds.ledger_seconds:
            return _given_up(f"not done within {bounds.ledger_seconds:g} s", folder)
        if stopped_at is not None and now - stopped_at > bounds.ledger_after(switch) and not append.done():
            return _left_to_the_next_run(switch.stop_reason, folder)
    try:
        return append.result()
    except Exception as error:  # the run is over, and does not fail by it
        return _given_up(f"{type(error).__name__}: {error}", folder)


def _left_to_the_next_run(stop_reason: str | None, folder: RunFolder) -> Problem:
    """Say what a stop means for the ledger: nothing is wrong, and nothing is lost."""
    message = f"the ledger does not have this run yet: {stop_reason} left no time to append its rows"
    return Problem("E665", message, str(folder.path), LATER)


def _given_up(why: str, folder: RunFolder) -> Problem:
    return Problem("E652", f"the ledger could not be written: {why}", str(folder.path), LATER)
