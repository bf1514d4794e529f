"""Contract tests use the same session as integration tests."""

from __future__ import annotations

from tests.integration.conftest import connect_url, lake, spark
from tests.support.checker.truth_fixture import pytest_runtest_makereport, truth_is_left_behind

__all__ = ["connect_url", "lake", "pytest_runtest_makereport", "spark", "truth_is_left_behind"]
