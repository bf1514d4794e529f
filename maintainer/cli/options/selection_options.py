"""The options that choose tables, shared by every command that has them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem
from click.types import StringParamType

from maintainer.app.selection.table_selection import SelectionOptions, Shard
from maintainer.cli.context import CliContext, find_project_root
from maintainer.cli.options.shared_options import KeptOptions
from maintainer.errors import MaintainerError
from maintainer.policy.project.policy_project import load_project
from maintainer.policy.select.selectors import Selectable

_F = TypeVar("_F", bound=Callable[..., Any])
_P = TypeVar("_P", bound=Selectable)
_KEPT = KeptOptions("selection")
_SHARD = KeptOptions("shard")
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
        # As it is called, as its file writes it, as a path: whichever the person has begun to type.
        spellings = ((table.ref.identifier, table.written, table.ref.location) for table in tables)
        found = (next((name for name in names if name.startswith(incomplete)), None) for names in spellings)
        return [CompletionItem(name) for name in sorted(filter(None, found))][:_MAX_COMPLETIONS]


def selection_options(command: _F) -> _F:
    """Add ``--select``, ``--exclude``, ``--since`` and ``--allow-empty``; `given_selection` reads them."""
    select = _KEPT.option(
        "-s",
        "--select",
        multiple=True,
        metavar="SPEC",
        kind=TableName(),
        help="Tables: a name, a glob, tag:, path:, owner:, state:modified, result:failed, due, drifted, @file. "
        "A space joins alternatives, a comma joins conditions.",
    )
    exclude = _KEPT.option(
        "--exclude",
        multiple=True,
        metavar="SPEC",
        help="The same, for what to leave out.",
    )
    since = _KEPT.option(
        "--since",
        metavar="REF",
        help="Git commit that state:modified compares with.",
    )
    allow_empty = _KEPT.option(
        "--allow-empty",
        is_flag=True,
        help="Selecting nothing is not an error.",
    )
    return select(exclude(since(allow_empty(command))))


def given_selection() -> SelectionOptions:
    """What the command that runs was given; chooses everything without options."""
    return SelectionOptions(**_KEPT.given())


def shard_option(command: _F) -> _F:
    """Add ``--shard`` to a command; `given_shard` reads it."""
    return _SHARD.option(
        "--shard",
        metavar="I/N",
        read=Shard.parse,
        help="Only the I-th of N parts of the selection, for several drivers side by side.",
    )(command)


def given_shard() -> Shard | None:
    """Return the part of the selection that ``--shard`` leaves to this command; None without it."""
    shard: Shard | None = _SHARD.given().get("shard")
    return shard
