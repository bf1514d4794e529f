"""What every writer must do on real tables: one suite for the transaction and the command engine.

What can be said through the protocol alone stands in test_engine_contract.py, for the engine in memory, too.

The command engine runs on a classic session and over a real Spark Connect server. Where the engines differ on purpose
(when they prove, what a command takes beside the plan), the test says so.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest

from tests.support.product import (
    FORCED,
    Batch,
    CheckImpossible,
    Checks,
    CommandTableEngine,
    CommitConflict,
    CommitReceipt,
    DeltaEngine,
    GreatExpectationsVerifier,
    Proof,
    Refused,
    SessionLease,
    SetPropertiesStep,
    TableEngine,
    TableError,
    TableFacts,
    TableRef,
    VacuumStep,
    Verdict,
    audit,
)
from tests.support.tables.delta_tables import actions_of as log_of
from tests.support.tables.delta_tables import (
    bytes_of,
    compaction,
    history,
    no_intent,
    spark_rows,
    stamp,
    zorder,
)
from tests.support.writers.writers import build, engine_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.long]

KINDS = ("connect", "transaction", "command")

BY_COMMANDS = pytest.mark.parametrize("kind", ["connect", "command"], indirect=True, scope="module")
"""For what the transaction does in another way, with tests of its own."""


@pytest.fixture(params=KINDS, scope="module")
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def engine(kind: str, lease: SessionLease, connect_url: str) -> Iterator[TableEngine]:
    with engine_of(kind, lease, connect_url) as worker:
        yield worker


def _facts(engine: TableEngine, path: Path) -> TableFacts:
    return engine.reader.facts(TableRef(str(path)))


@pytest.mark.contradicts("live_files_are_there", reason="a live file is deleted, to see it missed")
def test_a_rewrite_its_receipt_and_its_history(kind: str, spark: SparkSession, engine: TableEngine, lake: Path) -> None:
    path = lake / "it's `odd` 100%"
    build(spark, path)
    rows = spark_rows(spark, path)
    facts = _facts(engine, path)
    assert len(facts.files) == 6
    step, batch = compaction(facts, where=lambda file: file.partition_values != (("p", "é%"),))
    calls: list[tuple[int, int | None]] = []
    receipt = engine.writer.rewrite(
        facts, step, batch, stamp(), lambda version, proof: calls.append((version, proof.read.rows if proof else None))
    )
    # The command engine writes its intent before anything runs, and proves afterwards.
    proven = 27 if kind == "transaction" else None
    assert calls == [(1, proven)]
    assert (receipt.version, receipt.read_version) == (2, 1)
    assert (receipt.num_files_removed, receipt.num_files_added) == (4, 2)
    assert (receipt.bytes_removed, receipt.difference) == (batch.size_bytes, None)
    assert receipt.proof is not None
    assert receipt.proof.holds
    assert (receipt.proof.read.rows, receipt.proof.rows_in_log) == (27, 27)
    assert {assertion.outcome for assertion in audit(batch, receipt)} == {"pass"}
    after = _facts(engine, path)
    assert (after.version, len(after.files), after.schema_json) == (2, 4, facts.schema_json)
    assert receipt.bytes_added == after.size_bytes - (facts.size_bytes - batch.size_bytes)
    assert spark_rows(spark, path) == rows
    (entry,) = history(spark, path)
    assert (entry["operation"], entry["userMetadata"]) == ("OPTIMIZE", stamp().to_json())
    assert entry["operationMetrics"]["numRemovedFiles"] == "4"
    assert all(
        body["dataChange"] is False for action in log_of(path, 2) for key, body in action.items() if key != "commitInfo"
    )
    assert engine.reader.find_commit(facts, stamp(), after_version=1) == 2
    assert engine.reader.find_commit(facts, stamp(batch=1), after_version=1) is None
    assert engine.reader.stamp_of(facts, 2) == stamp()
    assert engine.reader.stamp_of(facts, 1) is None
    assert engine.versions.row_count(after, 2, scan=True) == engine.versions.row_count(after, 1, scan=False) == 40
    assert engine.versions.rows_differ(after, 1, 2) == 0
    assert engine.versions.missing_files(after, 2).paths == ()
    gone = next(file for file in after.files)
    (path / unquote(gone.path)).unlink()
    assert engine.versions.missing_files(after, 2).paths == (gone.path,)


def test_zorder_of_a_table_with_everything(spark: SparkSession, engine: TableEngine, lake: Path) -> None:
    """Column mapping, a renamed column, deletion vectors, row tracking, change feed, v2 checkpoints, commit times."""
    path = lake / "all"
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT, v STRING, gone INT, p INT) USING delta PARTITIONED BY (p) "
        "TBLPROPERTIES ('delta.columnMapping.mode'='name', 'delta.enableDeletionVectors'='true', "
        "'delta.enableRowTracking'='true', 'delta.enableChangeDataFeed'='true', 'delta.checkpointPolicy'='v2', "
        "'delta.enableInCommitTimestamps'='true', 'delta.checkpointInterval'='2')"
    )
    for start in (0, 30):
        frame = spark.range(start, start + 30).selectExpr("id", "cast(id AS STRING) v", "1 gone", "int(id % 2) p")
        frame.coalesce(1).write.format("delta").mode("append").save(str(path))
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id % 7 = 0")
    spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN v TO `the value`")
    spark.sql(f"ALTER TABLE delta.`{path}` DROP COLUMN gone")
    tracked = ("_metadata.row_id", "_metadata.row_commit_version")
    rows = spark_rows(spark, path, None, *tracked)
    facts = _facts(engine, path)
    step, batch = zorder(facts, "id", "`the value`")
    receipt = engine.writer.rewrite(facts, step, batch, stamp("t/zorder"), no_intent)
    assert (receipt.num_files_removed, receipt.num_files_added) == (len(facts.files), 2)
    assert receipt.num_deletion_vectors_removed == sum(file.deletion_vector is not None for file in facts.files) > 0
    assert receipt.proof is not None
    assert receipt.proof.holds
    assert receipt.difference is None
    assert spark_rows(spark, path, None, *tracked) == rows
    after = _facts(engine, path)
    assert all(file.deletion_vector is None for file in after.files)
    assert (after.schema_json, after.properties, after.protocol) == (
        facts.schema_json,
        facts.properties,
        facts.protocol,
    )


@BY_COMMANDS
def test_both_readers_tell_the_same(spark: SparkSession, engine: TableEngine, lease: SessionLease, lake: Path) -> None:
    plain, mapped = lake / "plain 1%", lake / "mapped"
    build(spark, plain)
    spark.sql(
        f"CREATE TABLE delta.`{mapped}` (id BIGINT, d DATE, s STRUCT<a: INT, b: ARRAY<INT>>, p TIMESTAMP) USING delta "
        "PARTITIONED BY (p) TBLPROPERTIES ('delta.columnMapping.mode'='name', 'delta.checkpointInterval'='2', "
        "'delta.enableDeletionVectors'='true', 'delta.enableInCommitTimestamps'='true', 'x'='y', "
        "'delta.dataSkippingNumIndexedCols'='3')"
    )
    values = "TIMESTAMP'2024-01-01 00:00:00'"
    for _ in range(4):
        insert = f"SELECT id, current_date(), named_struct('a', 1, 'b', array(1)), if(id % 2 = 0, {values}, NULL)"
        spark.sql(f"INSERT INTO delta.`{mapped}` {insert} FROM range(10)")
    spark.sql(f"DELETE FROM delta.`{mapped}` WHERE id = 4")
    with DeltaEngine(lease).worker("compare") as compared:
        for path in (plain, mapped):
            ours, theirs = _facts(engine, path), _facts(compared, path)
            assert ours == theirs
    with pytest.raises(TableError) as caught:
        _facts(engine, lake / "nothing")
    assert caught.value.code == "T401"
    (lake / "folder").mkdir()
    with pytest.raises(TableError) as caught:
        _facts(engine, lake / "folder")
    assert caught.value.code == "T402"


def test_properties(spark: SparkSession, engine: TableEngine, lake: Path) -> None:
    path = lake / 'it\'s `odd` "path" 100%'
    spark.range(1).write.format("delta").save(str(path))
    facts = _facts(engine, path)
    after = (("delta.checkpointInterval", "7"), ("owner's", 'it\'s `x` "y"; \\ DROP'))
    step = SetPropertiesStep(tuple((key, None) for key, _ in after), after, ())
    calls: list[int] = []
    receipt = engine.writer.set_properties(facts, step, stamp("t/p"), lambda version, proof: calls.append(version))
    assert (receipt.version, receipt.read_version, receipt.proof, calls) == (1, 0, None, [0])
    facts = _facts(engine, path)
    assert facts.properties == after
    (entry,) = history(spark, path)
    assert (entry["operation"], entry["userMetadata"]) == ("SET TBLPROPERTIES", stamp("t/p").to_json())
    before = bytes_of(path)
    for key, value in (("delta.noSuchThing", "1"), ("delta.deletedFileRetentionDuration", "often")):
        wrong = SetPropertiesStep(((key, None),), ((key, value),), ())
        with pytest.raises(TableError) as caught:
            engine.writer.set_properties(facts, wrong, stamp(), no_intent)
        assert caught.value.code == "T418"
    theirs = SetPropertiesStep((("owner's", None),), (("owner's", "ours"),), ())
    with pytest.raises(CommitConflict, match="owner's was changed"):
        engine.writer.set_properties(facts, theirs, stamp(), no_intent)
    assert bytes_of(path) == before


def test_files_that_are_gone_and_a_table_that_is_another(
    kind: str, spark: SparkSession, engine: TableEngine, lake: Path
) -> None:
    path = lake / "t"
    build(spark, path)
    facts = _facts(engine, path)
    step, batch = compaction(facts)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 4")
    before = bytes_of(path)
    with pytest.raises(CommitConflict) as caught:
        engine.writer.rewrite(facts, step, batch, stamp(), no_intent)
    assert f"version {facts.version + 1}, DELETE" in caught.value.what
    assert bytes_of(path) == before
    shutil.rmtree(path)
    build(spark, path)
    with pytest.raises(CommitConflict, match="created again"):
        engine.writer.rewrite(facts, step, batch, stamp(), no_intent)
    assert _facts(engine, path).version == 1
    if kind == "transaction":
        return
    shutil.rmtree(path)
    with pytest.raises(CommitConflict, match="dropped since"):
        engine.writer.rewrite(facts, step, batch, stamp(), no_intent)


def _while(engine: TableEngine, facts: TableFacts, batch: Batch, other: Callable[[], object]) -> CommitReceipt:
    step, _ = compaction(facts)
    acted: list[int] = []

    def act(version: int, proof: Proof | None) -> None:
        if not acted:
            acted.append(version)
            other()

    return engine.writer.rewrite(facts, step, batch, stamp(), act)


def test_an_append_at_the_last_moment(kind: str, spark: SparkSession, engine: TableEngine, lake: Path) -> None:
    path = lake / "t"
    build(spark, path)
    facts = _facts(engine, path)
    _, batch = compaction(facts)

    def append() -> None:
        frame = spark.range(100, 103).selectExpr("id", "'x' s", "'a b' p")
        frame.coalesce(1).write.format("delta").mode("append").save(str(path))

    receipt = _while(engine, facts, batch, append)
    assert receipt.version == facts.version + 2
    assert spark.read.format("delta").load(str(path)).count() == 43
    assert receipt.proof is not None
    assert receipt.proof.holds
    assert {assertion.outcome for assertion in audit(batch, receipt)} == {"pass"}
    if kind == "transaction":
        assert receipt.difference is None
        assert len(_facts(engine, path).files) == 4
    else:
        # A command decides when it runs: it takes the new file, and the receipt says so.
        assert receipt.difference is not None
        assert (receipt.difference.beyond.num_files, receipt.difference.untaken.num_files) == (1, 0)
        assert receipt.difference.beyond.live_records == 3
        assert len(_facts(engine, path).files) == 3


@BY_COMMANDS
def test_a_column_that_is_added_at_the_last_moment(spark: SparkSession, engine: TableEngine, lake: Path) -> None:
    path = lake / "t"
    build(spark, path)
    facts = _facts(engine, path)
    _, batch = compaction(facts)
    receipt = _while(engine, facts, batch, lambda: spark.sql(f"ALTER TABLE delta.`{path}` ADD COLUMN later INT"))
    assert receipt.version == facts.version + 2
    done = GreatExpectationsVerifier().after_rewrite(engine.versions, facts, batch, receipt, Checks())
    assert (done.verdict, done.detail) == (Verdict.PASS, None)


def test_a_delete_at_the_last_moment(kind: str, spark: SparkSession, engine: TableEngine, lake: Path) -> None:
    path = lake / "t"
    build(spark, path)
    facts = _facts(engine, path)
    _, batch = compaction(facts)

    def delete() -> None:
        spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 4")

    if kind == "transaction":
        with pytest.raises(CommitConflict):
            _while(engine, facts, batch, delete)
    else:
        receipt = _while(engine, facts, batch, delete)
        assert receipt.difference is not None
        assert (receipt.difference.beyond.num_files, receipt.difference.untaken.num_files) == (1, 1)
        assert receipt.proof is not None
        assert receipt.proof.holds
        assert {assertion.outcome for assertion in audit(batch, receipt)} == {"pass"}
    assert sorted(row.id for row in spark.read.format("delta").load(str(path)).collect()) == [
        number for number in range(40) if number != 4
    ]


@BY_COMMANDS
@pytest.mark.contradicts(
    "live_files_are_there",
    "metrics_agree_with_actions",
    reason="a written file is spoiled, as if the engine had done it",
)
def test_a_proof_that_cannot_be_made(
    kind: str, spark: SparkSession, lease: SessionLease, connect_url: str, lake: Path
) -> None:
    path = lake / "t"
    spark.range(30).repartition(3).write.format("delta").save(str(path))

    def spoil(file: Path) -> None:
        file.write_bytes(b"no longer a file of columns")

    with engine_of(kind, lease, connect_url, spoil, path) as engine:
        facts = _facts(engine, path)
        step, batch = compaction(facts)
        with pytest.raises(CheckImpossible) as caught:
            engine.writer.rewrite(facts, step, batch, stamp(), no_intent)
        assert (caught.value.code, caught.value.where) == ("V504", f"{path}@1")
        assert caught.value.what.startswith("committed without a proof")
        assert caught.value.help is not None
        assert caught.value.help.startswith("the files that it replaced are not deleted until it is proven")
        assert engine.reader.find_commit(facts, stamp(), after_version=0) == 1


@BY_COMMANDS
def test_settings_are_put_back_and_deletion_is_refused(spark: SparkSession, engine: TableEngine, lake: Path) -> None:
    path = lake / "t"
    build(spark, path)
    facts = _facts(engine, path)
    assert isinstance(engine, CommandTableEngine)
    session = engine.session.spark
    keys = [
        *FORCED,
        *(f"spark.databricks.delta.optimize.{name}" for name in ("minFileSize", "maxFileSize", "maxThreads")),
    ]
    before = {key: session.conf.get(key, None) for key in keys}
    step, batch = compaction(facts)
    engine.writer.rewrite(facts, step, batch, stamp(), no_intent)
    assert {key: session.conf.get(key, None) for key in keys} == before
    assert before["spark.databricks.delta.commitInfo.userMetadata"] is None
    vacuum = VacuumStep((), 0, 7 * 86_400, "nobody", ())
    with pytest.raises(Refused) as caught:
        engine.writer.vacuum(facts, vacuum, stamp(), no_intent)
    assert caught.value.code == "A440"
