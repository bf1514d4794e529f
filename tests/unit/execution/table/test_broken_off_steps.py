"""Steps that end early: engines that are gone, errors, stops, cancelled tables, and intents that cannot be written."""

from __future__ import annotations

import pytest

from maintainer.errors import Interrupted
from maintainer.execution.cancellation import TableControl
from maintainer.model.run.outcome import StepStatus, TableStatus
from tests.support.runs.fake_lake import Station
from tests.support.runs.planned_steps import compact, plan_of, vacuum
from tests.support.writers.recorded_events import unfinished
from tests.unit.execution.table.table_bench import Bench, statuses, three_files


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


def test_engine_interruptions_count_as_such(bench: Bench) -> None:
    table = three_files(bench)

    def cancelled(at: Station) -> None:
        raise Interrupted("job group cancelled")

    bench.lake.at("write", cancelled)
    outcome = bench.run(plan_of(table, compact(table)))
    assert outcome.steps[0].status is StepStatus.INTERRUPTED
