"""Read a version of a young table from its commit files, where no checkpoint is needed.

Delta Kernel reads such a log as well, but the way of each row through the JVM takes time. Anything unusual is left to
Kernel.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from maintainer.delta.log.actions import num_records
from maintainer.delta.log.replay.log_state import IncompleteLog, LogState, segment
from maintainer.delta.storage.file_store import StoredFile
from maintainer.delta.storage.table_storage import TableStorage

MAX_LOG_BYTES = 128 * 1024 * 1024
"""A longer log without a checkpoint is unusual: some 200,000 files with statistics of ten columns."""

IN_COMMIT_TIMESTAMPS = "delta.enableInCommitTimestamps"


@dataclass(frozen=True, slots=True)
class ReplayedVersion:
    """The state of a version, when it was committed (milliseconds since 1970 UTC), and its commit file."""

    state: LogState
    committed_at_ms: int
    commit: StoredFile


def replay_commits(
    storage: TableStorage, version: int | None = None, listed: Mapping[str, StoredFile] | None = None
) -> ReplayedVersion | None:
    """Replay the commits up to a version, or the newest one; None where it needs a checkpoint, or anything is missing.

    Args:
        storage: The table's.
        version: None for the newest one.
        listed: The log's folder, where it was listed just now.

    Raises:
        OSError: A file cannot be read.
        ValueError: A line is not JSON.
    """
    listed = storage.log_files() if listed is None else listed
    files = {file.name: (uri, file) for uri, file in listed.items() if not file.is_dir}
    try:
        chosen = segment(files, version)
    except IncompleteLog:
        return None
    if chosen.checkpoint or sum(files[name][1].size_bytes for name in chosen.commits) > MAX_LOG_BYTES:
        return None
    state = LogState(chosen.version)
    for body in storage.files.read_many(files[name][1] for name in chosen.commits):
        state.take(_slim(json.loads(line)) for line in body.decode("utf-8").split("\n") if line)
    if not state.metadata or not state.protocol:
        return None
    state.metadata.setdefault("configuration", {})
    state.metadata.setdefault("partitionColumns", [])
    commit = files[chosen.commits[-1]][1]
    committed_at_ms = commit.modification_time_ms
    if str(state.metadata["configuration"].get(IN_COMMIT_TIMESTAMPS)).lower() == "true":
        committed_at_ms = int(state.commit_info["inCommitTimestamp"])
    return ReplayedVersion(state, committed_at_ms, commit)


def _slim(action: dict[str, Any]) -> dict[str, Any]:
    """The action with no more of an add's statistics than facts need: they are most of a log."""
    add = action.get("add")
    if add is not None and add.get("stats"):
        records = num_records(add["stats"])
        add["stats"] = None if records is None else f'{{"numRecords":{records}}}'
    return action
