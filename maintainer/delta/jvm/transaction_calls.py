"""Call Delta's transactions: read chosen files, write new ones, commit actions."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from maintainer.delta.jvm.commit_store import OWN_LOG, CommitStoreCalls
from maintainer.delta.jvm.gateway import DELTA, required
from maintainer.delta.jvm.sessions import JavaObject

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

REQUIRED = required(
    {
        "DeltaLog": "checkpointInterval/1 createDataFrame/4 unsafeVolatileSnapshot/0",
        "OptimisticTransaction": "trackFilesRead/1 trackReadPredicates/3 writeFiles/4 registerSQLMetrics/2 "
        "commit/3 snapshot/0 readTxn/0 metadata/0 protocol/0 updateMetadata/2 postCommitHooks/0 deltaLog/0 <init>/3 "
        # Answered by our own class; Delta 4.0 has the second.
        "isCheckpointNeeded|setNeedsCheckpoint/2",
        "hooks.CheckpointHook$": "name/0",
        "hooks.ChecksumHook$": "name/0",
        "Snapshot": "checksumOpt/0",
        "VersionChecksum": "allFiles/0",
        "actions.Action$": "fromJson/1",
        "actions.AddFile": "json/0 path/0 removeWithTimestamp/2",
        "RowTracking$": "preserveRowTrackingColumns/2 addPreservedRowTrackingTagIfNotSet/2",
        "skipping.MultiDimClustering$": "cluster/4",
        "DeltaOperations$Optimize": "<init>/5",
        "DeltaOperations$Reorg": "<init>/2",
        # Ever more options: Delta 4.3 and later, 4.1, 4.0.
        "DeltaOperations$Write": "<init>/9/7/4",
        "commands.DeltaPurgeOperation": "<init>/0 filterFilesToReorg/3",
        "DeltaOperations$VacuumStart": "<init>/3",
        "DeltaOperations$VacuumEnd": "<init>/1",
        "commands.AlterTableSetPropertiesDeltaCommand": "<init>/2 run/1",
        "commands.AlterTableUnsetPropertiesDeltaCommand": "<init>/4 run/1",
        "DeltaConfigs$": "validateConfigurations/1",
        "catalog.DeltaTableV2": "apply/4 deltaLog/0",
        "org.apache.spark.sql.Observation": "<init>/0 future/0 getAsJava/0",
        "org.apache.spark.sql.execution.metric.SQLMetrics": "createMetric/2",
        "org.apache.spark.sql.execution.metric.SQLMetric": "set/1",
        "org.apache.spark.sql.internal.SessionState": "conf/0",
        "org.apache.spark.sql.internal.SQLConf": "setConfString/2 unsetConf/1",
    }
)
"""Private methods of Delta and Spark that this module calls."""

FILES_AT_ONCE = 10_000
"""Files that cross to the JVM in one text, some 4 MB."""

FILE_NAME_PREFIX = "spark.databricks.delta.testOnly.dataFileNamePrefix"
"""Delta's tests use this setting to put a prefix before the names of data files. Names may be anything."""

BORROWED = "spark.maintainer.borrowed"
"""Our own setting of a worker's session in somebody else's JVM."""

OWN_TRANSACTIONS = "maintainer.OwnTransactions"
DERIVE_CHECKSUM = "spark.databricks.delta.incremental.commit.enabled"
WRITE_CHECKSUM = "spark.databricks.delta.writeChecksumFile.enabled"
"""Set to false for a commit, so that Delta neither derives a checksum before it nor computes one after it. Only for the
call itself: a transaction that is *started* without the first builds the table's state to check it."""

FILES_IN_CHECKSUM = "spark.databricks.delta.allFilesInCrc.enabled"
"""Set to false for a commit after a checksum that does not list the files: to list them, Delta builds the state."""


