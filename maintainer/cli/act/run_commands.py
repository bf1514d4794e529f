"""``maintainer apply``, ``retry``, ``watch`` and ``stop``: do it, prove each step, record it, or end it.

``retry`` takes up what a run left undone. It plans anew, so what is done meanwhile is not done twice. ``watch`` looks
again and again, and applies what is due.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from maintainer.app import operations
from maintainer.app.planning.make_plan import PlannedTable
from maintainer.app.planning.plan_output import read_saved_plan
from maintainer.app.running.run_control import stop_run
from maintainer.app.running.run_listener import RunListener, RunResult
from maintainer.app.running.watch_loop import WatchBounds
from maintainer.app.selection.chosen_tables import chosen_before_session
from maintainer.app.selection.left_undone import LeftUndone, RunRest, left_undone, taken_up, unfinished_tables
from maintainer.app.selection.managed_search import declared_places, tables_found_before, with_recorded_tables
from maintainer.app.selection.run_spec import RunSpec
from maintainer.app.status.metrics_endpoint import DEFAULT_HOST, metrics_endpoint
from maintainer.cli.act.run_output import YES, RunOutput, exit_code_of, is_approved, require_approval
from maintainer.cli.context import CliContext, now_ms, open_project, print_document, warn
from maintainer.cli.main import report_bug
from maintainer.cli.options import (
    BUDGET,
    ENGINE,
    FAILURES,
    FILE,
    JOBS,
    ROLLOUT,
    SAVED_PLAN,
    SCHEDULE,
    SELECTION,
    SHARD,
    SPREAD,
    is_policy_file,
    output_option,
    pause,
    spec_options,
)
from maintainer.errors import ExitCode, MaintainerError
from maintainer.execution.cancellation import StopSwitch
from maintainer.execution.table.planned_ends import planned_problem
from maintainer.model.plan.plan import Plan, Problem, TablePlan
from maintainer.model.run.progress import ProgressSink
from maintainer.report.run.run_text import render_run
from maintainer.report.status_documents import end_json
from maintainer.report.style import Style
from maintainer.report.text_layout import printable, tables_and_ledger
from maintainer.units import MAX_DURATION_SECONDS, count_of

if TYPE_CHECKING:
    from maintainer.app.status.run_metrics import RunMetrics


@click.command("apply")
@click.argument("plan_file", metavar="[PLAN]", required=False, type=FILE)
@spec_options(SELECTION, SHARD, ENGINE, SPREAD, BUDGET, JOBS, FAILURES, ROLLOUT, SAVED_PLAN, SCHEDULE)
@YES
@output_option("json", "jsonl", "github", "junit")
@click.pass_obj
def apply_command(context: CliContext, plan_file: Path | None, spec: RunSpec, yes: bool, output: str) -> int:
    """Do what the policies ask for, prove each rewrite before it commits, and record it.

    PLAN is a file that `maintainer plan --out` saved. It is applied exactly and without a question. A table for which
    the plan is stale is refused; the others are done. Without PLAN, apply plans and asks before it changes anything.
    Without a terminal it needs `--yes`.
    """
    first = "`maintainer plan` shows what would be done"
    require_approval(yes=yes or plan_file is not None, command="maintainer apply", first=first)
    if plan_file is None:
        if spec.exact or spec.all_or_nothing:
            option = "--exact" if spec.exact else "--all-or-nothing"
            raise click.UsageError(f"{option} is for a saved PLAN: `maintainer plan --out FILE` makes one")
    elif is_policy_file(str(plan_file)):
        raise click.UsageError(f"{plan_file} is a policy file, not a plan: maintainer apply -s path:{plan_file}")
    elif _chooses(spec):
        raise click.UsageError(
            "PLAN already says what to do: leave out --select, --exclude, --since, --shard, --budget-..., "
            "--ignore-..., --lane"
        )
    spec = replace(spec, selection=replace(spec.selection, shown_first=not yes))
    project = open_project(context)
    saved = None if plan_file is None else read_saved_plan(plan_file)
    listener = RunOutput(context, project, output, ask=not yes)
    return exit_code_of(operations.apply(project, spec, saved, listener=listener), output)


def _chooses(spec: RunSpec) -> bool:
    chooses_tables = spec.selection.given or spec.shard is not None or spec.budget.bounded
    return chooses_tables or spec.planning.ignore_windows or spec.planning.ignore_every or bool(spec.planning.lanes)


@click.command("retry")
@click.argument("run", required=False, metavar="[RUN]")
@spec_options(ENGINE, SPREAD, JOBS, FAILURES)
@YES
@output_option("json", "jsonl", "github", "junit")
@click.pass_obj
def retry_command(context: CliContext, run: str | None, spec: RunSpec, yes: bool, output: str) -> int:
    """Apply again what RUN left undone: tables that failed, were skipped or interrupted.

    Without RUN it takes what all runs left undone. A table that a later run finished is left out. A place that the
    newest run, or RUN, could not search is searched again. The tables are planned again, then done as `apply` does.
    It is safe to repeat.
    """
    require_approval(yes=yes, command="maintainer retry", first="on a terminal it shows what it would do, and asks")
    unsearched = open_project(context)
    rest = unfinished_tables(unsearched.past_runs_dir, run)
    # What runs knew is enough here: whether it is still there, `apply` sees.
    known = (*tables_found_before(unsearched), *(table.ref for table in rest.tables))
    project = with_recorded_tables(unsearched, known)
    refs = [policy.table for policy in project.policies]
    chosen = taken_up(rest, refs, project.past_runs_dir, declared_places(project))
    undone = left_undone(refs, project.past_runs_dir)
    for note in dict.fromkeys((*chosen.notes, *undone.doubts, *_notes(undone))):
        warn(note)
    runs = undone.runs if run is None else (RunRest(rest.run_id, chosen.tables),)
    tables = frozenset(name for each in runs for name in each.tables)
    if not tables and not chosen.places:
        click.echo(_nothing_left(rest.run_id, undone, of_all=run is None), err=output != "text")
        if output == "json":
            print_document(end_json(ExitCode.OK, ()))
        return ExitCode.OK
    ledger = {policy.table.identifier for policy in project.policies if policy.is_ledger}
    for each in runs:
        text = tables_and_ledger(len(each.tables), with_ledger=bool(each.tables & ledger))
        click.echo(f"{text} of run {each.run_id}", err=True)
    for place in sorted(chosen.places):
        click.echo(f"all tables of {place}, which run {rest.run_id} could not search", err=True)
    if run is not None and undone.but(rest.run_id):
        click.echo(_left_of_others(undone, rest.run_id), err=True)
    run_ids = {each.run_id for each in runs if each.tables} | ({rest.run_id} if chosen.places else set())
    origin = f"retry:{run_ids.pop()}" if len(run_ids) == 1 else f"retry:{len(run_ids)} runs"
    spec = replace(spec, tables=tables | chosen.places, origin=origin)
    if chosen.places or any(rule.match.exclude for rule in project.loaded.rules):
        project = unsearched  # and is searched now: runs do not know the other names, by which a rule may exclude
    listener = RunOutput(context, project, output, ask=not yes)
    return exit_code_of(operations.apply(project, spec, listener=listener), output)


def _notes(undone: LeftUndone) -> Iterator[str]:
    """Say which tables may be undone and are not taken up, and why."""
    for each in undone.going_on:
        tables = count_of(len(each.tables), "table")
        yield f"run {each.run_id} is still going on: what it has not finished is left to it ({tables})"
    for folder in undone.unreadable:
        unknown = f"run {folder.name} cannot be read, so what it left undone is not known here"
        yield f"{unknown}; `maintainer apply` looks at every table"


def _nothing_left(run_id: str, undone: LeftUndone, *, of_all: bool) -> str:
    """Say that nothing is left, and of what; never that nothing is left where something is."""
    if of_all:
        readable = " that can be read" if undone.unreadable else ""
        return f"Nothing is left of run {run_id}, or of any run before it{readable}."
    text = f"Nothing is left of run {run_id}."
    return f"{text} {_left_of_others(undone, run_id)}" if undone.but(run_id) else text


def _left_of_others(undone: LeftUndone, run_id: str) -> str:
    num_tables = len(undone.but(run_id))
    left = f"{count_of(num_tables, 'table')} of other runs {'is' if num_tables == 1 else 'are'} left undone"
    return f"{left}: `maintainer retry` without a run does them all."


@click.command("watch")
@spec_options(SELECTION, SHARD, ENGINE, SPREAD, BUDGET, JOBS)
@click.option(
    "--interval",
    type=pause(MAX_DURATION_SECONDS),
    default="30s",
    show_default=True,
    help="How long to wait between two checks.",
)
@click.option("--until-idle", is_flag=True, help="Stop when nothing is left to do.")
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65_535),
    help="Serve metrics for Prometheus at /metrics on this port; 0 takes a free port.",
)
@click.option(
    "--metrics-host",
    default=DEFAULT_HOST,
    show_default=True,
    help="With --metrics-port: the address to listen on; 0.0.0.0 listens on all networks of this machine.",
)
@YES
@click.pass_obj
def watch_command(
    context: CliContext,
    spec: RunSpec,
    interval: int,
    until_idle: bool,
    metrics_port: int | None,
    metrics_host: str,
    yes: bool,
) -> int:
    """Check the tables at an interval and apply what is due, until stopped.

    Each time something is due, it is one run with its own folder. Windows, `every` and limits apply as for `apply`.
    After a failure or a conflict with another writer, a table is left alone for a while; the while doubles each time.
    A run that is refused, fails or runs out of time does not end the watch. After a failed verification it deletes
    nothing more; a second one ends it.
    It asks once, when it starts.
    """
    require_approval(yes=yes, command="maintainer watch", first="`maintainer plan` shows what is due now")
    project = open_project(context)
    project, chosen = chosen_before_session(project, spec, "watch")
    what = "all tables that rules match" if chosen is None else count_of(len(chosen.policies), "table")
    question = f"Watch {what}, and apply what is due without asking again?"
    if not is_approved(question, yes=yes):
        return ExitCode.FINDINGS
    bounds, switch = WatchBounds(interval, until_idle), StopSwitch()
    with ExitStack() as served:
        endpoint = None
        if metrics_port is not None:
            endpoint = served.enter_context(metrics_endpoint(project, metrics_host, metrics_port))
            click.echo(f"metrics: {endpoint.url}", err=True)
        click.echo(f"watching {what}; Ctrl-C ends it", err=True)
        listener = WatchOutput(context, None if endpoint is None else endpoint.metrics)
        end = operations.watch(project, spec, bounds, switch, listener)
    click.echo(f"{count_of(end.rounds, 'look')}, {count_of(end.runs, 'run')}", err=True)
    if switch.stop_reason is not None:
        return ExitCode.TERMINATED if switch.terminated else ExitCode.INTERRUPTED
    return end.code


class WatchOutput(RunListener):
    """Prints the end of each run and why a table is refused, and nothing of looks that found nothing to do.

    With ``metrics`` it counts, too.
    """

    def __init__(self, context: CliContext, metrics: RunMetrics | None = None) -> None:
        self._context = context
        self._metrics = metrics

    def table_planned(self, table: PlannedTable) -> None:
        """Keep the table's state, for the metrics."""
        if self._metrics is not None:
            self._metrics.table_planned(table, now_ms())

    def round_began(self, names: Collection[str]) -> None:
        """Serve no other tables."""
        if self._metrics is not None:
            self._metrics.round_began(names)

    def progress(self, plan: Plan) -> AbstractContextManager[ProgressSink | None]:
        return nullcontext(None if self._metrics is None else self._metrics.event)

    def problem(self, problem: Problem) -> None:
        warn(problem.what, problem.code)

    def refused(self, table: TablePlan) -> None:
        """Print why nothing is done to a table, once for each reason."""
        if (problem := planned_problem(table)) is not None:
            advice = f" ({problem.help})" if problem.help else ""
            warn(f"{table.ref}: {problem.what}{advice}", problem.code)

    def round_failed(self, error: Exception) -> None:
        """Print why nothing came of a round, in full."""
        text = error.render() if isinstance(error, MaintainerError) else report_bug(error, sys.argv[1:])
        click.echo(text, err=True)

    def finished(self, result: RunResult) -> None:
        """Print the end of a run."""
        if self._metrics is not None:
            self._metrics.finished()
        folder = str(result.run_folder)
        style = Style(self._context.color)
        click.echo(render_run(result.outcome, style, run_folder=folder, next_command=None), nl=False)


@click.command("stop")
@click.argument("run_id", metavar="RUN")
@click.option("--reason", metavar="TEXT", help="Why; the run records it.")
@click.pass_obj
def stop_command(context: CliContext, run_id: str, reason: str | None) -> int:
    """Ask RUN to stop, also on another machine. It ends as after Ctrl-C, and `maintainer retry` does the rest.

    It looks every few seconds: a commit that has begun is finished, and no more tables are started. A run that is still
    planning stops before the first table. A run of `maintainer watch` ends that, too.
    """
    if not stop_run(open_project(context), run_id, reason, now_ms()):
        click.echo(f"Run {printable(run_id)} is over; nothing was asked.")
        return ExitCode.FINDINGS
    click.echo(f"Run {printable(run_id)} is asked to stop; `maintainer show {printable(run_id)}` says how it ended.")
    return ExitCode.OK
