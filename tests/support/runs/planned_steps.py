"""Plans made from a table as it is, of steps that a test chooses: compactions, deletions, properties."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from maintainer.engine.protocols import Engine
from maintainer.execution.cancellation import StopSwitch
from maintainer.execution.fleet.fleet import Fleet
from maintainer.execution.fleet.fleet_bounds import FleetBounds
from maintainer.execution.run_context import Clock, Emitter, RetryBounds, RunContext, number_steps
from maintainer.journal.journal import Journal
from maintainer.journal.ledger.ledger_rows import LedgerSink
from maintainer.model.plan.plan import Observed, Plan, TablePlan
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import Batch, Bin, CompactStep, SetPropertiesStep, Step, VacuumStep
from maintainer.model.run.outcome import RunOutcome
from maintainer.model.run.progress import ProgressSink
from maintainer.model.table.table_facts import RemovedFile, TableFacts, TableRef
from maintainer.planning.selection.schema_columns import planned_columns
from maintainer.verification.verification_result import Verifier
from tests.support.runs.fake_table import ROW_BYTES, FakeTable
from tests.support.tables.builders import NOW_MS

REASON = Reason(ReasonCode.SMALL_FILES, "small files", "policies/t.yml:3")


def plan_of(table: FakeTable, *steps: Step, timeout_seconds: int = 60, **changes: Any) -> TablePlan:
    """A plan of the steps given, made from the table as it is."""
    return plan_for(table.facts(), *steps, timeout_seconds=timeout_seconds, **changes)


def plan_for(facts: TableFacts, *steps: Step, timeout_seconds: int = 60, **changes: Any) -> TablePlan:
    """A plan of the steps given, made from facts, of whichever engine."""
    observed = Observed(
        location=facts.location, table_id=facts.table_id, version=facts.version, columns=planned_columns(facts),
        partition_columns=facts.partition_columns, protocol=facts.protocol, num_files=len(facts.files),
        size_bytes=facts.size_bytes,
    )  # fmt: skip
    made = TablePlan(
        facts.ref, "policies/t.yml", "sha256:policy", observed, tuple(steps), timeout_seconds=timeout_seconds
    )
    return replace(made, **changes)


def compact(table: FakeTable, *batches: tuple[str, ...]) -> CompactStep:
    """A compaction: each tuple of paths is one batch of one bin; all live files in one batch by default."""
    files = {file.path: file for file in table.facts().files}
    chosen = batches or (tuple(files),)
    made = tuple(Batch((Bin(tuple(files[path] for path in paths)),)) for paths in chosen)
    return CompactStep(made, max_file_size_bytes=1 << 20, max_threads=2, reasons=(REASON,))


def vacuum(*paths: str, removed_in_version: int | None = 1, added_in_version: int | None = None) -> VacuumStep:
    """A deletion of files by their paths."""
    versions = (removed_in_version, False, added_in_version)
    files = tuple(RemovedFile(path, ROW_BYTES, NOW_MS, "data", *versions) for path in paths)
    return VacuumStep(files, NOW_MS, 7 * 86400, "policy", (REASON,))


def properties(**after: str) -> SetPropertiesStep:
    """Set properties that are not set."""
    return SetPropertiesStep(tuple((name, None) for name in after), tuple(after.items()), tuple(REASON for _ in after))


def plan_all(*tables: TablePlan) -> Plan:
    """A plan of a run."""
    return Plan(NOW_MS, NOW_MS + 86_400_000, tuple(sorted(tables, key=lambda table: table.ref.identifier)))


def run_fleet(
    plan: Plan,
    engine: Engine,
    *,
    journal: Journal,
    verifier: Verifier,
    bounds: FleetBounds | None = None,
    on_event: ProgressSink | None = None,
    clock: Clock | None = None,
    ledger: LedgerSink | None = None,
    switch: StopSwitch | None = None,
    known_tables: tuple[TableRef, ...] = (),
    retry: RetryBounds | None = None,
) -> RunOutcome:
    """Carry out a plan as an apply does, with a journal that is open."""
    bounds, clock = bounds or FleetBounds(), clock or Clock()
    context = RunContext(
        journal, verifier, clock, Emitter(on_event), switch or StopSwitch(), engine.places, retry or RetryBounds(),
        number_steps(plan), known_tables, journal.leases(clock.now_ms), journal.other_runs(),
    )  # fmt: skip
    return Fleet(plan, engine, context, bounds, ledger).run()
