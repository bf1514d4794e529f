"""Read a table's newest version from its log's files, without a JVM, or through Spark's own Delta: as facts.

A Spark query for each table would take most of a fleet's night. A test compares all answers with those of Spark's
reader, for every kind of table that we know. What a table's commits answer is asked in the same way by the readers of
both engines.
"""

from __future__ import annotations

import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from maintainer.delta.jvm import DeltaJvm
from maintainer.delta.log.actions import LoggedFile, PartitionNames, read_protocol
from maintainer.delta.log.commit_history import commit_at, find_stamp, paths_of_rewrites, paths_of_zorder, read_stamp
from maintainer.delta.log.replay.version_replay import LogState, ReplayedVersion, replay_version
from maintainer.delta.log.schema_names import indexed_schema, logical_names, physical_path_to_logical
from maintainer.delta.log.table_updates import read_updates
from maintainer.delta.proof.statistics_figures import stats_columns
from maintainer.delta.storage.failures.engine_failures import is_store_silent, no_table, not_delta
from maintainer.delta.storage.failures.store_answers import RefusedAlike
from maintainer.delta.storage.file_store import StoredFile
from maintainer.delta.storage.table_log import TableLog
from maintainer.delta.storage.table_storage import KnownVersion, KnownVersions, TableStorage
from maintainer.errors import TableError
from maintainer.model.table.commit_records import CommitStamp
from maintainer.model.table.log_names import LOG_FOLDER, is_of_log
from maintainer.model.table.table_facts import TableFacts, TableRef, Update

CLUSTERING_DOMAIN = "delta.clustering"


def facts_of(
    ref: TableRef,
    location: str,
    state: LogState,
    committed_at_ms: int,
    files: Iterable[LoggedFile],
    collected: dict[str, Any],
) -> TableFacts:
    """The facts of a version with these live files, sorted by path; ``files`` is read once and not kept.

    ``collected`` is the logical schema of the columns that statistics are collected for.
    """
    metadata, shared = state.metadata, dict[Any, Any]()
    schema, names = json.loads(metadata["schemaString"]), PartitionNames.of(metadata)
    is_clustered = "clustering" in (state.protocol.get("writerFeatures") or ())
    clustering = state.domains.get(CLUSTERING_DOMAIN) if is_clustered else None
    paths = json.loads(clustering)["clusteringColumns"] if clustering else []
    return TableFacts(
        ref=ref,
        location=location,
        table_id=metadata["id"],
        version=state.version,
        committed_at_ms=committed_at_ms,
        schema_json=metadata["schemaString"],
        columns=tuple(logical_names(schema).values()),
        partition_columns=names.logical,
        properties=tuple(sorted(metadata["configuration"].items())),
        protocol=read_protocol(state.protocol),
        files=tuple(sorted((file.data_file(names, shared) for file in files), key=lambda file: file.path)),
        clustering_columns=tuple(physical_path_to_logical(schema, path) for path in paths),
        columns_with_stats=stats_columns(collected),
    )


def replayed_facts(ref: TableRef, location: str, log: ReplayedVersion) -> TableFacts:
    """The facts of a version that was replayed; its files are taken out of it, so that they are not kept twice."""
    state, files = log.state, log.state.files
    taken_out = (files.popitem()[1] for _ in range(len(files)))
    facts = facts_of(ref, location, state, log.committed_at_ms, taken_out, indexed_schema(state.metadata))
    return replace(facts, maintenance_by_others=log.maintenance, first_commit_read=log.first_commit)


_LOG = logging.getLogger(__name__)

MAX_FILES = 200_000
MAX_TABLES = 8
"""Whose facts are kept: a worker looks at a table several times, then at the next. A file costs about 500 bytes."""


