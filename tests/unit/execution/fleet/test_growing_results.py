"""``results.json`` while a run grows: the same text as ever, written at most a twentieth of the time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from maintainer.delta.log.table_place import StoragePlaces
from maintainer.execution.fleet import results
from maintainer.execution.fleet.results import Results
from maintainer.execution.run.cancellation import StopSwitch
from maintainer.execution.run.run_context import Clock, Emitter, RunContext
from maintainer.journal.journal import Journal
from maintainer.model.plan.plan import Problem, TablePlan
from maintainer.model.plan.steps import StepKind
from maintainer.model.run.outcome import RunOutcome, StepOutcome, StepStatus, TableOutcome, TableStatus
from maintainer.model.run.results_document import run_from_fragments, run_from_json, run_to_json, table_to_json
from maintainer.model.table.table_facts import TableRef
from tests.support.runs.fake_lake import PlainVerifier, plan_all
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
    found = Results(plan_all(*(TablePlan(TableRef(name), f"{name}.yml", "d") for name in names)), context, NOW_MS, 0.0)
    found.write()
    for name in names:
        found.began(TableRef(name))
        now[0] += each_seconds
        found.step(TableRef(name), STEP)
        found.finished(TableOutcome(TableRef(name), TableStatus.DONE, (STEP,)))
        found.write_soon()
    found.write()
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
