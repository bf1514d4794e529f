"""Read a table's newest commits from the log: operation, author, figures, whether they are ours, what they wrote.

It also finds the one by which another writer won, for error messages; and, for the hook that runs right after a write
and for planning, partitions that were written since the last auto compaction, and files of rewrites. Reads only, and
starts no Spark job.

The figures are the commit's own ``operationMetrics``, under the names of Delta and delta-rs. With ``counted`` they are
counted from the actions, and cannot be wrong.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from maintainer.delta.jvm import DeltaJvm
from maintainer.delta.log.actions import PartitionNames, removed_key
from maintainer.delta.storage.failures.engine_failures import table_errors
from maintainer.delta.storage.table_log import LogEntry, TableLog, commits_among
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.errors import CommitConflict
from maintainer.model.table.commit_records import (
    MAINTENANCE,
    MAX_COMMITS_BEYOND,
    MAX_COMMITS_READ,
    CommitsRead,
    CommitStamp,
    CommitsWanted,
    TableCommit,
)
from maintainer.model.table.statistics_writers import doubts_about
from maintainer.model.table.table_facts import DataFile, FileKey, PartitionValues, TableFacts, TableRef

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
MAX_DETAIL, MAX_NAME = 80, 120
"""Characters of a commit's parameters and of a user's or an engine's name, which may be of any length."""

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
    also_since_ms, since_ms = wanted.also_since_ms, wanted.since_ms
    most = min(MAX_COMMITS_READ, wanted.limit) if also_since_ms is None else max(wanted.limit, MAX_COMMITS_BEYOND)
    for entry, info in log.infos(entries[::-1][:most]):
        commit = commit_of(entry, info)
        is_beyond = len(commits) >= wanted.limit or (since_ms is not None and commit.at_ms < since_ms)
        if is_beyond and (also_since_ms is None or commit.at_ms < also_since_ms):
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
    operation, parameters = str(info.get("operation") or ""), _map(info.get("operationParameters"))
    said_ms, file_ms = commit_time_ms(entry, info), entry.modification_time_ms
    is_ddl = operation.upper().startswith(("SET ", "UNSET ", "ALTER", "ADD ", "CHANGE "))
    return TableCommit(
        version=entry.version,
        at_ms=min(said_ms, file_ms) if file_ms else said_ms,
        operation=operation,
        by=_by(info),
        stamp=CommitStamp.from_json(_text(info.get("userMetadata"))),
        num_files_removed=0 if is_ddl else _first(metrics, _FILES_REMOVED),
        num_files_added=0 if is_ddl else _first(metrics, _FILES_ADDED),
        bytes_removed=_first(metrics, _BYTES_REMOVED) or _total_size(metrics.get("filesRemoved")),
        bytes_added=_first(metrics, _BYTES_ADDED) or _total_size(metrics.get("filesAdded")),
        duration_seconds=next((_whole(metrics[key]) / unit for key, unit in _SECONDS if key in metrics), None),
        detail=_detail(parameters),
        takes_files=not is_ddl and _takes_files(operation.upper(), parameters, metrics),
        is_auto=_is_auto_compaction(info),
        has_failed=parameters.get("status") == "FAILED",
    )


def commit_time_ms(entry: LogEntry, info: Mapping[str, Any]) -> int:
    """Return when a commit says that it was made, by any writer's number; where it says none, the time of its file."""
    return _whole(info.get("inCommitTimestamp") or info.get("timestamp")) or entry.modification_time_ms


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
    named = [_cut(name, MAX_NAME) for name in (user, engine) if name]
    return f"{named[0]} ({named[1]})" if len(named) > 1 else next(iter(named), None)


def _engine(info: Mapping[str, Any]) -> str | None:
    return _text(info.get("engineInfo")) or _text(info.get("clientVersion"))


def _detail(parameters: Mapping[str, Any]) -> str:
    """Return the parameters that tell something, as text."""
    parts = []
    for name in _DETAILS:
        value = _text(parameters.get(name))
        if value and value not in ("[]", "{}", "false", "Append", "COMPLETED"):
            parts.append(f"{name} {value}")
    return _cut(_EXPRESSION_ID.sub("", ", ".join(parts)), MAX_DETAIL)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "\u2026"


def _first(metrics: Mapping[str, Any], names: Iterable[str]) -> int:
    return next((_whole(metrics[name]) for name in names if name in metrics), 0)


def _total_size(value: object) -> int:
    """``totalSize`` of delta-rs' ``filesAdded``, which is JSON in a text."""
    try:
        return _whole(_map(json.loads(value) if isinstance(value, str) else value).get("totalSize"))
    except (ValueError, RecursionError):
        return 0


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    """A parameter as text; Delta has truth values in the log, other writers their words."""
    if isinstance(value, bool):
        return json.dumps(value)
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
    keys: Collection[FileKey] = (),
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


