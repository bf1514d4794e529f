"""Write the checkpoint and the checksum file of a small table through Kernel, which takes a tenth of a second.

A checkpoint: Delta writes one after each tenth commit by Spark jobs that cost more than the rest of a small rewrite.
Kernel's has the same rows; statistics are in it as JSON alone, and not also as columns, which only pays for tables of
many files.

A checksum file: other engines leave it out. With it Delta knows a version's schema and protocol without a Spark job.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from maintainer.delta.jvm import DeltaJvm, JavaObject
from maintainer.delta.storage.file_store import local_path
from maintainer.model.table.table_facts import TableFacts

_LOG = logging.getLogger(__name__)

MAX_FILES = 5_000
"""Tables with more live files get Delta's own checkpoint."""

WRITERS_OWN_SECONDS = 10.0
"""A writer that writes checksum files does so right after its commit."""

DEFAULT_INTERVAL = 10
"""Delta's default of ``delta.checkpointInterval``."""

_INTERVAL = "delta.checkpointInterval"
_SHAPE_OF_CHECKPOINTS = (
    "delta.checkpointPolicy",
    "delta.checkpoint.writeStatsAsJson",
    "delta.checkpoint.writeStatsAsStruct",
)
"""A table that sets one of these says itself how its checkpoints are to look."""

_PLAIN_FEATURES = frozenset(
    {
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "columnMapping",
        "deletionVectors",
        "domainMetadata",
        "generatedColumns",
        "identityColumns",
        "invariants",
        "rowTracking",
        "timestampNtz",
    }
)
"""Features that say nothing about checkpoints, nor about when a log may be cleaned up."""


def is_kernels(metadata: dict[str, Any], protocol: dict[str, Any], num_files: int | None) -> bool:
    """Return whether Kernel may write the table's checkpoints: a small table, whose properties say nothing of them.

    Args:
        metadata: The table's ``metaData`` action.
        protocol: Its ``protocol`` action.
        num_files: Its live files; None where they are too many to be counted.
    """
    return (
        num_files is not None
        and num_files <= MAX_FILES
        and not any(key in metadata["configuration"] for key in _SHAPE_OF_CHECKPOINTS)
        and _PLAIN_FEATURES.issuperset(protocol.get("writerFeatures") or ())
    )


def write_missing_checksum(jvm: DeltaJvm, facts: TableFacts) -> None:
    """Write the checksum file of the newest version before a rewrite, where it is missing. On a local disk only.

    A commit of the last seconds is left to its writer: where both write the file at once, Delta's own leaves a
    temporary file in the log. Never raises: the file is not part of the protocol, and nothing relies on it.
    """
    if not facts.location.startswith("file:") or len(facts.files) > MAX_FILES:
        return
    try:
        log = Path(local_path(facts.location), "_delta_log")
        newer = log / f"{facts.version + 1:020d}.json"
        if (log / f"{facts.version:020d}.crc").exists() and not newer.exists():
            return
        folder = jvm.folder_at(jvm.path(facts.location))
        snapshot = jvm.kernel_snapshot(folder)
        commit = log / f"{int(snapshot.getVersion()):020d}.json"
        if time.time() - commit.stat().st_mtime < WRITERS_OWN_SECONDS:
            return
        metadata, protocol = jvm.kernel_state(snapshot)
        if is_kernels(metadata, protocol, len(facts.files)):
            jvm.kernel_checksum(folder, snapshot)
    except Exception as error:
        _LOG.info("%s: no checksum file was written: %s", facts.ref.identifier, error)


def interval_of(metadata: dict[str, Any]) -> int:
    """Return after how many commits a checkpoint is due; 0 where the property cannot be read: then none is written."""
    text = str(metadata["configuration"].get(_INTERVAL, DEFAULT_INTERVAL))
    return int(text) if text.isdigit() else 0


def write_if_due(
    jvm: DeltaJvm,
    log: JavaObject,
    metadata: dict[str, Any],
    version: int,
    where: str,
    on_write: Callable[[], None] = lambda: None,
) -> None:
    """Write the checkpoint of a version, if one is due there: by Kernel, and by Delta where Kernel fails.

    ``on_write`` is called where one is due. Never raises: the commit has landed, and a table without this checkpoint is
    read from the one before.
    """
    interval = interval_of(metadata)
    if not version or not interval or version % interval:
        return
    on_write()
    try:
        jvm.kernel_checkpoint(jvm.folder_of_log(log), version)
    except Exception as error:
        _LOG.info("%s@%d: Delta writes the checkpoint, since Kernel did not: %s", where, version, error)
        try:
            jvm.checkpoint(log)
        except Exception as second:
            _LOG.info("%s@%d: no checkpoint was written: %s", where, version, second)
