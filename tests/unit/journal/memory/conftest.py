"""Runs that are written down one after the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.journal.memory.recorded_runs import Runs


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path / ".maintainer" / "runs")
