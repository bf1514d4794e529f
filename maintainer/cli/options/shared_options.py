"""Options that several commands have and none takes as an argument: kept in click's context until asked for.

``-o``: the form in which a command writes to stdout.

The options that bound what a run rewrites, shared by ``plan`` and ``apply``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from maintainer.policy.resolve.budget_settings import Budget
from maintainer.units import UnitError, parse_duration, parse_size

_F = TypeVar("_F", bound=Callable[..., Any])


class KeptOptions:
    """The options of one family, by the names of their parameters."""

    def __init__(self, family: str) -> None:
        self._key = f"maintainer.{family}"

    def option(
        self,
        *names: str,
        help: str,
        metavar: str | None = None,
        kind: click.ParamType[Any] | None = None,
        multiple: bool = False,
        is_flag: bool = False,
        read: Callable[[str], object] | None = None,
    ) -> Callable[[_F], _F]:
        """Return a decorator that adds an option to a command.

        Args:
            names: As on the command line.
            help: For ``--help``.
            metavar: What stands for the value there.
            kind: The value's type for click; text without it.
            multiple: Whether it may be repeated; its value is a tuple then.
            is_flag: Whether it has no value.
            read: Makes a value of the text. Its ``ValueError`` becomes a usage error that names the option.
        """

        def keep(
            context: click.Context, parameter: click.Parameter, value: str | bool | tuple[str, ...] | None
        ) -> None:
            # Not given: what asks for it has a default of its own.
            if value is not None:
                kept = _read(value, read) if read is not None and isinstance(value, str) else value
                context.meta.setdefault(self._key, {})[parameter.name] = kept

        return click.option(
            *names,
            help=help,
            metavar=metavar,
            type=kind,
            multiple=multiple,
            is_flag=is_flag,
            expose_value=False,
            callback=keep,
        )

    def given(self) -> dict[str, Any]:
        """What the command that runs was given, by parameter; nothing outside of a command."""
        context = click.get_current_context(silent=True)
        return {} if context is None else dict(context.meta.get(self._key, {}))


def _read(text: str, read: Callable[[str], object]) -> object:
    try:
        return read(text)
    except UnitError as error:
        raise click.BadParameter(f"{error.message}: {error.help}") from error
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def output_option(*forms: str) -> Callable[[_F], _F]:
    """Add ``-o``, ``--output`` to a command: ``text``, the default, for people, or one of ``forms``."""
    return click.option("-o", "--output", type=click.Choice(["text", *forms]), default="text", show_default=True)


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
