"""All JVM calls in one class, and a check that the installed Delta has them."""

from __future__ import annotations

from maintainer.delta.jvm import commit_store
from maintainer.delta.jvm import log_calls as log
from maintainer.delta.jvm import storage_calls as storage
from maintainer.delta.jvm import transaction_calls as transaction
from maintainer.delta.jvm.catalog_calls import CatalogCalls
from maintainer.delta.jvm.kernel_calls import KernelCalls
from maintainer.delta.jvm.parquet_calls import ParquetCalls
from maintainer.delta.jvm.task_calls import TaskCalls
from maintainer.errors import EnvironmentUnfit

REQUIRED = commit_store.REQUIRED + log.REQUIRED + storage.REQUIRED + transaction.REQUIRED
"""Everything private to Delta that the engine calls."""


class DeltaJvm(
    CatalogCalls,
    KernelCalls,
    log.LogCalls,
    ParquetCalls,
    storage.StorageCalls,
    TaskCalls,
    transaction.TransactionCalls,
):
    """The calls, bound to one Spark session. Cheap to make; use it on any thread after ``activate``."""

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
