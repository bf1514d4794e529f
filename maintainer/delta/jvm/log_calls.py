"""Read Delta's logs and snapshots: the state of a table at a version."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from maintainer.delta.jvm.commit_store import OWN_LOG
from maintainer.delta.jvm.gateway import Gateway, required
from maintainer.delta.jvm.sessions import JavaObject

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

REQUIRED = required(
    {
        # Delta 4.0 takes no catalog's table for a clean-up, and three arguments for a snapshot: with four it is another
        # method.
        "DeltaLog": "forTable/3 clearCache/0 invalidateCache/2 update/3 dataPath/0 getSnapshotAt/3/4 checkpoint/0 "
        "doLogCleanup/2/1 tombstoneRetentionMillis/1",
        "Snapshot": "allFiles/0 tombstones/0 version/0 timestamp/0 metadata/0 protocol/0 domainMetadata/0 "
        "statCollectionLogicalSchema/0",
        "implicits.package$": "addFileEncoder/0",
        "actions.Metadata": "json/0",
        "actions.Protocol": "json/0",
        "actions.DomainMetadata": "domain/0 configuration/0",
        "util.JsonUtils": "mapper/0",
    }
)
"""Private methods of Delta that this module calls."""


def records_sql(stats: str) -> str:
    """SQL of the record count (BIGINT) of statistics in a column, null where readers of it find no number.

    ``get_json_object`` would also give what is a text in the statistics.
    """
    count = f"from_json({stats}, 'numRecords DOUBLE').numRecords"
    return f"if({count} = floor({count}) AND {count} BETWEEN 0 AND 9007199254740991, CAST({count} AS BIGINT), NULL)"


class LogCalls(Gateway):
    """Reads of Delta's own log and snapshot."""

    def forget_log(self, uri: str) -> None:
        """Drop one table's log from Delta's cache: the next look reads it anew."""
        self._in_delta("DeltaLog").invalidateCache(self._session, self.path(uri))

    def log_at(self, uri: str) -> JavaObject:
        """Our own DeltaLog of the table rooted at a percent-encoded URI."""
        return self.log_of_root(self.path(uri))

    def log_of_root(self, root: JavaObject, options: Mapping[str, str] = OWN_LOG) -> JavaObject:
        """The DeltaLog of the table at a Hadoop path: our own, or without options the one that its session uses."""
        return self._in_delta("DeltaLog").forTable(self._session, root, self.string_map(options))

    def update(self, log: JavaObject) -> JavaObject:
        """The newest snapshot of a log; blocks until the log is read."""
        return log.update(False, self._none, self._none)

    def snapshot_at(self, log: JavaObject, version: int) -> JavaObject:
        """The snapshot of an older version, also one that readers may no longer travel to."""
        arguments = (version, self._none, self._none, False)
        return log.getSnapshotAt(*arguments[: self.arity(REQUIRED, "DeltaLog", "getSnapshotAt")])

    def table_retention_ms(self, snapshot: JavaObject) -> int:
        """How long the table keeps removed files: its property, or Delta's default of 7 days."""
        return int(self._in_delta("DeltaLog").tombstoneRetentionMillis(snapshot.metadata()))

    def path_text(self, log: JavaObject) -> str:
        """The table's root as Spark's readers take it (not percent-encoded)."""
        return str(log.dataPath().toString())

    def location(self, log: JavaObject) -> str:
        """The table's root as a percent-encoded URI."""
        return str(log.dataPath().toUri().toString())

    def checkpoint(self, log: JavaObject) -> None:
        """Let Delta write the checkpoint of the newest version, by Spark jobs."""
        log.checkpoint()

    def clean_up(self, log: JavaObject) -> None:
        """Let Delta delete what of the log is past ``delta.logRetentionDuration`` and older than a checkpoint."""
        arguments = (self.update(log), self._none)
        log.doLogCleanup(*arguments[: self.arity(REQUIRED, "DeltaLog", "doLogCleanup")])

    def metadata(self, snapshot: JavaObject) -> dict[str, Any]:
        """The snapshot's ``metaData`` action."""
        action: dict[str, Any] = json.loads(snapshot.metadata().json())["metaData"]
        # A table created without a schema has none in its log.
        action.setdefault("schemaString", '{"type":"struct","fields":[]}')
        return action

    def protocol(self, snapshot: JavaObject) -> dict[str, Any]:
        """The snapshot's ``protocol`` action."""
        action: dict[str, Any] = json.loads(snapshot.protocol().json())["protocol"]
        return action

    def domain_metadata(self, snapshot: JavaObject) -> dict[str, str]:
        """Domain name to configuration string; costs a Spark job on a table that has the feature."""
        domains = snapshot.domainMetadata()
        return {str(domains.apply(i).domain()): str(domains.apply(i).configuration()) for i in range(domains.size())}

    def stats_schema(self, snapshot: JavaObject) -> dict[str, Any]:
        """The logical schema of the columns that statistics are collected for under the table's settings."""
        schema: dict[str, Any] = json.loads(snapshot.statCollectionLogicalSchema().json())
        return schema

    def all_files(self, snapshot: JavaObject) -> DataFrame:
        """The snapshot's AddFiles as a DataFrame."""
        return self._frame(snapshot.allFiles().toDF())

    def tombstones(self, snapshot: JavaObject, removed_since_ms: int) -> list[dict[str, Any]]:
        """Path and deletion vector of the snapshot's unexpired removals since a moment, by one Spark job."""
        late = self._frame(snapshot.tombstones().toDF()).where(f"deletionTimestamp >= {removed_since_ms}")
        rows = late.selectExpr("to_json(struct(path, deletionVector)) AS remove").collect()
        return [json.loads(row["remove"]) for row in rows]

    def scan_files(self, snapshot: JavaObject) -> list[dict[str, Any]]:
        """The fields of all live AddFiles, by one Spark job and in one piece.

        Of the statistics only ``numRecords`` is kept, as OPTIMIZE does it. Not by Delta's ``filesForScan``: that
        parses statistics by the table's schema, so that Spark compiles new code for each table.
        """
        from pyspark.sql import functions as F

        num_records = F.expr(f"concat('{{\"numRecords\":', {records_sql('stats')}, '}}')")
        frame = self.all_files(snapshot).withColumn("stats", num_records)
        encoder = self._module("implicits.package$").addFileEncoder()
        files = getattr(self._dataset(frame), "as")(encoder).collectAsList()
        fields: list[dict[str, Any]] = json.loads(
            bytes(self._in_delta("util.JsonUtils").mapper().writeValueAsBytes(files))
        )
        return fields
