"""What past runs teach: rates by kind, lost races, and since when a table waits."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from maintainer.app.planning import run_statistics
from maintainer.app.planning.run_statistics import LESSONS_FILE, Lessons, keep_lessons, learn, lessons_of, past_lessons
from maintainer.journal.folder.run_folder import RunFolder
from maintainer.model.plan.plan import LeftAlone, Plan
from maintainer.model.plan.plan_document import to_json
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.run.outcome import RunOutcome, StepStatus, run_to_json
from maintainer.model.table.table_facts import TableRef
from maintainer.planning.budget.ranking import DEFAULT_BYTES_PER_SECOND
from tests.support.runs import sample_plans
from tests.support.runs import sample_runs as samples

Run = tuple[Plan, RunOutcome]
TONIGHT: Plan = sample_plans.plan(sample_plans.orders())


def lessons(*runs: Run) -> list[Lessons]:
    return [lessons_of(*run) for run in runs]


def run(created_at_ms: int, *, waits: bool, status: StepStatus = StepStatus.SUCCEEDED) -> Run:
    plan: Plan = replace(sample_plans.plan(sample_plans.orders()), created_at_ms=created_at_ms)
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
    learned = learn(lessons(run(3, waits=False), yielded), TONIGHT)
    # One size says nothing of others: a byte costs what it costs by default, the rest is the commit's.
    assert learned.bytes_per_second == {"compact": DEFAULT_BYTES_PER_SECOND}
    assert learned.commit_seconds == {"compact": pytest.approx(4.0 - 1000 / DEFAULT_BYTES_PER_SECOND)}
    assert learned.seconds_of("compact", 1000) == pytest.approx(4.0)
    assert learned.yielded == {"sales.orders": (2, 1)}


def test_waiting_counts_from_the_first_night_of_an_unbroken_row() -> None:
    row = lessons(run(5, waits=True), run(4, waits=True), run(3, waits=False), run(2, waits=True))
    assert learn(row, TONIGHT).waiting_since_ms == {"sales.orders": 4}
    assert learn(lessons(run(5, waits=False), run(4, waits=True)), TONIGHT).waiting_since_ms == {}


@pytest.mark.parametrize("late", [0, 1])
def test_a_table_waits_since_the_first_run_however_many_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: int
) -> None:
    """A watch makes sixty runs in an hour: no table would ever have waited for longer, nor have got its turn."""
    monkeypatch.setattr(run_statistics, "MAX_RUNS_LEARNED_FROM", 3)
    for number in range(late + 8):
        folder_of(tmp_path, number, run(number, waits=number >= late), with_lessons=number != late + 5)
    assert learn(past_lessons(tmp_path), TONIGHT).waiting_since_ms == {"sales.orders": late}
    folder_of(tmp_path, 9, run(9, waits=False), with_lessons=True)
    assert learn(past_lessons(tmp_path), TONIGHT).waiting_since_ms == {}


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
    beside, whole = list(past_lessons(tmp_path / "kept")), list(past_lessons(tmp_path / "whole"))
    assert beside == whole == lessons(*reversed(runs))
    assert learn(beside, TONIGHT).waiting_since_ms == {"sales.orders": 5}


def test_what_cannot_be_read_is_passed_over_and_damaged_lessons_are_drawn_anew(tmp_path: Path) -> None:
    first = folder_of(tmp_path, 1, run(3, waits=False), with_lessons=True)
    (first / LESSONS_FILE).write_text('{"created_at_ms": 1}')
    second = folder_of(tmp_path, 2, run(4, waits=False), with_lessons=False)
    (second / "plan.json").write_text("{")
    RunFolder.create(tmp_path, "20261121T220003Z-0000")
    assert list(past_lessons(tmp_path)) == lessons(run(3, waits=False))
    assert list(past_lessons(tmp_path / "nowhere")) == []


@pytest.mark.parametrize("with_lessons", [True, False])
def test_a_table_keeps_its_past_under_another_policy_name(tmp_path: Path, with_lessons: bool) -> None:
    folder_of(tmp_path, 1, run(3, waits=True, status=StepStatus.YIELDED), with_lessons=with_lessons)
    renamed = replace(sample_plans.orders(), ref=TableRef("lake/orders", "/lake/orders"))
    learned = learn(past_lessons(tmp_path), sample_plans.plan(renamed, replace(renamed, ref=TableRef("crm.orders"))))
    assert learned.yielded == {"lake/orders": (1, 1), "crm.orders": (1, 1)}
    assert learned.waiting_since_ms == {"lake/orders": 3, "crm.orders": 3}


def test_another_table_of_the_same_name_has_no_past() -> None:
    table = sample_plans.orders()
    assert table.observed is not None
    other = replace(table, observed=replace(table.observed, table_id="another"))
    learned = learn(lessons(run(3, waits=True, status=StepStatus.YIELDED)), sample_plans.plan(other))
    assert (learned.yielded, learned.waiting_since_ms) == ({}, {})


def test_a_copy_has_a_past_of_its_own_and_a_moved_table_keeps_it(tmp_path: Path) -> None:
    original = tmp_path / "orders"
    deltalake.write_deltalake(original, pa.table({"a": [1]}))
    table_id = str(deltalake.DeltaTable(original).metadata().id)

    def at(place: Path) -> Plan:
        table = sample_plans.orders()
        assert table.observed is not None
        observed = replace(table.observed, table_id=table_id, location=f"file:{place}")
        return sample_plans.plan(replace(table, ref=TableRef(place.name, str(place)), observed=observed))

    _, outcome = run(3, waits=False, status=StepStatus.YIELDED)
    plan = at(original)
    ended = replace(outcome, tables=(replace(outcome.tables[0], ref=plan.tables[0].ref),))
    past = lessons((plan, ended))
    shutil.copytree(original, tmp_path / "copy")
    assert learn(past, at(tmp_path / "copy")).yielded == {}
    assert learn(past, at(original)).yielded == {"orders": (1, 1)}
    original.rename(tmp_path / "moved")
    assert learn(past, at(tmp_path / "moved")).yielded == {"moved": (1, 1)}


def test_a_night_in_which_a_table_could_not_be_read_ends_its_waiting() -> None:
    plan, outcome = run(4, waits=False)
    unread = replace(plan, tables=(replace(plan.tables[0], observed=None, steps=()),))
    row = lessons(run(5, waits=True), (unread, replace(outcome, tables=())), run(3, waits=True))
    assert learn(row, TONIGHT).waiting_since_ms == {"sales.orders": 5}


def test_lessons_of_an_earlier_version_are_drawn_anew(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, 1, run(3, waits=False), with_lessons=True)
    old = json.loads((folder / LESSONS_FILE).read_text())
    old["timed"] = {"compact": [1000, 4.0]}
    (folder / LESSONS_FILE).write_text(json.dumps(old))
    assert list(past_lessons(tmp_path)) == lessons(run(3, waits=False))
