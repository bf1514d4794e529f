"""One table's steps against a lake in memory: order, gates, conflicts, fates, and what is written down."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from maintainer.delta.log.table_place import StoragePlaces
from maintainer.engine.protocols import TablePlaces
from maintainer.errors import CommitNotLanded, CommitUnknown, Interrupted, VerificationFailed
from maintainer.execution.run.cancellation import StopSwitch, TableControl
from maintainer.execution.run.run_context import Clock, Emitter, RetryBounds, RunContext
from maintainer.execution.table.commit_attempt import Worker
from maintainer.execution.table.recovery import settle
from maintainer.execution.table.table_run import run_table
from maintainer.journal.events.event_log import EVENTS_FILE, read_events
from maintainer.journal.events.intents import unfinished
from maintainer.journal.journal import Journal
from maintainer.journal.memory.table_records import remembered
from maintainer.model.plan.plan import LeftAlone, TablePlan
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.run.outcome import StepStatus, TableOutcome, TableStatus, Verdict
from maintainer.model.run.progress import ProgressEvent, StepFinished, StepStarted, Verified
from maintainer.model.table.commit_records import CommitStamp
from maintainer.model.table.table_facts import TableRecord
from tests.support.runs.fake_lake import (
    FakeLake,
    FakeTable,
    PlainVerifier,
    Station,
    compact,
    plan_of,
    properties,
    vacuum,
)
from tests.support.tables.builders import NOW_MS

NO_WAITING = RetryBounds(first_pause_seconds=0.0)


class Bench:
    """A lake, a journal and a verifier, and one call that runs a table's plan."""

    def __init__(self, runs_dir: Path) -> None:
        self.lake = FakeLake()
        self.verifier = PlainVerifier()
        self.runs_dir = runs_dir
        self.switch = StopSwitch()
        self.events: list[ProgressEvent] = []
        self.retry = NO_WAITING
        self.places: TablePlaces = StoragePlaces()
        self._number = 0
        self.journal: Journal

    def run(
        self, plan: TablePlan, *, record: TableRecord | None = None, control: TableControl | None = None
    ) -> TableOutcome:
        self._number += 1
        run_id = f"20261121T22000{self._number}Z-0000"
        self.journal = Journal.open(self.runs_dir, run_id, lambda: NOW_MS + self._number)
        context = RunContext(
            self.journal, self.verifier, Clock(lambda: NOW_MS), Emitter(self.events.append), self.switch,
            self.places, self.retry,
        )  # fmt: skip
        intents = unfinished(self.runs_dir, except_run=run_id)
        with self.lake.worker("w") as engine:
            worker = Worker(plan, engine, context, control or TableControl(self.switch))
            try:
                return run_table(worker, record=record or self.record(plan), open_intents=intents)
            finally:
                self.journal.close()

    def record(self, plan: TablePlan) -> TableRecord:
        assert plan.observed is not None
        observed = plan.observed
        return remembered(self.runs_dir).record_of(observed.table_id, observed.location, self.places)

    def recorded(self, kind: str) -> list[Any]:
        return [e for e in read_events(self.journal.folder.path / EVENTS_FILE).events if e["type"] == kind]


@dataclass(frozen=True)
class PlacesLeft:
    """Implements ``TablePlaces``: some locations hold no table any more."""

    left: tuple[str, ...]

    def place_at(self, location: str) -> str | None:
        return None if location in self.left else location

    def may_hold(self, location: str, table_id: str) -> bool:
        return location not in self.left


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / ".maintainer" / "runs")


def statuses(outcome: TableOutcome) -> list[str]:
    return [f"{step.kind}: {step.status.value}" for step in outcome.steps]


def three_files(bench: Bench, name: str = "t") -> FakeTable:
    return bench.lake.table(name, (1, 2), (3,), (4, 5))


def test_steps_run_in_the_order_of_the_plan_and_everything_is_written_down(bench: Bench) -> None:
    table = three_files(bench)
    table.storage.add("old")
    outcome = bench.run(plan_of(table, properties(**{"delta.x": "1"}), compact(table), vacuum("old")))

    assert outcome.status is TableStatus.DONE
    assert statuses(outcome) == ["set_properties: succeeded", "compact: succeeded", "vacuum: succeeded"]
    assert (table.properties, table.rows, list(table.live)) == ({"delta.x": "1"}, [1, 2, 3, 4, 5], ["packed-1"])
    assert "old" not in table.storage
    assert [(e["step"], e["batch"], e["proven"]) for e in bench.recorded("intent")] == [
        ("t/set_properties", 0, False), ("t/compact", 0, True), ("t/vacuum", 0, False)
    ]  # fmt: skip
    # The vacuum of this lake writes no commits, and says so.
    assert [e["fate"] for e in bench.recorded("result")] == ["landed", "landed", "no_commit"]
    assert [(e["version"], e["result"]) for e in bench.recorded("verified")] == [(3, "pass"), (None, "pass")]
    assert unfinished(bench.runs_dir) == ()
    record = bench.record(plan_of(table))
    assert (record.unproven_versions, record.quarantined) == ((), None)
    assert record.last_optimize_at_ms == record.last_vacuum_at_ms == NOW_MS + 1


