"""``maintainer history``: runs and steps, from the run folders alone. No Spark."""

from __future__ import annotations

import click

from maintainer.app.insight import history_rows
from maintainer.cli.context import CliContext
from maintainer.cli.project import local_zone, now_ms, open_project
from maintainer.cli.selection import TableName
from maintainer.report.history_text import history_csv, history_json, render_history
from maintainer.report.style import Style
from maintainer.units import UnitError, parse_duration


@click.command("history")
@click.argument("table", required=False, type=TableName())
@click.option("--since", metavar="DURATION", help="Only the last days or hours, such as 7d.")
@click.option("--failed", is_flag=True, help="Only steps that did not succeed.")
@click.option("--limit", type=click.IntRange(1, 100_000), default=200, show_default=True, help="At most so many steps.")
@click.option("-o", "--output", type=click.Choice(["text", "json", "csv"]), default="text", show_default=True)
@click.pass_obj
def command(context: CliContext, table: str | None, since: str | None, failed: bool, limit: int, output: str) -> None:
    """Show the steps of past runs, newest first; with TABLE only that table's."""
    project = open_project(context)
    identifier = project.loaded.resolve_table(table).table.identifier if table else None
    rows, unread = history_rows(
        project.runs_dir, table=identifier, since_ms=_since_ms(since), failed=failed, limit=limit
    )
    if output == "json":
        click.echo(history_json(rows), nl=False)
    elif output == "csv":
        click.echo(history_csv(rows), nl=False)
    else:
        text = render_history(rows, Style(context.color), tz=local_zone(), one_table=identifier is not None)
        click.echo(text, nl=False)
    for line in unread:
        click.echo(f"warning: a run could not be read: {line}", err=True)


def _since_ms(since: str | None) -> int | None:
    if since is None:
        return None
    try:
        return now_ms() - parse_duration(since) * 1000
    except UnitError as error:
        raise click.BadParameter(str(error), param_hint="--since") from error
