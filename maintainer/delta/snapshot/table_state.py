"""Turn one version of a table, as its log has it, into facts. Pure; all readers use it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from maintainer.delta.log.actions import PartitionNames, data_file, read_protocol
from maintainer.delta.log.schema_names import logical_names, physical_path_to_logical, stats_columns
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

    def facts(self, ref: TableRef, adds: Iterable[dict[str, Any]]) -> TableFacts:
        """The facts of the version with these live files, sorted by path; ``adds`` is read once and not kept."""
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
            files=_data_files(adds, names),
            clustering_columns=tuple(physical_path_to_logical(schema, path) for path in paths),
            columns_with_stats=stats_columns(self.indexed_schema),
        )


def _data_files(adds: Iterable[dict[str, Any]], names: PartitionNames) -> tuple[DataFile, ...]:
    """The files, sorted by path."""
    shared: dict[Any, Any] = {}
    return tuple(sorted((data_file(add, names, shared) for add in adds), key=lambda file: file.path))
