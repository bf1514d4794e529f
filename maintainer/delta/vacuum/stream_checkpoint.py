"""Find how far a Structured Streaming reader of a table has come, by its checkpoint. Read only.

A checkpoint holds ``offsets/N`` (what batch N reads up to, one JSON line for each source, after a version and a line of
metadata) and ``commits/N`` (batch N is done). After a restart the stream goes on from the last batch that is done.
"""

from __future__ import annotations

import json
from typing import Any

from maintainer.delta.log.replay.log_replay import LogReplay
from maintainer.delta.storage.file_store import FileStore
from maintainer.model.table.storage_facts import StreamPosition

MAX_SOURCES = 100


class Unreliable(Exception):
    """A checkpoint that cannot be trusted; ``position`` turns it into a problem."""


def position(
    consumer: str, files: FileStore, folder_uri: str, table_id: str, log: LogReplay, head: int, now_ms: int
) -> StreamPosition:
    """Return the oldest version of the table that the stream still needs, and its commit time."""
    try:
        version = _version(files, folder_uri, table_id)
    except Unreliable as error:
        return StreamPosition(consumer, problem=f"{error} ({folder_uri})")
    except Exception as error:
        return StreamPosition(consumer, problem=f"it cannot be read: {_line(error)} ({folder_uri})")
    if version > head:
        # It has read everything; the next version does not exist yet.
        return StreamPosition(consumer, version, now_ms)
    needed_since_ms = log.committed_at_ms(version)
    if needed_since_ms is None:
        text = f"it is at version {version}, and the log begins at {log.first_version} ({folder_uri})"
        return StreamPosition(consumer, problem=text)
    return StreamPosition(consumer, version, needed_since_ms)


def _version(files: FileStore, folder: str, table_id: str) -> int:
    folder_status = files.status(folder)
    if folder_status is None or not folder_status.is_dir:
        raise Unreliable("there is no such folder")
    offsets, commits = _batches(files, f"{folder}/offsets"), _batches(files, f"{folder}/commits")
    if not offsets:
        raise Unreliable("it has no offsets")
    done = max((batch for batch in commits if batch in offsets), default=None)
    if done is None and commits:
        raise Unreliable("the offsets of its last batch are missing")
    # Before its first batch is done a stream begins where that batch did: at the version of its first snapshot.
    batch = min(offsets) if done is None else done
    sources = [
        int(source["reservoirVersion"])
        for source in _sources(files.read(offsets[batch]))
        if source.get("reservoirId") == table_id
    ]
    if not sources:
        raise Unreliable(f"batch {batch} does not read this table")
    return min(sources)


def _batches(files: FileStore, folder: str) -> dict[int, str]:
    """Batch number to URI; other names, such as checksums, are left out."""
    return {int(child.name): uri for uri, child in files.children(folder).items() if child.name.isdigit()}


def _sources(data: bytes) -> list[dict[str, Any]]:
    """The offsets of a batch's sources that are JSON objects."""
    lines = data.decode("utf-8").splitlines()
    if not lines or not lines[0].startswith("v") or len(lines) < 2:
        raise Unreliable("its offsets are not of a form known here")
    offsets = []
    for line in lines[2 : 2 + MAX_SOURCES]:
        value = None if line.strip() in ("", "-") else json.loads(line)
        if isinstance(value, dict):
            offsets.append(value)
    return offsets


def _line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0][:200]}" if text else type(error).__name__