def test_the_stamp_of_each_commit_names_run_step_batch_and_policy(bench: Bench) -> None:
    table = three_files(bench)
    bench.run(plan_of(table, compact(table, ("f0", "f1"), ("f2",))))
    stamps = [version.stamp for version in table.versions if version.stamp]
    assert [(s.run_id, s.step_id, s.batch, s.policy_digest) for s in stamps] == [
        ("20261121T220001Z-0000", "t/compact", 0, "sha256:policy"),
        ("20261121T220001Z-0000", "t/compact", 1, "sha256:policy"),
    ]


def test_events_tell_of_each_step_and_check(bench: Bench) -> None:
    table = three_files(bench)
    bench.run(plan_of(table, compact(table, ("f0", "f1"), ("f2",))))
    assert [type(event) for event in bench.events] == [StepStarted, Verified, Verified, StepFinished]
    verified = bench.events[1]
    assert isinstance(verified, Verified)
    assert (verified.version_before, verified.version_after) == (1, 2)
    assert (verified.rows_before, verified.rows_after, verified.result) == (5, 5, "pass")


def test_a_wrong_proof_commits_nothing_quarantines_the_table_and_halts_the_fleet(bench: Bench) -> None:
    table = three_files(bench)
    table.storage.add("old")
    bench.lake.at("write", lambda at: at.rows and at.rows.pop())
    outcome = bench.run(plan_of(table, compact(table), vacuum("old")))

    assert outcome.status is TableStatus.VERIFY_FAILED
    assert statuses(outcome) == ["compact: verify_failed", "vacuum: skipped"]
    assert (table.version, table.rows) == (1, [1, 2, 3, 4, 5])
    assert "old" in table.storage
    assert bench.recorded("intent") == []
    assert bench.switch.halt_reason == "a verification failed on t"
    assert bench.switch.deletions_held is not None
    quarantined = bench.record(plan_of(table)).quarantined
    assert quarantined is not None
    assert quarantined.startswith("V501")
    again = bench.run(plan_of(table, compact(table)))
    assert again.status is TableStatus.BLOCKED
    assert (again.problem.code if again.problem else None) == "A411"
    assert table.version == 1


def test_files_that_will_not_go_make_the_vacuum_incomplete_and_the_table_failed(bench: Bench) -> None:
    table = three_files(bench)
    table.storage |= {"old", "older"}
    table.stuck = {"old"}
    outcome = bench.run(plan_of(table, vacuum("old", "older")))
    assert statuses(outcome) == ["vacuum: incomplete"]
    assert outcome.status is TableStatus.FAILED
    (step,) = outcome.steps
    assert step.vacuum is not None
    assert (step.vacuum.num_files_deleted, step.vacuum.remaining) == (1, ("old",))
    # It is not over: whoever asks for `every` is not told that this was a vacuum.
    assert bench.record(plan_of(table, vacuum("old"))).last_vacuum_at_ms is None


def test_a_check_that_fails_after_the_commit_stops_the_table_and_its_vacuum(bench: Bench) -> None:
    table = three_files(bench)
    table.storage.add("old")
    bench.verifier.order = [Verdict.FAIL]
    outcome = bench.run(plan_of(table, compact(table, ("f0", "f1"), ("f2",)), vacuum("old")))

    assert outcome.status is TableStatus.VERIFY_FAILED
    assert statuses(outcome) == ["compact: verify_failed", "vacuum: skipped"]
    assert [commit.version for commit in outcome.steps[0].commits] == [2]
    assert outcome.steps[0].error is not None
    assert outcome.steps[0].error.code == "V503"
    assert "old" in table.storage
    assert bench.record(plan_of(table)).unproven_versions == (2,)


