"""The bench on which one table's plan runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.execution.table.table_bench import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / ".maintainer" / "runs")
