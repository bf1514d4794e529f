"""``maintainer retry``: take up what a run left undone. Plans anew, so what is done meanwhile is not done twice."""

from __future__ import annotations

from dataclasses import replace

import click

from maintainer.app import operations
from maintainer.app.selection.last_run import taken_up, unfinished_tables
from maintainer.app.selection.run_spec import RunSpec
from maintainer.cli.act.run_output import RunOutput, exit_code_of
from maintainer.cli.command_project import open_project
from maintainer.cli.context import CliContext
from maintainer.cli.options.spec_options import ENGINE, FAILURES, JOBS, spec_options
from maintainer.cli.options.value_types import output_option
from maintainer.cli.printing import warn
from maintainer.report.text_layout import tables_and_ledger


@click.command("retry")
@click.argument("run", required=False, metavar="[RUN]")
@spec_options(ENGINE, JOBS, FAILURES)
@click.option("--yes", is_flag=True, help="Do not ask. In a pipeline nobody is asked.")
@output_option("json", "jsonl", "github", "junit")
@click.pass_obj
def command(context: CliContext, run: str | None, spec: RunSpec, yes: bool, output: str) -> int:
    """Take up the failed, skipped and interrupted rest of RUN, the newest if left out.

    Its tables are planned anew and done as `apply` would; tables that ended well are left out. Doing it again is safe.
    """
    project = open_project(context)
    rest = unfinished_tables(project.runs_dir, run)
    chosen = taken_up(rest, (policy.table for policy in project.policies), project.runs_dir)
    for note in chosen.notes:
        warn(note)
    if not chosen.tables:
        click.echo(f"Nothing is left of run {rest.run_id}.")
        return 0
    with_ledger = any(policy.is_ledger and policy.table.identifier in chosen.tables for policy in project.policies)
    text = tables_and_ledger(len(chosen.tables) - with_ledger, with_ledger=with_ledger)
    click.echo(f"{text} of run {rest.run_id}", err=True)
    spec = replace(spec, tables=chosen.tables, origin=f"retry:{rest.run_id}")
    listener = RunOutput(context, project, output, ask=not yes)
    return exit_code_of(operations.apply(project, spec, listener=listener))
