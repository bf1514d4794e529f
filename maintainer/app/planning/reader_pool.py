"""Read what planning needs of tables, on a few threads, and give up tables that do not answer in time.

Each thread has a worker of the engine. A table on storage that hangs must not hold up the run: past its limit its
Spark jobs are cancelled, its thread is abandoned, and another takes its place.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from maintainer.engine.protocols import TableEngine, TableReader, worker_name
from maintainer.engine.session_options import SILENT, StageListener
from maintainer.engine.worker_threads import MAX_GIVEN_UP, PooledThread, WorkerThreads
from maintainer.execution.run_context import Clock
from maintainer.policy.resolve.resolved import ResolvedPolicy

DEFAULT_TABLE_SECONDS = 600.0
"""Longest look at one table; a policy's ``limits.timeout`` may say less."""

TICK_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class _TableRead:
    """A table, since when it is looked at (monotonic seconds), and the look."""

    policy: ResolvedPolicy
    started: float
    work: Callable[[], None]


@dataclass(slots=True)
class ReaderPool(WorkerThreads[_TableRead]):
    """Looks at each policy's table once.

    Args:
        engine: Makes a worker for each thread.
        read: Reads one table; called on a thread of the pool. Whatever it raises ends the pool.
        give_up: Called when a table exceeds its time limit, with the reason; called on the calling thread.
        clock: For the limits.
        table_seconds: Longest look at one table.
        stages: Hears which tables take long.
        counted: The stage whose progress it hears, too; None where each table is said by itself.
    """

    read: Callable[[TableReader, ResolvedPolicy, Callable[[], bool]], None]
    give_up: Callable[[ResolvedPolicy, str], None]
    clock: Clock
    table_seconds: float = DEFAULT_TABLE_SECONDS
    stages: StageListener = SILENT
    counted: str | None = None
    _waiting: deque[ResolvedPolicy] = field(default_factory=deque, init=False)

    def run(self, policies: Sequence[ResolvedPolicy], jobs: int) -> None:
        """Look at all tables, so many at once.

        Raises:
            BaseException: What a worker could not be made for, or what nobody foresaw.
        """
        self._waiting.extend(policies)
        for _ in range(max(1, min(jobs, len(policies)))):
            self._new_thread().start()
        while working := self._working():
            for pooled in working:
                if pooled.thread is not None:
                    pooled.thread.join(TICK_SECONDS / len(self._threads))
                    self._watch(pooled)
            if self.counted is not None:
                looking = sum(pooled.task is not None for pooled in self._working())
                self.stages.counted(self.counted, len(policies) - len(self._waiting) - looking, len(policies))
        for pooled in self._threads:
            if pooled.broken is not None and not pooled.given_up:
                raise pooled.broken
        while self._waiting:
            self.give_up(self._waiting.popleft(), f"{MAX_GIVEN_UP} tables before it did not answer")

    def _thread_name(self, number: int) -> str:
        return worker_name(f"reader-{number}")

    def _take(self, pooled: PooledThread[_TableRead], worker: TableEngine) -> _TableRead | None:
        with self._lock:
            if any(each.broken for each in self._threads if not each.given_up) or pooled.given_up or not self._waiting:
                return None
            policy = self._waiting.popleft()
            work = partial(self.read, worker.reader, policy, partial(self._counts, pooled))
            pooled.task = _TableRead(policy, self.clock.monotonic(), work)
            return pooled.task

    def _counts(self, pooled: PooledThread[_TableRead]) -> bool:
        """Record that a table is planned; False if it was given up meanwhile, so that its plan no longer counts."""
        with self._lock:
            pooled.task = None
            return not pooled.given_up

    def _watch(self, pooled: PooledThread[_TableRead]) -> None:
        with self._lock:
            task = pooled.task
            if task is None:
                return
            limit = min(self.table_seconds, task.policy.limits.timeout_seconds)
            seconds = self.clock.monotonic() - task.started
            pooled.given_up = seconds > limit
        if not pooled.given_up:
            self.stages.lasts(f"reading {task.policy.table.identifier}", seconds)
            return
        self._cancel_jobs(pooled, task)
        self.give_up(task.policy, f"no answer within {limit:g} s")
        if self._waiting and not self._too_many_given_up():
            self._new_thread().start()