def test_a_live_file_that_is_gone_after_a_deletion_is_never_called_still_there(bench: Bench) -> None:
    table = three_files(bench)
    table.storage.add("old")
    bench.lake.at("vacuum", lambda at: at.table.storage.discard("f1"), times=1)
    outcome = bench.run(plan_of(table, vacuum("old")))
    assert statuses(outcome) == ["vacuum: verify_failed"]
    error = outcome.steps[0].error
    assert error is not None
    assert (error.code, "still there" in str(error.help)) == ("V505", False)
    assert "this deletion removed 1 file for good" in str(error.help)
    assert bench.record(plan_of(table)).quarantined is not None


def test_a_check_that_could_not_be_made_is_not_a_failed_one_and_holds_deletion_back(bench: Bench) -> None:
    table = three_files(bench)
    bench.verifier.order = [Verdict.ERROR]
    outcome = bench.run(plan_of(table, compact(table), vacuum("f0")))
    assert outcome.status is TableStatus.FAILED
    assert statuses(outcome) == ["compact: failed", "vacuum: skipped"]
    assert outcome.steps[0].error is not None
    assert outcome.steps[0].error.code == "V504"
    assert bench.switch.halt_reason is None
    assert bench.record(plan_of(table)).unproven_versions == (2,)

    # A later run checks again before it does anything, and then may delete what the commit replaced.
    later = bench.run(plan_of(table, vacuum("f0", "f1", "f2", removed_in_version=2)))
    assert later.status is TableStatus.DONE
    assert bench.verifier.asked[-2:] == [("pair", "t", 2), ("vacuum", "t", None)]
    assert bench.record(plan_of(table)).unproven_versions == ()
    assert table.storage == {"packed-1"}


def test_files_of_an_unproven_rewrite_are_never_deleted(bench: Bench) -> None:
    table = three_files(bench)
    bench.verifier.order = [Verdict.ERROR, Verdict.ERROR]
    bench.run(plan_of(table, compact(table)))
    for removed_in in (2, None):
        bench.verifier.order = [Verdict.ERROR]
        outcome = bench.run(plan_of(table, vacuum("f0", removed_in_version=removed_in)))
        assert statuses(outcome) == ["vacuum: failed"]
        assert outcome.steps[0].error is not None
        assert outcome.steps[0].error.code == "A410"
    assert {"f0", "f1", "f2"} <= table.storage
    table.storage.add("long-gone")
    bench.verifier.order = [Verdict.ERROR]
    assert bench.run(plan_of(table, vacuum("long-gone", removed_in_version=1))).status is TableStatus.DONE


def test_a_file_that_was_live_between_plan_and_deletion_is_not_deleted(bench: Bench) -> None:
    """Restored and removed again: the plan's word on when it was removed does not hold any more."""
    table = three_files(bench)
    table.storage.add("old")
    plan = plan_of(table, vacuum("old"))
    table.commit(set(), {"old": (9,)})
    table.delete_file("old")
    outcome = bench.run(plan)
    assert statuses(outcome) == ["vacuum: yielded"]
    assert "old" in table.storage


def test_a_conflict_is_tried_again_with_what_is_still_live(bench: Bench) -> None:
    table = three_files(bench)
    bench.lake.at("commit", lambda at: at.table.append(9), times=1)
    bench.lake.at("commit", lambda at: _conflict(), times=1)
    outcome = bench.run(plan_of(table, compact(table)))
    assert outcome.status is TableStatus.DONE
    assert table.rows == [1, 2, 3, 4, 5, 9]
    assert [e["fate"] for e in bench.recorded("result")] == ["not_landed", "landed"]


def _conflict() -> None:
    from maintainer.errors import CommitConflict

    raise CommitConflict("another writer won")


def test_a_batch_whose_file_another_writer_took_is_left_to_the_writer(bench: Bench) -> None:
    table = three_files(bench)
    bench.lake.at("commit", lambda at: at.table.delete_file("f0"), times=1)
    outcome = bench.run(plan_of(table, compact(table, ("f0", "f1"), ("f2",))))
    # The retry finds nothing of the first batch live, and says whose doing that is; the second is done.
    assert statuses(outcome) == ["compact: yielded"]
    assert outcome.steps[0].note == "1 of 2 batches committed, 1 yielded"
    error = outcome.steps[0].error
    assert error is not None
    assert (error.code, error.what) == (
        "C701", "another writer won: the files were replaced before they could be read (version 2, DELETE)",
    )  # fmt: skip
    assert table.rows == [3, 4, 5]


