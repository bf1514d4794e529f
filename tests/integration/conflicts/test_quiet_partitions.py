"""``quietFor`` on real tables: what a rewrite wrote a moment ago is no data, whoever made the rewrite."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.support.product import BatchedStep, DeltaEngine, Lane, SessionLease, TablePlan, TableStatus
from tests.support.runs import delta_runs
from tests.support.runs.delta_runs import Maintenance
from tests.support.tables.builders import HOUR_MS, make_optimize

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def maintenance(lease: SessionLease, tmp_path: Path) -> Iterator[Maintenance]:
    with DeltaEngine(lease).worker("quiet") as worker:
        yield Maintenance(worker, tmp_path / "runs")


def append_hours_ago(path: Path, first: int, times: int, hours: int) -> None:
    """Small files of one row each that count as written some hours ago, also by their commits."""
    for number in range(first, first + times):
        write_deltalake(str(path), pa.table({"id": [number]}), mode="append")
        commit = sorted((path / "_delta_log").glob("*.json"))[-1]
        actions = [json.loads(line) for line in commit.read_text().splitlines()]
        for action in actions:
            if "add" in action:
                action["add"]["modificationTime"] -= hours * HOUR_MS
        commit.write_text("\n".join(map(json.dumps, actions)) + "\n")


def newest_add_ms(path: Path) -> int:
    commit = sorted((path / "_delta_log").glob("*.json"))[-1]
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    return max(int(action["add"]["modificationTime"]) for action in actions if "add" in action)


def batches(plan: TablePlan) -> int:
    return sum(len(step.batches) for step in plan.steps if isinstance(step, BatchedStep))


@pytest.mark.parametrize("lane", [Lane.LOCAL, Lane.SPARK, None], ids=["local", "spark", "others"])
def test_what_a_rewrite_wrote_a_moment_ago_delays_nothing(
    spark: SparkSession, maintenance: Maintenance, lake: Path, monkeypatch: pytest.MonkeyPatch, lane: Lane | None
) -> None:
    """Ours is the first of four batches, as if a budget had cut the run; others' is Delta's own OPTIMIZE."""
    path = lake / "quiet"
    append_hours_ago(path, 0, 8, hours=2)
    size = max(file.stat().st_size for file in path.glob("*.parquet"))
    optimize = make_optimize(
        max_size=2 * size, min_size=2 * size, batch_size=1, quiet_for_seconds=3600, lanes=(lane or Lane.SPARK,)
    )
    monkeypatch.setattr(delta_runs, "NOW_MS", int(time.time() * 1000))
    plan = maintenance.plan(path, optimize)
    assert batches(plan) == 4
    if lane is None:
        spark.sql(f"OPTIMIZE delta.`{path}`")
        assert newest_add_ms(path) > delta_runs.NOW_MS - HOUR_MS
        append_hours_ago(path, 8, 6, hours=2)
    else:
        (step,) = plan.rewrites
        cut = replace(plan, steps=(replace(step, batches=step.batches[:1]),))
        assert maintenance.apply(cut).status is TableStatus.DONE
        assert newest_add_ms(path) > delta_runs.NOW_MS - HOUR_MS
    monkeypatch.setattr(delta_runs, "NOW_MS", int(time.time() * 1000))
    assert batches(maintenance.plan(path, optimize)) == 3
    # Data that was written a moment ago still counts.
    append_hours_ago(path, 20, 1, hours=0)
    monkeypatch.setattr(delta_runs, "NOW_MS", int(time.time() * 1000))
    waiting = maintenance.plan(path, optimize)
    assert (waiting.steps, [left.reason.code for left in waiting.left_alone]) == ((), ["hot_partition"])
