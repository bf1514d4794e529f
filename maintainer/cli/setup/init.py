"""``maintainer init [DIR]``: a project that is valid at once, with its workflow, hook and editor settings."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click

from maintainer.cli.context import CliContext
from maintainer.cli.printing import writing
from maintainer.cli.setup.init_files import project_files
from maintainer.cli.setup.init_source import UNKNOWN, requirement_line
from maintainer.errors import ProjectError
from maintainer.policy.yaml.discovery import POLICY_FOLDER, PROJECT_FILE

_WORTH_ADDING = {
    ".gitignore": "; add the line `.maintainer/` to it",
    ".pre-commit-config.yaml": "; add the hook `maintainer-validate` to it",
    "requirements.txt": "; add a line for maintainer to it",
}


@click.command("init")
@click.argument("directory", required=False, type=click.Path(file_okay=False, path_type=Path))
@click.pass_obj
def command(context: CliContext, directory: Path | None) -> None:
    """Make a project in DIR (default: here). Never overwrites a file: one that is there already is left alone."""
    root = Path.cwd() if directory is None else directory
    taken = [name for name in (PROJECT_FILE, POLICY_FOLDER) if os.path.lexists(root / name)]
    if taken:
        raise ProjectError(
            "nothing was written, because there is a project here already",
            code="E618",
            where=str(root),
            found=", ".join(taken),
            help="choose another folder: `maintainer init DIR`",
        )
    present = []
    requirement = requirement_line()
    for name, content in project_files(requirement).items():
        if os.path.lexists(root / name):
            present.append(name)
            continue
        _write_new(root / name, content)
        if context.verbosity >= 0:
            click.echo(f"  + {name}")
    for name in present:
        click.echo(f"  = {name}   already exists and was not changed{_WORTH_ADDING.get(name, '')}")
    if context.verbosity < 0:
        return
    where = "" if directory is None else f"cd {shlex.quote(str(directory))} && "
    click.echo(f"A project with an example policy. Next: {where}maintainer validate, then put in your own tables.")
    if requirement == UNKNOWN and "requirements.txt" not in present:
        click.echo("Before the workflow can run: say in requirements.txt where maintainer is installed from.")


def _write_new(path: Path, content: str) -> None:
    """Write a file that must not exist, whatever happened since we looked."""
    with writing(path, "a file"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(content)
