"""Delta's transaction layer in the JVM, as few thin typed calls. The only module that touches the gateway.

Everything private to Delta that the engine needs is called here and listed in ``REQUIRED``, so that
``self_test`` can say by reflection, before anything is touched, whether this Delta build still has it.
JVM objects leave this module only as opaque handles.

Facts that shape the calls (Delta 4.4.0): py4j knows no default arguments; a Python int arrives as
``java.lang.Integer``; members that are private to Delta's packages have no static forwarder and are reached
through ``X$.MODULE$``; ``DeltaLog`` reads the *active* session of the calling JVM thread, so ``activate`` comes
first on each thread.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from maintainer.errors import EnvironmentUnfit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

JavaObject = Any
"""An opaque handle on an object in the JVM (py4j has no types)."""

DELTA = "org.apache.spark.sql.delta."

REQUIRED: tuple[tuple[str, str, int], ...] = (
    ("DeltaLog", "forTable", 2),
    ("DeltaLog", "update", 3),
    ("DeltaLog", "startTransaction", 2),
    ("DeltaLog", "createDataFrame", 4),
    ("DeltaLog", "store", 0),
    ("DeltaLog", "newDeltaHadoopConf", 0),
    ("DeltaLog", "dataPath", 0),
    ("DeltaLog", "logPath", 0),
    ("DeltaLog", "getSnapshotAt", 4),
    ("DeltaLog", "tombstoneRetentionMillis", 1),
    ("Snapshot", "allFiles", 0),
    ("implicits.package$", "addFileEncoder", 0),
    ("Snapshot", "version", 0),
    ("Snapshot", "timestamp", 0),
    ("Snapshot", "metadata", 0),
    ("Snapshot", "protocol", 0),
    ("Snapshot", "domainMetadata", 0),
    ("Snapshot", "statCollectionLogicalSchema", 0),
    ("OptimisticTransaction", "trackFilesRead", 1),
    ("OptimisticTransaction", "trackReadPredicates", 3),
    ("OptimisticTransaction", "writeFiles", 4),
    ("OptimisticTransaction", "registerSQLMetrics", 2),
    ("OptimisticTransaction", "commit", 3),
    ("actions.AddFile", "json", 0),
    ("actions.AddFile", "removeWithTimestamp", 2),
    ("actions.Action$", "fromJson", 1),
    ("actions.DeletionVectorDescriptor", "apply", 6),
    ("actions.DeletionVectorDescriptor", "absolutePath", 1),
    ("RowTracking$", "preserveRowTrackingColumns", 2),
    ("RowTracking$", "addPreservedRowTrackingTagIfNotSet", 2),
    ("skipping.MultiDimClustering$", "cluster", 4),
    ("DeltaOperations$Optimize", "<init>", 5),
    ("DeltaOperations$VacuumStart", "<init>", 3),
    ("DeltaOperations$VacuumEnd", "<init>", 1),
    ("commands.AlterTableSetPropertiesDeltaCommand", "<init>", 2),
    ("DeltaConfigs$", "validateConfigurations", 1),
    ("catalog.DeltaTableV2", "apply", 4),
    ("storage.LogStore", "listFrom", 2),
    ("util.JsonUtils", "mapper", 0),
    ("storage.LogStore", "read", 2),
    ("storage.LogStore", "readAsIterator", 2),
)
"""(class below ``org.apache.spark.sql.delta``, method, number of parameters) of all that is called."""


def has_signature(listing: str, member: str, count: int) -> bool:
    """Whether Java's text of a member array holds ``member`` with ``count`` parameters.

    One text instead of a call per member: Delta's classes have hundreds, and each call costs 0.1 ms. A method
    inherited from another class or trait is listed under that name, so only the last part is compared.
    """
    wanted = member.rpartition(".")[2]
    for name, parameters in re.findall(r"([\w.$]+)\(([^()]*)\)", listing):
        if name.rpartition(".")[2] == wanted and len([p for p in parameters.split(",") if p]) == count:
            return True
    return False


class DeltaJvm:
    """The calls, bound to one Spark session. Cheap to make; use it on any thread after ``activate``."""

    def __init__(self, spark: SparkSession) -> None:
        if not hasattr(spark, "_jsparkSession"):
            raise EnvironmentUnfit(
                "this Spark session has no JVM in this process (Spark Connect)",
                code="E620",
                help="run on a classic session, for example --master local[*]",
            )
        self.spark = spark
        self._jvm: JavaObject = cast(Any, spark._jvm)
        self._session: JavaObject = spark._jsparkSession
        self._delta: JavaObject = self._jvm.org.apache.spark.sql.delta
        self._none: JavaObject = self._jvm.scala.Option.empty()

    def seq(self, items: Iterable[object] = ()) -> JavaObject:
        """Make a Scala ``Seq``."""
        array = self._jvm.java.util.ArrayList()
        for item in items:
            array.add(item)
        return self._jvm.org.apache.spark.api.python.PythonUtils.toSeq(array)

    def string_map(self, values: Mapping[str, object]) -> JavaObject:
        """Make an immutable Scala ``Map`` with string keys."""
        return self._jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(dict(values))

    def _option(self, value: object | None) -> JavaObject:
        return self._none if value is None else self._jvm.scala.Option.apply(value)

    def _module(self, name: str) -> JavaObject:
        target = self._delta
        for part in f"{name}.MODULE$".split("."):
            target = getattr(target, part)
        return target

    def activate(self) -> None:
        """Make our session the active one of this thread's JVM thread: raw DeltaLog calls read its settings."""
        self._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(self._session)

    @contextmanager
    def setting(self, key: str, value: str) -> Iterator[None]:
        """Set one setting of our session within the block; what it was before is put back."""
        before = self.spark.conf.get(key, None)
        self.spark.conf.set(key, value)
        try:
            yield
        finally:
            if before is None:
                self.spark.conf.unset(key)
            else:
                self.spark.conf.set(key, before)

    def enter_thread(self, group: str, description: str) -> None:
        """Prepare a thread of ours: active session, scheduler pool and job group, so that a cancel reaches it."""
        self.activate()
        context = self.spark.sparkContext
        context.setLocalProperty("spark.scheduler.pool", group)
        context.setJobGroup(group, description, interruptOnCancel=False)

    def leave_thread(self) -> None:
        """Take pool and job group off the thread again: it may be somebody else's."""
        context = self.spark.sparkContext
        for key in ("spark.scheduler.pool", "spark.jobGroup.id", "spark.job.description"):
            context.setLocalProperty(key, None)  # type: ignore[arg-type]  # None removes the property

    def delta_version(self) -> str:
        """The Delta version of the JARs on the class path."""
        return str(getattr(getattr(self._jvm.io.delta, "package$"), "MODULE$").VERSION())

    def self_test(self) -> None:
        """Check that this Delta build has every private method that is called here.

        Raises:
            EnvironmentUnfit: E633, naming the Delta version found and all that is missing.
        """
        missing = [f"{name}.{method}/{count}" for name, method, count in REQUIRED if not self._has(name, method, count)]
        if missing:
            raise EnvironmentUnfit(
                f"Delta {self._version_or_unknown()} lacks what the rewrite engine needs",
                code="E633",
                found=", ".join(missing),
                allowed="delta-spark 4.4.0",
                help="pip install delta-spark==4.4.0 and let `maintainer doctor` fetch its JARs",
            )

    def _version_or_unknown(self) -> str:
        try:
            return self.delta_version()
        except Exception:
            return "(unknown version)"

    def _has(self, name: str, method: str, count: int) -> bool:
        try:
            loader = self._jvm.java.lang.Thread.currentThread().getContextClassLoader()
            cls = self._jvm.java.lang.Class.forName(DELTA + name, False, loader)
            members = cls.getConstructors() if method == "<init>" else cls.getMethods()
            listing = str(self._jvm.scala.runtime.ScalaRunTime.stringOf(members))
        except Exception:  # py4j raises its own kinds for a class that is not there
            return False
        return has_signature(listing, DELTA + name if method == "<init>" else f"{DELTA}{name}.{method}", count)

    # -- log and snapshot -----------------------------------------------------------------------------------

    def path(self, uri: str) -> JavaObject:
        """A Hadoop path from a percent-encoded URI (as ``TableFacts.location`` is)."""
        return self._jvm.org.apache.hadoop.fs.Path(self._jvm.java.net.URI(uri))

    def hadoop_path(self, text: str) -> JavaObject:
        """A Hadoop path from text in which nothing is percent-encoded."""
        return self._jvm.org.apache.hadoop.fs.Path(text)

    def forget_logs(self) -> None:
        """Drop Delta's cache of logs: the next look at any table reads its log anew."""
        self._delta.DeltaLog.clearCache()

    def log_at(self, uri: str) -> JavaObject:
        """The DeltaLog of the table rooted at a percent-encoded URI."""
        return self._delta.DeltaLog.forTable(self._session, self.path(uri))

    def log_of_path(self, text: str) -> JavaObject:
        """The DeltaLog for a path as people write it (nothing is percent-decoded), as Spark reads it."""
        return self._delta.DeltaLog.forTable(self._session, self.hadoop_path(text))

    def catalog_location(self, name: str) -> tuple[str, str, str] | None:
        """(location URI, provider, table type) of a name in the session catalog; None if there is no such table."""
        state = self._session.sessionState()
        identifier = state.sqlParser().parseTableIdentifier(name)
        if not state.catalog().tableExists(identifier):
            return None
        table = state.catalog().getTableMetadata(identifier)
        provider = table.provider()
        return (
            str(table.location().toString()) if table.tableType().name() != "VIEW" else "",
            str(provider.get()) if provider.isDefined() else "",
            str(table.tableType().name()),
        )

    def update(self, log: JavaObject) -> JavaObject:
        """The newest snapshot of a log; blocks until the log is read."""
        return log.update(False, self._none, self._none)

    def snapshot_at(self, log: JavaObject, version: int) -> JavaObject:
        """The snapshot of an older version, also one that readers may no longer travel to."""
        return log.getSnapshotAt(version, self._none, self._none, False)

    def table_retention_ms(self, snapshot: JavaObject) -> int:
        """How long the table keeps removed files: its property, or Delta's default of 7 days."""
        return int(self._delta.DeltaLog.tombstoneRetentionMillis(snapshot.metadata()))

    def path_text(self, log: JavaObject) -> str:
        """The table's root as Spark's readers take it (not percent-encoded)."""
        return str(log.dataPath().toString())

    def location(self, log: JavaObject) -> str:
        """The table's root as a percent-encoded URI."""
        return str(log.dataPath().toUri().toString())

    def metadata(self, snapshot: JavaObject) -> dict[str, Any]:
        """The snapshot's ``metaData`` action."""
        found: dict[str, Any] = json.loads(snapshot.metadata().json())["metaData"]
        # A table created without a schema has none in its log.
        found.setdefault("schemaString", '{"type":"struct","fields":[]}')
        return found

    def protocol(self, snapshot: JavaObject) -> dict[str, Any]:
        """The snapshot's ``protocol`` action."""
        found: dict[str, Any] = json.loads(snapshot.protocol().json())["protocol"]
        return found

    def domain_metadata(self, snapshot: JavaObject) -> dict[str, str]:
        """Domain name to configuration string; costs a Spark job on a table that has the feature."""
        domains = snapshot.domainMetadata()
        return {str(domains.apply(i).domain()): str(domains.apply(i).configuration()) for i in range(domains.size())}

    def stats_schema(self, snapshot: JavaObject) -> dict[str, Any]:
        """The logical schema of the columns that statistics are collected for under the table's settings."""
        found: dict[str, Any] = json.loads(snapshot.statCollectionLogicalSchema().json())
        return found

    def all_files(self, snapshot: JavaObject) -> DataFrame:
        """The snapshot's AddFiles as a DataFrame."""
        return self._frame(snapshot.allFiles().toDF())

    def scan_files(self, snapshot: JavaObject) -> tuple[JavaObject, list[dict[str, Any]]]:
        """All live AddFiles: a Java ``List``, and each one's fields in the same order; one Spark job and one call.

        Of the statistics only ``numRecords`` is kept, as OPTIMIZE does it. Not by Delta's ``filesForScan``: that
        parses statistics by the table's schema, so that Spark compiles new code for each table.
        """
        from pyspark.sql import functions as F

        kept = F.expr("concat('{\"numRecords\":', get_json_object(stats, '$.numRecords'), '}')")
        frame = self.all_files(snapshot).withColumn("stats", kept)
        encoder = self._module("implicits.package$").addFileEncoder()
        files = getattr(self._dataset(frame), "as")(encoder).collectAsList()
        return files, json.loads(self._delta.util.JsonUtils.mapper().writeValueAsString(files))

    def _frame(self, dataset: JavaObject) -> DataFrame:
        from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

        return ClassicDataFrame(dataset, self.spark)

    # -- transactions ---------------------------------------------------------------------------------------

    def start_transaction(self, log: JavaObject, snapshot: JavaObject | None = None) -> JavaObject:
        """Start a transaction on the snapshot, or on the newest one."""
        return log.startTransaction(self._none, self._option(snapshot))

    def track_read(self, txn: JavaObject, add_files: JavaObject) -> None:
        """Register what the transaction read, as OPTIMIZE does: these files, and no other predicate."""
        txn.trackFilesRead(add_files)
        txn.trackReadPredicates(self.seq(), False, True)

    def read_files(self, log: JavaObject, snapshot: JavaObject, add_files: JavaObject, purpose: str) -> DataFrame:
        """A DataFrame over exactly these AddFiles: deletion vectors and column mapping applied."""
        return self._frame(log.createDataFrame(snapshot, add_files, False, self._option(purpose)))

    def with_row_tracking(self, frame: DataFrame, snapshot: JavaObject) -> DataFrame:
        """Add the columns that keep row ids and row commit versions; unchanged without row tracking."""
        return self._frame(self._module("RowTracking$").preserveRowTrackingColumns(self._dataset(frame), snapshot))

    def clustered(self, frame: DataFrame, num_files: int, columns: Iterable[str]) -> DataFrame:
        """Range-partition along Delta's Z-order curve into about ``num_files`` partitions."""
        clustering = self._module("skipping.MultiDimClustering$")
        return self._frame(clustering.cluster(self._dataset(frame), num_files, self.seq(columns), "zorder"))

    @staticmethod
    def _dataset(frame: DataFrame) -> JavaObject:
        return frame._jdf

    def write_files(self, txn: JavaObject, frame: DataFrame) -> list[str]:
        """Write the frame as data files of the table, not yet visible; returns the actions' JSON lines."""
        written = txn.writeFiles(self._dataset(frame), self._none, True, self.seq())
        return [str(written.apply(i).json()) for i in range(written.size())]

    def action(self, line: str) -> JavaObject:
        """Parse one action from its JSON: Delta's own serialization instead of private constructors."""
        return self._delta.actions.Action.fromJson(line)

    def remove_of(self, add: JavaObject, timestamp_ms: int) -> JavaObject:
        """The RemoveFile of an AddFile, ``dataChange=false``."""
        return add.removeWithTimestamp(timestamp_ms, False)

    def optimize_operation(self, z_order_by: Iterable[str]) -> JavaObject:
        """The operation of an OPTIMIZE without predicate."""
        make = getattr(self._delta, "DeltaOperations$Optimize")
        return make(self.seq(), self.seq(z_order_by), False, self._none, False)

    def vacuum_start_operation(self, retention_ms: int, table_retention_ms: int) -> JavaObject:
        """The operation of VACUUM START with the retention that was applied."""
        # Option.apply(n) would hold an Integer for a small number, and Delta unboxes a Long.
        boxed = self._jvm.java.util.OptionalLong.of(retention_ms)
        retention = self._jvm.scala.jdk.javaapi.OptionConverters.toScala(boxed)
        return getattr(self._delta, "DeltaOperations$VacuumStart")(True, retention, table_retention_ms)

    def vacuum_end_operation(self, status: str) -> JavaObject:
        """The operation of VACUUM END; the status is COMPLETED or FAILED."""
        return getattr(self._delta, "DeltaOperations$VacuumEnd")(status)

    def register_metrics(self, txn: JavaObject, values: Mapping[str, int]) -> None:
        """Register the operation's metrics so that they land in the table's history."""
        context = self.spark.sparkContext._jsc.sc()
        metrics = {}
        for name, value in values.items():
            metric = self._jvm.org.apache.spark.sql.execution.metric.SQLMetrics.createMetric(context, name)
            metric.set(value)
            metrics[name] = metric
        txn.registerSQLMetrics(self._session, self.string_map(metrics))

    def row_tracking_tags(self, snapshot: JavaObject) -> JavaObject:
        """The commit tags that say row tracking was preserved; empty without row tracking."""
        return self._module("RowTracking$").addPreservedRowTrackingTagIfNotSet(snapshot, self.string_map({}))

    def commit(self, txn: JavaObject, actions: JavaObject, operation: JavaObject, tags: JavaObject | None) -> int:
        """Commit; returns the version. Raises whatever Delta raises: see ``error_classes``."""
        return int(txn.commit(actions, operation, self.string_map({}) if tags is None else tags))

    def set_properties(self, uri: str, properties: Mapping[str, str]) -> None:
        """Set table properties in one commit, with Delta's own validation; no SQL text is built."""
        table = self._delta.catalog.DeltaTableV2.apply(
            self._session, self.path(uri), self.string_map({}), "ALTER TABLE SET TBLPROPERTIES"
        )
        valid = self._module("DeltaConfigs$").validateConfigurations(self.string_map(properties))
        self._delta.commands.AlterTableSetPropertiesDeltaCommand(table, valid).run(self._session)

    # -- storage --------------------------------------------------------------------------------------------

    def file_system(self, log: JavaObject) -> tuple[JavaObject, JavaObject]:
        """Hadoop's file system of the table and the configuration that its DeltaLog uses."""
        conf = log.newDeltaHadoopConf()
        return log.dataPath().getFileSystem(conf), conf

    def child(self, root: JavaObject, relative: str) -> JavaObject:
        """A path below (or, if ``relative`` is absolute, beside) a root, from its percent-encoded form in the log."""
        return self._jvm.org.apache.hadoop.fs.Path(root, self.path(relative))

    def vector_path(self, kind: str, path: str, root: JavaObject) -> JavaObject:
        """Where Delta says a deletion vector file lies, from its storage type and encoded path."""
        one = self._jvm.java.lang.Integer.valueOf(1)
        vector = self._delta.actions.DeletionVectorDescriptor.apply(kind, path, self._option(one), 1, 0, self._none)
        return vector.absolutePath(root)

    def pattern(self, expression: str) -> JavaObject:
        """A Java regular expression, to cut text down before it crosses to Python."""
        return self._jvm.java.util.regex.Pattern.compile(expression)

    def text_of(self, lines: JavaObject) -> JavaObject:
        """The lines of a Scala ``Seq`` as one character sequence that stays in the JVM."""
        return lines.addString(self._jvm.scala.collection.mutable.StringBuilder(), "\n")
