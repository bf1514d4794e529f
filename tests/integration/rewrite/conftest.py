"""The engine of a module with kinds of rewrite, and maintenance that runs on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.product import DeltaEngine, DeltaTableEngine, SessionLease
from tests.support.runs.delta_runs import Maintenance


@pytest.fixture(scope="module")
def engine(lease: SessionLease) -> Iterator[DeltaTableEngine]:
    with DeltaEngine(lease).worker("kinds") as worker:
        yield worker


@pytest.fixture
def maintenance(engine: DeltaTableEngine, tmp_path: Path) -> Maintenance:
    return Maintenance(engine, tmp_path / "runs")
