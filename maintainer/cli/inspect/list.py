"""``maintainer list``: what a selection means."""

from __future__ import annotations

import click

from maintainer.app.planning.policy_places import paths_to_one_table
from maintainer.app.selection.table_selection import SelectionOptions, Shard, choose
from maintainer.cli.command_project import open_project
from maintainer.cli.context import CliContext
from maintainer.cli.options.selection_options import SHARD, selection_options
from maintainer.cli.options.value_types import output_option
from maintainer.cli.printing import print_json, print_table, warn
from maintainer.policy.resolve.resolved import ResolvedPolicy
from maintainer.report.style import Style
from maintainer.report.text_layout import tables_and_ledger

FORMAT_VERSION = "1"


@click.command("list")
@selection_options
@SHARD
@output_option("json")
@click.pass_obj
def command(context: CliContext, selection: SelectionOptions, shard: Shard | None, output: str) -> None:
    """Show the tables that a selection means. Without one: all tables that a policy file names."""
    project = open_project(context).loaded
    chosen = choose(project.resolved(), project, selection, command="list")
    policies = chosen if shard is None else shard.of(chosen)
    for finding in paths_to_one_table(project.tables):
        warn(f"{finding.message}: {finding.help}", finding.code)
    if output == "json":
        print_json(_as_json(policies))
        return
    rows = [
        (policy.table.identifier, policy.owner or "-", ", ".join(policy.tags) or "-", policy.file)
        for policy in policies
    ]
    print_table(("TABLE", "OWNER", "TAGS", "POLICY"), rows, Style(context.color))
    if context.verbosity >= 0:
        with_ledger = any(policy.is_ledger for policy in policies)
        click.echo(tables_and_ledger(len(policies) - with_ledger, with_ledger=with_ledger), err=True)


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
