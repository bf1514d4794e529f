"""``maintainer undelete TABLE --run ID``: files that a vacuum moved into the trash come back."""

from __future__ import annotations

import click

from maintainer.app import operations
from maintainer.app.selection.run_spec import RunSpec
from maintainer.cli.command_project import open_project
from maintainer.cli.context import CliContext
from maintainer.cli.options.selection_options import TableName
from maintainer.cli.options.spec_options import ENGINE, spec_options
from maintainer.errors import ExitCode
from maintainer.report.text_layout import count
from maintainer.units import format_size

MAX_NAMED = 20


@click.command("undelete")
@click.argument("table", type=TableName())
@click.option("--run", "run_id", required=True, metavar="ID", help="The run whose vacuum moved them: see history.")
@spec_options(ENGINE)
@click.pass_obj
def command(context: CliContext, table: str, spec: RunSpec, run_id: str) -> int:
    """Bring back what a vacuum with `vacuum.trash` moved away. Nothing that lies there now is overwritten.

    It is recorded as a run of its own: see `maintainer history`.
    """
    project = open_project(context)
    policy = project.loaded.resolve_table(table)
    receipt = operations.undelete(project, spec, policy, run_id)
    size = format_size(receipt.bytes_restored)
    click.echo(f"{table}: {count(receipt.num_files_restored, 'file')} ({size}) of run {run_id} are back in its folder")
    for line in receipt.refused[:MAX_NAMED]:
        click.echo(f"  not brought back: {line}")
    if len(receipt.refused) > MAX_NAMED:
        click.echo(f"  and {len(receipt.refused) - MAX_NAMED:,} more that were not brought back")
    click.echo(
        "The next vacuum takes them again: set `suspend:` in the policy, or RESTORE the version that needs them."
    )
    return ExitCode.FINDINGS if receipt.refused else ExitCode.OK
