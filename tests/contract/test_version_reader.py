"""Reading old versions for checks: counts come from the files, and missing files are found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.product import DeltaEngine, DeltaTableEngine, SessionLease, TableError, TableRef
from tests.support.tables.delta_tables import compaction, no_intent, stamp

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.sampled(1), pytest.mark.nightly]


@pytest.fixture(scope="module")
def engine(lease: SessionLease) -> Iterator[DeltaTableEngine]:
    with DeltaEngine(lease).worker("versions") as worker:
        yield worker


@pytest.mark.contradicts("live_files_are_there", reason="a live file and a vector are deleted, to see them missed")
def test_counts_differences_and_missing_files(spark: SparkSession, engine: DeltaTableEngine, lake: Path) -> None:
    path = lake / "t t"
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT, d DOUBLE, m MAP<STRING, INT>) USING delta TBLPROPERTIES "
        "('delta.enableDeletionVectors' = 'true', 'delta.deletedFileRetentionDuration' = 'interval 0 hours')"
    )
    frame = spark.range(20).selectExpr("id", "0.0D d", "map('k', cast(id AS INT)) m")
    frame.repartition(2).write.format("delta").mode("append").save(str(path))
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 7")
    facts = engine.reader.facts(TableRef(str(path)))
    step, batch = compaction(facts)
    receipt = engine.writer.rewrite(facts, step, batch, stamp(), no_intent)
    versions = engine.versions
    before, after = receipt.version - 1, receipt.version
    for version, rows in ((1, 20), (after, 19)):
        assert versions.row_count(facts, version, scan=True) == rows
        assert versions.row_count(facts, version, scan=False) == rows
        assert versions.missing_files(facts, version).paths == ()
    assert (len(facts.files), versions.missing_files(facts, after).num_files) == (2, 1)
    assert versions.rows_differ(facts, before, after) == 0
    assert versions.rows_differ(facts, 1, after) == 1
    (vector,) = path.glob("deletion_vector*.bin")  # of the DELETE; each UPDATE adds one of its own
    spark.sql(f"UPDATE delta.`{path}` SET d = -0.0D WHERE id = 1")
    assert versions.rows_differ(facts, after, after + 1) == 2
    spark.sql(f"UPDATE delta.`{path}` SET m = map('k', NULL) WHERE id = 2")
    assert versions.rows_differ(facts, after, after + 2) == 4

    (victim,) = [file.path for file in engine.reader.facts(facts.ref).files][:1]
    (path / victim).unlink()
    newest = engine.reader.facts(facts.ref).version
    assert versions.missing_files(facts, newest).paths == (victim,)
    vector.unlink()
    missing = versions.missing_files(facts, before).paths
    assert any(path.endswith(vector.name) for path in missing)
    # The log still knows a number; the files do not.
    assert versions.row_count(facts, newest, scan=False) == 19
    with pytest.raises(TableError):
        versions.row_count(facts, newest, scan=True)
    with pytest.raises(TableError) as caught:
        versions.row_count(facts, 99, scan=True)
    assert caught.value.code == "T403"


def test_cancel_reaches_a_running_rewrite(spark: SparkSession, lease: SessionLease, lake: Path) -> None:
    import threading
    import time

    from tests.support.product import Interrupted

    path = lake / "slow"
    spark.range(4).repartition(2).write.format("delta").save(str(path))
    # A constraint that takes its time on every row keeps the rewrite's job running.
    spark.sql(
        f"ALTER TABLE delta.`{path}` ADD CONSTRAINT slow CHECK (java_method('java.lang.Thread', 'getAllStackTraces') "
        "IS NOT NULL)"
    )
    engine = DeltaEngine(lease)
    stop = threading.Event()

    def cancel_until_stopped() -> None:
        while not stop.wait(0.02):
            engine.cancel("to-cancel")

    with engine.worker("to-cancel") as worker:
        facts = worker.reader.facts(TableRef(str(path)))
        step, batch = compaction(facts)
        thread = threading.Thread(target=cancel_until_stopped)
        thread.start()
        started = time.monotonic()
        try:
            with pytest.raises(Interrupted):
                worker.writer.rewrite(facts, step, batch, stamp(), no_intent)
        finally:
            stop.set()
            thread.join()
        assert time.monotonic() - started < 60
    assert worker.reader.facts(facts.ref).version == facts.version
