"""All JVM calls in one class, and a check that the installed Delta has them."""

from __future__ import annotations

from collections.abc import Mapping
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from maintainer.delta.jvm import catalog_calls as catalog
from maintainer.delta.jvm import commit_store
from maintainer.delta.jvm import log_calls as log
from maintainer.delta.jvm import parquet_calls as parquet
from maintainer.delta.jvm import storage_calls as storage
from maintainer.delta.jvm import transaction_calls as transaction
from maintainer.delta.jvm.gateway import Gateway, required, tested_pairs
from maintainer.delta.jvm.java_classes import compiled_classes as java
from maintainer.errors import EnvironmentUnfit

if TYPE_CHECKING:
    from pyspark import SparkContext


class TaskCalls(Gateway):
    """Reads of Spark's status tracker, which knows the newest thousand jobs."""

    def tasks_of(self, group: str) -> tuple[int, int]:
        """Count the tasks of the stages of a job group's active jobs: done, and all. (0, 0) where none is active."""
        tracker = self.spark.sparkContext.statusTracker()
        active = tracker.getActiveJobsIds()
        if not active:
            return 0, 0
        # As a string: each element of a Java array would be a call of its own.
        known = self._java("java.util.Arrays").toString(tracker._jtracker.getJobIdsForGroup(group))
        of_group = {int(number) for number in known.strip("[]").split(",") if number.strip()}
        done = total = 0
        for job_id in of_group.intersection(active):
            job = tracker.getJobInfo(job_id)
            for stage_id in job.stageIds if job is not None else ():
                stage = tracker.getStageInfo(stage_id)
                if stage is not None:
                    done += stage.numCompletedTasks
                    total += stage.numTasks
        return done, total


def cancel_jobs(context: SparkContext, group: str) -> None:
    """Cancel the jobs of a group, which no later work has: also one that is submitted a moment later."""
    context._jsc.sc().cancelJobGroupAndFutureJobs(group)


SETTINGS = required(
    {
        "sources.DeltaSQLConf$": "DELTA_ALL_FILES_IN_CRC_ENABLED/0 DELTA_AUTO_COMPACT_ENABLED/0 "
        "DELTA_AUTO_COMPACT_MAX_FILE_SIZE/0 DELTA_AUTO_COMPACT_MIN_FILE_SIZE/0 DELTA_AUTO_COMPACT_MIN_NUM_FILES/0 "
        "DELTA_AUTO_COMPACT_MODIFIED_PARTITIONS_ONLY_ENABLED/0 DELTA_COLLECT_STATS/0 DELTA_IDEMPOTENT_DML_TXN_APP_ID/0 "
        "DELTA_IDEMPOTENT_DML_TXN_VERSION/0 DELTA_LAST_COMMIT_VERSION_IN_SESSION/0 DELTA_OPTIMIZE_BATCH_SIZE/0 "
        "DELTA_OPTIMIZE_CLUSTERING_MIN_CUBE_SIZE/0 DELTA_OPTIMIZE_CLUSTERING_TARGET_CUBE_SIZE/0 "
        "DELTA_OPTIMIZE_MAX_DELETED_ROWS_RATIO/0 DELTA_OPTIMIZE_MAX_FILE_SIZE/0 DELTA_OPTIMIZE_MAX_THREADS/0 "
        "DELTA_OPTIMIZE_METADATA_QUERY_ENABLED/0 DELTA_OPTIMIZE_MIN_FILE_SIZE/0 DELTA_OPTIMIZE_REPARTITION_ENABLED/0 "
        "DELTA_OPTIMIZE_WRITE_ENABLED/0 DELTA_SNAPSHOT_PARTITIONS/0 DELTA_USER_METADATA/0 "
        "DELTA_VACUUM_RELATIVIZE_IGNORE_ERROR/0 DELTA_VACUUM_RETENTION_CHECK_ENABLED/0 DELTA_WRITE_CHECKSUM_ENABLED/0 "
        "INCREMENTAL_COMMIT_ENABLED/0 LOAD_FILE_SYSTEM_CONFIGS_FROM_DATAFRAME_OPTIONS/0 TEST_FILE_NAME_PREFIX/0 "
        "UTC_TIMESTAMP_PARTITION_VALUES/0"
    }
)
"""Delta's settings that we set or read, whatever the key: one that Delta does not know would change nothing, silently.
Not here are those that guard against what only Delta 4.1 or 4.2 began to do."""

