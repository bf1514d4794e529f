"""Reads a table's facts at its newest version, through Delta's own snapshot. Changes no byte.

The live files are collected in one Spark job, as OPTIMIZE collects them: of the statistics only the record count
is kept. They cost the driver about a kilobyte each.
"""

from __future__ import annotations

import json

from maintainer.delta.actions import PartitionNames, data_file
from maintainer.delta.error_classes import NO_TABLE_HELP, NOT_DELTA_HELP, as_table_error
from maintainer.delta.jvm import DeltaJvm, JavaObject
from maintainer.delta.live_files import LiveFiles
from maintainer.delta.log_storage import LogStorage
from maintainer.delta.removed_files import find_removed_files
from maintainer.delta.schema_names import logical_names, physical_path_to_logical, stats_columns
from maintainer.delta.storage import TableStorage
from maintainer.errors import TableError
from maintainer.model.outcome import CommitStamp
from maintainer.model.table import Protocol, RemovedFile, TableFacts, TableRef


class DeltaTableReader:
    """Implements ``TableReader`` on a Spark session."""

    def __init__(self, jvm: DeltaJvm, live: LiveFiles | None = None) -> None:
        self._jvm = jvm
        self._live = live or LiveFiles(jvm)

    def facts(self, ref: TableRef) -> TableFacts:
        """Read the newest version; see ``TableReader.facts`` for what it raises."""
        self._jvm.activate()
        try:
            log, snapshot = self._open(ref)
            return self._facts_of(ref, log, snapshot)
        except Exception as error:
            raise as_table_error(error, ref.identifier) from error

    def removed_files(self, facts: TableFacts, *, removed_before_ms: int) -> tuple[RemovedFile, ...]:
        """Files whose removal is older than the time given and that are still on storage, oldest first."""
        self._jvm.activate()
        try:
            storage = TableStorage(self._jvm, self._jvm.log_at(facts.location))
            return find_removed_files(storage, facts, removed_before_ms=removed_before_ms)
        except Exception as error:
            raise as_table_error(error, facts.ref.identifier) from error

    def find_commit(self, facts: TableFacts, stamp: CommitStamp, *, after_version: int) -> int | None:
        """The lowest version above ``after_version`` that carries the stamp, or None."""
        self._jvm.activate()
        try:
            storage = TableStorage(self._jvm, self._jvm.log_at(facts.location))
            return find_stamp(storage, stamp, after_version=after_version)
        except Exception as error:
            raise as_table_error(error, facts.ref.identifier) from error

    def stamp_of(self, facts: TableFacts, version: int) -> CommitStamp | None:
        """The stamp of a version's commit; None where it is not ours, or the log has it no more."""
        self._jvm.activate()
        try:
            storage = TableStorage(self._jvm, self._jvm.log_at(facts.location))
            entry = next((one for one in storage.commits(after_version=version - 1) if one.version == version), None)
            return None if entry is None else CommitStamp.from_json(storage.commit_info(entry).get("userMetadata"))
        except Exception as error:
            raise as_table_error(error, facts.ref.identifier) from error

    def _open(self, ref: TableRef) -> tuple[JavaObject, JavaObject]:
        log = self._jvm.log_of_path(ref.location) if ref.is_path else self._log_of_name(ref)
        storage = TableStorage(self._jvm, log)
        if storage.status(storage.root_uri) is None:
            raise TableError(
                "there is no such table: the folder does not exist",
                code="T401",
                where=ref.identifier,
                help=NO_TABLE_HELP,
            )
        snapshot = self._jvm.update(log)
        if snapshot.version() < 0:
            raise TableError(
                "this is not a Delta table: it has no transaction log",
                code="T402",
                where=ref.identifier,
                found=storage.root_uri,
                allowed="a folder with a _delta_log",
                help=NOT_DELTA_HELP,
            )
        return log, snapshot

    def _log_of_name(self, ref: TableRef) -> JavaObject:
        found = self._jvm.catalog_location(ref.identifier)
        if found is None:
            raise TableError(
                "there is no such table in the catalog", code="T401", where=ref.identifier, help=NO_TABLE_HELP
            )
        location, provider, kind = found
        if kind == "VIEW" or provider.lower() != "delta":
            raise TableError(
                "this is not a Delta table",
                code="T402",
                where=ref.identifier,
                found="a view" if kind == "VIEW" else f"provider {provider or 'unknown'}",
                allowed="a table with provider delta",
                help=NOT_DELTA_HELP,
            )
        return self._jvm.log_at(location)

    def _facts_of(self, ref: TableRef, log: JavaObject, snapshot: JavaObject) -> TableFacts:
        metadata = self._jvm.metadata(snapshot)
        protocol = self._jvm.protocol(snapshot)
        schema = json.loads(metadata["schemaString"])
        to_logical = logical_names(schema)
        names = PartitionNames.of(metadata)
        adds = self._live.of(log, snapshot).adds
        clustering: tuple[str, ...] = ()
        if "clustering" in protocol.get("writerFeatures", ()):
            domain = self._jvm.domain_metadata(snapshot).get("delta.clustering")
            paths = json.loads(domain)["clusteringColumns"] if domain else []
            clustering = tuple(physical_path_to_logical(schema, path) for path in paths)
        return TableFacts(
            ref=ref,
            location=self._jvm.location(log),
            table_id=metadata["id"],
            version=int(snapshot.version()),
            committed_at_ms=int(snapshot.timestamp()),
            schema_json=metadata["schemaString"],
            columns=tuple(to_logical.values()),
            partition_columns=names.logical,
            properties=tuple(sorted(metadata["configuration"].items())),
            protocol=Protocol(
                protocol["minReaderVersion"],
                protocol["minWriterVersion"],
                tuple(sorted(protocol.get("readerFeatures") or ())),
                tuple(sorted(protocol.get("writerFeatures") or ())),
            ),
            files=tuple(sorted((data_file(add, names) for add in adds), key=lambda f: f.path)),
            clustering_columns=clustering,
            columns_with_stats=stats_columns(self._jvm.stats_schema(snapshot)),
        )


def find_stamp(storage: LogStorage, stamp: CommitStamp, *, after_version: int) -> int | None:
    """The lowest version above ``after_version`` whose ``userMetadata`` is the stamp; reads first lines only."""
    wanted = stamp.to_json()
    for entry in storage.commits(after_version=after_version):
        if storage.commit_info(entry).get("userMetadata") == wanted:
            return entry.version
    return None
