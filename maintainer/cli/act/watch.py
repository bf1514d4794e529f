"""``maintainer watch``: one long-running process that follows the tables and applies what their policies ask for."""

from __future__ import annotations

import click

from maintainer.app import operations
from maintainer.app.run_result import RunResult
from maintainer.app.running.watch_loop import WatchBounds
from maintainer.app.selection.run_spec import RunSpec
from maintainer.cli.command_project import open_project
from maintainer.cli.context import CliContext
from maintainer.cli.options.spec_options import BUDGET, ENGINE, JOBS, SELECTION, SHARD, spec_options
from maintainer.cli.options.value_types import pause
from maintainer.cli.printing import warn
from maintainer.errors import ExitCode
from maintainer.execution.run.cancellation import StopSwitch
from maintainer.execution.table.tables_without_steps import problem_without_steps
from maintainer.model.plan.plan import Problem, TablePlan
from maintainer.report.run.run_text import render_run
from maintainer.report.style import Style
from maintainer.report.text_layout import count
from maintainer.units import MAX_DURATION_SECONDS


@click.command("watch")
@spec_options(SELECTION, SHARD, ENGINE, BUDGET, JOBS)
@click.option(
    "--interval",
    type=pause(MAX_DURATION_SECONDS),
    default="30s",
    show_default=True,
    help="Pause between two looks.",
)
@click.option("--until-idle", is_flag=True, help="End when nothing is left to do.")
@click.pass_obj
def command(context: CliContext, spec: RunSpec, interval: int, until_idle: bool) -> int:
    """Look at the tables again and again, and apply what is due, until stopped.

    Each look that finds something to do is a run of its own, with its own folder. Windows, `every` and limits hold as
    they do for apply. A table that fails or loses against another writer is left alone for a while that doubles.
    """
    project = open_project(context)
    num_tables = len(operations.chosen_policies(project, spec, command="watch"))
    bounds, switch = WatchBounds(interval, until_idle), StopSwitch()
    click.echo(f"watching {count(num_tables, 'table')}; Ctrl-C ends it", err=True)
    end = operations.watch(project, spec, bounds, switch, _WatchOutput(context))
    click.echo(f"{count(end.rounds, 'look')}, {count(end.runs, 'run')}", err=True)
    if switch.stop_reason is not None:
        return ExitCode.TERMINATED if switch.terminated else ExitCode.INTERRUPTED
    return end.code


class _WatchOutput(operations.RunListener):
    """Prints the end of each run and why a table is refused, and nothing of looks that found nothing to do."""

    def __init__(self, context: CliContext) -> None:
        self._context = context

    def problem(self, problem: Problem) -> None:
        """Print a warning."""
        warn(problem.what, problem.code)

    def refused(self, table: TablePlan) -> None:
        """Print why nothing is done to a table, once for each reason."""
        problem = problem_without_steps(table)
        if problem is not None:
            advice = f" ({problem.help})" if problem.help else ""
            warn(f"{table.ref}: {problem.what}{advice}", problem.code)

    def finished(self, result: RunResult) -> None:
        """Print the end of a run."""
        folder = str(result.run_folder)
        style = Style(self._context.color)
        click.echo(render_run(result.outcome, style, run_folder=folder, next_command=None), nl=False)
