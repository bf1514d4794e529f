"""Read what planning needs of tables, on a few threads, and give up tables that do not answer in time.

Each thread has a worker of the engine. A table on storage that hangs must not hold up the run: past its limit its
Spark jobs are cancelled, its thread is abandoned, and another takes its place.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from maintainer.engine.protocols import Engine, TableReader, worker_name
from maintainer.engine.session_options import SILENT, StageListener
from maintainer.execution.run_context import Clock
from maintainer.policy.resolve.resolved import ResolvedPolicy

DEFAULT_TABLE_SECONDS = 600.0
"""Longest look at one table; a policy's ``limits.timeout`` may say less."""

MAX_GIVEN_UP = 8
"""Threads that may be left behind; after that the engine is at fault, and the rest is not looked at."""

TICK_SECONDS = 0.2


@dataclass(slots=True)
class _Member:
    """A thread, and the table that it looks at since when (monotonic seconds)."""

    name: str
    thread: threading.Thread | None = None
    policy: ResolvedPolicy | None = None
    started: float = 0.0
    given_up: bool = False


@dataclass(slots=True)
class ReaderPool:
    """Looks at each policy's table once.

    Args:
        engine: Makes a worker for each thread.
        look: Reads one table; called on a thread of the pool. Whatever it raises ends the pool.
        give_up: Called when a table exceeds its time limit, with the reason; called on the calling thread.
        clock: For the limits.
        table_seconds: Longest look at one table.
        stages: Hears which tables take long.
        counted: The stage whose progress it hears, too; None where each table is said by itself.
    """

    engine: Engine
    look: Callable[[TableReader, ResolvedPolicy, Callable[[], bool]], None]
    give_up: Callable[[ResolvedPolicy, str], None]
    clock: Clock
    table_seconds: float = DEFAULT_TABLE_SECONDS
    stages: StageListener = SILENT
    counted: str | None = None
    _waiting: deque[ResolvedPolicy] = field(default_factory=deque, init=False)
    _members: list[_Member] = field(default_factory=list, init=False)
    _failures: list[BaseException] = field(default_factory=list, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def run(self, policies: Sequence[ResolvedPolicy], jobs: int) -> None:
        """Look at all tables, so many at once.

        Raises:
            BaseException: What a worker could not be made for, or what nobody foresaw.
        """
        self._waiting.extend(policies)
        for _ in range(max(1, min(jobs, len(policies)))):
            self._hire()
        while any(self._is_working(member) for member in self._members):
            for member in list(self._members):
                if self._is_working(member) and member.thread is not None:
                    member.thread.join(TICK_SECONDS / len(self._members))
                    self._watch(member)
            if self.counted is not None:
                looking = sum(member.policy is not None and self._is_working(member) for member in self._members)
                self.stages.counted(self.counted, len(policies) - len(self._waiting) - looking, len(policies))
        if self._failures:
            raise self._failures[0]
        while self._waiting:
            self.give_up(self._waiting.popleft(), f"{MAX_GIVEN_UP} tables before it did not answer")

    def _hire(self) -> None:
        member = _Member(worker_name(f"reader-{len(self._members)}"))
        member.thread = threading.Thread(target=self._work, args=(member,), name=member.name, daemon=True)
        self._members.append(member)
        member.thread.start()

    @staticmethod
    def _is_working(member: _Member) -> bool:
        return not member.given_up and member.thread is not None and member.thread.is_alive()

    def _work(self, member: _Member) -> None:
        try:
            with self.engine.worker(member.name) as worker:
                while (policy := self._take(member)) is not None:
                    self.look(worker.reader, policy, lambda: self._ended(member))
        except BaseException as error:
            if not member.given_up:
                self._failures.append(error)

    def _take(self, member: _Member) -> ResolvedPolicy | None:
        with self._lock:
            if self._failures or member.given_up or not self._waiting:
                return None
            member.policy, member.started = self._waiting.popleft(), self.clock.monotonic()
            return member.policy

    def _ended(self, member: _Member) -> bool:
        """Record that a table is planned; False if it was given up meanwhile, so that its plan no longer counts."""
        with self._lock:
            member.policy = None
            return not member.given_up

    def _watch(self, member: _Member) -> None:
        with self._lock:
            policy = member.policy
            if policy is None:
                return
            limit = min(self.table_seconds, policy.limits.timeout_seconds)
            seconds = self.clock.monotonic() - member.started
            member.given_up = seconds > limit
        if not member.given_up:
            self.stages.lasts(f"reading {policy.table.identifier}", seconds)
            return
        with contextlib.suppress(Exception):  # the engine may be gone; the thread is left behind in any case
            self.engine.cancel(member.name)
        self.give_up(policy, f"no answer within {limit:g} s")
        if self._waiting and sum(member.given_up for member in self._members) < MAX_GIVEN_UP:
            self._hire()
