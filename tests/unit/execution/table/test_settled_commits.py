"""Commits whose fate is unknown: the next run settles each by the log, also in copies and moved tables."""

from __future__ import annotations

from dataclasses import replace

import pytest

from maintainer.delta.log.table_place import StoragePlaces
from maintainer.errors import CommitUnknown
from maintainer.execution.cancellation import TableControl
from maintainer.execution.run_context import Clock, Emitter, RunContext
from maintainer.execution.table.recovery import MAX_VERSIONS_CHECKED, settle, versions_in_turn
from maintainer.execution.table.table_worker import TableWorker
from maintainer.journal.event_log import EVENTS_FILE, read_events
from maintainer.journal.journal import Journal
from maintainer.journal.memory.past_runs import read_record
from maintainer.journal.memory.table_records import update_state
from maintainer.model.plan.plan import LeftAlone, Problem
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.run.outcome import StepStatus, TableOutcome, TableStatus
from maintainer.model.run.receipts import Verdict
from maintainer.model.table.commit_records import CommitStamp
from maintainer.model.table.table_facts import TableRecord
from maintainer.report.run.run_findings import run_findings
from tests.support.checker.truth_records import flat
from tests.support.runs import sample_runs
from tests.support.runs.fake_lake import Station
from tests.support.runs.fake_table import FakeTable
from tests.support.runs.planned_steps import compact, plan_of, vacuum
from tests.support.tables.builders import NOW_MS
from tests.support.writers import recorded_events
from tests.support.writers.recorded_events import unfinished
from tests.unit.execution.table.table_bench import NO_WAITING, Bench, PlacesLeft, statuses, three_files


def test_an_unknown_fate_stops_the_table_and_the_next_run_settles_it_as_landed(bench: Bench) -> None:
    table = three_files(bench)

    def lost(at: Station) -> None:
        raise CommitUnknown("the answer was lost")

    bench.lake.at("landed", lost, times=1)
    outcome = bench.run(plan_of(table, compact(table), vacuum("f0")))
    first = bench.journal.folder.path
    assert outcome.status is TableStatus.FAILED
    assert statuses(outcome) == ["compact: unknown", "vacuum: skipped"]
    assert "f0" in table.storage
    assert [intent.read_version for intent in unfinished(bench.runs_dir)] == [1]
    assert bench.record(plan_of(table)).unproven_versions == (2,)

    settled = bench.run(plan_of(table))
    assert settled.status is TableStatus.UP_TO_DATE
    assert bench.verifier.asked[-1] == ("pair", "t", 2)
    assert [(e["fate"], e["version"]) for e in bench.recorded("settled_earlier")] == [("landed", 2)]
    # Both runs say the same of the one check: how long it took is not how long it took to write that down.
    earlier = tuple(read_events(first / EVENTS_FILE).events)
    (took,) = (event["duration_seconds"] for event in earlier if event["type"] == "verified")
    assert [event["duration_seconds"] for event in bench.recorded("verified")] == [took]
    assert unfinished(bench.runs_dir) == ()
    assert bench.record(plan_of(table)).unproven_versions == ()


def test_what_landed_and_cannot_be_checked_counts_as_unproven_in_the_same_run(bench: Bench) -> None:
    table = three_files(bench)

    def lost(at: Station) -> None:
        raise CommitUnknown("the answer was lost")

    bench.lake.at("landed", lost, times=1)
    bench.run(plan_of(table, compact(table)))
    bench.verifier.order = [Verdict.ERROR]
    outcome = bench.run(plan_of(table, vacuum("f0", removed_in_version=2)), record=TableRecord())
    (step,) = outcome.steps
    assert step.error is not None
    assert step.error.code == "A410"
    assert "f0" in table.storage


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
    (note,) = [event["what"] for event in bench.recorded("note") if "same table id" in event["what"]]
    assert ("landed as version 2" in note) is (copied == "after")
    assert bench.record(plan_of(copy)).unproven_versions == (() if copied == "after" else (2,))
    # The table that it happened to answers for itself, and the run's record tells of no other.
    first = tuple(read_events(bench.runs_dir / "20261121T220001Z-0000" / EVENTS_FILE).events)
    assert {event.get("location") for event in first} == {None, table.location}
    assert [intent.table for intent in unfinished(bench.runs_dir)] == ["t"]
    bench.run(plan_of(table))
    assert [(e["fate"], e["version"]) for e in bench.recorded("settled_earlier")] == [("landed", 2)]
    assert bench.record(plan_of(table)).unproven_versions == bench.record(plan_of(copy)).unproven_versions == ()


