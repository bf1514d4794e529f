"""Commits of one table that another writer wins, or that do not land: tried again, left to the writer, given up."""

from __future__ import annotations

from maintainer.errors import CommitNotLanded
from maintainer.execution.run_context import RetryBounds
from maintainer.model.run.outcome import TableStatus
from tests.support.runs.fake_lake import Station
from tests.support.runs.planned_steps import compact, plan_of, vacuum
from tests.unit.execution.table.table_bench import Bench, statuses, three_files


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


def test_a_table_that_is_altered_between_two_batches_keeps_the_first_and_is_not_read_for_the_others(
    bench: Bench,
) -> None:
    table = three_files(bench)
    reads: list[int] = []

    def alter_after_the_first(at: Station) -> None:
        reads.append(at.table.version)
        if len(reads) == 2:
            at.table.columns = {"id": "long", "new": "string"}

    plan = plan_of(table, compact(table, ("f0",), ("f1",), ("f2",)))
    bench.lake.at("facts", alter_after_the_first)
    outcome = bench.run(plan)
    assert statuses(outcome) == ["compact: yielded"]
    assert outcome.steps[0].note == "1 of 3 batches committed, 1 yielded"
    error = outcome.steps[0].error
    assert error is not None
    assert (error.code, error.help) == (
        "A403", "nothing more of this step is committed; the next apply plans the table as it is now"
    )  # fmt: skip
    assert (len(outcome.steps[0].commits), reads, table.rows) == (1, [1, 2], [1, 2, 3, 4, 5])
