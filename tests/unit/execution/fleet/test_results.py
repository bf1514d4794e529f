"""What a run leaves: ``results.json`` while it grows, and the rows of the ledger at its end, cut short by a signal."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from maintainer.delta.log.table_place import StoragePlaces
from maintainer.execution.fleet import results
from maintainer.execution.fleet.fleet_bounds import FleetBounds
from maintainer.execution.fleet.results import Results
from maintainer.execution.run.cancellation import StopSwitch
from maintainer.execution.run.run_context import Clock, Emitter, RunContext
from maintainer.journal.journal import Journal
from maintainer.journal.ledger.ledger_pending import PENDING_FILE, read_pending
from maintainer.journal.ledger.ledger_rows import LedgerMark, LedgerRow
from maintainer.model.plan.plan import Problem, TablePlan
from maintainer.model.plan.steps import StepKind
from maintainer.model.run.outcome import RunEnd, RunOutcome, StepOutcome, StepStatus, TableOutcome, TableStatus
from maintainer.model.run.results_document import run_from_fragments, run_from_json, run_to_json, table_to_json
from maintainer.model.table.table_facts import TableRef
from tests.support.runs.fake_lake import FakeLake
from tests.support.runs.plain_verifier import PlainVerifier
from tests.support.runs.planned_steps import compact, plan_all, plan_of, run_fleet
from tests.support.tables.builders import NOW_MS

STEP = StepOutcome("a/compact", StepKind.COMPACT, StepStatus.SUCCEEDED, NOW_MS, 1.5, note='with "quotes" and \u2028')


def test_the_text_from_fragments_is_the_text_of_the_whole() -> None:
    tables = (
        TableOutcome(TableRef("a"), TableStatus.DONE, (STEP,), None, "policies/a.yml", "ann"),
        TableOutcome(TableRef("b"), TableStatus.FAILED, (), Problem("T401", "no such table"), "policies/b.yml"),
    )
    for run in (RunOutcome("r", 1, 2.5, tables, "SIGTERM"), RunOutcome("r", 1, 2.5, ())):
        assert run_from_fragments(run, map(table_to_json, run.tables)) == run_to_json(run)


class Slow:
    """Results of three tables whose file takes a second to write."""

    def __init__(self, runs_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(results, "FEW_TABLES", 2)
        self.now = 0.0
        self.writes: list[float] = []
        journal = Journal.open(runs_dir, "20261121T220001Z-0000", lambda: NOW_MS)
        self.path = journal.folder.path / "results.json"
        clock = Clock(lambda: NOW_MS, lambda: self.now)
        context = RunContext(journal, PlainVerifier(), clock, Emitter(None), StopSwitch(), StoragePlaces())
        plan = plan_all(*(TablePlan(TableRef(name), f"{name}.yml", "d") for name in "abc"))
        self.results = Results(plan, context, NOW_MS, 0.0)
        write = type(journal.folder).write_results

        def slowly(folder: object, document: str) -> None:
            self.now += 1.0
            self.writes.append(self.now)
            write(folder, document)  # type: ignore[arg-type] # the folder itself

        monkeypatch.setattr(type(journal.folder), "write_results", slowly)

    def statuses(self) -> list[str]:
        return [table.status.value for table in run_from_json(self.path.read_text()).tables]


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Slow:
    return Slow(tmp_path / "runs", monkeypatch)


def test_a_write_that_took_long_is_followed_by_a_pause_and_made_up_for(slow: Slow) -> None:
    ref = TableRef("a")
    slow.results.write()
    assert slow.statuses() == ["not_reached"] * 3
    slow.results.began(ref)
    for _ in range(100):
        slow.results.step(ref, STEP)
    assert slow.writes == [1.0]
    slow.now = 19.9
    slow.results.catch_up()
    assert slow.writes == [1.0]
    slow.now = 20.0
    slow.results.catch_up()
    assert slow.writes == [1.0, 21.0]
    assert slow.statuses() == ["interrupted", "not_reached", "not_reached"]
    assert len(json.loads(slow.path.read_text())["tables"][0]["steps"]) == 100
    slow.now = 500.0
    slow.results.catch_up()  # nothing is new
    assert slow.writes == [1.0, 21.0]


def test_the_end_is_written_at_once(slow: Slow) -> None:
    slow.results.write()
    slow.results.finished(TableOutcome(TableRef("b"), TableStatus.DONE, (STEP,)))
    slow.results.write_soon()
    assert slow.statuses() == ["not_reached"] * 3
    slow.results.write()
    assert slow.statuses() == ["not_reached", "done", "not_reached"]


def test_a_run_of_few_tables_is_written_after_every_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(tmp_path / "runs", monkeypatch)
    monkeypatch.undo()
    ref = TableRef("a")
    slow.results.began(ref)
    for number in range(1, 5):
        slow.results.step(ref, STEP)
        assert len(run_from_json(slow.path.read_text()).tables[0].steps) == number


def bytes_written(runs_dir: Path, num_tables: int, monkeypatch: pytest.MonkeyPatch, *, each_seconds: float) -> int:
    """Bytes of all ``results.json`` of a run in which every table has one step that takes so long."""
    written = [0]
    now = [0.0]
    journal = Journal.open(runs_dir, f"20261121T220001Z-{num_tables:04x}", lambda: NOW_MS)
    monkeypatch.setattr(
        type(journal.folder), "write_results", lambda _, text: written.__setitem__(0, written[0] + len(text))
    )
    context = RunContext(
        journal, PlainVerifier(), Clock(lambda: NOW_MS, lambda: now[0]), Emitter(None), StopSwitch(),
        StoragePlaces(),
    )  # fmt: skip
    names = [f"lake/t{number:05d}" for number in range(num_tables)]
    results = Results(
        plan_all(*(TablePlan(TableRef(name), f"{name}.yml", "d") for name in names)), context, NOW_MS, 0.0
    )
    results.write()
    for name in names:
        results.began(TableRef(name))
        now[0] += each_seconds
        results.step(TableRef(name), STEP)
        results.finished(TableOutcome(TableRef(name), TableStatus.DONE, (STEP,)))
        results.write_soon()
    results.write()
    return written[0]


@pytest.mark.parametrize("each_seconds", [0.0, 2.0])
def test_bytes_written_grow_with_the_tables_and_not_with_their_square(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, each_seconds: float
) -> None:
    fleet, larger = (
        bytes_written(tmp_path / "runs", number, monkeypatch, each_seconds=each_seconds) for number in (200, 1_000)
    )
    assert larger < 5.2 * fleet  # by the square it would be 25 times as much
    # 200 events for each hundred tables, and the first and the last: 202 files of about half a KiB a table.
    assert larger < 202 * 1_000 * 520


def test_a_large_run_that_is_slow_is_written_every_five_minutes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Slow(tmp_path / "runs", monkeypatch)
    monkeypatch.setattr(results, "TABLES_A_WRITE", 1)
    slow.results.write()
    slow.results.began(TableRef("a"))
    slow.now = 100.0
    slow.results.step(TableRef("a"), STEP)  # one of three: a write is not due
    slow.now = 300.9
    slow.results.catch_up()
    assert slow.writes == [1.0]
    slow.now = 301.0
    slow.results.catch_up()
    assert slow.writes == [1.0, 302.0]


class Stuck:
    """A ledger that does not come back until it is let go."""

    def __init__(self) -> None:
        self.begun, self.go = threading.Event(), threading.Event()
        self.rows: list[LedgerRow] = []

    location = "ledger"

    def mark(self) -> LedgerMark | None:
        return None

    def steps_of(self, run_id: str) -> frozenset[str]:
        return frozenset()

    def append(self, run_id: str, rows: tuple[LedgerRow, ...]) -> None:
        self.begun.set()
        self.go.wait(20)
        self.rows += rows


class Night:
    def __init__(self, runs_dir: Path) -> None:
        self.lake, self.switch, self.ledger = FakeLake(), StopSwitch(), Stuck()
        self.outcome: RunOutcome
        self.journal = Journal.open(runs_dir, "20261121T220001Z-0000", lambda: NOW_MS)

    def run(self, **bounds: Any) -> RunOutcome:
        table = self.lake.table("t", (1,), (2,))
        quick = {"tick_seconds": 0.01, "stop_grace_seconds": 0.05, **bounds}
        self.outcome = run_fleet(
            plan_all(plan_of(table, compact(table))), self.lake, journal=self.journal, verifier=PlainVerifier(),
            bounds=FleetBounds(**quick), ledger=self.ledger, switch=self.switch,
        )  # fmt: skip
        return self.outcome

    def told(self) -> list[tuple[str, str]]:
        return [(problem.code, problem.what) for problem in self.outcome.problems]

    def waiting(self) -> int:
        return len(read_pending(self.journal.folder.path / PENDING_FILE))


@pytest.fixture
def night(tmp_path: Path) -> Night:
    return Night(tmp_path / "runs")


def test_a_ledger_that_hangs_is_given_up_and_its_rows_stay(night: Night) -> None:
    outcome = night.run(ledger_seconds=0.2)
    assert [table.status for table in outcome.tables] == [TableStatus.DONE]
    assert night.told() == [("E652", "the ledger could not be written: not done within 0.2 s")]
    assert night.waiting() == 1
    night.ledger.go.set()


def test_a_signal_cuts_it_short(night: Night) -> None:
    def stop() -> None:
        assert night.ledger.begun.wait(10)
        night.switch.stop("SIGINT")

    threading.Thread(target=stop, daemon=True).start()
    outcome = night.run()
    assert outcome.tables[0].status is TableStatus.DONE
    assert night.told() == [("E665", "the ledger does not have this run yet: SIGINT left no time to append its rows")]
    assert night.waiting() == 1
    night.ledger.go.set()


def test_after_sigterm_it_is_left_to_the_next_run(night: Night) -> None:
    night.lake.at("landed", lambda at: night.switch.stop("SIGTERM"))
    night.run()
    assert night.told() == [("E665", "the ledger does not have this run yet: SIGTERM left no time to append its rows")]
    assert (night.waiting(), night.ledger.begun.is_set()) == (1, False)


def test_in_time_nothing_is_told(night: Night) -> None:
    night.ledger.go.set()
    night.run(ledger_seconds=10)
    assert (night.told(), night.waiting(), len(night.ledger.rows)) == ([], 0, 1)


def test_its_time_counts_as_the_run_s(night: Night) -> None:
    outcome = night.run(ledger_seconds=0.5)
    assert outcome.duration_seconds >= 0.5
    written = run_from_json((night.journal.folder.path / "results.json").read_text(encoding="utf-8"))
    assert (written.duration_seconds, written.end) == (outcome.duration_seconds, RunEnd.FINISHED)
    night.ledger.go.set()
