"""``maintainer watch``: one long-running process that follows the tables and applies what their policies ask for."""

from __future__ import annotations

import time

import click

from maintainer.app.apply_plan import ApplyRequest, apply_plan, check_run_limits, open_journal
from maintainer.app.budgeting import fit
from maintainer.app.engine_access import open_engine
from maintainer.app.ledger_access import open_ledger
from maintainer.app.make_plan import PlanRequest, make_plan
from maintainer.app.selection import Look, choose
from maintainer.app.watching import WatchBounds, watch
from maintainer.cli.budget_options import budget_options, given_budget
from maintainer.cli.context import CliContext
from maintainer.cli.engine_options import engine_options, given_engine
from maintainer.cli.plan import DEFAULT_PLAN_JOBS
from maintainer.cli.project import now_ms, open_project
from maintainer.cli.selection import given_selection, in_shard, selection_options, shard_option
from maintainer.errors import ExitCode
from maintainer.execution.interruption import StopSwitch, signals_stop
from maintainer.model.outcome import RunOutcome
from maintainer.model.plan import Plan, Problem
from maintainer.policy.resolved import ResolvedPolicy
from maintainer.report.layout import count, printable
from maintainer.report.run_text import render_run
from maintainer.report.style import Style
from maintainer.units import UnitError, parse_duration


@click.command("watch")
@selection_options
@shard_option
@engine_options
@budget_options
@click.option("-j", "--jobs", type=click.IntRange(1, 64), default=1, show_default=True, help="Tables at once.")
@click.option("--interval", default="30s", show_default=True, metavar="DURATION", help="Pause between two looks.")
@click.option("--until-idle", is_flag=True, help="End when nothing is left to do.")
@click.pass_obj
def command(
    context: CliContext,
    jobs: int,
    interval: str,
    until_idle: bool,
) -> int:
    """Keep going: look at the tables again and again, and apply what is due, until stopped.

    Each look that finds something to do is a run of its own, with its own folder. Windows, `every` and limits hold as
    they do for apply. A table that fails or loses against another writer is left alone for a while that doubles.
    """
    project, selection = open_project(context), given_selection()
    policies = in_shard(choose(project.loaded.resolved(), project.loaded, selection, command="watch", look=Look.NEVER))
    bounds, switch, budget = WatchBounds(_seconds(interval), until_idle), StopSwitch(), given_budget()

    with signals_stop(switch), open_engine(given_engine()) as opened:
        ledger = open_ledger(project, opened, _warn)

        def plan_tables(due: tuple[ResolvedPolicy, ...]) -> Plan:
            request = PlanRequest(due, now_ms(), ("watch",), max(jobs, DEFAULT_PLAN_JOBS))
            return fit(project, make_plan(project, opened.engine, request), budget)

        def apply(plan: Plan) -> RunOutcome:
            check_run_limits(project, plan)
            journal = open_journal(project, now_ms())
            request = ApplyRequest(jobs, switch=switch)
            outcome = apply_plan(project, opened.engine, plan, journal, ledger, request)
            folder = str(journal.folder.path)
            click.echo(render_run(outcome, Style(context.color), run_folder=folder, next_command=None), nl=False)
            return outcome

        click.echo(f"watching {count(len(policies), 'table')}; Ctrl-C ends it", err=True)
        end = watch(policies, plan_tables, apply, bounds, switch, time.monotonic)
    click.echo(f"{count(end.rounds, 'look')}, {count(end.runs, 'run')}", err=True)
    if switch.stop_reason is not None:
        return ExitCode.TERMINATED if switch.stop_reason == "SIGTERM" else ExitCode.INTERRUPTED
    return end.code


def _warn(problem: Problem) -> None:
    click.echo(f"warning[{problem.code}]: {printable(problem.what)}", err=True)


def _seconds(text: str) -> float:
    try:
        seconds = parse_duration(text)
    except UnitError as error:
        raise click.BadParameter(str(error), param_hint="--interval") from error
    if seconds < 1:
        raise click.BadParameter("at least 1s", param_hint="--interval")
    return float(seconds)