def test_a_hot_table_yields_after_its_bounds_and_keeps_what_landed(bench: Bench) -> None:
    table = bench.lake.table("t", (1,), (2,), (3,), (4,), (5,), (6,))
    bench.retry = RetryBounds(attempts=3, max_yields=2, first_pause_seconds=0.0)
    seen: list[int] = []

    def conflict_after_the_first(at: Station) -> None:
        assert at.stamp is not None
        seen.append(at.stamp.batch)
        if at.stamp.batch > 0:
            _conflict()

    bench.lake.at("commit", conflict_after_the_first)
    batches = tuple((f"f{i}",) for i in range(6))
    outcome = bench.run(plan_of(table, compact(table, *batches), vacuum("old")))
    assert outcome.status is TableStatus.YIELDED
    assert statuses(outcome) == ["compact: yielded", "vacuum: skipped"]
    assert seen == [0, 1, 1, 1, 2, 2, 2]
    assert outcome.steps[0].note == "1 of 6 batches committed, 2 yielded"
    assert [commit.version for commit in outcome.steps[0].commits] == [2]
    assert table.rows == [1, 2, 3, 4, 5, 6]
    assert bench.record(plan_of(table)).last_optimize_at_ms is None


def test_a_commit_that_did_not_land_fails_the_step_and_keeps_earlier_batches(bench: Bench) -> None:
    table = three_files(bench)

    def full(at: Station) -> None:
        if at.stamp and at.stamp.batch == 1:
            raise CommitNotLanded("no space left on device")

    bench.lake.at("commit", full)
    outcome = bench.run(plan_of(table, compact(table, ("f0", "f1"), ("f2",)), vacuum("old")))
    assert outcome.status is TableStatus.FAILED
    assert statuses(outcome) == ["compact: failed", "vacuum: skipped"]
    assert len(outcome.steps[0].commits) == 1
    assert outcome.steps[0].version_after == 2


def test_an_unknown_fate_stops_the_table_and_the_next_run_settles_it_as_landed(bench: Bench) -> None:
    table = three_files(bench)

    def lost(at: Station) -> None:
        raise CommitUnknown("the answer was lost")

    bench.lake.at("landed", lost, times=1)
    outcome = bench.run(plan_of(table, compact(table), vacuum("f0")))
    assert outcome.status is TableStatus.FAILED
    assert statuses(outcome) == ["compact: unknown", "vacuum: skipped"]
    assert "f0" in table.storage
    assert [intent.read_version for intent in unfinished(bench.runs_dir)] == [1]
    assert bench.record(plan_of(table)).unproven_versions == (2,)

    settled = bench.run(plan_of(table))
    assert settled.status is TableStatus.UP_TO_DATE
    assert bench.verifier.asked[-1] == ("pair", "t", 2)
    assert [(e["fate"], e["version"]) for e in bench.recorded("settled_earlier")] == [("landed", 2)]
    assert unfinished(bench.runs_dir) == ()
    assert bench.record(plan_of(table)).unproven_versions == ()


@pytest.mark.parametrize(("station", "fates"), [("commit", [("not_landed", None)]), ("landed", [("landed", 2)])])
def test_a_proof_that_fails_says_of_its_commit_what_the_log_says(
    bench: Bench, station: str, fates: list[tuple[str, int | None]]
) -> None:
    table = three_files(bench)

    def wrong(at: Station) -> None:
        raise VerificationFailed("the new table has our commit", code="V503")

    bench.lake.at(station, wrong, times=1)
    outcome = bench.run(plan_of(table, compact(table), vacuum("f0")))
    assert outcome.status is TableStatus.VERIFY_FAILED
    assert [(event["fate"], event.get("version")) for event in bench.recorded("result")] == fates
    assert len(outcome.steps[0].commits) == (1 if station == "landed" else 0)


@pytest.mark.parametrize("copied", ["before", "after"])
def test_an_open_commit_of_the_original_is_looked_for_in_a_copy_and_stays_open(bench: Bench, copied: str) -> None:
    table = three_files(bench)
    copy = FakeTable("copy", table.table_id, list(table.versions), set(table.storage))
    bench.lake.tables["copy"] = copy

    def lost(at: Station) -> None:
        raise CommitUnknown("the answer was lost")

    bench.lake.at("landed", lost, times=1)
    bench.run(plan_of(table, compact(table)))
    if copied == "after":
        copy.versions, copy.storage = list(table.versions), set(table.storage)
    assert bench.record(plan_of(copy)).unproven_versions == (2,)
    assert bench.run(plan_of(copy)).status is TableStatus.UP_TO_DATE
    checked = [("pair", "copy", 2)] if copied == "after" else []
    assert [asked for asked in bench.verifier.asked if asked[1] == "copy"] == checked
    (note,) = [event["text"] for event in bench.recorded("note") if "same table id" in event["text"]]
    assert ("landed as version 2" in note) is (copied == "after")
    assert bench.record(plan_of(copy)).unproven_versions == (() if copied == "after" else (2,))
    # The table that it happened to answers for itself, and the run's record tells of no other.
    first = read_events(bench.runs_dir / "20261121T220001Z-0000" / EVENTS_FILE).events
    assert {event.get("location") for event in first} == {None, table.location}
    assert [intent.table for intent in unfinished(bench.runs_dir)] == ["t"]
    bench.run(plan_of(table))
    assert [(e["fate"], e["version"]) for e in bench.recorded("settled_earlier")] == [("landed", 2)]
    assert bench.record(plan_of(table)).unproven_versions == bench.record(plan_of(copy)).unproven_versions == ()


