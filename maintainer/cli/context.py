"""The settings of every command: the project's root, the environment, how much to print, and whether to colour."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PROJECT_FILE = "maintainer.yml"
_MAX_ANCESTORS = 40


@dataclass(frozen=True, slots=True)
class CliContext:
    """Made by the group, handed to commands as ``ctx.obj``.

    ``verbosity`` is -1 (quiet), 0 or 1 (verbose). ``color`` is whether stdout takes colour; ``color_stderr``
    the same for stderr, where progress goes.
    """

    project_root: Path
    env: str | None = None
    verbosity: int = 0
    color: bool = False
    color_stderr: bool = False


def find_project_root(start: Path) -> Path:
    """Return the nearest folder at or above ``start`` that holds maintainer.yml, else ``start`` itself."""
    start = start.resolve()
    for folder in [start, *start.parents][:_MAX_ANCESTORS]:
        if (folder / PROJECT_FILE).is_file():
            return folder
    return start
