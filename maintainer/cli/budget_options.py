"""The options that bound what a run rewrites, shared by ``plan`` and ``apply``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from maintainer.cli.kept_options import KeptOptions
from maintainer.policy.budgets import Budget
from maintainer.units import UnitError, parse_duration, parse_size

_F = TypeVar("_F", bound=Callable[..., Any])
_KEPT = KeptOptions("budget")


def budget_options(command: _F) -> _F:
    """Add ``--budget-bytes``, ``--budget-files`` and ``--budget-time`` to a command; `given_budget` reads them."""
    size = _KEPT.option(
        "--budget-bytes",
        metavar="SIZE",
        read=parse_size,
        help="Rewrite at most so much, the best first; the rest waits, with its place.",
    )
    files = _KEPT.option("--budget-files", metavar="N", read=_count, help="Rewrite at most so many files.")
    seconds = _KEPT.option(
        "--budget-time",
        metavar="DURATION",
        read=parse_duration,
        help="Rewrite what is expected to take at most this long.",
    )
    return size(files(seconds(command)))


def given_budget() -> Budget:
    """The budget of the command that runs; unbounded without options."""
    given = _KEPT.given()
    return Budget(given.get("budget_bytes"), given.get("budget_files"), given.get("budget_time"))


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 12:
        raise UnitError(f"`{text[:20]}` is not a number of files", "write a whole number")
    return int(text)
