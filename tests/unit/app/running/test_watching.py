"""Watching: rounds, runs, setting aside, and how it ends; on a clock that is set by hand."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pytest

from maintainer.app.running.run_listener import RunListener
from maintainer.app.running.watch_loop import FIRST_PAUSE_SECONDS, WatchBounds, WatchEnd, watch
from maintainer.errors import ExitCode
from maintainer.execution.cancellation import StopSwitch
from maintainer.model.plan.plan import LeftAlone, Plan, Problem, TablePlan
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import SetPropertiesStep, StepKind
from maintainer.model.run.outcome import RunOutcome, StepOutcome, StepStatus, TableOutcome, TableStatus
from maintainer.model.run.receipts import CommitReceipt
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.resolve.resolved import ResolvedPolicy
from tests.support.runs import sample_plans
from tests.support.runs import sample_runs as samples
from tests.support.runs.planned_steps import vacuum
from tests.support.tables.builders import make_policy

AWAY = Problem("T435", "no answer")
STEP = SetPropertiesStep((("a", None),), (("a", "1"),), ())


class Refusals(RunListener):
    """Notes the tables that are refused, and those of each round."""

    def __init__(self, names: list[str], rounds: list[set[str]]) -> None:
        self._names, self._rounds = names, rounds

    def round_began(self, names: Collection[str]) -> None:
        self._rounds.append(set(names))

    def refused(self, table: TablePlan) -> None:
        self._names.append(table.ref.identifier)


class Lake:
    """Tables with so much work each; what a try makes of one can be said beforehand."""

    def __init__(self, work: dict[str, int], ends: dict[str, list[TableStatus]] | None = None) -> None:
        self.work = work
        self.ends = ends or {}
        self.broken: set[str] = set()
        self.blocked: set[str] = set()
        self.waiting: set[str] = set()
        self.unsearched: set[str] = set()
        self.vacuums: set[str] = set()
        self.refused: list[str] = []
        self.rounds: list[set[str]] = []
        self.now = 0.0
        self.looks: list[tuple[float, tuple[str, ...]]] = []
        self.switch = StopSwitch()
        self.stop_after: float | None = None
        self.switch.wait = self.wait  # type: ignore[method-assign] # no test sleeps

    def wait(self, seconds: float) -> bool:
        self.now += seconds
        if self.stop_after is not None and self.now >= self.stop_after:
            self.switch.stop("SIGTERM")
        return self.switch.stop_reason is not None

    def policies(self) -> list[ResolvedPolicy]:
        return [replace(make_policy(), table=TableRef(name)) for name in self.work]

    def plan(self, due: tuple[ResolvedPolicy, ...]) -> Plan:
        names = tuple(policy.table.identifier for policy in due)
        self.looks.append((self.now, names))
        places = (TablePlan(TableRef(name), "maintainer.yml", "", problem=AWAY) for name in sorted(self.unsearched))
        return sample_plans.plan(*(self._table(name) for name in names), *places)

    def _table(self, name: str) -> TablePlan:
        if name in self.broken:
            return TablePlan(TableRef(name), "p.yml", "d", problem=Problem("T401", "no such table"))
        if name in self.blocked:
            reason = Reason(ReasonCode.OVER_LIMIT, "would rewrite 2 files, limits.maxFiles is 1")
            return TablePlan(TableRef(name), "p.yml", "d", blocked=(reason,))
        if name in self.waiting:
            closed = LeftAlone(Reason(ReasonCode.OUTSIDE_WINDOW, "outside the window"))
            return TablePlan(TableRef(name), "p.yml", "d", left_alone=(closed,))
        if name in self.vacuums:
            return TablePlan(TableRef(name), "p.yml", "d", steps=(vacuum("old"),))
        return TablePlan(TableRef(name), "p.yml", "d", steps=(STEP,) if self.work[name] else ())

    def apply(self, plan: Plan) -> RunOutcome:
        return replace(samples.good_run(), tables=tuple(self._end(table) for table in plan.tables))

    def _end(self, table: TablePlan) -> TableOutcome:
        name = table.ref.identifier
        if table.problem is not None:
            return TableOutcome(table.ref, TableStatus.FAILED, problem=table.problem)
        if table.blocked:
            return TableOutcome(table.ref, TableStatus.BLOCKED)
        if not table.steps:
            return TableOutcome(table.ref, TableStatus.UP_TO_DATE)
        status = self.ends[name].pop(0) if self.ends.get(name) else TableStatus.DONE
        if status is TableStatus.VERIFY_FAILED:
            self.switch.verification_failed(name)
        if status is TableStatus.DONE:
            self.work[name] -= 1
        of_step = {
            TableStatus.DONE: StepStatus.SUCCEEDED,
            TableStatus.YIELDED: StepStatus.YIELDED,
            TableStatus.VERIFY_FAILED: StepStatus.VERIFY_FAILED,
            TableStatus.NOT_REACHED: StepStatus.SKIPPED,
        }.get(status, StepStatus.FAILED)
        commits = (CommitReceipt(2, 1),) if of_step is StepStatus.SUCCEEDED else ()
        return TableOutcome(table.ref, status, (StepOutcome("s", StepKind.SET_PROPERTIES, of_step, 0, 0.0, commits),))

    def watch(self, **bounds: object) -> WatchEnd:
        given = WatchBounds(**{"interval_seconds": 10.0, **bounds})  # type: ignore[arg-type] # of the tests' own making
        listener = Refusals(self.refused, self.rounds)
        return watch(self.policies, self.plan, self.apply, given, self.switch, lambda: self.now, listener)


def test_until_idle_ends_when_nothing_is_left() -> None:
    lake = Lake({"a": 3, "b": 1, "c": 0})
    assert lake.watch(until_idle=True) == WatchEnd(rounds=4, runs=3, code=ExitCode.OK)
    assert lake.work == {"a": 0, "b": 0, "c": 0}
    assert [at for at, _ in lake.looks] == [0.0, 10.0, 20.0, 30.0]


def test_each_round_names_its_tables_also_those_that_are_set_aside() -> None:
    lake = Lake({"broken": 1, "dropped": 0})
    lake.broken.add("broken")
    lake.watch(max_rounds=2)
    del lake.work["dropped"]
    lake.watch(max_rounds=1)
    assert lake.rounds == [{"broken", "dropped"}, {"broken", "dropped"}, {"broken"}]


def test_a_table_that_yields_waits_longer_each_time_and_the_others_go_on() -> None:
    lake = Lake({"busy": 1, "a": 9}, {"busy": [TableStatus.YIELDED, TableStatus.YIELDED]})
    end = lake.watch(until_idle=True)
    assert end.code is ExitCode.OK
    asked = [at for at, names in lake.looks if "busy" in names]
    assert asked[0] == 0.0
    assert asked[1] == FIRST_PAUSE_SECONDS
    assert asked[2] == asked[1] + 2 * FIRST_PAUSE_SECONDS
    assert lake.work == {"busy": 0, "a": 0}


def test_a_table_that_always_fails_is_not_waited_for_for_ever() -> None:
    lake = Lake({"bad": 1}, {"bad": [TableStatus.FAILED] * 99})
    end = lake.watch(until_idle=True)
    assert (end.runs, end.code) == (3, ExitCode.FINDINGS)


def test_a_table_that_no_policy_names_any_more_is_not_waited_for() -> None:
    """A search found it in the first round only."""
    lake = Lake({"staging": 1, "a": 1}, {"staging": [TableStatus.FAILED] * 99})

    def policies() -> list[ResolvedPolicy]:
        return [policy for policy in lake.policies() if not lake.looks or policy.table.identifier != "staging"]

    bounds = WatchBounds(10.0, until_idle=True, max_rounds=99)
    listener = Refusals(lake.refused, lake.rounds)
    end = watch(policies, lake.plan, lake.apply, bounds, lake.switch, lambda: lake.now, listener)
    assert end == WatchEnd(rounds=2, runs=1, code=ExitCode.OK)


@pytest.mark.parametrize("waits", [False, True])
def test_a_table_with_nothing_left_to_do_now_is_not_waited_for(waits: bool) -> None:
    """Another writer won, and has compacted the table since; or its window has closed."""
    lake = Lake({"a": 1}, {"a": [TableStatus.YIELDED] * 3})

    def wait(seconds: float) -> bool:
        lake.waiting, lake.work["a"] = ({"a"}, 1) if waits else (set(), 0)
        return Lake.wait(lake, seconds)

    lake.switch.wait = wait  # type: ignore[method-assign] # no test sleeps
    assert lake.watch(until_idle=True, max_rounds=99) == WatchEnd(rounds=7, runs=1, code=ExitCode.OK)


@pytest.mark.parametrize(("waits", "pause"), [(False, 1), (True, 2)])
def test_failures_are_in_a_row_until_nothing_is_left_to_do(waits: bool, pause: int) -> None:
    lake = Lake({"a": 1}, {"a": [TableStatus.FAILED] * 2})

    def wait(seconds: float) -> bool:
        lake.work["a"] = int(waits or lake.now != 50.0)
        lake.waiting = {"a"} if waits and lake.now == 50.0 else set()
        return Lake.wait(lake, seconds)

    lake.switch.wait = wait  # type: ignore[method-assign] # no test sleeps
    lake.watch(max_rounds=30)
    asked = [at for at, names in lake.looks if "a" in names]
    assert asked[:4] == [0.0, 60.0, 70.0, 70.0 + pause * FIRST_PAUSE_SECONDS]


def test_what_another_table_keeps_from_being_started_does_not_wait_with_it() -> None:
    lake = Lake({"bad": 1, "good": 1}, {"bad": [TableStatus.FAILED], "good": [TableStatus.NOT_REACHED]})
    assert lake.watch(until_idle=True).code is ExitCode.OK
    assert lake.looks[:3] == [(0.0, ("bad", "good")), (10.0, ("good",)), (20.0, ("good",))]


def test_a_run_that_starts_no_table_is_not_tried_for_ever() -> None:
    lake = Lake({"a": 1}, {"a": [TableStatus.NOT_REACHED] * 99})
    end = lake.watch(until_idle=True)
    assert (end.runs, end.code) == (3, ExitCode.FINDINGS)


def test_a_table_that_cannot_be_planned_holds_nobody_up() -> None:
    lake = Lake({"gone": 0, "a": 2})
    lake.broken.add("gone")
    end = lake.watch(until_idle=True)
    assert (end.runs, end.code, lake.work["a"]) == (2, ExitCode.FINDINGS, 0)
    assert [at for at, names in lake.looks if "gone" in names] == [0.0]


@pytest.mark.parametrize(("commits", "code"), [(1, ExitCode.PARTLY_REFUSED), (0, ExitCode.REFUSED)])
def test_a_blocked_table_beside_one_that_was_changed_is_part_done(commits: int, code: ExitCode) -> None:
    lake = Lake({"blocked": 0, "a": commits})
    lake.blocked.add("blocked")
    assert lake.watch(until_idle=True) == WatchEnd(rounds=1 + commits, runs=commits, code=code)
    # A run says itself what it refused; without one the watch must, and once.
    assert lake.refused == ([] if commits else ["blocked"])


def test_a_refusal_is_said_once_however_often_it_is_looked_at() -> None:
    lake = Lake({"blocked": 0})
    lake.blocked.add("blocked")
    lake.watch(max_rounds=200)
    assert len([names for _, names in lake.looks if "blocked" in names]) > 1
    assert lake.refused == ["blocked"]


def test_a_place_that_cannot_be_searched_is_said_once_until_it_can_be_again() -> None:
    lake = Lake({"a": 0})

    def wait(seconds: float) -> bool:
        lake.unsearched = {"s3://b"} if lake.now // 50 in (0, 2) else set()
        return Lake.wait(lake, seconds)

    lake.unsearched = {"s3://b"}
    lake.switch.wait = wait  # type: ignore[method-assign] # no test sleeps
    assert lake.watch(max_rounds=5).code is ExitCode.FINDINGS
    assert lake.refused == ["s3://b"]
    assert lake.watch(max_rounds=7).code is ExitCode.OK
    assert lake.refused == ["s3://b", "s3://b"]


def test_a_failure_outranks_what_is_part_done() -> None:
    lake = Lake({"blocked": 0, "a": 1, "gone": 0})
    lake.blocked.add("blocked")
    lake.broken.add("gone")
    assert lake.watch(until_idle=True).code is ExitCode.FINDINGS


def test_a_failed_proof_does_not_end_the_watch_and_decides_its_code() -> None:
    lake = Lake({"a": 5, "b": 3}, {"a": [TableStatus.VERIFY_FAILED]})
    assert lake.watch(until_idle=True).code is ExitCode.VERIFICATION_FAILED
    assert lake.work == {"a": 0, "b": 0}


def test_a_second_failed_proof_ends_the_watch_also_in_a_later_round() -> None:
    lake = Lake(
        {"a": 5, "b": 5}, {"a": [TableStatus.VERIFY_FAILED], "b": [TableStatus.DONE, TableStatus.VERIFY_FAILED]}
    )
    assert lake.watch() == WatchEnd(2, 2, ExitCode.VERIFICATION_FAILED)


def test_a_vacuum_is_no_reason_for_a_run_while_deletions_are_held() -> None:
    lake = Lake({"a": 0, "b": 1})
    lake.vacuums.add("b")
    assert lake.watch(max_rounds=3).runs == 3
    lake.switch.verification_failed("a")
    assert lake.watch(max_rounds=3).runs == 0


def test_a_signal_ends_it_between_two_looks() -> None:
    lake = Lake({"a": 0})
    lake.stop_after = 35.0
    assert lake.watch() == WatchEnd(rounds=4, runs=0, code=ExitCode.OK)


@pytest.mark.parametrize("bounds", [{"interval_seconds": 0}, {"max_rounds": 0}])
def test_bounds_are_bounds(bounds: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="greater than 0"):
        WatchBounds(**bounds)  # type: ignore[arg-type] # the point of the test
