"""Each request of our client is counted, by its kind: compared with what a real server was asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from maintainer.engine.store.cloud_settings import store_settings
from maintainer.engine.store.object_storage import ObjectStorage
from maintainer.engine.store.request_count import REQUEST_COUNT, lists_of, writes_of
from maintainer.engine.store.store_clients import OF_TABLES
from maintainer.model.table.store_requests import LISTED_AT_ONCE, RunRequests, StoreRequests
from maintainer.policy.project.project_sections import Prices
from tests.support.stores.s3_server import S3Server, s3_server, spark_keys
from tests.support.stores.sick_store import Fault, FaultRule

KINDS = {"GET": "reads", "HEAD": "looks", "PUT": "writes", "POST": "writes", "DELETE": "deletions"}


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server("lake") as running:
        yield running


def asked(server: S3Server) -> StoreRequests:
    """What the server was asked since its rules were cleared."""
    counted: Counter[str] = Counter()
    for method, path, _ in server.faults.requests:
        is_list = method == "GET" and not path.strip("/").partition("/")[2]
        is_deletion = method == "POST" and path.strip("/") == "lake"
        counted["lists" if is_list else "deletions" if is_deletion else KINDS[method]] += 1
    return StoreRequests(**counted)


def test_what_is_counted_is_what_the_server_was_asked(server: S3Server, tmp_path: Path) -> None:
    storage = ObjectStorage.open("s3a://lake", store_settings("s3a://lake", spark_keys(server), {}), OF_TABLES)
    server.faults.clear()
    before = REQUEST_COUNT.so_far
    for number in range(60):  # obstore hands a listing on in pieces of fifty
        storage.write(f"t/{number}", b"x")
    (tmp_path / "f").write_bytes(b"rows")
    storage.upload(str(tmp_path / "f"), "t/f")
    storage.download("t/f", str(tmp_path / "g"))
    assert len(list(storage.below("t/"))) == 61
    assert len(storage.children("t/")[0]) == 61
    storage.head("t/1")
    storage.head("t/no")
    storage.read("t/1")
    storage.read_range("t/1", 0, 1)
    storage.replace("t/new", b"y", None)
    storage.remove("t/new")
    counted = REQUEST_COUNT.so_far - before
    assert counted == asked(server)
    assert counted == StoreRequests(reads=3, looks=2, lists=2, writes=62, deletions=1)


def test_a_request_that_is_sent_again_at_the_stores_pace_counts_again(server: S3Server) -> None:
    storage = ObjectStorage.open("s3a://lake", store_settings("s3a://lake", spark_keys(server), {}), OF_TABLES)
    storage.write("t/again", b"x")
    server.faults.clear()
    # obstore repeats each request once, without a word.
    server.faults.add(FaultRule(Fault.SLOW_DOWN, "GET", times=2))
    before = REQUEST_COUNT.so_far
    assert storage.read("t/again") is not None
    server.faults.clear()
    assert REQUEST_COUNT.so_far - before == StoreRequests(reads=2)


def test_pages_of_a_listing_and_parts_of_a_file_count() -> None:
    names = (0, 1, LISTED_AT_ONCE, LISTED_AT_ONCE + 1, 3 * LISTED_AT_ONCE)
    assert [lists_of(number).lists for number in names] == [1, 1, 1, 2, 3]
    mib = 1 << 20
    sizes = ((0, 64 * mib), (64 * mib, 64 * mib), (64 * mib + 1, 64 * mib), (6 * mib, 5 * mib))
    assert [writes_of(size, one, 16 * mib).writes for size, one in sizes] == [1, 1, 2 + 5, 2 + 1]
    assert writes_of(11 * mib).writes == 2 + 3


def test_lists_cost_as_writes_and_deletions_nothing() -> None:
    requests = RunRequests(StoreRequests(reads=1000, looks=1000, lists=100, writes=100, deletions=1_000_000))
    assert Prices("EUR", thousand_reads=0.4, thousand_writes=5.0).priced(requests).cost == pytest.approx(0.8 + 1.0)
    assert Prices("EUR", thousand_reads=0.4).priced(requests) is requests
    assert RunRequests(requests.ours, StoreRequests(reads=1)).counted.reads == 1001
