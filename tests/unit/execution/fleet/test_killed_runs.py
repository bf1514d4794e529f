"""A run is killed at every moment at which it left a trace; the next one makes all records agree with the tables."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from maintainer.app.lookback.run_history import history_row, recorded_rows
from maintainer.execution.fleet.fleet_bounds import FleetBounds
from maintainer.journal.event_log import EventLog
from maintainer.journal.journal import Journal
from maintainer.journal.ledger.ledger_rows import LedgerMark, LedgerRow
from maintainer.journal.memory.past_runs import PastRun, past_runs
from maintainer.model.plan.plan import Plan
from maintainer.model.plan.plan_document import to_json
from maintainer.model.plan.steps import StepKind
from maintainer.model.run.outcome import RunEnd, StepOutcome
from tests.support.checker.truth_records import flat
from tests.support.runs.fake_lake import FakeLake, Station
from tests.support.runs.fake_table import FakeTable
from tests.support.runs.plain_verifier import PlainVerifier
from tests.support.runs.planned_steps import compact, plan_all, plan_of, properties, run_fleet, vacuum
from tests.support.tables.builders import NOW_MS

DEAD, NEXT = "20261121T210000Z-dead", "20261121T220000Z-0000"
OLD_FILES = tuple(f"old-{number}" for number in range(30))


class Ledger:
    """A ledger that appends the same rows of a run once, as the real one does."""

    def __init__(self) -> None:
        self.appends: dict[tuple[str, frozenset[str]], tuple[LedgerRow, ...]] = {}

    def append(self, run_id: str, rows: tuple[LedgerRow, ...]) -> None:
        self.appends.setdefault((run_id, frozenset(row.step_id for row in rows)), rows)

    location = "ledger"

    def mark(self) -> LedgerMark | None:
        return None

    def steps_of(self, run_id: str) -> frozenset[str]:
        return frozenset(row.step_id for row in self.rows if row.run_id == run_id)

    @property
    def rows(self) -> list[LedgerRow]:
        return [row for rows in self.appends.values() for row in rows]


@dataclass
class Moment:
    """What is left of everything when the process dies at a moment."""

    name: str
    runs_dir: Path
    table: FakeTable
    ledger: Ledger


def run(runs_dir: Path, run_id: str, lake: FakeLake, plan: Plan, ledger: Ledger) -> None:
    journal = Journal.open(runs_dir, run_id, lambda: NOW_MS)
    journal.folder.write_plan(to_json(plan))
    run_fleet(
        plan, lake, journal=journal, verifier=PlainVerifier(), bounds=FleetBounds(tick_seconds=0.01), ledger=ledger
    )


def make_lake() -> tuple[FakeLake, FakeTable]:
    lake = FakeLake()
    table = lake.table("t", (1,), (2, 3), (4,), (5,))
    table.storage |= set(OLD_FILES)
    return lake, table


def moments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Moment]:
    """Run once, and keep the state of everything after each event, before and after each commit, between deletions."""
    lake, table = make_lake()
    ledger = Ledger()
    runs_dir = tmp_path / "alive" / "runs"
    seen: list[Moment] = []

    def keep(name: str) -> None:
        place = tmp_path / f"at-{len(seen)}"
        shutil.copytree(runs_dir.parent, place)
        seen.append(Moment(name, place / "runs", copy.deepcopy(table), copy.deepcopy(ledger)))

    append = EventLog.append

    def append_and_keep(log: EventLog, event: Any, **options: Any) -> None:
        append(log, event, **options)
        keep(f"{event['type']} {flat(dict(event)).get('step', '')}")

    monkeypatch.setattr(EventLog, "append", append_and_keep)

    def keep_at(station: str) -> Callable[[Station], None]:
        return lambda at: keep(f"{station} {at.stamp.step_id if at.stamp else ''}")

    for station in ("commit", "landed", "deleted"):
        lake.at(station, keep_at(station))
    real: Callable[..., None] = ledger.append

    def append_to_ledger(run_id: str, rows: tuple[LedgerRow, ...]) -> None:
        keep("before the rows are appended")
        real(run_id, rows)
        keep("after the rows were appended")

    monkeypatch.setattr(Ledger, "append", lambda self, run_id, rows: append_to_ledger(run_id, rows))
    steps = properties(**{"delta.x": "1"}), compact(table, ("f0", "f1"), ("f2", "f3")), vacuum(*OLD_FILES)
    run(runs_dir, DEAD, lake, plan_all(plan_of(table, *steps)), ledger)
    monkeypatch.undo()
    return seen


def explained(table: FakeTable, rows: list[Any], run_id: str) -> dict[int, list[str]]:
    """The rows that tell of each version of ours."""
    return {
        version: [
            row.run_id
            for row in rows
            if row.run_id == run_id
            and row.version_after is not None
            and row.version_before < version <= row.version_after
        ]
        for version, commit in enumerate(table.versions)
        if commit.stamp is not None
    }


def recorded_steps(runs_dir: Path, run_id: str) -> list[StepOutcome]:
    (dead_run,) = [
        past_run for past_run in past_runs(runs_dir) if isinstance(past_run, PastRun) and past_run.folder.name == run_id
    ]
    return [step for table in dead_run.outcome.tables for step in table.steps]


def check(moment: Moment) -> None:
    """One complete run after the kill, in which the table has nothing to do."""
    lake, table = FakeLake(), moment.table
    lake.tables["t"] = table
    run(moment.runs_dir, NEXT, lake, plan_all(plan_of(table)), moment.ledger)
    rows = [row for row in moment.ledger.rows if row.run_id == DEAD]
    assert len({row.step_id for row in rows}) == len(rows), [row.step_id for row in rows]
    recorded, unread = recorded_rows(moment.runs_dir)
    history = list(map(history_row, recorded))
    assert unread == []
    for records in (moment.ledger.rows, history):
        explanations = explained(table, [row for row in records if getattr(row, "kind", None) != "vacuum"], DEAD)
        assert all(len(events_of_run) >= 1 for events_of_run in explanations.values()), explanations
    commits = [version for version in table.versions if version.stamp is not None]
    steps = recorded_steps(moment.runs_dir, DEAD) if rows else []
    assert sum(len(step.commits) for step in steps) == len(commits)
    rewritten = [row for row in rows if row.kind == "compact"]
    packed = sum(path.startswith("packed") for path in table.live)
    assert sum(row.num_files_added for row in rewritten) == packed
    assert sum(row.num_files_removed for row in rewritten) == 2 * packed
    assert all(
        (row.proof_level, row.proof_result) == ("fingerprint", "pass") for row in rewritten if row.num_files_added
    )
    gone = len(set(OLD_FILES) - table.storage)
    deletions = [row for row in rows if row.kind == "vacuum"]
    assert sum(row.num_files_removed for row in deletions) == gone
    assert sum(row.bytes_removed for row in deletions) == 8 * gone
    assert sum(row.num_files_removed for row in history if row.step == "vacuum") == gone
    assert all(step.vacuum is None or step.vacuum.num_files_deleted == gone for step in steps)


@pytest.mark.slow
def test_after_a_kill_at_any_moment_the_next_run_makes_the_records_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kills = moments(tmp_path, monkeypatch)
    names = [moment.name for moment in kills]
    for name in ("intent t/compact", "landed t/compact", "result t/compact", "deleted t/vacuum", "run_finished "):
        assert name in names
    for moment in kills:
        try:
            check(moment)
        except AssertionError as error:
            raise AssertionError(f"killed at: {moment.name}: {error}") from error


def test_right_after_the_kill_nothing_is_claimed_that_is_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kills = moments(tmp_path, monkeypatch)
    deleted = [moment for moment in kills if moment.name == "deleted t/vacuum"]
    (end,) = {past_run.outcome.end for past_run in past_runs(deleted[20].runs_dir) if isinstance(past_run, PastRun)}
    assert end is RunEnd.DIED
    steps = {step.kind: step for step in recorded_steps(deleted[20].runs_dir, DEAD)}
    assert steps[StepKind.VACUUM].vacuum is None
    error = steps[StepKind.VACUUM].error
    assert error is not None
    assert "at least 21 of 30 files were deleted" in error.what
    assert steps[StepKind.COMPACT].status.value == "succeeded"
    landed = next(moment for moment in kills if moment.name == "landed t/compact")
    (step,) = [recorded for recorded in recorded_steps(landed.runs_dir, DEAD) if recorded.kind == "compact"]
    assert (step.status.value, step.commits) == ("unknown", ())
