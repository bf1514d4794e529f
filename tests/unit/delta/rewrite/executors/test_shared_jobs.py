"""Bins of many tables in Spark jobs: which of them share one, what a failed job costs, and who stops waiting."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from maintainer.delta.rewrite.executors import executor_bins
from maintainer.delta.rewrite.executors.executor_bins import AskedBin, SharedJobs
from maintainer.delta.rewrite.executors.executor_tasks import MAX_ATTEMPTS, BinAnswer, BinTask
from maintainer.errors import CommitNotLanded
from maintainer.model.plan.lanes import Lane

SECONDS = 10.0


@dataclass
class Job:
    """A job of Spark that ends when the test says so."""

    tasks: Sequence[BinTask]
    take: Callable[[BinAnswer], None]
    end: queue.SimpleQueue[Exception | None] = field(default_factory=queue.SimpleQueue)

    @property
    def names(self) -> list[str]:
        """Of its bins."""
        return [str(task.work) for task in self.tasks]

    def answer(self, *names: str) -> None:
        """Let the tasks of bins answer."""
        for task in self.tasks:
            if not names or str(task.work) in names:
                self.take(BinAnswer(task.task_id, task.first_attempt))

    def done(self, *names: str) -> None:
        """Let the tasks of bins answer, all unless some are named, and end the job."""
        self.answer(*names)
        self.end.put(None)


@dataclass
class Context:
    """A Spark context with executors of so many cores, which it tells when the test says so.

    A job is submitted, too, when the test says so, and not at all if its group was cancelled with what comes of it.
    """

    num_cores: int = 2
    jobs: queue.SimpleQueue[Job] = field(default_factory=queue.SimpleQueue)
    cancelled: list[str] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    of_thread: threading.local = field(default_factory=threading.local)
    param: Any = None
    tells: threading.Event = field(default_factory=threading.Event)
    comes: threading.Event = field(default_factory=threading.Event)
    submits: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.tells.set()
        self.submits.set()

    @property
    def _jsc(self) -> Any:
        return SimpleNamespace(sc=lambda: self)

    @property
    def defaultParallelism(self) -> int:
        assert self.tells.wait(SECONDS)
        return self.num_cores

    def accumulator(self, value: list[BinAnswer], param: Any) -> Any:
        self.param = param
        return value

    def setLocalProperty(self, key: str, value: str) -> None:
        pass

    def setJobGroup(self, group: str, description: str, interruptOnCancel: bool) -> None:
        self.groups.append(group)
        self.of_thread.group = group

    def cancelJobGroup(self, group: str) -> None:
        """Ends a job that was submitted, and is forgotten then."""

    def cancelJobGroupAndFutureJobs(self, group: str) -> None:
        self.cancelled.append(group)

    def parallelize(self, tasks: Sequence[BinTask], num_tasks: int) -> Any:
        job = Job(tasks, lambda answer: self.param.addInPlace([], [answer]))

        class Ran:
            def mapPartitions(self, answers: Any) -> Ran:
                return self

            def collect(ran) -> list[Any]:
                self.comes.set()
                assert self.submits.wait(SECONDS)
                if self.of_thread.group in self.cancelled:
                    raise RuntimeError("part of a cancelled job group")
                self.jobs.put(job)
                if (failure := job.end.get(timeout=SECONDS)) is not None:
                    raise failure
                return []

        return Ran()

    def next(self) -> Job:
        """The next job that was submitted."""
        return self.jobs.get(timeout=SECONDS)


@dataclass
class Tables:
    """Threads of tables that ask for bins."""

    pool: ThreadPoolExecutor
    context: Context = field(default_factory=Context)
    shared: SharedJobs = field(default_factory=SharedJobs)
    stopped: set[str] = field(default_factory=set)

    def ask(self, *names: str) -> list[Future[AskedBin]]:
        """Ask for bins, and return when all of them wait."""
        asked = [self.pool.submit(self._ask, name) for name in names]
        until = time.monotonic() + SECONDS
        while not self.known.issuperset(names) and time.monotonic() < until:
            time.sleep(0.01)
        return asked

    @property
    def known(self) -> set[str]:
        """What waits here, and what executors have."""
        with self.shared._lock:
            return {str(bin_.task.work) for bin_ in (*self.shared._waiting, *self.shared._sent.values())}

    def _ask(self, name: str) -> AskedBin:
        def check() -> None:
            if name in self.stopped:
                raise CommitNotLanded("stopped", where=name, help="run it again")

        task = BinTask(-1, cast(Any, name), Lane.LOCAL, True, None)
        return self.shared.ask(cast(Any, self.context), task, check)


@contextmanager
def tables(num_cores: int = 2) -> Iterator[Tables]:
    with ThreadPoolExecutor(16) as pool:
        yield Tables(pool, Context(num_cores))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor_bins, "POLL_SECONDS", 0.02)


def test_a_bin_goes_at_once_while_a_core_is_free_and_those_that_wait_go_together() -> None:
    with tables(num_cores=2) as fleet:
        asked, jobs = [], []
        for name in ("a", "b", "c"):  # as many as there are cores, and one for the core that is free next
            asked += fleet.ask(name)
            jobs.append(fleet.context.next())
        assert [job.names for job in jobs] == [["a"], ["b"], ["c"]]
        asked += fleet.ask("d")
        asked += fleet.ask("e")
        asked += fleet.ask("f")
        assert fleet.context.jobs.empty()
        jobs[1].done()
        shared = fleet.context.next()
        assert shared.names == ["d", "e", "f"]
        shared.answer("e")
        assert asked[4].result(SECONDS).answer == BinAnswer(shared.tasks[1].task_id, 0), "before its job has ended"
        assert not asked[3].done()
        for job in (jobs[0], jobs[2], shared):
            job.done()
        assert all(bin_.result(SECONDS).answer is not None for bin_ in asked)
        assert len(set(fleet.context.groups)) == 4
        assert fleet.known == set()


def test_bins_that_came_before_the_cores_were_known_wait_for_none() -> None:
    with tables(num_cores=4) as fleet:
        fleet.context.tells.clear()
        fleet.ask("a", "b", "c")
        fleet.context.tells.set()
        jobs = [fleet.context.next(), fleet.context.next()]
        assert sorted(name for job in jobs for name in job.names) == ["a", "b", "c"], "no answer was needed for it"
        for job in jobs:
            job.done()


def test_a_job_has_a_bounded_number_of_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor_bins, "MAX_TASKS", 2)
    with tables(num_cores=1) as fleet:
        fleet.ask("a")
        first = fleet.context.next()
        fleet.ask("b")
        second = fleet.context.next()
        fleet.ask("c", "d", "e")
        first.done()
        third = fleet.context.next()
        assert len(third.tasks) == 2
        assert fleet.context.jobs.empty()
        second.done()
        third.done()
        fleet.context.next().done()


def test_what_a_failed_job_did_not_answer_goes_once_more_alone_and_under_other_names() -> None:
    with tables(num_cores=0) as fleet:
        fleet.ask("first")
        first = fleet.context.next()
        asked = fleet.ask("a", "b", "c")
        first.done()
        shared = fleet.context.next()
        shared.answer("b")
        shared.end.put(RuntimeError("Job aborted: ExecutorLostFailure"))
        again = {}
        for _ in range(2):
            job = fleet.context.next()
            (name,) = job.names
            again[name] = job
            assert [task.first_attempt for task in job.tasks] == [MAX_ATTEMPTS]
            assert {task.task_id for task in job.tasks}.isdisjoint(task.task_id for task in shared.tasks)
            shared.answer(name)  # of an attempt that the driver has no names for any more
            job.end.put(RuntimeError("ExecutorLostFailure")) if name == "a" else job.done()
        assert set(again) == {"a", "c"}
        lost, answered, repeated = (bin_.result(SECONDS) for bin_ in asked)
        assert (lost.answer, str(lost.failure), lost.num_attempts) == (None, "ExecutorLostFailure", 2 * MAX_ATTEMPTS)
        assert (answered.answer is not None, answered.num_attempts) == (True, MAX_ATTEMPTS)
        assert repeated.answer == BinAnswer(again["c"].tasks[0].task_id, MAX_ATTEMPTS)


def test_a_job_of_one_bin_is_not_repeated_and_neither_is_one_without_an_engine() -> None:
    with tables(num_cores=0) as fleet:
        (alone,) = fleet.ask("alone")
        job = fleet.context.next()
        asked = fleet.ask("a", "b")
        job.end.put(RuntimeError("ExecutorLostFailure"))
        assert str(alone.result(SECONDS).failure) == "ExecutorLostFailure"
        fleet.context.next().end.put(ConnectionRefusedError())
        assert all(isinstance(bin_.result(SECONDS).failure, ConnectionRefusedError) for bin_ in asked)
        assert fleet.context.jobs.empty()


def test_a_table_that_stops_gives_up_its_own_bins_and_the_last_one_cancels_the_job() -> None:
    with tables(num_cores=0) as fleet:
        fleet.ask("first")
        first = fleet.context.next()
        a, b, c = fleet.ask("a", "b", "c")
        first.done()
        shared = fleet.context.next()
        (waiting,) = fleet.ask("waiting")
        fleet.stopped |= {"a", "waiting"}
        for stopped in (a, waiting):
            with pytest.raises(CommitNotLanded):
                stopped.result(SECONDS)
        assert fleet.context.cancelled == []
        shared.answer("b")
        assert b.result(SECONDS).answer is not None
        fleet.stopped.add("c")
        with pytest.raises(CommitNotLanded):
            c.result(SECONDS)
        assert fleet.context.cancelled == [fleet.context.groups[-1]]
        shared.end.put(RuntimeError("cancelled as part of cancellation of all jobs"))
        last = fleet.ask("last")
        job = fleet.context.next()
        assert job.names == ["last"], "nobody waits for the others"
        job.done()
        assert last[0].result(SECONDS).answer is not None


def test_the_last_answer_cancels_a_job_of_which_only_tasks_of_stopped_tables_are_left() -> None:
    with tables(num_cores=0) as fleet:
        fleet.ask("first")
        first = fleet.context.next()
        a, b = fleet.ask("a", "b")
        first.done()
        shared = fleet.context.next()
        fleet.stopped.add("a")
        with pytest.raises(CommitNotLanded):
            a.result(SECONDS)
        assert fleet.context.cancelled == []
        shared.answer("b")
        assert b.result(SECONDS).answer is not None
        assert fleet.context.cancelled == [fleet.context.groups[-1]], "and none of which all have answered"
        shared.end.put(RuntimeError("cancelled as part of cancellation of all jobs"))
        (last,) = fleet.ask("last")
        fleet.context.next().done()
        assert last.result(SECONDS).answer is not None


def test_a_job_that_is_cancelled_right_before_it_is_submitted_does_not_run() -> None:
    with tables() as fleet:
        fleet.context.submits.clear()
        (asked,) = fleet.ask("a")
        assert fleet.context.comes.wait(SECONDS)
        fleet.stopped.add("a")
        with pytest.raises(CommitNotLanded):
            asked.result(SECONDS)
        fleet.context.submits.set()
        until = time.monotonic() + SECONDS
        while fleet.known and fleet.context.jobs.empty() and time.monotonic() < until:
            time.sleep(0.01)
        assert (fleet.context.jobs.empty(), fleet.known) == (True, set())


def test_a_job_that_goes_on_keeps_no_answer() -> None:
    """The rows of an ordered bin are in it, eight bytes for each."""
    with tables(num_cores=0) as fleet:
        fleet.ask("first")
        first = fleet.context.next()
        a, b, c = fleet.ask("a", "b", "c")
        first.done()
        shared = fleet.context.next()
        fleet.stopped.add("a")
        with pytest.raises(CommitNotLanded):
            a.result(SECONDS)
        shared.answer("a", "b")
        assert b.result(SECONDS).answer is not None
        job = fleet.shared._jobs[-1]
        assert ([bin_.answer for bin_ in job.bins], len(job.bins)) == ([None] * 3, 3)
        shared.done()
        assert c.result(SECONDS).answer is not None


def test_an_answer_that_does_not_arrive_is_a_failure_and_no_wait() -> None:
    with tables() as fleet:
        (bin_,) = fleet.ask("a")
        fleet.context.next().end.put(None)
        assert "no answer arrived" in str(bin_.result(SECONDS).failure)
