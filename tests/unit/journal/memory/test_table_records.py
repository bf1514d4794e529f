"""What earlier runs left behind: open intents, unproven versions, runs in a row, and an index that can be lost."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from maintainer.app.lookback.run_history import MAX_NAMED, in_a_row
from maintainer.delta.log.table_place import StoragePlaces
from maintainer.journal.events.event_log import EVENTS_FILE, encode
from maintainer.journal.events.intents import Fate, unfinished
from maintainer.journal.journal import Journal
from maintainer.journal.memory.table_records import PlacedTable, Remembered, Streak, remembered, update_state
from maintainer.model.plan.plan import Problem
from maintainer.model.plan.steps import StepKind
from maintainer.model.run.outcome import (
    CommitReceipt,
    Fingerprint,
    Proof,
    RunOutcome,
    StepOutcome,
    StepStatus,
    TableOutcome,
    TableStatus,
    VacuumReceipt,
)
from maintainer.model.table.commit_records import CommitStamp
from maintainer.model.table.table_facts import TableRecord, TableRef
from tests.support.tables.builders import DAY_MS, NOW_MS, make_facts

FACTS = make_facts(name="t", location="mem:/t", table_id="id-t")
PROOF = Proof(Fingerprint(5, (2**70,)), Fingerprint(5, (2**70,)), 5)


class Runs:
    """Writes runs as the executor does, one after the other."""

    def __init__(self, runs_dir: Path) -> None:
        self.runs_dir = runs_dir
        self.count = 0

    def start(self) -> Journal:
        self.count += 1
        return Journal.open(self.runs_dir, f"20261121T2200{self.count:02}Z-0000", lambda: NOW_MS + self.count)

    def intent(self, journal: Journal, read_version: int = 1, kind: str = "compact") -> CommitStamp:
        stamp = CommitStamp(journal.run_id, f"t/{kind}", 0, "sha256:p")
        journal.intent(stamp, FACTS, kind, read_version=read_version, num_files=2, size_bytes=10, proof=PROOF)
        return stamp

    def landed(self, journal: Journal, version: int, *, verified: str | None = "pass", kind: str = "compact") -> None:
        stamp = self.intent(journal, version - 1, kind)
        journal.result(stamp, FACTS, kind, Fate.LANDED, receipt=CommitReceipt(version, version - 1))
        if verified:
            journal.verified(FACTS, f"t/{kind}", version, verified, None)

    def step(self, journal: Journal, kind: str, status: StepStatus = StepStatus.SUCCEEDED) -> None:
        journal.step_finished("t", ("id-t", "mem:/t"), StepOutcome(f"t/{kind}", StepKind(kind), status, NOW_MS, 1.0))

    def end(self, journal: Journal) -> None:
        journal.finished(None)
        journal.close()
        update_state(self.runs_dir)

    def record(self) -> TableRecord:
        return remembered(self.runs_dir).record_of("id-t", "mem:/t/", StoragePlaces())


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path / ".maintainer" / "runs")


def test_an_intent_without_result_is_open_once_its_process_is_gone(runs: Runs) -> None:
    journal = runs.start()
    stamp = runs.intent(journal)
    assert unfinished(runs.runs_dir) == ()  # alive: it will say itself
    journal.close()
    (found,) = unfinished(runs.runs_dir)
    assert (found.stamp, found.read_version, found.proven, found.kind) == (stamp, 1, True, "compact")
    assert runs.record().unproven_versions == (2,)


@pytest.mark.parametrize(("fate", "is_open"), [(Fate.LANDED, False), (Fate.NOT_LANDED, False), (Fate.UNKNOWN, True)])
def test_a_result_ends_an_intent_unless_it_is_unknown(runs: Runs, fate: Fate, is_open: bool) -> None:
    journal = runs.start()
    journal.result(runs.intent(journal), FACTS, "compact", fate)
    journal.close()
    assert bool(unfinished(runs.runs_dir)) is is_open


def test_a_settlement_is_written_into_the_old_run_and_asked_for_only_once(runs: Runs) -> None:
    old = runs.start()
    runs.intent(old)
    old.close()
    new = runs.start()
    (found,) = unfinished(runs.runs_dir, except_run=new.run_id)
    new.settled(found, Fate.LANDED, CommitReceipt(2, 1))
    assert unfinished(runs.runs_dir) == ()
    assert runs.record().unproven_versions == (2,)
    new.verified(FACTS, "t/settle", 2, "pass", None)
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
    later.verified(FACTS, "t/settle", 3, "pass", None)
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
    later.lift_quarantine(FACTS, "looked at it with the team")
    runs.end(later)
    assert runs.record().quarantined is None
    assert remembered(runs.runs_dir).quarantine_of(key) is None


def test_what_a_person_accepts_counts_as_proven(runs: Runs) -> None:
    journal = runs.start()
    runs.landed(journal, 4, verified="fail")
    runs.landed(journal, 5, verified=None)
    journal.quarantine(FACTS, "V503: rows differ")
    runs.end(journal)
    assert runs.record().unproven_versions == (4, 5)
    later = runs.start()
    later.accept(FACTS, [4], reason="looked at it with the team", by="somebody")
    runs.end(later)
    assert (runs.record().quarantined, runs.record().unproven_versions) == (None, (5,))


def test_quarantine_that_was_lifted_by_hand_in_the_index_stays_lifted(runs: Runs) -> None:
    journal = runs.start()
    journal.quarantine(FACTS, "V501: rows differ")
    runs.end(journal)
    index = runs.runs_dir.parent / "state.json"
    document = json.loads(index.read_text())
    document["tables"]["id-t"]["mem:/t"]["quarantined"] = None
    index.write_text(json.dumps(document))
    assert runs.record().quarantined is None
    runs.end(runs.start())
    assert runs.record().quarantined is None


@pytest.mark.parametrize(
    "damage", [None, "", "{", "[]", '{"format_version": "0"}', '{"format_version":"1","tables":{"x":1},"runs":[]}']
)
def test_a_lost_or_damaged_index_is_rebuilt_from_the_runs(runs: Runs, damage: str | None) -> None:
    for version, verified in ((2, "pass"), (3, "error")):
        journal = runs.start()
        runs.landed(journal, version, verified=verified)
        runs.step(journal, "compact")
        runs.end(journal)
    before = runs.record()
    state = runs.runs_dir.parent / "state.json"
    if damage is None:
        state.unlink()
    else:
        state.write_text(damage)
    assert runs.record() == before
    assert before.unproven_versions == (3,)
    update_state(runs.runs_dir)
    assert json.loads(state.read_text())["runs"] == ["20261121T220001Z-0000", "20261121T220002Z-0000"]


@pytest.mark.parametrize("value", [None, ["2"], 2, [True]])
def test_an_index_that_lost_what_holds_vacuum_back_is_rebuilt(runs: Runs, value: object) -> None:
    journal = runs.start()
    runs.landed(journal, 2, verified="error")
    runs.end(journal)
    state = runs.runs_dir.parent / "state.json"
    document = json.loads(state.read_text())
    record = document["tables"]["id-t"]["mem:/t"]
    assert record["unproven"] == [2]
    record["unproven"] = value
    if value is None:
        del record["unproven"]
    state.write_text(json.dumps(document))
    assert runs.record().unproven_versions == (2,)


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
        journal.result(stamp, FACTS, "vacuum", Fate.LANDED, receipt=VacuumReceipt(0 if number == 11 else 1, number))
        if number == 3:
            journal.listed("t", "id-t", "mem:/t", NOW_MS - 5)
        runs.end(journal)
    record = runs.record()
    assert record.vacuumed_bytes == tuple(range(1, 11))  # ten at most; one that deleted nothing does not count
    assert record.last_listing_at_ms == NOW_MS - 5


DONE, FAILED, YIELDED, UP_TO_DATE, BLOCKED = (
    TableStatus.DONE, TableStatus.FAILED, TableStatus.YIELDED, TableStatus.UP_TO_DATE, TableStatus.BLOCKED
)  # fmt: skip


def ended(name: str, status: TableStatus) -> TableOutcome:
    step = {
        DONE: StepOutcome(f"{name}/compact", StepKind.COMPACT, StepStatus.SUCCEEDED, 0, 1.0, (CommitReceipt(2, 1),)),
        YIELDED: StepOutcome(
            f"{name}/compact", StepKind.COMPACT, StepStatus.YIELDED, 0, 1.0, error=Problem("C701", "another writer won")
        ),
    }.get(status)
    return TableOutcome(TableRef(name), status, (step,) if step else ())


class Nights:
    """A run each night."""

    def __init__(self, runs_dir: Path) -> None:
        self.runs_dir = runs_dir
        self.number = 0

    def __call__(self, *tables: TableOutcome, key: PlacedTable | None = None) -> RunOutcome:
        self.number += 1
        run_id = f"202611{self.number:02}T220000Z-0000"
        journal = Journal.open(self.runs_dir, run_id, lambda: NOW_MS + self.number * DAY_MS)
        for table in tables:
            journal.table_finished(table, key=key)
        journal.finished(None)
        journal.close()
        update_state(self.runs_dir)
        return RunOutcome(run_id, NOW_MS, 1.0, tables)

    def streak(self, name: str = "t") -> Streak:
        return remembered(self.runs_dir).streak_of(name, StoragePlaces())


@pytest.fixture
def nights(tmp_path: Path) -> Nights:
    return Nights(tmp_path / ".maintainer" / "runs")


def test_losses_are_counted_until_a_rewrite_lands(nights: Nights) -> None:
    for status in (YIELDED, YIELDED, UP_TO_DATE, BLOCKED, YIELDED):
        nights(ended("t", status))
    assert (nights.streak().lost, nights.streak().last_lost_at_ms) == (3, NOW_MS + 5 * DAY_MS)
    nights(ended("t", DONE))
    assert nights.streak() == Streak()


def test_failures_are_counted_until_the_table_ends_well(nights: Nights) -> None:
    for status in (FAILED, BLOCKED, FAILED, TableStatus.VERIFY_FAILED, YIELDED):
        nights(ended("t", status))
    assert (nights.streak().failed, nights.streak().failing_since_ms) == (3, NOW_MS + DAY_MS)
    nights(ended("t", UP_TO_DATE))
    assert nights.streak().failed == 0
    assert nights.streak().lost == 1


def test_the_count_survives_the_runs_folders_and_is_made_again_without_the_index(nights: Nights) -> None:
    for _ in range(3):
        nights(ended("t", FAILED))
    index = nights.runs_dir.parent / "state.json"
    kept = index.read_bytes()
    index.unlink()
    assert nights.streak().failed == 3
    index.write_bytes(kept)
    for folder in nights.runs_dir.iterdir():
        shutil.rmtree(folder)
    assert nights.streak().failed == 3


def test_an_index_of_an_earlier_version_is_read(nights: Nights) -> None:
    nights(ended("t", FAILED))
    index = nights.runs_dir.parent / "state.json"
    index.write_text('{"format_version": "1", "runs": [], "tables": {}}')
    assert nights.streak().failed == 1


def test_three_runs_in_a_row_are_named(nights: Nights) -> None:
    for _ in range(2):
        outcome = nights(ended("bad", FAILED), ended("hot", YIELDED), ended("good", DONE))
        assert in_a_row(nights.runs_dir, outcome) == []
    outcome = nights(ended("bad", FAILED), ended("hot", YIELDED), ended("good", DONE))
    told = [(one.code, one.where, one.what) for one in in_a_row(nights.runs_dir, outcome)]
    assert told == [
        ("C717", "bad", "failed in 3 runs in a row, since 2026-11-22 22:00 UTC"),
        ("C717", "hot", "another writer won in 3 runs in a row"),
    ]
    assert in_a_row(nights.runs_dir, RunOutcome("r", 0, 0.0, (ended("good", DONE),))) == []


def test_a_fleet_that_fails_as_a_whole_is_named_in_brief(nights: Nights) -> None:
    tables = [ended(f"t{number:03}", FAILED) for number in range(MAX_NAMED + 7)]
    for _ in range(3):
        outcome = nights(*tables)
    told = in_a_row(nights.runs_dir, outcome)
    assert len(told) == MAX_NAMED + 1
    assert told[-1].what == "7 more that are in trouble for runs in a row"


def test_nothing_is_remembered_of_what_is_well(nights: Nights) -> None:
    nights(ended("t", DONE))
    assert remembered(nights.runs_dir) == Remembered()


def test_a_streak_goes_by_the_tables_id_whatever_its_policy_calls_it(nights: Nights) -> None:
    nights(ended("lake/t", FAILED), key=("id-1", "/data/lake/t"))
    nights(ended("/data/lake/t", FAILED), key=("id-1", "/data/lake/t"))
    assert (nights.streak("lake/t").failed, nights.streak("/data/lake/t").failed) == (2, 2)
    nights(ended("lake/t", FAILED))  # it could not be read this night
    assert nights.streak("/data/lake/t").failed == 3
    nights(ended("/data/lake/t", DONE), key=("id-1", "/data/lake/t"))
    assert nights.streak("lake/t").failed == 0


def test_nights_in_which_a_table_could_not_be_read_count_once_its_id_is_known(nights: Nights) -> None:
    nights(ended("t", FAILED))
    nights(ended("t", FAILED), key=("id-1", "/data/lake/t"))
    assert nights.streak("t").failed == 2
    assert set(remembered(nights.runs_dir).streaks) == {"id-1"}


def table_at(path: Path) -> PlacedTable:
    """The table that another engine finds at a path."""
    return str(deltalake.DeltaTable(path).metadata().id), str(path)


def test_a_copy_and_its_original_fail_each_for_itself(nights: Nights, tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    shutil.copytree(tmp_path / "t", tmp_path / "copy")
    original, copied = table_at(tmp_path / "t"), table_at(tmp_path / "copy")
    assert original[0] == copied[0]
    for _ in range(3):
        outcome = nights(ended("t", FAILED), key=original)
        nights(ended("copy", UP_TO_DATE), key=copied)
    assert (nights.streak("t").failed, nights.streak("copy").failed) == (3, 0)
    assert [problem.where for problem in in_a_row(nights.runs_dir, outcome)] == ["t"]
    for _ in range(2):
        nights(ended("copy", YIELDED), key=copied)
    assert (nights.streak("t").lost, nights.streak("copy").lost) == (0, 2)
    assert remembered(nights.runs_dir).streak_of("new name", StoragePlaces(), copied).lost == 2


def test_a_moved_table_goes_on_where_it_stopped(nights: Nights, tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    for _ in range(2):
        nights(ended("t", FAILED), key=table_at(tmp_path / "t"))
    (tmp_path / "t").rename(tmp_path / "moved")
    nights(ended("moved", FAILED), key=table_at(tmp_path / "moved"))
    assert nights.streak("moved").failed == 3
    nights(ended("moved", DONE), key=table_at(tmp_path / "moved"))
    assert nights.streak("moved").failed == 0


def test_a_place_has_one_count_however_it_is_spelled(nights: Nights, tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    (tmp_path / "link").symlink_to(tmp_path / "t")
    table_id, location = table_at(tmp_path / "t")
    nights(ended("t", FAILED), key=(table_id, location))
    nights(ended("t", FAILED), key=(table_id, str(tmp_path / "link")))
    assert nights.streak("t").failed == 2
