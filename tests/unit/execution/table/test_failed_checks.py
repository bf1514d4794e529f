"""Proofs and checks that fail or cannot be made: the table stops, and no file of an unproven rewrite is deleted."""

from __future__ import annotations

import pytest

from maintainer.errors import VerificationFailed
from maintainer.model.run.outcome import TableStatus
from maintainer.model.run.receipts import Verdict
from tests.support.runs.fake_lake import Station
from tests.support.runs.planned_steps import compact, plan_of, vacuum
from tests.unit.execution.table.table_bench import Bench, statuses, three_files


def test_a_wrong_proof_commits_nothing_quarantines_the_table_and_holds_deletions(bench: Bench) -> None:
    table = three_files(bench)
    table.storage.add("old")
    bench.lake.at("write", lambda at: at.rows and at.rows.pop())
    outcome = bench.run(plan_of(table, compact(table), vacuum("old")))

    assert outcome.status is TableStatus.VERIFY_FAILED
    assert statuses(outcome) == ["compact: verify_failed", "vacuum: skipped"]
    assert (table.version, table.rows) == (1, [1, 2, 3, 4, 5])
    assert "old" in table.storage
    assert bench.recorded("intent") == []
    assert bench.switch.halt_reason is None
    assert bench.switch.deletions_held == "a verification failed on t"
    quarantined = bench.record(plan_of(table)).quarantined
    assert quarantined is not None
    assert quarantined.startswith("V501")
    again = bench.run(plan_of(table, compact(table)))
    assert again.status is TableStatus.BLOCKED
    assert (again.problem.code if again.problem else None) == "A411"
    assert table.version == 1


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
    for removed_in, added_in in ((2, 1), (None, 1), (3, 2)):  # what it added is read by its proof, too
        bench.verifier.order = [Verdict.ERROR]
        step = vacuum("f0", removed_in_version=removed_in, added_in_version=added_in)
        outcome = bench.run(plan_of(table, step))
        assert statuses(outcome) == ["vacuum: failed"]
        assert outcome.steps[0].error is not None
        assert outcome.steps[0].error.code == "A410"
    assert {"f0", "f1", "f2"} <= table.storage
    table.storage.add("long-gone")
    bench.verifier.order = [Verdict.ERROR]
    assert bench.run(plan_of(table, vacuum("long-gone", removed_in_version=1))).status is TableStatus.DONE


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


def test_a_check_that_could_not_be_made_says_how_far_the_change_is_known_to_be_right(bench: Bench) -> None:
    table = three_files(bench)
    table.storage |= {"old", "older"}
    bench.verifier.order = [Verdict.PASS, Verdict.ERROR]
    vacuumed = bench.run(plan_of(table, compact(table), vacuum("old", "older"))).steps[1].error
    assert vacuumed is not None
    assert vacuumed.code == "V504"
    assert vacuumed.what.startswith(
        "2 files were deleted, but the check whether all live files are still there could not be made: "
    )
    assert vacuumed.help == (
        "`maintainer verify t@2` makes this check; else the next deletion does, before it deletes anything; "
        "plan.json of run 20261121T220001Z-0000 names the files of this one"
    )
    # Nothing is remembered that a later apply would have to prove.
    assert bench.record(plan_of(table)).unproven_versions == ()

    bench.verifier.order = [Verdict.ERROR, Verdict.ERROR]
    rewritten = bench.run(plan_of(table, compact(table))).steps[0].error
    assert rewritten is not None
    assert rewritten.what.startswith("committed and proven, but the check afterwards could not be made: ")
    assert rewritten.help == (
        "the files that it replaced are not deleted until this check was made; the next apply makes it"
    )
    # Whether the run that made it has proven it, a later one does not know.
    bench.run(plan_of(table))
    (note,) = bench.recorded("note")
    assert note["what"].startswith(
        "version 3 is still not proven: committed, but the check that would prove it could not be made: "
    )
