"""Which steps of past runs are told, and in which order: by the time of each step, not by when its run began."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from maintainer.app.lookback.report_pages import fleet_runs
from maintainer.app.lookback.run_history import HistoryQuery, history_row, recorded_rows
from maintainer.app.lookback.table_history import beside_ours
from maintainer.app.project_folders import Project
from maintainer.journal.event_log import EVENTS_FILE, encode
from maintainer.model.plan.plan_document import to_json
from maintainer.model.run.outcome import RunOutcome, StepOutcome, StepStatus, TableOutcome, TableStatus, run_to_json
from maintainer.model.run.progress import RunFinished
from maintainer.model.run.run_events import line_of
from maintainer.model.table.commit_records import CommitStamp, TableCommit
from maintainer.model.table.table_facts import TableRef
from tests.support.policies.projects import write_project
from tests.support.runs import sample_plans, sample_runs
from tests.support.runs.sample_plans import TEN_PM

HOUR_MS = 3_600_000
LONG, SHORT, AHEAD = "20261121T200000Z-0000", "20261121T210000Z-0000", "20991121T210000Z-0000"


def compacted(at_ms: int, seconds: float, version: int, status: StepStatus = StepStatus.SUCCEEDED) -> StepOutcome:
    return replace(
        sample_runs.compact_done(),
        status=status,
        started_at_ms=at_ms,
        duration_seconds=seconds,
        commits=(sample_runs.receipt(version, 10, 1),),
    )


def record(runs: Path, run_id: str, started_ms: int, seconds: float, *steps: StepOutcome) -> None:
    """A run that closed its record."""
    ref = TableRef("sales.orders")
    run = RunOutcome(run_id, started_ms, seconds, (TableOutcome(ref, TableStatus.DONE, steps),))
    folder = runs / run_id
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text(to_json(sample_plans.plan(sample_plans.orders())))
    (folder / "results.json").write_text(run_to_json(run))
    ended = RunFinished(started_ms + round(1000 * seconds), run)
    (folder / EVENTS_FILE).write_bytes(encode(line_of(ended)))


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A run from 20:00 to 02:00 that compacted from 21:50 to 22:10 and from 23:00 on, and one from 21:00 to 21:05."""
    night, evening = compacted(TEN_PM - HOUR_MS // 6, 1200, 7), compacted(TEN_PM + HOUR_MS, 60, 9)
    record(tmp_path, LONG, TEN_PM - 2 * HOUR_MS, 6 * 3600, night, evening)
    record(tmp_path, SHORT, TEN_PM - HOUR_MS, 300, compacted(TEN_PM - HOUR_MS, 60, 5))
    return tmp_path


def told(runs: Path, query: HistoryQuery) -> list[tuple[str, int | None]]:
    rows, unread = recorded_rows(runs, query)
    assert unread == []
    return [(row.run_id, row.version_after) for row in rows]


def test_a_run_of_hours_is_told_of_though_one_that_began_later_ended_long_before(runs: Path) -> None:
    assert told(runs, HistoryQuery(since_ms=TEN_PM + 1)) == [(LONG, 9), (LONG, 7)]
    assert told(runs, HistoryQuery(since_ms=TEN_PM + HOUR_MS // 2)) == [(LONG, 9)]


def test_a_commit_of_a_step_that_began_before_the_time_is_not_said_to_be_unrecorded(runs: Path) -> None:
    since_ms = TEN_PM + 1
    rows, _ = recorded_rows(runs, HistoryQuery(since_ms=since_ms))
    stamp = CommitStamp(LONG, "sales.orders/compact", 0, "sha256:p")
    landed = TableCommit(7, since_ms + 1000, "OPTIMIZE", stamp=stamp)
    found = beside_ours([history_row(row) for row in rows], [landed], "sales.orders", runs_here=lambda _: True)
    assert [(row.status, row.version_after) for row in found] == [("succeeded", 9), ("succeeded", 7)]


def test_steps_are_told_by_their_own_time_and_so_are_the_newest_of_them(runs: Path) -> None:
    assert told(runs, HistoryQuery()) == [(LONG, 9), (LONG, 7), (SHORT, 5)]
    assert told(runs, HistoryQuery(limit=1)) == [(LONG, 9)]
    with pytest.raises(ValueError, match="limit must be at least 1, and is 0"):
        told(runs, HistoryQuery(limit=0))


def test_what_a_clock_that_was_ahead_recorded_is_not_the_newest_for_years(runs: Path) -> None:
    ahead_ms = TEN_PM + 73 * 365 * 24 * HOUR_MS
    record(runs, AHEAD, ahead_ms, 60, compacted(ahead_ms, 60, 3, StepStatus.FAILED))
    assert told(runs, HistoryQuery()) == [(LONG, 9), (LONG, 7), (SHORT, 5), (AHEAD, 3)]


def test_a_run_that_planned_for_long_is_on_the_page_of_all_runs(tmp_path: Path) -> None:
    write_project(tmp_path, {"maintainer.yml": "version: 1\n"})
    project = Project.load(tmp_path)
    record(project.runs_dir, LONG, TEN_PM, 60)
    record(project.runs_dir, SHORT, TEN_PM - HOUR_MS, 60)
    assert [run.folder.name for run in fleet_runs(project, TEN_PM - 1).runs] == [LONG]
