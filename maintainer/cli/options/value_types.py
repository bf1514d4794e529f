"""Types of option values, and options that are passed to a command as one argument."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from maintainer.units import UnitError, parse_duration, parse_size

F = TypeVar("F", bound=Callable[..., Any])


class ReadBy(click.ParamType[Any]):
    """A value that a function reads; what the function refuses is a usage error that names the option."""

    def __init__(self, name: str, read: Callable[[str], object]) -> None:
        self.name = name
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> object:  # noqa: ANN401
        """Read the text of the command line; a default that is a value already stays as it is."""
        if not isinstance(value, str):
            return value
        try:
            return self._read(value)
        except UnitError as error:
            self.fail(f"{error.message}: {error.help}", param, ctx)
        except ValueError as error:
            self.fail(str(error), param, ctx)


SIZE = ReadBy("size", parse_size)
DURATION = ReadBy("duration", parse_duration)


def pause(at_most_seconds: int) -> ReadBy:
    """Return the type of a pause between two looks: from one second to ``at_most_seconds``."""

    def read(text: str) -> int:
        seconds = parse_duration(text)
        if not 1 <= seconds <= at_most_seconds:
            raise ValueError(f"from 1s to {at_most_seconds // 86_400}d")
        return seconds

    return ReadBy("duration", read)


def output_option(*forms: str) -> Callable[[F], F]:
    """Add ``-o``, ``--output`` to a command: ``text``, the default, for people, or one of ``forms``."""
    return click.option("-o", "--output", type=click.Choice(["text", *forms]), default="text", show_default=True)


def as_one_argument(
    argument: str, build: Callable[[dict[str, Any]], object], options: Sequence[Callable[[F], F]]
) -> Callable[[F], F]:
    """Add options to a command, and pass all their values to it as one argument that ``build`` makes of them."""

    def decorate(command: F) -> F:
        @functools.wraps(command)
        def command_with_argument(*args: Any, **values: Any) -> Any:  # noqa: ANN401
            own = {name: values.pop(name) for name in names}
            return command(*args, **{argument: build(own)}, **values)

        params: list[click.Parameter] = command_with_argument.__dict__.setdefault("__click_params__", [])
        first = len(params)
        for option in reversed(options):
            option(command_with_argument)
        names = [param.name for param in params[first:] if param.name]
        return command_with_argument  # type: ignore[return-value]

    return decorate
