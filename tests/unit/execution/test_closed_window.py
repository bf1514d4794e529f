"""A run that outlasts a table's window: what had landed stays, nothing further is begun, and it is no failure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from maintainer.errors import ExitCode
from maintainer.execution.fleet.fleet_bounds import FleetBounds
from maintainer.execution.run_context import Clock, RetryBounds
from maintainer.journal.journal import Journal
from maintainer.journal.memory.table_records import remembered, update_state
from maintainer.model.plan.plan import TablePlan
from maintainer.model.run.exit_codes import exit_code
from maintainer.model.run.outcome import RunOutcome, TableStatus
from tests.support.runs.fake_lake import FakeLake
from tests.support.runs.plain_verifier import PlainVerifier
from tests.support.runs.planned_steps import compact, plan_all, plan_of, run_fleet, vacuum
from tests.support.tables.builders import HOUR_MS, NOW_MS


class Night:
    """A lake, and a clock that goes on by an hour with each rewrite."""

    def __init__(self, runs_dir: Path) -> None:
        self.runs_dir = runs_dir
        self.lake = FakeLake()
        self.now_ms = NOW_MS
        self.lake.at("landed", lambda at: self.later())

    def later(self) -> None:
        self.now_ms += HOUR_MS

    def run(self, *plans: TablePlan) -> RunOutcome:
        journal = Journal.open(self.runs_dir, "20261121T220001Z-0000", lambda: self.now_ms)
        quick = FleetBounds(tick_seconds=0.01)
        return run_fleet(
            plan_all(*plans), self.lake, journal=journal, verifier=PlainVerifier(), bounds=quick,
            clock=Clock(lambda: self.now_ms), retry=RetryBounds(first_pause_seconds=0.0),
        )  # fmt: skip


@pytest.fixture
def night(tmp_path: Path) -> Night:
    return Night(tmp_path / ".maintainer" / "runs")


def closing(plan: TablePlan, hours: float) -> TablePlan:
    return replace(plan, window_closes_ms=NOW_MS + int(hours * HOUR_MS))


def steps(outcome: RunOutcome, number: int = 0) -> list[tuple[str, str, int]]:
    return [(step.kind, step.status.value, len(step.commits)) for step in outcome.tables[number].steps]


def test_a_step_is_not_begun_after_the_window_has_closed(night: Night) -> None:
    table, late = night.lake.table("a", (1,), (2,)), night.lake.table("b", (1,), (2,))
    table.storage.add("old")
    outcome = night.run(
        closing(plan_of(table, compact(table), vacuum("old")), 0.5), closing(plan_of(late, compact(late)), 0.9)
    )
    assert steps(outcome) == [("compact", "succeeded", 1), ("vacuum", "yielded", 0)]
    assert steps(outcome, 1) == [("compact", "yielded", 0)]
    assert [table.status for table in outcome.tables] == [TableStatus.YIELDED, TableStatus.YIELDED]
    assert exit_code(outcome) is ExitCode.OK
    error = outcome.tables[1].steps[0].error
    assert error is not None
    assert (error.code, error.what) == ("C716", "the window closed at 2026-11-21 22:54 UTC")
    assert "old" in table.storage
    assert len(late.live) == 2


def test_between_commits_of_a_step_the_window_is_asked_as_well(night: Night) -> None:
    table = night.lake.table("a", (1,), (2,), (3,), (4,), (5,), (6,))
    outcome = night.run(closing(plan_of(table, compact(table, ("f0", "f1"), ("f2", "f3"), ("f4", "f5"))), 2))
    assert steps(outcome) == [("compact", "yielded", 2)]
    assert table.rows == [1, 2, 3, 4, 5, 6]
    assert len(table.live) == 4
    update_state(night.runs_dir)
    assert not remembered(night.runs_dir).streaks  # nobody won against us


def test_a_window_that_stays_open_stops_nothing(night: Night) -> None:
    table = night.lake.table("a", (1,), (2,), (3,), (4,))
    outcome = night.run(closing(plan_of(table, compact(table, ("f0", "f1"), ("f2", "f3"))), 1.01))
    assert steps(outcome) == [("compact", "succeeded", 2)]
