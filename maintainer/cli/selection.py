"""The options that choose tables, shared by every command that has them, and what they come to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem
from click.types import StringParamType

from maintainer.cli.context import CliContext, find_project_root
from maintainer.errors import MaintainerError, ProjectError
from maintainer.policy.git_state import modified_tables
from maintainer.policy.project import LoadedProject, load_project
from maintainer.policy.resolved import ResolvedPolicy
from maintainer.policy.selectors import (
    Method,
    Selector,
    SelectorContext,
    check_answerable,
    parse_selector,
    select,
)

_F = TypeVar("_F", bound=Callable[..., Any])
_MAX_COMPLETIONS = 200


class TableName(StringParamType):
    """A table of the project; completes from its policy files."""

    name = "table"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Offer the tables that begin like what was typed; nothing if the project cannot be read."""
        root = ctx.obj.project_root if isinstance(ctx.obj, CliContext) else find_project_root(Path.cwd())
        try:
            names = sorted(table.written for table in load_project(root).tables)
        except MaintainerError:
            return []
        return [CompletionItem(name) for name in names if name.startswith(incomplete)][:_MAX_COMPLETIONS]


def selection_options(command: _F) -> _F:
    """Add ``--select``, ``--exclude``, ``--since`` and ``--allow-empty`` to a command."""
    for option in reversed(
        (
            click.option(
                "-s",
                "--select",
                "select_",
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
    ):
        command = option(command)
    return command


def select_policies(
    project: LoadedProject,
    *,
    command: str,
    select_: tuple[str, ...],
    exclude: tuple[str, ...],
    since: str | None,
    allow_empty: bool,
    answers: Mapping[Method, Callable[[str, str], bool]] | None = None,
) -> tuple[ResolvedPolicy, ...]:
    """Return the policies that a command's options choose, sorted by table.

    Args:
        project: A project without errors.
        command: The command's name, for messages.
        select_: Values of ``--select``; none chooses everything.
        exclude: Values of ``--exclude``.
        since: Value of ``--since``.
        allow_empty: Whether choosing nothing is fine.
        answers: What the command knows about tables beyond files, by method.

    Raises:
        ProjectError: A selector cannot be read or answered, or selects nothing.
    """
    include, leave_out = parse_selector(select_, project.root), parse_selector(exclude, project.root)
    known = dict(answers or {})
    if since is not None:
        _check_since_used(include, leave_out)
        changed = _Modified(project, since)
        known[Method.STATE] = lambda identifier, _value: identifier in changed.tables
    context = SelectorContext(project.root, command, known)
    check_answerable(include, context)
    check_answerable(leave_out, context)
    return select(project.resolved(), include, leave_out, context, allow_empty=allow_empty)


class _Modified:
    """Asks git once, and only if a table is asked about."""

    def __init__(self, project: LoadedProject, ref: str) -> None:
        self._project = project
        self._ref = ref

    @cached_property
    def tables(self) -> frozenset[str]:
        return modified_tables(self._project, self._ref)


def _check_since_used(*selectors: Selector) -> None:
    if not any(selector.needs(Method.STATE) for selector in selectors):
        raise ProjectError(
            "--since is given and nothing compares with it", code="E621", help="add `--select state:modified`"
        )