@pytest.mark.parametrize("is_killed", [False, True])
def test_what_a_rewrite_that_did_not_land_may_have_left_is_told_when_it_is_settled(
    bench: Bench, is_killed: bool
) -> None:
    table = three_files(bench)

    def lost(at: Station) -> None:
        raise CommitUnknown("the answer was lost")

    bench.lake.at("commit", lost, times=1)
    plan = plan_of(table, compact(table))
    bench.run(plan)
    path = bench.runs_dir / "20261121T220001Z-0000" / EVENTS_FILE
    if is_killed:
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(line for line in lines if "_finished" not in line))
    bench.run(plan_of(table))
    first = tuple(read_events(path).events)
    (settled,) = [flat(dict(event)) for event in first if event["type"] == "settled"]
    assert (settled["fate"], settled["version"]) == ("not_landed", None)
    assert "begin with part-20261121T220001Z-0000-" in settled["detail"]
    assert "vacuum.deleteUntracked" in settled["detail"]
    # Whoever looks at that run reads it, too.
    (step,) = read_record(path.parent, with_plan=False).fold.outcome(plan, (Problem("C712", "died"),) * 2).steps
    assert step.error is not None
    assert settled["detail"] in f"{step.error.what} {step.note}"
    ended = replace(sample_runs.good_run(), tables=(TableOutcome.of(plan, TableStatus.FAILED, (step,)),))
    assert settled["detail"] in " ".join(str(finding) for finding in run_findings(ended))


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
    first = tuple(read_events(bench.runs_dir / "20261121T220001Z-0000" / EVENTS_FILE).events)
    (settled,) = [flat(dict(event)) for event in first if event["type"] == "settled"]
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
        worker = TableWorker(plan_of(table), engine, context, TableControl(bench.switch))
        record, work = settle(worker, (), remembered, facts)
    bench.journal.close()
    assert work.notes == ["version 3 is not known to be ours; it still counts as not proven"]
    assert record == remembered


def test_versions_that_can_never_be_checked_keep_no_other_waiting(bench: Bench) -> None:
    """Thirty old versions whose files are gone: the newest one, which can be checked, has its turn, too."""
    table = three_files(bench)
    bench.run(plan_of(table, compact(table)))
    landed = len(table.versions) - 1
    gone = tuple(range(landed + 1, landed + 31))
    bench.verifier.asked.clear()
    for _ in range(8):
        outcome = bench.run(plan_of(table), record=TableRecord(unproven_versions=(landed, *gone)))
        assert outcome.status is TableStatus.UP_TO_DATE
        texts = [event["what"] for event in bench.recorded("note") if event["about"] == "settled"]
        assert len(texts) == MAX_VERSIONS_CHECKED + 1
        assert texts[-1] == "21 more versions of earlier runs not proven; a later run checks them"
    assert ("pair", "t", landed) in bench.verifier.asked


def test_each_version_has_its_turn_within_a_few_runs() -> None:
    runs = [f"2026{month:02}{day:02}T220003Z-7f3a" for month in range(1, 13) for day in range(1, 29)]
    seen: set[int] = set()
    turns = 0
    while seen != set(range(50)):
        turn = versions_in_turn(range(50), runs[turns])
        assert len(turn) == MAX_VERSIONS_CHECKED
        seen.update(turn)
        turns += 1
    assert turns < 50
    assert versions_in_turn({3, 1, 2}, runs[0]) == (1, 2, 3)


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


