"""What a run tells and writes down: progress, results after each step, and rows of the ledger."""

from __future__ import annotations

import json
from typing import Any

import pytest

from maintainer.errors import CommitNotLanded
from maintainer.execution.cancellation import TERMINATED
from maintainer.execution.fleet.fleet_bounds import FleetBounds
from maintainer.journal.event_log import EVENTS_FILE, read_events
from maintainer.journal.journal import Journal
from maintainer.journal.ledger.ledger_rows import LedgerMark, LedgerRow
from maintainer.model.plan.plan_document import to_json
from maintainer.model.run.outcome import StepStatus
from maintainer.model.run.progress import (
    LedgerAppending,
    ProgressEvent,
    RunFinished,
    RunStarted,
    StepHeartbeat,
    TableFinished,
    TableStarted,
)
from tests.support.runs.fake_lake import Station
from tests.support.runs.planned_steps import compact, plan_all, plan_of, run_fleet, vacuum
from tests.support.tables.builders import NOW_MS
from tests.unit.execution.fleet.run_in_memory import QUICK, Run, by_table


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


def test_a_damaged_record_holds_back_deletions_and_no_rewrite(run: Run) -> None:
    table = run.lake.table("a", (1, 2), (3,))
    journal = Journal.open(run.runs_dir, "20261120T220001Z-0000", lambda: NOW_MS)
    journal.quarantine(table.facts(), "version 9 is wrong")
    journal.close()
    path = journal.folder.path / EVENTS_FILE
    path.write_bytes(path.read_bytes().replace(b"is wrong", b"is wr0ng"))
    table.storage.add("old")
    outcome = run(plan_all(plan_of(table, compact(table), vacuum("old", removed_in_version=0))))
    rewritten, deleted = outcome.tables[0].steps
    assert rewritten.status is StepStatus.SUCCEEDED
    assert deleted.error is not None
    assert (deleted.error.code, deleted.error.where) == ("E641", str(path))
    assert "old" in table.storage


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


@pytest.mark.parametrize(("times", "told"), [(0, [300.0]), (1, [QUICK["stop_grace_seconds"]]), (2, [])])
def test_the_ledger_is_said_to_have_the_time_that_it_has(run: Run, times: int, told: list[float]) -> None:
    run.ledger = Sink()
    table = run.lake.table("a", (1, 2), (3,))

    def stop(at: Station) -> None:
        for _ in range(times):
            run.switch.stop("SIGINT")

    run.lake.at("commit", stop, times=1)
    run(plan_all(plan_of(table, compact(table))))
    assert [event.limit_seconds for event in run.events if isinstance(event, LedgerAppending)] == told


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
    assert results["interrupted_by"] == finished["outcome"]["interrupted_by"] == TERMINATED
