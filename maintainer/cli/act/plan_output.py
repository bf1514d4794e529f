"""Shows a plan on a terminal: a line for each table while it is planned, then the whole."""

from __future__ import annotations

from pathlib import Path

import click

from maintainer.app.planning.make_plan import TableLook
from maintainer.app.planning.run_statistics import learn, past_lessons
from maintainer.app.project_folders import Project, local_zone
from maintainer.cli.context import CliContext
from maintainer.model.plan.plan import Plan
from maintainer.planning.budget.run_budget import Learned, expected_losses, expected_seconds
from maintainer.report.plan.plan_text import PlanOptions, render_plan
from maintainer.report.style import Style
from maintainer.report.text_layout import printable


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


def print_table_planned(look: TableLook) -> None:
    """Print on stderr how far planning has come, one line a table."""
    place = f"[{look.number}/{look.total}] " if look.number else ""
    click.echo(f"{place}{printable(str(look.plan.ref))}  {look.plan.state.replace('_', ' ')}", err=True)
