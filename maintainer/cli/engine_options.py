"""The options that say which Spark does the work, shared by every command that needs one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from maintainer.app.engine_access import EngineOptions

_F = TypeVar("_F", bound=Callable[..., Any])


def engine_options(command: _F) -> _F:
    """Add ``--master`` and ``--conf`` to a command."""
    conf = click.option(
        "--conf",
        multiple=True,
        metavar="KEY=VALUE",
        help="A Spark setting for the session that is started. Repeatable.",
    )
    master = click.option("--master", metavar="URL", help="Spark master. Default: local[*], in this process.")
    return master(conf(command))


def parse_engine_options(master: str | None, conf: tuple[str, ...], log_path: Path | None = None) -> EngineOptions:
    """Read the two options.

    Raises:
        click.BadParameter: A setting has no ``=``.
    """
    pairs = []
    for setting in conf:
        key, equals, value = setting.partition("=")
        if not equals or not key.strip():
            raise click.BadParameter(f"{setting!r} is not KEY=VALUE", param_hint="--conf")
        pairs.append((key.strip(), value))
    return EngineOptions(master=master, conf=tuple(pairs), log_path=log_path)
