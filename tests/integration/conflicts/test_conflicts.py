"""Other writers between our proof and our commit: appends go together with it, everything else wins."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.product import (
    CommitConflict,
    CommitReceipt,
    DeltaEngine,
    DeltaTableEngine,
    Proof,
    SessionLease,
    TableFacts,
    TableRef,
)
from tests.support.tables.delta_tables import compaction, files_on_disk, no_intent, spark_rows, stamp

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.nightly, pytest.mark.sampled(2)]


@pytest.fixture(scope="module")
def engine(lease: SessionLease) -> Iterator[DeltaTableEngine]:
    with DeltaEngine(lease).worker("conflicts") as worker:
        yield worker


def _table(spark: SparkSession, path: Path, **properties: str) -> None:
    """Partitions 0 and 1 with two files each, ids 0 to 39, in one commit."""
    options = {f"delta.{key}": value for key, value in properties.items()}
    frame = spark.range(40).selectExpr("id", "cast(id % 2 AS INT) p").repartition(2)
    frame.write.format("delta").partitionBy("p").options(**options).mode("append").save(str(path))


def _rewrite_while(
    engine: DeltaTableEngine, facts: TableFacts, other: Callable[[], object], partition: str | None = None
) -> CommitReceipt:
    """Compact (one partition of) the table; the other writer acts once, after the proof and before the commit."""
    step, batch = compaction(facts, where=lambda file: partition in (None, dict(file.partition_values)["p"]))

    acted: list[int] = []

    def act(version: int, proof: Proof | None) -> None:
        if not acted:
            acted.append(version)
            other()

    return engine.writer.rewrite(facts, step, batch, stamp(), act)


@pytest.mark.every_run
def test_an_append_commits_beside_us(spark: SparkSession, engine: DeltaTableEngine, lake: Path) -> None:
    path = lake / "t"
    _table(spark, path)
    facts = engine.reader.facts(TableRef(str(path)))

    def append() -> None:
        spark.range(100, 103).selectExpr("id", "0 p").coalesce(1).write.format("delta").mode("append").save(str(path))

    receipt = _rewrite_while(engine, facts, append)
    assert (receipt.version, receipt.read_version, receipt.attempts) == (facts.version + 2, facts.version, 1)
    assert sorted(row.id for row in spark.read.format("delta").load(str(path)).collect()) == [*range(40), 100, 101, 102]
    assert len(engine.reader.facts(facts.ref).files) == 3


@pytest.mark.parametrize("vectors", ["false", "true"], ids=["copy-on-write", "deletion-vector"])
def test_a_delete_of_a_chosen_file_wins(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path, vectors: str
) -> None:
    path = lake / "t"
    _table(spark, path, enableDeletionVectors=vectors)
    facts = engine.reader.facts(TableRef(str(path)))
    with pytest.raises(CommitConflict) as caught:
        _rewrite_while(engine, facts, lambda: spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 3"))
    assert caught.value.code == "C701"
    assert f"(version {facts.version + 1}, DELETE, " in caught.value.what
    after = engine.reader.facts(facts.ref)
    assert after.version == facts.version + 1
    assert spark.read.format("delta").load(str(path)).count() == 39
    # What we wrote is gone; what is on disk is what the two versions refer to.
    assert files_on_disk(path) == {file.path for file in (*facts.files, *after.files)}
    with pytest.raises(CommitConflict) as caught:
        _rewrite_while(engine, facts, lambda: None)
    assert f"version {facts.version + 1}, DELETE" in caught.value.what
    assert files_on_disk(path) == {file.path for file in (*facts.files, *after.files)}


def test_a_delete_in_another_partition_does_not_concern_us(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path
) -> None:
    path = lake / "t"
    _table(spark, path)
    facts = engine.reader.facts(TableRef(str(path)))
    receipt = _rewrite_while(engine, facts, lambda: spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 3"), "0")
    assert receipt.version == facts.version + 2
    assert spark.read.format("delta").load(str(path)).count() == 39


def test_properties_set_meanwhile_are_stepped_over(spark: SparkSession, engine: DeltaTableEngine, lake: Path) -> None:
    path = lake / "t"
    _table(spark, path)
    rows = spark_rows(spark, path)
    facts = engine.reader.facts(TableRef(str(path)))
    written: list[set[str]] = []

    def alter() -> None:
        written.append(files_on_disk(path))
        spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('team' = 'x')")

    receipt = _rewrite_while(engine, facts, alter)
    assert (receipt.version, receipt.attempts) == (facts.version + 2, 2)
    assert receipt.read_version == facts.version
    assert files_on_disk(path) == written[0], "the second attempt commits the files already written"
    assert spark_rows(spark, path) == rows


def test_an_intent_that_cannot_be_written_before_the_second_try_leaves_nothing(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path
) -> None:
    path = lake / "t"
    _table(spark, path)
    facts = engine.reader.facts(TableRef(str(path)))
    step, batch = compaction(facts)
    looks: list[int] = []

    def look(version: int, proof: Proof | None) -> None:
        looks.append(version)
        if len(looks) == 1:
            spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('team' = 'x')")
        else:
            raise OSError("no space for the intent")

    with pytest.raises(OSError, match="no space for the intent"):
        engine.writer.rewrite(facts, step, batch, stamp(), look)
    assert looks == [facts.version] * 2
    assert files_on_disk(path) == {file.path for file in facts.files}


WINNERS = {
    "ALTER TABLE {t} ADD COLUMN more INT": "ADD COLUMNS",
    "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')": "SET TBLPROPERTIES",
    "UPDATE {t} SET id = id + 1000 WHERE id = 3": "UPDATE",
    "OPTIMIZE {t}": "OPTIMIZE",
    "INSERT OVERWRITE {t} SELECT id, p FROM {t} WHERE id < 5": "WRITE",
}


@pytest.mark.parametrize("statement", WINNERS)
@pytest.mark.sampled(1)
def test_we_yield_and_name_the_winner(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path, statement: str
) -> None:
    path = lake / "t"
    _table(spark, path)
    facts = engine.reader.facts(TableRef(str(path)))
    other = partial(spark.sql, statement.format(t=f"delta.`{path}`"))
    with pytest.raises(CommitConflict) as caught:
        _rewrite_while(engine, facts, other)
    assert f"(version {facts.version + 1}, {WINNERS[statement]}, " in caught.value.what
    after = engine.reader.facts(facts.ref)
    assert after.version == facts.version + 1
    referenced = {file.path for file in (*facts.files, *after.files)}
    assert files_on_disk(path) == referenced, "nothing of ours is left"
    assert engine.reader.find_commit(facts, stamp(), after_version=-1) is None


def test_a_table_dropped_and_created_again_is_not_touched(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path
) -> None:
    path = lake / "t"
    _table(spark, path)
    facts = engine.reader.facts(TableRef(str(path)))

    def recreate() -> None:
        shutil.rmtree(path)
        _table(spark, path)

    with pytest.raises(CommitConflict):
        _rewrite_while(engine, facts, recreate)
    new = engine.reader.facts(facts.ref)
    assert new.version == 0
    assert new.table_id != facts.table_id
    with pytest.raises(CommitConflict, match="created again"):
        _rewrite_while(engine, facts, lambda: None)
    assert engine.reader.facts(facts.ref) == new


def test_a_failing_hook_after_the_commit_is_no_failure(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path
) -> None:
    path = lake / "t"
    _table(spark, path, checkpointInterval="1")
    facts = engine.reader.facts(TableRef(str(path)))
    # A folder where the pointer to the checkpoint must go, and hooks that may throw: the commit lands, the call fails.
    blocked = path / "_delta_log" / "_last_checkpoint"
    blocked.unlink(missing_ok=True)
    (blocked / "in the way").mkdir(parents=True)
    key = "spark.databricks.delta.postCommitHook.throwOnError"
    engine.jvm.spark.conf.set(key, "true")
    try:
        receipt = _rewrite_while(engine, facts, lambda: None)
    finally:
        engine.jvm.spark.conf.unset(key)
        shutil.rmtree(blocked)
    assert receipt.version == facts.version + 1
    assert engine.reader.find_commit(facts, stamp(), after_version=facts.version) == receipt.version
    assert len(engine.reader.facts(facts.ref).files) == 2
    assert spark.read.format("delta").load(str(path)).count() == 40


KILLED = """
import os, signal, sys
from pathlib import Path
from maintainer.delta.spark.spark_session import SessionOptions, open_session
from maintainer.delta.engine.table_engine import DeltaEngine
from maintainer.model.table.table_facts import TableRef
from tests.support.tables.delta_tables import compaction
from tests.support.tables.delta_tables import stamp
with open_session(SessionOptions(master="local[1]")) as lease:
    with DeltaEngine(lease).worker("killed") as engine:
        facts = engine.reader.facts(TableRef(sys.argv[1]))
        step, batch = compaction(facts)
        engine.writer.rewrite(facts, step, batch, stamp(), lambda v, p: os.kill(os.getpid(), signal.SIGKILL))
"""


@pytest.mark.slow
def test_killed_between_proof_and_commit(spark: SparkSession, engine: DeltaTableEngine, lake: Path) -> None:
    path = lake / "t"
    _table(spark, path)
    rows = spark_rows(spark, path)
    facts = engine.reader.facts(TableRef(str(path)))
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], cwd=root, capture_output=True, timeout=200)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()[-2000:]
    assert engine.reader.facts(facts.ref) == facts
    assert spark_rows(spark, path) == rows
    assert len(files_on_disk(path)) == len(facts.files) + 2, "proven, not committed, left behind as untracked files"
    step, batch = compaction(facts)
    assert engine.writer.rewrite(facts, step, batch, stamp(), no_intent).version == facts.version + 1
    assert spark_rows(spark, path) == rows
