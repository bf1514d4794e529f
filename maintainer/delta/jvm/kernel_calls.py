"""Read a table's state from its log files with Delta Kernel, without a Spark job.

A call over the gateway costs 0.1 ms, so nothing here loops over files in Python. A Java function, made from a method
handle, turns a whole batch of rows into JSON inside the JVM, and one string for each batch crosses over.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from maintainer.delta.jvm.gateway import Gateway, required
from maintainer.delta.jvm.sessions import JavaObject
from maintainer.delta.jvm.storage_calls import TableFolder

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
            engine = self._jvm.io.delta.kernel.defaults.engine.DefaultEngine.create(folder.conf)
            self._kernel = (engine, self._row_to_json())
        return self._kernel

    def _row_to_json(self) -> JavaObject:
        invoke = self._jvm.java.lang.invoke
        shape = invoke.MethodType.methodType(self._class("java.lang.String"), self._class("io.delta.kernel.data.Row"))
        owner = self._class("io.delta.kernel.defaults.internal.json.JsonUtils")
        method = invoke.MethodHandles.publicLookup().findStatic(owner, "rowToJson", shape)
        return invoke.MethodHandleProxies.asInterfaceInstance(self._class("java.util.function.Function"), method)
