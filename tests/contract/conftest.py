"""Contract tests use the same session as integration tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.conftest import connect_url, lake, spark
from tests.support.checker.truth_fixture import pytest_runtest_makereport, truth_is_left_behind
from tests.support.product import bridge, log_calls
from tests.support.suites.jvm_call_owners import CallOwners, watched_owners

__all__ = ["connect_url", "lake", "pytest_runtest_makereport", "spark", "truth_is_left_behind"]


@pytest.fixture(scope="session")
def call_owners() -> Iterator[CallOwners]:
    with watched_owners(bridge.REQUIRED + log_calls.KERNEL) as owners:
        yield owners


@pytest.fixture(autouse=True)
def calls_are_on_the_list(call_owners: CallOwners) -> Iterator[None]:
    """Every call of the package that a test leads to is on the list of what is private, under its owner, or public."""
    yield
    unlisted = dict(call_owners.unlisted)
    call_owners.unlisted.clear()
    assert unlisted == {}
