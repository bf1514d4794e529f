"""``maintainer plan``: what would be done, why, and what it costs. Changes no byte of any table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import click

from maintainer.app import operations
from maintainer.app.planning.make_plan import PlannedTable
from maintainer.app.planning.plan_output import check_place, plan_options, save_plan
from maintainer.app.project_folders import PolicyProblems, Project
from maintainer.app.selection.run_spec import RunSpec
from maintainer.cli.context import CliContext, open_project, print_as, print_search
from maintainer.cli.options import (
    BUDGET,
    ENGINE,
    FILE,
    SCHEDULE,
    SELECTION,
    SHARD,
    jobs_option,
    output_option,
    spec_options,
)
from maintainer.errors import ExitCode, MaintainerError
from maintainer.model.plan.plan import Plan
from maintainer.model.plan.plan_document import to_json
from maintainer.model.run.exit_codes import plan_exit_code
from maintainer.report.diagnostics_report import finding_lines
from maintainer.report.plan.plan_markdown import render_failure_markdown, render_plan_markdown
from maintainer.report.plan.plan_text import render_plan
from maintainer.report.style import Style
from maintainer.report.text_layout import printable


def plan_text(
    context: CliContext,
    project: Project,
    plan: Plan,
    *,
    saved_to: Path | None = None,
    for_apply: bool = False,
    in_brief: bool = False,
) -> str:
    """Render a plan for the terminal.

    ``for_apply``: it is carried out next, so nothing is said about saving it. ``in_brief``: nobody is asked before, and
    the end of the run says in full what is wrong with a table.
    """
    place, verbose = str(saved_to) if saved_to else None, context.verbosity > 0
    options = plan_options(project, plan)
    options = replace(options, saved_to=place, applied_next=for_apply, in_brief=in_brief, verbose=verbose)
    return render_plan(plan, options, Style(context.color))


def print_table_planned(table: PlannedTable) -> None:
    """Print on stderr how far planning has come, one line a table."""
    place = f"[{table.number}/{table.total}] " if table.number else ""
    click.echo(f"{place}{printable(str(table.plan.ref))}  {table.plan.state.replace('_', ' ')}", err=True)


@click.command("plan")
@spec_options(SELECTION, SHARD, ENGINE, BUDGET, SCHEDULE)
@click.option("--out", type=FILE, help="Save the plan, for `maintainer apply FILE`.")
@output_option("json", "markdown")
@click.option(
    "--compare", metavar="REF", help="With -o markdown: also show how the policies differ from those at a Git commit."
)
@click.option("--detailed-exitcode", is_flag=True, help="Exit with 3 when there is something to do.")
@click.option("--strict", is_flag=True, help="Exit with 1 when a rule has no effect on any table.")
@jobs_option("Tables to plan at once.  [default: 2, on object stores 16]")
@click.pass_obj
def plan_command(
    context: CliContext,
    spec: RunSpec,
    out: Path | None,
    output: str,
    compare: str | None,
    detailed_exitcode: bool,
    strict: bool,
    jobs: int | None,
) -> int:
    """Show what `apply` would do to each table, why, and what it would cost. Nothing is changed."""
    if compare is not None and output != "markdown":
        raise click.UsageError("--compare is for -o markdown")
    with failure_as_comment(context.env) if output == "markdown" else nullcontext():
        if out is not None:
            check_place(out)
        project = open_project(context)
        on_table = None if context.verbosity < 0 else print_table_planned
        # With --compare the tables are planned twice; else nothing follows in this process.
        engine = replace(spec.engine, keeps_logs=compare is not None)
        spec = replace(spec, plan_jobs=jobs, engine=engine)
        planned = operations.plan(project, spec, compare=compare, on_table=on_table)
        plan, project = planned.plan, planned.project
        without_effect = print_search(project)
        if out is not None:
            save_plan(plan, out)
    print_as(
        output,
        json=lambda: to_json(plan),
        markdown=lambda: render_plan_markdown(plan, compared=planned.comparison),
        text=lambda: plan_text(context, project, plan, saved_to=out),
    )
    code = plan_exit_code(plan, detailed=detailed_exitcode)
    return ExitCode.FINDINGS if strict and without_effect and code in (ExitCode.OK, ExitCode.CHANGES_PENDING) else code


@contextmanager
def failure_as_comment(environment: str | None) -> Iterator[None]:
    """Print an error on stdout, too, as the comment of a pull request: its readers must see why there is no plan.

    Raises:
        MaintainerError: The error, as it came.
    """
    try:
        yield
    except MaintainerError as error:
        findings = finding_lines(error.loaded.diagnostics) if isinstance(error, PolicyProblems) else ()
        click.echo(render_failure_markdown(error.render(), findings, environment), nl=False)
        raise
