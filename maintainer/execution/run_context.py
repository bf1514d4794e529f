"""What all tables of one run share: the clock, the bounds of retries, the journal, the verifier and the event sink.

The clock is given from outside, so that tests need no waiting. Retries are few, with growing pauses and jitter: each
of our commits can make a customer's DELETE or MERGE fail, so after a few attempts the batch yields to the next run. An
exception becomes the problem that results, records and reports show.
"""

from __future__ import annotations

import contextlib
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass, field

from maintainer.engine.process_change import ProcessChange
from maintainer.engine.process_loss import engine_gone, is_engine_lost
from maintainer.engine.protocols import TablePlaces
from maintainer.engine.side_call import side_call
from maintainer.errors import MaintainerError, VerifierUnfit
from maintainer.execution.cancellation import StopSwitch
from maintainer.journal.folder.atomic_files import FolderUnwritable
from maintainer.journal.journal import Journal
from maintainer.journal.leases import Leases
from maintainer.journal.memory.other_runs import OtherRuns
from maintainer.model.plan.plan import Plan, Problem, as_problem
from maintainer.model.run.exit_codes import BUG_CODE
from maintainer.model.run.progress import ProgressEvent, ProgressSink
from maintainer.model.run.run_events import RunEvent, is_shown
from maintainer.model.table.store_requests import RunRequests
from maintainer.model.table.table_facts import TableRef
from maintainer.verification.verification_result import Verifier


@dataclass(frozen=True, slots=True)
class Clock:
    """``now_ms`` for records (milliseconds since 1970 UTC), ``monotonic`` for durations (seconds)."""

    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    monotonic: Callable[[], float] = time.monotonic


@dataclass(frozen=True, slots=True)
class RetryBounds:
    """Bounds of one table's retries.

    ``attempts`` counts tries of one batch in all. ``max_yields`` batches of a step may yield before the step is left:
    the table is hot, and what is left would meet the same writers. Pauses are ``first_pause_seconds`` doubled each
    time, at most ``max_pause_seconds``, times 0.5 to 1.5.
    """

    attempts: int = 3
    max_yields: int = 3
    first_pause_seconds: float = 0.5
    max_pause_seconds: float = 10.0
    random: Callable[[], float] = random.random

    def __post_init__(self) -> None:
        if self.attempts < 1 or self.max_yields < 1:
            raise ValueError("at least one attempt and one yield")

    def pause_seconds(self, attempt: int) -> float:
        """Return the pause after the failed attempt of that number (from 1)."""
        pause = min(self.max_pause_seconds, self.first_pause_seconds * 2.0 ** min(attempt - 1, 30))
        return float(pause * (0.5 + self.random()))


class Emitter:
    """Hands progress events to a sink, one at a time. A sink that raises is not asked again; the run goes on."""

    def __init__(self, sink: ProgressSink | None) -> None:
        self._sink = sink
        self._lock = threading.Lock()

    def __call__(self, event: ProgressEvent) -> None:
        """Give the sink an event."""
        with self._lock:
            if self._sink is None:
                return
            try:
                self._sink(event)
            except Exception:  # a closed terminal must not end a commit
                self._sink = None


VERIFIER_LIMIT_SECONDS = 300.0
"""Longest wait for the check, at the first commit of a table."""

VERIFIER_SWITCH_SECONDS = 0.0005
"""How long the check may hold Python's lock while another thread wants it. Python's default is ten times as long, and
each of a table's hundreds of short calls to the engine would wait for it."""


