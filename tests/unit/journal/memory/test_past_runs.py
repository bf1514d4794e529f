"""A run's record is read back from its folder, whatever its tables are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from maintainer.app.planning.run_statistics import past_lessons
from maintainer.execution.table.recovery import planned_deletion
from maintainer.journal.event_log import EventsRead, read_events
from maintainer.journal.folder.run_folder import RunFolder
from maintainer.journal.journal import Journal
from maintainer.journal.memory import past_runs
from maintainer.journal.memory.past_runs import read_record, read_run
from maintainer.model.plan.plan_document import to_json
from maintainer.model.run.outcome import RunEnd, RunOutcome, StepStatus, TableOutcome, TableStatus, run_to_json
from maintainer.model.run.receipts import CommitReceipt
from maintainer.model.run.run_events import CommitEnd, Deleting, Intent, Result
from maintainer.model.table.commit_records import CommitStamp
from tests.support.runs.fake_lake import FakeLake
from tests.support.runs.planned_steps import compact, plan_all, plan_of, vacuum
from tests.support.tables.builders import NOW_MS


@pytest.mark.parametrize("name", ["orders", "caf\u00e9", "caf\udce9"])
def test_the_record_of_a_table_with_any_name_is_read_back(tmp_path: Path, name: str) -> None:
    plan = plan_all(plan_of(FakeLake().table(name, (1,)), vacuum("x")))
    outcome = RunOutcome("20261121T220001Z-0000", NOW_MS, 1.0, (TableOutcome(plan.tables[0].ref, TableStatus.DONE),))
    folder = RunFolder.create(tmp_path, outcome.run_id)
    folder.write_plan(to_json(plan))
    folder.write_results(run_to_json(outcome))
    past = read_run(folder.path)
    assert (past.plan, past.outcome) == (plan, outcome)
    names = [(lesson.table.ref.identifier, lesson.waits) for run in past_lessons(tmp_path) for lesson in run.tables]
    assert names == [(name, False)]
    [step] = plan.tables[0].steps
    stamp = CommitStamp(outcome.run_id, plan.tables[0].step_id(step), 0, "sha256:0")
    intent = Intent(NOW_MS, name, "id", "mem:/t", stamp, "vacuum", 1, proven=True)
    assert planned_deletion(tmp_path, intent) == step


def test_a_run_that_ends_while_it_is_read_has_not_died(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal.open(tmp_path / "runs", "20261121T220001Z-0000", lambda: NOW_MS)

    def read_and_end(path: Path) -> EventsRead:
        events = read_events(path)
        journal.finished()
        journal.close()
        return events

    monkeypatch.setattr(past_runs, "read_events", read_and_end)
    assert read_record(journal.folder.path, with_plan=False).end is RunEnd.RUNNING


@pytest.mark.parametrize("end", [RunEnd.RUNNING, RunEnd.DIED])
def test_the_steps_of_a_run_that_goes_on_were_not_broken_off(tmp_path: Path, end: RunEnd) -> None:
    table = FakeLake().table("a", (1,), (2,), (3,), (4,))
    steps = (compact(table, ("f0", "f1"), ("f2", "f3")), vacuum("x", "y"))
    plan = plan_all(plan_of(table, *steps))
    journal = Journal.open(tmp_path / "runs", "20261121T220001Z-0000", lambda: NOW_MS)
    journal.folder.write_plan(to_json(plan))
    rewrite, deletion = (plan.tables[0].step_id(step) for step in steps)
    of_table = (NOW_MS, "a", "id", "mem:/t")
    for step_id, batch, kind in ((rewrite, 0, "compact"), (rewrite, 1, "compact"), (deletion, 0, "vacuum")):
        stamp = CommitStamp(journal.run_id, step_id, batch, "sha256:0")
        journal.record(Intent(*of_table, stamp, kind, 2, proven=True))
        if (step_id, batch) == (rewrite, 0):
            journal.record(Result(*of_table, stamp, kind, CommitEnd.LANDED, CommitReceipt(2, 1)))
    journal.record(Deleting(*of_table, deletion, 1, 2))
    if end is RunEnd.DIED:
        journal._log.close()
    outcome = read_run(journal.folder.path).outcome
    assert outcome.end is end
    first, second = outcome.tables[0].steps
    said = {step.error.what for step in (first, second) if step.error is not None}
    if end is RunEnd.RUNNING:
        assert said == {"the run is still going on"}
        assert {first.status, second.status} == {StepStatus.INTERRUPTED}
    else:
        assert any("was killed" in what for what in said)
    assert [commit.version for commit in first.commits] == [2]
