"""``maintainer list``: what a selection means."""

from __future__ import annotations

import json

import click

from maintainer.app.planning.policy_places import paths_to_one_table
from maintainer.app.selection.table_selection import choose
from maintainer.cli.command_project import open_project
from maintainer.cli.context import CliContext
from maintainer.cli.options.selection_options import given_selection, given_shard, selection_options, shard_option
from maintainer.cli.options.shared_options import output_option
from maintainer.policy.resolve.resolved import ResolvedPolicy
from maintainer.report.text.style import Role, Style
from maintainer.report.text.text_layout import columns, count, printable

FORMAT_VERSION = "1"


@click.command("list")
@selection_options
@shard_option
@output_option("json")
@click.pass_obj
def command(
    context: CliContext,
    output: str,
) -> None:
    """Show the tables that a selection means. Without one: all tables that a policy file names."""
    project = open_project(context).loaded
    chosen, shard = choose(project.resolved(), project, given_selection(), command="list"), given_shard()
    policies = chosen if shard is None else shard.of(chosen)
    for finding in paths_to_one_table(project.tables):
        click.echo(f"warning[{finding.code}]: {finding.message}: {finding.help}", err=True)
    if output == "json":
        click.echo(json.dumps(_as_json(policies), indent=2, ensure_ascii=False))
        return
    if policies:
        click.echo(_as_text(policies, Style(context.color)))
    if context.verbosity >= 0:
        click.echo(count(len(policies), "table"), err=True)


def _as_text(policies: tuple[ResolvedPolicy, ...], style: Style) -> str:
    rows = [("TABLE", "OWNER", "TAGS", "POLICY")]
    for policy in policies:
        rows.append(
            (
                printable(policy.table.identifier),
                printable(policy.owner or "-"),
                printable(", ".join(policy.tags) or "-"),
                printable(policy.file),
            )
        )
    head, *lines = columns(rows)
    return "\n".join([style.paint(head, Role.BOLD), *lines])


def _as_json(policies: tuple[ResolvedPolicy, ...]) -> dict[str, object]:
    return {
        "format_version": FORMAT_VERSION,
        "tables": [
            {
                "table": policy.table.identifier,
                "owner": policy.owner,
                "tags": list(policy.tags),
                "file": policy.file,
                "digest": policy.digest,
            }
            for policy in policies
        ],
    }
