"""Find the folder of everything that is kept to save time: JARs, Java classes, copies of a state on a store."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

HOME_VARIABLE = "MAINTAINER_HOME"


def cache_home(env: Mapping[str, str]) -> Path | None:
    """Return the folder of everything that is kept to save time; None where the user has no home folder."""
    for variable, below in ((HOME_VARIABLE, ""), ("XDG_CACHE_HOME", "maintainer"), ("HOME", ".cache/maintainer")):
        if env.get(variable):
            return Path(env[variable], below).absolute()
    try:
        return (Path.home() / ".cache" / "maintainer").absolute()
    except RuntimeError:
        return None
