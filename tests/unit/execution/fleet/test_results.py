"""What a run leaves: ``results.json`` while it grows, and the rows of the ledger at its end, cut short by a signal."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from maintainer.delta.log.table_place import StoragePlaces
from maintainer.execution.cancellation import StopSwitch
from maintainer.execution.fleet import results
from maintainer.execution.fleet.fleet_bounds import FleetBounds
from maintainer.execution.fleet.results import Results
from maintainer.execution.run_context import Clock, Emitter, RunContext
from maintainer.journal.folder.atomic_files import FolderUnwritable
from maintainer.journal.journal import Journal
from maintainer.journal.ledger.ledger_pending import PENDING_FILE, read_pending
from maintainer.journal.ledger.ledger_rows import LedgerMark, LedgerRow
from maintainer.model.codec import canonical_json
from maintainer.model.plan.plan import Plan, Problem, TablePlan
from maintainer.model.plan.steps import StepKind
from maintainer.model.run.outcome import (
    RunEnd,
    RunOutcome,
    StepOutcome,
    StepStatus,
    TableOutcome,
    TableStatus,
    run_from_fragments,
    run_from_json,
    run_to_document,
    table_to_json,
)
from maintainer.model.run.progress import StepFinished, TableFinished, TableStarted
from maintainer.model.run.run_events import Intent
from maintainer.model.table.commit_records import CommitStamp
from maintainer.model.table.table_facts import TableRef
from tests.support.runs.fake_lake import FakeLake
from tests.support.runs.plain_verifier import PlainVerifier
from tests.support.runs.planned_steps import compact, plan_all, plan_of, run_fleet, vacuum
from tests.support.tables.builders import NOW_MS

STEP = StepOutcome("a/compact", StepKind.COMPACT, StepStatus.SUCCEEDED, NOW_MS, 1.5, note='with "quotes" and \u2028')


def test_the_text_from_fragments_is_the_text_of_the_whole() -> None:
    tables = (
        TableOutcome(TableRef("a"), TableStatus.DONE, (STEP,), None, "policies/a.yml", "ann"),
        TableOutcome(TableRef("b"), TableStatus.FAILED, (), Problem("T401", "no such table"), "policies/b.yml"),
    )
    for run in (RunOutcome("r", 1, 2.5, tables, "SIGTERM"), RunOutcome("r", 1, 2.5, ())):
        pieces = run_from_fragments(run, map(table_to_json, run.tables))
        assert b"".join(pieces).decode("utf-8", "surrogatepass") == canonical_json(run_to_document(run)) + "\n"


def plan_of_tables(names: Iterable[str]) -> Plan:
    """Tables with two steps each."""
    lake = FakeLake()
    return plan_all(
        *(plan_of(table, compact(table), vacuum("x")) for table in (lake.table(name, (1,)) for name in names))
    )


def end_step(context: RunContext, results: Results, table: TablePlan, number: int = 0) -> None:
    """Record the end of one of a table's steps as a worker does."""
    step = replace(STEP, step_id=table.step_id(table.steps[number]))
    context.record(StepFinished(NOW_MS, table.ref.identifier, number, step))
    results.write_soon()


def end_table(context: RunContext, results: Results, table: TablePlan) -> None:
    context.record(TableFinished(NOW_MS, TableOutcome(table.ref, TableStatus.DONE)))
    results.write_soon()


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
        self.context, self.plan = context, plan_of_tables("abc")
        self.results = Results(self.plan, context, NOW_MS, 0.0)
        write = type(journal.folder).write_results

        def slowly(folder: object, document: Iterator[bytes]) -> None:
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
    slow.results.write()
    assert slow.statuses() == ["not_reached"] * 3
    slow.context.tell(TableStarted(NOW_MS, "b", 2))
    for number in (0, 1):
        end_step(slow.context, slow.results, slow.plan.tables[0], number)
    assert slow.writes == [1.0]
    slow.now = 19.9
    slow.results.catch_up()
    assert slow.writes == [1.0]
    slow.now = 20.0
    slow.results.catch_up()
    assert slow.writes == [1.0, 21.0]
    assert slow.statuses() == ["interrupted", "interrupted", "not_reached"]
    assert [len(table["steps"]) for table in json.loads(slow.path.read_text())["tables"]] == [2, 0, 0]
    slow.now = 500.0
    slow.results.catch_up()  # nothing is new
    assert slow.writes == [1.0, 21.0]