def test_what_a_rewrite_that_did_not_land_may_have_left_is_told_when_it_is_settled(bench: Bench) -> None:
    table = three_files(bench)

    def lost(at: Station) -> None:
        raise CommitUnknown("the answer was lost")

    bench.lake.at("commit", lost, times=1)
    bench.run(plan_of(table, compact(table)))
    bench.run(plan_of(table))
    first = read_events(bench.runs_dir / "20261121T220001Z-0000" / EVENTS_FILE).events
    (settled,) = [event for event in first if event["type"] == "settled"]
    assert (settled["fate"], settled["version"]) == ("not_landed", None)
    assert "begin with part-20261121T220001Z-0000-" in settled["detail"]
    assert "vacuum.deleteUntracked" in settled["detail"]


@pytest.mark.parametrize("station", ["commit", "landed"])
def test_an_open_commit_is_settled_where_its_table_was_moved_to(bench: Bench, station: str) -> None:
    table = three_files(bench)

    def lost(at: Station) -> None:
        raise CommitUnknown("the answer was lost")

    bench.lake.at(station, lost, times=1)
    bench.run(plan_of(table, compact(table)))
    moved = bench.lake.tables["moved"] = FakeTable("moved", table.table_id, list(table.versions), set(table.storage))
    bench.places = PlacesLeft((table.location,))
    assert bench.run(plan_of(moved)).status is TableStatus.UP_TO_DATE
    ended = ("landed", 2) if station == "landed" else ("not_landed", None)
    assert [(e["fate"], e["version"]) for e in bench.recorded("settled_earlier")] == [ended]
    assert unfinished(bench.runs_dir) == ()
    first = read_events(bench.runs_dir / "20261121T220001Z-0000" / EVENTS_FILE).events
    (settled,) = [event for event in first if event["type"] == "settled"]
    assert (settled["fate"], settled["version"]) == ended
    assert f"now at {moved.location}" in settled["detail"]
    checked = [(event["location"], event["version"]) for event in first if event["type"] == "verified"]
    assert checked == ([(moved.location, 2)] if station == "landed" else [])
    assert bench.record(plan_of(moved)).unproven_versions == ()


def test_an_open_commit_is_not_settled_in_an_older_copy_whose_original_is_gone(bench: Bench) -> None:
    table = three_files(bench)
    older = bench.lake.tables["older"] = FakeTable("older", table.table_id, list(table.versions), set(table.storage))
    table.append(6)

    def lost(at: Station) -> None:
        raise CommitUnknown("the answer was lost")

    bench.lake.at("commit", lost, times=1)
    bench.run(plan_of(table, compact(table)))
    bench.places = PlacesLeft((table.location,))
    bench.run(plan_of(older))
    assert bench.recorded("settled_earlier") == []
    assert [intent.table for intent in unfinished(bench.runs_dir)] == ["t"]


def test_of_two_places_left_with_the_id_neither_settles_what_it_does_not_hold(bench: Bench) -> None:
    table = three_files(bench)
    for name in ("b", "c"):
        bench.lake.tables[name] = FakeTable(name, table.table_id, list(table.versions), set(table.storage))
    bench.run(plan_of(bench.lake.tables["b"], compact(bench.lake.tables["b"])))

    def lost(at: Station) -> None:
        raise CommitUnknown("the answer was lost")

    bench.lake.at("commit", lost, times=1)
    bench.run(plan_of(table, compact(table)))
    bench.places = PlacesLeft((table.location,))
    bench.run(plan_of(bench.lake.tables["c"]))
    assert bench.recorded("settled_earlier") == []


