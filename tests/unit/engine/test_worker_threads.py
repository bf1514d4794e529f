"""Threads with a worker each: a cancel reaches only the task that it means, and what breaks is known."""

from __future__ import annotations

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

    @contextmanager
    def worker(self, name: str) -> Iterator[Any]:
        yield None

    def cancel(self, name: str) -> None:
        self.cancelled.append(name)


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
