"""Steps that do not come back after a stop: given up, unknown only after their intent, and looked up by a later run."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from maintainer.execution.cancellation import StopSwitch
from maintainer.execution.fleet.fleet_bounds import FleetBounds
from maintainer.execution.run_context import Clock
from maintainer.journal.event_log import EVENTS_FILE, is_alive, read_events, run_events
from maintainer.journal.journal import Journal
from maintainer.journal.ledger.ledger_rows import LedgerRow
from maintainer.journal.memory.past_runs import read_record, read_run
from maintainer.journal.memory.recorded_outcome import recorded_outcome
from maintainer.journal.memory.table_records import remembered
from maintainer.model.plan.plan_document import to_json
from maintainer.model.run.outcome import RunEnd, StepStatus, TableStatus
from maintainer.model.run.progress import RunStopping
from maintainer.model.run.receipts import Verdict
from tests.support.runs.fake_lake import Station
from tests.support.runs.planned_steps import compact, plan_all, plan_of, run_fleet, vacuum
from tests.support.tables.builders import NOW_MS
from tests.unit.execution.fleet.run_in_memory import QUICK, Run, by_table
from tests.unit.execution.fleet.test_killed_runs import Ledger


def deaf(run: Run, release: threading.Event) -> Callable[[Station], None]:
    """A hook that is cancelled and goes on until it is released."""

    def hook(at: Station) -> None:
        run.pass_seconds(0.05)
        run.wait_for_cancel()
        run.pass_seconds(0.2)
        release.wait(60)

    return hook


def come_back(release: threading.Event) -> None:
    """Let the given-up thread go on to its end."""
    release.set()
    for thread in threading.enumerate():
        if thread.name.endswith("-w0"):
            thread.join(60)
            assert not thread.is_alive()


@pytest.mark.parametrize(
    ("station", "status"), [("write", StepStatus.FAILED), ("commit", StepStatus.UNKNOWN)], ids=["no INTENT", "INTENT"]
)
def test_a_thread_that_does_not_come_back_is_given_up_and_may_never_commit(
    run: Run, station: str, status: StepStatus
) -> None:
    """Without an INTENT nothing can have been committed: the table's limit is what ended the step."""
    slow = run.lake.table("a", (1,), (2,))
    others = run.small_tables("b")
    release = threading.Event()
    run.lake.at(station, deaf(run, release), table="a")
    outcome = run(plan_all(plan_of(slow, compact(slow), vacuum("x"), timeout_seconds=0), *others))
    assert by_table(outcome) == {"a": "failed", "b": "done"}
    assert [step.status for step in outcome.tables[0].steps] == [status, StepStatus.SKIPPED]
    assert outcome.tables[0].problem is not None
    assert outcome.tables[0].problem.code == "C714"
    come_back(release)
    assert slow.version == (1 if station == "write" else 2)


@pytest.mark.parametrize("comes_back", [False, True], ids=["deaf", "ends by itself"])
def test_an_engine_that_does_not_answer_a_cancel_holds_up_its_table_alone(run: Run, comes_back: bool) -> None:
    """A frozen JVM: the next table is done by another thread."""
    slow = run.lake.table("a", (1,), (2,))
    others = run.small_tables("b", "c")
    release, cancel = threading.Event(), run.lake.cancel

    def without_answer(name: str) -> None:
        cancel(name)
        run.pass_seconds(0.2)
        assert release.wait(60)

    def hook(at: Station) -> None:
        run.pass_seconds(0.05)
        run.wait_for_cancel()
        assert comes_back or release.wait(60)

    run.lake.cancel = without_answer  # type: ignore[method-assign]
    run.lake.at("write", hook, table="a", times=1)
    run.lake.at("write", lambda at: come_back(release), table="c")
    outcome = run(plan_all(plan_of(slow, compact(slow), timeout_seconds=0), *others))
    assert by_table(outcome) == {"a": "failed", "b": "done", "c": "done"}


def test_a_table_that_is_given_up_and_then_ends_by_itself_is_one_failure(run: Run) -> None:
    """Two are allowed to fail before no more are started: the second end of the first table is no second failure."""
    slow = run.lake.table("a", (1,), (2,))
    others = run.small_tables("b", "c")
    release = threading.Event()
    run.lake.at("write", deaf(run, release), table="a")
    run.lake.at("write", lambda at: come_back(release), table="b")
    plan = plan_all(plan_of(slow, compact(slow), timeout_seconds=0), *others)
    assert by_table(run(plan, max_failures=2)) == {"a": "failed", "b": "done", "c": "done"}


@pytest.mark.parametrize("reason", ["SIGINT", "SIGTERM", "timeout of 60 s"])
@pytest.mark.parametrize(("station", "status"), [("write", "interrupted"), ("commit", "unknown")])
def test_a_stopped_step_that_does_not_come_back_is_unknown_only_after_its_intent(
    run: Run, reason: str, station: str, status: str
) -> None:
    table = run.lake.table("a", (1, 2), (3,))
    table.storage.add("old")
    release = threading.Event()

    def stopped(at: Station) -> None:
        run.switch.stop(reason)
        run.wait_for(RunStopping)
        deaf(run, release)(at)

    run.lake.at(station, stopped)
    bounds = {"terminate_grace_seconds": 0.05, "terminate_hang_seconds": 0.1}
    outcome = run(plan_all(plan_of(table, compact(table), vacuum("old"))), **bounds)
    (ended,) = outcome.tables
    assert [step.status.value for step in ended.steps] == [status, "skipped"]
    # It has a place in the history, and took the time that it was waited for.
    given_up, skipped = ended.steps
    assert skipped.started_at_ms >= outcome.started_at_ms
    assert given_up.duration_seconds > skipped.duration_seconds
    assert skipped.started_at_ms == given_up.started_at_ms + round(1000 * given_up.duration_seconds)
    assert ended.status is (TableStatus.INTERRUPTED if status == "interrupted" else TableStatus.FAILED)
    assert ended.problem is not None
    assert ended.problem.code == "C714"
    come_back(release)
    assert table.version == (1 if station == "write" else 2)
    assert "old" in table.storage


