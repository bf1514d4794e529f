"""``maintainer why TABLE``: every decision about one table, also for what is left alone."""

from __future__ import annotations

import click

from maintainer.app import operations
from maintainer.app.planning.run_statistics import learn, past_lessons
from maintainer.app.project_folders import local_zone
from maintainer.app.selection.run_spec import RunSpec
from maintainer.app.status.status_row import auto_compact_of
from maintainer.cli.command_project import open_project
from maintainer.cli.context import CliContext
from maintainer.cli.options.selection_options import TableName
from maintainer.cli.options.spec_options import ENGINE, spec_options
from maintainer.model.run.exit_codes import plan_exit_code
from maintainer.planning.budget.run_budget import Learned, expected_losses
from maintainer.report.plan.plan_text import PlanOptions
from maintainer.report.plan.why_text import render_why
from maintainer.report.style import Style


@click.command("why")
@click.argument("table", type=TableName())
@spec_options(ENGINE)
@click.pass_obj
def command(context: CliContext, table: str, spec: RunSpec) -> int:
    """Show every decision about one table, taken and not taken, with the policy line behind it."""
    project = open_project(context)
    policy = project.loaded.resolve_table(table)
    decisions = operations.why(project, spec, policy)
    plan = decisions.plan
    learned = learn(past_lessons(project.runs_dir)) if plan.has_changes else Learned()
    options = PlanOptions(verbose=context.verbosity > 0, tz=local_zone(), lost_ratios=expected_losses(plan, learned))
    auto_compact = auto_compact_of(decisions.look, decisions.session_auto_compact)
    text = render_why(
        plan.tables[0], policy, options, Style(context.color), auto_compact=auto_compact, at_ms=plan.created_at_ms
    )
    click.echo(text, nl=False)
    return plan_exit_code(plan)
