"""The tests here share one S3 server."""

from __future__ import annotations

from tests.support.suites.one_server import server, shared_server

__all__ = ["server", "shared_server"]