class LogReader:
    """Facts from the log, remembered by version. One worker's, used on its thread."""

    def __init__(self) -> None:
        self._known = KnownVersions[TableFacts](MAX_FILES, MAX_TABLES)

    def facts(self, ref: TableRef, storage: TableStorage) -> TableFacts | None:
        """The facts of the newest version of a table; None if Spark's reader must be asked.

        That is so for a protocol with features that readers may see differently, and for a log that is damaged: Spark's
        reader then reads it, or names what is wrong. A store that does not answer is not asked a second time: Spark's
        reader makes ten requests and waits for each.

        Raises:
            TableError: T401 no such folder, T402 no Delta log in it.
            PermissionError: This user may not look into the folder or its log.
            RefusedAlike: The store does not accept the keys, or has no such bucket.
        """
        try:
            known = self._known.kept(storage.location)
            # Versions have no gaps, so two looks tell, however long the log is.
            if known is not None and storage.status(storage.commit_uri(known.version + 1)) is None:
                known = self._known.get(storage.location, storage)
                if known is not None:
                    return known.read if known.read.ref == ref else replace(known.read, ref=ref)
            self.forget(storage.location)
            listed = storage.log_files()
            refuse_no_table(storage, listed, ref.identifier)
            log = replay_version(storage, None, listed)
        except (TableError, PermissionError, RefusedAlike):  # Hadoop has the same keys
            raise
        except Exception as error:
            if is_store_silent(error):
                raise
            _LOG.info("%s: Spark's reader is asked, as the log cannot be replayed: %s", ref.identifier, error)
            return None
        facts = replayed_facts(ref, storage.location, log)
        self._known.keep(storage.location, KnownVersion(facts, facts.version, log.commit, len(facts.files)))
        return facts

    def forget(self, location: str) -> None:
        """Drop what is kept of a table."""
        self._known.forget(location)


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
        raise no_table("there is no such table: the folder does not exist", where)
    what = "this is not a Delta table: it has no transaction log"
    raise not_delta(what, where, storage.root_uri, allowed=f"a folder with a {LOG_FOLDER}")


class LogQuestions(ABC):
    """The part of ``TableReader`` that needs a table's log and nothing else."""

    @abstractmethod
    def _log_of(self, facts: TableFacts) -> TableLog:
        """The log of a table that facts were read of."""

    @abstractmethod
    def _reading(self, where: str) -> AbstractContextManager[None]:
        """Raise exceptions of the block as errors of our own."""

    def find_commit(self, facts: TableFacts, stamp: CommitStamp, *, after_version: int) -> int | None:
        with self._reading(facts.ref.identifier):
            return find_stamp(self._log_of(facts), stamp, after_version=after_version)

    def stamp_of(self, facts: TableFacts, version: int) -> CommitStamp | None:
        with self._reading(facts.ref.identifier):
            return read_stamp(self._log_of(facts), version)

    def has_commit(self, facts: TableFacts, version: int) -> bool:
        with self._reading(facts.ref.identifier):
            return commit_at(self._log_of(facts), version) is not None

    def updates(
        self, facts: TableFacts, *, since_ms: int, after_version: int, until_version: int | None = None
    ) -> tuple[Update, ...]:
        with self._reading(facts.ref.identifier):
            log = self._log_of(facts)
            return read_updates(log, facts, since_ms=since_ms, after_version=after_version, until_version=until_version)

    def zordered_paths(self, facts: TableFacts, columns: tuple[str, ...]) -> frozenset[str]:
        with self._reading(facts.ref.identifier):
            return paths_of_zorder(self._log_of(facts), facts, columns)

    def rewritten_paths(self, facts: TableFacts, *, since_ms: int) -> frozenset[str]:
        with self._reading(facts.ref.identifier):
            return paths_of_rewrites(self._log_of(facts), facts, since_ms)


class SparkReader:
    """Facts through ``DeltaLog``: for logs that the replay does not read, and to compare its answers with."""

    def __init__(self, jvm: DeltaJvm) -> None:
        self._jvm = jvm

    def facts(self, ref: TableRef, storage: TableStorage) -> TableFacts:
        """The facts of the newest version of a table; see ``LogReader.facts``. Raises Delta's own exceptions."""
        log = self._jvm.log_of_root(storage.folder.root)
        snapshot = self._jvm.update(log)
        if snapshot.version() < 0:
            refuse_no_table(storage, {}, ref.identifier)
        metadata, protocol = self._jvm.metadata(snapshot), self._jvm.protocol(snapshot)
        state = LogState(int(snapshot.version()), metadata, protocol, self._jvm.domain_metadata(snapshot))
        files, collected = map(LoggedFile.of, self._jvm.scan_files(snapshot)), self._jvm.stats_schema(snapshot)
        return facts_of(ref, self._jvm.location(log), state, int(snapshot.timestamp()), files, collected)
