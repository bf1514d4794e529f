"""What earlier runs left behind: open intents, unproven versions, quarantine, and an index that can be lost."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from maintainer.journal.event_log import EVENTS_FILE, EventLog, EventsRead, encode, read_events
from maintainer.journal.journal import Journal
from maintainer.journal.memory import past_runs, table_records
from maintainer.journal.memory.table_records import remembered, update_state
from maintainer.model.run.outcome import StepStatus
from maintainer.model.run.receipts import CommitReceipt, VacuumReceipt
from maintainer.model.run.run_events import CommitEnd, Deleting, named
from maintainer.model.table.table_facts import TableRecord
from tests.support.tables.builders import NOW_MS
from tests.support.writers import recorded_events
from tests.support.writers.recorded_events import unfinished
from tests.unit.journal.memory.recorded_runs import FACTS, Runs


def test_an_intent_without_result_is_open_once_its_process_is_gone(runs: Runs) -> None:
    journal = runs.start()
    stamp = runs.intent(journal)
    assert unfinished(runs.runs_dir) == ()  # alive: it will say itself
    journal.close()
    (unfinished_run,) = unfinished(runs.runs_dir)
    assert (unfinished_run.stamp, unfinished_run.read_version, unfinished_run.proven, unfinished_run.kind) == (
        stamp,
        1,
        True,
        "compact",
    )
    assert runs.record().unproven_versions == (2,)


@pytest.mark.parametrize(
    ("fate", "is_open"), [(CommitEnd.LANDED, False), (CommitEnd.NOT_LANDED, False), (CommitEnd.UNKNOWN, True)]
)
def test_a_result_ends_an_intent_unless_it_is_unknown(runs: Runs, fate: CommitEnd, is_open: bool) -> None:
    journal = runs.start()
    recorded_events.result(journal, runs.intent(journal), FACTS, "compact", fate)
    journal.close()
    assert bool(unfinished(runs.runs_dir)) is is_open


def test_what_is_known_of_a_commit_stays_known_whoever_does_not_know_it_later(runs: Runs) -> None:
    old = runs.start()
    runs.intent(old)
    old.close()
    new = runs.start()
    (intent,) = unfinished(runs.runs_dir, except_run=new.run_id)
    for fate in (CommitEnd.NOT_LANDED, CommitEnd.UNKNOWN):
        new.settled(intent, fate, None)
    runs.end(new)
    assert unfinished(runs.runs_dir) == ()


def test_a_settlement_is_written_into_the_old_run_and_asked_for_only_once(runs: Runs) -> None:
    old = runs.start()
    runs.intent(old)
    old.close()
    new = runs.start()
    (unfinished_run,) = unfinished(runs.runs_dir, except_run=new.run_id)
    new.settled(unfinished_run, CommitEnd.LANDED, CommitReceipt(2, 1))
    assert unfinished(runs.runs_dir) == ()
    assert runs.record().unproven_versions == (2,)
    recorded_events.verified(new, FACTS, "t/settle", 2, "pass", None)
    runs.end(new)
    assert runs.record().unproven_versions == ()


def test_a_rewrite_is_unproven_until_a_check_passes(runs: Runs) -> None:
    journal = runs.start()
    runs.landed(journal, 2)
    runs.landed(journal, 3, verified="error")
    runs.landed(journal, 4, verified=None)
    runs.landed(journal, 5, verified=None, kind="set_properties")
    runs.end(journal)
    assert runs.record().unproven_versions == (3, 4)
    later = runs.start()
    recorded_events.verified(later, FACTS, "t/settle", 3, "pass", None)
    runs.end(later)
    assert runs.record().unproven_versions == (4,)


def test_times_are_those_of_steps_that_succeeded(runs: Runs) -> None:
    journal = runs.start()
    runs.step(journal, "compact")
    runs.step(journal, "vacuum", StepStatus.INCOMPLETE)
    runs.end(journal)
    assert runs.record() == TableRecord(last_optimize_at_ms=NOW_MS + 1)
    later = runs.start()
    runs.step(later, "zorder", StepStatus.YIELDED)
    runs.step(later, "vacuum")
    runs.end(later)
    assert runs.record() == TableRecord(last_optimize_at_ms=NOW_MS + 1, last_vacuum_at_ms=NOW_MS + 2)


def test_every_counts_from_the_beginning_of_the_run_that_came_to_the_table_hours_later(runs: Runs) -> None:
    """A night that begins at the same time would find nothing due, and maintain the table every other night."""
    hours = 0
    journal = Journal.open(runs.runs_dir, "20261121T220000Z-0000", lambda: NOW_MS + hours * 3_600_000)
    hours = 4
    runs.landed(journal, 2)
    runs.step(journal, "compact")
    runs.step(journal, "vacuum")
    record = runs.record()
    assert (record.last_optimize_at_ms, record.last_vacuum_at_ms) == (NOW_MS, NOW_MS)
    journal.close()
    assert runs.record() == record


def test_files_were_rewritten_when_a_commit_landed_however_its_step_ended(runs: Runs) -> None:
    journal = runs.start()
    recorded_events.result(
        journal, runs.intent(journal), FACTS, "compact", CommitEnd.LANDED, receipt=CommitReceipt(2, 1, 4, 1)
    )
    runs.step(journal, "compact", StepStatus.FAILED)
    runs.end(journal)
    assert (runs.record().last_rewrite_at_ms, runs.record().last_optimize_at_ms) == (NOW_MS + 1, None)
    later = runs.start()
    runs.step(later, "zorder")  # a turn that had nothing to rewrite
    recorded_events.result(later, runs.intent(later, kind="zorder"), FACTS, "zorder", CommitEnd.NOT_LANDED)
    properties = runs.intent(later, 3, "set_properties")
    recorded_events.result(later, properties, FACTS, "set_properties", CommitEnd.LANDED, receipt=CommitReceipt(4, 3))
    runs.end(later)
    assert (runs.record().last_rewrite_at_ms, runs.record().last_optimize_at_ms) == (NOW_MS + 1, NOW_MS + 2)


@pytest.mark.parametrize(
    "receipt",
    [
        VacuumReceipt(3, 30, version_after=4, remaining=("b",)),
        VacuumReceipt(3, 30, trash="mem:/t/_trash"),
        VacuumReceipt(0, 0, trash="mem:/t/_trash", num_files_emptied=2, bytes_emptied=9),
    ],
)
def test_files_were_deleted_when_some_went_however_the_step_ended(runs: Runs, receipt: VacuumReceipt) -> None:
    journal = runs.start()
    fate = CommitEnd.NO_COMMIT if receipt.version_after is None else CommitEnd.LANDED
    recorded_events.result(journal, runs.intent(journal, 3, "vacuum"), FACTS, "vacuum", fate, receipt=receipt)
    runs.step(journal, "vacuum", StepStatus.INCOMPLETE)
    runs.end(journal)
    assert (runs.record().last_delete_at_ms, runs.record().last_vacuum_at_ms) == (NOW_MS + 1, None)
    later = runs.start()
    empty = VacuumReceipt(0, 0, version_after=6)
    recorded_events.result(later, runs.intent(later, 5, "vacuum"), FACTS, "vacuum", CommitEnd.LANDED, receipt=empty)
    runs.step(later, "vacuum")
    runs.end(later)
    assert (runs.record().last_delete_at_ms, runs.record().last_vacuum_at_ms) == (NOW_MS + 1, NOW_MS + 2)


def test_what_a_killed_run_did_is_told_with_the_time_of_that_run(runs: Runs) -> None:
    killed = runs.start()
    runs.intent(killed, 1, "compact")
    runs.intent(killed, 2, "vacuum")
    killed.record(Deleting(killed.now_ms(), *named(FACTS), "t/vacuum", 1, 3))
    killed.close()
    assert (runs.record().last_rewrite_at_ms, runs.record().last_delete_at_ms) == (None, None)
    runs.count += 60  # the next run comes later
    later = runs.start()
    for intent in unfinished(runs.runs_dir, except_run=later.run_id):
        was_vacuum = intent.kind == "vacuum"
        receipt = VacuumReceipt(1, 10, version_after=3) if was_vacuum else CommitReceipt(2, 1, 4, 1)
        later.settled(intent, CommitEnd.LANDED, receipt)
    runs.end(later)
    assert (runs.record().last_rewrite_at_ms, runs.record().last_delete_at_ms) == (NOW_MS + 1, NOW_MS + 1)


def test_a_time_in_the_future_is_unknown_and_is_not_kept(runs: Runs) -> None:
    """The clock of a machine was thirty days ahead: the steps it did are due again, not in thirty days and a week."""
    month_ahead = time.time_ns() // 1_000_000 + 30 * 86_400_000
    runs.count += 1
    ahead = Journal.open(runs.runs_dir, "20261121T220001Z-0000", lambda: month_ahead)
    runs.step(ahead, "compact")
    runs.step(ahead, "vacuum")
    runs.landed(ahead, 2)
    runs.vacuumed(ahead, 10)
    recorded_events.listed(ahead, "t", "id-t", "mem:/t", month_ahead)
    assert runs.record() == TableRecord(vacuumed_bytes=(10,))
    runs.end(ahead)
    assert runs.record() == TableRecord(vacuumed_bytes=(10,))
    right = runs.start()
    runs.step(right, "compact")
    runs.end(right)
    assert runs.record() == TableRecord(last_optimize_at_ms=NOW_MS + 2, vacuumed_bytes=(10,))


def test_quarantine_holds_until_a_person_lifts_it(runs: Runs) -> None:
    journal = runs.start()
    journal.quarantine(FACTS, "V501: rows differ")
    runs.end(journal)
    assert runs.record().quarantined == "V501: rows differ"
    key = (FACTS.table_id, FACTS.location)
    assert remembered(runs.runs_dir).quarantine_of(key) == "V501: rows differ"
    assert remembered(runs.runs_dir).quarantine_of((FACTS.table_id, "file:/copy")) == "V501: rows differ"
    assert remembered(runs.runs_dir).quarantine_of(("another", FACTS.location)) is None
    later = runs.start()
    later.accept(FACTS, runs.record(), reason="looked at it with the team", by="somebody")
    runs.end(later)
    assert runs.record().quarantined is None
    assert remembered(runs.runs_dir).quarantine_of(key) is None


def test_what_a_run_records_after_it_was_thought_to_be_over_counts(runs: Runs) -> None:
    """It lost the store, or its lock cannot be seen on a shared disk: another run counts it as over, and goes on."""
    slow = runs.start()
    runs.landed(slow, 2)
    runs.vacuumed(slow, 100)
    path = slow.folder.path / EVENTS_FILE
    slow.close()  # its lock is seen no more
    runs.end(runs.start())
    assert slow.run_id in json.loads((runs.runs_dir.parent / "state.json").read_text())["unfinished"]
    again = Journal(slow.folder, EventLog(path), lambda: NOW_MS)
    runs.landed(again, 3, verified=None)
    again.quarantine(FACTS, "V503: rows differ")
    runs.vacuumed(again, 200)
    again.close()
    record = runs.record()
    assert (record.quarantined, record.unproven_versions) == ("V503: rows differ", (3,))
    assert record.vacuumed_bytes == (100, 200), "what was taken in before is not counted twice"
    runs.end(runs.start())
    assert runs.record() == record
    last = Journal(slow.folder, EventLog(path), lambda: NOW_MS)
    runs.end(last)
    assert json.loads((runs.runs_dir.parent / "state.json").read_text())["unfinished"] == {}
    assert runs.record() == record


def test_an_intent_that_comes_after_its_run_was_thought_to_be_over_counts(runs: Runs) -> None:
    slow = runs.start()
    slow.close()
    runs.end(runs.start())
    again = Journal(slow.folder, EventLog(slow.folder.path / EVENTS_FILE), lambda: NOW_MS)
    runs.intent(again, read_version=6)
    again.close()
    assert runs.record().unproven_versions == (7,)
    assert [intent.read_version for intent in unfinished(runs.runs_dir)] == [6]


def test_a_guess_at_a_version_is_not_kept_after_somebody_asked_the_log(runs: Runs) -> None:
    """An intent that was published late, and did not land: nothing of it is unproven."""
    slow = runs.start()
    slow.close()
    runs.end(runs.start())
    again = Journal(slow.folder, EventLog(slow.folder.path / EVENTS_FILE), lambda: NOW_MS)
    runs.intent(again, read_version=6)
    again.close()
    runs.end(runs.start())
    assert runs.record().unproven_versions == (7,)
    (intent,) = unfinished(runs.runs_dir)
    later = runs.start()
    later.settled(intent, CommitEnd.NOT_LANDED, None)
    runs.end(later)
    assert runs.record().unproven_versions == ()


def test_a_clock_that_is_behind_takes_no_times_from_others(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    right = runs.start()
    runs.step(right, "compact")
    runs.end(right)
    monkeypatch.setattr(table_records, "latest_time_ms", lambda: NOW_MS - 86_400_000)
    assert runs.record().last_optimize_at_ms is None
    runs.end(runs.start())
    monkeypatch.undo()
    assert runs.record().last_optimize_at_ms == NOW_MS + 1


def test_what_a_person_accepts_counts_as_proven(runs: Runs) -> None:
    journal = runs.start()
    runs.landed(journal, 4, verified="fail")
    runs.landed(journal, 5, verified=None)
    journal.quarantine(FACTS, "V503: rows differ")
    runs.end(journal)
    assert runs.record().unproven_versions == (4, 5)
    later = runs.start()
    known = replace(runs.record(), unproven_versions=(4,))
    later.accept(FACTS, known, reason="looked at it with the team", by="somebody")
    runs.end(later)
    assert (runs.record().quarantined, runs.record().unproven_versions) == (None, (5,))


def test_quarantine_that_was_lifted_by_hand_in_the_index_stays_lifted(runs: Runs) -> None:
    journal = runs.start()
    journal.quarantine(FACTS, "V501: rows differ")
    runs.end(journal)
    index = runs.runs_dir.parent / "state.json"
    document = json.loads(index.read_text())
    document["tables"]["id-t"]["mem:/t"]["quarantines"] = {}
    index.write_text(json.dumps(document))
    assert runs.record().quarantined is None
    runs.end(runs.start())
    assert runs.record().quarantined is None


def test_a_lost_index_is_made_again_from_the_runs(runs: Runs) -> None:
    for version, verified in ((2, "pass"), (3, "error")):
        journal = runs.start()
        runs.landed(journal, version, verified=verified)
        runs.step(journal, "compact")
        runs.end(journal)
    before = runs.record()
    state = runs.runs_dir.parent / "state.json"
    state.unlink()
    assert runs.record() == before
    assert before.unproven_versions == (3,)
    update_state(runs.runs_dir)
    assert json.loads(state.read_text())["runs"] == ["20261121T220001Z-0000", "20261121T220002Z-0000"]


def test_the_index_remembers_runs_whose_folders_are_gone(runs: Runs) -> None:
    journal = runs.start()
    runs.landed(journal, 2, verified="error")
    runs.end(journal)
    for path in sorted(journal.folder.path.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    journal.folder.path.rmdir()
    assert runs.record().unproven_versions == (2,)
    update_state(runs.runs_dir)
    assert runs.record().unproven_versions == (2,)


def test_a_run_with_open_intents_is_not_put_into_the_index(runs: Runs) -> None:
    old = runs.start()
    runs.intent(old)
    old.close()
    update_state(runs.runs_dir)
    assert json.loads((runs.runs_dir.parent / "state.json").read_text())["runs"] == []
    assert runs.record().unproven_versions == (2,)


def test_a_line_that_lost_its_proof_counts_as_unproven(runs: Runs) -> None:
    journal = runs.start()
    runs.landed(journal, 2)
    journal.close()
    path = journal.folder.path / EVENTS_FILE
    lines = [line for line in path.read_bytes().splitlines(keepends=True) if b'"verified"' not in line]
    path.write_bytes(b"".join(lines) + encode({"type": "verified"})[:-4] + b"\n")
    assert runs.record().unproven_versions == (2,)


def test_sizes_of_vacuums_and_the_last_listing_are_remembered(runs: Runs) -> None:
    for number in range(12):
        journal = runs.start()
        stamp = runs.intent(journal, 1, "vacuum")
        recorded_events.result(
            journal, stamp, FACTS, "vacuum", CommitEnd.LANDED, receipt=VacuumReceipt(0 if number == 11 else 1, number)
        )
        if number == 3:
            recorded_events.listed(journal, "t", "id-t", "mem:/t", NOW_MS - 5)
        runs.end(journal)
    record = runs.record()
    assert record.vacuumed_bytes == tuple(range(1, 11))  # ten at most; one that deleted nothing does not count
    assert record.last_listing_at_ms == NOW_MS - 5


def test_however_many_rewrites_are_unproven_none_is_forgotten(runs: Runs) -> None:
    """Each holds back the files that it replaced; the oldest are the first that a vacuum would take."""
    journal = runs.start()
    versions = tuple(range(2, 132))
    for version in versions:
        runs.landed(journal, version, verified="error")
    runs.end(journal)
    assert runs.record().unproven_versions == versions
    update_state(runs.runs_dir)
    assert runs.record().unproven_versions == versions


def test_what_a_run_records_between_two_looks_of_another_is_not_lost(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    living = runs.start()
    ended: list[bool] = []

    def read_and_end(path: Path) -> EventsRead:
        events = read_events(path)
        if living.run_id in str(path) and not ended:
            ended.append(True)
            living.quarantine(FACTS, "rows differ")
            living.finished()
            living.close()
        return events

    monkeypatch.setattr(past_runs, "read_events", read_and_end)
    update_state(runs.runs_dir)
    update_state(runs.runs_dir)
    assert ended
    assert runs.record().quarantined == "rows differ"
