"""The options that say which engine and which Spark do the work, shared by every command that needs them.

They are kept in click's context: most commands have them, none looks at them, and `given_engine` reads them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from maintainer.app.engine_access import ENGINES, EngineOptions
from maintainer.cli.options.shared_options import KeptOptions

_F = TypeVar("_F", bound=Callable[..., Any])
_KEPT = KeptOptions("engine")


def engine_options(command: _F) -> _F:
    """Add ``--master``, ``--conf``, ``--engine`` and ``--remote`` to a command."""
    conf = _KEPT.option(
        "--conf",
        multiple=True,
        metavar="KEY=VALUE",
        help="A Spark setting for the session that is started. Repeatable.",
    )
    master = _KEPT.option(
        "--master",
        metavar="URL",
        help="Spark master. Default: local[*], in this process.",
    )
    engine = _KEPT.option(
        "--engine",
        kind=click.Choice(ENGINES),
        help="transaction: proves before it commits (default). command: Delta's own commands, proven afterwards.",
    )
    remote = _KEPT.option(
        "--remote",
        metavar="URL",
        help="A Spark Connect server, sc://host:port; implies --engine command. Default: SPARK_REMOTE.",
    )
    return master(conf(engine(remote(command))))


def given_engine() -> EngineOptions:
    """Return what the command that runs was given; what it leaves open, maintainer.yml says.

    Raises:
        click.BadParameter: A setting has no ``=``.
        click.UsageError: ``--master`` beside ``--remote``.
    """
    given = _KEPT.given()
    master, engine, remote = (given.get(name) for name in ("master", "engine", "remote"))
    pairs = []
    for setting in given.get("conf", ()):
        key, equals, value = setting.partition("=")
        if not equals or not key.strip():
            raise click.BadParameter(f"{setting!r} is not KEY=VALUE", param_hint="--conf")
        pairs.append((key.strip(), value))
    if remote is not None and master is not None:
        raise click.UsageError("--master starts a Spark and --remote goes to one that runs: leave one of them out")
    return EngineOptions(master, tuple(pairs), engine=engine, remote=remote, on_warning=_warn)


def _warn(text: str) -> None:
    click.echo(f"warning: {text}", err=True)
