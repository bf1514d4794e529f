"""One S3 server and one process with a session for the tests here; each test has a table and a state of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.runs.command_host import CommandHost
from tests.support.stores.s3_projects import s3_host
from tests.support.stores.s3_server import S3Server
from tests.support.suites.one_server import server, shared_server

__all__ = ["host", "server", "shared_server"]


@pytest.fixture(scope="session")
def host(shared_server: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandHost]:
    """A process with a session that reaches the server, in which commands run."""
    with s3_host(shared_server, tmp_path_factory.mktemp("host")) as host:
        yield host