@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.parametrize("station", ["commit", "landed"])
def test_a_commit_that_the_log_may_have_lost_stays_unknown_and_unproven(
    bench: Bench, station: str, is_killed: bool
) -> None:
    table = three_files(bench)

    def lost(at: Station) -> None:
        raise CommitUnknown("the answer was lost")

    bench.lake.at(station, lost, times=1)
    plan = plan_of(table, compact(table))
    bench.run(plan)
    path = bench.runs_dir / "20261121T220001Z-0000" / EVENTS_FILE
    if is_killed:
        path.write_text("".join(line for line in path.read_text().splitlines(True) if "_finished" not in line))
    table.append(6)
    table.append(7)
    table.log_begins = 3
    outcome = bench.run(plan_of(table, vacuum("f0", removed_in_version=2)))
    assert "f0" in table.storage
    (step,) = outcome.steps
    assert step.error is not None
    assert step.error.code == "A410"
    assert [(e["fate"], e["version"]) for e in bench.recorded("settled_earlier")] == [("unknown", 2)]
    (note,) = [event["what"] for event in bench.recorded("note")]
    assert "the log no longer has version 2" in note
    # Said once, and kept whatever becomes of the run's folder.
    bench.run(plan_of(table))
    assert bench.recorded("settled_earlier") == []
    update_state(bench.runs_dir)
    assert bench.record(plan_of(table)).unproven_versions == (2,)
    (step,) = read_record(path.parent, with_plan=False).fold.outcome(plan, (Problem("C712", "died"),) * 2).steps
    assert step.status is StepStatus.UNKNOWN
    assert "the log no longer has version 2" in f"{step.error and step.error.what} {step.note}"
    # A person ends it.
    bench.journal = Journal.open(bench.runs_dir, "20261121T220009Z-0000", lambda: NOW_MS)
    bench.journal.accept(table.facts(), bench.record(plan_of(table)), reason="looked at", by="me")
    bench.journal.close()
    assert bench.record(plan_of(table)).unproven_versions == ()


def test_a_deletion_waits_for_a_version_of_ours_that_an_open_commit_was_only_guessed_to_be(bench: Bench) -> None:
    """Two runs read version 1: one landed as version 2 and is unproven, the other is open, here or at another place."""
    table = three_files(bench)
    copy = bench.lake.tables["copy"] = FakeTable("copy", table.table_id, list(table.versions), set(table.storage))

    def lost(at: Station) -> None:
        raise CommitUnknown("the answer was lost")

    bench.lake.at("commit", lost, times=2)
    bench.run(plan_of(copy, compact(copy)))
    bench.run(plan_of(table, compact(table)))
    bench.verifier.order = [Verdict.ERROR, Verdict.ERROR]
    bench.run(plan_of(table, compact(table)), record=TableRecord())
    assert table.version == 2
    outcome = bench.run(plan_of(table, vacuum("f0", removed_in_version=2)))
    (step,) = outcome.steps
    assert step.error is not None
    assert step.error.code == "A410"
    assert "f0" in table.storage


def test_a_commit_of_somebody_else_is_never_taken_for_ours(bench: Bench) -> None:
    """A run that is still alive has an open intent; the version after the one it read may be an append."""
    table = three_files(bench)
    plan = plan_of(table)
    alive = Journal.open(bench.runs_dir, "20261121T210000Z-0000", lambda: NOW_MS)
    stamp = CommitStamp(alive.run_id, "t/compact", 0, "sha256:policy")
    recorded_events.intent(alive, stamp, table.facts(), "compact", read_version=1)
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
    assert outcome.steps[1].error.what == "1 old file must stay: the rewrite of version 2 is not proven"


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
