"""Policies in Git that keep Delta Lake tables healthy: planned, applied and proven.

``Project`` is the Python API: load, plan, apply, look back. ``auto_compact`` is for writers: call it after a commit, or
in ``foreachBatch``. Importing this package imports neither Spark nor anything else that is heavy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from maintainer.model.product_version import __version__

if TYPE_CHECKING:
    from maintainer.app.auto_compact_hook import auto_compact
    from maintainer.app.python_api import Plan, Project, Run, RunFailed, Table

__all__ = ["Plan", "Project", "Run", "RunFailed", "Table", "__version__", "auto_compact"]


def __getattr__(name: str) -> object:
    """Load the Python API when it is first asked for: the command line needs none of it to start."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    of = "auto_compact_hook" if name == "auto_compact" else "python_api"
    return getattr(import_module(f"maintainer.app.{of}"), name)


def __dir__() -> list[str]:
    """Name what is public, for completion: also what is loaded when it is first asked for."""
    return sorted(__all__)
