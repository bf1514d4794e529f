"""A bench for one table's plan: a lake in memory, a journal and a verifier, and one call that runs the plan."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maintainer.delta.log.table_place import StoragePlaces
from maintainer.engine.protocols import TablePlaces
from maintainer.execution.cancellation import StopSwitch, TableControl
from maintainer.execution.run_context import Clock, Emitter, RetryBounds, RunContext
from maintainer.execution.table.table_run import TableRun
from maintainer.execution.table.table_worker import TableWorker
from maintainer.journal.event_log import EVENTS_FILE, read_events
from maintainer.journal.journal import Journal
from maintainer.journal.memory.table_records import TablePast, remembered
from maintainer.model.plan.plan import TablePlan
from maintainer.model.run.outcome import TableOutcome
from maintainer.model.run.progress import ProgressEvent
from maintainer.model.table.table_facts import TableRecord
from tests.support.checker.truth_records import flat
from tests.support.runs.fake_lake import FakeLake
from tests.support.runs.fake_table import FakeTable
from tests.support.runs.plain_verifier import PlainVerifier
from tests.support.tables.builders import NOW_MS
from tests.support.writers.recorded_events import unfinished

NO_WAITING = RetryBounds(first_pause_seconds=0.0)


class Bench:
    """A lake, a journal and a verifier, and one call that runs a table's plan."""

    def __init__(self, runs_dir: Path) -> None:
        self.lake = FakeLake()
        self.verifier = PlainVerifier()
        self.runs_dir = runs_dir
        self.switch = StopSwitch()
        self.events: list[ProgressEvent] = []
        self.retry = NO_WAITING
        self.places: TablePlaces = StoragePlaces()
        self.passed_ms = 0
        """What has passed between the runs so far, beside a millisecond each."""
        self._number = 0
        self.journal: Journal

    def run(
        self, plan: TablePlan, *, record: TableRecord | None = None, control: TableControl | None = None
    ) -> TableOutcome:
        self._number += 1
        run_id = f"20261121T22000{self._number}Z-0000"
        self.journal = Journal.open(self.runs_dir, run_id, lambda: NOW_MS + self._number + self.passed_ms)
        context = RunContext(
            self.journal, self.verifier, Clock(self.journal.now_ms), Emitter(self.events.append), self.switch,
            self.places, self.retry,
        )  # fmt: skip
        past = TablePast(record or self.record(plan), unfinished(self.runs_dir, except_run=run_id))
        with self.lake.worker("w") as engine:
            worker = TableWorker(plan, engine, context, control or TableControl(self.switch))
            try:
                return TableRun(worker, past).run()
            finally:
                self.journal.close()

    def record(self, plan: TablePlan) -> TableRecord:
        assert plan.observed is not None
        observed = plan.observed
        return remembered(self.runs_dir).record_of(observed.table_id, observed.location, self.places)

    def recorded(self, kind: str) -> list[Any]:
        events = tuple(read_events(self.journal.folder.path / EVENTS_FILE).events)
        return [flat(dict(event)) for event in events if event["type"] == kind]


@dataclass(frozen=True)
class PlacesLeft:
    """Implements ``TablePlaces``: some locations hold no table any more."""

    left: tuple[str, ...]

    def place_at(self, location: str) -> str | None:
        return None if location in self.left else location

    def may_hold(self, location: str, table_id: str) -> bool:
        return location not in self.left


def statuses(outcome: TableOutcome) -> list[str]:
    return [f"{step.kind}: {step.status.value}" for step in outcome.steps]


def three_files(bench: Bench, name: str = "t") -> FakeTable:
    return bench.lake.table(name, (1, 2), (3,), (4, 5))