def _switch_often() -> Callable[[], None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(VERIFIER_SWITCH_SECONDS)
    return lambda: sys.setswitchinterval(before)


_switching = ProcessChange(_switch_often)


class VerifierCheck:
    """A check of the verifier that may run on a thread of its own. One serves a run; used from any thread."""

    def __init__(self) -> None:
        self._call: Future[None] | None = None

    def start(self, check: Callable[[], None]) -> None:
        """Run the check on a thread of its own."""

        def switching_often() -> None:
            with _switching.held():
                check()

        self._call = side_call(switching_often, "maintainer-verifier")

    def wait(self) -> None:
        """Wait for the check, if one was started.

        Raises:
            MaintainerError: What the check raised; E653 where it has no answer in time.
        """
        if self._call is None:
            return
        if not wait([self._call], VERIFIER_LIMIT_SECONDS).done:
            raise VerifierUnfit(
                "Great Expectations cannot be imported, so nothing could be verified; nothing was changed",
                found=f"no answer within {VERIFIER_LIMIT_SECONDS:.0f} s",
                help="look for a disk that does not answer, then run `maintainer apply` again",
            )
        error = self._call.exception()
        if isinstance(error, MaintainerError):
            # Each table gets an error of its own: whoever raises it on adds to it.
            raise type(error)(
                error.what, code=error.code, where=error.where, found=error.found, allowed=error.allowed,
                help=error.help,
            ) from error  # fmt: skip
        if error is not None:  # whatever it is, nothing could be verified
            raise VerifierUnfit(
                "Great Expectations does not work here",
                found=f"{type(error).__name__}: {error}",
                help="install the release that maintainer names: pip install 'great-expectations>=1.24,<2'",
            ) from error


@dataclass(frozen=True, slots=True)
class RunContext:
    """A run's journal, verifier, clock, switch and bounds.

    ``step_numbers`` are places in the plan, from 1, without our own ledger. ``known_tables`` are all tables of the
    project: their logs may need files of a table that is vacuumed. ``leases`` keep other runs off a table that is
    worked on; None asks for none. ``other_runs`` are asked again when the lease of a table is taken.
    ``places`` tell which locations are one table, ``requests`` what the run asked of object stores so far. No commit is
    made before ``verifier_check`` has passed.
    """

    journal: Journal
    verifier: Verifier
    clock: Clock
    emit: Emitter
    switch: StopSwitch
    places: TablePlaces
    retry: RetryBounds = field(default_factory=RetryBounds)
    step_numbers: Mapping[str, int] = field(default_factory=dict)
    known_tables: tuple[TableRef, ...] = ()
    leases: Leases | None = None
    other_runs: OtherRuns | None = None
    verifier_check: VerifierCheck = field(default_factory=VerifierCheck)
    requests: Callable[[], RunRequests | None] = lambda: None

    @property
    def run_id(self) -> str:
        return self.journal.run_id

    @contextlib.contextmanager
    def closed_at_end(self) -> Iterator[None]:
        """Give the leases back and close the journal at the end of the block."""
        try:
            yield
        finally:
            if self.leases is not None:
                self.leases.close()
            self.journal.close()

    def record(self, event: RunEvent) -> None:
        """Write an event into the run's record, then show it where it is one that is shown.

        Raises:
            FolderUnwritable: E651, see `Journal.record`. It is shown all the same.
        """
        try:
            self.journal.record(event)
        finally:
            if is_shown(event):
                self.emit(event)

    def folder_lost(self, error: FolderUnwritable) -> None:
        """Start no more tables and delete nothing more: what happens cannot be recorded."""
        self.switch.halt(f"{error.code}: {error.what}", hold_deletions=True)

    def tell(self, event: ProgressEvent) -> None:
        """Record and show an event that nothing depends on: where it cannot be written, the next record says so."""
        with contextlib.suppress(FolderUnwritable):
            self.record(event)


def number_steps(plan: Plan) -> dict[str, int]:
    """Return the place of each step of the user's tables in the plan, from 1, by step id."""
    of_users = (table.step_id(step) for table in plan.user_tables for step in table.steps)
    return {step_id: number for number, step_id in enumerate(of_users, start=1)}


def problem_of(error: BaseException) -> Problem:
    """Return an error as data: one of ours with what was found and what is allowed, any other as a bug."""
    if isinstance(error, MaintainerError):
        return as_problem(error)
    if is_engine_lost(error):
        # A signal to the whole process group ends the JVM beside us: no bug of ours, and the next apply goes on.
        return problem_of(engine_gone(None))
    text = " ".join(str(error).split())[:500]
    return Problem(
        BUG_CODE, f"a bug in maintainer: {type(error).__name__}: {text}", help="report it with traceback.txt"
    )
