"""Applies a plan: the last checks before anything is touched, then the run with its journal, verifier and ledger."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from maintainer import __version__
from maintainer.app.learned import keep_lessons
from maintainer.app.make_plan import known_tables
from maintainer.app.policy_places import PolicyPlaces
from maintainer.app.project import Project
from maintainer.engine import Engine, TableReader
from maintainer.errors import MaintainerError, Refused
from maintainer.execution.attempt import problem_of
from maintainer.execution.batches import BatchSize
from maintainer.execution.clock import Clock
from maintainer.execution.fleet import FleetBounds, run_fleet
from maintainer.execution.interruption import StopSwitch
from maintainer.journal.journal import Journal
from maintainer.journal.ledger import LedgerSink
from maintainer.journal.run_id import new_run_id
from maintainer.model.outcome import RunOutcome
from maintainer.model.plan import Plan, TablePlan
from maintainer.model.progress import ProgressSink
from maintainer.model.steps import RewriteStep
from maintainer.model.table import TableRef
from maintainer.model.wire import to_json
from maintainer.planning.staleness import StaleReasons, check_age, recheck, refusal, refused_alone
from maintainer.units import format_size
from maintainer.verification.checks import GreatExpectationsVerifier


@dataclass(frozen=True, slots=True)
class ApplyRequest:
    """How to run. ``timeout_seconds`` bounds the whole run; each table has its own in the plan.

    ``switch`` ends the run from outside. ``batches`` None takes those of maintainer.yml.
    """

    jobs: int = 1
    fail_fast: bool = False
    max_failures: int | None = None
    timeout_seconds: float | None = None
    on_event: ProgressSink | None = None
    switch: StopSwitch | None = None
    batches: tuple[BatchSize, ...] | None = None


def open_journal(project: Project, started_at_ms: int) -> Journal:
    """Make the run's folder, before the engine is started: the engine's own words go there, too.

    Raises:
        FolderUnwritable: E650, nothing was touched.
    """
    return Journal.open(
        project.runs_dir,
        new_run_id(started_at_ms),
        Clock().now_ms,
        version=__version__,
        host=socket.gethostname(),
        git_commit=project.git_commit(),
    )


@dataclass(frozen=True, slots=True)
class SavedPlanCheck:
    """How a saved plan is held against the tables.

    ``exact`` demands the very versions that were planned. ``all_or_nothing`` refuses the whole plan for one table that
    is not as planned; ``exact`` does so, too.
    """

    exact: bool = False
    all_or_nothing: bool = False


def check_saved_plan(project: Project, engine: Engine, plan: Plan, *, now_ms: int, check: SavedPlanCheck) -> Plan:
    """Check that a saved plan still holds, for every table, before any is touched.

    Returns:
        The plan, reduced to bins whose files are all still live. A table that is not as planned is blocked, with every
        reason; one that cannot be read has the error. Neither has a step.

    Raises:
        Refused: A404 too old; A405 made for another environment; A403 stale, where all or nothing is asked for.
    """
    project.judge_again()
    check_age(plan, now_ms)
    if plan.environment != project.env:
        raise Refused(
            "the plan was made for another environment",
            code="A405",
            found=plan.environment or "none",
            allowed=project.env or "none",
            help="pass the same --env, or make the plan again",
        )
    digests = {policy.table: policy.digest for policy in project.policies}
    stale: list[StaleReasons] = []
    tables: list[TablePlan] = []
    policy_places = PolicyPlaces(project.policies, engine.places)
    with engine.worker("check") as worker:
        for table in plan.tables:
            checked = _check(table, digests, worker.reader, exact=check.exact) if table.steps else table
            if isinstance(checked, MaintainerError):
                stale.append(StaleReasons(table.ref, (f"it cannot be read: {checked.what} [{checked.code}]",)))
                checked = replace(table, steps=(), problem=problem_of(checked))
            elif isinstance(checked, StaleReasons):
                stale.append(checked)
                checked = refused_alone(table, checked)
            else:
                policy_places.opened(checked, worker.reader)
            tables.append(checked)
    if stale and (check.exact or check.all_or_nothing):
        raise refusal(stale)
    return replace(plan, tables=policy_places.each_once(tables))


def _check(
    table: TablePlan, digests: Mapping[TableRef, str], reader: TableReader, *, exact: bool
) -> TablePlan | StaleReasons | MaintainerError:
    try:
        facts = reader.facts(table.ref)
        return recheck(table, facts, digests.get(table.ref), exact=exact)
    except MaintainerError as error:
        return error


def check_run_limits(project: Project, plan: Plan) -> None:
    """Refuse a run that would rewrite more than the project allows; nothing is trimmed in silence.

    Raises:
        Refused: A421, with the figures.
    """
    settings = project.loaded.project
    batches = [batch for _, step in plan.steps() if isinstance(step, RewriteStep) for batch in step.batches]
    size_bytes, num_files = sum(batch.size_bytes for batch in batches), sum(len(batch.files) for batch in batches)
    broken = []
    if settings.max_bytes is not None and size_bytes > settings.max_bytes:
        broken.append(("limits.maxBytes", format_size(size_bytes), format_size(settings.max_bytes)))
    if settings.max_files is not None and num_files > settings.max_files:
        broken.append(("limits.maxFiles", f"{num_files:,} files", f"{settings.max_files:,} files"))
    if broken:
        raise Refused(
            "the run would rewrite more than the project allows",
            code="A421",
            where="maintainer.yml",
            found="\n".join(f"{key}: {found}" for key, found, _ in broken),
            allowed="\n".join(f"{key}: {allowed}" for key, _, allowed in broken),
            help="select fewer tables with --select, or raise the limit in a reviewed change",
        )


def apply_plan(
    project: Project, engine: Engine, plan: Plan, journal: Journal, ledger: LedgerSink | None, request: ApplyRequest
) -> RunOutcome:
    """Carry out a checked plan; every table ends with exactly one outcome.

    Raises:
        MaintainerError: Nothing was touched: verification would not be possible, or the run folder cannot be used.
    """
    journal.folder.write_plan(to_json(plan, indent=2))
    settings = project.loaded.project
    bounds = FleetBounds(
        jobs=request.jobs,
        fail_fast=request.fail_fast,
        max_failures=request.max_failures if request.max_failures is not None else settings.max_failures,
        run_timeout_seconds=request.timeout_seconds or settings.timeout_seconds,
        batches=settings.batches if request.batches is None else request.batches,
    )
    outcome = run_fleet(
        plan,
        engine,
        journal=journal,
        verifier=GreatExpectationsVerifier(),
        bounds=bounds,
        on_event=request.on_event,
        ledger=ledger,
        switch=request.switch,
        known_tables=known_tables(project),
    )
    keep_lessons(journal.folder.path, plan, outcome)
    return outcome


def engine_log_of(journal: Journal) -> Path:
    """Where the engine's own words go: ``spark.log`` in the run folder."""
    return journal.folder.path / "spark.log"
