"""``maintainer demo``: build a small lake of real data and walk through everything on it.

Data and tour are in ``examples/demo`` of the repository, and not in the package.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import click

import maintainer
from maintainer.cli.context import CliContext
from maintainer.errors import EnvironmentUnfit, NotSupportedYet

DEFAULT_SCALE = 0.05


@click.command("demo")
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path),
    default=Path("maintainer-demo"),
    show_default=True,
    help="Where to build it: a new or empty folder, or one with an earlier demo, which is replaced.",
)
@click.option("--keep", is_flag=True, help="Use the lake of an earlier demo again.")
@click.option(
    "--scale",
    type=float,
    default=DEFAULT_SCALE,
    show_default=True,
    help="Scale of the TPC-H tables; 1 means six million rows in lineitem.",
)
@click.pass_obj
def demo_command(context: CliContext, folder: Path, keep: bool, scale: float) -> int:
    """Build a small lake of real data and run each command on it.

    The lake has all flights out of New York City in 2013 and two tables of TPC-H, with small files, deletion vectors
    and files that a vacuum may delete. Takes two to three minutes on two cores, and 60 MB. Nothing outside the folder
    is changed.
    """
    if context.env is not None:
        raise NotSupportedYet("the demo's project has no environments", help="leave --env out")
    repository = Path(maintainer.__file__).resolve().parents[1]
    if not (repository / "examples" / "demo" / "walk.py").is_file():
        raise EnvironmentUnfit(
            "the demo is not beside this installation",
            code="E660",
            where=str(repository / "examples" / "demo"),
            help="get the repository of maintainer and run `make demo` in it; the package does not carry the demo",
        )
    if str(repository) not in sys.path:
        sys.path.append(str(repository))
    code: int = importlib.import_module("examples.demo.walk").walk(context, folder, keep=keep, scale=scale)
    return code
