"""A process killed between INTENT and RESULT: the table is intact, the next run settles it, a further one is idle."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import deltalake
import pytest

from tests.support.checker.truth_records import flat
from tests.support.product import (
    EVENTS_FILE,
    CompactStep,
    DeltaEngine,
    DeltaTableEngine,
    GreatExpectationsVerifier,
    Journal,
    RunOutcome,
    SessionLease,
    StoragePlaces,
    TableRecord,
    TableRef,
    TableStatus,
    read_events,
    remembered,
    run_fleet,
    unfinished,
)
from tests.support.runs.planned_steps import plan_all, plan_for
from tests.support.tables.builders import NOW_MS
from tests.support.tables.delta_tables import compaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.nightly]

ROOT = Path(__file__).resolve().parents[2]
DEAD_RUN = "20261121T210000Z-dead"


@pytest.fixture(scope="module")
def engine(lease: SessionLease) -> Iterator[DeltaTableEngine]:
    with DeltaEngine(lease).worker("crash") as worker:
        yield worker


def rows_of(path: Path) -> list[int]:
    """The table's rows by an engine that shares nothing with Spark."""
    return sorted(deltalake.DeltaTable(str(path)).to_pyarrow_table()["id"].to_pylist())


def apply(lease: SessionLease, engine: DeltaTableEngine, path: Path, runs_dir: Path, number: int) -> RunOutcome:
    """Plan as the product would (small files only) and apply."""
    facts = engine.reader.facts(TableRef(str(path)))
    step, _ = compaction(facts)
    steps: tuple[CompactStep, ...] = (step,) if len(facts.files) > 1 else ()
    journal = Journal.open(runs_dir, f"20261121T22000{number}Z-0000", lambda: NOW_MS)
    return run_fleet(
        plan_all(plan_for(facts, *steps)), DeltaEngine(lease), journal=journal, verifier=GreatExpectationsVerifier()
    )


@pytest.mark.parametrize(("point", "landed"), [("after intent", False), ("before result", True)])
@pytest.mark.sampled(1)
def test_killed_in_the_middle_of_a_commit(
    spark: SparkSession, lease: SessionLease, engine: DeltaTableEngine, lake: Path, point: str, landed: bool
) -> None:
    path, runs_dir = lake / "orders", lake / ".maintainer" / "runs"
    spark.range(100).repartition(5).write.format("delta").save(str(path))
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.faults.victim", str(path), str(runs_dir), point],
        cwd=ROOT, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr[-3000:]

    # Intact, and known to be unsettled.
    assert rows_of(path) == list(range(100))
    facts = engine.reader.facts(TableRef(str(path)))
    assert (facts.version, len(facts.files)) == ((1, 1) if landed else (0, 5))
    assert [intent.stamp.run_id for intent in unfinished(runs_dir)] == [DEAD_RUN]
    assert remembered(runs_dir).record_of(facts.table_id, facts.location, StoragePlaces()) == TableRecord(
        unproven_versions=(1,)
    )

    # The next run settles it first, then converges.
    outcome = apply(lease, engine, path, runs_dir, 1)
    assert outcome.tables[0].status is (TableStatus.UP_TO_DATE if landed else TableStatus.DONE)
    events = tuple(read_events(runs_dir / DEAD_RUN / EVENTS_FILE).events)
    settled = [flat(dict(event)) for event in events if event["type"] == "settled"]
    assert [(event["fate"], event["version"]) for event in settled] == [
        ("landed", 1) if landed else ("not_landed", None)
    ]
    assert unfinished(runs_dir) == ()
    assert remembered(runs_dir).record_of(facts.table_id, facts.location, StoragePlaces()).unproven_versions == ()
    after = engine.reader.facts(TableRef(str(path)))
    assert (after.version, len(after.files), rows_of(path)) == (1, 1, list(range(100)))

    # A further run does nothing.
    again = apply(lease, engine, path, runs_dir, 2)
    assert again.tables[0].status is TableStatus.UP_TO_DATE
    assert engine.reader.facts(TableRef(str(path))).version == 1