class TransactionCalls(CommitStoreCalls):
    """Delta's ``OptimisticTransaction``, its operations and its writer."""

    def start_transaction(self, log: JavaObject, snapshot: JavaObject | None = None) -> JavaObject:
        """Start a transaction on the snapshot, or on the newest one."""
        return self.compiled(OWN_TRANSACTIONS).start(log, self._option(snapshot))

    def add_files(self, adds: Iterable[Mapping[str, Any]]) -> JavaObject:
        """Make AddFiles from the fields of ``add`` actions: a Scala ``Seq``, in few calls however many there are."""
        return self._python_utils.toSeq(self._listed(adds))

    def _listed(self, adds: Iterable[Mapping[str, Any]]) -> JavaObject:
        """AddFiles as a Java ``List``, by Delta's own reader of JSON."""
        mapper = self._in_delta("util.JsonUtils").mapper()
        if self._add_file_list is None:
            classes = self._class("java.util.ArrayList"), self._class(f"{DELTA}actions.AddFile")
            self._add_file_list = mapper.getTypeFactory().constructCollectionType(*classes)
        listed, fields = self._array_list(), list(adds)
        for start in range(0, len(fields), FILES_AT_ONCE):
            text = json.dumps(fields[start : start + FILES_AT_ONCE], ensure_ascii=False)
            listed.addAll(mapper.readValue(text, self._add_file_list))
        return listed

    def track_read(self, txn: JavaObject, adds: Iterable[Mapping[str, Any]]) -> None:
        """Register what the transaction read, as OPTIMIZE does: these files, and no other predicate."""
        txn.trackFilesRead(self.add_files(adds))
        txn.trackReadPredicates(self.seq(), False, True)

    def read_files(
        self, log: JavaObject, snapshot: JavaObject, adds: Iterable[Mapping[str, Any]], purpose: str
    ) -> DataFrame:
        """A DataFrame over exactly the files of these ``add`` actions: deletion vectors and column mapping applied."""
        return self._frame(log.createDataFrame(snapshot, self.add_files(adds), False, self._option(purpose)))

    def with_row_tracking(self, frame: DataFrame, snapshot: JavaObject) -> DataFrame:
        """Add the columns that keep row ids and row commit versions; unchanged without row tracking."""
        return self._frame(self._module("RowTracking$").preserveRowTrackingColumns(self._dataset(frame), snapshot))

    def clustered(
        self, frame: DataFrame, num_files: int, columns: Iterable[str], *, curve: str = "zorder"
    ) -> DataFrame:
        """Range-partition along Delta's curve (``zorder`` or ``hilbert``) into about ``num_files`` partitions."""
        clustering = self._module("skipping.MultiDimClustering$")
        return self._frame(clustering.cluster(self._dataset(frame), num_files, self.seq(columns), curve))

    @contextmanager
    def file_names_begin_with(self, prefix: str) -> Iterator[None]:
        """Within the block Delta puts a prefix before the name of each data file of this session; none where empty."""
        # Not by ``spark.conf``, which takes the key for one that only counts at Spark's start: tasks read it each time.
        conf = self._session.sessionState().conf()
        if prefix:
            conf.setConfString(FILE_NAME_PREFIX, prefix)
        try:
            yield
        finally:
            with suppress(Exception):  # the JVM may be gone, and the setting with it
                conf.unsetConf(FILE_NAME_PREFIX)

    def write_files(self, txn: JavaObject, frame: DataFrame) -> list[str]:
        """Write the frame as data files of the table, not yet visible; returns the actions' JSON lines."""
        written = txn.writeFiles(self._dataset(frame), self._none, True, self.seq())
        return [str(written.apply(i).json()) for i in range(written.size())]

    def observe(self, frame: DataFrame, aggregates: Iterable[str]) -> tuple[DataFrame, JavaObject]:
        """The same frame with whole-number aggregates that Spark makes while its rows pass by; see ``observed``."""
        observation = self._java("org.apache.spark.sql.Observation")()
        expr = self._java("org.apache.spark.sql.functions").expr
        first, *others = [getattr(expr(text), "as")(f"a{place}") for place, text in enumerate(aggregates)]
        return self._frame(self._dataset(frame).observe(observation, first, self.seq(others))), observation

    def observed(self, observation: JavaObject, wait_seconds: float) -> tuple[int, ...] | None:
        """Return the observed values in order, after the frame was written; None if they do not arrive.

        Spark's listeners deliver them, perhaps a little later. Only ``getAsJava`` is the same in every Spark.
        """
        until = time.monotonic() + wait_seconds
        while not (answer := observation.future().value()).isDefined():
            if time.monotonic() > until:
                return None
            time.sleep(0.005)
        if answer.get().isFailure():
            return None
        values = observation.getAsJava()
        return tuple(int(values.get(f"a{place}")) for place in range(values.size()))

    def fields_of(self, actions: JavaObject) -> list[dict[str, Any]]:
        """The fields of a Java ``List`` of actions as Delta would write them, in one call."""
        mapper = self._in_delta("util.JsonUtils").mapper()
        fields: list[dict[str, Any]] = json.loads(bytes(mapper.writeValueAsBytes(actions)))
        return fields

    def note_transaction_read(self, txn: JavaObject, app_id: str) -> None:
        """Make the commit conflict with another that carries the same idempotency token.

        ``txnVersion`` does the same and looks the token up, for which Delta builds the table's state.
        """
        txn.readTxn().addOne(app_id)

    def set_metadata(self, txn: JavaObject, schema: str, properties: Mapping[str, str]) -> None:
        """Give a table that the transaction makes its schema, as JSON, and properties; no partitions."""
        metadata = {
            "id": str(uuid.uuid4()), "format": {"provider": "parquet", "options": {}}, "schemaString": schema,
            "partitionColumns": [], "configuration": dict(properties), "createdTime": int(time.time() * 1000),
        }  # fmt: skip
        txn.updateMetadata(self._in_delta("actions.Action").fromJson(json.dumps({"metaData": metadata})), False)

    def append_actions(self, adds: Iterable[Mapping[str, Any]], app_id: str, version: int, now_ms: int) -> JavaObject:
        """The actions of an append that carries an idempotency token."""
        actions = self._listed(adds)
        token = {"txn": {"appId": app_id, "version": version, "lastUpdated": now_ms}}
        actions.add(self._in_delta("actions.Action").fromJson(json.dumps(token)))
        return self._python_utils.toSeq(actions)

    def append_operation(self) -> JavaObject:
        """The operation of an append by a data frame."""
        mode = self._java("org.apache.spark.sql.SaveMode").Append
        num_options = self.arity(REQUIRED, "DeltaOperations$Write", "<init>") - 1
        return self._in_delta("DeltaOperations$Write")(mode, *[self._none] * num_options)

    def removes_of(self, adds: Iterable[Mapping[str, Any]], timestamp_ms: int) -> JavaObject:
        """The RemoveFiles of these files, ``dataChange=false``: a Java ``List``, made by Delta in one call."""
        removes = self._listed(adds)
        removes.replaceAll(self._removed_at(timestamp_ms))
        return removes

    def _removed_at(self, timestamp_ms: int) -> JavaObject:
        """The Java function from an AddFile to its RemoveFile."""
        gateway: JavaObject = self.spark.sparkContext._gateway
        kinds = gateway.new_array(self._java("java.lang.Class"), 2)
        kinds[0], kinds[1] = self._java("java.lang.Long").TYPE, self._java("java.lang.Boolean").TYPE
        method = self._class(f"{DELTA}actions.AddFile").getMethod("removeWithTimestamp", kinds)
        arguments = gateway.new_array(self._java("java.lang.Object"), 2)
        arguments[0], arguments[1] = timestamp_ms, False
        handles, proxies = (self._java(f"java.lang.invoke.MethodHandle{name}") for name in ("s", "Proxies"))
        handle = handles.insertArguments(handles.publicLookup().unreflect(method), 1, arguments)
        return proxies.asInterfaceInstance(self._class("java.util.function.UnaryOperator"), handle)

    def rewrite_actions(self, adds: Iterable[Mapping[str, Any]], removes: JavaObject) -> JavaObject:
        """The actions of a rewrite for its commit: these files are added, and those of a Java ``List`` removed."""
        actions = self._listed(adds)
        actions.addAll(removes)
        return self._python_utils.toSeq(actions)

    def optimize_operation(
        self, z_order_by: Iterable[str], *, auto: bool = False, cluster_by: Iterable[str] = (), full: bool = False
    ) -> JavaObject:
        """The operation of an OPTIMIZE without predicate; ``auto`` for one that follows a write by itself.

        ``cluster_by`` and ``full`` are for clustered tables, whose history says by which columns.
        """
        make = self._in_delta("DeltaOperations$Optimize")
        clustered = tuple(cluster_by)
        by = self._option(self.seq(clustered)) if clustered else self._none
        return make(self.seq(), self.seq(z_order_by), auto, by, full)

    def purge_operation(self) -> JavaObject:
        """The operation of a REORG ... APPLY (PURGE) without predicate."""
        return self._in_delta("DeltaOperations$Reorg")(self.seq(), True)

    def files_with_extra_columns(self, snapshot: JavaObject, add_files: JavaObject) -> list[str]:
        """Paths of those files whose footers have columns that the schema does not: as REORG finds them, in one job.

        The files must come without deletion vectors, for which REORG would return them as well.
        """
        files = self._in_delta("commands.DeltaPurgeOperation")().filterFilesToReorg(self._session, snapshot, add_files)
        return [str(files.apply(i).path()) for i in range(files.size())]

    def vacuum_start_operation(self, retention_ms: int, table_retention_ms: int) -> JavaObject:
        """The operation of VACUUM START with the retention that was applied."""
        # Option.apply(n) would hold an Integer for a small number, and Delta unboxes a Long.
        boxed = self._java("java.util.OptionalLong").of(retention_ms)
        retention = self._java("scala.jdk.javaapi.OptionConverters").toScala(boxed)
        return self._in_delta("DeltaOperations$VacuumStart")(True, retention, table_retention_ms)

    def vacuum_end_operation(self, status: str) -> JavaObject:
        """The operation of VACUUM END; the status is COMPLETED or FAILED."""
        return self._in_delta("DeltaOperations$VacuumEnd")(status)

    def register_metrics(self, txn: JavaObject, values: Mapping[str, int]) -> None:
        """Register the operation's metrics so that they land in the table's history."""
        context = self.spark.sparkContext._jsc.sc()
        create = self._java("org.apache.spark.sql.execution.metric.SQLMetrics").createMetric
        metrics = {}
        for name, value in values.items():
            metric = create(context, name)
            metric.set(value)
            metrics[name] = metric
        txn.registerSQLMetrics(self._session, self.string_map(metrics))

    def row_tracking_tags(self, snapshot: JavaObject) -> JavaObject:
        """The commit tags that say row tracking was preserved; empty without row tracking."""
        return self._module("RowTracking$").addPreservedRowTrackingTagIfNotSet(snapshot, self.string_map({}))

    def without_checkpoint(self, txn: JavaObject) -> None:
        """Let the commit of a transaction write no checkpoint; the caller does where one is due."""
        txn.postCommitHooks().subtractOne(self._module("hooks.CheckpointHook$"))
        txn.leaveCheckpoint()

    @property
    def writes_checksums(self) -> bool:
        """Whether we may write checksum files: the session is ours, and its settings let Delta write them."""
        is_ours = self.session_setting(BORROWED) is None
        return is_ours and str(self.session_setting(WRITE_CHECKSUM)).lower() != "false"

    def derived_checksum(self, log: JavaObject, version: int) -> bytes | None:
        """The checksum that Delta derived when it committed a version, as it would write it; None without one."""
        snapshot = log.unsafeVolatileSnapshot()
        checksum = snapshot.checksumOpt()
        if int(snapshot.version()) != version or not checksum.isDefined():
            return None
        return bytes(self._in_delta("util.JsonUtils").mapper().writeValueAsBytes(checksum.get())) + b"\n"

    def without_checksums(self) -> AbstractContextManager[None]:
        """Within the block no commit of our session writes a checksum file: see ``derived_checksum``."""
        return self.setting(WRITE_CHECKSUM, "false")

    def without_checksum(self, txn: JavaObject) -> None:
        """Let the commit of a transaction write no checksum file: see ``derived_checksum``."""
        txn.postCommitHooks().subtractOne(self._module("hooks.ChecksumHook$"))

    def commit(self, txn: JavaObject, actions: JavaObject, operation: JavaObject, tags: JavaObject | None) -> int:
        """Commit; returns the version. Raises whatever Delta raises: see ``engine_failures``.

        A version without a checksum file, as other engines leave it, is followed by one without, and one whose
        checksum lists no files by another such. To do more Delta would have to build the table's state first, in
        Spark, which takes longer than the rest of a small rewrite.
        """
        self.make_commits_exclusive(txn.deltaLog())
        commit_tags = self.string_map({}) if tags is None else tags
        checksum = txn.snapshot().checksumOpt()
        with ExitStack() as settings:
            if not checksum.isDefined() and int(txn.snapshot().version()) >= 0:
                settings.enter_context(self.setting(DERIVE_CHECKSUM, "false"))
                settings.enter_context(self.setting(WRITE_CHECKSUM, "false"))
            elif checksum.isDefined() and not checksum.get().allFiles().isDefined():
                settings.enter_context(self.setting(FILES_IN_CHECKSUM, "false"))
            return int(txn.commit(actions, operation, commit_tags))

    def set_properties(self, uri: str, properties: Mapping[str, str]) -> None:
        """Set table properties in one commit, with Delta's own validation; no SQL text is built."""
        table = self._table_to_alter(uri, "ALTER TABLE SET TBLPROPERTIES")
        valid = self._module("DeltaConfigs$").validateConfigurations(self.string_map(properties))
        self._in_delta("commands.AlterTableSetPropertiesDeltaCommand")(table, valid).run(self._session)

    def unset_properties(self, uri: str, names: Iterable[str]) -> None:
        """Remove table properties in one commit; those that are not set are passed over."""
        table = self._table_to_alter(uri, "ALTER TABLE UNSET TBLPROPERTIES")
        command = self._in_delta("commands.AlterTableUnsetPropertiesDeltaCommand")
        command(table, self.seq(names), True, False).run(self._session)

    def _table_to_alter(self, uri: str, command: str) -> JavaObject:
        table = self._in_delta("catalog.DeltaTableV2").apply(
            self._session, self.path(uri), self.string_map(OWN_LOG), command
        )
        self.make_commits_exclusive(table.deltaLog())
        return table
