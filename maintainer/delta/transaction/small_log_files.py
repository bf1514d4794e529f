"""The checkpoint and the checksum files of a small table: written here, where Delta would by Spark jobs and renames.

A checkpoint: Delta writes one after each tenth commit by Spark jobs that cost more than the rest of a small rewrite.
Kernel's has the same rows; statistics are in it as JSON alone, and not also as columns, which only pays for tables of
many files.

A checksum file: other engines leave it out. With it Delta knows a version's schema and protocol without a Spark job,
and derives the next one from it. Readers believe what it says, of transactions too, so what is not known is left out:
an empty list says that there is none.
"""

from __future__ import annotations

import contextlib
import json
import logging
import tempfile
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from maintainer.delta.jvm import DeltaJvm, JavaObject
from maintainer.delta.log.replay.version_replay import IN_COMMIT_TIMESTAMPS, LogState, segment
from maintainer.delta.storage.file_store import StoredFile
from maintainer.delta.storage.log_paths import path_uri
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.delta.transaction.live_files import AddAction, LiveFilesReader
from maintainer.delta.transaction.requirements import log_damaged
from maintainer.model.table.log_names import LAST_CHECKPOINT, LOG_FOLDER, checkpoint_interval, checkpoint_name
from maintainer.model.table.table_facts import TableFacts

_LOG = logging.getLogger(__name__)

MAX_FILES = 5_000
"""Tables with more live files get Delta's own checkpoint, and no checksum file from us."""

WRITERS_OWN_SECONDS = 10.0
"""A writer that writes checksum files does so right after its commit."""

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

_KNOWN_FEATURES = _PLAIN_FEATURES | {
    "allowColumnDefaults",
    "checkpointProtection",
    "clustering",
    "inCommitTimestamp",
    "typeWidening",
    "v2Checkpoint",
    "vacuumProtocolCheck",
    "variantType",
}
"""Features with which a version is what the files of its log say: not one whose commits a catalog keeps."""

_RETENTION_OF_TRANSACTIONS = "delta.setTransactionRetentionDuration"
"""With it, which transactions a version has depends on when it is read."""

MAX_TRANSACTIONS, MAX_DOMAINS = 100, 10
"""So many has a checksum file at most, as Delta writes it; of more it says nothing."""

_DELETED_ROWS_BINS = (1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 2**31 - 1)
"""Where the bins of Delta's histogram of deleted rows begin; the first begins at 0."""


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


def write_missing_checksum(live_files: LiveFilesReader, facts: TableFacts, listed: Mapping[str, StoredFile]) -> None:
    """Write the checksum file of the newest version before a rewrite, where it is missing.

    A commit of the last seconds is left to its writer: where both write the file at once, Delta's own leaves a
    temporary file in the log. Never raises: the file is not part of the protocol, and nothing relies on it.

    Args:
        live_files: What has read the version, or reads it now.
        facts: The table.
        listed: The log's folder, as it was listed just now.
    """
    if len(facts.files) > MAX_FILES:
        return
    try:
        storage, files = live_files.storage(facts.location), live_files.of_listed(facts, listed)
        if files is None or not files.complete or files.commit is None:
            return
        uri = storage.checksum_uri(files.version)
        if uri in listed or time.time() - files.commit.modification_time_ms / 1000 < WRITERS_OWN_SECONDS:
            return
        checksum = checksum_of(files.adds.values(), files.metadata, files.protocol, files.log)
        if checksum is not None and files.table_id == facts.table_id:
            storage.files.write(uri, json.dumps(checksum, ensure_ascii=False).encode() + b"\n")
    except Exception as error:
        _LOG.info("%s: no checksum file was written: %s", facts.ref.identifier, error)


def checksum_of(
    adds: Iterable[AddAction], metadata: dict[str, Any], protocol: dict[str, Any], log: LogState | None
) -> dict[str, Any] | None:
    """Return the checksum of a version; None where a feature of the table, or a path, means that it may be another.

    Args:
        adds: All live files.
        metadata: The ``metaData`` action.
        protocol: The ``protocol`` action.
        log: What a replay of all commits found; None where transactions and domains are not known.
    """
    features = frozenset(protocol.get("writerFeatures") or ())
    if not _KNOWN_FEATURES.issuperset(features) or (log is not None and log.strays):
        return None
    files = list(adds)
    checksum = {
        "tableSizeBytes": sum(int(add["size"]) for add in files), "numFiles": len(files),
        "numMetadata": 1, "numProtocol": 1, "metadata": metadata, "protocol": protocol,
    }  # fmt: skip
    if "deletionVectors" in features:
        # Without these figures Delta would build the state of the version to have those of the next one.
        deleted = [int((add.get("deletionVector") or {}).get("cardinality") or 0) for add in files]
        bins = [0] * (len(_DELETED_ROWS_BINS) + 1)
        for num_rows in deleted:
            bins[bisect_right(_DELETED_ROWS_BINS, num_rows)] += 1
        checksum["numDeletedRecordsOpt"] = sum(deleted)
        checksum["numDeletionVectorsOpt"] = sum(bool(add.get("deletionVector")) for add in files)
        checksum["deletedRecordCountsHistogramOpt"] = {"deletedRecordCounts": bins}
    return checksum if log is None else checksum | _of_whole_log(log)


