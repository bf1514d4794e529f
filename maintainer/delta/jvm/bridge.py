"""All JVM calls in one class, and a check that the installed Delta has them."""

from __future__ import annotations

from maintainer.delta.jvm import commit_store
from maintainer.delta.jvm import log_calls as log
from maintainer.delta.jvm import parquet_calls as parquet
from maintainer.delta.jvm import storage_calls as storage
from maintainer.delta.jvm import transaction_calls as transaction
from maintainer.delta.jvm.catalog_calls import CatalogCalls
from maintainer.delta.jvm.gateway import Gateway, tested_pairs
from maintainer.errors import EnvironmentUnfit


class TaskCalls(Gateway):
    """Reads of Spark's status tracker, which knows the newest thousand jobs."""

    def tasks_of(self, group: str) -> tuple[int, int]:
        """Count the tasks of the stages of a job group's active jobs: done, and all. (0, 0) where none is active."""
        tracker = self.spark.sparkContext.statusTracker()
        active = tracker.getActiveJobsIds()
        if not active:
            return 0, 0
        # As a string: each element of a Java array would be a call of its own.
        known = self._jvm.java.util.Arrays.toString(tracker._jtracker.getJobIdsForGroup(group))
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


REQUIRED = commit_store.REQUIRED + log.REQUIRED + parquet.REQUIRED + storage.REQUIRED + transaction.REQUIRED
"""Everything private that the engine calls of Delta, of Spark and of what Spark brings along."""


class DeltaJvm(
    CatalogCalls,
    log.KernelCalls,
    log.LogCalls,
    parquet.ParquetCalls,
    storage.StorageCalls,
    TaskCalls,
    transaction.TransactionCalls,
):
    """The calls, bound to one Spark session. Cheap to make; use it on any thread after ``activate``."""

    def self_test(self) -> None:
        """Check that this build of Delta has every private member that is used here.

        Raises:
            EnvironmentUnfit: E633, naming the Delta version found and all that is missing.
        """
        missing = self.lacking(REQUIRED)
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
