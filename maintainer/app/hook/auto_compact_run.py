"""One attempt of auto compaction, on the thread and in the session that were made for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from maintainer.engine.protocols import TableEngine
from maintainer.errors import CommitConflict, MaintainerError, TableError
from maintainer.execution.table.rewrite_metrics import rewrite_metrics
from maintainer.model.plan.plan import TablePlan
from maintainer.model.plan.steps import Batch, CompactStep
from maintainer.model.run.auto_compaction import (
    SESSION_ENABLED,
    STEP_KIND,
    AutoCompactResult,
    AutoCompactStatus,
    AutoCompactSwitch,
    SwitchSource,
    switch_of,
)
from maintainer.model.run.optimize_metrics import OptimizeMetrics
from maintainer.model.run.outcome import CommitReceipt, Proof
from maintainer.model.table.commit_records import CommitStamp
from maintainer.model.table.table_facts import TableFacts, TableRef
from maintainer.planning.auto_compact_plan import AutoCompactArguments, plan_auto_compact, settings_of

if TYPE_CHECKING:
    from maintainer.delta.engine.table_engine import DeltaTableEngine
    from maintainer.delta.spark.spark_session import SparkSession

_running: set[str] = set()
_running_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class HookRequest:
    """What the writer asked for. ``enabled`` None leaves it to session and table."""

    spark: SparkSession
    ref: TableRef
    group: str
    enabled: bool | None
    arguments: AutoCompactArguments


def run_hook(request: HookRequest) -> AutoCompactResult:
    """Decide and, if it is worth it, compact.

    Raises:
        MaintainerError: It did not work.
    """
    from maintainer.delta.engine.table_engine import DeltaEngine
    from maintainer.delta.log.table_place import StoragePlaces
    from maintainer.delta.log.write_history import properties_now
    from maintainer.delta.spark.spark_session import lend_session

    name = request.ref.identifier
    # The caller's own setting decides, and our sessions must not have it: so it is read here.
    session = request.spark.conf.get(SESSION_ENABLED, None)
    if request.enabled is False or (request.enabled is None and (session or "").strip().lower() == "false"):
        source = SwitchSource.ARGUMENT if request.enabled is False else SwitchSource.SESSION
        return _disabled(name, AutoCompactSwitch(False, source))
    with DeltaEngine(lend_session(request.spark)).worker(request.group) as engine:
        properties = properties_now(engine.jvm, request.ref)
        if properties is not None:
            try:
                switch = switch_of(session, properties)
            except ValueError as error:
                return AutoCompactResult(AutoCompactStatus.FAILED, name, str(error))
            if request.enabled:
                switch = AutoCompactSwitch(True, SwitchSource.ARGUMENT)
            if not switch.enabled:
                return _disabled(name, switch)
        else:
            switch = AutoCompactSwitch(True, SwitchSource.ARGUMENT)  # there is no such table: reading it says so
        facts = engine.reader.facts(request.ref)
        with _alone(StoragePlaces().place_at(facts.location) or facts.location) as alone:
            if not alone:
                reason = "another auto compaction of this table is running in this process"
                return AutoCompactResult(AutoCompactStatus.NOT_QUALIFIED, name, reason, switch)
            return _decide(request, engine, facts, switch)


def _disabled(name: str, switch: AutoCompactSwitch) -> AutoCompactResult:
    return AutoCompactResult(AutoCompactStatus.DISABLED, name, f"auto compaction is {switch.text}", switch)


@contextmanager
def _alone(place: str) -> Iterator[bool]:
    """Whether nobody else in this process compacts the table just now: two would only conflict."""
    with _running_lock:
        free = place not in _running
        if free:
            _running.add(place)
    try:
        yield free
    finally:
        if free:
            with _running_lock:
                _running.discard(place)


def _decide(
    request: HookRequest, engine: DeltaTableEngine, facts: TableFacts, switch: AutoCompactSwitch
) -> AutoCompactResult:
    from maintainer.delta.log.write_history import partitions_written

    name = request.ref.identifier
    try:
        settings = settings_of(request.arguments, facts, lambda key: request.spark.conf.get(key, None))
    except ValueError as error:
        return AutoCompactResult(AutoCompactStatus.FAILED, name, str(error), switch)
    written = partitions_written(engine.jvm, facts) if settings.modified_partitions_only else None
    started_at_ms = int(time.time() * 1000)
    try:
        decision = plan_auto_compact(facts, settings, written, now_ms=started_at_ms)
    except TableError as error:
        # A table that cannot be maintained is not a failure of this attempt.
        return AutoCompactResult(
            AutoCompactStatus.NOT_QUALIFIED, name, error.what, switch, settings, error_code=error.code
        )
    found = AutoCompactResult(
        AutoCompactStatus.NOT_QUALIFIED, name, decision.reason, switch, settings, decision.partitions
    )
    if decision.step is None:
        return found
    return _compact(request, engine, facts, decision.step, found, started_at_ms)


def _compact(
    request: HookRequest,
    engine: TableEngine,
    facts: TableFacts,
    step: CompactStep,
    found: AutoCompactResult,
    started_at_ms: int,
) -> AutoCompactResult:
    """Rewrite batch by batch; what landed stays, also when a later batch does not."""
    landed: list[tuple[Batch, CommitReceipt]] = []
    problem: MaintainerError | None = None
    for number, batch in enumerate(step.batches):
        stamp = CommitStamp(request.group, f"{request.ref.identifier}/{STEP_KIND}", number, "")
        try:
            landed.append((batch, engine.writer.rewrite(facts, step, batch, stamp, _no_intent)))
        except MaintainerError as error:
            problem = error
            break
    status = AutoCompactStatus.COMPACTED
    reason, code = found.reason, None
    if problem is not None:
        status = AutoCompactStatus.YIELDED if isinstance(problem, CommitConflict) else AutoCompactStatus.FAILED
        reason = problem.what + (f" (found: {problem.found})" if problem.found else "")
        code = problem.code
    return replace(
        found,
        status=status,
        reason=reason,
        error_code=code,
        version=landed[-1][1].version if landed else None,
        metrics=_metrics(facts, step, landed, started_at_ms),
    )


def _no_intent(read_version: int, proof: Proof | None) -> None:
    """There is no run folder to write INTENT into; an attempt that dies leaves at most files that nobody refers to."""


def _metrics(
    facts: TableFacts, step: CompactStep, landed: list[tuple[Batch, CommitReceipt]], started_at_ms: int
) -> OptimizeMetrics:
    ended_at_ms = int(time.time() * 1000)
    plan = TablePlan(facts.ref, "", "")
    return rewrite_metrics(plan, step, facts, landed, started_at_ms=started_at_ms, ended_at_ms=ended_at_ms)
