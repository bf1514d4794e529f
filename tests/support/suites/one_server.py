"""One S3 server for all tests of a folder, as sick as a test made it only until that test ends: fixtures."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.stores.s3_server import S3Server, s3_server


@pytest.fixture(scope="session")
def shared_server() -> Iterator[S3Server]:
    """The server, for fixtures that outlive a test."""
    with s3_server("lake") as server:
        yield server


@pytest.fixture
def server(shared_server: S3Server) -> Iterator[S3Server]:
    """The server; its faults and its list of requests are cleared behind each test."""
    yield shared_server
    shared_server.faults.clear()
