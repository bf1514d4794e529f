"""Fault tests use the same session as integration tests, or borrow it when both run in one process."""

from __future__ import annotations

from tests.integration.conftest import lake, lease, spark

__all__ = ["lake", "lease", "spark"]
