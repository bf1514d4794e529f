"""Find the folder of everything that is kept to save time: JARs, Java classes, copies of a state on a store."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

HOME_VARIABLE = "MAINTAINER_HOME"


def cache_home(env: Mapping[str, str]) -> Path | None:
    """Return the folder of everything that is kept to save time; None where the user has no home folder."""
    if env.get(HOME_VARIABLE):
        base = Path(env[HOME_VARIABLE])
    elif env.get("XDG_CACHE_HOME"):
        base = Path(env["XDG_CACHE_HOME"]) / "maintainer"
    elif env.get("HOME"):
        base = Path(env["HOME"]) / ".cache" / "maintainer"
    else:
        try:
            base = Path.home() / ".cache" / "maintainer"
        except RuntimeError:
            return None
    return base.absolute()
