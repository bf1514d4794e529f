"""``maintainer retry``: take up what a run left undone. Plans anew, so what is done meanwhile is not done twice."""

from __future__ import annotations

import click

from maintainer.app import operations
from maintainer.app.selection.last_run import taken_up, unfinished_tables
from maintainer.app.selection.run_spec import RunSpec
from maintainer.cli.act.apply import refuse_two_bounds
from maintainer.cli.act.run_output import RunOutput, exit_code_of
from maintainer.cli.command_project import open_project
from maintainer.cli.context import CliContext
from maintainer.cli.options.engine_options import engine_options, given_engine
from maintainer.cli.options.shared_options import output_option
from maintainer.report.text.text_layout import count, printable


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
    chosen = taken_up(rest, (policy.table for policy in project.policies), project.runs_dir)
    for note in chosen.notes:
        click.echo(f"warning: {printable(note)}", err=True)
    if not chosen.tables:
        click.echo(f"Nothing is left of run {rest.run_id}.")
        return 0
    click.echo(f"{count(len(chosen.tables), 'table')} of run {rest.run_id}", err=True)
    spec = RunSpec(
        tables=chosen.tables,
        origin=f"retry:{rest.run_id}",
        engine=given_engine(),
        jobs=jobs,
        fail_fast=fail_fast,
        max_failures=max_failures,
    )
    listener = RunOutput(context, project, output, ask=not yes)
    return exit_code_of(operations.apply(project, spec, listener=listener))
