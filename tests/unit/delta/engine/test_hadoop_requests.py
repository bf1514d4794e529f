"""What S3A counted becomes requests by kind, from call to call and by store; where it cannot tell, nobody does."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from maintainer.delta.engine.hadoop_requests import HadoopRequests
from maintainer.model.table.store_requests import StoreRequests


@dataclass
class Lease:
    """What is asked of a session's lease."""

    borrowed: bool = False
    has_java: bool = True
    master: str = "local[*]"

    def setting(self, key: str) -> str | None:
        return self.master if key == "spark.master" else None


@dataclass
class Jvm:
    """The counters of each bucket."""

    counted: dict[str, dict[str, int]] = field(default_factory=dict)

    def io_counters(self, bucket_uri: str, names: Iterable[str]) -> dict[str, int]:
        return {name: self.counted[bucket_uri].get(name, 0) for name in names}


def requests_of(lease: Lease, jvm: Jvm) -> HadoopRequests:
    requests = HadoopRequests(cast("Any", lease), cast("Any", None))
    requests._jvm = cast("Any", jvm)
    return requests


def test_each_call_counts_what_came_since_the_one_before_whatever_stores_it_names() -> None:
    jvm = Jvm({
        "s3a://lake": {"action_http_get_request": 5, "object_list_request": 2, "object_continue_list_request": 1},
        "s3://other": {"object_put_request": 3, "object_bulk_delete_request": 1, "action_http_head_request": 4},
    })  # fmt: skip
    requests = requests_of(Lease(), jvm)
    both = ("s3a://lake/t", "s3a://lake/u", "s3://other/t", "/disk/t")
    assert requests.since_last(both) == StoreRequests(reads=5, looks=4, lists=3, writes=3, deletions=1)
    assert requests.since_last(both) == StoreRequests()
    jvm.counted["s3a://lake"]["action_http_get_request"] = 7
    assert requests.since_last(("s3a://lake/t",)) == StoreRequests(reads=2)
    jvm.counted["s3://other"]["object_put_request"] = 4
    assert requests.since_last(both) == StoreRequests(writes=1)


@pytest.mark.parametrize(
    ("lease", "address", "counted"),
    [
        (Lease(borrowed=True), "s3://lake/t", None),
        (Lease(master="spark://h:7077"), "s3://lake/t", None),
        (Lease(), "gs://lake/t", None),
        (Lease(has_java=False), "gs://lake/t", StoreRequests()),
    ],
)
def test_what_it_cannot_tell_is_not_guessed(lease: Lease, address: str, counted: StoreRequests | None) -> None:
    assert requests_of(lease, Jvm()).since_last((address,)) == counted
