"""Folders of these tests, which a run with ``TESTS_LAKE=s3`` has on the server; projects stay plain folders there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.suites.store_lake import is_on_store, lake_of


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """An empty folder for this test, whose paths as text are addresses where the lake is on the server."""
    if is_on_store():
        request.getfixturevalue("lease")
        return lake_of(tmp_path.name)
    return tmp_path
