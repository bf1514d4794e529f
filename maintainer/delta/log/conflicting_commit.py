"""Find the conflicting commit of another writer, for error messages."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from maintainer.delta.log.commit_history import info_of
from maintainer.delta.storage.table_log import LogEntry, TableLog
from maintainer.errors import CommitConflict
from maintainer.model.table.table_facts import DataFile, TableFacts

MAX_COMMITS_SEARCHED = 1000


@dataclass(frozen=True, slots=True)
class ConflictingCommit:
    """Another writer's commit that landed before ours, for a message."""

    version: int
    operation: str
    committed_at_ms: int

    def __str__(self) -> str:
        moment = datetime.fromtimestamp(self.committed_at_ms / 1000, tz=timezone.utc)
        return f"version {self.version}, {self.operation}, {moment:%Y-%m-%d %H:%M:%S} UTC"


def removed_key(remove: Mapping[str, Any]) -> tuple[str, str]:
    """Return path and deletion vector id of a ``remove`` (or ``add``) action: what Delta reconciles by."""
    return (remove["path"], vector_id(remove.get("deletionVector")))


def vector_id(vector: Mapping[str, Any] | None) -> str:
    """Return the id of a ``deletionVector`` of the log; empty for none."""
    if not vector:
        return ""
    offset = "" if vector.get("offset") is None else f"@{vector['offset']}"
    return f"{vector['storageType']}{vector['pathOrInlineDv']}{offset}"


def lost_to(
    what: str,
    storage: TableLog,
    keys: Collection[tuple[str, str]] = (),
    *,
    after_version: int,
    where: str,
    help: str,
    found: str | None = None,
) -> CommitConflict:
    """Return C701, which names the other commit where it is found; see ``find_conflicting_commit``."""
    other_commit = find_conflicting_commit(storage, keys, after_version=after_version)
    return CommitConflict(what + (f" ({other_commit})" if other_commit else ""), where=where, found=found, help=help)


def files_gone(missing: Sequence[DataFile], num_planned: int, storage: TableLog, facts: TableFacts) -> CommitConflict:
    """Return C701 for files of a batch that are no longer live as planned."""
    return lost_to(
        f"{len(missing)} of {num_planned} files are no longer live as planned: another writer won",
        storage,
        {file.key for file in missing},
        after_version=facts.version,
        where=facts.ref.identifier,
        found=f"{missing[0].path} was removed, or has other deleted rows or another partition now",
        help="plan again; the rest will be done then",
    )


def find_conflicting_commit(
    storage: TableLog, keys: Collection[tuple[str, str]], *, after_version: int
) -> ConflictingCommit | None:
    """Return the first commit above a version that removed one of the files, or else changed metadata or protocol.

    Best effort, for a message: bounded, and None if the log cannot be read.
    """
    keys_read = set(keys)
    other: ConflictingCommit | None = None
    try:
        entries = storage.commits(after_version=after_version)[:MAX_COMMITS_SEARCHED]
        for entry, actions in ((entry, list(actions)) for entry, actions in storage.actions_of(entries)):
            if any(removed_key(action["remove"]) in keys_read for action in actions if "remove" in action):
                return read_conflicting_commit(entry, actions)
            if other is None and any("metaData" in action or "protocol" in action for action in actions):
                other = read_conflicting_commit(entry, actions)
    except Exception:
        return other
    return other


def read_conflicting_commit(entry: LogEntry, actions: list[dict[str, Any]]) -> ConflictingCommit:
    """Return version, operation and time of a commit from its ``commitInfo``."""
    info = info_of(actions)
    moment = info.get("inCommitTimestamp") or info.get("timestamp") or entry.modification_time_ms
    return ConflictingCommit(entry.version, str(info.get("operation") or "unknown operation"), int(moment))
