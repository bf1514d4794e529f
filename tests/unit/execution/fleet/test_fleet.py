"""A whole run against a lake in memory: isolation, limits, stopping, and counts that add up."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from maintainer.errors import CommitNotLanded, EnvironmentUnfit, ExitCode, ProjectError
from maintainer.execution.fleet.fleet import FleetBounds, run_fleet
from maintainer.execution.fleet.worker_pool import CANCEL_AGAIN_SECONDS
from maintainer.execution.run.cancellation import TERMINATED, StopSwitch
from maintainer.execution.run.run_context import Clock, RetryBounds
from maintainer.journal.events.event_log import EVENTS_FILE, read_events
from maintainer.journal.folder.run_folder import RunFolder
from maintainer.journal.journal import Journal
from maintainer.journal.ledger.ledger_rows import LedgerMark, LedgerRow
from maintainer.journal.memory.recorded_outcome import recorded_outcome
from maintainer.model.plan.plan import CheckedExpectation, LeftAlone, Plan, Problem, TablePlan
from maintainer.model.plan.plan_document import to_json
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.run.exit_codes import exit_code
from maintainer.model.run.outcome import RunEnd, RunOutcome, StepStatus, TableStatus, Verdict
from maintainer.model.run.progress import (
    ProgressEvent,
    RunFinished,
    RunStarted,
    RunStopping,
    StepHeartbeat,
    TableFinished,
    TableStarted,
)
from maintainer.model.run.results_document import run_from_json
from maintainer.model.table.table_facts import TableRef
from tests.support.runs.fake_lake import FakeLake, PlainVerifier, Station, compact, plan_all, plan_of, vacuum
from tests.support.tables.builders import NOW_MS

QUICK: dict[str, Any] = {
    "tick_seconds": 0.01, "stop_grace_seconds": 0.05, "hang_grace_seconds": 0.1,
    "retry": RetryBounds(first_pause_seconds=0.0),
}  # fmt: skip


class Run:
    """Runs plans against one lake and keeps their events. Its monotonic clock moves only by ``pass_seconds``."""

    def __init__(self, runs_dir: Path) -> None:
        self.lake = FakeLake()
        self.verifier = PlainVerifier()
        self.runs_dir = runs_dir
        self.switch = StopSwitch()
        self.events: list[ProgressEvent] = []
        self.seconds = 0.0
        self.ledger: Any = None
        self._emitted = threading.Condition()
        self.count = 0
        self.folder: RunFolder

    def __call__(self, plan: Plan, **bounds: Any) -> RunOutcome:
        self.count += 1
        journal = Journal.open(self.runs_dir, f"20261121T22000{self.count}Z-0000", lambda: NOW_MS)
        self.folder = journal.folder
        outcome = run_fleet(
            plan, self.lake, journal=journal, verifier=self.verifier, bounds=FleetBounds(**{**QUICK, **bounds}),
            on_event=self._keep, switch=self.switch, ledger=self.ledger, clock=Clock(monotonic=lambda: self.seconds),
        )  # fmt: skip
        assert [table.ref for table in outcome.tables] == [table.ref for table in plan.tables]
        assert sum(outcome.count(status) for status in TableStatus) == len(plan.tables)
        told = [event.outcome for event in self.events if isinstance(event, TableFinished)]
        assert sorted(told[-len(plan.tables) :], key=lambda one: one.ref) == list(outcome.tables)
        assert run_from_json((self.folder.path / "results.json").read_text()) == outcome
        return outcome

    def _keep(self, event: ProgressEvent) -> None:
        with self._emitted:
            self.events.append(event)
            self._emitted.notify_all()

    def pass_seconds(self, seconds: float) -> None:
        """Move the clock that all limits of the run are measured with."""
        self.seconds += seconds

    def wait_for(self, kind: type[ProgressEvent]) -> None:
        """Wait until the run has emitted such an event; the minute is for a machine that hangs, not for a slow one."""
        with self._emitted:
            assert self._emitted.wait_for(lambda: any(isinstance(event, kind) for event in self.events), 60)

    def wait_for_cancel(self) -> threading.Event:
        """Wait until the jobs of the only worker are cancelled."""
        (cancelled,) = self.lake.cancel_events.values()
        assert cancelled.wait(60)
        return cancelled

    def small_tables(self, *names: str) -> list[TablePlan]:
        made = [self.lake.table(name, (1, 2), (3,)) for name in names]
        return [plan_of(table, compact(table)) for table in made]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path / ".maintainer" / "runs")


def by_table(outcome: RunOutcome) -> dict[str, str]:
    return {table.ref.identifier: table.status.value for table in outcome.tables}


def test_one_bad_table_never_stops_the_others(run: Run) -> None:
    plans = run.small_tables("a", "b", "c", "d", "e")

    def fail(at: Station) -> None:
        raise {"b": CommitNotLanded("disk full"), "d": ZeroDivisionError("bug")}[at.table.name]

    run.lake.at("write", fail, table="b")
    run.lake.at("write", fail, table="d")
    outcome = run(plan_all(*plans), jobs=2)
    assert by_table(outcome) == {"a": "done", "b": "failed", "c": "done", "d": "failed", "e": "done"}
    assert exit_code(outcome) is ExitCode.BUG
    assert [run.lake.tables[name].rows for name in "abcde"] == [[1, 2, 3]] * 5
    assert sorted(run.lake.workers) == ["20261121T220001Z-0000-w0", "20261121T220001Z-0000-w1"]


def test_tables_without_steps_end_as_what_they_are_and_need_no_worker(run: Run) -> None:
    blocked = Reason(ReasonCode.OVER_LIMIT, "812 GiB are over 500 GiB", "policies/c.yml:9")
    waits = LeftAlone(Reason(ReasonCode.OVER_BUDGET, "waits: place 1 of 1 in the queue"), 2, 10)
    plan = plan_all(
        plan_of(run.lake.table("a", (1,))),
        TablePlan(TableRef("b"), "b.yml", "d", problem=Problem("T401", "no such table")),
        plan_of(run.lake.table("c", (1,)), blocked=(blocked,)),
        plan_of(run.lake.table("d", (1,)), left_alone=(waits,)),
    )
    outcome = run(plan)
    assert by_table(outcome) == {"a": "up_to_date", "b": "failed", "c": "blocked", "d": "waiting"}
    assert [table.problem.what if table.problem else None for table in outcome.tables] == [
        None, "no such table", "812 GiB are over 500 GiB", None
    ]  # fmt: skip
    assert run.lake.workers == []


def test_tables_run_beside_one_another(run: Run) -> None:
    plans = run.small_tables("a", "b")
    both = threading.Barrier(2, timeout=10)
    run.lake.at("write", lambda at: both.wait())
    assert by_table(run(plan_all(*plans), jobs=2)) == {"a": "done", "b": "done"}


def test_a_failed_verification_starts_no_further_table(run: Run) -> None:
    plans = run.small_tables("a", "b", "c")
    run.verifier.order = [Verdict.PASS, Verdict.FAIL]
    outcome = run(plan_all(*plans), jobs=1)
    assert by_table(outcome) == {"a": "done", "b": "verify_failed", "c": "not_reached"}
    assert outcome.tables[2].problem is not None
    assert "a verification failed on b" in outcome.tables[2].problem.what
    assert run.lake.tables["c"].version == 1


def test_a_table_in_quarantine_is_not_checked_again_and_stops_no_later_run(run: Run) -> None:
    plans = run.small_tables("a", "b")
    run.verifier.order = [Verdict.FAIL]
    assert by_table(run(plan_all(*plans))) == {"a": "verify_failed", "b": "not_reached"}
    run.switch = StopSwitch()
    asked = len(run.verifier.asked)
    reason = Reason(ReasonCode.QUARANTINED, "quarantined: V503", None)
    run.verifier.order = [Verdict.FAIL]  # what a second check of the same version would find
    table = run.lake.tables["a"]
    later = [plan_of(table, blocked=(reason,)), plan_of(run.lake.tables["b"])]
    assert by_table(run(plan_all(*later))) == {"a": "blocked", "b": "up_to_date"}
    assert run.switch.halt_reason is None
    assert len(run.verifier.asked) == asked


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ({"fail_fast": True}, ["failed", "not_reached", "not_reached"]),
        ({"max_failures": 2}, ["failed", "failed", "not_reached"]),
        ({}, ["failed", "failed", "failed"]),
    ],
)
def test_failures_are_bounded_on_request(run: Run, bounds: dict[str, Any], expected: list[str]) -> None:
    plans = run.small_tables("a", "b", "c")

    def fail(at: Station) -> None:
        raise CommitNotLanded("disk full")

    run.lake.at("write", fail)
    outcome = run(plan_all(*plans), **bounds)
    assert list(by_table(outcome).values()) == expected
    said = {table.problem.what for table in outcome.tables if table.problem and table.problem.code == "C713"}
    failed = {1: "1 table", 2: "2 tables"}.get(expected.count("failed"))
    assert said == ({f"not started: {failed} failed, and --max-failures is {failed[0]}"} if failed else set())


def test_a_table_over_its_time_is_cancelled_and_the_others_go_on(run: Run) -> None:
    slow = run.lake.table("a", (1,), (2,))
    others = run.small_tables("b", "c")

    def hang_until_cancelled(at: Station) -> None:
        run.pass_seconds(0.05)
        run.wait_for_cancel()
        raise CommitNotLanded("job group cancelled")

    run.lake.at("write", hang_until_cancelled, table="a")
    outcome = run(plan_all(plan_of(slow, compact(slow), timeout_seconds=0), *others))
    assert by_table(outcome) == {"a": "failed", "b": "done", "c": "done"}
    error = outcome.tables[0].steps[0].error
    assert error is not None
    assert error.code == "C711"
    assert slow.version == 1
    assert run.lake.cancelled == ["20261121T220001Z-0000-w0"]


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

    folder = run.folder
    folder.write_plan(to_json(plan))
    run.lake.clear_hooks()
    run.switch, run.lake.cancel_events = StopSwitch(), {}
    run(plan_all(plan_of(table)))
    events = read_events(folder.path / EVENTS_FILE).events
    (step,) = recorded_outcome(plan, outcome, events, RunEnd.FINISHED).tables[0].steps
    assert step.vacuum is not None
    assert (step.status, step.vacuum.num_files_deleted) == (StepStatus.INTERRUPTED, 1)
    come_back(release)


def test_jobs_that_start_after_the_cancel_are_cancelled_too(run: Run) -> None:
    slow = run.lake.table("a", (1,), (2,))
    cancelled_again: list[bool] = []

    def starts_another_job(at: Station) -> None:
        run.pass_seconds(0.05)
        event = run.wait_for_cancel()
        event.clear()  # the cancel met no running job; the next one begins only now
        run.pass_seconds(CANCEL_AGAIN_SECONDS)
        cancelled_again.append(event.wait(60))
        raise CommitNotLanded("job group cancelled")

    run.lake.at("write", starts_another_job, table="a")
    outcome = run(plan_all(plan_of(slow, compact(slow), timeout_seconds=0)), hang_grace_seconds=10.0)
    assert cancelled_again == [True]
    assert by_table(outcome) == {"a": "failed"}


def test_tables_that_were_not_reached_are_no_success(run: Run) -> None:
    plans = run.small_tables("a", "b")
    run.lake.at("landed", lambda at: run.switch.halt("E651: the run folder can no longer be written"), table="a")
    outcome = run(plan_all(*plans))
    assert by_table(outcome) == {"a": "done", "b": "not_reached"}
    assert exit_code(outcome) is ExitCode.FINDINGS


def test_a_signal_ends_the_run_at_the_next_safe_place(run: Run) -> None:
    plans = run.small_tables("a", "b")
    run.lake.at("write", lambda at: os.kill(os.getpid(), signal.SIGTERM), table="a")
    before = signal.getsignal(signal.SIGTERM)
    outcome = run(plan_all(*plans))
    assert outcome.interrupted_by == "SIGTERM"
    assert by_table(outcome)["b"] == "not_reached"
    assert by_table(outcome)["a"] in ("done", "interrupted")
    assert run.lake.tables["b"].version == 1
    assert signal.getsignal(signal.SIGTERM) is before


def test_after_a_stop_what_runs_is_cancelled_when_its_grace_is_over(run: Run) -> None:
    plans = run.small_tables("a")

    def long(at: Station) -> None:
        run.switch.stop("SIGINT")
        run.wait_for(RunStopping)
        assert run.lake.cancelled == []
        run.pass_seconds(QUICK["stop_grace_seconds"])
        run.wait_for_cancel()
        raise CommitNotLanded("job group cancelled")

    run.lake.at("write", long)
    outcome = run(plan_all(*plans))
    assert (outcome.interrupted_by, by_table(outcome)) == ("SIGINT", {"a": "interrupted"})
    assert run.lake.tables["a"].version == 1
    (told,) = [event for event in run.events if isinstance(event, RunStopping)]
    assert (told.reason, told.grace_seconds) == ("SIGINT", QUICK["stop_grace_seconds"])
    # Told while the table still runs: whoever pressed Ctrl-C must not think that nothing happens.
    kinds = [type(event) for event in run.events]
    assert kinds.index(RunStopping) < kinds.index(TableFinished)


@pytest.mark.parametrize("comes_back", [True, False])
def test_after_sigterm_both_periods_are_shorter(run: Run, comes_back: bool) -> None:
    """Whoever sends it kills what is still there soon: neither a long commit nor a thread that hangs is waited for."""
    plans = run.small_tables("a")
    release = threading.Event()

    def long(at: Station) -> None:
        run.switch.stop("SIGTERM")
        run.wait_for(RunStopping)
        run.pass_seconds(0.05)
        run.wait_for_cancel()
        if not comes_back:
            run.pass_seconds(0.2)
            release.wait(60)
        raise CommitNotLanded("job group cancelled")

    run.lake.at("write", long)
    patient = {"stop_grace_seconds": 20.0, "hang_grace_seconds": 20.0}
    outcome = run(plan_all(*plans), **patient, terminate_grace_seconds=0.05, terminate_hang_seconds=0.1)
    assert run.seconds < 1
    release.set()
    assert (outcome.interrupted_by, by_table(outcome)) == ("SIGTERM", {"a": "interrupted"})
    (told,) = [event for event in run.events if isinstance(event, RunStopping)]
    assert (told.reason, told.grace_seconds) == ("SIGTERM", 0.05)


def test_the_run_has_a_time_limit_of_its_own(run: Run) -> None:
    plans = run.small_tables("a", "b")

    def outlast_the_run(at: Station) -> None:
        run.pass_seconds(0.1)
        assert run.switch.wait(60)

    run.lake.at("write", outlast_the_run)
    outcome = run(plan_all(*plans), run_timeout_seconds=0.05)
    assert outcome.interrupted_by == "timeout of 0.05 s"
    assert by_table(outcome)["b"] == "not_reached"


def test_nothing_is_touched_when_verification_is_not_possible(run: Run) -> None:
    plans = run.small_tables("a", "b")
    run.verifier.broken = EnvironmentUnfit("Great Expectations cannot be imported", code="E653")
    outcome = run(plan_all(*plans), jobs=1)
    assert by_table(outcome) == {"a": "failed", "b": "not_reached"}
    error = outcome.tables[0].steps[0].error
    assert error is not None
    assert error.code == "E653"
    assert [run.lake.tables[name].version for name in "ab"] == [1, 1]


def test_an_expectation_that_is_not_taken_refuses_the_run(run: Run) -> None:
    (plan,) = run.small_tables("a")
    checks = replace(plan.checks, expectations=(CheckedExpectation("expect_nothing", "{}"),))
    run.verifier.broken = ProjectError("Great Expectations does not take it", code="P316")
    with pytest.raises(ProjectError):
        run(plan_all(replace(plan, checks=checks)))
    assert run.lake.workers == []


def test_workers_that_cannot_start_fail_their_tables_with_the_reason(run: Run) -> None:
    plans = run.small_tables("a", "b")
    run.lake.worker_error = EnvironmentUnfit("no session", code="E601")
    outcome = run(plan_all(*plans), jobs=2)
    assert by_table(outcome) == {"a": "failed", "b": "failed"}
    assert {table.problem.code if table.problem else None for table in outcome.tables} == {"E601"}


def test_progress_begins_and_ends_with_the_run_and_beats_between(run: Run) -> None:
    plans = run.small_tables("a")

    def write_for_a_second(at: Station) -> None:
        run.pass_seconds(1)
        run.wait_for(StepHeartbeat)

    run.lake.at("write", write_for_a_second)
    run(plan_all(*plans), heartbeat_seconds=0.5)
    kinds = [type(event) for event in run.events]
    assert (kinds[0], kinds[1], kinds[-2], kinds[-1]) == (RunStarted, TableStarted, TableFinished, RunFinished)
    (beat,) = [event for event in run.events if isinstance(event, StepHeartbeat)]
    assert (beat.step_id, beat.number, beat.num_batches, beat.elapsed_seconds) == ("a/compact", 1, 1, 1.0)


def test_results_are_written_after_every_step_as_if_the_process_died_next(run: Run) -> None:
    table = run.lake.table("a", (1,), (2,))
    table.storage.add("old")
    other = run.small_tables("b")
    seen: list[Any] = []
    run.lake.at("vacuum", lambda at: seen.append(json.loads((run.folder.path / "results.json").read_text())))
    run(plan_all(plan_of(table, compact(table), vacuum("old")), *other))
    (document,) = seen
    assert [table["status"] for table in document["tables"]] == ["interrupted", "not_reached"]
    assert [step["status"] for step in document["tables"][0]["steps"]] == ["succeeded"]


def test_a_sink_of_events_that_breaks_ends_nothing(run: Run) -> None:
    plans = run.small_tables("a")

    def broken(event: ProgressEvent) -> None:
        raise BrokenPipeError("the terminal is gone")

    journal = Journal.open(run.runs_dir, "20261121T220009Z-0000", lambda: NOW_MS)
    outcome = run_fleet(
        plan_all(*plans), run.lake, journal=journal, verifier=run.verifier, bounds=FleetBounds(**QUICK), on_event=broken
    )
    assert by_table(outcome) == {"a": "done"}


class Sink:
    """A ledger in memory that may be out of order."""

    def __init__(self) -> None:
        self.rows: dict[str, tuple[LedgerRow, ...]] = {}
        self.broken: Exception | None = None

    location = "ledger"

    def mark(self) -> LedgerMark | None:
        return None

    def steps_of(self, run_id: str) -> frozenset[str]:
        return frozenset()

    def append(self, run_id: str, rows: tuple[LedgerRow, ...]) -> None:
        if self.broken is not None:
            raise self.broken
        self.rows.setdefault(run_id, rows)


def test_the_ledger_gets_one_row_a_step_and_what_it_missed_with_the_next_run(run: Run) -> None:
    sink = run.ledger = Sink()
    table = run.lake.table("a", (1, 2), (3,))
    sink.broken = CommitNotLanded("the ledger's storage is read-only")
    outcome = run(plan_all(plan_of(table, compact(table))))
    assert by_table(outcome) == {"a": "done"}
    assert [problem.code for problem in outcome.problems] == ["E652"]
    assert sink.rows == {}

    sink.broken = None
    table.append(7)
    run(plan_all(plan_of(table, compact(table))))
    assert {run_id: [(row.step_id, row.version_after) for row in rows] for run_id, rows in sink.rows.items()} == {
        "20261121T220001Z-0000": [("a/compact", 2)], "20261121T220002Z-0000": [("a/compact", 4)]
    }  # fmt: skip
    row = sink.rows["20261121T220001Z-0000"][0]
    assert (row.num_files_removed, row.num_files_added, row.bytes_removed, row.predicted_files_removed) == (2, 1, 24, 2)
    assert (row.proof_level, row.proof_result, row.status, row.reason) == (
        "fingerprint",
        "pass",
        "succeeded",
        "small files",
    )
    assert not list(run.runs_dir.rglob("ledger_pending.jsonl"))


def test_rows_that_could_not_wait_in_the_run_folder_are_made_again_by_the_next_run(run: Run) -> None:
    sink = run.ledger = Sink()
    table = run.lake.table("a", (1, 2), (3,))

    def in_the_way(at: Station) -> None:
        (run.folder.path / "ledger_pending.jsonl").mkdir(exist_ok=True)  # nothing can be renamed onto it

    run.lake.at("commit", in_the_way, times=1)
    plan = plan_all(plan_of(table, compact(table)))
    outcome = run(plan)
    run.folder.write_plan(to_json(plan))
    (problem,) = outcome.problems
    assert (problem.code, problem.help) == (
        "E652",
        "the run folder keeps what happened; the next apply appends the rows",
    )
    (run.folder.path / "ledger_pending.jsonl").rmdir()
    for _ in range(2):  # once is enough: no row comes twice
        table.append(7)
        run(plan_all(plan_of(table, compact(table))))
    assert [row.step_id for row in sink.rows["20261121T220001Z-0000"]] == ["a/compact"]
    assert {run_id: len(rows) for run_id, rows in sink.rows.items()} == {
        f"20261121T22000{number}Z-0000": 1 for number in (1, 2, 3)
    }


def test_a_signal_during_the_ledgers_append_is_in_every_record(run: Run) -> None:
    class Interrupting(Sink):
        def append(self, run_id: str, rows: tuple[LedgerRow, ...]) -> None:
            run.switch.stop(TERMINATED)
            super().append(run_id, rows)

    run.ledger = Interrupting()
    table = run.lake.table("a", (1, 2), (3,))
    outcome = run(plan_all(plan_of(table, compact(table))))
    assert by_table(outcome) == {"a": "done"}
    assert outcome.interrupted_by == TERMINATED
    (folder,) = [path for path in run.runs_dir.iterdir() if path.is_dir()]
    results = json.loads((folder / "results.json").read_text())
    (finished,) = [event for event in read_events(folder / "events.jsonl").events if event["type"] == "run_finished"]
    assert results["interrupted_by"] == finished["interrupted_by"] == TERMINATED


@pytest.mark.parametrize(
    ("reason", "code", "help_text"),
    [
        (ReasonCode.QUARANTINED, "A411", "verify"),
        (ReasonCode.OVER_LIMIT, "A420", "raise the limit"),
        (ReasonCode.LARGE_DELETE, "A420", "what would go"),
        (ReasonCode.CANNOT_BE_SURE, "A420", "fix or remove what is named above"),
    ],
)
def test_a_blocked_table_says_what_a_person_has_to_do(run: Run, reason: ReasonCode, code: str, help_text: str) -> None:
    table = plan_of(run.lake.table("a", (1,)), blocked=(Reason(reason, "because", "policies/a.yml:3"),))
    outcome = run(plan_all(table))
    (ended,) = outcome.tables
    assert ended.status is TableStatus.BLOCKED
    assert ended.problem is not None
    assert (ended.problem.code, ended.problem.what) == (code, "because")
    assert help_text in (ended.problem.help or "")
