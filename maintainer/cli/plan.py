"""``maintainer plan``: what would be done, why, and what it costs. Changes no byte of any table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from maintainer.app.budgeting import fit
from maintainer.app.engine_access import open_engine
from maintainer.app.learned import learn, past_lessons
from maintainer.app.make_plan import OnTable, PlanRequest, TableLook, make_plan
from maintainer.app.project import Project, describe_selection
from maintainer.app.selection import Look, choose, narrowed
from maintainer.cli.budget_options import budget_options, given_budget
from maintainer.cli.context import CliContext
from maintainer.cli.engine_options import engine_options, given_engine
from maintainer.cli.output_option import output_option
from maintainer.cli.project import local_zone, now_ms, open_project
from maintainer.cli.selection import given_selection, in_shard, selection_options, shard_option
from maintainer.engine import Engine
from maintainer.errors import ProjectError
from maintainer.journal.durable import write_atomically
from maintainer.model.exit_codes import plan_exit_code
from maintainer.model.plan import Plan
from maintainer.model.wire import to_json
from maintainer.planning.budget import Learned, expected_losses, expected_seconds
from maintainer.planning.planner import PlanOptions as PlanningOptions
from maintainer.policy.changes import policy_changes
from maintainer.policy.git_state import policies_at
from maintainer.policy.identity import identity
from maintainer.report.layout import printable
from maintainer.report.plan_comparison import Comparison
from maintainer.report.plan_markdown import render_plan_markdown
from maintainer.report.plan_text import PlanOptions, render_plan
from maintainer.report.style import Style

DEFAULT_PLAN_JOBS = 2


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
    project, selection = open_project(context), given_selection()
    policies = in_shard(choose(project.loaded.resolved(), project.loaded, selection, command="plan", look=Look.COMES))
    if compare is not None and output != "markdown":
        raise click.UsageError("--compare is for -o markdown")
    described = describe_selection(selection.select, selection.exclude)
    planning = PlanningOptions(ignore_windows=ignore_window, ignore_every=ignore_every)
    with open_engine(given_engine()) as opened:
        request = PlanRequest(policies, now_ms(), described, jobs, planning, progress(context))
        plan = narrowed(make_plan(project, opened.engine, request), project.loaded, selection, command="plan")
        compared = None if compare is None else _compared(project, opened.engine, request, plan, compare)
    plan = fit(project, plan, given_budget())
    if out is not None:
        save(plan, out)
    if output == "json":
        click.echo(to_json(plan, indent=2))
    elif output == "markdown":
        click.echo(render_plan_markdown(plan, compared=compared), nl=False)
    else:
        click.echo(plan_text(context, project, plan, saved_to=out), nl=False)
    return plan_exit_code(plan, detailed=detailed_exitcode)


def _compared(project: Project, engine: Engine, request: PlanRequest, plan: Plan, ref: str) -> Comparison:
    """Plan the same tables by the policies at a commit, and say what differs in the whole project."""
    before = policies_at(project.loaded, ref)
    chosen = {identity(table.ref) for table in plan.tables}
    old = tuple(policy for policy in before if identity(policy.table) in chosen)
    old_plan = make_plan(project, engine, replace(request, policies=old, on_table=None))
    return Comparison(ref, policy_changes(before, project.loaded.resolved()), old_plan)


def plan_text(
    context: CliContext,
    project: Project,
    plan: Plan,
    *,
    saved_to: Path | None = None,
    for_apply: bool = False,
) -> str:
    """Render a plan for the terminal. ``for_apply``: it is carried out next, so nothing is said about saving it."""
    learned = learn(past_lessons(project.runs_dir)) if plan.has_changes else Learned()
    options = PlanOptions(
        project=project.root.name,
        num_policies=project.loaded.policy_count,
        saved_to=str(saved_to) if saved_to else None,
        applied_next=for_apply,
        verbose=context.verbosity > 0,
        tz=local_zone(),
        expected_seconds=expected_seconds(plan, learned),
        lost_ratios=expected_losses(plan, learned),
    )
    return render_plan(plan, options, Style(context.color))


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


def progress(context: CliContext) -> OnTable | None:
    """A line a planned table on stderr, unless it was asked to be quiet."""
    return None if context.verbosity < 0 else PlanProgress()


class PlanProgress:
    """Says on stderr how far planning has come, one line a table."""

    def __call__(self, look: TableLook) -> None:
        """Print one table."""
        place = f"[{look.number}/{look.total}]"
        click.echo(f"{place} {printable(str(look.plan.ref))}  {look.plan.state.replace('_', ' ')}", err=True)
