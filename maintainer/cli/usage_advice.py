"""Say what to type instead of a command line that is refused: words of other tools, tables at a wrong place.

Needs no command to be imported but the one that was refused.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

import click

_OTHER_VERBS = {
    "lint": "validate",
    "check": "validate",
    "test": "validate --tests",
    "tests": "validate --tests",
    "dry-run": "plan",
    "diff": "plan",
    "run": "apply",
    "optimize": "apply",
    "compact": "apply",
    "vacuum": "apply",
    "zorder": "apply",
    "ls": "list",
    "help": "--help",
}
"""Words that other tools, or the steps themselves, have for commands."""

_OTHER_OPTIONS = {"--dry-run": "'maintainer plan' is the dry run: it changes nothing"}
_SELECT = ("-s", "--select")
_TOO_MANY = re.compile(r"Got unexpected extra arguments? \((.*)\)", re.DOTALL)


def command_advice(word: str, commands: Iterable[str]) -> str | None:
    """Return what to type in place of a command that does not exist; None where nothing is like it."""
    verb = word.lower()
    near = _OTHER_VERBS.get(verb) or next(iter(get_close_matches(verb, list(commands), n=1)), None)
    return f"No such command '{word}'. Did you mean '{near}'?" if near else None


def usage_advice(error: click.UsageError, typed: Sequence[str]) -> str | None:
    """Return a message that says what to type; None where the error says it all.

    Args:
        error: What click, or the command, refused.
        typed: The command's name and what stands behind it.
    """
    if error.ctx is None or error.ctx.parent is None:
        return None
    command, path = error.ctx.command, error.ctx.command_path
    if isinstance(error, click.NoSuchOption):
        other = _OTHER_OPTIONS.get(error.option_name)
        return other or _named_and_not_selected(error, command, path, typed)
    if isinstance(error, click.BadParameter) and error.param is not None and error.param.name == "plan_file":
        return f"{error.message.removesuffix('.')}, and PLAN is a file; tables are selected: {path} -s TABLE"
    extra = _TOO_MANY.fullmatch(error.message)
    if extra and _has_option(command, "--select"):
        return f"{error.message}: tables are selected: {path} -s {shlex.quote(extra[1])}"
    return None


def _named_and_not_selected(
    error: click.NoSuchOption, command: click.Command, path: str, typed: Sequence[str]
) -> str | None:
    """Say of a selection that the command takes the table itself."""
    takes_table = any(
        isinstance(parameter, click.Argument) and parameter.name == "table" for parameter in command.params
    )
    if error.option_name not in _SELECT or not takes_table:
        return None
    return f"{error.message.removesuffix('.')}: this command takes one table: {path} {_value(error.option_name, typed)}"


def _has_option(command: click.Command, name: str) -> bool:
    return any(name in parameter.opts for parameter in command.params)


def _value(option: str, typed: Sequence[str]) -> str:
    """Return what was typed behind an option, as far as that can be told."""
    for word, following in zip(typed, [*typed[1:], "TABLE"], strict=True):
        if word == option:
            return following
        if word.startswith(f"{option}="):
            return word.removeprefix(f"{option}=")
    return "TABLE"
