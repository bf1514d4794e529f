"""Read a table's newest version through Spark's own Delta: the reference, at the price of a Spark job for each table.

The live files are collected in one job, as OPTIMIZE collects them. Of their statistics only the record count is kept.
"""

from __future__ import annotations

from maintainer.delta.jvm import DeltaJvm
from maintainer.delta.log.actions import LoggedFile
from maintainer.delta.snapshot.log_reader import refuse_no_table
from maintainer.delta.snapshot.table_state import CLUSTERING_DOMAIN, TableState
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.model.table.table_facts import TableFacts, TableRef


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
        protocol = self._jvm.protocol(snapshot)
        clustered = "clustering" in (protocol.get("writerFeatures") or ())
        state = TableState(
            location=self._jvm.location(log),
            version=int(snapshot.version()),
            committed_at_ms=int(snapshot.timestamp()),
            metadata=self._jvm.metadata(snapshot),
            protocol=protocol,
            clustering=self._jvm.domain_metadata(snapshot).get(CLUSTERING_DOMAIN) if clustered else None,
            indexed_schema=self._jvm.stats_schema(snapshot),
        )
        return state.facts(ref, map(LoggedFile.of, self._jvm.scan_files(snapshot)))
