"""Ask before tables are changed, as Terraform does: a person agrees on a terminal, a pipeline says ``--yes``.

Where there is nobody to ask and nobody has agreed, a command refuses before it looks at any table.
"""

from __future__ import annotations

import sys

import click

from maintainer.errors import ProjectError
from maintainer.report.style import is_terminal

YES = click.option("--yes", is_flag=True, help="Do not ask. Needed without a terminal.")


def require_approval(*, yes: bool, command: str, first: str) -> None:
    """Refuse a command that changes tables where nobody agreed and nobody can be asked.

    Args:
        yes: Whether ``--yes`` was given.
        command: The command, for the message.
        first: What a person can look at or should know before agreeing to it.

    Raises:
        ProjectError: E628.
    """
    if yes or (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        return
    raise ProjectError(
        f"`{command}` changes tables, and there is no terminal to ask whether it may",
        code="E628",
        help=f"in a pipeline write `{command} --yes`; {first}",
    )


def is_approved(question: str, *, yes: bool) -> bool:
    """Ask a question on the terminal, unless ``--yes`` was given. Enter means no."""
    return yes or click.confirm(question, default=False, err=True)
