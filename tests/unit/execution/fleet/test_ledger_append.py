"""The ledger at the end of a run: bounded, cut short by a signal, and never lost."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from maintainer.execution.fleet.fleet import FleetBounds, run_fleet
from maintainer.execution.run.cancellation import StopSwitch
from maintainer.journal.journal import Journal
from maintainer.journal.ledger.ledger_mark import LedgerMark
from maintainer.journal.ledger.ledger_pending import PENDING_FILE, read_pending
from maintainer.journal.ledger.ledger_rows import LedgerRow
from maintainer.model.run.outcome import RunEnd, RunOutcome, TableStatus
from maintainer.model.run.results_document import run_from_json
from tests.support.runs.fake_lake import FakeLake, PlainVerifier, compact, plan_all, plan_of
from tests.support.tables.builders import NOW_MS


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
        return [(one.code, one.what) for one in self.outcome.problems]

    def waiting(self) -> int:
        return len(read_pending(self.journal.folder.path / PENDING_FILE))


@pytest.fixture
def night(tmp_path: Path) -> Night:
    return Night(tmp_path / "runs")


def test_a_ledger_that_hangs_is_given_up_and_its_rows_stay(night: Night) -> None:
    outcome = night.run(ledger_seconds=0.2)
    assert [one.status for one in outcome.tables] == [TableStatus.DONE]
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
    assert night.told() == [("E652", "the ledger could not be written: stopped: SIGINT")]
    assert night.waiting() == 1
    night.ledger.go.set()


def test_after_sigterm_it_is_left_to_the_next_run(night: Night) -> None:
    night.lake.at("landed", lambda at: night.switch.stop("SIGTERM"))
    night.run()
    assert night.told() == [("E652", "the ledger was not written: after SIGTERM there is no time for it")]
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
