"""Sessions of the one that tests start, and a folder for tables."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.checker.truth_fixture import pytest_runtest_makereport, truth_is_left_behind
from tests.support.product import SessionLease, worker_session
from tests.support.suites.small_row_groups import small_row_groups_are_copied
from tests.support.suites.store_lake import is_on_store, lake_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["pytest_runtest_makereport", "small_row_groups_are_copied", "truth_is_left_behind"]


@pytest.fixture(scope="session")
def connect_url(lease: SessionLease) -> Iterator[str]:
    """A real Spark Connect server in the tests' own JVM, which is warm already, on a port that is free."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    jvm: Any = lease.spark._jvm
    jvm.org.apache.spark.SparkEnv.get().conf().set("spark.connect.grpc.binding.port", str(port))
    service = jvm.org.apache.spark.sql.connect.service.SparkConnectService
    service.start(lease.spark.sparkContext._jsc.sc())
    try:
        yield f"sc://127.0.0.1:{port}"
    finally:
        nothing = jvm.scala.Option.empty()
        service.stop(nothing, nothing)


@pytest.fixture(scope="session")
def spark(lease: SessionLease) -> SparkSession:
    """A worker session with all our settings, for building tables and looking at them."""
    return worker_session(lease)


@pytest.fixture
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """An empty folder for this test's tables."""
    if is_on_store():
        request.getfixturevalue("lease")
        return lake_of(f"{tmp_path.name}-lake")  # `tmp_path` itself may be there, too
    folder = tmp_path / "lake"
    folder.mkdir()
    return folder
