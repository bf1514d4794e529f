"""A run against a lake in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.execution.fleet.run_in_memory import Run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path / ".maintainer" / "runs")
