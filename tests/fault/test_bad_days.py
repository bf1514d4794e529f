"""One table sick, the other not; a ledger that cannot be written; a time limit that cancels Spark."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import deltalake
import pytest

from tests.support.product import (
    Clock,
    DeltaEngine,
    DeltaTableEngine,
    FleetBounds,
    GreatExpectationsVerifier,
    Journal,
    LedgerTable,
    Plan,
    RunOutcome,
    SessionLease,
    TableRef,
    TableStorage,
    WrittenFile,
    read_pending,
    run_fleet,
)
from tests.support.runs.plain_verifier import PlainVerifier
from tests.support.runs.planned_steps import plan_all, plan_for
from tests.support.tables.builders import NOW_MS
from tests.support.tables.delta_tables import compaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.sampled(1), pytest.mark.nightly]


@pytest.fixture(scope="module")
def engine(lease: SessionLease) -> Iterator[DeltaTableEngine]:
    with DeltaEngine(lease).worker("bad-days") as worker:
        yield worker


def small_table(spark: SparkSession, path: Path) -> str:
    spark.range(100).repartition(3).write.format("delta").save(str(path))
    return str(path)


def plan_tables(engine: DeltaTableEngine, *paths: str, timeout_seconds: int = 60) -> Plan:
    facts = [engine.reader.facts(TableRef(path)) for path in paths]
    return plan_all(
        *(plan_for(table_facts, compaction(table_facts)[0], timeout_seconds=timeout_seconds) for table_facts in facts)
    )


def statuses(outcome: RunOutcome) -> dict[str, str]:
    return {Path(table.ref.identifier).name: table.status.value for table in outcome.tables}


def test_two_tables_at_once_one_of_them_sick_and_no_place_for_the_ledger(
    spark: SparkSession, lease: SessionLease, engine: DeltaTableEngine, lake: Path
) -> None:
    sick, well = small_table(spark, lake / "sick"), small_table(spark, lake / "well")
    plan = plan_tables(engine, sick, well)
    lost = next((lake / "sick").glob("*.parquet"))
    lost.unlink()
    (lake / "ledger").write_text("a file is in the way")
    journal = Journal.open(lake / ".maintainer" / "runs", "20261121T220000Z-0000", lambda: NOW_MS)
    outcome = run_fleet(
        plan, DeltaEngine(lease), journal=journal, verifier=GreatExpectationsVerifier(), bounds=FleetBounds(jobs=2),
        ledger=LedgerTable(spark, str(lake / "ledger")),
    )  # fmt: skip

    assert statuses(outcome) == {"sick": "failed", "well": "done"}
    error = outcome.tables[0].steps[0].error
    assert error is not None
    assert not error.code.startswith("E699"), error
    assert deltalake.DeltaTable(sick).version() == 0
    assert sorted(deltalake.DeltaTable(well).to_pyarrow_table()["id"].to_pylist()) == list(range(100))
    (problem,) = outcome.problems
    assert "the ledger could not be written" in problem.what
    waiting = read_pending(journal.folder.path / "ledger_pending.jsonl")
    assert [(Path(row.table).name, row.status) for row in waiting] == [("sick", "failed"), ("well", "succeeded")]

    # The next run has a ledger again, and takes them along.
    (lake / "ledger").unlink()
    later = Journal.open(lake / ".maintainer" / "runs", "20261121T220001Z-0000", lambda: NOW_MS)
    ledger = LedgerTable(spark, str(lake / "ledger"))
    run_fleet(plan_all(), DeltaEngine(lease), journal=later, verifier=GreatExpectationsVerifier(), ledger=ledger)
    assert sorted(row.status for row in ledger.rows()) == ["failed", "succeeded"]


def test_a_table_over_its_time_is_cancelled_and_nothing_of_it_is_committed(
    spark: SparkSession, lease: SessionLease, engine: DeltaTableEngine, lake: Path
) -> None:
    path = small_table(spark, lake / "slow")

    written, cancelled = threading.Event(), threading.Event()

    class CancelledEngine(DeltaEngine):
        """Says when it has cancelled a worker's jobs."""

        def cancel(self, name: str) -> None:
            super().cancel(name)
            cancelled.set()

    def slow_storage(storage: TableStorage, files: list[WrittenFile]) -> None:
        # The time runs out only now: a task that is cancelled while it writes may leave the beginning of a file.
        written.set()
        assert cancelled.wait(600)

    clock = Clock(monotonic=lambda: time.monotonic() + (3600 if written.is_set() else 0))
    journal = Journal.open(lake / ".maintainer" / "runs", "20261121T220000Z-0000", lambda: NOW_MS)
    outcome = run_fleet(
        plan_tables(engine, path, timeout_seconds=600),
        CancelledEngine(lease, between_write_and_proof=slow_storage),
        journal=journal, verifier=PlainVerifier(), clock=clock,
    )  # fmt: skip
    (table,) = outcome.tables
    assert statuses(outcome) == {"slow": "failed"}
    assert table.steps[0].error is not None
    assert table.steps[0].error.code == "C711"
    assert deltalake.DeltaTable(path).version() == 0
    assert len(list(Path(path).glob("*.parquet"))) == 3  # what was written is removed again
