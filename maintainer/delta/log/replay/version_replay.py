"""Read a version of a table from its log's files: a checkpoint, where there is one, and the commits above it.

The newest action counts, as Delta's protocol says (``LogState``); readers use that however they got the actions.
Every reader of a version goes through ``replay_version``. What it does not read, Spark's own Delta reads or refuses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from maintainer.delta.log.actions import LoggedFile, removed_key
from maintainer.delta.log.commit_history import commit_of
from maintainer.delta.log.replay.checkpoint_actions import StatisticsWanted, checkpoint_actions, json_actions
from maintainer.delta.storage.file_store import StoredFile
from maintainer.delta.storage.log_paths import is_absolute, log_uri
from maintainer.delta.storage.table_log import LogEntry, TableLog
from maintainer.model.table.commit_records import MAINTENANCE, TableCommit, newest_maintenance
from maintainer.model.table.log_names import (
    CHECKPOINT_PART,
    CLASSIC_CHECKPOINT,
    COMMIT_NAME,
    UUID_CHECKPOINT,
    commit_name,
)


@dataclass(frozen=True, slots=True)
class Segment:
    """The files of a log that make up a version: one checkpoint (none before the first) and the commits above it."""

    version: int
    checkpoint: tuple[str, ...]
    commits: tuple[str, ...]


class IncompleteLog(ValueError):
    """The log's files do not make up the version."""


def segment(names: Iterable[str], version: int | None = None) -> Segment:
    """Choose the files that make up a version, or the newest one.

    Raises:
        IncompleteLog: Files are missing; the message names the first version that is.
    """
    commits: dict[int, str] = {}
    whole: dict[int, tuple[str, ...]] = {}
    parts: dict[tuple[int, int], dict[int, str]] = {}
    for name in names:
        if match := COMMIT_NAME.match(name):
            commits[int(match[1])] = name
        elif match := CLASSIC_CHECKPOINT.match(name) or UUID_CHECKPOINT.match(name):
            whole.setdefault(int(match[1]), (name,))
        elif match := CHECKPOINT_PART.match(name):
            parts.setdefault((int(match[1]), int(match[3])), {})[int(match[2])] = name
    for (number, total), pieces in parts.items():
        if set(pieces) == set(range(1, total + 1)):
            whole.setdefault(number, tuple(pieces[piece] for piece in sorted(pieces)))
    newest = max([*commits, *whole], default=-1)
    target = newest if version is None else version
    if newest < 0 or target > newest:
        raise IncompleteLog(f"there is no version {max(target, 0)}")
    start = max((checkpoint for checkpoint in whole if checkpoint <= target), default=-1)
    needed = range(start + 1, target + 1)
    missing = next((commit for commit in needed if commit not in commits), None)
    if missing is not None:
        raise IncompleteLog(f"version {missing} is missing, and no checkpoint covers it")
    return Segment(target, whole.get(start, ()), tuple(commits[commit] for commit in needed))


@dataclass(slots=True)
class LogState:
    """What a table is at a version: fill it with ``take``, oldest action first."""

    version: int
    metadata: dict[str, Any] = field(default_factory=dict)
    protocol: dict[str, Any] = field(default_factory=dict)
    domains: dict[str, str] = field(default_factory=dict)
    transactions: dict[str, dict[str, Any]] = field(default_factory=dict)
    commit_info: dict[str, Any] = field(default_factory=dict)
    files: dict[tuple[str, str], LoggedFile] = field(default_factory=dict)
    strays: list[str] = field(default_factory=list)
    """Paths that were removed and not live: the same files in another spelling, perhaps."""

    def take(self, actions: Iterable[Mapping[str, Any]]) -> None:
        """Apply the actions of a checkpoint or of one commit; the body of an ``add`` is a ``LoggedFile``."""
        self.commit_info = {}
        added: dict[tuple[str, str], LoggedFile] = {}
        for action in actions:
            for kind, body in action.items():
                match kind:
                    case "add":
                        added[body.key] = body
                    case "remove":
                        if self.files.pop(removed_key(body), None) is None:
                            self.strays.append(body["path"])
                    case "metaData":
                        self.metadata = body
                    case "protocol":
                        self.protocol = body
                    case "domainMetadata" if body.get("removed"):
                        self.domains.pop(body["domain"], None)
                    case "domainMetadata":
                        self.domains[body["domain"]] = str(body.get("configuration") or "")
                    case "txn":
                        self.transactions[str(body.get("appId"))] = body
                    case "commitInfo":
                        self.commit_info = body
                    case _:
                        pass
        # A commit's removes come before its adds, whatever their order in the file: a file may be added again.
        self.files.update(added)


