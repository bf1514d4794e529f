"""Read a table's state at a version: by Delta's logs and snapshots, or from its log files by Delta Kernel.

Kernel runs no Spark job.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from maintainer.delta.jvm.commit_store import OWN_LOG
from maintainer.delta.jvm.gateway import Gateway, required
from maintainer.delta.jvm.sessions import JavaObject
from maintainer.delta.jvm.storage_calls import TableFolder

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


KERNEL = required(
    {
        "io.delta.kernel.TableManager": "loadSnapshot/1",
        "io.delta.kernel.SnapshotBuilder": "atVersion/1 build/1",
        "io.delta.kernel.Snapshot": "writeCheckpoint/1",
        "io.delta.kernel.engine.FileSystemClient": "resolvePath/1",
        "io.delta.kernel.engine.ExpressionHandler": "getPredicateEvaluator/2",
        "io.delta.kernel.data.FilteredColumnarBatch": "<init>/2 getData/0 getRows/0",
        "io.delta.kernel.expressions.Column": "<init>/1 appendNestedField/1",
        "io.delta.kernel.expressions.Predicate": "<init>/3",
        "io.delta.kernel.expressions.PredicateEvaluator": "eval/2",
        "io.delta.kernel.expressions.Literal": "ofLong/1",
        "io.delta.kernel.internal.fs.Path": "<init>/1",
        "io.delta.kernel.internal.snapshot.SnapshotManager": "<init>/1 getLogSegmentForVersion/2",
        "io.delta.kernel.internal.replay.CreateCheckpointIterator": "<init>/3",
        "io.delta.kernel.internal.actions.SingleAction": "CHECKPOINT_SCHEMA",
        "io.delta.kernel.internal.actions.DeletionVectorDescriptor": "<init>/5",
        "io.delta.kernel.internal.deletionvectors.DeletionVectorUtils": "loadNewDvAndBitmap/3",
        "io.delta.kernel.internal.util.Tuple2": "_2",
        "io.delta.kernel.defaults.engine.DefaultEngine": "create/1",
        "io.delta.kernel.defaults.internal.json.JsonUtils": "rowToJson/1",
    }
)
"""What this module calls of Delta Kernel. Where it is missing, as in a session that somebody else started without its
JARs, Delta's own snapshot is the second reader of a log, and Delta writes the checkpoints."""

CHARACTERS_AT_ONCE = 4_000_000
"""About 7,000 files with statistics of ten columns cross in one piece."""


MAX_LONG = 2**63 - 1


