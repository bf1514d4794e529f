"""Statistics of renamed and widened columns, of CHAR, of columns that are in the file and in the log, and in structs.

After the rewrite the proof, the look at the log and `verify` agree, and Spark answers as before, with data skipping and
without. Bounds in the log are compared with the rows as pyarrow reads them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.product import (
    CheckResult,
    Checks,
    CommitReceipt,
    DeltaCommitProver,
    DeltaEngine,
    DeltaTableEngine,
    GreatExpectationsVerifier,
    Lane,
    SessionLease,
    TableRef,
    Verdict,
    rewrite_commit,
)
from tests.support.runs.rewrites import in_lane
from tests.support.tables.delta_tables import actions_of, compaction, forge_commit, forget_logs, no_intent, stamp

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.nightly,
    pytest.mark.sampled(3),
    pytest.mark.usefixtures("small_row_groups_are_copied"),
]

SKIPPING = "spark.databricks.delta.stats.skipping"


@pytest.fixture(scope="module")
def engine(lease: SessionLease) -> Iterator[DeltaTableEngine]:
    with DeltaEngine(lease).worker("schemas") as worker:
        yield worker


def _answers(spark: SparkSession, path: Path, questions: Sequence[str]) -> list[Any]:
    forget_logs(spark)
    answers = []
    for skipping in ("true", "false"):
        spark.conf.set(SKIPPING, skipping)
        try:
            answers += [str(spark.sql(f"SELECT {text} FROM delta.`{path}`").collect()) for text in questions]
        finally:
            spark.conf.unset(SKIPPING)
    half = len(questions)
    assert answers[:half] == answers[half:]
    return answers


def _rewritten(
    spark: SparkSession, engine: DeltaTableEngine, path: Path, lane: Lane, *questions: str
) -> tuple[CommitReceipt, list[tuple[dict[str, Any], pa.Table]]]:
    """Compact the table in a lane; the receipt, and the statistics and rows of each new file."""
    before = _answers(spark, path, questions)
    facts = engine.reader.facts(TableRef(str(path)))
    step, batch = in_lane(facts, *compaction(facts), lane)
    receipt = engine.writer.rewrite(facts, step, batch, stamp(), no_intent)
    assert receipt.proof is not None
    assert (receipt.proof.holds, {use.lane for use in receipt.proof.lanes}) == (True, {lane})
    assert receipt.proof.rows_in_log == receipt.proof.read.rows

    after = GreatExpectationsVerifier().after_rewrite(engine.versions, facts, batch, receipt, Checks())
    assert after.verdict is Verdict.PASS, after.detail
    forget_logs(spark)
    verification = DeltaCommitProver(engine.jvm).prove(engine.reader.facts(TableRef(str(path))), receipt.version)
    assert verification.result is CheckResult.PROVEN, verification.checks
    assert _answers(spark, path, questions) == before
    adds = [action["add"] for action in actions_of(path, receipt.version) if "add" in action]
    return receipt, [(json.loads(add["stats"]), pq.ParquetFile(path / unquote(add["path"])).read()) for add in adds]


def _physical(path: Path) -> dict[str, str]:
    """The stored name of each column, by the newest schema in the log."""
    schemas = [
        json.loads(action["metaData"]["schemaString"])
        for version in range(len([*path.glob("_delta_log/*.json")]))
        for action in actions_of(path, version)
        if "metaData" in action
    ]
    return {
        field["name"]: field["metadata"].get("delta.columnMapping.physicalName", field["name"])
        for field in schemas[-1]["fields"]
    }


@pytest.mark.parametrize("lane", Lane)
def test_renamed_columns(spark: SparkSession, engine: DeltaTableEngine, lake: Path, lane: Lane) -> None:
    path = lake / "t"
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT, d DOUBLE, t STRING) USING delta "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    insert = f"INSERT INTO delta.`{path}` VALUES ({{0}}, {{1}}, '{{0}}')"
    for number in range(2):
        spark.sql(insert.format(number, 1.5 + number))
    spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN d TO e")
    for value in ("4.5", "double('NaN')"):
        spark.sql(insert.format(7, value))
    _, [(stats, rows)] = _rewritten(
        spark, engine, path, lane, "count_if(e > 1e300)", "min(e), max(e), min(id), max(id)", "count_if(t = '7')"
    )
    stored = _physical(path)
    assert set(stored) == {"id", "e", "t"}
    assert stored["e"] not in ("d", "e")
    values = rows.column(stored["e"]).to_pylist()
    assert sorted(value for value in values if not math.isnan(value)) == [1.5, 2.5, 4.5]
    assert set(stats["minValues"]) == set(stats["maxValues"]) == set(stored.values())
    assert (stats["minValues"][stored["e"]], stats["maxValues"][stored["e"]]) == (1.5, "NaN")


@pytest.mark.parametrize("lane", Lane)
def test_a_partition_column_that_is_in_the_files_and_in_their_statistics_too(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path, lane: Lane
) -> None:
    path = lake / "t"
    spark.sql(f"CREATE TABLE delta.`{path}` (id BIGINT, p BIGINT) USING delta PARTITIONED BY (p)")
    (path / "p=7").mkdir()
    for number in range(4):
        rows = pa.table({"id": pa.array([2 * number, 2 * number + 1]), "p": pa.array([90, 99])})
        name = f"p=7/others-{number}.parquet"
        pq.write_table(rows, path / name)
        bounds = {"minValues": {"id": 2 * number, "p": 90}, "maxValues": {"id": 2 * number + 1, "p": 99}}
        stats = {"numRecords": 2, **bounds, "nullCount": {"id": 0, "p": 0}}
        add = {
            "path": name, "partitionValues": {"p": "7"}, "size": (path / name).stat().st_size, "modificationTime": 1,
            "dataChange": True, "stats": json.dumps(stats),
        }  # fmt: skip
        (path / "_delta_log" / f"{number + 1:020d}.json").write_text(json.dumps({"add": add}) + "\n")
    receipt, [(stats, rows)] = _rewritten(
        spark, engine, path, lane, "count_if(p = 7)", "count_if(p > 80)", "min(p), max(p), min(id), max(id)"
    )
    assert str(spark.sql(f"SELECT DISTINCT p FROM delta.`{path}`").collect()) == "[Row(p=7)]"
    # Delta's writer repeats the value of the log; no lane carries that of the old files.
    assert rows.column_names == (["id", "p"] if lane is Lane.SPARK else ["id"])
    assert lane is not Lane.SPARK or rows.column("p").to_pylist() == [7] * 8
    assert stats["minValues"] == {"id": 0}
    assert stats["maxValues"] == {"id": 7}
    (add,) = (action["add"] for action in actions_of(path, receipt.version) if "add" in action)
    assert add["partitionValues"] == {"p": "7"}


@pytest.mark.parametrize("lane", [Lane.LOCAL, Lane.SPARK])
def test_char_and_widened_numbers(spark: SparkSession, engine: DeltaTableEngine, lake: Path, lane: Lane) -> None:
    path = lake / "t"
    spark.sql(
        f"CREATE TABLE delta.`{path}` (a VARCHAR(10), c CHAR(5), b INT, m DECIMAL(10,2)) USING delta "
        "TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
    )
    for number in range(2):
        spark.sql(f"INSERT INTO delta.`{path}` VALUES ('a{number}', 'c{number}', {number}, {number}.25)")
    spark.sql(f"ALTER TABLE delta.`{path}` ALTER COLUMN b TYPE BIGINT")
    spark.sql(f"ALTER TABLE delta.`{path}` ALTER COLUMN m TYPE DECIMAL(14,4)")
    spark.sql(f"INSERT INTO delta.`{path}` VALUES ('a2', 'c2', {2**40}, 123456789.1234)")
    sources = [pq.ParquetFile(file).read().column("c").to_pylist() for file in path.glob("*.parquet")]
    schema_before = spark.read.format("delta").load(str(path)).schema.json()
    _, [(stats, rows)] = _rewritten(
        spark, engine, path, lane, "min(b), max(b), min(m), max(m)", "count_if(c = 'c2')", "count_if(m = 1.25)",
        "collect_set(length(c))",
    )  # fmt: skip
    assert spark.read.format("delta").load(str(path)).schema.json() == schema_before
    assert (stats["minValues"]["b"], stats["maxValues"]["b"]) == (0, 2**40)
    assert (stats["minValues"]["m"], stats["maxValues"]["m"]) == (0.25, 123456789.1234)
    assert sorted(rows.column("c").to_pylist()) == sorted(text for file in sources for text in file)
    assert rows.schema.field("m").type == pa.decimal128(14, 4)


@pytest.mark.parametrize("lane", Lane)
def test_statistics_that_only_a_checkpoint_has_and_only_as_a_struct(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path, lane: Lane
) -> None:
    path = lake / "t"
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT, d DOUBLE) USING delta TBLPROPERTIES ("
        "'delta.checkpoint.writeStatsAsJson' = 'false', 'delta.checkpoint.writeStatsAsStruct' = 'true', "
        "'delta.checkpointInterval' = '4')"
    )
    for number in range(5):
        spark.sql(f"INSERT INTO delta.`{path}` VALUES ({number}, {number}.5)")
    log = path / "_delta_log"
    from_json = engine.reader.facts(TableRef(str(path)))
    for version in range(4):
        (log / f"{version:020d}.json").unlink()
    checkpoint = pq.read_table(log / f"{4:020d}.checkpoint.parquet").column("add").combine_chunks()
    assert checkpoint.type.get_field_index("stats_parsed") >= 0
    assert checkpoint.type.get_field_index("stats") < 0
    forget_logs(spark)
    facts = engine.reader.facts(TableRef(str(path)))
    assert [file.physical_records for file in facts.files] == [1] * 5
    assert {file.path: file.physical_records for file in facts.files} == {
        file.path: file.physical_records for file in from_json.files
    }
    assert engine.versions.row_count(facts, facts.version, scan=False) == 5
    receipt, [(stats, rows)] = _rewritten(
        spark, engine, path, lane, "min(d), max(d), min(id), max(id)", "count_if(d > 3)", "count_if(id < 0)"
    )
    assert (stats["minValues"], stats["maxValues"]) == ({"id": 0, "d": 0.5}, {"id": 4, "d": 4.5})
    assert (stats["numRecords"], rows.num_rows, receipt.num_files_removed) == (5, 5, 5)


@pytest.mark.every_run
def test_a_bound_that_is_another_one_in_the_log_fails_the_look_at_the_commit(
    engine: DeltaTableEngine, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = lake / "t"
    for number in range(3):
        deltalake.write_deltalake(str(path), pa.table({"id": [number], "d": [0.5 + number]}), mode="append")

    def read(jvm: Any, storage: Any, stamp: Any, where: str, version: int) -> list[dict[str, Any]]:
        forge_commit(path, version, narrow)
        return actions_of(path, version)

    def narrow(actions: list[dict[str, Any]]) -> None:
        for action in actions:
            if "add" in action:
                stats = json.loads(action["add"]["stats"])
                stats["maxValues"]["d"] = 1.5
                action["add"]["stats"] = json.dumps(stats)

    monkeypatch.setattr(rewrite_commit, "landed_actions", read)
    facts = engine.reader.facts(TableRef(str(path)))
    step, batch = in_lane(facts, *compaction(facts), Lane.LOCAL)
    receipt = engine.writer.rewrite(facts, step, batch, stamp(), no_intent)
    assert receipt.proof is not None
    (finding,) = receipt.proof.findings
    assert finding.endswith("rows lie outside the bounds of d (minValues says 0.5, maxValues 1.5)")
    after = GreatExpectationsVerifier().after_rewrite(engine.versions, facts, batch, receipt, Checks())
    assert after.verdict is Verdict.FAIL
