"""Read a table's newest commits from the log: operation, author, figures, and whether they are ours. No Spark job.

And find the one by which another writer won, for error messages.

The figures are the commit's own ``operationMetrics``, under the names of Delta and delta-rs. With
``counted`` they are counted from the actions, and cannot be wrong.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from maintainer.delta.log.actions import removed_key
from maintainer.delta.storage.table_log import LogEntry, TableLog, commits_among
from maintainer.errors import CommitConflict
from maintainer.model.table.commit_records import MAX_COMMITS_READ, CommitsRead, CommitStamp, CommitsWanted, TableCommit
from maintainer.model.table.statistics_writers import doubts_about
from maintainer.model.table.table_facts import DataFile, TableFacts

_FILES_ADDED = ("numAddedFiles", "numFilesAdded", "num_added_files", "numTargetFilesAdded", "numFiles")
_FILES_REMOVED = (
    "numRemovedFiles",
    "numFilesRemoved",
    "num_removed_files",
    "numTargetFilesRemoved",
    "num_target_files_removed",
    "numDeletedFiles",
    "numFilesToDelete",
)
_BYTES_ADDED = ("numAddedBytes", "numTargetBytesAdded", "numOutputBytes")
_BYTES_REMOVED = ("numRemovedBytes", "numTargetBytesRemoved", "sizeOfDataToDelete")
_ROWS_HIDDEN = (
    "numDeletionVectorsAdded",
    "numDeletionVectorsUpdated",
    "numTargetDeletionVectorsAdded",
    "numTargetDeletionVectorsUpdated",
)
_TAKING = ("DELETE", "UPDATE", "MERGE")
_REPLACING = ("TRUNCATE", "RESTORE", "REPLACE TABLE", "CREATE OR REPLACE TABLE")
_SECONDS = (("executionTimeMs", 1000), ("execution_time_ms", 1000))
_DETAILS = ("mode", "predicate", "zOrderBy", "auto", "clusterBy", "properties", "retentionCheckEnabled", "status")
MAX_DETAIL = 80

_EXPRESSION_ID = re.compile(r"#\d+L?\b")
"""Spark numbers the columns of a predicate (``o_orderdate#28357``); the numbers mean nothing to a reader."""


def read_commits(log: TableLog, location: str, wanted: CommitsWanted) -> CommitsRead:
    """Return a table's newest commits.

    Args:
        log: The table's log.
        location: The table's root, for the answer.
        wanted: Which, and what of them. The log's order is trusted, as times of commits may go back a little.
    """
    until = wanted.until_version
    entries = log.commits() if until is None else commits_among(log.listed_with(until).values())
    commits: list[TableCommit] = []
    doubtful: dict[str, set[str]] = {}
    for entry, info in log.infos(entries[::-1][: min(MAX_COMMITS_READ, wanted.limit)]):
        commit = commit_of(entry, info)
        if wanted.since_ms is not None and commit.at_ms < wanted.since_ms:
            break
        engine = _engine(info) or ""
        doubts = [doubt for doubt in doubts_about(engine) if any(map(doubt.is_about, wanted.doubtful_types))]
        if doubts:
            adds = (action["add"] for action in log.actions(entry, with_adds=True) if "add" in action)
            paths = {str(add["path"]) for add in adds if any(doubt.may_be_in(add.get("stats")) for doubt in doubts)}
            if paths:
                doubtful.setdefault(engine, set()).update(paths)
        commits.append(
            _counted(commit, log.actions(entry, with_adds=True)) if wanted.counted and commit.stamp else commit
        )
    by_writer = tuple((engine, frozenset(paths)) for engine, paths in sorted(doubtful.items()))
    return CommitsRead(location, tuple(commits), entries[0].version if entries else None, doubtful_files=by_writer)


def commit_of(entry: LogEntry, info: Mapping[str, Any]) -> TableCommit:
    """Return a commit by what it says of itself."""
    metrics = _map(info.get("operationMetrics"))
    operation = str(info.get("operation") or "")
    is_ddl = operation.upper().startswith(("SET ", "UNSET ", "ALTER", "ADD ", "CHANGE "))
    return TableCommit(
        version=entry.version,
        at_ms=_whole(info.get("inCommitTimestamp") or info.get("timestamp")) or entry.modification_time_ms,
        operation=operation,
        by=_by(info),
        stamp=CommitStamp.from_json(_text(info.get("userMetadata"))),
        num_files_removed=0 if is_ddl else _first(metrics, _FILES_REMOVED),
        num_files_added=0 if is_ddl else _first(metrics, _FILES_ADDED),
        bytes_removed=_first(metrics, _BYTES_REMOVED) or _total_size(metrics.get("filesRemoved")),
        bytes_added=_first(metrics, _BYTES_ADDED) or _total_size(metrics.get("filesAdded")),
        duration_seconds=next((_whole(metrics[key]) / unit for key, unit in _SECONDS if key in metrics), None),
        detail=_detail(_map(info.get("operationParameters"))),
        takes_files=not is_ddl and _takes_files(operation.upper(), _map(info.get("operationParameters")), metrics),
    )


def _takes_files(operation: str, parameters: Mapping[str, Any], metrics: Mapping[str, Any]) -> bool:
    """Whether live files were removed, or rows of them hidden; without figures, whether the operation may do so."""
    if operation.startswith("VACUUM"):
        return False
    figures = [name for name in (*_FILES_REMOVED, *_ROWS_HIDDEN) if name in metrics]
    if any(_whole(metrics[name]) for name in figures):
        return True
    if operation in _TAKING:
        return not figures
    overwrites = {str(parameters.get(name)).lower() for name in ("mode", "outputMode")} & {"overwrite", "complete"}
    return bool(overwrites) or operation.startswith(_REPLACING)


def _counted(commit: TableCommit, actions: Iterable[Mapping[str, Any]]) -> TableCommit:
    """Return the commit with figures counted from its actions; a commit without files keeps its own."""
    added = removed = size_added = size_removed = 0
    for action in actions:
        if "add" in action:
            added, size_added = added + 1, size_added + _whole(action["add"].get("size"))
        elif "remove" in action:
            removed, size_removed = removed + 1, size_removed + _whole(action["remove"].get("size"))
    if not added and not removed:
        return commit
    return replace(
        commit, num_files_added=added, num_files_removed=removed, bytes_added=size_added, bytes_removed=size_removed
    )


def _by(info: Mapping[str, Any]) -> str | None:
    """Return the user, where the commit names one, and the engine that wrote it."""
    engine = _engine(info)
    user = _text(info.get("userName")) or _text(info.get("userId"))
    return f"{user} ({engine})" if user and engine else user or engine


def _engine(info: Mapping[str, Any]) -> str | None:
    return _text(info.get("engineInfo")) or _text(info.get("clientVersion"))


def _detail(parameters: Mapping[str, Any]) -> str:
    """Return the parameters that tell something, as text."""
    parts = []
    for name in _DETAILS:
        value = _text(parameters.get(name))
        if value and value not in ("[]", "{}", "false", "Append", "COMPLETED"):
            parts.append(f"{name} {value}")
    text = _EXPRESSION_ID.sub("", ", ".join(parts))
    return text if len(text) <= MAX_DETAIL else text[: MAX_DETAIL - 1] + "\u2026"


def _first(metrics: Mapping[str, Any], names: Iterable[str]) -> int:
    return next((_whole(metrics[name]) for name in names if name in metrics), 0)


def _total_size(value: object) -> int:
    """``totalSize`` of delta-rs' ``filesAdded``, which is JSON in a text."""
    try:
        return _whole(_map(json.loads(value) if isinstance(value, str) else value).get("totalSize"))
    except ValueError:
        return 0


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    return str(value) if isinstance(value, (str, int)) and str(value) else None


def _whole(value: object) -> int:
    """A figure, which the log has as text or as a number; 0 for anything else."""
    try:
        return max(0, int(float(value))) if isinstance(value, (str, int, float)) else 0
    except (ValueError, OverflowError):
        return 0


def find_stamp(storage: TableLog, stamp: CommitStamp, *, after_version: int) -> int | None:
    """Return the lowest version above ``after_version`` whose ``userMetadata`` is the stamp, or None."""
    stamp_json = stamp.to_json()
    infos = storage.infos(storage.commits(after_version=after_version))
    return next((entry.version for entry, info in infos if info.get("userMetadata") == stamp_json), None)


def commit_at(storage: TableLog, version: int) -> LogEntry | None:
    """Return the commit file of a version, None if the log has none."""
    return next((entry for entry in storage.commits(after_version=version - 1) if entry.version == version), None)


def read_stamp(storage: TableLog, version: int) -> CommitStamp | None:
    """Return the stamp of a version's commit; None if it is not ours, or no longer in the log."""
    entry = commit_at(storage, version)
    return None if entry is None else CommitStamp.from_json(storage.commit_info(entry).get("userMetadata"))


def info_of(actions: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the ``commitInfo`` of a commit's actions; empty if it has none."""
    return next((action["commitInfo"] for action in actions if "commitInfo" in action), {})


MAX_COMMITS_SEARCHED = 1000


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
) -> TableCommit | None:
    """Return the first commit above a version that removed one of the files, or else changed metadata or protocol.

    Best effort, for a message: bounded, and None if the log cannot be read.
    """
    keys_read = set(keys)
    other: TableCommit | None = None
    try:
        entries = storage.commits(after_version=after_version)[:MAX_COMMITS_SEARCHED]
        for entry, actions in ((entry, list(actions)) for entry, actions in storage.actions_of(entries)):
            if any(removed_key(action["remove"]) in keys_read for action in actions if "remove" in action):
                return commit_of(entry, info_of(actions))
            if other is None and any("metaData" in action or "protocol" in action for action in actions):
                other = commit_of(entry, info_of(actions))
    except Exception:
        return other
    return other
