"""A table's log as both engines read it: which commits there are, and what they say.

``TableStorage`` asks Hadoop's file system through the JVM gateway; ``SparkStorage`` asks Spark's data sources, which
Spark Connect offers, too. What looks for a commit is written once, against this protocol.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from maintainer.delta.storage import LogEntry


class LogStorage(Protocol):
    """The log of one table, read only."""

    def commits(self, *, after_version: int = -1) -> list[LogEntry]:
        """The published commit files above a version, in order."""
        ...

    def commit_info(self, entry: LogEntry) -> dict[str, Any]:
        """The commit's ``commitInfo``; empty if it has none."""
        ...

    def actions(self, entry: LogEntry, *, with_adds: bool = False) -> Iterator[dict[str, Any]]:
        """The commit's actions; adds, which are most of the text, only if asked for."""
        ...
