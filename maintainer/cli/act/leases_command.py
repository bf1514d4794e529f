"""``maintainer leases``: who works on which table now, and how to end a lease that nobody gives back."""

from __future__ import annotations

import click

from maintainer.app.running.apply_plan import open_journal
from maintainer.app.running.break_lease import break_leases_on, leases_now
from maintainer.cli.command_project import now_ms, open_project
from maintainer.cli.context import CliContext
from maintainer.cli.options.selection_options import TableName
from maintainer.errors import ExitCode
from maintainer.report.text_layout import count, printable


@click.group("leases")
def command() -> None:
    """Take care of leases: the notes by which one run keeps others off a table while it works on it."""


@command.command("list")
@click.pass_obj
def list_leases(context: CliContext) -> int:
    """Show who works on which table now, and until when. Nothing is changed."""
    project = open_project(context)
    now = now_ms()
    held = leases_now(project, now)
    for lease in held:
        left = (lease.expires_at_ms - now) // 1000
        click.echo(
            f"{printable(lease.table)}: run {printable(lease.run_id)} on {printable(lease.host)}, "
            f"ends in {left} s if it is not renewed"
        )
    if not held:
        click.echo("No run works on a table now.")
    return ExitCode.OK


@command.command("break")
@click.argument("table", type=TableName())
@click.option("--reason", required=True, metavar="TEXT", help="Why, for the record.")
@click.pass_obj
def break_(context: CliContext, table: str, reason: str) -> int:
    """End the lease on TABLE, whoever holds it.

    For a run that is certainly dead and whose lease keeps others out. A run that is alive after all loses nothing: it
    asks for its lease right before each commit, and commits nothing more. It is recorded as a run of its own.
    """
    if not reason.strip():
        raise click.UsageError("--reason needs a reason, which is recorded")
    project = open_project(context)
    journal = open_journal(project, now_ms())
    try:
        broken = break_leases_on(project, journal, table, reason.strip())
    finally:
        journal.close()
    for lease in broken:
        click.echo(
            f"broken: {printable(lease.table)}, held by run {printable(lease.run_id)} on {printable(lease.host)}"
        )
    if not broken:
        click.echo(f"Nobody holds a lease on {printable(table)}; nothing was changed.")
        return ExitCode.FINDINGS
    click.echo(f"{count(len(broken), 'lease')} ended; the next apply may work on the table.")
    return ExitCode.OK
