"""Stop a run or a table: after a signal, a timeout, a failed proof or a full disk.

A *stop* ends the run: running tables end at the next safe place (between commits), and what still runs on Spark after
a grace period is cancelled. A *halt* only keeps new tables from being started, and where the run folder is lost it also
keeps deletions from being made. A failed verification does only the latter; the second one halts.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

from maintainer.errors import Interrupted

TERMINATED = signal.SIGTERM.name
"""The stop reason of a run that a scheduler ended: Kubernetes kills it 30 seconds after this signal."""

RETRY_THE_REST = "`maintainer retry` does what is left; nothing is done twice"
"""The way out where a run ended before its tables did."""


class StopSwitch:
    """The run's switch; shared by all threads, set once for each kind. A watch has one, each of its runs another."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._halt_reason: str | None = None
        self.stop_reason: str | None = None
        """Why the run ends, None while it does not."""
        self.deletions_held: str | None = None
        """Why nothing may be deleted any more, None while it may."""
        self.unproven_tables: tuple[str, ...] = ()
        """Tables on which a verification failed, in the order of their failing."""
        self.urgent = False
        """Whether somebody asked twice."""
        self._above: StopSwitch | None = None
        self._run: StopSwitch | None = None

    def next_run(self) -> StopSwitch:
        """Return the switch of the next of several runs: what stops them all stops it, and it stops no other."""
        run = StopSwitch()
        run._above = self
        run.deletions_held, run.unproven_tables = self.deletions_held, self.unproven_tables
        self._run = run
        # A signal may have come before, or right now.
        if self.stop_reason is not None and run.stop_reason is None:
            run.stop(self.stop_reason)
            run.urgent = self.urgent
        return run

    def stop(self, reason: str) -> None:
        """Ask for the end of the run. Asked a second time, nothing more is waited for."""
        # No lock: this is called from a signal handler, which may interrupt a holder on the same thread.
        if self.stop_reason is None:
            self.stop_reason = reason
        else:
            self.urgent = True
        self._stopped.set()
        if self._run is not None:
            self._run.stop(reason)

    def halt(self, reason: str, *, hold_deletions: bool = False) -> None:
        """Start no more tables; what runs goes on, but with ``hold_deletions`` it deletes nothing more."""
        with self._lock:
            if self._halt_reason is None:
                self._halt_reason = reason
            if hold_deletions and self.deletions_held is None:
                self.deletions_held = reason

    def verification_failed(self, table: str, *, is_shared: bool = False) -> None:
        """Delete nothing more, in the runs after this one of a watch either; start no more tables after the second.

        Args:
            table: The table that cannot be trusted.
            is_shared: Whether the cause is known to be one that other tables share; then the first one is enough.
        """
        with self._lock:
            self.unproven_tables = tuple(dict.fromkeys((*self.unproven_tables, table)))
            first, *others = self.unproven_tables
            self.deletions_held = self.deletions_held or f"a verification failed on {first}"
            if is_shared or others:
                also = f", and on {others[0]}" if others else ""
                self._halt_reason = self._halt_reason or f"a verification failed on {first}{also}"
        if self._above is not None:
            self._above.verification_failed(table, is_shared=is_shared)

    @property
    def above(self) -> StopSwitch:
        """The switch of the watch that the run is one of; its own where there is none."""
        return self._above or self

    @property
    def halt_reason(self) -> str | None:
        """Why no more tables are started, None while they are."""
        return self.stop_reason or self._halt_reason

    @property
    def terminated(self) -> bool:
        """Whether a scheduler ended the run: it kills whatever is still there a little later."""
        return self.stop_reason == TERMINATED

    def wait(self, seconds: float) -> bool:
        """Wait, at most until the run is stopped; True when it was."""
        return self._stopped.wait(seconds)


class TableControl:
    """One table's view of stopping: the run's switch, and its own time limit."""

    def __init__(self, switch: StopSwitch) -> None:
        self.switch = switch
        self._reason: str | None = None
        self.timed_out = False
        """Whether the table's own time limit ended it."""
        self._abandoned = False

    def cancel(self, reason: str, *, timed_out: bool = False) -> None:
        """Record that the table's Spark jobs are being cancelled; a later failure has this reason."""
        if self._reason is None:
            self._reason, self.timed_out = reason, timed_out

    def abandon(self) -> None:
        """Record that the table's thread did not end in time; it may commit nothing any more."""
        self._abandoned = True

    @property
    def reason(self) -> str | None:
        """Why the table must end, None while it may go on."""
        return self._reason or self.switch.stop_reason

    def check(self) -> None:
        """Raise between two commits if the table must end.

        Raises:
            Interrupted: C710, or C711 for the table's time limit.
        """
        reason = self.reason
        if reason is not None:
            raise self._interrupted(f"stopped before the next commit: {reason}")

    def check_commit(self) -> None:
        """Raise right before a commit if the table was cancelled or given up; a mere stop lets it through.

        Raises:
            Interrupted: The table was cancelled or given up; committing now would surprise whoever reads the report.
        """
        if self._abandoned or self._reason is not None:
            raise self._interrupted(f"not committed: {self._reason or 'given up'}")

    def _interrupted(self, what: str) -> Interrupted:
        if self.timed_out:
            return Interrupted(what, code="C711", help="raise limits.timeout, or make batches smaller")
        return Interrupted(what, help=RETRY_THE_REST)


@contextlib.contextmanager
def signals_stop(switch: StopSwitch) -> Iterator[None]:
    """Let SIGINT and SIGTERM stop the run instead of raising, while inside. Only on the main thread.

    They are for the whole process: in a run of a watch they stop the watch, and the run with it.
    """

    def handle(number: int, frame: FrameType | None) -> None:
        del frame
        switch.above.stop(signal.Signals(number).name)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            # None: the handler was not set from Python and cannot be put back.
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
