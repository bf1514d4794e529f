"""A run that is killed while it writes leaves files; the next run has them removed, unless a commit was tried."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from maintainer.errors import CommitConflict, CommitNotLanded, EngineGone, MaintainerError
from maintainer.execution.fleet.fleet_bounds import FleetBounds
from maintainer.execution.run_context import Clock
from maintainer.execution.table.recovery import LATE_MS
from maintainer.journal.event_log import EVENTS_FILE, read_events
from maintainer.journal.journal import Journal
from maintainer.model.plan.plan import Plan
from maintainer.model.run.outcome import RunOutcome, TableStatus
from maintainer.model.run.receipts import CommitReceipt
from maintainer.model.run.run_events import MAX_PARTITIONS, CommitEnd, Writing
from maintainer.model.table.commit_records import CommitStamp
from tests.support.runs.fake_lake import FakeLake, Station
from tests.support.runs.fake_table import FakeTable
from tests.support.runs.plain_verifier import PlainVerifier
from tests.support.runs.planned_steps import compact, plan_all, plan_of, run_fleet
from tests.support.tables.builders import NOW_MS
from tests.support.writers.recorded_events import result, unfinished_writings
from tests.unit.execution.fleet.run_in_memory import QUICK

FIRST, SECOND, THIRD, FOURTH = (f"20261121T22000{number}Z-0000" for number in (1, 2, 3, 4))


def start(lake: FakeLake, runs: Path, run_id: str, plan: Plan, *, after_ms: int = 0) -> RunOutcome:
    journal = Journal.open(runs, run_id, lambda: NOW_MS + after_ms)
    clock = Clock(now_ms=lambda: NOW_MS + after_ms)
    return run_fleet(plan, lake, journal=journal, verifier=PlainVerifier(), bounds=FleetBounds(**QUICK), clock=clock)


def test_what_a_killed_engine_left_is_removed_once_by_the_next_run(tmp_path: Path) -> None:
    lake, runs = FakeLake(), tmp_path / "runs"
    table = lake.table("a", (1, 2), (3,))

    def dies(at: Station) -> None:
        raise EngineGone("the Spark JVM has gone")

    lake.at("write", dies, table="a", times=1)
    assert start(lake, runs, FIRST, plan_all(plan_of(table, compact(table)))).tables[0].status is TableStatus.FAILED
    (writing,) = unfinished_writings(runs)
    assert (writing.run_id, writing.table_id, writing.location) == (FIRST, table.table_id, table.location)

    done = start(lake, runs, SECOND, plan_all(plan_of(table, compact(table))))
    assert done.tables[0].status is TableStatus.DONE
    assert lake.cleaned == [("a", FIRST, "a/compact[0]", ((),))]
    assert unfinished_writings(runs) == ()
    assert [event["type"] for event in read_events(runs / FIRST / EVENTS_FILE).events].count("written_off") == 1

    start(lake, runs, THIRD, plan_all(plan_of(table)))
    assert len(lake.cleaned) == 1


def test_of_very_many_partitions_all_are_looked_into_though_the_record_has_the_first(tmp_path: Path) -> None:
    lake, runs = FakeLake(), tmp_path / "runs"
    table = lake.table("a", (1, 2), (3,))
    journal = Journal.open(runs, FIRST, lambda: NOW_MS)
    place, partitions = ("a", table.table_id, table.location), tuple((("day", str(day)),) for day in range(1_100))
    journal.record(Writing(NOW_MS, *place, FIRST, "a/compact", 0, partitions))
    journal.close()
    start(lake, runs, SECOND, plan_all(plan_of(table)))
    ((*_, looked_into),) = lake.cleaned
    assert set(looked_into) == {*partitions[:MAX_PARTITIONS], ()}, "the table's files are in no partition"


def test_nothing_is_removed_from_a_copy_while_the_original_may_be_in_its_place(tmp_path: Path) -> None:
    lake, runs = FakeLake(), tmp_path / "runs"
    table = lake.table("a", (1, 2), (3,))

    def dies(at: Station) -> None:
        raise EngineGone("the Spark JVM has gone")

    lake.at("write", dies, table="a", times=1)
    start(lake, runs, FIRST, plan_all(plan_of(table, compact(table))))
    copy = lake.tables["copy"] = FakeTable("copy", table.table_id, list(table.versions), set(table.storage))
    start(lake, runs, SECOND, plan_all(plan_of(copy, compact(copy))))
    assert lake.cleaned == []
    (writing,) = unfinished_writings(runs)
    assert writing.location == table.location


def test_what_an_attempt_may_write_is_looked_for_until_it_is_too_late_for_it(tmp_path: Path) -> None:
    """Also where the next run has nothing else to do with the table."""
    lake, runs = FakeLake(), tmp_path / "runs"
    table = lake.table("a", (1, 2), (3,))
    lake.late_paths = ("part-x-a0-c000", "part-x-a2-c000")
    assert start(lake, runs, FIRST, plan_all(plan_of(table, compact(table)))).tables[0].status is TableStatus.DONE
    (writing,) = unfinished_writings(runs)
    assert (writing.run_id, writing.paths) == (FIRST, lake.late_paths)

    for number, (run_id, after_ms) in enumerate([(SECOND, LATE_MS - 1), (THIRD, LATE_MS)], start=1):
        assert unfinished_writings(runs) == (writing,)
        start(lake, runs, run_id, plan_all(plan_of(table)), after_ms=after_ms)
        assert lake.looked_for == [("a", *lake.late_paths)] * number
        notes = [event["what"] for event in read_events(runs / run_id / EVENTS_FILE).events if event["type"] == "note"]
        assert notes == [f"what a late attempt of run {FIRST} wrote is gone: 2 files, such as part-x-a0-c000"]
    assert unfinished_writings(runs) == ()

    start(lake, runs, FOURTH, plan_all(plan_of(table)), after_ms=LATE_MS)
    assert len(lake.looked_for) == 2


@pytest.mark.parametrize("station", ["commit", "landed"])
def test_what_an_attempt_may_write_is_looked_for_after_a_kill_between_intent_and_result(
    tmp_path: Path, station: str
) -> None:
    """Whether or not the commit landed: its names are on the disk before it is tried."""
    lake, killed = FakeLake(), tmp_path / "killed"
    table = lake.table("a", (1, 2), (3,))
    lake.late_paths = ("part-x-a0-c000", "part-x-a2-c000")

    def dies(at: Station) -> None:
        shutil.copytree(tmp_path / "runs", killed)  # what a kill leaves
        if station == "commit":
            raise CommitNotLanded("it never landed", help="look")

    lake.at(station, dies, table="a", times=1)
    start(lake, tmp_path / "runs", FIRST, plan_all(plan_of(table, compact(table))))
    (writing,) = unfinished_writings(killed)
    assert (writing.run_id, writing.paths) == (FIRST, lake.late_paths)

    start(lake, killed, SECOND, plan_all(plan_of(table)), after_ms=LATE_MS)
    assert (lake.looked_for, lake.cleaned) == ([("a", *lake.late_paths)], [])
    assert unfinished_writings(killed) == ()
    notes = [event["what"] for event in read_events(killed / SECOND / EVENTS_FILE).events if event["type"] == "note"]
    assert notes[-1] == f"what a late attempt of run {FIRST} wrote is gone: 2 files, such as part-x-a0-c000"


def test_older_records_have_these_names_with_the_commit_itself(tmp_path: Path) -> None:
    journal, table = Journal.open(tmp_path, FIRST, lambda: NOW_MS), FakeLake().table("a", (1, 2))
    receipt = CommitReceipt(version=2, read_version=1, late_paths=("part-x-a0-c000",))
    stamp = CommitStamp(FIRST, "a/compact", 0, "digest")
    result(journal, stamp, table.facts(), "compact", CommitEnd.LANDED, receipt=receipt)
    journal.close()
    (writing,) = unfinished_writings(tmp_path)
    assert writing.paths == receipt.late_paths


@pytest.mark.parametrize("conflicts", [False, True])
@pytest.mark.parametrize("station", ["write", "commit"])
def test_what_an_attempt_may_write_after_its_batch_failed_is_looked_for_by_its_names(
    tmp_path: Path, station: str, conflicts: bool
) -> None:
    """Also where the commit was tried, and where a second try of the batch in the same run commits other files."""
    lake, runs, late = FakeLake(), tmp_path / "runs", ("part-x-a0-c000", "part-x-a1-c000")
    table = lake.table("a", (1, 2), (3,))

    def fails(at: Station) -> None:
        error: MaintainerError = (CommitConflict if conflicts else CommitNotLanded)("it failed", help="look")
        error.late_paths = late
        raise error

    lake.at(station, fails, table="a", times=1)
    status = start(lake, runs, FIRST, plan_all(plan_of(table, compact(table)))).tables[0].status
    assert status is (TableStatus.DONE if conflicts else TableStatus.FAILED)
    (writing,) = unfinished_writings(runs)
    assert (writing.run_id, writing.paths) == (FIRST, late)

    start(lake, runs, SECOND, plan_all(plan_of(table)), after_ms=LATE_MS)
    assert (lake.looked_for, lake.cleaned) == ([("a", *late)], [])
    assert unfinished_writings(runs) == ()


def test_how_late_an_attempt_may_be_counts_from_the_end_of_its_batch(tmp_path: Path) -> None:
    lake, runs = FakeLake(), tmp_path / "runs"
    table, now = lake.table("a", (1, 2), (3,)), [0]

    def fails(at: Station) -> None:
        now[0] = 3 * LATE_MS
        error = CommitNotLanded("stopped while new files were written", help="run it again")
        error.late_paths = ("part-x-a0-c000",)
        raise error

    lake.at("write", fails, table="a", times=1)
    journal = Journal.open(runs, FIRST, lambda: NOW_MS + now[0])
    plan, clock = plan_all(plan_of(table, compact(table))), Clock(now_ms=lambda: NOW_MS + now[0])
    run_fleet(plan, lake, journal=journal, verifier=PlainVerifier(), bounds=FleetBounds(**QUICK), clock=clock)
    start(lake, runs, SECOND, plan_all(plan_of(table)), after_ms=4 * LATE_MS - 1)
    assert len(unfinished_writings(runs)) == 1
    start(lake, runs, THIRD, plan_all(plan_of(table)), after_ms=2 * LATE_MS)  # that of the first was ahead
    assert unfinished_writings(runs) == ()


@pytest.mark.parametrize("left_over", [(), ("mem:/lake/a/part-x",)])
def test_a_failure_that_removed_its_files_leaves_nothing_to_the_next_run(
    tmp_path: Path, left_over: tuple[str, ...]
) -> None:
    lake, runs = FakeLake(), tmp_path / "runs"
    table = lake.table("a", (1, 2), (3,))

    def fails(at: Station) -> None:
        error: MaintainerError = CommitNotLanded("writing failed", help="look")
        error.left_over = left_over
        raise error

    lake.at("write", fails, table="a", times=1)
    start(lake, runs, FIRST, plan_all(plan_of(table, compact(table))))
    assert len(unfinished_writings(runs)) == len(left_over)


def test_files_of_a_commit_that_was_tried_are_left_alone(tmp_path: Path) -> None:
    lake, runs = FakeLake(), tmp_path / "runs"
    table = lake.table("a", (1, 2), (3,))

    def dies(at: Station) -> None:
        raise EngineGone("the Spark JVM has gone")

    lake.at("commit", dies, table="a", times=1)
    start(lake, runs, FIRST, plan_all(plan_of(table, compact(table))))
    assert unfinished_writings(runs) == ()
