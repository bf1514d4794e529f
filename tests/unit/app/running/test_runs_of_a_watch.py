"""The runs of a watch, on a lake in memory: what ends one of them, or befalls it, is not the end of the next."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from maintainer.app import operations
from maintainer.app.engine_access import OpenedEngine
from maintainer.app.planning.make_plan import PlanRequest
from maintainer.app.project_folders import Project
from maintainer.app.running import apply_plan, watch_loop
from maintainer.app.running.run_listener import RunListener, RunResult
from maintainer.app.running.watch_loop import WatchBounds, WatchEnd
from maintainer.app.selection.chosen_tables import ChosenTables
from maintainer.app.selection.run_spec import RunSpec
from maintainer.engine.process_loss import engine_gone
from maintainer.errors import CommitNotLanded, EnvironmentUnfit, ExitCode, MaintainerError, VerifierUnfit
from maintainer.execution.cancellation import StopSwitch
from maintainer.journal.ledger.ledger_pending import OLD_ROWS, PENDING_FILE
from maintainer.model.plan.plan import Plan, Problem
from maintainer.model.run.receipts import Verdict
from tests.support.policies.projects import write_project
from tests.support.runs.fake_lake import FakeLake, Station
from tests.support.runs.plain_verifier import PlainVerifier
from tests.support.runs.planned_steps import compact, plan_all, plan_of
from tests.unit.execution.fleet.run_in_memory import by_table


class Watched(RunListener):
    """A project of tables that lie in memory, and everything that its watch tells."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.lake, self.verifier, self.switch = root, FakeLake(), PlainVerifier(), StopSwitch()
        self.results: list[RunResult] = []
        self.failures: list[Exception] = []
        self.problems: list[Problem] = []
        self.killed: list[bool] = []
        self.bad_looks: list[Exception] = []
        monkeypatch.setattr(operations, "opened_tables", self._opened)
        monkeypatch.setattr(operations, "make_plan", self._plan)
        monkeypatch.setattr(apply_plan, "GreatExpectationsVerifier", lambda: self.verifier)
        self.now = 0.0
        monkeypatch.setattr(operations, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(self.switch, "wait", self._wait)  # no test sleeps between two rounds

    def __call__(self, *tables: str, settings: str = "", rounds: int | None = None) -> WatchEnd:
        files = {f"policies/{name}.yml": f"table: s.{name}\n" for name in tables}
        write_project(self.root, {"maintainer.yml": settings, **files})
        for name in tables:
            self.lake.table(f"s.{name}", (1, 2), (3,))
        bounds = WatchBounds(until_idle=rounds is None, max_rounds=rounds)
        return operations.watch(Project.load(self.root), RunSpec(jobs=1), bounds, self.switch, self)

    def _wait(self, seconds: float) -> bool:
        self.now += seconds
        return self.switch.stop_reason is not None

    @contextmanager
    def _opened(self, project: Project, *_: object, **__: object) -> Iterator[tuple[Project, OpenedEngine, Any]]:
        nothing: Any = None
        yield (
            project,
            OpenedEngine(
                self.lake, lambda location: nothing, nothing, nothing, nothing, kill=lambda: self.killed.append(True)
            ),
            ChosenTables(project.policies),
        )

    def _plan(self, project: Project, engine: FakeLake, request: PlanRequest) -> Plan:
        if self.bad_looks:
            raise self.bad_looks.pop(0)
        tables = [self.lake.tables[policy.table.identifier] for policy in request.policies]
        return plan_all(*(plan_of(table, *([compact(table)] if len(table.live) > 1 else [])) for table in tables))

    def finished(self, result: RunResult) -> None:
        self.results.append(result)

    def problem(self, problem: Problem) -> None:
        self.problems.append(problem)

    def round_failed(self, error: Exception) -> None:
        self.failures.append(error)

    @property
    def statuses(self) -> list[dict[str, str]]:
        return [by_table(result.outcome) for result in self.results]

    @property
    def codes(self) -> list[str]:
        return [error.code if isinstance(error, MaintainerError) else type(error).__name__ for error in self.failures]


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(tmp_path, monkeypatch)


def disk_full(at: Station) -> None:
    raise CommitNotLanded("disk full")


@pytest.mark.parametrize("settings", ["limits: {maxFailures: 1}\n", "batches: [1]\n"])
def test_a_table_that_always_fails_keeps_no_other_from_being_maintained(watched: Watched, settings: str) -> None:
    watched.lake.at("write", disk_full, table="s.bad")
    end = watched("bad", "good", settings=settings)
    assert watched.statuses[:2] == [{"s.bad": "failed", "s.good": "not_reached"}, {"s.good": "done"}]
    assert watched.statuses[2:] == [{"s.bad": "failed", "s.good": "up_to_date"}] * (watch_loop.MAX_TRIES - 1)
    assert end.code is ExitCode.FINDINGS


def test_a_state_that_cannot_be_read_changes_no_end_of_a_run(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nights in a row are said last: by then the run is over, and has said how it ended."""

    def unreadable(runs_dir: Path, outcome: object) -> list[Problem]:
        raise EnvironmentUnfit("another version wrote it", code="E641", where=str(runs_dir))

    monkeypatch.setattr(operations, "in_a_row", unreadable)
    watched("a")
    assert (watched.statuses, watched.failures) == ([{"s.a": "done"}], [])


def test_a_run_without_time_left_is_not_the_end_of_the_watch(watched: Watched) -> None:
    watched.lake.at("write", lambda at: time.sleep(1.5), table="s.a", times=1)
    end = watched("a", "b", settings="limits: {timeout: 1s}\n")
    assert watched.results[0].outcome.interrupted_by == "timeout of 1 s"
    assert watched.statuses[0]["s.b"] == "not_reached"
    assert [len(watched.lake.tables[name].live) for name in ("s.a", "s.b")] == [1, 1]
    assert (watched.switch.stop_reason, end.code) == (None, ExitCode.OK)


@pytest.mark.parametrize(("number", "terminated"), [(signal.SIGINT, False), (signal.SIGTERM, True)])
def test_a_signal_in_a_run_ends_the_watch(watched: Watched, number: signal.Signals, terminated: bool) -> None:
    watched.lake.at("write", lambda at: os.kill(os.getpid(), number), table="s.a")
    before = signal.getsignal(number)
    end = watched("a", "b", rounds=9)
    assert (end.rounds, end.runs) == (1, 1)
    assert watched.statuses[0]["s.b"] == "not_reached"
    assert watched.results[0].outcome.interrupted_by == number.name
    assert (watched.switch.stop_reason, watched.switch.terminated) == (number.name, terminated)
    assert watched.killed == [True] * terminated
    assert signal.getsignal(number) is before


def test_a_refused_round_is_told_and_the_watch_goes_on(watched: Watched) -> None:
    end = watched("a", "b", settings="limits: {maxFiles: 3}\n")
    assert watched.codes == ["A421"]
    assert (end.runs, end.code, watched.statuses) == (0, ExitCode.REFUSED, [])
    assert end.rounds == 2


def bug_in_hook_commits(*_: object) -> None:
    raise ZeroDivisionError("a bug")


def test_a_bug_after_a_run_takes_nothing_from_the_run(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "append_hook_commits", bug_in_hook_commits)
    monkeypatch.setattr(operations, "open_ledger", lambda *_: AnyLedger())
    end = watched("a", "b")
    assert watched.codes == ["ZeroDivisionError"]
    assert watched.statuses == [{"s.a": "done", "s.b": "done"}]
    assert (end.runs, end.code) == (1, ExitCode.OK)


def test_a_bug_after_a_run_hides_no_failed_proof(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "append_hook_commits", bug_in_hook_commits)
    monkeypatch.setattr(operations, "open_ledger", lambda *_: AnyLedger())
    watched.verifier.order = [Verdict.FAIL]
    assert watched("a", "b", rounds=1) == WatchEnd(1, 1, ExitCode.VERIFICATION_FAILED)


@pytest.mark.parametrize(("trouble", "num_looks"), [("rows of an earlier run", 1), ("the ledger", 0)])
def test_old_rows_that_cannot_be_read_hold_back_no_commits_of_the_hook(
    watched: Watched, monkeypatch: pytest.MonkeyPatch, trouble: str, num_looks: int
) -> None:
    class Broken(AnyLedger):
        def append(self, run_id: str, rows: object) -> None:
            if trouble == "the ledger":
                raise CommitNotLanded("read-only")

    looks: list[object] = []
    monkeypatch.setattr(operations, "append_hook_commits", lambda *given: looks.append(given))
    monkeypatch.setattr(operations, "open_ledger", lambda *_: Broken())
    damaged = watched.root / ".maintainer" / "runs" / "20261121T220003Z-7f3a"
    damaged.mkdir(parents=True)
    (damaged / PENDING_FILE).write_text("{")
    watched("a", rounds=1)
    ((problem,),) = [result.outcome.problems for result in watched.results]
    assert problem.code == ("E652" if trouble == "the ledger" else OLD_ROWS)
    assert len(looks) == num_looks


def test_a_failed_proof_stops_the_deletions_of_a_watch_and_a_second_one_in_a_later_run_the_watch(
    watched: Watched,
) -> None:
    watched.lake.at("write", disk_full, table="s.b", times=1)
    watched.verifier.order = [Verdict.FAIL, Verdict.PASS, Verdict.FAIL]
    end = watched("a", "b", "c", rounds=99)
    assert watched.statuses[0] == {"s.a": "verify_failed", "s.b": "failed", "s.c": "done"}
    assert watched.statuses[-1]["s.b"] == "verify_failed"
    assert (end.rounds < 99, end.code) == (True, ExitCode.VERIFICATION_FAILED)
    assert [(problem.code, problem.what) for problem in watched.problems if problem.code == "C715"] == [
        ("C715", "this watch deletes nothing more: a verification failed on s.a")
    ]


class AnyLedger:
    """A ledger that takes every row."""

    location = "ledger"

    def mark(self) -> None:
        return None

    def steps_of(self, run_id: str) -> frozenset[str]:
        return frozenset()

    def append(self, run_id: str, rows: object) -> None:
        """It is kept nowhere."""


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (VerifierUnfit("Great Expectations cannot be imported"), ExitCode.USAGE),
        (ZeroDivisionError("a bug"), ExitCode.BUG),
    ],
)
@pytest.mark.parametrize("times", [1, 99])
@pytest.mark.parametrize("where", ["plan", "run"])
def test_a_round_that_fails_is_told_and_the_next_one_comes(
    watched: Watched, monkeypatch: pytest.MonkeyPatch, error: Exception, code: ExitCode, times: int, where: str
) -> None:
    if where == "plan":
        watched.bad_looks = [error] * times
    else:
        monkeypatch.setattr(operations, "apply_plan", failing(apply_plan.apply_plan, [error] * times))
    end = watched("a")
    once = times == 1
    assert set(watched.failures) == {error}
    assert len(watched.failures) == (1 if once else watch_loop.MAX_TRIES if where == "run" else end.rounds)
    assert (end.code, watched.statuses) == ((ExitCode.OK, [{"s.a": "done"}]) if once else (code, []))


def failing(call: Callable[..., Any], errors: list[Exception]) -> Callable[..., Any]:
    def called(*args: Any, **options: Any) -> Any:
        if errors:
            raise errors.pop()
        return call(*args, **options)

    return called


@pytest.mark.parametrize("error", [engine_gone(None), ConnectionRefusedError("no JVM"), BrokenPipeError("no reader")])
def test_without_an_engine_or_a_reader_the_watch_ends(watched: Watched, error: Exception) -> None:
    watched.bad_looks = [error]
    with pytest.raises(type(error)) as caught:
        watched("a")
    assert (caught.value, watched.failures) == (error, [])
