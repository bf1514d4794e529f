"""Threads with a worker each: a cancel reaches only the task that it means, and what breaks is known."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from maintainer.engine.worker_threads import PooledThread, WorkerThreads


@dataclass(frozen=True)
class Task:
    work: Callable[[], Any]


@dataclass
class Engine:
    cancelled: list[str] = field(default_factory=list)
    answers: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def worker(self, name: str) -> Iterator[Any]:
        yield None

    def cancel(self, name: str) -> None:
        self.cancelled.append(name)
        assert self.answers.wait(60)


class Pool(WorkerThreads[Task]):
    def __init__(self, engine: Any, tasks: list[Task]) -> None:
        super().__init__(engine)
        self.tasks, self.results = tasks, list[object]()

    def _thread_name(self, number: int) -> str:
        return f"t{number}"

    def _take(self, pooled: PooledThread[Task], worker: object) -> Task | None:
        pooled.task = self.tasks.pop(0) if self.tasks else None
        return pooled.task

    def _finished(self, result: object) -> None:
        self.results.append(result)

    def _broke(self, pooled: PooledThread[Task], task: Task | None) -> None:
        self.results.append((repr(pooled.broken), task is not None))

    def cancel(self, pooled: PooledThread[Task], task: Task) -> None:
        self._cancel_jobs(pooled, task)


def test_a_cancel_that_comes_late_does_not_reach_the_next_task() -> None:
    engine, first, second = Engine(), Task(lambda: 1), Task(lambda: 2)
    engine.answers.set()
    pool, pooled = Pool(engine, []), PooledThread("t0", task=second)
    pool.cancel(pooled, first)
    assert engine.cancelled == []
    pool.cancel(pooled, second)
    assert engine.cancelled == ["t0"]


def test_tasks_are_done_one_after_the_other_and_what_breaks_ends_the_thread() -> None:
    def broken() -> None:
        raise ValueError("x")

    pool = Pool(Engine(), [Task(lambda: 1), Task(lambda: 2), Task(broken), Task(lambda: 3)])
    thread = pool._new_thread()
    thread.start()
    thread.join(10)
    assert pool.results == [1, 2, ("ValueError('x')", True)]
    assert len(pool.tasks) == 1


def test_a_cancel_that_does_not_come_back_holds_up_nobody_but_its_thread() -> None:
    """A JVM that is frozen, or swaps: who watches all tables goes on, and asks it once."""
    engine, begun, go_on = Engine(), threading.Event(), threading.Event()

    def work() -> int:
        begun.set()
        assert go_on.wait(60)
        return 1

    first = Task(work)
    pool = Pool(engine, [first, Task(lambda: 2)])
    thread = pool._new_thread()
    thread.start()
    assert begun.wait(60)
    (pooled,) = pool._threads

    def cancel_again_and_again() -> None:
        for _ in range(3):
            pool.cancel(pooled, first)

    watching = threading.Thread(target=cancel_again_and_again, daemon=True)
    watching.start()
    watching.join(20)
    assert (watching.is_alive(), engine.cancelled) == (False, ["t0"])
    go_on.set()
    thread.join(0.3)  # its next task must not meet the cancel of this one
    with pool._lock:
        assert (pool.results, pooled.task, len(pool.tasks)) == ([1], first, 1)
    engine.answers.set()
    thread.join(20)
    assert (pool.results, engine.cancelled) == ([1, 2], ["t0"])


def test_a_task_that_breaks_is_told_before_its_thread_counts_as_idle() -> None:
    class Told(Pool):
        def _broke(self, pooled: PooledThread[Task], task: Task | None) -> None:
            self.results.append(pooled.task is task)

    def broken() -> None:
        raise ValueError("x")

    pool = Told(Engine(), [Task(broken)])
    thread = pool._new_thread()
    thread.start()
    thread.join(20)
    assert (pool.results, pool._threads[0].task) == ([True], None)
