"""Operations on a project: plan, apply, watch, status, why, verify and undelete, each one function.

The command line, ``watch``, ``retry`` and the Python API call these functions and print the result. Each takes a
loaded project and a ``RunSpec``, opens the engine for as long as it needs it, and writes the record of its run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial

from maintainer.app.engine_access import OpenedEngine, open_engine, project_engine
from maintainer.app.lookback.hook_commits import append_hook_commits
from maintainer.app.lookback.ledger_access import open_ledger
from maintainer.app.lookback.report_files import write_run_pages
from maintainer.app.lookback.run_history import in_a_row
from maintainer.app.planning.make_plan import (
    OnTable,
    PlannedTable,
    PlanRequest,
    compare_plan,
    fit,
    make_plan,
    new_policies,
)
from maintainer.app.project_folders import Project
from maintainer.app.running.apply_plan import (
    RunSurroundings,
    apply_plan,
    check_run_limits,
    check_saved_plan,
    engine_log_of,
    open_journal,
)
from maintainer.app.running.lasting_state import lasting_state_problem
from maintainer.app.running.observers.observed_run import OnProblem, handed_on, observed_run, webhook_of
from maintainer.app.running.restore_files import undelete_run
from maintainer.app.running.run_listener import PreparationClock, RunListener, RunResult
from maintainer.app.running.verify_commits import VerifyRequest, quarantine_events, verify_tables
from maintainer.app.running.watch_loop import WatchBounds, WatchEnd
from maintainer.app.running.watch_loop import watch as watch_tables
from maintainer.app.selection.chosen_tables import (
    ChosenTables,
    WatchedTables,
    chosen_before_session,
    chosen_tables,
    opened_table,
    opened_tables,
    searched,
    tables_out_of_reach,
)
from maintainer.app.selection.managed_search import remember_found, with_recorded_tables
from maintainer.app.selection.run_spec import RunSpec, narrowed
from maintainer.app.status.status_look import StatusLook, auto_compact_of, look_at_all
from maintainer.engine.process_loss import is_engine_lost
from maintainer.engine.protocols import Engine, worker_name
from maintainer.engine.session_options import SILENT
from maintainer.errors import EnvironmentUnfit
from maintainer.execution.cancellation import TERMINATED, StopSwitch, signals_stop
from maintainer.execution.run_context import Clock
from maintainer.journal.journal import Journal
from maintainer.journal.ledger.ledger_pending import OLD_ROWS
from maintainer.journal.ledger.ledger_rebuild import LedgerStore
from maintainer.journal.memory.past_runs import PastRun
from maintainer.model.plan.plan import Plan, Problem
from maintainer.model.run.auto_compaction import SESSION_ENABLED, AutoCompactSwitch
from maintainer.model.run.commit_verdict import VerifyRun
from maintainer.model.run.outcome import RunOutcome
from maintainer.model.run.receipts import UndeleteReceipt
from maintainer.policy.project.policy_changes import policies_at
from maintainer.policy.resolve.resolved import ResolvedPolicy
from maintainer.report.plan.plan_markdown import PlanComparison
from maintainer.units import count_of
from maintainer.verification.great_expectations_suite import import_great_expectations

LONG_WORK_BYTES = 4 << 30
"""Bytes that Spark rewrites from which on a JVM that compiles for long work is worth a second start."""

_HELD_HELP = "look at what failed; vacuums begin again when `maintainer watch` is started again"


@dataclass(frozen=True, slots=True)
class MadePlan:
    """A plan, and what differs from the policies at a commit where that was asked for.

    ``project`` knows the tables that a search found, where there was one.
    """

    plan: Plan
    project: Project
    comparison: PlanComparison | None = None


@dataclass(frozen=True, slots=True)
class TableDecisions:
    """Everything that planning decided about one table, and whether its writers compact, see `auto_compact_of`."""

    policy: ResolvedPolicy
    plan: Plan
    auto_compact: AutoCompactSwitch | str | None


def plan(project: Project, spec: RunSpec, *, compare: str | None = None, on_table: OnTable | None = None) -> MadePlan:
    """Work out what would be done to each table. Changes no byte of any table.

    Args:
        project: The project.
        spec: Which tables, with which engine and budget.
        compare: A Git commit whose policies are planned, too; None compares with nothing. A table that does not exist
            and had no policy there, or at the selection's ``since``, is a note and no problem.
        on_table: Called with each table as it is planned.

    Raises:
        ProjectError: A selector cannot be read, or selects nothing.
        EnvironmentUnfit: The engine cannot be used; problems of single tables are in the plan.
    """
    ref, comparison = compare or spec.selection.since, None
    with opened_tables(project, spec, "plan") as (project, opened, chosen):
        before = () if ref is None else policies_at(project.loaded, ref)
        new = {} if ref is None else new_policies(project, before, ref)
        request = replace(_plan_request(spec, opened, chosen, on_table), new=new)
        made = narrowed(make_plan(project, opened.engine, request), project.loaded, spec.selection, command="plan")
        if compare is not None:
            comparison = compare_plan(project, opened.engine, request, made, before, compare, spec.budget)
    return MadePlan(fit(project, made, spec.budget), project, comparison)


def apply(
    project: Project, spec: RunSpec, saved: Plan | None = None, *, listener: RunListener | None = None
) -> RunResult | None:
    """Carry out a plan: a saved one after checking it, else one that is made now.

    Args:
        project: The project.
        spec: Which tables, with which engine, budget and bounds.
        saved: A plan that was made before; None plans now.
        listener: What is shown, and whether a plan that was just made is carried out.

    Returns:
        What came of it, also of tables that failed; None where the listener did not agree to the plan.

    Raises:
        ProjectError: A selector cannot be read, or selects nothing.
        Refused: A limit of the project, or a saved plan that is refused as a whole; no table was changed.
        EnvironmentUnfit: The engine or the run folder cannot be used; no table was changed.
    """
    listener, clock = listener or RunListener(), PreparationClock()
    project, chosen = chosen_before_session(project, spec, "apply", asks=saved is None)
    problems: list[Problem] = []

    def on_problem(problem: Problem) -> None:
        problems.append(problem)
        listener.problem(problem)

    _warn_of_state(project, on_problem)
    with open_journal(project, on_problem) as journal:
        options = replace(project_engine(project.loaded.project, spec.engine), log_path=engine_log_of(journal))
        with ExitStack() as engines:
            opened = engines.enter_context(open_engine(options))
            start = engines.enter_context(opened.starting_beside(import_great_expectations))
            project = searched(project, spec, opened)
            asked = saved or chosen or chosen_tables(project, spec, command="apply")
            clock.started()
            if isinstance(asked, Plan):
                project, to_do = _checked(project, spec, opened, asked)
            else:
                request = replace(_plan_request(spec, opened, asked, listener.table_planned), on_first_step=start)
                made = make_plan(project, opened.engine, request)
                to_do = fit(project, narrowed(made, project.loaded, spec.selection, command="apply"), spec.budget)
            check_run_limits(project, to_do)
            preparation = clock.planned()
            if saved is None and not listener.agrees_to(to_do):
                return None
            if to_do.spark_lane_bytes > LONG_WORK_BYTES and options.spark is None:
                engines.close()
                opened = engines.enter_context(open_engine(replace(options, long_work=True)))
                start = engines.enter_context(opened.starting_beside(import_great_expectations))
            has_steps = any(table.steps for table in to_do.tables)
            if has_steps:
                start()
                # Spark starts while the first files are read and written; a machine without Java is told before.
                preparation = replace(preparation, start_seconds=preparation.start_seconds + opened.start_java())
            remember_found(project, to_do, on_problem)
            ledger = open_ledger(project, opened, on_problem)
            with signals_stop(switch := StopSwitch()), observed_run(project, to_do, listener, on_problem) as sink:
                count = partial(clock.requests, opened, to_do, project.ledger_location, project.loaded.project.prices)
                around = RunSurroundings(sink, switch, preparation, count)
                outcome = apply_plan(project, opened.engine, to_do, journal, ledger, spec, around)
            if has_steps and outcome.interrupted_by is None:
                opened.start()  # raises what kept it from starting: then nothing was changed
            _add_hook_commits(project, opened.engine, to_do, ledger, outcome, on_problem)
            if outcome.interrupted_by == TERMINATED or switch.urgent:
                opened.kill()
            with signals_stop(switch):  # who has asked twice still hears how it ended; Spark's end may take long
                return _finish(project, outcome, to_do, journal, problems, listener)


def _checked(project: Project, spec: RunSpec, opened: OpenedEngine, saved: Plan) -> tuple[Project, Plan]:
    """A saved plan as far as it still holds, and the project, which then knows all of its tables."""
    project = with_recorded_tables(project, (table.ref for table in saved.tables))
    away = tables_out_of_reach(opened, (table.ref for table in saved.user_tables if table.steps))
    spec.engine.stages.began(f"checking {count_of(saved.num_tables, 'table')} of the plan")
    return project, check_saved_plan(
        project, opened.engine, saved, away, now_ms=Clock().now_ms(), exact=spec.exact,
        all_or_nothing=spec.all_or_nothing,
    )  # fmt: skip


def watch(project: Project, spec: RunSpec, bounds: WatchBounds, switch: StopSwitch, listener: RunListener) -> WatchEnd:
    """Look at the tables again and again, and apply what is due, until the switch stops it or nothing is left.

    Each look that finds something to do is a run of its own, with its own folder. What ends one run, or what one look
    is refused for or fails with, does not end the next.

    Raises:
        ProjectError: A selector cannot be read, or selects nothing.
        EnvironmentUnfit: The engine cannot be used, or is gone.
    """
    _warn_of_state(project, listener.problem)
    with signals_stop(switch), opened_tables(project, spec, "watch", long_work=True) as (project, opened, chosen):
        ledger = open_ledger(project, opened, listener.problem)
        watched = WatchedTables(project, spec, opened, chosen, time.monotonic())
        clock = PreparationClock()

        def plan_tables(due: tuple[ResolvedPolicy, ...]) -> Plan:
            nonlocal clock
            clock = PreparationClock()
            tables = replace(watched.chosen, policies=due)
            request = _plan_request(spec, opened, tables, listener.table_planned, ends=False)
            request = replace(request, selection=("watch",), stages=SILENT)
            return fit(watched.project, make_plan(watched.project, opened.engine, request), spec.budget)

        def apply_due(due: Plan) -> RunOutcome:
            project = watched.project
            check_run_limits(project, due)
            remember_found(project, due, listener.problem)
            preparation = clock.planned()
            outcome: RunOutcome | None = None
            held_before = switch.deletions_held
            try:
                with open_journal(project, listener.problem) as journal:
                    with observed_run(project, due, listener, listener.problem) as sink:
                        prices = project.loaded.project.prices
                        requests = partial(clock.requests, opened, due, project.ledger_location, prices)
                        around = RunSurroundings(sink, switch.next_run(), preparation, requests)
                        outcome = apply_plan(project, opened.engine, due, journal, ledger, spec, around)
                    _finish(project, outcome, due, journal, [], listener)
                    _add_hook_commits(project, opened.engine, due, ledger, outcome, listener.problem)
            except Exception as error:
                if outcome is None or is_engine_lost(error):
                    raise
                listener.round_failed(error)  # the run is over and recorded: how its tables ended counts
            if switch.deletions_held != held_before:
                what = f"this watch deletes nothing more: {switch.deletions_held}"
                listener.problem(Problem("C715", what, help=_HELD_HELP))
            return outcome

        end = watch_tables(watched.policies, plan_tables, apply_due, bounds, switch, time.monotonic, listener)
        if switch.terminated:
            opened.kill()
        return end


def why(project: Project, spec: RunSpec, table: str) -> TableDecisions:
    """Plan the table that a name means and return every decision about it. Changes nothing.

    Raises:
        ProjectError: E613, no policy names the table and no rule manages it, or several are called so.
    """
    planned: list[PlannedTable] = []
    options = project_engine(project.loaded.project, spec.engine)
    with opened_table(project, table, options) as (project, opened, policy):
        tables_out_of_reach(opened, (policy.table,))
        made = make_plan(
            project,
            opened.engine,
            PlanRequest((policy,), Clock().now_ms(), on_table=planned.append, stages=options.stages),
        )
        auto_compact = auto_compact_of(planned[0], opened.session_setting(SESSION_ENABLED))
        return TableDecisions(planned[0].policy, made, auto_compact)


@contextmanager
def status(project: Project, spec: RunSpec, *, scheduled: bool = False) -> Iterator[Callable[[], StatusLook]]:
    """Open the engine and yield a function that looks at the tables as they are now; it may be called repeatedly.

    Args:
        project: The project.
        spec: Which tables, and how many at once.
        scheduled: Only tables that a run is working on, or whose files the next apply would rewrite.

    Raises:
        ProjectError: A selector cannot be read, or selects nothing.
    """
    with opened_tables(project, spec, "status") as (project, opened, chosen):
        yield lambda: look_at_all(project, opened, chosen, spec, at_ms=Clock().now_ms(), scheduled=scheduled)


def verify(project: Project, spec: RunSpec, request: VerifyRequest, on_problem: OnProblem) -> VerifyRun:
    """Verify past commits, whoever made them, record the results, and notify of each new quarantine.

    Changes no table. ``on_problem`` is called with what was not delivered; it does not change the result.

    Raises:
        Refused: A412, there is nothing to accept.
        NotSupportedYet: E620, over Spark Connect.
    """
    with _recorded(project, spec) as (opened, journal), opened.proving() as worker:
        request = replace(request, away=tables_out_of_reach(opened, (target.ref for target in request.targets)))
        webhook, stage = webhook_of(project), f"verifying {count_of(len(request.targets), 'table')}"
        hooks = () if webhook is None else (webhook,)
        with spec.engine.stages.waiting(stage), handed_on(hooks, None, on_problem) as sink:
            return verify_tables(project, worker, journal, quarantine_events(project, journal, request, sink))


def undelete(project: Project, spec: RunSpec, policy: ResolvedPolicy, run_id: str) -> UndeleteReceipt:
    """Bring back the files that a run's vacuum took away, and record it as a run of its own.

    Raises:
        TableError: T430 and T431, nothing of this run can come back; or the table cannot be read.
    """
    with _recorded(project, spec) as (opened, journal), opened.engine.worker(worker_name("undelete")) as worker:
        tables_out_of_reach(opened, (policy.table,))
        return undelete_run(project, worker, journal, policy, run_id)


def _warn_of_state(project: Project, on_problem: OnProblem) -> None:
    problem = lasting_state_problem(project)
    if problem is not None:
        on_problem(problem)


def _plan_request(
    spec: RunSpec, opened: OpenedEngine, chosen: ChosenTables, on_table: OnTable | None, *, ends: bool = True
) -> PlanRequest:
    tables = (policy.table for policy in chosen.policies if not policy.is_ledger)
    # A plan that also has problems with places says those, too.
    away = tables_out_of_reach(opened, tables, ends=ends and not chosen.problems)
    return PlanRequest(
        chosen.policies, Clock().now_ms(), spec.described, spec.plan_jobs or spec.jobs, spec.planning, on_table,
        problems=chosen.problems, stages=spec.engine.stages, away=away,
    )  # fmt: skip


def _add_hook_commits(
    project: Project,
    engine: Engine,
    to_do: Plan,
    ledger: LedgerStore | None,
    outcome: RunOutcome,
    on_problem: OnProblem,
) -> None:
    # A ledger that could not take the run's own rows takes none of the hook's; after a stop there is no time for them.
    is_written = all(problem.code == OLD_ROWS for problem in outcome.problems)
    if ledger is not None and outcome.interrupted_by is None and is_written:
        problem = append_hook_commits(project, engine, to_do, ledger)
        if problem is not None:
            on_problem(problem)


def _finish(
    project: Project,
    outcome: RunOutcome,
    to_do: Plan,
    journal: Journal,
    problems: list[Problem],
    listener: RunListener,
) -> RunResult:
    """Write what people read beside the results, show the result, and name tables in trouble for several runs."""
    for problem in write_run_pages(project, PastRun(journal.folder.path, to_do, outcome)):
        problems.append(problem)
        listener.problem(problem)
    result = RunResult(outcome, to_do, journal.folder.path, (*problems, *outcome.problems))
    listener.finished(result)
    with suppress(OSError, EnvironmentUnfit):  # the run is over, and has said how it ended
        for problem in in_a_row(project.runs_dir, outcome):
            listener.problem(problem)
    return result


@contextmanager
def _recorded(project: Project, spec: RunSpec) -> Iterator[tuple[OpenedEngine, Journal]]:
    with open_journal(project) as journal:
        options = replace(project_engine(project.loaded.project, spec.engine), log_path=engine_log_of(journal))
        with open_engine(options) as opened:
            yield opened, journal