def test_the_end_is_written_at_once(slow: Slow) -> None:
    slow.results.write()
    end_table(slow.context, slow.results, slow.plan.tables[1])
    assert slow.statuses() == ["not_reached"] * 3
    slow.results.write()
    assert slow.statuses() == ["not_reached", "done", "not_reached"]


def test_a_run_of_few_tables_is_written_after_every_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(tmp_path / "runs", monkeypatch)
    monkeypatch.undo()
    for number in (0, 1):
        end_step(slow.context, slow.results, slow.plan.tables[0], number)
        assert len(run_from_json(slow.path.read_text()).tables[0].steps) == number + 1


def test_a_table_has_its_first_end_and_a_step_that_runs_is_not_there_yet(slow: Slow) -> None:
    table = slow.plan.tables[0]
    intent = Intent(
        NOW_MS, "a", "id", "mem:/a", CommitStamp("r", table.step_id(table.steps[0]), 0, "d"), "compact", 1, True
    )
    slow.context.record(intent)
    slow.results.write()
    assert (slow.statuses()[0], json.loads(slow.path.read_text())["tables"][0]["steps"]) == ("interrupted", [])
    end_table(slow.context, slow.results, table)
    slow.context.record(TableFinished(NOW_MS, TableOutcome(table.ref, TableStatus.FAILED)))
    slow.results.write()
    assert slow.statuses()[0] == "done"


def test_what_could_not_be_recorded_is_in_the_results_all_the_same(slow: Slow) -> None:
    slow.context.journal.close()  # every further line fails
    with pytest.raises(FolderUnwritable):
        end_step(slow.context, slow.results, slow.plan.tables[0])
    slow.results.write()
    assert len(run_from_json(slow.path.read_text()).tables[0].steps) == 1


def bytes_written(runs_dir: Path, num_tables: int, monkeypatch: pytest.MonkeyPatch, *, each_seconds: float) -> int:
    """Bytes of all ``results.json`` of a run in which every table has one step that takes so long."""
    written = [0]
    now = [0.0]
    journal = Journal.open(runs_dir, f"20261121T220001Z-{num_tables:04x}", lambda: NOW_MS)
    monkeypatch.setattr(
        type(journal.folder), "write_results", lambda _, text: written.__setitem__(0, written[0] + sum(map(len, text)))
    )
    context = RunContext(
        journal, PlainVerifier(), Clock(lambda: NOW_MS, lambda: now[0]), Emitter(None), StopSwitch(),
        StoragePlaces(),
    )  # fmt: skip
    plan = plan_of_tables(f"lake/t{number:05d}" for number in range(num_tables))
    results = Results(plan, context, NOW_MS, 0.0)
    results.write()
    for table in plan.tables:
        now[0] += each_seconds
        end_step(context, results, table)
        end_table(context, results, table)
    results.write()
    return written[0]


@pytest.mark.slow
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
    slow.now = 100.0
    end_step(slow.context, slow.results, slow.plan.tables[0])  # one of three: a write is not due
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


def test_a_ledger_that_breaks_in_a_way_that_nobody_foresaw_fails_no_run(
    night: Night, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(rows: object) -> None:
        raise KeyError("a column")

    monkeypatch.setattr(night.ledger, "append", lambda run_id, rows: broken(rows))
    assert [table.status for table in night.run().tables] == [TableStatus.DONE]
    assert night.told() == [("E652", "the ledger could not be written: KeyError: 'a column'")]
    assert night.waiting() == 1


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
