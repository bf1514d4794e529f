"""``maintainer version``: the versions of everything that matters, without importing any of it."""

from __future__ import annotations

import platform
from importlib import metadata

import click

from maintainer import __version__

_PACKAGES = ("pyspark", "delta-spark", "great-expectations", "pyyaml", "click")


def _installed(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


@click.command("version")
def command() -> None:
    """Print the versions of everything that matters."""
    width = max(len(name) for name in ("maintainer", *_PACKAGES))
    click.echo(f"{'maintainer':{width}}  {__version__}")
    click.echo(f"{'python':{width}}  {platform.python_version()}")
    for name in _PACKAGES:
        click.echo(f"{name:{width}}  {_installed(name)}")