MAX_LOG_BYTES = 4 << 30
"""Of commits above a checkpoint: some six million files with statistics of ten columns."""

MAX_CHECKPOINT_BYTES = 2 << 30
"""Of a checkpoint's files: some four million live files."""

READER_FEATURES = frozenset(
    {
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantType",
        "variantType-preview",
        "variantShredding",
        "variantShredding-preview",
    }
)
"""Reader features that are known here. Any other is for Spark's reader to accept or refuse."""

NEWEST_READER_VERSION = 3
"""The protocol's newest reader version; a table that needs a later one is Spark's to refuse."""

NO_COLUMNS = '{"type":"struct","fields":[]}'

IN_COMMIT_TIMESTAMPS = "delta.enableInCommitTimestamps"


@dataclass(frozen=True, slots=True)
class ReplayedVersion:
    """The state of a version, when it was committed (milliseconds since 1970 UTC), and its commit file.

    ``maintenance`` are the newest commits of each kind of maintenance (``newest_maintenance``), of those read, from
    ``first_commit`` on.
    """

    state: LogState
    committed_at_ms: int
    commit: StoredFile
    maintenance: tuple[TableCommit, ...] = ()
    first_commit: int | None = None


def replay_version(
    log: TableLog,
    version: int | None = None,
    listed: Mapping[str, StoredFile] | None = None,
    *,
    with_statistics: StatisticsWanted = False,
) -> ReplayedVersion:
    """Replay the log up to a version, or the newest one.

    Args:
        log: The table's.
        version: None for the newest one.
        listed: The log's folder, where it was listed just now.
        with_statistics: Whose statistics are kept whole; of the other files the record count alone.

    Raises:
        IncompleteLog: The log's files do not make up the version, are too large, or need what is not known here.
        OSError: A file cannot be read.
        ValueError: A file is not JSON or Parquet.
    """
    listed = log.log_files() if listed is None else listed
    files = {file.name: file for file in listed.values() if not file.is_dir}
    chosen = segment(files, version)
    commit = files.get(commit_name(chosen.version))
    if commit is None:
        raise IncompleteLog(f"the commit of version {chosen.version} is missing")
    _check_size("commits", sum(files[name].size_bytes for name in chosen.commits), MAX_LOG_BYTES)
    state = LogState(chosen.version)
    shared: dict[Any, Any] = {}
    if chosen.checkpoint:
        parts = [files[name] for name in chosen.checkpoint]
        _take_checkpoint(log, state, parts, shared, with_statistics=with_statistics)
    commits = [LogEntry(int(name[:20]), files[name]) for name in chosen.commits]
    maintenance: tuple[TableCommit, ...] = ()
    for entry, body in log.bodies(commits):
        state.take(json_actions(body, shared, with_statistics=with_statistics))
        if str(state.commit_info.get("operation")).upper() in MAINTENANCE:
            maintenance = newest_maintenance((*maintenance, commit_of(entry, state.commit_info)))
    if not state.metadata or not state.protocol:
        raise IncompleteLog("the log has no metadata or no protocol")
    _check_known(state.protocol)
    _check_spellings(log.root_uri, state)
    state.metadata.setdefault("configuration", {})
    state.metadata.setdefault("partitionColumns", [])
    state.metadata.setdefault("schemaString", NO_COLUMNS)
    if not chosen.commits:
        state.commit_info = log.commit_info(LogEntry(chosen.version, commit))
    committed_at_ms = commit.modification_time_ms
    if str(state.metadata["configuration"].get(IN_COMMIT_TIMESTAMPS)).lower() == "true":
        committed_at_ms = int(state.commit_info["inCommitTimestamp"])
    first = commits[0].version if commits else None
    return ReplayedVersion(state, committed_at_ms, commit, maintenance, first)


