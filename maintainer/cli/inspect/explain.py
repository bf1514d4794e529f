"""``maintainer explain TABLE``: the effective policy of one table, every value with its origin."""

from __future__ import annotations

import click

from maintainer.cli.command_project import open_project
from maintainer.cli.context import CliContext
from maintainer.cli.options.selection_options import TableName
from maintainer.cli.options.value_types import output_option
from maintainer.cli.printing import print_json
from maintainer.report.policy_text import explain_json, explain_text, merged_yaml
from maintainer.report.style import Style


@click.command("explain")
@click.argument("table", type=TableName())
@click.option("--merged", is_flag=True, help="Print one policy file that says the same without any other file.")
@output_option("json")
@click.pass_obj
def command(context: CliContext, table: str, merged: bool, output: str) -> None:
    """Show the effective policy of TABLE, and the file and line of every value."""
    if merged and output == "json":
        raise click.UsageError("--merged prints YAML; it has no JSON form")
    resolution = open_project(context).loaded.resolution_of(table)
    if merged:
        click.echo(merged_yaml(resolution), nl=False)
    elif output == "json":
        print_json(explain_json(resolution))
    else:
        click.echo(explain_text(resolution, Style(context.color)))
