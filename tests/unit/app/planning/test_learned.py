"""What past runs teach: rates by kind, lost races, and since when a table waits."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from maintainer.app.planning.run_statistics import LESSONS_FILE, Lessons, keep_lessons, learn, lessons_of, past_lessons
from maintainer.journal.folder.run_folder import RunFolder
from maintainer.model.plan.plan import LeftAlone, Plan
from maintainer.model.plan.plan_document import to_json
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.run.outcome import RunOutcome, StepStatus
from maintainer.model.run.results_document import run_to_json
from maintainer.planning.budget.ranking import DEFAULT_BYTES_PER_SECOND
from tests.support.runs import sample_runs as samples

Run = tuple[Plan, RunOutcome]


def lessons(*runs: Run) -> list[Lessons]:
    return [lessons_of(*one) for one in runs]


def run(created_at_ms: int, *, waits: bool, status: StepStatus = StepStatus.SUCCEEDED) -> Run:
    plan: Plan = replace(samples.plan(samples.orders()), created_at_ms=created_at_ms)
    if waits:
        left = LeftAlone(Reason(ReasonCode.OVER_BUDGET, "waits"))
        plan = replace(plan, tables=(replace(plan.tables[0], left_alone=(left,), steps=()),))
    good = samples.good_run()
    step = replace(
        samples.compact_done(), status=status, commits=(samples.receipt(1, 5, 1, 1000),), duration_seconds=4.0
    )
    return plan, replace(good, tables=(replace(good.tables[0], steps=(step,)),))


def test_rates_and_lost_races() -> None:
    yielded = run(1, waits=False, status=StepStatus.YIELDED)
    learned = learn(lessons(run(3, waits=False), yielded))
    # One size says nothing of others: a byte costs what it costs by default, the rest is the commit's.
    assert learned.bytes_per_second == {"compact": DEFAULT_BYTES_PER_SECOND}
    assert learned.commit_seconds == {"compact": pytest.approx(4.0 - 1000 / DEFAULT_BYTES_PER_SECOND)}
    assert learned.seconds_of("compact", 1000) == pytest.approx(4.0)
    assert learned.yielded == {"sales.orders": (2, 1)}


def test_waiting_counts_from_the_first_night_of_an_unbroken_row() -> None:
    row = lessons(run(5, waits=True), run(4, waits=True), run(3, waits=False), run(2, waits=True))
    assert learn(row).waiting_since_ms == {"sales.orders": 4}
    assert learn(lessons(run(5, waits=False), run(4, waits=True))).waiting_since_ms == {}


def folder_of(runs_dir: Path, number: int, made: Run, *, with_lessons: bool) -> Path:
    folder = RunFolder.create(runs_dir, f"20261121T22000{number}Z-0000")
    plan, outcome = made
    folder.write_plan(to_json(plan))
    folder.write_results(run_to_json(outcome))
    if with_lessons:
        keep_lessons(folder.path, plan, outcome)
    return folder.path


def test_lessons_beside_the_results_say_what_the_whole_run_says(tmp_path: Path) -> None:
    runs = [run(3, waits=True, status=StepStatus.YIELDED), run(4, waits=False), run(5, waits=True)]
    for number, made in enumerate(runs):
        folder_of(tmp_path / "kept", number, made, with_lessons=True)
        folder_of(tmp_path / "whole", number, made, with_lessons=False)
    kept, whole = list(past_lessons(tmp_path / "kept")), list(past_lessons(tmp_path / "whole"))
    assert kept == whole == lessons(*reversed(runs))
    assert learn(kept).waiting_since_ms == {"sales.orders": 5}


def test_what_cannot_be_read_is_passed_over_and_damaged_lessons_are_drawn_anew(tmp_path: Path) -> None:
    first = folder_of(tmp_path, 1, run(3, waits=False), with_lessons=True)
    (first / LESSONS_FILE).write_text('{"created_at_ms": 1}')
    second = folder_of(tmp_path, 2, run(4, waits=False), with_lessons=False)
    (second / "plan.json").write_text("{")
    RunFolder.create(tmp_path, "20261121T220003Z-0000")
    assert list(past_lessons(tmp_path)) == lessons(run(3, waits=False))
    assert list(past_lessons(tmp_path / "nowhere")) == []


def test_lessons_of_an_earlier_version_are_drawn_anew(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, 1, run(3, waits=False), with_lessons=True)
    old = json.loads((folder / LESSONS_FILE).read_text())
    old["timed"] = {"compact": [1000, 4.0]}
    (folder / LESSONS_FILE).write_text(json.dumps(old))
    assert list(past_lessons(tmp_path)) == lessons(run(3, waits=False))
