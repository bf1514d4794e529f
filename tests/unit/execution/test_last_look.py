"""The last look before a rewrite: whoever updates the table meanwhile wins, and nothing of ours is left."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from maintainer.app.lookback.run_history import in_a_row
from maintainer.delta.log.table_place import StoragePlaces
from maintainer.errors import ExitCode, TableHot
from maintainer.execution.cancellation import StopSwitch, TableControl
from maintainer.execution.fleet.fleet_bounds import FleetBounds
from maintainer.execution.run_context import Clock, RetryBounds, RunContext
from maintainer.execution.table.commit_attempt import check_quiet
from maintainer.execution.table.table_worker import TableWorker
from maintainer.journal.journal import Journal
from maintainer.journal.memory.table_records import remembered, update_state
from maintainer.model.plan.plan import LeftAlone, TablePlan
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.run.exit_codes import exit_code
from maintainer.model.run.outcome import RunOutcome, TableOutcome, TableStatus
from maintainer.report.run.run_findings import render_junit
from tests.support.runs.fake_lake import FakeLake
from tests.support.runs.plain_verifier import PlainVerifier
from tests.support.runs.planned_steps import compact, plan_all, plan_of, run_fleet, vacuum
from tests.support.tables.builders import DAY_MS, MINUTE_MS, NOW_MS


class Nights:
    """A lake, and runs a day apart."""

    def __init__(self, runs_dir: Path) -> None:
        self.runs_dir = runs_dir
        self.lake = FakeLake()
        self.number = 0

    @property
    def now_ms(self) -> int:
        return NOW_MS + self.number * DAY_MS

    def run(self, *plans: TablePlan) -> RunOutcome:
        self.number += 1
        journal = Journal.open(self.runs_dir, f"202611{21 + self.number}T220001Z-0000", lambda: self.now_ms)
        quick = FleetBounds(tick_seconds=0.01)
        outcome = run_fleet(
            plan_all(*plans), self.lake, journal=journal, verifier=PlainVerifier(), bounds=quick,
            clock=Clock(lambda: self.now_ms), retry=RetryBounds(first_pause_seconds=0.0),
        )  # fmt: skip
        update_state(self.runs_dir)
        return outcome


@pytest.fixture
def nights(tmp_path: Path) -> Nights:
    return Nights(tmp_path / ".maintainer" / "runs")


def quiet(plan: TablePlan, minutes: int = 10) -> TablePlan:
    return replace(plan, quiet_after_updates_seconds=minutes * 60)


def error_of(table: TableOutcome) -> tuple[str, str]:
    error = table.steps[0].error
    assert error is not None
    return error.code, error.what


def test_an_update_before_the_commit_holds_it_back_though_it_took_another_file(nights: Nights) -> None:
    table = nights.lake.table("t", (1,), (2,), (3,))
    nights.lake.at("write", lambda at: at.table.delete_file("f2", at_ms=nights.now_ms), times=1)
    outcome = nights.run(quiet(plan_of(table, compact(table, ("f0", "f1")))))
    assert error_of(outcome.tables[0]) == (
        "C718", "hot: DELETE by another writer 0s ago (version 2), quietAfterUpdates is 10m",
    )  # fmt: skip
    assert (outcome.tables[0].status, exit_code(outcome)) == (TableStatus.YIELDED, ExitCode.OK)
    assert sorted(table.live) == ["f0", "f1"]


@pytest.mark.parametrize("num_carried", [1, 2])
def test_a_second_update_during_a_rewrite_holds_it_back_though_both_were_carried_over(num_carried: int) -> None:
    lake = FakeLake()
    table = lake.table("t", (1,), (2,), (3,))
    plan = quiet(plan_of(table, compact(table)))
    context = SimpleNamespace(clock=Clock(lambda: NOW_MS))
    with lake.worker("w") as engine:
        facts = engine.reader.facts(plan.ref)
        for name in ("f0", "f1")[:num_carried]:
            table.delete_file(name, at_ms=NOW_MS)
        carried = tuple(range(facts.version + 1, facts.version + 1 + num_carried))
        worker = TableWorker(plan, engine, cast(RunContext, context), TableControl(StopSwitch()))
        with nullcontext() if num_carried == 1 else pytest.raises(TableHot):
            check_quiet(worker, facts, frozenset({()}), carried_versions=carried)


def test_without_a_quiet_time_such_a_rewrite_commits(nights: Nights) -> None:
    table = nights.lake.table("t", (1,), (2,), (3,))
    nights.lake.at("write", lambda at: at.table.delete_file("f2", at_ms=nights.now_ms), times=1)
    outcome = nights.run(plan_of(table, compact(table, ("f0", "f1"))))
    assert outcome.tables[0].status is TableStatus.DONE


def test_a_table_that_became_hot_since_the_plan_is_not_written_at_all(nights: Nights) -> None:
    table = nights.lake.table("t", (1,), (2,), (3,))
    plan = quiet(plan_of(table, compact(table, ("f0", "f1"))))
    table.delete_file("f2", at_ms=NOW_MS + DAY_MS - 9 * MINUTE_MS)
    outcome = nights.run(plan)
    assert error_of(outcome.tables[0])[0] == "C718"
    assert table.written == 0


def test_an_update_longer_ago_than_the_quiet_time_is_none(nights: Nights) -> None:
    table = nights.lake.table("t", (1,), (2,), (3,))
    plan = quiet(plan_of(table, compact(table, ("f0", "f1"))))
    table.delete_file("f2", at_ms=NOW_MS + DAY_MS - 11 * MINUTE_MS)
    assert nights.run(plan).tables[0].status is TableStatus.DONE


def test_appends_hold_nothing_back(nights: Nights) -> None:
    table = nights.lake.table("t", (1,), (2,))
    nights.lake.at("write", lambda at: at.table.append(9))
    nights.lake.at("commit", lambda at: at.table.append(10))
    outcome = nights.run(quiet(plan_of(table, compact(table, ("f0", "f1")))))
    assert outcome.tables[0].status is TableStatus.DONE
    assert table.rows == [1, 2, 9, 10]


def test_files_that_were_replaced_before_they_were_read_are_a_loss_and_not_up_to_date(nights: Nights) -> None:
    table = nights.lake.table("t", (1,), (2,))
    plan = plan_of(table, compact(table))
    table.commit({"f0", "f1"}, {"merged": (1, 2)})
    outcome = nights.run(plan)
    assert outcome.tables[0].status is TableStatus.YIELDED
    assert error_of(outcome.tables[0]) == (
        "C701", "another writer won: the files were replaced before they could be read (version 2, DELETE)",
    )  # fmt: skip
    assert remembered(nights.runs_dir).streak_of("t", StoragePlaces()).lost == 1


def waiting(plan: TablePlan) -> TablePlan:
    reason = Reason(ReasonCode.HOT, "hot: MERGE by another writer 2m ago (quietAfterUpdates 10m)", "policies/t.yml:4")
    return replace(plan, left_alone=(LeftAlone(reason, 2, 16),))


def test_a_hot_table_says_so_in_the_outcome_and_in_junit(nights: Nights) -> None:
    table = nights.lake.table("t", (1,), (2,))
    outcome = nights.run(waiting(plan_of(table)))
    (ended,) = outcome.tables
    assert (ended.status, exit_code(outcome)) == (TableStatus.WAITING, ExitCode.OK)
    assert ended.problem is not None
    assert ended.problem.code == "C718"
    assert '<skipped message="C718: hot: MERGE by another writer 2m ago' in render_junit(outcome)


def test_nights_in_a_row_are_counted_from_the_first_whether_planned_or_held_back(nights: Nights) -> None:
    table = nights.lake.table("t", (1,), (2,), (3,))
    table.storage.add("old")
    nights.run(waiting(plan_of(table)))
    nights.run(waiting(plan_of(table, vacuum("old"))))
    nights.lake.at("write", lambda at: at.table.delete_file("f2", at_ms=nights.now_ms), times=1)
    third = nights.run(quiet(plan_of(table, compact(table, ("f0", "f1")))))
    (named,) = in_a_row(nights.runs_dir, third)
    assert (named.code, named.what) == ("C717", "waiting: hot in 3 runs in a row, since 2026-11-22 22:00 UTC")
    streak = remembered(nights.runs_dir).streak_of("t", StoragePlaces())
    assert (streak.hot, streak.hot_since_ms, streak.lost) == (3, NOW_MS + DAY_MS, 0)
    nights.run(quiet(plan_of(table, compact(table, ("f0", "f1")))))
    assert remembered(nights.runs_dir).streaks == {}
