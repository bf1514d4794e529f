"""``-o``: the form in which a command writes to stdout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

_F = TypeVar("_F", bound=Callable[..., Any])


def output_option(*forms: str) -> Callable[[_F], _F]:
    """Add ``-o``, ``--output`` to a command: ``text``, the default, for people, or one of ``forms``."""
    return click.option("-o", "--output", type=click.Choice(["text", *forms]), default="text", show_default=True)
