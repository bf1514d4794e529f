"""What all tables of one run share."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from maintainer.engine import TablePlaces
from maintainer.execution.clock import Clock
from maintainer.execution.interruption import StopSwitch
from maintainer.execution.retry import RetryBounds
from maintainer.journal.journal import Journal
from maintainer.journal.leases import Leases
from maintainer.journal.unfinished_writes import Writing
from maintainer.model.plan import Plan
from maintainer.model.progress import ProgressEvent, ProgressSink
from maintainer.model.table import TableRef
from maintainer.verification.result import Verifier


class Emitter:
    """Hands progress events to a sink, one at a time. A sink that raises is not asked again; the run goes on."""

    def __init__(self, sink: ProgressSink | None) -> None:
        self._sink = sink
        self._lock = threading.Lock()
        self.broken: Exception | None = None

    def __call__(self, event: ProgressEvent) -> None:
        """Give the sink an event."""
        with self._lock:
            if self._sink is None or self.broken is not None:
                return
            try:
                self._sink(event)
            except Exception as error:  # a closed terminal must not end a commit
                self.broken = error


@dataclass(frozen=True, slots=True)
class RunContext:
    """A run's journal, verifier, clock, switch and bounds.

    ``step_numbers`` are places in the plan, from 1. ``known_tables`` are all tables of the project: their logs may need
    files of a table that is vacuumed. ``leases`` keep other runs off a table that is worked on; None asks for none.
    ``writings`` are what runs that are over wrote and never tried to commit.
    ``places`` tell which locations are one table.
    """

    journal: Journal
    verifier: Verifier
    clock: Clock
    emit: Emitter
    switch: StopSwitch
    places: TablePlaces
    retry: RetryBounds = field(default_factory=RetryBounds)
    step_numbers: Mapping[str, int] = field(default_factory=dict)
    known_tables: tuple[TableRef, ...] = ()
    leases: Leases | None = None
    writings: tuple[Writing, ...] = ()

    @property
    def run_id(self) -> str:
        """The run."""
        return self.journal.run_id


def number_steps(plan: Plan) -> dict[str, int]:
    """The place of each step in the plan, from 1, by step id."""
    return {table.step_id(step): number for number, (table, step) in enumerate(plan.steps(), start=1)}
