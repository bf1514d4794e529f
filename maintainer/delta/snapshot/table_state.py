"""Turn one version of a table, as its log has it, into facts. Pure; all readers use it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from maintainer.delta.log.actions import LoggedFile, PartitionNames, read_protocol
from maintainer.delta.log.replay.version_replay import ReplayedVersion
from maintainer.delta.log.schema_names import indexed_schema, logical_names, physical_path_to_logical, stats_columns
from maintainer.model.table.table_facts import DataFile, TableFacts, TableRef

CLUSTERING_DOMAIN = "delta.clustering"


@dataclass(frozen=True, slots=True)
class TableState:
    """One version of a table as its log has it: actions as parsed JSON.

    ``clustering`` is the configuration of the clustering domain, None without one; ``indexed_schema`` the logical
    schema of the columns that statistics are collected for.
    """

    location: str
    version: int
    committed_at_ms: int
    metadata: dict[str, Any]
    protocol: dict[str, Any]
    clustering: str | None
    indexed_schema: dict[str, Any]

    def facts(self, ref: TableRef, files: Iterable[LoggedFile]) -> TableFacts:
        """The facts of the version with these live files, sorted by path; ``files`` is read once and not kept."""
        schema = json.loads(self.metadata["schemaString"])
        to_logical = logical_names(schema)
        names = PartitionNames.of(self.metadata)
        paths = json.loads(self.clustering)["clusteringColumns"] if self.clustering else []
        return TableFacts(
            ref=ref,
            location=self.location,
            table_id=self.metadata["id"],
            version=self.version,
            committed_at_ms=self.committed_at_ms,
            schema_json=self.metadata["schemaString"],
            columns=tuple(to_logical.values()),
            partition_columns=names.logical,
            properties=tuple(sorted(self.metadata["configuration"].items())),
            protocol=read_protocol(self.protocol),
            files=_data_files(files, names),
            clustering_columns=tuple(physical_path_to_logical(schema, path) for path in paths),
            columns_with_stats=stats_columns(self.indexed_schema),
        )


def replayed_facts(ref: TableRef, location: str, log: ReplayedVersion) -> TableFacts:
    """The facts of a version that was replayed; its files are taken out of it, so that they are not kept twice."""
    is_clustered = "clustering" in (log.state.protocol.get("writerFeatures") or ())
    state = TableState(
        location=location,
        version=log.state.version,
        committed_at_ms=log.committed_at_ms,
        metadata=log.state.metadata,
        protocol=log.state.protocol,
        clustering=log.state.domains.get(CLUSTERING_DOMAIN) if is_clustered else None,
        indexed_schema=indexed_schema(log.state.metadata),
    )
    files = log.state.files
    facts = state.facts(ref, (files.popitem()[1] for _ in range(len(files))))
    return replace(facts, maintenance_by_others=log.maintenance, first_commit_read=log.first_commit)


def _data_files(files: Iterable[LoggedFile], names: PartitionNames) -> tuple[DataFile, ...]:
    """The files, sorted by path."""
    shared: dict[Any, Any] = {}
    return tuple(sorted((file.data_file(names, shared) for file in files), key=lambda file: file.path))
