"""Plans and applies on real Delta tables, without a command line: policy, facts, plan, commits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from maintainer.app.planning.read_table import read_for_planning
from maintainer.delta.log.table_place import StoragePlaces
from maintainer.engine.protocols import TableEngine
from maintainer.execution.cancellation import StopSwitch, TableControl
from maintainer.execution.run_context import Clock, Emitter, RetryBounds, RunContext
from maintainer.execution.table.table_run import TableRun
from maintainer.execution.table.table_worker import TableWorker
from maintainer.journal.journal import Journal
from maintainer.journal.memory.table_records import Remembered
from maintainer.model.plan.plan import TablePlan
from maintainer.model.run.outcome import TableOutcome
from maintainer.model.table.table_facts import TableFacts, TableRef
from maintainer.planning.plan_input import PlanMoment, PlanOptions
from maintainer.planning.planner import plan_table
from maintainer.policy.resolve.resolved import OptimizePolicy, ResolvedPolicy
from tests.support.runs.plain_verifier import PlainVerifier
from tests.support.tables.builders import make_optimize, make_policy

NOW_MS = 4_000_000_000_000
TODAY = date(2026, 11, 21)


@dataclass
class Maintenance:
    """Plans and applies policies with one worker's engine."""

    engine: TableEngine
    runs_dir: Path
    number: int = field(default=0)
    options: PlanOptions = field(default_factory=PlanOptions)

    def plan(self, path: Path, optimize: OptimizePolicy | None = None, **others: Any) -> TablePlan:
        """The plan of a table under a policy."""
        policy = self.policy(path, optimize, **others)
        table = read_for_planning(
            self.engine.reader,
            policy,
            Remembered(),
            StoragePlaces(),
            when=PlanMoment(NOW_MS, TODAY),
            options=self.options,
        )
        return plan_table(table)

    def policy(self, path: Path, optimize: OptimizePolicy | None = None, **others: Any) -> ResolvedPolicy:
        """A policy for the table at a path."""
        return make_policy(name=str(path), optimize=optimize or make_optimize(max_size=1 << 30), **others)

    def facts(self, path: Path) -> TableFacts:
        """The table now."""
        return self.engine.reader.facts(TableRef(str(path)))

    def apply(self, plan: TablePlan, *, during: Callable[[], None] = lambda: None) -> TableOutcome:
        """Carry out a plan, with a journal of its own; ``during`` is called before it begins."""
        self.number += 1
        journal = Journal.open(self.runs_dir, f"20261121T22{self.number:04d}Z-0000", lambda: NOW_MS)
        switch = StopSwitch()
        context = RunContext(
            journal,
            PlainVerifier(),
            Clock(lambda: NOW_MS),
            Emitter(None),
            switch,
            StoragePlaces(),
            RetryBounds(attempts=1, first_pause_seconds=0.0),
        )
        try:
            during()
            return TableRun(TableWorker(plan, self.engine, context, TableControl(switch))).run()
        finally:
            journal.close()