@pytest.mark.parametrize("code", [ReasonCode.OUTSIDE_WINDOW, ReasonCode.SUSPENDED, ReasonCode.OVER_BUDGET])
def test_a_table_that_waits_and_has_something_to_settle_still_waits(bench: Bench, code: ReasonCode) -> None:
    table = three_files(bench)

    def lost(at: Station) -> None:
        raise CommitUnknown("the answer was lost")

    bench.lake.at("landed", lost, times=1)
    bench.run(plan_of(table, compact(table)))
    held_back = LeftAlone(Reason(code, "not now"))
    assert bench.run(plan_of(table, left_alone=(held_back,))).status is TableStatus.WAITING
    assert [(e["fate"], e["version"]) for e in bench.recorded("settled_earlier")] == [("landed", 2)]


def test_settling_keeps_everything_else_that_is_remembered(bench: Bench) -> None:
    table = three_files(bench)
    facts = table.facts()
    remembered = TableRecord(1, 2, (3,), "wrong", 4, (5, 6), 7, 8)
    bench.journal = Journal.open(bench.runs_dir, "20261121T220009Z-0000", lambda: NOW_MS)
    context = RunContext(
        bench.journal, bench.verifier, Clock(lambda: NOW_MS), Emitter(None), bench.switch, StoragePlaces(), NO_WAITING
    )
    with bench.lake.worker("w") as engine:
        worker = Worker(plan_of(table), engine, context, TableControl(bench.switch))
        record, work = settle(worker, (), remembered, facts)
    bench.journal.close()
    assert work.notes == ["version 3 is not known to be ours; it still counts as not proven"]
    assert record == remembered


def test_an_unknown_fate_is_settled_as_not_landed_when_the_log_does_not_hold_it(bench: Bench) -> None:
    table = three_files(bench)

    def lost(at: Station) -> None:
        raise CommitUnknown("the answer was lost")

    bench.lake.at("commit", lost, times=1)
    bench.run(plan_of(table, compact(table)))
    table.append(6)
    outcome = bench.run(plan_of(table, compact(table, ("f0", "f1", "f2"))))
    assert outcome.status is TableStatus.DONE
    assert [e["fate"] for e in bench.recorded("settled_earlier")] == ["not_landed"]
    assert bench.record(plan_of(table)).unproven_versions == ()


def test_a_commit_of_somebody_else_is_never_taken_for_ours(bench: Bench) -> None:
    """A run that is still alive has an open intent; the version after the one it read may be an append."""
    table = three_files(bench)
    plan = plan_of(table)
    alive = Journal.open(bench.runs_dir, "20261121T210000Z-0000", lambda: NOW_MS)
    stamp = CommitStamp(alive.run_id, "t/compact", 0, "sha256:policy")
    alive.intent(stamp, table.facts(), "compact", read_version=1, num_files=2, size_bytes=8, proof=None)
    table.append(6)
    try:
        record = bench.record(plan)
        assert record.unproven_versions == (2,)
        table.storage.add("old")
        outcome = bench.run(plan_of(table, compact(table), vacuum("old", removed_in_version=None)), record=record)
    finally:
        alive.close()
    assert statuses(outcome) == ["compact: succeeded", "vacuum: failed"]
    assert ("pair", "t", 2) not in bench.verifier.asked
    assert bench.switch.halt_reason is None
    assert bench.record(plan).quarantined is None
    assert outcome.steps[1].error is not None
    assert outcome.steps[1].error.code == "A410"


def test_a_settled_commit_that_turns_out_wrong_quarantines_the_table(bench: Bench) -> None:
    table = three_files(bench)

    def lost(at: Station) -> None:
        at.table.live["packed-1"] = (1, 2)  # what landed lacks rows
        raise CommitUnknown("the answer was lost")

    bench.lake.at("landed", lost, times=1)
    bench.run(plan_of(table, compact(table)))
    outcome = bench.run(plan_of(table, compact(table)))
    assert outcome.status is TableStatus.VERIFY_FAILED
    assert statuses(outcome) == ["compact: skipped"]
    assert outcome.problem is not None
    assert outcome.problem.code == "V503"
    assert bench.record(plan_of(table)).quarantined is not None


def test_an_engine_that_is_gone_is_no_bug_of_ours(bench: Bench) -> None:
    table = three_files(bench)

    class Py4JNetworkError(Exception):
        """Named as py4j's, which is not imported here."""

    def gone(at: Station) -> None:
        raise Py4JNetworkError("Error while sending or receiving")

    bench.lake.at("write", gone)
    outcome = bench.run(plan_of(table, compact(table)))
    assert outcome.status is TableStatus.FAILED
    assert outcome.steps[0].error is not None
    assert (outcome.steps[0].error.code, outcome.steps[0].error.what) == ("E612", "the Spark JVM has gone")
    assert not list(bench.journal.folder.path.glob("traceback*"))


