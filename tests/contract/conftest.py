"""Contract tests use the same session as integration tests."""

from __future__ import annotations

from tests.integration.conftest import connect_url, lake, lease, spark

__all__ = ["connect_url", "lake", "lease", "spark"]