def _of_whole_log(log: LogState) -> dict[str, Any]:
    """What only a replay of all commits knows of a version, each part where Delta would write it, too."""
    known: dict[str, Any] = {}
    configuration = log.metadata["configuration"]
    if _RETENTION_OF_TRANSACTIONS not in configuration and len(log.transactions) <= MAX_TRANSACTIONS:
        known["setTransactions"] = list(log.transactions.values())
    if len(log.domains) <= MAX_DOMAINS:
        known["domainMetadata"] = [
            {"domain": name, "configuration": text, "removed": False} for name, text in log.domains.items()
        ]
    if str(configuration.get(IN_COMMIT_TIMESTAMPS)).lower() == "true":
        known["inCommitTimestampOpt"] = int(log.commit_info["inCommitTimestamp"])
    return known


def _is_taken_over(jvm: DeltaJvm, storage: TableStorage) -> bool:
    return not storage.files.renames_cheaply and jvm.writes_checksums


def take_over_checksum(jvm: DeltaJvm, storage: TableStorage, txn: JavaObject) -> None:
    """Leave the checksum file of a transaction's version to ``write_derived_checksum``, where that is cheaper.

    Delta's way is a temporary file and a rename, which takes twenty requests where a rename is a copy.
    """
    if _is_taken_over(jvm, storage):
        jvm.without_checksum(txn)


def checksum_taken_over(jvm: DeltaJvm, storage: TableStorage) -> AbstractContextManager[None]:
    """As ``take_over_checksum``, within a block in which a command of Delta's commits."""
    return jvm.without_checksums() if _is_taken_over(jvm, storage) else contextlib.nullcontext()


def write_derived_checksum(jvm: DeltaJvm, storage: TableStorage, log: JavaObject, version: int) -> None:
    """Write the checksum file of a version that we committed, as Delta derived it, where it was taken over.

    Call it when the log is known to have our commit. Never raises, as ``write_missing_checksum``.
    """
    try:
        if not _is_taken_over(jvm, storage):
            return
        checksum = jvm.derived_checksum(log, version)
        if checksum is not None:
            with contextlib.suppress(FileExistsError):
                storage.files.write(storage.checksum_uri(version), checksum)
    except Exception as error:
        _LOG.info("%s@%d: no checksum file was written: %s", storage.root_uri, version, error)


def write_if_due(
    jvm: DeltaJvm,
    storage: TableStorage,
    log: JavaObject,
    metadata: dict[str, Any],
    version: int,
    where: str,
    on_write: Callable[[], None] = lambda: None,
) -> bool:
    """Write the checkpoint of a version where one is due, and say whether: by Kernel, and by Delta where Kernel fails.

    ``on_write`` is called where one is due. Never raises: the commit has landed, and a table without this checkpoint is
    read from the one before.
    """
    interval = checkpoint_interval(metadata["configuration"])
    if not version or not interval or version % interval:
        return False
    on_write()
    try:
        if storage.files.renames_cheaply:
            jvm.kernel_checkpoint(jvm.folder_of_log(log), version)
        else:
            _write_from_copy(jvm, storage, version)
    except Exception as error:
        _LOG.info("%s@%d: Delta writes the checkpoint, since Kernel did not: %s", where, version, error)
        try:
            jvm.checkpoint(log)
        except Exception as second:
            _LOG.info("%s@%d: no checkpoint was written: %s", where, version, second)
    return True


def _write_from_copy(jvm: DeltaJvm, storage: TableStorage, version: int) -> None:
    """Let Kernel write a checkpoint beside a copy of what it needs of the log, and put that onto the store.

    On the store itself Kernel reads commit by commit, by two requests each, and what it writes is renamed.
    """
    listed = {file.name: file for file in storage.log_files().values() if not file.is_dir}
    chosen = segment(listed, version)
    needed = [listed[name] for name in (*chosen.checkpoint, *chosen.commits)]
    with tempfile.TemporaryDirectory(prefix="maintainer-") as folder:
        copy = Path(folder, LOG_FOLDER)
        copy.mkdir()
        for file, body in zip(needed, storage.files.read_many(needed), strict=True):
            (copy / file.name).write_bytes(body)
        jvm.kernel_checkpoint(jvm.folder_at(jvm.path(path_uri(folder))), version)
        for name, write in ((checkpoint_name(version), storage.files.write), (LAST_CHECKPOINT, storage.files.replace)):
            write(storage.log_file_uri(name), (copy / name).read_bytes())


def refuse_other_checksum(storage: TableStorage, facts: TableFacts) -> None:
    """Compare a version with its checksum file, where there is one, before a rewrite of its files.

    One that counts other files than the log belongs to another log, or one of the two was changed; Delta would derive
    those of later versions from it.

    Raises:
        TableError: T403, the checksum file counts other files than the log.
    """
    uri = storage.checksum_uri(facts.version)
    try:
        counted = _counted(storage.files.read(uri))
    except FileNotFoundError:
        return
    in_log = (len(facts.files), sum(file.size_bytes for file in facts.files))
    if counted is not None and counted != in_log:
        name = uri.rpartition("/")[2]
        raise log_damaged(
            facts.ref.identifier,
            f"{name} counts {counted[0]} files of {counted[1]} bytes, the log has {in_log[0]} of {in_log[1]}",
        )


def _counted(text: bytes) -> tuple[int, int] | None:
    """Files and bytes that a checksum file counts; None where it cannot be read, as Delta takes it."""
    try:
        checksum = json.loads(text)
        return int(checksum["numFiles"]), int(checksum["tableSizeBytes"])
    except (ValueError, KeyError, TypeError):
        return None
