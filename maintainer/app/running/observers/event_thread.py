"""Hands the events of a run to one observer on a thread of its own, so that a slow or failing one harms no run.

The run never waits: events lie in a queue with a bound, and what does not fit is counted and left out. At the end of
the run the observer has a few seconds to come to its end; then it is given up, and that is said. Libraries that only
some observers need are extras of the package, and are loaded when something asks for them.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol, runtime_checkable

from maintainer.errors import EnvironmentUnfit
from maintainer.errors.foreign_text import without_secrets
from maintainer.model.plan.plan import Plan, Problem
from maintainer.model.run.progress import ProgressEvent, RunFinished, StepHeartbeat

MAX_EVENTS = 10_000
"""Events that may wait for an observer. The last one of a run always fits."""

CLOSE_SECONDS = 15.0
"""How long all observers together have at the end of a run."""

NOT_DELIVERED = "E657"


class NotDelivered(Exception):
    """The server did not take what was sent; the text says why or how much, without its address."""


def require_extra(extra: str, module: str, what: str) -> None:
    """Check that a library is there.

    Raises:
        EnvironmentUnfit: E629, with the command that installs it.
    """
    try:
        spec = find_spec(module)
    except ModuleNotFoundError:  # of a package that the module lies in
        spec = None
    if spec is None:
        needs, help = f"{what} needs a package that is not installed", f"pip install 'maintainer[{extra}]'"
        raise EnvironmentUnfit(needs, code="E629", found=f"missing: {module}", help=help)


@dataclass(frozen=True, slots=True)
class ObservedRun:
    """What an observer may know of a run before its first event."""

    project: str
    root: Path
    environment: str | None
    plan: Plan
    environ: Mapping[str, str]


@runtime_checkable
class Observer(Protocol):
    """Listens to the events of one run, on one thread. What it raises is reported once, and ends nothing."""

    what: str
    """What it sends, for messages: ``notifications``."""
    where: str
    """Where to, without any secret."""

    def event(self, event: ProgressEvent) -> None:
        """Receive the next event of the run, in order; never a heartbeat."""

    def close(self) -> None:
        """Send what still waits."""


ObserverOf = Callable[[ObservedRun], Observer | None]
"""Makes an observer of a run; None where nothing asks for one. What it raises is said, and the run goes on."""


class EventThread:
    """One observer, and the thread and queue that keep it apart from the run."""

    def __init__(self, observer: Observer, *, max_events: int = MAX_EVENTS) -> None:
        self._observer = observer
        self._max_events = max_events
        self._queue: queue.SimpleQueue[ProgressEvent | None] = queue.SimpleQueue()
        self._num_dropped = 0
        self._num_failed = 0
        self._reason = ""
        # A daemon: a process that ends does not wait for a server that does not answer.
        self._thread = threading.Thread(target=self._work, name=f"maintainer {observer.what}", daemon=True)
        self._thread.start()

    def __call__(self, event: ProgressEvent) -> None:
        """Take an event; returns at once."""
        if isinstance(event, StepHeartbeat):
            return
        if self._queue.qsize() >= self._max_events and not isinstance(event, RunFinished):
            self._num_dropped += 1
            return
        self._queue.put(event)

    def end(self) -> None:
        """Say that no event follows; returns at once."""
        self._queue.put(None)

    def wait(self, deadline: float) -> Problem | None:
        """Wait for the observer until a moment of the monotonic clock, and return what went wrong, if anything."""
        self._thread.join(max(0.0, deadline - time.monotonic()))
        if self._thread.is_alive():
            return self._problem("sending took too long and was stopped; the run itself is finished and recorded")
        if self._num_failed:
            times = f" ({self._num_failed:,} times)" if self._num_failed > 1 else ""
            return self._problem(f"{self._reason}{times}")
        if self._num_dropped:
            return self._problem(f"{self._num_dropped:,} events came faster than they could be sent, and were dropped")
        return None

    def _problem(self, reason: str) -> Problem:
        help = "the run is not affected: its folder has the whole record; check the address and the server"
        return Problem(
            NOT_DELIVERED, f"{self._observer.what} were not all delivered: {reason}", self._observer.where, help
        )

    def _work(self) -> None:
        while (event := self._queue.get()) is not None:
            try:
                self._observer.event(event)
            except Exception as error:  # whatever a library or a server comes up with
                self._failed(error)
        try:
            self._observer.close()
        except Exception as error:
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        self._num_failed += 1
        self._reason = self._reason or " ".join(without_secrets(str(error) or type(error).__name__).split())[:300]
