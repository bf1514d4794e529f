"""Read a version of a table from its log's files: a checkpoint, where there is one, and the commits above it.

Delta Kernel reads such a log as well, but it needs a JVM, and the way of each row through it takes time. Anything
unusual is left to Kernel.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from maintainer.delta.log.local_log import LOG_FOLDER
from maintainer.delta.log.replay.checkpoint_actions import checkpoint_actions, slim
from maintainer.delta.log.replay.log_state import IncompleteLog, LogState, segment
from maintainer.delta.storage.file_store import StoredFile
from maintainer.delta.storage.table_storage import LogEntry, TableStorage

MAX_LOG_BYTES = 128 * 1024 * 1024
"""More commits above a checkpoint are unusual: some 200,000 files with statistics of ten columns."""

MAX_CHECKPOINT_BYTES = 512 * 1024 * 1024
"""A larger checkpoint, of more than a million files, is read by Kernel piece by piece."""

SIDECARS = "_sidecars"

IN_COMMIT_TIMESTAMPS = "delta.enableInCommitTimestamps"


@dataclass(frozen=True, slots=True)
class ReplayedVersion:
    """The state of a version, when it was committed (milliseconds since 1970 UTC), and its commit file."""

    state: LogState
    committed_at_ms: int
    commit: StoredFile


def replay_version(
    storage: TableStorage, version: int | None = None, listed: Mapping[str, StoredFile] | None = None
) -> ReplayedVersion | None:
    """Replay the log up to a version, or the newest one; None where anything is missing.

    Args:
        storage: The table's.
        version: None for the newest one.
        listed: The log's folder, where it was listed just now.

    Raises:
        OSError: A file cannot be read.
        ValueError: A file is not JSON or Parquet.
    """
    listed = storage.log_files() if listed is None else listed
    files = {file.name: file for file in listed.values() if not file.is_dir}
    try:
        chosen = segment(files, version)
    except IncompleteLog:
        return None
    commit = files.get(f"{chosen.version:020d}.json")
    if commit is None or sum(files[name].size_bytes for name in chosen.commits) > MAX_LOG_BYTES:
        return None
    state = LogState(chosen.version)
    if chosen.checkpoint and not _take_checkpoint(storage, state, [files[name] for name in chosen.checkpoint]):
        return None
    for body in storage.files.read_many(files[name] for name in chosen.commits):
        state.take(slim(json.loads(line)) for line in body.decode("utf-8").split("\n") if line)
    if not state.metadata or not state.protocol:
        return None
    state.metadata.setdefault("configuration", {})
    state.metadata.setdefault("partitionColumns", [])
    if not chosen.commits:
        state.commit_info = storage.commit_info(
            LogEntry(chosen.version, commit.modification_time_ms, commit.uri, commit)
        )
    committed_at_ms = commit.modification_time_ms
    if str(state.metadata["configuration"].get(IN_COMMIT_TIMESTAMPS)).lower() == "true":
        committed_at_ms = int(state.commit_info["inCommitTimestamp"])
    return ReplayedVersion(state, committed_at_ms, commit)


def _take_checkpoint(storage: TableStorage, state: LogState, parts: list[StoredFile]) -> bool:
    """Fill the state from a checkpoint's files and their sidecars; False where they are too large.

    Raises:
        FileNotFoundError: A sidecar is missing.
        ValueError: A file is damaged, or a sidecar not as long as the manifest says.
    """
    if sum(part.size_bytes for part in parts) > MAX_CHECKPOINT_BYTES:
        return False
    sidecars: dict[str, int] = {}
    for part, body in zip(parts, storage.files.read_many(parts), strict=True):
        actions = checkpoint_actions(part.name, body)
        state.take(action for action in actions if not _is_sidecar(action, sidecars))
    if sum(sidecars.values()) > MAX_CHECKPOINT_BYTES:
        return False
    found = storage.children(f"{storage.root_uri}/{LOG_FOLDER}/{SIDECARS}") if sidecars else {}
    by_name = {file.name: file for file in found.values()}
    for name, size_bytes in sidecars.items():
        if name not in by_name:
            raise FileNotFoundError(name)
        if by_name[name].size_bytes != size_bytes:
            raise ValueError(f"{name}: {by_name[name].size_bytes} bytes instead of {size_bytes}")
    for name, body in zip(sidecars, storage.files.read_many(by_name[name] for name in sidecars), strict=True):
        state.take(checkpoint_actions(name, body))
    return True


def _is_sidecar(action: Mapping[str, Any], sidecars: dict[str, int]) -> bool:
    """Whether an action names a sidecar; its name and length are noted."""
    body = action.get("sidecar")
    if body is not None:
        sidecars[unquote(str(body["path"]).rpartition("/")[2])] = int(body["sizeInBytes"])
    return body is not None
