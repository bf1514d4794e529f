"""Fault tests use the same session as integration tests."""

from __future__ import annotations

from tests.integration.conftest import lake, spark
from tests.support.checker.truth_fixture import pytest_runtest_makereport, truth_is_left_behind
from tests.support.suites.small_row_groups import small_row_groups_are_copied

__all__ = ["lake", "pytest_runtest_makereport", "small_row_groups_are_copied", "spark", "truth_is_left_behind"]