@pytest.mark.parametrize("ended_by", ["the engine", "the table's limit", "a signal"])
def test_an_attempt_whose_end_nobody_can_look_up_is_unknown_whatever_ended_it(bench: Bench, ended_by: str) -> None:
    """The INTENT stands, and the log cannot be asked: neither failed nor interrupted would be true."""
    table = three_files(bench)
    control = TableControl(bench.switch)

    class Py4JNetworkError(Exception):
        """Named as py4j's, which is not imported here."""

    def gone(at: Station) -> None:
        bench.lake.tables.clear()  # nor can its log be read
        if ended_by == "the table's limit":
            control.cancel("the table's limit of 60 s", timed_out=True)
        elif ended_by == "a signal":
            control.cancel("SIGTERM")
        raise Py4JNetworkError("Error while sending or receiving")

    bench.lake.at("commit", gone)
    outcome = bench.run(plan_of(table, compact(table), vacuum("old")), control=control)
    assert statuses(outcome) == ["compact: unknown", "vacuum: skipped"]
    assert outcome.status is TableStatus.FAILED
    assert bench.recorded("result")[0]["fate"] == "unknown"
    assert len(unfinished(bench.runs_dir)) == 1


def test_an_error_nobody_foresaw_is_a_bug_of_this_table_with_its_traceback_in_the_folder(bench: Bench) -> None:
    table = three_files(bench)

    def bug(at: Station) -> None:
        raise ZeroDivisionError("oh")

    bench.lake.at("write", bug)
    outcome = bench.run(plan_of(table, compact(table)))
    assert outcome.status is TableStatus.FAILED
    assert outcome.steps[0].error is not None
    assert outcome.steps[0].error.code == "E699"
    assert "ZeroDivisionError: oh" in (bench.journal.folder.path / "traceback.txt").read_text()


def test_an_error_after_the_commit_landed_is_settled_at_once_by_the_log(bench: Bench) -> None:
    table = three_files(bench)

    def bug(at: Station) -> None:
        raise RuntimeError("a hook after the commit broke")

    bench.lake.at("landed", bug, times=1)
    outcome = bench.run(plan_of(table, compact(table), vacuum("f0")))
    assert statuses(outcome) == ["compact: failed", "vacuum: skipped"]
    assert [commit.version for commit in outcome.steps[0].commits] == [2]
    assert bench.recorded("result")[0]["fate"] == "landed"
    assert unfinished(bench.runs_dir) == ()
    assert bench.record(plan_of(table)).unproven_versions == (2,)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda table: setattr(table, "exists", False), "T401"),
        (lambda table: setattr(table, "table_id", "another"), "A403"),
        (lambda table: setattr(table, "columns", {"id": "long", "new": "string"}), "A403"),
    ],
)
def test_a_table_that_is_not_the_planned_one_is_not_touched(bench: Bench, change: Any, code: str) -> None:
    table = three_files(bench)
    plan = plan_of(table, compact(table))
    change(table)
    outcome = bench.run(plan)
    assert outcome.status is TableStatus.FAILED
    assert outcome.steps[0].error is not None
    assert outcome.steps[0].error.code == code
    assert table.version == 1


def test_a_plan_that_was_done_already_has_nothing_left(bench: Bench) -> None:
    table = three_files(bench)
    plan = plan_of(table, properties(**{"delta.x": "1"}), compact(table))
    bench.run(plan)
    version = table.version
    outcome = bench.run(plan)
    assert outcome.status is TableStatus.UP_TO_DATE
    assert statuses(outcome) == ["set_properties: nothing_left", "compact: nothing_left"]
    assert table.version == version


def test_a_stop_lets_a_proven_commit_through_and_ends_before_the_next(bench: Bench) -> None:
    table = three_files(bench)
    bench.lake.at("write", lambda at: bench.switch.stop("SIGINT"), times=1)
    outcome = bench.run(plan_of(table, compact(table, ("f0", "f1"), ("f2",)), vacuum("old")))
    assert outcome.status is TableStatus.INTERRUPTED
    assert statuses(outcome) == ["compact: interrupted", "vacuum: skipped"]
    assert len(outcome.steps[0].commits) == 1
    assert bench.recorded("verified")[0]["result"] == "pass"