def test_a_batch_that_landed_stays_known_when_the_next_one_does_not_come_back(run: Run) -> None:
    table = run.lake.table("a", (1,), (2,), (3,), (4,))
    release = threading.Event()

    def second_batch(at: Station) -> None:
        if at.table.version > 1:
            run.switch.stop("SIGTERM")
            run.wait_for(RunStopping)
            deaf(run, release)(at)

    run.lake.at("write", second_batch)
    bounds = {"terminate_grace_seconds": 0.05, "terminate_hang_seconds": 0.1}
    outcome = run(plan_all(plan_of(table, compact(table, ("f0", "f1"), ("f2", "f3")))), **bounds)
    (step,) = outcome.tables[0].steps
    assert (step.status, [commit.version for commit in step.commits]) == (StepStatus.INTERRUPTED, [2])
    come_back(release)
    assert table.version == 2


def test_a_deletion_that_did_not_come_back_is_interrupted_once_a_later_run_has_looked(run: Run) -> None:
    table = run.lake.table("a", (1, 2), (3,))
    table.storage |= {"old-1", "old-2"}
    release = threading.Event()

    def stopped(at: Station) -> None:
        run.switch.stop("SIGTERM")
        run.wait_for(RunStopping)
        deaf(run, release)(at)

    run.lake.at("deleted", stopped, times=1)
    bounds = {"terminate_grace_seconds": 0.05, "terminate_hang_seconds": 0.1}
    plan = plan_all(plan_of(table, vacuum("old-1", "old-2")))
    outcome = run(plan, **bounds)
    assert [step.status for step in outcome.tables[0].steps] == [StepStatus.UNKNOWN]

    run.end_process()
    folder = run.folder
    folder.write_plan(to_json(plan))
    run.lake.clear_hooks()
    run.switch, run.lake.cancel_events = StopSwitch(), {}
    run(plan_all(plan_of(table)))
    events = run_events(folder.path, read_events(folder.path / EVENTS_FILE).events)
    (step,) = recorded_outcome(plan, events, RunEnd.FINISHED).tables[0].steps
    assert step.vacuum is not None
    assert (step.status, step.vacuum.num_files_deleted) == (StepStatus.INTERRUPTED, 1)
    come_back(release)


def test_a_commit_that_lands_when_its_run_is_over_is_recorded_though_another_run_looked_before(run: Run) -> None:
    """A watch goes on in the process whose thread hangs in the commit."""
    table = run.lake.table("a", (1,), (2,))
    release = threading.Event()
    run.lake.at("commit", deaf(run, release), times=1)
    plan = plan_all(plan_of(table, compact(table), timeout_seconds=0))
    run(plan)
    folder = run.folder
    folder.write_plan(to_json(plan))
    run.switch, run.lake.cancel_events = StopSwitch(), {}
    run(plan_all(plan_of(table)))
    assert (table.version, remembered(run.runs_dir).open_intents) == (1, ())
    come_back(release)
    assert table.version == 2
    run(plan_all(plan_of(table)))
    assert run.verifier.asked[-1] == ("pair", "a", 2)
    events = run_events(folder.path, read_events(folder.path / EVENTS_FILE).events)
    (step,) = recorded_outcome(plan, events, RunEnd.FINISHED).tables[0].steps
    assert [(commit.version, commit.verdict) for commit in step.commits] == [(2, Verdict.PASS)]
    assert not is_alive(folder.path / EVENTS_FILE)


def test_a_commit_that_lands_while_the_ledger_is_written_is_in_results_and_comes_into_the_ledger(run: Run) -> None:
    table = run.lake.table("a", (1,), (2,))
    release = threading.Event()
    run.lake.at("commit", deaf(run, release), times=1)

    class SlowLedger(Ledger):
        def append(self, run_id: str, rows: tuple[LedgerRow, ...]) -> None:
            if not release.is_set():
                come_back(release)
            super().append(run_id, rows)

    ledger, clock = SlowLedger(), Clock(monotonic=lambda: run.seconds)
    plan = plan_all(plan_of(table, compact(table), timeout_seconds=0))
    journal = Journal.open(run.runs_dir, "20261121T210001Z-0000", lambda: NOW_MS)
    journal.folder.write_plan(to_json(plan))
    outcome = run_fleet(
        plan, run.lake, journal=journal, verifier=run.verifier, bounds=FleetBounds(**QUICK), clock=clock, ledger=ledger
    )
    past, record = read_run(journal.folder.path), read_record(journal.folder.path)
    assert past.outcome == outcome == record.outcome()
    (step,) = outcome.tables[0].steps
    assert [(commit.version, commit.verdict) for commit in step.commits] == [(2, Verdict.PASS)]
    run.ledger, run.switch, run.lake.cancel_events = ledger, StopSwitch(), {}
    run(plan_all(plan_of(table)))
    rows = [(row.step_id, row.version_after, row.num_files_removed) for row in ledger.rows]
    assert rows == [("a/compact", None, 0), ("a/compact#settled", 2, 2)]
