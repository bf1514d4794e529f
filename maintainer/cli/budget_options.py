"""The options that bound what a run rewrites, shared by ``plan`` and ``apply``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from maintainer.policy.budgets import Budget
from maintainer.units import UnitError, parse_duration, parse_size

_F = TypeVar("_F", bound=Callable[..., Any])
_KEY = "maintainer.budget"


def budget_options(command: _F) -> _F:
    """Add ``--budget-bytes``, ``--budget-files`` and ``--budget-time`` to a command; `given_budget` reads them."""
    for name, metavar, help_text in (
        ("--budget-time", "DURATION", "Rewrite what is expected to take at most this long."),
        ("--budget-files", "N", "Rewrite at most so many files."),
        ("--budget-bytes", "SIZE", "Rewrite at most so much, the best first; the rest waits, with its place."),
    ):
        command = click.option(name, metavar=metavar, expose_value=False, callback=_keep, help=help_text)(command)
    return command


def given_budget() -> Budget:
    """The budget of the command that runs; unbounded without options."""
    values: dict[str, Any] = click.get_current_context().meta.get(_KEY, {})
    return Budget(values.get("budget_bytes"), values.get("budget_files"), values.get("budget_time"))


def _keep(ctx: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value is None:
        return
    name = str(parameter.name)
    try:
        read: float = {"budget_bytes": parse_size, "budget_time": parse_duration}.get(name, _count)(value)
    except UnitError as error:
        raise click.BadParameter(f"{error.message}: {error.help}") from error
    ctx.meta.setdefault(_KEY, {})[name] = read


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 12:
        raise UnitError(f"`{text[:20]}` is not a number of files", "write a whole number")
    return int(text)
