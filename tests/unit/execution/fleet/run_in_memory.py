"""Runs of plans against one lake in memory, with a clock that the test moves and every event kept."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from maintainer.execution.cancellation import StopSwitch
from maintainer.execution.fleet.fleet_bounds import FleetBounds
from maintainer.execution.run_context import Clock, RetryBounds
from maintainer.journal.event_log import read_events, run_events
from maintainer.journal.folder.run_folder import RunFolder
from maintainer.journal.journal import Journal
from maintainer.journal.memory.recorded_outcome import recorded_outcome
from maintainer.model.plan.plan import Plan, TablePlan
from maintainer.model.run.outcome import RunEnd, RunOutcome, TableStatus, run_from_json
from maintainer.model.run.progress import ProgressEvent, TableFinished
from tests.support.runs.fake_lake import FakeLake
from tests.support.runs.plain_verifier import PlainVerifier
from tests.support.runs.planned_steps import compact, plan_of, run_fleet
from tests.support.tables.builders import NOW_MS

QUICK: dict[str, Any] = {
    "tick_seconds": 0.01, "stop_grace_seconds": 0.05, "hang_grace_seconds": 0.1,
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
        self.journal: Journal

    def __call__(self, plan: Plan, **bounds: Any) -> RunOutcome:
        self.count += 1
        self.journal = journal = Journal.open(self.runs_dir, f"20261121T22000{self.count}Z-0000", lambda: NOW_MS)
        self.folder = journal.folder
        outcome = run_fleet(
            plan, self.lake, journal=journal, verifier=self.verifier, bounds=FleetBounds(**{**QUICK, **bounds}),
            on_event=self._keep, switch=self.switch, ledger=self.ledger, clock=Clock(monotonic=lambda: self.seconds),
            retry=RetryBounds(first_pause_seconds=0.0),
        )  # fmt: skip
        assert [table.ref for table in outcome.tables] == [table.ref for table in plan.tables]
        assert sum(outcome.count(status) for status in TableStatus) == len(plan.tables)
        outcomes = [event.outcome for event in self.events if isinstance(event, TableFinished)]
        assert sorted(outcomes[-len(plan.tables) :], key=lambda table: table.ref) == list(outcome.tables)
        assert run_from_json((self.folder.path / "results.json").read_text()) == outcome
        path = self.folder.path / "events.jsonl"
        assert recorded_outcome(plan, run_events(path, read_events(path).events), RunEnd.FINISHED) == outcome
        return outcome

    def end_process(self) -> None:
        """What the end of a run's process does where a thread of it still hangs: its lock goes with it."""
        self.journal.given_up.clear()
        self.journal.close()

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


def by_table(outcome: RunOutcome) -> dict[str, str]:
    return {table.ref.identifier: table.status.value for table in outcome.tables}
