"""Deletions of one table's plan: what is not deleted, what stays, what stops them, and a live file that is gone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from maintainer.errors import CommitConflict
from maintainer.journal.memory.past_runs import read_record
from maintainer.model.plan.plan import Problem
from maintainer.model.plan.plan_document import to_json
from maintainer.model.run.outcome import StepStatus, TableStatus
from maintainer.model.run.receipts import VacuumReceipt
from maintainer.report.run.outcome_text import WorkDone
from tests.support.runs.fake_lake import Station
from tests.support.runs.planned_steps import compact, plan_all, plan_of, vacuum
from tests.unit.execution.table.table_bench import Bench, statuses, three_files


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


def test_a_deletion_does_not_start_when_trust_was_lost_elsewhere(bench: Bench) -> None:
    table = three_files(bench)
    table.storage.add("old")
    bench.lake.at("landed", lambda at: bench.switch.verification_failed("u"))
    outcome = bench.run(plan_of(table, compact(table), vacuum("old")))
    assert statuses(outcome) == ["compact: succeeded", "vacuum: skipped"]
    assert outcome.status is TableStatus.WAITING
    assert "old" in table.storage


def test_a_deletion_does_not_start_when_the_run_folder_was_lost(bench: Bench) -> None:
    table = three_files(bench)
    table.storage.add("old")
    bench.lake.at("landed", lambda at: bench.switch.halt("E651: it cannot be written", hold_deletions=True))
    outcome = bench.run(plan_of(table, compact(table), vacuum("old")))
    assert (outcome.status, statuses(outcome)) == (
        TableStatus.INTERRUPTED, ["compact: succeeded", "vacuum: interrupted"]
    )  # fmt: skip
    assert "old" in table.storage


def test_a_vacuum_that_took_a_live_file_is_the_loudest_failure(bench: Bench) -> None:
    table = three_files(bench)
    table.storage.add("old")
    bench.lake.at("vacuum", lambda at: at.table.storage.discard("f2"))
    outcome = bench.run(plan_of(table, vacuum("old")))
    assert outcome.status is TableStatus.VERIFY_FAILED
    assert bench.record(plan_of(table)).quarantined is not None


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
    bench.lake.at("deleted", lambda station: bench.switch.verification_failed("u"), times=1)
    outcome = bench.run(plan_of(table, vacuum("old-1", "old-2")))
    assert statuses(outcome) == ["vacuum: interrupted"]
    assert "old-2" in table.storage


def test_nothing_is_deleted_once_deletions_are_held(bench: Bench) -> None:
    table = three_files(bench)
    bench.switch.halt("E651: it cannot be written", hold_deletions=True)
    (step,) = bench.run(plan_of(table, vacuum("old"))).steps
    assert step.error is not None
    assert (step.error.code, step.status) == ("C715", StepStatus.INTERRUPTED)


def test_a_vacuum_waits_for_the_next_run_after_a_failed_proof_of_another_table(bench: Bench) -> None:
    table = three_files(bench)
    bench.switch.verification_failed("another")
    (step,) = bench.run(plan_of(table, vacuum("old"))).steps
    assert step.status is StepStatus.SKIPPED


def test_a_deletion_that_ends_by_an_error_counts_no_file_that_somebody_else_deleted(bench: Bench) -> None:
    """The engine looked right before and right after; what is not there now may have been taken by anybody."""
    table = three_files(bench)
    table.storage |= {"old-1", "old-2", "old-3"}
    error = CommitConflict("the table was restored")
    error.receipt = done = VacuumReceipt(1, 8, version_before=1, num_vanished=1)

    def breaks(at: Station) -> None:
        at.table.storage.discard("old-2")
        raise error

    bench.lake.at("deleted", breaks, times=1)
    (step,) = bench.run(plan_of(table, vacuum("old-1", "old-2", "old-3"))).steps
    assert table.storage.isdisjoint({"old-1", "old-2"})
    assert (step.vacuum, step.error and step.error.code) == (done, error.code)
    assert [event["num_files_deleted"] for event in bench.recorded("result")] == [1]


@pytest.mark.parametrize("is_killed", [False, True])
def test_what_a_broken_off_deletion_moved_to_the_trash_is_not_said_to_be_deleted(bench: Bench, is_killed: bool) -> None:
    """It still takes room, and can come back: room is freed once, when the trash is emptied."""
    table = three_files(bench)
    table.storage |= {"old-1", "old-2"}
    step = replace(vacuum("old-1", "old-2"), trash_seconds=86_400)
    plan = plan_of(table, step)

    def breaks(at: Station) -> None:
        raise KeyboardInterrupt if is_killed else OSError("a disk failed")

    bench.lake.at("deleted", breaks, times=1)
    if is_killed:
        with pytest.raises(KeyboardInterrupt):
            bench.run(plan)
        folder = bench.journal.folder
        folder.write_plan(to_json(plan_all(plan)))
        assert bench.run(plan_of(table)).status is TableStatus.UP_TO_DATE
        (note,) = bench.recorded("note")
        assert "1 of 2 files (8 B) are gone" in note["what"], "nobody knows who took it, nor where to"
        run = read_record(folder.path, with_plan=False).fold
        (ended,) = run.outcome(plan, (Problem("C712", "died"),) * 2).steps
    else:
        (ended,) = bench.run(plan).steps
    work = WorkDone((ended,))
    assert (work.files_moved, work.bytes_moved, work.files_deleted, work.bytes_deleted) == (1, 8, 0, 0)
    if is_killed:
        assert ended.error is not None
        assert "1 of 2 files were moved to the trash" in ended.error.what
