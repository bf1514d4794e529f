"""Policies in Git that keep Delta Lake tables healthy: planned, applied and proven.

``Project`` is the Python API: load, plan, apply, look back. ``auto_compact`` is for writers: call it after a commit, or
in ``foreachBatch``. Importing this package imports neither Spark nor anything else that is heavy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from maintainer.model.product_version import __version__

if TYPE_CHECKING:
    import os

    from pyspark.sql import SparkSession

    from maintainer.app.python_api import Plan, Project, Run, RunFailed, Table
    from maintainer.model.run.auto_compaction import AutoCompactResult

__all__ = ["Plan", "Project", "Run", "RunFailed", "Table", "__version__", "auto_compact"]


def auto_compact(
    spark: SparkSession,
    table: str | os.PathLike[str],
    *,
    enabled: bool | None = None,
    min_num_files: int | None = None,
    min_file_size: str | int | None = None,
    max_file_size: str | int | None = None,
    modified_partitions_only: bool | None = None,
    quiet_after_updates: str | None = None,
    timeout_seconds: float = 3600.0,
) -> AutoCompactResult:
    """Compact a table's small files if there are enough of them, proven before it is committed.

    Everything is decided from the table's log, so a restart of the driver forgets nothing and other writers' files
    count as well. Each setting is taken from the argument, else from the table property ``maintainer.autoCompact.*``
    (which a policy's ``autoCompact`` map sets), else from the session's ``spark.databricks.delta.autoCompact.*``, else
    it is Delta's default.

    Args:
        spark: The writer's session. It is left exactly as it was: the work happens in a session and on a thread of
            its own.
        table: A name in the session's catalog, or a path or URI.
        enabled: True or False decides; None asks the session, then the table, as Delta does.
        min_num_files: So many small files qualify a partition; by default 50.
        min_file_size: Files smaller than this are small: bytes, or text like ``64MiB``; by default half of
            ``max_file_size``.
        max_file_size: Size of the files written; by default 128 MiB.
        modified_partitions_only: Look only at partitions written since the last auto compaction; by default true.
        quiet_after_updates: What others updated, deleted or merged less than this ago (``10m``, the default) is left
            alone; what ``spark`` itself committed right before is none of that. ``0s`` where nobody else updates.
        timeout_seconds: After this time the attempt is cancelled and commits nothing more; the writer goes on.

    Returns:
        What came of it, with the figures of OPTIMIZE. Nothing is ever raised but ``KeyboardInterrupt``, for a hook must
        not fail a write that has succeeded.
    """
    from maintainer.app.auto_compact_hook import auto_compact as run

    return run(
        spark,
        table,
        enabled=enabled,
        min_num_files=min_num_files,
        min_file_size=min_file_size,
        max_file_size=max_file_size,
        modified_partitions_only=modified_partitions_only,
        quiet_after_updates=quiet_after_updates,
        timeout_seconds=timeout_seconds,
    )


_LOADED_LATE = frozenset({"Plan", "Project", "Run", "RunFailed", "Table"})


def __getattr__(name: str) -> object:
    """Load the Python API when it is first asked for: the command line needs none of it to start."""
    if name in _LOADED_LATE:
        from maintainer.app import python_api

        return getattr(python_api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Name what is public, for completion: also what is loaded when it is first asked for."""
    return sorted(__all__)
