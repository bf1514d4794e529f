"""Read a table's newest version without a Spark job: from the log's files, or else through Delta Kernel.

A Spark query for each table would take most of a fleet's night. ``version_replay`` replays the log without a JVM.
Kernel is the Delta project's own implementation of the protocol, of the same release, with Spark's credentials. A test
compares all answers with those of Spark's reader, for every kind of table that we know.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from maintainer.delta.jvm import DeltaJvm
from maintainer.delta.log.replay.log_state import is_of_log
from maintainer.delta.log.replay.version_replay import replay_version
from maintainer.delta.log.schema_names import indexed_schema
from maintainer.delta.snapshot.facts_cache import FactsCache, KnownVersion
from maintainer.delta.snapshot.table_state import CLUSTERING_DOMAIN, TableState
from maintainer.delta.storage.failures.engine_failures import NO_TABLE_HELP, NOT_DELTA_HELP, is_store_silent
from maintainer.delta.storage.file_store import StoredFile
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.errors import TableError
from maintainer.model.table.table_facts import TableFacts, TableRef

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
"""Reader features that both readers know. What only one of them knows is for Spark's to accept or refuse."""

NEWEST_READER_VERSION = 3
"""The protocol's newest reader version; a table that needs a later one is Spark's to refuse."""

CLUSTERING = "clustering"

STATS_AS_JSON = "delta.checkpoint.writeStatsAsJson"

_LOG = logging.getLogger(__name__)


class LogReader:
    """Facts from the log, remembered by version. One worker's, used on its thread."""

    def __init__(self, jvm: DeltaJvm) -> None:
        self._jvm = jvm
        self._cache = FactsCache()

    def facts(self, ref: TableRef, storage: TableStorage) -> TableFacts | None:
        """The facts of the newest version of a table; None if Spark's reader must be asked.

        That is so for a protocol with features that Kernel and Spark may see differently, and for anything that
        Kernel cannot read: Spark's reader then reads it, or names what is wrong. A store that does not answer is not
        asked a second time: Spark's reader makes ten requests and waits for each.

        Raises:
            TableError: T401 no such folder, T402 no Delta log in it.
            PermissionError: This user may not look into the folder or its log.
        """
        try:
            cached = self._cache.get(storage.location)
            if cached is not None and _is_newest(storage, cached):
                return cached.facts if cached.facts.ref == ref else replace(cached.facts, ref=ref)
            self._cache.forget(storage.location)
            listed = storage.log_files()
            refuse_no_table(storage, listed, ref.identifier)
            return self._replay(ref, storage, listed) or self._read(ref, storage)
        except (TableError, PermissionError):
            raise
        except Exception as error:
            if is_store_silent(error):
                raise
            _LOG.info("Kernel cannot read %s, so Spark is asked: %s", ref.identifier, error)
            return None

    def forget(self, location: str) -> None:
        """Drop what is kept of a table."""
        self._cache.forget(location)

    def _replay(self, ref: TableRef, storage: TableStorage, listed: Mapping[str, StoredFile]) -> TableFacts | None:
        """Return the facts from the log's files, if they are complete and nothing is unusual."""
        try:
            log = replay_version(storage, None, listed)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            _LOG.info("the log of %s cannot be replayed, so Kernel is asked: %s", ref.identifier, error)
            return None
        if log is None or not _is_known(log.state.protocol):
            return None
        is_clustered = CLUSTERING in (log.state.protocol.get("writerFeatures") or ())
        state = TableState(
            location=storage.location,
            version=log.state.version,
            committed_at_ms=log.committed_at_ms,
            metadata=log.state.metadata,
            protocol=log.state.protocol,
            clustering=log.state.domains.get(CLUSTERING_DOMAIN) if is_clustered else None,
            indexed_schema=indexed_schema(log.state.metadata),
        )
        facts = state.facts(ref, log.state.adds.values())
        self._cache.keep(storage.location, KnownVersion(facts, log.commit))
        return facts

    def _read(self, ref: TableRef, storage: TableStorage) -> TableFacts | None:
        folder = storage.folder
        snapshot = self._jvm.kernel_snapshot(folder)
        version = int(snapshot.getVersion())
        # Looked at before the files are read: a table that is created anew meanwhile does not match later.
        commit = storage.status(storage.commit_uri(version))
        metadata, protocol = self._jvm.kernel_state(snapshot)
        # Kernel leaves out who clustered a file.
        if not _is_known(protocol) or CLUSTERING in (protocol.get("writerFeatures") or ()):
            return None
        # Checkpoints without them have statistics in columns, which only Spark's reader puts together again.
        if str(metadata["configuration"].get(STATS_AS_JSON, "true")).lower() != "true":
            return None
        state = TableState(
            location=storage.location,
            version=version,
            committed_at_ms=self._jvm.kernel_timestamp(folder, snapshot),
            metadata=metadata,
            protocol=protocol,
            clustering=None,
            indexed_schema=indexed_schema(metadata),
        )
        facts = state.facts(ref, self._jvm.kernel_adds(folder, snapshot))
        if commit is not None:
            self._cache.keep(storage.location, KnownVersion(facts, commit))
        return facts


def refuse_no_table(storage: TableStorage, listed: Mapping[str, StoredFile], where: str) -> None:
    """Refuse a folder that is not there, or that has no log.

    Args:
        storage: The folder's.
        listed: What lies in its log's folder.
        where: The table, for the message.

    Raises:
        TableError: T401 no such folder, T402 no Delta log in it.
    """
    if any(is_of_log(file.name) for file in listed.values()):
        return
    if not listed and storage.status(storage.root_uri) is None and not storage.children(storage.root_uri):
        raise TableError(
            "there is no such table: the folder does not exist", code="T401", where=where, help=NO_TABLE_HELP
        )
    raise TableError(
        "this is not a Delta table: it has no transaction log",
        code="T402",
        where=where,
        found=storage.root_uri,
        allowed="a folder with a _delta_log",
        help=NOT_DELTA_HELP,
    )


def _is_known(protocol: Mapping[str, Any]) -> bool:
    """Whether a table can be read here: a known protocol, and no feature that readers see differently."""
    if int(protocol.get("minReaderVersion") or 1) > NEWEST_READER_VERSION:
        return False
    return READER_FEATURES.issuperset(protocol.get("readerFeatures") or ())


def _is_newest(storage: TableStorage, cached: KnownVersion) -> bool:
    """Whether a version is still the newest one: its commit file is the same, and there is none after it.

    Versions have no gaps, so two looks tell, however long the log is. A table that was dropped and created again
    has another commit file at this version, or none.
    """
    version = cached.facts.version
    if storage.status(storage.commit_uri(version + 1)) is not None:
        return False
    return storage.status(storage.commit_uri(version)) == cached.commit