class KernelCalls(Gateway):
    """Delta Kernel's snapshots, on the session's Hadoop configuration."""

    def kernel_snapshot(self, folder: TableFolder, version: int | None = None) -> JavaObject:
        """The newest snapshot of the table in a folder, or the one at a version. Raises what Kernel raises."""
        engine, _ = self._kernel_engine(folder)
        builder = self._java("io.delta.kernel.TableManager").loadSnapshot(folder.root.toString())
        return (builder if version is None else builder.atVersion(version)).build(engine)

    def kernel_actions(self, folder: TableFolder, version: int, removed_since_ms: int) -> Iterator[dict[str, Any]]:
        """The actions that a version is made of, and its removals since a moment, of commits and checkpoints alone.

        As Kernel collects them for a checkpoint: in one pass, without a look at a checksum file or at what an earlier
        call has read. ``metaData`` and ``protocol`` come with the live ``add`` actions. Removals are those that the log
        still has: a checkpoint leaves out the expired ones. Raises what Kernel raises.
        """
        engine, _ = self._kernel_engine(folder)
        internal, expressions = self._java("io.delta.kernel.internal"), self._java("io.delta.kernel.expressions")
        root = engine.getFileSystemClient().resolvePath(folder.root.toString())
        # py4j makes an Integer of a Python int, and Kernel needs a Long.
        boxed = self._java("java.util.stream.LongStream").of(version).boxed().findFirst()
        segment = internal.snapshot.SnapshotManager(internal.fs.Path(root)).getLogSegmentForVersion(engine, boxed)
        batches = internal.replay.CreateCheckpointIterator(engine, segment, MAX_LONG)
        removed_at = expressions.Column("remove").appendNestedField("deletionTimestamp")
        late = expressions.Predicate(">=", removed_at, expressions.Literal.ofLong(removed_since_ms))
        evaluator = engine.getExpressionHandler().getPredicateEvaluator(
            internal.actions.SingleAction.CHECKPOINT_SCHEMA, late
        )
        batch_of, optional = self._java("io.delta.kernel.data.FilteredColumnarBatch"), self._java("java.util.Optional")

        def live_and_removed(batch: JavaObject) -> list[JavaObject]:
            actions = batch.getData()
            return [batch, batch_of(actions, optional.of(evaluator.eval(actions, optional.empty())))]

        yield from self._kernel_rows(folder, batches, live_and_removed)

    def _kernel_rows(
        self, folder: TableFolder, batches: JavaObject, parts: Callable[[JavaObject], list[JavaObject]]
    ) -> Iterator[dict[str, Any]]:
        """The rows of Kernel's batches as Python has them, in pieces of some megabytes of text."""
        _, to_json = self._kernel_engine(folder)
        as_scala = self._java("scala.jdk.javaapi.CollectionConverters").asScala
        lines = self._java("scala.collection.mutable.StringBuilder")()
        try:
            more = bool(batches.hasNext())
            while more:
                for part in parts(batches.next()):
                    rows = part.getRows()
                    as_scala(rows.map(to_json)).addString(lines, "", "\n", "\n")
                    rows.close()
                more = bool(batches.hasNext())
                if not more or int(lines.length()) > CHARACTERS_AT_ONCE:
                    text = self.across(lines)
                    lines.clear()
                    for line in text.split("\n"):
                        if line:
                            yield json.loads(line)
        finally:
            batches.close()

    def kernel_deleted_rows(self, folder: TableFolder, vector: dict[str, Any]) -> list[int]:
        """The numbers of the soft-deleted rows, from a ``deletionVector`` of the log. Raises what Kernel raises."""
        from py4j.java_gateway import get_field

        internal, util = self._java("io.delta.kernel.internal"), self._java("java.util")
        offset = vector.get("offset")
        descriptor = internal.actions.DeletionVectorDescriptor(
            vector["storageType"],
            vector["pathOrInlineDv"],
            util.Optional.empty() if offset is None else util.Optional.of(int(offset)),
            int(vector["sizeInBytes"]),
            int(vector["cardinality"]),
        )
        engine, _ = self._kernel_engine(folder)
        load = internal.deletionvectors.DeletionVectorUtils.loadNewDvAndBitmap
        bitmap = get_field(load(engine, folder.root.toString(), descriptor), "_2")
        rows: list[int] = json.loads(util.Arrays.toString(bitmap.toArray()))
        return rows

    def kernel_checkpoint(self, folder: TableFolder, version: int) -> None:
        """Write the checkpoint of a version; of a version that is asked for, Kernel never cleans up the log."""
        self.kernel_snapshot(folder, version).writeCheckpoint(self._kernel_engine(folder)[0])

    def _kernel_engine(self, folder: TableFolder) -> tuple[JavaObject, JavaObject]:
        """Kernel's engine on the session's configuration, and the Java function from a row to its JSON."""
        if self._kernel is None:
            engine = self._java("io.delta.kernel.defaults.engine.DefaultEngine").create(folder.conf)
            self._kernel = (engine, self._row_to_json())
        return self._kernel

    def _row_to_json(self) -> JavaObject:
        invoke = self._java("java.lang.invoke")
        shape = invoke.MethodType.methodType(self._class("java.lang.String"), self._class("io.delta.kernel.data.Row"))
        owner = self._class("io.delta.kernel.defaults.internal.json.JsonUtils")
        method = invoke.MethodHandles.publicLookup().findStatic(owner, "rowToJson", shape)
        return invoke.MethodHandleProxies.asInterfaceInstance(self._class("java.util.function.Function"), method)