def test_a_cancelled_table_does_not_commit_any_more(bench: Bench) -> None:
    table = three_files(bench)
    control = TableControl(bench.switch)
    bench.lake.at("write", lambda at: control.cancel("the table's limit of 60 s", timed_out=True))
    outcome = bench.run(plan_of(table, compact(table)), control=control)
    assert outcome.status is TableStatus.FAILED
    assert outcome.steps[0].error is not None
    assert outcome.steps[0].error.code == "C711"
    assert table.version == 1
    assert bench.recorded("intent") == []


def test_nothing_is_committed_without_a_durable_intent(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    table = three_files(bench)
    import os

    real = os.fsync

    def full(handle: int) -> None:
        if bench.lake.workers:
            raise OSError(28, "No space left on device")
        real(handle)

    monkeypatch.setattr("os.fsync", full)
    outcome = bench.run(plan_of(table, compact(table)))
    assert outcome.status is TableStatus.FAILED
    assert outcome.steps[0].error is not None
    assert outcome.steps[0].error.code == "E651"
    assert table.version == 1
    assert bench.switch.halt_reason is not None


def test_a_deletion_does_not_start_when_trust_was_lost_elsewhere(bench: Bench) -> None:
    table = three_files(bench)
    table.storage.add("old")
    bench.lake.at("landed", lambda at: bench.switch.halt("a verification failed on u", hold_deletions=True))
    outcome = bench.run(plan_of(table, compact(table), vacuum("old")))
    assert statuses(outcome) == ["compact: succeeded", "vacuum: interrupted"]
    assert outcome.status is TableStatus.INTERRUPTED
    assert "old" in table.storage


def test_a_vacuum_that_took_a_live_file_is_the_loudest_failure(bench: Bench) -> None:
    table = three_files(bench)
    table.storage.add("old")
    bench.lake.at("vacuum", lambda at: at.table.storage.discard("f2"))
    outcome = bench.run(plan_of(table, vacuum("old")))
    assert outcome.status is TableStatus.VERIFY_FAILED
    assert bench.record(plan_of(table)).quarantined is not None


def test_engine_interruptions_count_as_such(bench: Bench) -> None:
    table = three_files(bench)

    def cancelled(at: Station) -> None:
        raise Interrupted("job group cancelled")

    bench.lake.at("write", cancelled)
    outcome = bench.run(plan_of(table, compact(table)))
    assert outcome.steps[0].status is StepStatus.INTERRUPTED


def test_a_table_that_was_damaged_before_is_not_vacuumed_and_not_blamed_on_us(bench: Bench) -> None:
    table = three_files(bench)
    table.storage.add("old")
    table.storage.discard("f0")
    outcome = bench.run(plan_of(table, vacuum("old")))
    assert statuses(outcome) == ["vacuum: failed"]
    error = outcome.steps[0].error
    assert error is not None
    assert (error.code, error.where) == ("T422", "t@1")
    assert "f0" in error.what
    assert "old" in table.storage
    assert bench.record(plan_of(table)).quarantined is None
    assert bench.switch.deletions_held is None


def test_a_deletion_that_is_stopped_says_how_far_it_came(bench: Bench) -> None:
    table = three_files(bench)
    table.storage |= {"old-1", "old-2", "old-3"}
    bench.lake.at("deleted", lambda station: bench.switch.stop("SIGINT"), times=1)
    outcome = bench.run(plan_of(table, vacuum("old-1", "old-2", "old-3")))

    assert (outcome.status, statuses(outcome)) == (TableStatus.INTERRUPTED, ["vacuum: interrupted"])
    (step,) = outcome.steps
    assert step.vacuum is not None
    assert (step.vacuum.num_files_deleted, step.vacuum.stopped) == (1, "SIGINT")
    assert step.error is not None
    assert step.error.what == "stopped in the middle of a deletion, 1 of 3 files deleted: SIGINT"
    assert {"old-2", "old-3"} < table.storage
    assert [(e["fate"], e["num_files_deleted"], e["stopped"]) for e in bench.recorded("result")] == [
        ("no_commit", 1, "SIGINT")
    ]
    record = bench.record(plan_of(table))
    assert (record.last_vacuum_at_ms, record.vacuumed_bytes) == (None, (8,))


def test_deletions_that_are_held_stop_one_that_is_under_way(bench: Bench) -> None:
    table = three_files(bench)
    table.storage |= {"old-1", "old-2"}
    bench.lake.at("deleted", lambda station: bench.switch.halt("a proof failed", hold_deletions=True), times=1)
    outcome = bench.run(plan_of(table, vacuum("old-1", "old-2")))
    assert statuses(outcome) == ["vacuum: interrupted"]
    assert "old-2" in table.storage
