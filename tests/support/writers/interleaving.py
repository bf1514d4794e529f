"""One writer held at a chosen point of its commit while another one runs to the end: no sleeps, no luck.

Delta's own phase-locking observer (package ``fuzzer``, in the released JAR) is bound to a JVM thread; PySpark gives
every Python thread a JVM thread of its own. So the held writer runs in a thread of its own, with the observer set, and
the other writer runs in the caller's. The observer sees the first transaction of the held writer only; what it starts
after that (a second attempt) runs free. Every wait has a deadline.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from maintainer.delta.jvm import JavaObject

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Result = TypeVar("Result")

DEADLINE_SECONDS = 120.0
_PACKAGE = "org.apache.spark.sql.delta"
_PHASES = ("analysisPhase", "initialPhase", "preparePhase", "commitPhase", "backfillPhase", "postCommitPhase")
"""In order; Delta 4.0 and 4.1 have no first one."""


class Point(StrEnum):
    """Where the held writer stands while the other one acts.

    ``BEFORE_READ``: it was planned, and has not looked at the table since. ``BEFORE_COMMIT``: inside Delta's commit,
    all files written and all our checks done, the version not yet tried. ``AFTER_PUBLISH``: the version is in the log,
    and the writer does not know it yet.
    """

    BEFORE_READ = "before-read"
    BEFORE_COMMIT = "before-commit"
    AFTER_PUBLISH = "after-publish"


@dataclass(frozen=True)
class Held(Generic[Result]):
    """How the held writer ended: with a result or an error, and whether the other writer ran at the point."""

    result: Result | None
    error: BaseException | None
    reached: bool

    def value(self) -> Result:
        """The result; the error is raised."""
        if self.error is not None:
            raise self.error
        assert self.result is not None
        return self.result


def interleave(spark: SparkSession, held: Callable[[], Result], other: Callable[[], object], at: Point) -> Held[Result]:
    """Run ``held`` up to the point, ``other`` to its end, and then the rest of ``held``.

    Args:
        spark: Any session in the JVM of both.
        held: Starts a transaction of Delta's; called in a thread of its own.
        other: Called in this thread. Not called, and ``reached`` is False, if ``held`` ends before the point.
        at: The point.
    """
    if at is Point.BEFORE_READ:
        other()
        return Held(*_outcome(held), reached=True)
    lock = _Lock(spark)
    ended: list[tuple[Result | None, BaseException | None]] = []

    def run() -> None:
        lock.set()
        try:
            ended.append(_outcome(held))
        finally:
            lock.unset()

    thread = threading.Thread(target=run, name="held writer", daemon=True)
    lock.open_until(at)
    thread.start()
    try:
        _wait(lambda: lock.stands_at(at) or not thread.is_alive())
        reached = thread.is_alive()
        if reached:
            other()
    finally:
        lock.open_all()
        thread.join(DEADLINE_SECONDS)
    assert not thread.is_alive(), "the held writer hangs"
    return Held(*ended[0], reached=reached)


def _outcome(held: Callable[[], Result]) -> tuple[Result | None, BaseException | None]:
    try:
        return held(), None
    except BaseException as error:  # handed to the caller, who looks at it
        return None, error


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "the held writer never came to the point"
        time.sleep(0.005)


class _Lock:
    """Delta's observer and the phases of one transaction."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm
        package: Any = jvm
        for part in _PACKAGE.split("."):
            package = getattr(package, part)
        self._registry: JavaObject = getattr(getattr(package, "TransactionExecutionObserver$"), "MODULE$")
        self._none: JavaObject = getattr(getattr(package, "NoOpTransactionExecutionObserver$"), "MODULE$")
        self._phases: JavaObject = package.fuzzer.OptimisticTransactionPhases.forName("held")
        self._observer = package.fuzzer.PhaseLockingTransactionExecutionObserver(self._phases)
        self._observer.setNextObserver(self._none, True)
        self._names = _PHASES[-int(self._phases.productArity()) :]
        self._opened: set[str] = set()

    def set(self) -> None:
        """Observe the next transaction of this thread."""
        self._registry.setObserver(self._observer)

    def unset(self) -> None:
        """Observe nothing in this thread."""
        self._registry.setObserver(self._none)

    def open_until(self, at: Point) -> None:
        """Let the transaction run up to the point."""
        held = "commitPhase" if at is Point.BEFORE_COMMIT else "backfillPhase"
        self._open(self._names[: self._names.index(held)])

    def stands_at(self, at: Point) -> bool:
        """Whether the transaction waits at the point."""
        name = "preparePhase" if at is Point.BEFORE_COMMIT else "commitPhase"
        return bool(self._phase(name).hasLeft())

    def open_all(self) -> None:
        """Let everything run."""
        self._open(self._names)
        # With a next observer set, the last phase waits for its exit to be opened by hand.
        self._phase(self._names[-1]).exitBarrier().unblock()

    def _open(self, names: tuple[str, ...]) -> None:
        # A barrier may be opened once only.
        for name in names:
            if name not in self._opened:
                self._opened.add(name)
                self._phase(name).entryBarrier().unblock()

    def _phase(self, name: str) -> JavaObject:
        return getattr(self._phases, name)()
