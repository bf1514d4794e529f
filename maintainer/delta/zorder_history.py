"""Files that a Z-order wrote, as the table's own history says, whoever made it. Changes no byte, starts no job."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from maintainer.delta.storage import LogEntry
from maintainer.model.table import TableFacts

MAX_COMMITS_READ = 100
"""So far back is looked for a Z-order: a table that is put in order nightly has one among them."""


class Commits(Protocol):
    """What is needed of a table's storage."""

    def commits(self, *, after_version: int = -1) -> list[LogEntry]:
        """The published commit files above a version, in order."""
        ...

    def commit_info(self, entry: LogEntry) -> dict[str, Any]:
        """The commit's ``commitInfo``."""
        ...

    def actions(self, entry: LogEntry, *, with_adds: bool = False) -> Iterator[dict[str, Any]]:
        """The commit's actions."""
        ...


def paths_of_zorder(storage: Commits, facts: TableFacts, columns: Iterable[str]) -> frozenset[str]:
    """Return the paths that commits of OPTIMIZE with ``zOrderBy`` of just these columns added.

    Args:
        storage: The table's log.
        facts: The table; commits above its version are not looked at.
        columns: In their order of weight; upper and lower case are alike, as in Spark.
    """
    wanted = [column.lower() for column in columns]
    oldest = max(facts.version - MAX_COMMITS_READ, -1)
    found: set[str] = set()
    for entry in storage.commits(after_version=oldest):
        if entry.version <= facts.version and zordered_by(storage.commit_info(entry)) == wanted:
            found.update(one["add"]["path"] for one in storage.actions(entry, with_adds=True) if "add" in one)
    return frozenset(found)


def zordered_by(info: Mapping[str, Any]) -> list[str]:
    """Return the columns that a commit ordered by, in lower case; none for any other commit."""
    if info.get("operation") != "OPTIMIZE":
        return []
    try:
        columns = json.loads((info.get("operationParameters") or {}).get("zOrderBy") or "[]")
    except (TypeError, ValueError):
        return []
    return [str(column).lower() for column in columns] if isinstance(columns, list) else []