def find_conflicting_commit(storage: TableLog, keys: Collection[FileKey], *, after_version: int) -> TableCommit | None:
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


MAX_HISTORY_READ = 200
"""Commits searched for the last auto compaction; a hook must not cost a writer more than this."""


def properties_now(jvm: DeltaJvm, ref: TableRef) -> dict[str, str] | None:
    """The table's properties at its newest version, without its files; None where there is no such Delta table.

    Raises:
        TableError: The log cannot be read.
    """
    jvm.activate()
    with table_errors(ref.identifier):
        if ref.is_path:
            log = jvm.log_of_root(jvm.hadoop_path(ref.location))
        else:
            entry = jvm.catalog_entry(ref.identifier)
            if entry is None or not entry.location:
                return None
            log = jvm.log_at(entry.location)
        snapshot = jvm.update(log)
        if int(snapshot.version()) < 0:
            return None
        configuration: dict[str, str] = jvm.metadata(snapshot)["configuration"]
        return configuration


def partitions_written(jvm: DeltaJvm, facts: TableFacts) -> frozenset[PartitionValues] | None:
    """Partitions that commits added data to after the last auto compaction, up to the version of ``facts``.

    Only adds that change data count: a rewrite moves rows and writes nothing new.

    Returns:
        The partitions; None where no auto compaction was found and the commits that could be read do not reach back
        to the table's first one.

    Raises:
        TableError: The log cannot be read.
    """
    jvm.activate()
    partitions = PartitionNames.of_facts(facts)
    written: set[PartitionValues] = set()
    with table_errors(facts.ref.identifier):
        storage = TableStorage(jvm, jvm.log_at(facts.location))
        oldest = max(facts.version - MAX_HISTORY_READ, -1)
        entries = [commit for commit in storage.commits(after_version=oldest) if commit.version <= facts.version]
        for _, actions in storage.actions_of(reversed(entries), with_adds=True):
            for action in actions:
                if _is_auto_compaction(action.get("commitInfo") or {}):
                    return frozenset(written)
                add = action.get("add")
                if add is not None and add.get("dataChange"):
                    written.add(partitions.values_of(add.get("partitionValues")))
    return frozenset(written) if entries and entries[0].version == 0 else None


def _is_auto_compaction(info: Mapping[str, Any]) -> bool:
    """Whether a commit is an auto compaction, Delta's or ours. The parameter's value is text."""
    parameters = _map(info.get("operationParameters"))
    return info.get("operation") == "OPTIMIZE" and str(parameters.get("auto")).lower() == "true"


MAX_ZORDER_COMMITS_READ = 100
"""Commits searched for a Z-order: a table that is ordered nightly has one among them."""


def paths_of_zorder(storage: TableLog, facts: TableFacts, columns: Iterable[str]) -> frozenset[str]:
    """Return the paths that commits of OPTIMIZE with ``zOrderBy`` of just these columns added.

    Args:
        storage: The table's log.
        facts: The table; commits above its version are not looked at.
        columns: In their order of weight; upper and lower case are alike, as in Spark.
    """
    order = [column.lower() for column in columns]
    oldest = max(facts.version - MAX_ZORDER_COMMITS_READ, -1)
    paths: set[str] = set()
    for entry, info in storage.infos(storage.commits(after_version=oldest)):
        if entry.version <= facts.version and zordered_by(info) == order:
            paths.update(action["add"]["path"] for action in storage.actions(entry, with_adds=True) if "add" in action)
    return frozenset(paths)


def paths_of_rewrites(storage: TableLog, facts: TableFacts, since_ms: int) -> frozenset[str]:
    """Return the paths that rewrites added since a moment: commits of ours, and maintenance by others.

    Args:
        storage: The table's log.
        facts: The table; commits above its version are not looked at.
        since_ms: Milliseconds since 1970 UTC. A file is never newer than the commit file that adds it.
    """
    paths: set[str] = set()
    entries = storage.commits(after_version=max(facts.version - MAX_HISTORY_READ, -1))
    since = (entry for entry in entries if entry.modification_time_ms >= since_ms and entry.version <= facts.version)
    for entry, info in storage.infos(list(since)):
        if str(info.get("operation")).upper() in MAINTENANCE or CommitStamp.from_json(info.get("userMetadata")):
            adds = (action["add"] for action in storage.actions(entry, with_adds=True) if "add" in action)
            paths.update(add["path"] for add in adds if add.get("dataChange") is False)
    return frozenset(paths)


def zordered_by(info: Mapping[str, Any]) -> list[str]:
    """Return the columns that a commit ordered by, in lower case; none for any other commit."""
    if info.get("operation") != "OPTIMIZE":
        return []
    try:
        columns = json.loads(_map(info.get("operationParameters")).get("zOrderBy") or "[]")
    except (TypeError, ValueError, RecursionError):
        return []
    return [str(column).lower() for column in columns] if isinstance(columns, list) else []
