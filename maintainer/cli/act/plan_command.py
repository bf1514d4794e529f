"""``maintainer plan``: what would be done, why, and what it costs. Changes no byte of any table."""

from __future__ import annotations

from pathlib import Path

import click

from maintainer.app import operations
from maintainer.app.selection.run_spec import DEFAULT_PLAN_JOBS, RunSpec
from maintainer.cli.act.plan_output import plan_text, print_table_planned
from maintainer.cli.command_project import open_project
from maintainer.cli.context import CliContext
from maintainer.cli.options.engine_options import engine_options, given_engine
from maintainer.cli.options.selection_options import given_selection, given_shard, selection_options, shard_option
from maintainer.cli.options.shared_options import budget_options, given_budget, output_option
from maintainer.errors import ProjectError
from maintainer.journal.folder.atomic_files import write_atomically
from maintainer.model.plan.plan import Plan
from maintainer.model.plan.plan_document import to_json
from maintainer.model.run.exit_codes import plan_exit_code
from maintainer.planning.planner import PlanOptions
from maintainer.report.plan.plan_markdown import render_plan_markdown


@click.command("plan")
@selection_options
@shard_option
@engine_options
@budget_options
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Save the plan, to apply exactly it.")
@output_option("json", "markdown")
@click.option("--compare", metavar="REF", help="With -o markdown: what differs from the policies at a Git commit.")
@click.option("--detailed-exitcode", is_flag=True, help="Exit with 3 when there are changes.")
@click.option("--ignore-window", is_flag=True, help="Plan as if every window were open.")
@click.option("--ignore-every", is_flag=True, help="Plan as if every step were due.")
@click.option("-j", "--jobs", type=click.IntRange(1, 64), default=DEFAULT_PLAN_JOBS, show_default=True)
@click.pass_obj
def command(
    context: CliContext,
    out: Path | None,
    output: str,
    compare: str | None,
    detailed_exitcode: bool,
    ignore_window: bool,
    ignore_every: bool,
    jobs: int,
) -> int:
    """Show what would be done to each table, why, and what it costs. Nothing is changed."""
    project = open_project(context)
    if compare is not None and output != "markdown":
        raise click.UsageError("--compare is for -o markdown")
    spec = RunSpec(
        given_selection(),
        given_shard(),
        engine=given_engine(),
        budget=given_budget(),
        planning=PlanOptions(ignore_windows=ignore_window, ignore_every=ignore_every),
        plan_jobs=jobs,
    )
    on_table = None if context.verbosity < 0 else print_table_planned
    planned = operations.plan(project, spec, compare=compare, on_table=on_table)
    plan = planned.plan
    if out is not None:
        save(plan, out)
    if output == "json":
        click.echo(to_json(plan, indent=2))
    elif output == "markdown":
        click.echo(render_plan_markdown(plan, compared=planned.comparison), nl=False)
    else:
        click.echo(plan_text(context, project, plan, saved_to=out), nl=False)
    return plan_exit_code(plan, detailed=detailed_exitcode)


def save(plan: Plan, path: Path) -> None:
    """Write a plan whole or not at all.

    Raises:
        ProjectError: E640, it cannot be written there.
    """
    try:
        write_atomically(path.absolute(), (to_json(plan, indent=2) + "\n").encode("utf-8", "surrogatepass"))
    except OSError as error:
        raise ProjectError(
            f"the plan cannot be written: {error.strerror or error}",
            code="E640",
            where=str(path),
            help="name a file in a folder that exists and that you may write to",
        ) from error
