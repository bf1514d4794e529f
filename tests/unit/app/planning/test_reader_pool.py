"""Planning many tables: one that does not answer is given up, reported, and holds up nobody."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from maintainer.app.planning.reader_pool import ReaderPool
from maintainer.engine.protocols import TableReader
from maintainer.engine.session_options import StageListener
from maintainer.engine.worker_threads import MAX_GIVEN_UP
from maintainer.execution.run_context import Clock
from maintainer.policy.resolve.resolved import ResolvedPolicy
from tests.support.runs.fake_lake import FakeLake
from tests.support.tables.builders import make_policy


class Bench:
    """A pool whose tables named ``stuck...`` do not answer until they are let go."""

    def __init__(self, table_seconds: float = 0.15) -> None:
        self.lake = FakeLake()
        self.seen: list[str] = []
        self.given_up: dict[str, str] = {}
        self.dropped: list[str] = []
        self.go = threading.Event()
        self.pool = ReaderPool(self.lake, self.look, self.give_up, Clock(), table_seconds)

    def look(self, reader: TableReader, policy: ResolvedPolicy, counts: Callable[[], bool]) -> None:
        name = policy.table.identifier
        if name.startswith("stuck"):
            self.go.wait(20)
        if name == "bug":
            raise KeyError(name)
        (self.seen if counts() else self.dropped).append(name)

    def give_up(self, policy: ResolvedPolicy, why: str) -> None:
        self.given_up[policy.table.identifier] = why

    def run(self, *names: str, jobs: int = 2) -> None:
        self.pool.run([make_policy(name=name) for name in names], jobs)


def test_every_table_is_looked_at_once() -> None:
    bench = Bench(60)
    names = [f"t{number}" for number in range(40)]
    bench.run(*names, jobs=4)
    assert sorted(bench.seen) == sorted(names)
    assert bench.given_up == {}
    assert len(bench.lake.workers) == 4


@pytest.mark.parametrize("jobs", [1, 3])
def test_tables_that_do_not_answer_are_given_up_and_the_others_go_on(jobs: int) -> None:
    bench = Bench()
    bench.run("a", "stuck1", "b", "stuck2", "c", jobs=jobs)
    assert sorted(bench.seen) == ["a", "b", "c"]
    assert bench.given_up == {"stuck1": "no answer within 0.15 s", "stuck2": "no answer within 0.15 s"}
    assert len(bench.lake.cancelled) == 2
    bench.go.set()


def test_an_answer_that_comes_too_late_does_not_count() -> None:
    bench = Bench()
    bench.run("stuck", "a", jobs=1)
    bench.go.set()
    for thread in threading.enumerate():
        if thread.name.startswith("reader-"):
            thread.join(10)
    assert (bench.seen, bench.dropped, list(bench.given_up)) == (["a"], ["stuck"], ["stuck"])


def test_two_plans_on_one_spark_have_no_job_group_in_common() -> None:
    benches = Bench(60), Bench(60)
    for bench in benches:
        bench.run("a", "b", jobs=2)
    assert len({name for bench in benches for name in bench.lake.workers}) == 4


def test_after_eight_that_hang_the_rest_is_not_looked_at() -> None:
    bench = Bench(0.02)
    stuck = [f"stuck{number}" for number in range(MAX_GIVEN_UP + 3)]
    bench.run(*stuck, "last", jobs=1)
    assert set(bench.given_up) == {*stuck, "last"}
    assert bench.given_up["last"] == "8 tables before it did not answer"
    bench.go.set()


def test_a_policys_own_limit_counts_where_it_is_less() -> None:
    bench = Bench(60)
    policy = make_policy(name="stuck")
    short = replace(policy, limits=replace(policy.limits, timeout_seconds=0))
    bench.pool.run([short], 1)
    assert bench.given_up == {"stuck": "no answer within 0 s"}
    bench.go.set()


def test_what_nobody_foresaw_ends_the_pool() -> None:
    with pytest.raises(KeyError, match="bug"):
        Bench(60).run("a", "bug", "b")
    bench = Bench(60)
    bench.lake.worker_error = OSError("no session")
    with pytest.raises(OSError, match="no session"):
        bench.run("a")


def test_how_many_tables_are_done_is_told_while_one_does_not_answer() -> None:
    heard: list[tuple[str, int, int]] = []

    class Listener(StageListener):
        def counted(self, stage: str, number: int, total: int) -> None:
            heard.append((stage, number, total))
            if number == 3:
                bench.go.set()

    bench = Bench(60)
    bench.pool = replace(bench.pool, stages=Listener(), counted="reading 4 tables")
    bench.run("stuck", "a", "b", "c", jobs=2)
    assert sorted(bench.seen) == ["a", "b", "c", "stuck"]
    assert ("reading 4 tables", 3, 4) in heard
    assert heard[-1] == ("reading 4 tables", 4, 4)
    assert [number for _, number, _ in heard] == sorted(number for _, number, _ in heard)
