"""Runs and tables that are stopped: time limits, signals, grace periods, and jobs that are cancelled."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path

import pytest

from maintainer.cli.main import run as command
from maintainer.errors import CommitNotLanded
from maintainer.execution.cancellation import StopSwitch
from maintainer.execution.fleet.worker_pool import CANCEL_AGAIN_SECONDS, WorkerPool
from maintainer.model.run.exit_codes import exit_code
from maintainer.model.run.progress import RunStopping, TableFinished
from tests.support.policies.projects import write_project
from tests.support.runs.fake_lake import Station
from tests.support.runs.planned_steps import compact, plan_all, plan_of
from tests.unit.execution.fleet.run_in_memory import QUICK, Run, by_table


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


def test_a_cancel_that_comes_when_its_table_has_ended_does_not_reach_the_next_one(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = run.lake.table("a", (1,), (2,))
    cancel, (cancelling, next_began, cancelled) = run.lake.cancel, (threading.Event() for _ in range(3))

    def end_by_itself(at: Station) -> None:
        run.pass_seconds(0.05)
        assert cancelling.wait(60)

    def cancel_late(name: str) -> None:
        cancelling.set()
        next_began.wait(0.5)  # while one table is cancelled the worker does not go on to the next
        cancel(name)
        cancelled.set()

    def begin(at: Station) -> None:
        next_began.set()
        assert cancelled.wait(60)

    run.lake.at("write", end_by_itself, table="a")
    run.lake.at("facts", begin, table="b")
    monkeypatch.setattr(run.lake, "cancel", cancel_late)
    outcome = run(plan_all(plan_of(slow, compact(slow), timeout_seconds=0), *run.small_tables("b")))
    assert by_table(outcome) == {"a": "failed", "b": "done"}


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
    (stopping,) = [event for event in run.events if isinstance(event, RunStopping)]
    assert (stopping.reason, stopping.grace_seconds) == ("SIGINT", QUICK["stop_grace_seconds"])
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
    (stopping,) = [event for event in run.events if isinstance(event, RunStopping)]
    assert (stopping.reason, stopping.grace_seconds) == ("SIGTERM", 0.05)


def test_whoever_asks_twice_waits_for_no_thread_that_hangs_and_is_told_so(run: Run) -> None:
    plans = run.small_tables("a")
    release = threading.Event()

    def hang(at: Station) -> None:
        run.switch.stop("SIGINT")
        run.wait_for(RunStopping)
        run.switch.stop("SIGINT")
        run.wait_for_cancel()
        run.pass_seconds(0.2)
        release.wait(60)
        raise CommitNotLanded("job group cancelled")

    run.lake.at("write", hang)
    outcome = run(plan_all(*plans), stop_grace_seconds=20.0, hang_grace_seconds=20.0, terminate_hang_seconds=0.1)
    release.set()
    assert run.seconds < 1
    assert (outcome.interrupted_by, by_table(outcome)) == ("SIGINT", {"a": "interrupted"})
    said = [(event.grace_seconds, event.at_most_seconds) for event in run.events if isinstance(event, RunStopping)]
    assert said == [(20.0, 60.0), (0.0, 0.1)]


def test_the_run_has_a_time_limit_of_its_own(run: Run) -> None:
    plans = run.small_tables("a", "b")

    def outlast_the_run(at: Station) -> None:
        run.pass_seconds(0.1)
        assert run.switch.wait(60)

    run.lake.at("write", outlast_the_run)
    outcome = run(plan_all(*plans), run_timeout_seconds=0.05)
    assert outcome.interrupted_by == "timeout of 0.05 s"
    assert by_table(outcome)["b"] == "not_reached"


def test_the_time_of_a_run_begins_before_its_first_table(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """However late the watching thread comes to look at the clock, what a table took by then counts."""
    outlasting, new_thread = threading.Event(), WorkerPool._new_thread

    def watched_late(pool: WorkerPool) -> threading.Thread:
        thread = new_thread(pool)
        start = thread.start

        def start_and_wait() -> None:
            start()
            assert outlasting.wait(60)

        monkeypatch.setattr(thread, "start", start_and_wait)
        return thread

    def outlast_the_run(at: Station) -> None:
        run.pass_seconds(0.1)
        outlasting.set()
        assert run.switch.wait(10)

    monkeypatch.setattr(WorkerPool, "_new_thread", watched_late)
    run.lake.at("write", outlast_the_run)
    outcome = run(plan_all(*run.small_tables("a", "b")), run_timeout_seconds=0.05)
    assert (outcome.interrupted_by, by_table(outcome)["b"]) == ("timeout of 0.05 s", "not_reached")


def test_what_halts_one_run_of_several_leaves_the_next_one_alone(run: Run) -> None:
    watch = StopSwitch()

    def fail(at: Station) -> None:
        raise CommitNotLanded("disk full")

    def unwritable(at: Station) -> None:
        run.switch.halt("E651: the run folder can no longer be written", hold_deletions=True)

    run.lake.at("write", fail, table="a")
    run.lake.at("write", unwritable, table="c")
    for names, expected in (("ab", ["failed", "not_reached"]), ("cd", ["done", "not_reached"]), ("ef", ["done"] * 2)):
        run.switch = watch.next_run()
        assert list(by_table(run(plan_all(*run.small_tables(*names)), max_failures=1)).values()) == expected
    assert (run.switch.halt_reason, run.switch.deletions_held) == (None, None)
    assert (watch.halt_reason, watch.deletions_held) == (None, None)


def test_a_failed_verification_counts_in_the_later_runs_of_a_watch() -> None:
    watch = StopSwitch()
    watch.next_run().verification_failed("a")
    later = watch.next_run()
    assert (later.deletions_held, later.halt_reason) == ("a verification failed on a", None)
    later.verification_failed("b")
    assert later.halt_reason == watch.halt_reason == "a verification failed on a, and on b"


def test_the_time_limit_of_one_run_of_several_ends_that_one(run: Run) -> None:
    watch = StopSwitch()
    run.switch = watch.next_run()

    def outlast_the_run(at: Station) -> None:
        run.pass_seconds(0.1)
        assert run.switch.wait(60)

    run.lake.at("write", outlast_the_run, table="a")
    assert run(plan_all(*run.small_tables("a")), run_timeout_seconds=0.05).interrupted_by == "timeout of 0.05 s"
    assert (watch.stop_reason, watch.wait(0)) == (None, False)
    run.switch = watch.next_run()
    assert by_table(run(plan_all(*run.small_tables("b")), run_timeout_seconds=0.05)) == {"b": "done"}


def test_a_signal_in_one_run_of_several_stops_them_all(run: Run) -> None:
    watch = StopSwitch()
    run.switch = watch.next_run()

    def interrupt_twice(at: Station) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        assert watch.wait(60)
        assert run.switch.wait(60)
        assert not run.switch.urgent
        os.kill(os.getpid(), signal.SIGINT)

    run.lake.at("write", interrupt_twice)
    assert run(plan_all(*run.small_tables("a"))).interrupted_by == "SIGINT"
    for switch in (watch, run.switch, watch.next_run()):
        assert (switch.stop_reason, switch.urgent, switch.wait(0)) == ("SIGINT", True, True)


def test_a_signal_is_the_second_stop_of_a_run_whose_time_is_over() -> None:
    watch = StopSwitch()
    run = watch.next_run()
    run.stop("timeout of 7200 s")
    watch.stop("SIGINT")
    assert (run.stop_reason, run.urgent) == ("timeout of 7200 s", True)
    assert (watch.stop_reason, watch.urgent) == ("SIGINT", False)


ASKED = "20261121T220001Z-0000"


def test_a_run_that_is_asked_ends_at_the_next_safe_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = write_project(tmp_path, {"maintainer.yml": ""})
    run = Run(root / ".maintainer" / "runs")
    watch = StopSwitch()
    run.switch = watch.next_run()
    stop = ["--project", str(root), "stop"]

    def ask(at: Station) -> None:
        assert command([*stop, "20261121T220009Z-0000"]) == 2
        assert not run.switch.wait(0)
        assert command([*stop, ASKED, "--reason", "backup at ten"]) == 0
        assert run.switch.wait(60)

    run.lake.at("write", ask, table="a")
    outcome = run(plan_all(*run.small_tables("a", "b")), stop_grace_seconds=60)
    assert (outcome.interrupted_by, by_table(outcome)["b"]) == ("maintainer stop", "not_reached")
    assert run.lake.tables["b"].version == 1
    assert (exit_code(outcome), watch.stop_reason) == (130, "maintainer stop")
    lines = (run.folder.path / "events.jsonl").read_text().splitlines()
    (note,) = [line for line in map(json.loads, lines) if line.get("about") == "stop_requested"]
    assert note["what"].endswith(": backup at ten")
    assert list((root / ".maintainer" / "stops").iterdir()) == []
    assert command([*stop, ASKED]) == 1
    printed = capsys.readouterr()
    assert printed.out.splitlines()[-1] == f"Run {ASKED} is over; nothing was asked."
    assert "error[E643]: the state of the project has no such run" in printed.err


def test_a_request_for_another_run_and_one_that_is_damaged_stop_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("maintainer.journal.stop_request.LOOK_SECONDS", 0.01)
    run = Run(tmp_path / "runs")
    stops = tmp_path / "stops"
    stops.mkdir()
    (stops / "20261121T220002Z-0000.json").write_text('{"by": "ann", "at_ms": 1}')
    (stops / f"{ASKED}.json").write_text("{")
    run.lake.at("write", lambda at: not run.switch.wait(0.3), table="a")
    assert by_table(run(plan_all(*run.small_tables("a")))) == {"a": "done"}
    assert [path.name for path in stops.iterdir()] == ["20261121T220002Z-0000.json"]
    assert by_table(run(plan_all(*run.small_tables("b")), stop_grace_seconds=60)) != {}
