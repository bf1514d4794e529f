"""Every ready query (ledger, costs, alerts) runs and answers what it says; here in an engine that is not Spark."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from maintainer.journal.ledger.ledger_rows import LEDGER_COLUMNS, LedgerRow
from tests.support.runs.ledger_queries import EXPECTED, HISTORY, LEDGER_ROWS, PAGES, answers, query

ARROW = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "timestamp": pa.timestamp("us", "UTC"),
}


def value_of(row: LedgerRow, name: str) -> Any:
    if name == "started_at":
        return datetime.fromtimestamp(row.started_at_ms / 1000, tz=UTC)
    return getattr(row, name)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> deltalake.QueryBuilder:
    """The ledger with all its columns, and a table's history."""
    folder: Path = tmp_path_factory.mktemp("lake")
    rows = LEDGER_ROWS
    columns = {name: pa.array([value_of(row, name) for row in rows], ARROW[kind]) for name, kind in LEDGER_COLUMNS}
    deltalake.write_deltalake(folder / "ledger", pa.table(columns))
    versions, read, operations, metrics, blind, metadata = zip(*HISTORY, strict=True)
    history = {
        "version": pa.array(versions, pa.int64()),
        "readVersion": pa.array(read, pa.int64()),
        "operation": pa.array(operations),
        "operationMetrics": pa.array([list(metric.items()) for metric in metrics], pa.map_(pa.string(), pa.string())),
        "isBlindAppend": pa.array(blind, pa.bool_()),
        "userMetadata": pa.array(metadata, pa.string()),
    }
    deltalake.write_deltalake(folder / "history", pa.table(history))
    builder = deltalake.QueryBuilder()
    for name in ("ledger", "history"):
        builder = builder.register(name, deltalake.DeltaTable(folder / name))
    return builder


@pytest.mark.parametrize("about", EXPECTED)
def test_a_ready_query_answers_what_it_says(lake: deltalake.QueryBuilder, about: str) -> None:
    assert answers(pa.table(lake.execute(query(about)).read_all()).to_pylist()) == EXPECTED[about]


def test_no_ready_query_is_left_out() -> None:
    assert len(re.findall("```sql", PAGES)) == len(EXPECTED)
