"""``maintainer watch``: one long-running process that follows the tables and applies what their policies ask for."""

from __future__ import annotations

import click

from maintainer.app import operations
from maintainer.app.run_result import RunResult
from maintainer.app.running.watch_loop import WatchBounds
from maintainer.app.selection.run_spec import RunSpec
from maintainer.cli.command_project import open_project
from maintainer.cli.context import CliContext
from maintainer.cli.options.engine_options import engine_options, given_engine
from maintainer.cli.options.selection_options import given_selection, given_shard, selection_options, shard_option
from maintainer.cli.options.shared_options import budget_options, given_budget
from maintainer.errors import ExitCode
from maintainer.execution.run.cancellation import StopSwitch
from maintainer.model.plan.plan import Problem
from maintainer.report.run.run_text import render_run
from maintainer.report.text.style import Style
from maintainer.report.text.text_layout import count, printable
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
    project = open_project(context)
    spec = RunSpec(given_selection(), given_shard(), engine=given_engine(), budget=given_budget(), jobs=jobs)
    num_tables = len(operations.chosen_policies(project, spec, command="watch"))
    bounds, switch = WatchBounds(_seconds(interval), until_idle), StopSwitch()
    click.echo(f"watching {count(num_tables, 'table')}; Ctrl-C ends it", err=True)
    end = operations.watch(project, spec, bounds, switch, _WatchOutput(context))
    click.echo(f"{count(end.rounds, 'look')}, {count(end.runs, 'run')}", err=True)
    if switch.stop_reason is not None:
        return ExitCode.TERMINATED if switch.terminated else ExitCode.INTERRUPTED
    return end.code


class _WatchOutput(operations.RunListener):
    """Prints what came of each run, and nothing of looks that found nothing to do."""

    def __init__(self, context: CliContext) -> None:
        self._context = context

    def problem(self, problem: Problem) -> None:
        """Print a warning."""
        click.echo(f"warning[{problem.code}]: {printable(problem.what)}", err=True)

    def finished(self, result: RunResult) -> None:
        """Print the end of a run."""
        folder = str(result.run_folder)
        style = Style(self._context.color)
        click.echo(render_run(result.outcome, style, run_folder=folder, next_command=None), nl=False)


def _seconds(text: str) -> float:
    try:
        seconds = parse_duration(text)
    except UnitError as error:
        raise click.BadParameter(str(error), param_hint="--interval") from error
    if seconds < 1:
        raise click.BadParameter("at least 1s", param_hint="--interval")
    return float(seconds)
