"""Threads that each enter a worker of the engine once, and take tasks until none is left.

A thread that watches them, and waits for nothing without a limit, gives up those whose task takes too long: it cancels
their jobs, leaves the threads behind, and starts others in their place. What is a task, when it is late and what comes
of one that was given up is said by who has the pool: `reader_pool` for a plan, `worker_pool` for a run.
"""

from __future__ import annotations

import abc
import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import wait
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from maintainer.engine.protocols import Engine, TableEngine
from maintainer.engine.side_call import side_call


class PoolTask(Protocol):
    """What a thread takes."""

    @property
    def work(self) -> Callable[[], Any]:
        """Carries it out, on the thread that took it."""


TaskT = TypeVar("TaskT", bound=PoolTask)

MAX_GIVEN_UP = 8
"""Threads that may be left behind; after that something is wrong with the engine, and no other takes their place."""

CANCEL_SECONDS = 1.0
"""Longest wait for a cancel, which goes on without the one that asked for it."""


@dataclass(slots=True)
class PooledThread(Generic[TaskT]):
    """A thread, and what it works on; ``broken`` is what its worker could not be made or closed for."""

    name: str
    thread: threading.Thread | None = None
    task: TaskT | None = None
    given_up: bool = False
    broken: BaseException | None = None
    going_on: threading.Lock = field(default_factory=threading.Lock)
    """Held while a task is cancelled and while it is put away, so that a cancel reaches only its own task."""


@dataclass(slots=True)
class WorkerThreads(abc.ABC, Generic[TaskT]):
    """The threads of a plan or a run.

    Args:
        engine: Makes a worker for each.
    """

    engine: Engine
    _threads: list[PooledThread[TaskT]] = field(default_factory=list, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    @abc.abstractmethod
    def _thread_name(self, number: int) -> str:
        """Return what a thread and its jobs are called."""

    @abc.abstractmethod
    def _take(self, pooled: PooledThread[TaskT], worker: TableEngine) -> TaskT | None:
        """Give a thread its next task; None ends it. Called on that thread."""

    def _finished(self, result: Any) -> None:  # noqa: ANN401 (of the task's work)
        """A task has ended with a result. Called on the thread that took it."""

    def _broke(self, pooled: PooledThread[TaskT], task: TaskT | None) -> None:
        """A thread ended with what its worker broke with, in the middle of a task or not. Called on that thread."""

    def _new_thread(self) -> threading.Thread:
        pooled = PooledThread[TaskT](self._thread_name(len(self._threads)))
        pooled.thread = threading.Thread(target=self._work, args=(pooled,), name=pooled.name, daemon=True)
        self._threads.append(pooled)
        return pooled.thread

    def _working(self) -> list[PooledThread[TaskT]]:
        """Those that take tasks, or have one."""
        alive = [pooled for pooled in self._threads if pooled.thread is not None and pooled.thread.is_alive()]
        return [pooled for pooled in alive if not pooled.given_up]

    def _work(self, pooled: PooledThread[TaskT]) -> None:
        try:
            with self.engine.worker(pooled.name) as worker:
                while (task := self._take(pooled, worker)) is not None:
                    self._finished(task.work())
                    # The task stays until its cancel came back: where that hangs, the thread is given up with it.
                    with pooled.going_on, self._lock:
                        pooled.task = None
        except BaseException as error:
            pooled.broken = error
            self._broke(pooled, pooled.task)
            with self._lock:
                pooled.task = None

    def _cancel_jobs(self, pooled: PooledThread[TaskT], task: TaskT) -> None:
        """Cancel what the engine does for a task. Waits a moment at most, for a JVM may not answer; never raises."""
        if pooled.going_on.locked():
            return
        with contextlib.suppress(RuntimeError):  # this machine starts no more threads
            wait([side_call(partial(self._cancel_now, pooled, task), f"{pooled.name}-cancel")], CANCEL_SECONDS)

    def _cancel_now(self, pooled: PooledThread[TaskT], task: TaskT) -> None:
        with pooled.going_on:
            if pooled.task is task:
                self.engine.cancel(pooled.name)

    def _too_many_given_up(self) -> bool:
        return sum(pooled.given_up for pooled in self._threads) >= MAX_GIVEN_UP
