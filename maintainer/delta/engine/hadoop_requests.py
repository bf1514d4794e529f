"""What Hadoop's client asked of S3, for Spark, Delta and our own deletions: S3A counts it for each bucket."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from maintainer.delta.jvm import DeltaJvm
from maintainer.delta.spark.spark_session import SessionLease
from maintainer.delta.spark.start_conf import is_one_process
from maintainer.model.cached_property import cached_property
from maintainer.model.table.store_kinds import store_kind
from maintainer.model.table.store_requests import StoreRequests

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COUNTERS: Mapping[str, tuple[str, ...]] = {
    "reads": ("action_http_get_request",),
    "looks": ("action_http_head_request",),
    "lists": ("object_list_request", "object_continue_list_request"),
    "writes": ("object_put_request", "object_copy_requests"),
    "deletions": ("object_delete_request", "object_bulk_delete_request"),
}
"""S3A's counters of each kind of request."""


@dataclass
class HadoopRequests:
    """Counts for one session, from call to call."""

    lease: SessionLease
    start: Callable[[], SparkSession]
    _known: dict[str, StoreRequests] = field(default_factory=dict)

    def since_last(self, addresses: Collection[str]) -> StoreRequests | None:
        """Return the requests for tables at these addresses since the last call. See ``OpenedEngine``."""
        if self.lease.borrowed or not is_one_process(self.lease.setting("spark.master") or ""):
            return None
        if not self.lease.has_java:
            return StoreRequests()
        stores = {f"{place.scheme}://{place.netloc}" for place in map(urlsplit, addresses) if place.netloc}
        if not all(store_kind(store).is_counted for store in stores):
            return None
        fresh = StoreRequests()
        for store in stores:
            counters = self._jvm.io_counters(store, sum(COUNTERS.values(), ()))
            counted = StoreRequests(*(sum(counters[name] for name in names) for names in COUNTERS.values()))
            fresh += counted - self._known.get(store, StoreRequests())
            self._known[store] = counted
        return fresh

    @cached_property
    def _jvm(self) -> DeltaJvm:
        return DeltaJvm(self.lease.unstarted(self.start) or self.start())
