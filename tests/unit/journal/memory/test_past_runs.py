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
from maintainer.model.run.outcome import RunEnd, RunOutcome, TableOutcome, TableStatus, run_to_json
from maintainer.model.run.run_events import Intent
from maintainer.model.table.commit_records import CommitStamp
from tests.support.runs.fake_lake import FakeLake
from tests.support.runs.planned_steps import plan_all, plan_of, vacuum
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
