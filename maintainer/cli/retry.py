"""``maintainer retry``: take up what a run left undone. Plans anew, so what is done meanwhile is not done twice."""

from __future__ import annotations

import click

from maintainer.app.apply_plan import engine_log_of, open_journal
from maintainer.app.last_run import unfinished_tables
from maintainer.app.make_plan import PlanRequest
from maintainer.app.selection import SelectionOptions
from maintainer.cli.carry_out import RunRequest, carry_out, refuse_two_bounds
from maintainer.cli.context import CliContext
from maintainer.cli.engine_options import engine_options, given_engine
from maintainer.cli.output_option import output_option
from maintainer.cli.plan import DEFAULT_PLAN_JOBS, progress
from maintainer.cli.project import now_ms, open_project
from maintainer.report.layout import count, printable


@click.command("retry")
@click.argument("run", required=False, metavar="[RUN]")
@engine_options
@click.option("--yes", is_flag=True, help="Do not ask. In a pipeline nobody is asked.")
@click.option("-j", "--jobs", type=click.IntRange(1, 64), default=1, show_default=True, help="Tables at once.")
@click.option("--fail-fast", is_flag=True, help="Start no further table after the first that fails.")
@click.option("--max-failures", type=click.IntRange(min=1), help="Start no further table after so many failures.")
@output_option("json", "jsonl", "github", "junit")
@click.pass_obj
def command(
    context: CliContext,
    run: str | None,
    yes: bool,
    jobs: int,
    fail_fast: bool,
    max_failures: int | None,
    output: str,
) -> int:
    """Take up the failed, skipped and interrupted rest of RUN, the newest if left out.

    Its tables are planned anew and done as `apply` would; tables that ended well are left out. Doing it again is safe.
    """
    refuse_two_bounds(fail_fast=fail_fast, max_failures=max_failures)
    project = open_project(context)
    rest = unfinished_tables(project.runs_dir, run)
    policies = tuple(policy for policy in project.loaded.resolved() if policy.table.identifier in rest.tables)
    gone = sorted(rest.tables - {policy.table.identifier for policy in policies})
    for name in gone:
        click.echo(f"warning: {printable(name)} has no policy any more and is left out", err=True)
    if not policies:
        click.echo(f"Nothing is left of run {rest.run_id}.")
        return 0
    started_at_ms = now_ms()
    click.echo(f"{count(len(policies), 'table')} of run {rest.run_id}", err=True)
    planning = PlanRequest(
        policies,
        started_at_ms,
        (f"retry:{rest.run_id}",),
        max(jobs, DEFAULT_PLAN_JOBS),
        on_table=progress(context) if output == "text" else None,
    )
    request = RunRequest(jobs, fail_fast, max_failures, None, output, SelectionOptions())
    journal = open_journal(project, started_at_ms)
    try:
        options = given_engine(engine_log_of(journal))
        return carry_out(context, project, journal, options, request, None, planning, ask=not yes)
    finally:
        journal.close()