SESSIONS = required(
    {
        "org.apache.spark.SparkContext": "cancelJobGroupAndFutureJobs/1",
        "org.apache.spark.api.python.PythonUtils": "toSeq/1 toScalaMap/1",
        "org.apache.spark.sql.classic.SparkSession": "getActiveSession/0 setActiveSession/1 clearActiveSession/0 "
        "sessionState/0",
    }
)
"""What every kind of call needs of Spark."""

REQUIRED = (
    SESSIONS
    + catalog.REQUIRED
    + commit_store.REQUIRED
    + java.REQUIRED
    + log.REQUIRED
    + parquet.REQUIRED
    + storage.REQUIRED
    + transaction.REQUIRED
    + SETTINGS
)
"""Everything private that the engine calls of Delta, of Spark and of what Spark brings along."""

PYSPARK = (
    "pyspark:SparkContext._active_spark_context",
    "pyspark:SparkContext._gateway",
    "pyspark:SparkContext._jsc",
    "pyspark:SparkContext._jvm",
    "pyspark:StatusTracker._jtracker",
    "pyspark.find_spark_home:_find_spark_home",
    "pyspark.java_gateway:launch_gateway",
    "pyspark.sql:SparkSession._activeSession",
    "pyspark.sql:SparkSession._jsparkSession",
    "pyspark.sql:SparkSession._jvm",
    "pyspark.sql.classic.dataframe:DataFrame",
    "pyspark.sql.classic.dataframe:DataFrame._jdf",
    "pyspark.sql.internal:InternalFunction.array_binary_search",
)
"""What is not public in PySpark and used here."""


class DeltaJvm(
    catalog.CatalogCalls,
    log.KernelCalls,
    log.LogCalls,
    parquet.ParquetCalls,
    storage.StorageCalls,
    TaskCalls,
    transaction.TransactionCalls,
):
    """The calls, bound to one Spark session. Cheap to make; use it on any thread after ``activate``."""

    def register_settings(self) -> None:
        """Have Delta register all its settings; waits for a thread that lets it do so now.

        Spark refuses to set one that is known and not registered yet (``CANNOT_MODIFY_CONFIG``).
        """
        self._module("sources.DeltaSQLConf$")

    def self_test(self) -> None:
        """Check that this build of Delta, and this PySpark, have every private member that is used here.

        Raises:
            EnvironmentUnfit: E633, naming the Delta version found and all that is missing.
        """
        context = self.spark.sparkContext
        made = {  # by objects, whose members their classes do not show
            "pyspark:SparkContext": context,
            "pyspark:StatusTracker": context.statusTracker(),
            "pyspark.sql:SparkSession": self.spark,
            "pyspark.sql.classic.dataframe:DataFrame": self._frame(None),
        }
        missing = self.lacking(REQUIRED) + [name for name in PYSPARK if not _is_there(name, made)]
        if missing:
            raise EnvironmentUnfit(
                f"Delta {self._version_or_unknown()} lacks what the rewrite engine needs",
                code="E633",
                found=", ".join(missing),
                allowed=tested_pairs(),
                help="start the session with such a pair, or use `--engine command`, which is proven after the commit",
            )

    def versions(self) -> str:
        """Say the Spark and the Delta on the class path."""
        return f"Spark {self.spark_version()} with Delta {self._version_or_unknown()}"

    def lacks_of_kernel(self) -> list[str]:
        """Name what this class path lacks of Delta Kernel: see ``KERNEL`` for what is weaker then."""
        return self.lacking(log.KERNEL)


def _is_there(name: str, made: Mapping[str, object]) -> bool:
    owner, _, member = name.rpartition(".")
    if owner in made:
        return hasattr(made[owner], member)
    try:
        resolve_name(name)
    except (AttributeError, ImportError):
        return False
    return True
