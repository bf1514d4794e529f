"""A table's own history as its log tells it: each commit, who made it, and whether it was one of ours."""

from __future__ import annotations

from dataclasses import dataclass

from maintainer.model.outcome import CommitStamp

MAINTENANCE = frozenset({"OPTIMIZE", "REORG", "VACUUM START", "VACUUM END", "VACUUM", "ZORDER BY", "FSCK REPAIR TABLE"})
"""Operations that take care of a table, as Delta and its other writers name them."""


@dataclass(frozen=True, slots=True)
class TableCommit:
    """One commit of a table's log.

    ``at_ms`` is milliseconds since 1970 UTC: what the commit says, or when its file was written. ``operation`` is
    Delta's name (``WRITE``, ``OPTIMIZE``); empty where the commit does not say. ``by`` is the user or the engine.
    Sizes are bytes; figures are 0 and ``duration_seconds`` is None where the commit does not say. ``stamp`` is set for
    a commit of ours. ``detail`` are parameters worth a word, such as ``zOrderBy a, b``. ``takes_files`` says that it
    removed files that were live or hid rows of them, which a rewrite of the same files cannot survive.
    """

    version: int
    at_ms: int
    operation: str
    by: str | None = None
    stamp: CommitStamp | None = None
    num_files_removed: int = 0
    num_files_added: int = 0
    bytes_removed: int = 0
    bytes_added: int = 0
    duration_seconds: float | None = None
    detail: str = ""
    takes_files: bool = False

    @property
    def is_maintenance(self) -> bool:
        """Whether the commit takes care of the table rather than changes what is in it."""
        return self.operation.upper() in MAINTENANCE


@dataclass(frozen=True, slots=True)
class CommitsRead:
    """Commits of a table, newest first. ``oldest_version`` is the first that the log still has, None for none.

    ``table_id`` is the table's own id where a look was taken at it.
    """

    location: str
    commits: tuple[TableCommit, ...]
    oldest_version: int | None = None
    table_id: str | None = None
