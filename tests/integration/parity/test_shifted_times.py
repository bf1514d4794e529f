"""Commands of Delta 4.0 shift times of partitions where Java's time zone is not the session's: they are not run there.

Delta 4.1 repaired it (delta#5599). The transaction engine hands partition values on as the log has them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.product import CommandEngine, DeltaEngine, DeltaJvm, SessionLease, StepStatus, classic_sessions
from tests.support.runs.app_runs import applied

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

TEXT = "2020-05-05T00:00:00.000000Z"
OPTIMIZE = "optimize: {zorder: {columns: [id], mode: full}}\n"


@pytest.fixture
def table(spark: SparkSession, lake: Path) -> Path:
    path = lake / "t"
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.sql(f"CREATE TABLE delta.`{path}` (id BIGINT, ts TIMESTAMP) USING delta PARTITIONED BY (ts)")
    for number in range(2):
        session.sql(f"INSERT INTO delta.`{path}` VALUES ({number}, TIMESTAMP '2020-05-05 00:00:00')")
    assert texts(path) == [TEXT, TEXT]
    return path


@pytest.fixture
def java_in_vilnius(lease: SessionLease, table: Path) -> Iterator[None]:
    assert table.is_dir()  # written before: Delta 4.0 shifts what others write, too
    java: Any = lease.spark._jvm
    zones = java.java.util.TimeZone
    before = zones.getDefault()
    zones.setDefault(zones.getTimeZone("Europe/Vilnius"))
    yield
    zones.setDefault(before)


def texts(table: Path) -> list[str]:
    lines = (line for file in sorted((table / "_delta_log").glob("*.json")) for line in file.read_text().splitlines())
    return [action["add"]["partitionValues"]["ts"] for action in map(json.loads, lines) if "add" in action]


@pytest.mark.usefixtures("java_in_vilnius")
def test_a_command_that_would_shift_a_time_is_not_run(lease: SessionLease, table: Path, tmp_path: Path) -> None:
    outcome = applied(CommandEngine(classic_sessions(lease)), tmp_path, f"table: {table}\n{OPTIMIZE}")
    (step,) = outcome.table.steps
    if DeltaJvm(lease.spark).delta_version().startswith("4.0."):
        assert (step.status, step.error and step.error.code, texts(table)) == (StepStatus.FAILED, "A442", [TEXT] * 2)
    else:
        assert (step.status, texts(table)) == (StepStatus.SUCCEEDED, [TEXT] * 3)


@pytest.mark.usefixtures("java_in_vilnius")
@pytest.mark.parametrize("lane", ["spark", "local"])
def test_a_transaction_hands_a_time_on_as_it_is(lease: SessionLease, table: Path, tmp_path: Path, lane: str) -> None:
    policy = f"table: {table}\n{OPTIMIZE.replace('{zorder', f'{{lanes: [{lane}], zorder')}"
    outcome = applied(DeltaEngine(lease), tmp_path, policy)
    assert {step.status for step in outcome.table.steps} == {StepStatus.SUCCEEDED}, outcome.table
    assert texts(table) == [TEXT] * 3