def last_transaction(log: TableLog, app_id: str, version: int | None = None) -> int:
    """The number of the last commit with an idempotency token, at a version or the newest; -1 for none.

    Raises what ``replay_version`` raises.
    """
    return int(replay_version(log, version).state.transactions.get(app_id, {}).get("version", -1))


def _take_checkpoint(
    log: TableLog,
    state: LogState,
    parts: list[StoredFile],
    shared: dict[Any, Any],
    *,
    with_statistics: StatisticsWanted,
) -> None:
    """Fill the state from a checkpoint's files and their sidecars.

    Raises:
        FileNotFoundError: A sidecar is missing.
        ValueError: A file is damaged, or a sidecar not as long as the manifest says.
    """
    _check_size("checkpoint", sum(part.size_bytes for part in parts), MAX_CHECKPOINT_BYTES)
    sidecars: dict[str, int] = {}
    for part, body in zip(parts, log.files.read_many(parts), strict=True):
        actions = checkpoint_actions(part.name, body, shared, with_statistics=with_statistics)
        state.take(action for action in actions if not _is_sidecar(action, sidecars))
    _check_size("sidecars", sum(sidecars.values()), MAX_CHECKPOINT_BYTES)
    found = log.sidecars() if sidecars else {}
    for name, size_bytes in sidecars.items():
        if name not in found:
            raise FileNotFoundError(name)
        if found[name].size_bytes != size_bytes:
            raise ValueError(f"{name}: {found[name].size_bytes} bytes instead of {size_bytes}")
    for name, body in zip(sidecars, log.files.read_many(found[name] for name in sidecars), strict=True):
        state.take(checkpoint_actions(name, body, shared, with_statistics=with_statistics))


def _check_size(what: str, size_bytes: int, most_bytes: int) -> None:
    if size_bytes > most_bytes:
        raise IncompleteLog(f"the {what} to be read have {size_bytes:,} bytes; {most_bytes:,} are read at most")


def _check_known(protocol: Mapping[str, Any]) -> None:
    """Raise for a protocol that is not known, or a feature that readers see differently."""
    version = int(protocol.get("minReaderVersion") or 1)
    unknown = sorted({*(protocol.get("readerFeatures") or ())} - READER_FEATURES)
    if version > NEWEST_READER_VERSION or unknown:
        found = ", ".join(unknown) or f"reader version {version}"
        raise IncompleteLog(f"the table needs what is not known here: {found}")


def _check_spellings(root_uri: str, state: LogState) -> None:
    """Raise where a file may have two paths (with ``file:`` and without, ``a//b`` and ``a/b``); Delta sees one file."""
    outside = {path for path, _ in state.files if is_absolute(path)}
    removed = {log_uri(root_uri, path) for path in state.strays}
    if (
        any(map(is_absolute, state.strays))
        or len({log_uri(root_uri, path) for path in outside}) < len(outside)
        or (removed and any(log_uri(root_uri, path) in removed for path, _ in state.files))
    ):
        raise IncompleteLog("a file may be named in two ways")


def _is_sidecar(action: Mapping[str, Any], sidecars: dict[str, int]) -> bool:
    """Whether an action names a sidecar; its name and length are noted."""
    body = action.get("sidecar")
    if body is not None:
        sidecars[unquote(str(body["path"]).rpartition("/")[2])] = int(body["sizeInBytes"])
    return body is not None
