"""Apply a plan: the last checks before anything is touched, then the run with its journal, verifier and ledger."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from maintainer.app.planning.make_plan import known_tables
from maintainer.app.planning.policy_places import PolicyPlaces
from maintainer.app.planning.run_statistics import keep_lessons
from maintainer.app.project_folders import Project
from maintainer.app.selection.chosen_tables import tables_run_at_once
from maintainer.app.selection.run_spec import RunSpec
from maintainer.engine.protocols import Engine, SignOfLife, worker_name
from maintainer.engine.refusing_buckets import RefusingBuckets
from maintainer.errors import MaintainerError, Refused
from maintainer.execution.cancellation import StopSwitch
from maintainer.execution.fleet.fleet import Fleet
from maintainer.execution.fleet.fleet_bounds import FleetBounds
from maintainer.execution.run_context import Clock, Emitter, RunContext, number_steps
from maintainer.journal.folder.run_folder import new_run_id
from maintainer.journal.journal import Journal
from maintainer.journal.ledger.ledger_rows import LedgerSink
from maintainer.journal.store.state_access import begin_run
from maintainer.model.plan.plan import Plan, Problem, TablePlan, as_problem
from maintainer.model.plan.plan_document import plan_bytes
from maintainer.model.product_version import __version__
from maintainer.model.run.outcome import Preparation, RunOutcome
from maintainer.model.run.progress import ProgressSink
from maintainer.model.table.store_requests import RunRequests
from maintainer.model.table.table_facts import FilesSeen, TableFacts
from maintainer.planning.recheck.policy_bounds import beyond_policy
from maintainer.planning.recheck.staleness import StaleReasons, check_age, recheck, refusal, refused_alone
from maintainer.policy.resolve.resolved import ResolvedPolicy, policy_values
from maintainer.units import format_size
from maintainer.verification.commit_checks_after import GreatExpectationsVerifier


@contextmanager
def open_journal(project: Project, on_problem: Callable[[Problem], None] = lambda problem: None) -> Iterator[Journal]:
    """Make a new run's folder, before the engine is started: the engine's own words go there, too.

    What the block leaves in the folder is published at its end, where the state lies on an object store.

    Args:
        project: The project.
        on_problem: Is given what could not be published.

    Raises:
        FolderUnwritable: E650, nothing was touched.
        EnvironmentUnfit: The store of the state cannot be used; nothing was touched.
    """
    run_id = new_run_id(Clock().now_ms())
    published = begin_run(project.loaded.project, run_id)
    try:
        journal = Journal.open(
            project.runs_dir,
            run_id,
            Clock().now_ms,
            published,
            version=__version__,
            host=socket.gethostname(),
            git_commit=project.git_commit(),
        )
        try:
            yield journal
        finally:
            journal.close()
    finally:
        problem = None if published is None else published.end()
        if problem is not None:
            on_problem(problem)


def check_saved_plan(
    project: Project,
    engine: Engine,
    plan: Plan,
    away: Mapping[str, SignOfLife],
    *,
    now_ms: int,
    exact: bool = False,
    all_or_nothing: bool = False,
) -> Plan:
    """Check that a saved plan still holds, for every table, before any is touched.

    Args:
        project: The project.
        engine: Reads the tables as they are now.
        plan: The saved plan.
        away: Signs of life that tables wait for, by their identifiers.
        now_ms: Now, milliseconds since 1970 UTC.
        exact: The tables must be at the very versions that were planned, or the whole plan is refused.
        all_or_nothing: One table that is not as planned refuses the whole plan.

    Returns:
        The plan, reduced to bins whose files are all still live. A table that is not as planned is blocked, with every
        reason; one that cannot be read has the error. Neither has a step.

    Raises:
        Refused: A404 too old; A405 made for another environment; A403 stale, where all or nothing is asked for.
    """
    check_age(plan, now_ms)
    if plan.environment != project.env:
        what, help = "the plan was made for another environment", "pass the same --env, or make the plan again"
        raise Refused(what, code="A405", found=plan.environment or "none", allowed=project.env or "none", help=help)
    policies = {policy.table: policy for policy in project.policies}
    stale: list[StaleReasons] = []
    by_number: dict[int, TablePlan] = {}
    policy_places = PolicyPlaces(project.policies, engine.places)
    buckets = RefusingBuckets(away, lambda: any(table.steps for table in by_number.values()))
    with engine.worker(worker_name("check")) as worker:
        # What waits for a store or a metastore comes last: then others wait for it.
        for number in sorted(range(len(plan.tables)), key=lambda number: plan.tables[number].ref.identifier in away):
            table = plan.tables[number]
            checked: TablePlan | StaleReasons = table
            try:
                if table.steps:
                    facts = buckets.facts(worker.reader, table.ref)
                    checked = _check(table, policies.get(table.ref), facts, now_ms=now_ms, exact=exact)
            except MaintainerError as error:
                stale.append(StaleReasons(table.ref, (f"it cannot be read: {error.what} [{error.code}]",)))
                by_number[number] = replace(table, steps=(), problem=as_problem(error))
                continue
            if isinstance(checked, StaleReasons):
                stale.append(checked)
                checked = refused_alone(table, checked)
            else:
                policy_places.opened(checked, worker.reader)
            by_number[number] = checked
    tables = [by_number[number] for number in range(len(plan.tables))]
    once = policy_places.each_once(tables)
    for before, after in zip(tables, once, strict=True):
        if before.problem is None and after.problem is not None and before.steps:
            stale.append(StaleReasons(after.ref, (f"{after.problem.what} [{after.problem.code}]",)))
    if stale and (exact or all_or_nothing):
        raise refusal(stale)
    return replace(plan, tables=once)


def _check(
    table: TablePlan, policy: ResolvedPolicy | None, facts: TableFacts, *, now_ms: int, exact: bool
) -> TablePlan | StaleReasons:
    table = replace(table, checked=FilesSeen.of(facts, now_ms))
    if policy is None:
        return recheck(table, facts, None, exact=exact)
    policy = policy.planned(table.policy_digest, facts.size_bytes)
    checked = recheck(table, facts, policy.digest, policy_values_now=policy_values(policy), exact=exact)
    if isinstance(checked, StaleReasons):
        return checked
    reasons = beyond_policy(checked, policy, facts)
    return StaleReasons(table.ref, reasons) if reasons else checked


def check_run_limits(project: Project, plan: Plan) -> None:
    """Refuse a run that would rewrite or delete more than the project allows; nothing is trimmed in silence.

    Raises:
        Refused: A421, with the figures.
    """
    settings = project.loaded.project
    size_bytes = sum(step.size_bytes for step in plan.rewrites)
    rewritten, deleted = sum(step.num_files for step in plan.rewrites), plan.num_deleted
    num_files, broken = rewritten + deleted, []
    if settings.max_bytes is not None and size_bytes > settings.max_bytes:
        broken.append(("limits.maxBytes", format_size(size_bytes), format_size(settings.max_bytes)))
    if settings.max_files is not None and num_files > settings.max_files:
        found = f"{num_files:,} files ({rewritten:,} to rewrite, {deleted:,} to delete)"
        broken.append(("limits.maxFiles", found, f"{settings.max_files:,} files"))
    if broken:
        what = "the run would rewrite or delete more than the project allows"
        found = "\n".join(f"{key}: {exceeded}" for key, exceeded, _ in broken)
        allowed = "\n".join(f"{key}: {allowed}" for key, _, allowed in broken)
        help = "select fewer tables with --select, or raise the limit in a reviewed change"
        raise Refused(what, code="A421", where="maintainer.yml", found=found, allowed=allowed, help=help)


@dataclass(frozen=True, slots=True)
class RunSurroundings:
    """What a run has beside its plan.

    Args:
        on_event: Called with each event of the run, from any of its threads.
        switch: Ends the run from outside.
        preparation: What came before, for the outcome.
        requests: Says what was asked of stores so far, for the outcome.
    """

    on_event: ProgressSink | None = None
    switch: StopSwitch = field(default_factory=StopSwitch)
    preparation: Preparation = Preparation()  # noqa: RUF009 (frozen)
    requests: Callable[[], RunRequests | None] = lambda: None


def apply_plan(
    project: Project,
    engine: Engine,
    plan: Plan,
    journal: Journal,
    ledger: LedgerSink | None,
    spec: RunSpec,
    around: RunSurroundings | None = None,
) -> RunOutcome:
    """Carry out a checked plan; every table ends with exactly one outcome.

    Args:
        project: The project, with the bounds that the specification leaves open.
        engine: Does the work.
        plan: What to do.
        journal: This run's record, open.
        ledger: Where the run's rows go; None keeps them in the run folder.
        spec: How many tables at once, and the bounds of the run.
        around: Who hears of the run, and what ends it from outside.

    Raises:
        MaintainerError: Nothing was touched: verification would not be possible, or the run folder cannot be used.
    """
    journal.folder.write_plan(plan_bytes(plan))
    settings, around, clock = project.loaded.project, around or RunSurroundings(), Clock()
    bounds = FleetBounds(
        jobs=spec.jobs or tables_run_at_once(table.ref for table in plan.tables),
        max_failures=spec.max_failures if spec.max_failures is not None else settings.max_failures,
        run_timeout_seconds=settings.timeout_seconds if spec.timeout_seconds is None else spec.timeout_seconds,
        batches=settings.batches if spec.batches is None else spec.batches,
    )
    context = RunContext(
        journal, GreatExpectationsVerifier(), clock, Emitter(around.on_event), around.switch, engine.places,
        step_numbers=number_steps(plan), known_tables=known_tables(project), leases=journal.leases(clock.now_ms),
        other_runs=journal.other_runs(), requests=around.requests,
    )  # fmt: skip
    outcome = Fleet(plan, engine, context, bounds, ledger, around.preparation).run()
    keep_lessons(journal.folder.path, plan, outcome)
    return outcome


def engine_log_of(journal: Journal) -> Path:
    """Return the path of the engine's own log: ``spark.log`` in the run folder."""
    return journal.folder.path / "spark.log"
