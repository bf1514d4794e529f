"""Read a table's newest version through Spark's own Delta: the reference, at the price of a Spark job for each table.

The live files are collected in one job, as OPTIMIZE collects them. Of their statistics only the record count is kept.
"""

from __future__ import annotations

from maintainer.delta.jvm import DeltaJvm, JavaObject
from maintainer.delta.log.local_log import LOG_FOLDER
from maintainer.delta.snapshot.table_state import CLUSTERING_DOMAIN, TableState
from maintainer.delta.storage.failures.engine_failures import NO_TABLE_HELP, NOT_DELTA_HELP
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.errors import TableError
from maintainer.model.table.table_facts import TableFacts, TableRef


class SparkReader:
    """Facts through ``DeltaLog``: for tables that Kernel does not read, and to compare Kernel's answers with."""

    def __init__(self, jvm: DeltaJvm) -> None:
        self._jvm = jvm

    def facts(self, ref: TableRef, root: JavaObject) -> TableFacts:
        """The facts of the newest version of the table at a Hadoop path.

        Raises:
            TableError: T401 no such folder, T402 no Delta log in it. Delta's own exceptions for the rest.
            PermissionError: This user may not look into the folder or its log.
        """
        log = self._jvm.log_of_root(root)
        storage = TableStorage(self._jvm, log)
        if storage.status(storage.root_uri) is None and not storage.children(storage.root_uri):
            raise TableError(
                "there is no such table: the folder does not exist",
                code="T401",
                where=ref.identifier,
                help=NO_TABLE_HELP,
            )
        snapshot = self._jvm.update(log)
        if snapshot.version() < 0:
            # Java sees nothing where it may not look; this says so.
            storage.children(f"{storage.root_uri}/{LOG_FOLDER}")
            raise TableError(
                "this is not a Delta table: it has no transaction log",
                code="T402",
                where=ref.identifier,
                found=storage.root_uri,
                allowed="a folder with a _delta_log",
                help=NOT_DELTA_HELP,
            )
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
        return state.facts(ref, self._jvm.scan_files(snapshot))
