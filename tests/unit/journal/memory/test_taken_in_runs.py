"""Which runs are in the index, where machines that share it have other folders of runs, or older ones."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from maintainer.delta.log.table_place import StoragePlaces
from maintainer.journal.event_log import EVENTS_FILE, EventLog, add_event
from maintainer.journal.journal import Journal
from maintainer.journal.memory import table_records
from maintainer.journal.memory.table_records import remembered, update_state
from maintainer.model.run.receipts import CommitReceipt, VacuumReceipt
from maintainer.model.run.run_events import CommitEnd, Quarantined, Settled, line_of, named
from maintainer.model.table.commit_records import CommitStamp
from tests.support.tables.builders import NOW_MS
from tests.support.writers import recorded_events
from tests.unit.journal.memory.recorded_runs import FACTS, Runs


@pytest.mark.parametrize("is_over", [True, False])
def test_a_run_is_taken_in_once_though_its_folder_is_not_on_each_machine(
    runs: Runs, tmp_path: Path, is_over: bool
) -> None:
    """A lifecycle rule deleted it on the store; one machine has it in its cache, the other never saw it."""
    journal = runs.start()
    runs.vacuumed(journal, 999)
    if is_over:
        journal.finished()
    journal.close()
    runs.end(runs.start())
    before = (state := runs.runs_dir.parent / "state.json").read_text()
    other = tmp_path / "other" / "runs"
    other.mkdir(parents=True)
    (other.parent / "state.json").write_text(before)
    update_state(other)
    assert (other.parent / "state.json").read_text() == before
    state.write_text((other.parent / "state.json").read_text())
    runs.end(runs.start())
    assert runs.record().vacuumed_bytes == (999,)
    # What a dead run publishes later is taken in all the same.
    if not is_over:
        shutil.copytree(journal.folder.path, other / journal.run_id)
        log = EventLog(other / journal.run_id / EVENTS_FILE)
        log.append(line_of(Quarantined(NOW_MS, *named(FACTS), "q", "wrong", None)))
        log.close()
        assert remembered(other).record_of("id-t", "mem:/t", StoragePlaces()).quarantined == "wrong"


def test_of_a_record_that_grows_on_two_machines_each_file_is_taken_in_once(runs: Runs, tmp_path: Path) -> None:
    journal = runs.start()
    journal.close()
    update_state(runs.runs_dir)
    (runs.runs_dir.parent / ".one_writer").touch()
    other = tmp_path / "other" / "runs"
    shutil.copytree(runs.runs_dir.parent, other.parent, symlinks=True)
    for runs_dir, by in ((runs.runs_dir, "20261121T230001Z-0000"), (other, "20261121T230002Z-0000")) * 2:
        stamp = CommitStamp(journal.run_id, "t/vacuum", 0, "d")
        receipt = VacuumReceipt(num_files_deleted=1, bytes_deleted=int(by[12:15]))
        if not (runs_dir / journal.run_id / f"events.{by}.jsonl").exists():
            settled = Settled(NOW_MS, *named(FACTS), stamp, "vacuum", CommitEnd.LANDED, receipt, by=by)
            add_event(runs_dir, journal.run_id, settled, by=by)
        update_state(runs_dir)
        for each in (runs.runs_dir, other):
            (each.parent / "state.json").write_bytes((runs_dir.parent / "state.json").read_bytes())
    assert sorted(runs.record().vacuumed_bytes) == [1, 2]


def test_an_older_copy_of_a_record_takes_nothing_back(runs: Runs, tmp_path: Path) -> None:
    journal = runs.start()
    runs.vacuumed(journal, 999)
    journal.close()
    update_state(runs.runs_dir)
    other = tmp_path / "other" / "runs"
    shutil.copytree(runs.runs_dir.parent, other.parent)
    path = other / journal.run_id / EVENTS_FILE
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    update_state(other)
    (runs.runs_dir.parent / "state.json").write_bytes((other.parent / "state.json").read_bytes())
    assert runs.record().vacuumed_bytes == (999,)


def test_of_runs_without_a_folder_the_newest_are_known_to_be_taken_in(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_records, "MAX_RUNS_AWAY", 2)
    for _ in range(5):
        runs.end(runs.start())
    for number in (2, 3, 4, 5):
        shutil.rmtree(runs.runs_dir / f"20261121T22000{number}Z-0000")
    update_state(runs.runs_dir)
    state = json.loads((runs.runs_dir.parent / "state.json").read_text())
    assert state["runs"] == [f"20261121T22000{number}Z-0000" for number in (1, 4, 5)]


def test_a_commit_that_lands_after_its_run_was_over_and_another_one_found_none_is_told(runs: Runs) -> None:
    """A thread that was given up goes on in its process, whose lock another machine does not see."""
    hung = runs.start()
    stamp = runs.intent(hung, read_version=6)
    runs.end(hung)
    (intent,) = remembered(runs.runs_dir).open_intents
    later = runs.start()
    later.settled(intent, CommitEnd.NOT_LANDED, None)
    runs.end(later)
    assert (runs.record().unproven_versions, remembered(runs.runs_dir).open_intents) == ((), ())
    thread = Journal(hung.folder, EventLog(hung.folder.path / EVENTS_FILE), lambda: NOW_MS)
    recorded_events.result(thread, stamp, FACTS, "compact", CommitEnd.LANDED, receipt=CommitReceipt(9, 8))
    thread.close()
    assert runs.record().unproven_versions == (9,)
    runs.end(runs.start())
    assert runs.record().unproven_versions == (9,)
    assert json.loads((runs.runs_dir.parent / "state.json").read_text())["unfinished"] == {}
