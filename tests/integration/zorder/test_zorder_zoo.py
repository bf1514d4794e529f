"""Incremental Z-order on tables with each feature of Delta: it ends by itself, and only where rows lie is different."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.product import (
    PROPERTY_PREFIX,
    REVISION_TAG,
    DeltaEngine,
    DeltaTableEngine,
    SessionLease,
    TableStatus,
    ZOrderPolicy,
)
from tests.support.runs.delta_runs import Maintenance
from tests.support.tables.builders import make_optimize
from tests.support.tables.delta_tables import actions_of, second_engine_rows, spark_rows
from tests.support.tables.feature_tables import TABLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.long]


@pytest.fixture(scope="module")
def engine(lease: SessionLease) -> Iterator[DeltaTableEngine]:
    with DeltaEngine(lease).worker("zoo") as worker:
        yield worker


def newest(path: Path, kind: str) -> dict[str, Any]:
    """The newest ``metaData`` or ``protocol`` action."""
    newest_action: dict[str, Any] = {}
    for log in sorted((path / "_delta_log").glob("*.json")):
        for action in actions_of(path, int(log.stem)) if log.stem.isdecimal() else ():
            newest_action = action.get(kind, newest_action)
    return newest_action


@pytest.mark.parametrize("name", TABLES)
def test_the_loop_ends_by_itself(
    name: str, spark: SparkSession, engine: DeltaTableEngine, lake: Path, tmp_path: Path
) -> None:
    table, path = TABLES[name], lake / "t"
    for statement in table.sql:
        spark.sql(statement.replace("{t}", f"delta.`{path}`"))
    rows = spark_rows(spark, path, None, *table.extra)
    second = second_engine_rows(path) if table.second_engine else None
    protocol, metadata = newest(path, "protocol"), newest(path, "metaData")
    maintenance = Maintenance(engine, tmp_path / "runs")
    optimize = make_optimize(min_size=1 << 19, max_size=1 << 20, zorder=ZOrderPolicy(table.zorder))

    before = maintenance.facts(path).version
    plan = maintenance.plan(path, optimize)
    assert plan.problem is None, plan.problem
    outcome = maintenance.apply(plan)
    assert outcome.status is TableStatus.DONE, outcome
    after = maintenance.facts(path)
    assert after.version > before + 1
    assert all(file.tag(REVISION_TAG) for file in after.files)

    # Nothing is left to do, and a further apply commits nothing.
    assert maintenance.plan(path, optimize).steps == ()
    assert spark_rows(spark, path, None, *table.extra) == rows
    if second is not None:
        assert second_engine_rows(path) == second
    assert newest(path, "protocol") == protocol
    now = newest(path, "metaData")
    ours = {key: text for key, text in now["configuration"].items() if key.startswith(PROPERTY_PREFIX)}
    assert [json.loads(text)["revision"] for text in ours.values()] == [1]
    assert now == {**metadata, "configuration": {**metadata["configuration"], **ours}}
