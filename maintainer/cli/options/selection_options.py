"""The options that choose tables."""

from __future__ import annotations

from pathlib import Path

import click
from click.shell_completion import CompletionItem
from click.types import StringParamType

from maintainer.app.selection.table_selection import SelectionOptions, Shard
from maintainer.cli.context import CliContext, find_project_root
from maintainer.cli.options.value_types import ReadBy, as_one_argument
from maintainer.errors import MaintainerError
from maintainer.policy.project.policy_project import load_project

_MAX_COMPLETIONS = 200


class TableName(StringParamType):
    """A table of the project; completes from its policy files."""

    name = "table"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Offer the tables that begin like what was typed; nothing if the project cannot be read."""
        root = ctx.obj.project_root if isinstance(ctx.obj, CliContext) else find_project_root(Path.cwd())
        try:
            tables = load_project(root, keep_resolutions=False).tables
        except MaintainerError:
            return []
        # By its name, as its file writes it, or as a path: whichever the person has begun to type.
        spellings = ((table.ref.identifier, table.written, table.ref.location) for table in tables)
        matches = (next((name for name in names if name.startswith(incomplete)), None) for names in spellings)
        return [CompletionItem(name) for name in sorted(filter(None, matches))][:_MAX_COMPLETIONS]


SELECTION = (
    click.option(
        "-s",
        "--select",
        multiple=True,
        metavar="SPEC",
        type=TableName(),
        help="Tables: a name, a glob, tag:, path:, owner:, state:modified, result:failed, due, drifted, @file. "
        "A space joins alternatives, a comma joins conditions.",
    ),
    click.option("--exclude", multiple=True, metavar="SPEC", help="The same, for what to leave out."),
    click.option("--since", metavar="REF", help="Git commit that state:modified compares with."),
    click.option("--allow-empty", is_flag=True, help="Selecting nothing is not an error."),
)
SHARD = click.option(
    "--shard",
    metavar="I/N",
    type=ReadBy("shard", Shard.parse),
    help="Only the I-th of N parts of the selection, for several drivers side by side.",
)

selection_options = as_one_argument("selection", lambda values: SelectionOptions(**values), SELECTION)
"""Adds the options that choose tables to a command, which takes them as ``selection``."""
