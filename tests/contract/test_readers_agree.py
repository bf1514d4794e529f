"""Facts read from the log without Spark equal those of Spark's own Delta, for a zoo of tables."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.product import (
    CommandSession,
    CommandStorage,
    DeltaEngine,
    DeltaJvm,
    DeltaTableEngine,
    JavaObject,
    LiveFilesReader,
    LocalFiles,
    LogReader,
    ReplayedVersion,
    SessionLease,
    SparkReader,
    StoredFile,
    TableError,
    TableFacts,
    TableLog,
    TableRef,
    TableStorage,
    log_reader,
    removed_key,
    replay_version,
)
from tests.support.tables.delta_tables import forge_commit, forget_logs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.sampled(1), pytest.mark.nightly]

APART = ("a b", "", None, "p%20q", "x/y", "k=v", "h#i:j", "naïve 🎉")


@pytest.fixture(scope="module")
def engine(lease: SessionLease) -> Iterator[DeltaTableEngine]:
    with DeltaEngine(lease).worker("agree") as worker:
        yield worker


def agreed(jvm: DeltaJvm, path: Path) -> TableFacts:
    """Facts by both readers, equal, and Kernel's files as well; each file's action equals Spark's."""
    forget_logs(jvm.spark)
    ref, root = TableRef(str(path)), jvm.hadoop_path(str(path))
    storage = TableStorage(jvm, jvm.folder_at(root))
    by_spark = SparkReader(jvm).facts(ref, storage)
    assert LogReader().facts(ref, storage) == by_spark
    by_kernel = jvm.kernel_actions(storage.folder, by_spark.version, 0)
    assert {removed_key(action["add"]) for action in by_kernel if "add" in action} == by_spark.file_keys
    snapshot = jvm.update(jvm.log_of_root(root))
    assert_same_actions(jvm, snapshot)
    reader = LiveFilesReader(jvm)
    live = reader.of_snapshot(by_spark, snapshot, by_spark.file_keys)
    assert (frozenset(live.adds), live.version, live.log is not None) == (by_spark.file_keys, by_spark.version, True)
    wanted = {file["path"]: file for file in jvm.scan_files(snapshot)}
    handles = jvm.add_files(live.adds.values())
    for number, (name, _) in enumerate(live.adds):
        document = json.loads(handles.apply(number).json())["add"]
        assert document == {**document, **{key: value for key, value in wanted[name].items() if value is not None}}
    rows = jvm.all_files(snapshot).selectExpr("path", "stats").collect()
    statistics = {path: _figures(text) for (path, _), text in reader.statistics(by_spark, by_spark.version)}
    assert statistics == {str(row["path"]): _figures(row["stats"]) for row in rows}
    return by_spark


def _figures(text: str | None) -> object:
    """Statistics without the order of their columns; none are the same as empty ones."""
    return json.loads(text or "{}", parse_float=Decimal)


def assert_same_actions(jvm: DeltaJvm, snapshot: JavaObject) -> None:
    """Spark's files, once through Python and back, are what they were; of their statistics the record count is."""
    wanted = {
        add["path"]: add for add in (json.loads(file.json())["add"] for file in snapshot.allFiles().collectAsList())
    }
    handles = jvm.add_files(jvm.scan_files(snapshot))
    kernel_adds = [json.loads(handles.apply(number).json())["add"] for number in range(handles.size())]
    assert {add["path"]: _with_count(add) for add in kernel_adds} == {
        path: _with_count(add) for path, add in wanted.items()
    }


def _with_count(add: dict[str, Any]) -> dict[str, Any]:
    """An action with its record count in the place of its statistics; no tags are the same as an empty map of them."""
    count = json.loads(add.get("stats") or "{}").get("numRecords")
    return {**add, "stats": count, "tags": add.get("tags") or {}}


def values_sql(values: tuple[str | None, ...]) -> str:
    return ", ".join("(NULL)" if value is None else "('" + value.replace("'", "''") + "')" for value in values)


def make_partitioned(spark: SparkSession, path: Path) -> None:
    spark.sql(f"CREATE TABLE delta.`{path}` (id INT, p STRING, d DATE) USING delta PARTITIONED BY (p, d)")
    spark.sql(
        f"INSERT INTO delta.`{path}` SELECT 1, col1, DATE'2026-01-02' FROM VALUES {values_sql(APART)} "
        "UNION ALL SELECT 2, 'x', NULL"
    )


def make_mapped(spark: SparkSession, path: Path) -> None:
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id INT, day STRING, gone INT, s STRUCT<a: INT, b: STRING>) USING delta "
        "PARTITIONED BY (day) TBLPROPERTIES ('delta.columnMapping.mode'='name', "
        "'delta.enableDeletionVectors'='true', 'delta.enableRowTracking'='true')"
    )
    for number in (1, 2):
        spark.sql(
            f"INSERT INTO delta.`{path}` SELECT CAST(id AS INT), if(id < 5, 'l', NULL), 1, named_struct('a', "
            f"{number}, 'b', 'x') FROM range(10)"
        )
    spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN day TO `the day`")
    spark.sql(f"ALTER TABLE delta.`{path}` DROP COLUMN gone")
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id IN (1, 7)")


def make_everything_v2(spark: SparkSession, path: Path) -> None:
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT, v VARIANT, n TIMESTAMP_NTZ) USING delta TBLPROPERTIES ("
        "'delta.checkpointPolicy'='v2', 'delta.checkpointInterval'='2', 'delta.enableInCommitTimestamps'='true', "
        "'delta.enableRowTracking'='true', 'delta.enableDeletionVectors'='true', 'delta.enableTypeWidening'='true')"
    )
    for number in range(3):
        spark.sql(f"INSERT INTO delta.`{path}` SELECT id, parse_json('[{number}]'), NULL FROM range(0, 20, 1, 2)")
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 3")


def make_clustered(spark: SparkSession, path: Path) -> None:
    spark.sql(f"CREATE TABLE delta.`{path}` (a INT, s STRUCT<b: INT>) USING delta CLUSTER BY (a, s.b)")
    for _ in range(2):
        spark.sql(f"INSERT INTO delta.`{path}` SELECT CAST(id AS INT), named_struct('b', 1) FROM range(5)")
    spark.sql(f"OPTIMIZE delta.`{path}`")


def test_partitions_mapping_vectors_and_clustering(spark: SparkSession, engine: DeltaTableEngine, lake: Path) -> None:
    make_partitioned(spark, lake / "partitioned")
    facts = agreed(engine.jvm, lake / "partitioned")
    assert len(facts.files) == len(APART)  # an empty text is stored as null; one more has no date
    assert {file.partition_values[0][1] for file in facts.files} == {*APART, "x"} - {""}
    make_mapped(spark, lake / "mapped")
    facts = agreed(engine.jvm, lake / "mapped")
    assert facts.columns_with_stats == ("id", "s.a", "s.b")
    assert sum(file.deleted_records for file in facts.files) == 4
    make_clustered(spark, lake / "clustered")
    assert agreed(engine.jvm, lake / "clustered").clustering_columns == ("a", "s.b")


@pytest.mark.long
def test_every_form_of_checkpoint(spark: SparkSession, engine: DeltaTableEngine, lake: Path) -> None:
    make_everything_v2(spark, lake / "v2")
    assert list((lake / "v2" / "_delta_log").glob("*.checkpoint.*-*.*"))
    assert len(agreed(engine.jvm, lake / "v2").files) == 6
    spark.conf.set("spark.databricks.delta.checkpointV2.topLevelFileFormat", "json")
    try:
        make_everything_v2(spark, lake / "v2 json")
    finally:
        spark.conf.unset("spark.databricks.delta.checkpointV2.topLevelFileFormat")
    assert list((lake / "v2 json" / "_delta_log").glob("*.checkpoint.*-*.json"))
    assert len(agreed(engine.jvm, lake / "v2 json").files) == 6
    classic = lake / "classic"
    spark.sql(
        f"CREATE TABLE delta.`{classic}` (id BIGINT, p INT) USING delta PARTITIONED BY (p) "
        "TBLPROPERTIES ('delta.checkpointInterval'='3')"
    )
    insert = "INSERT INTO delta.`{}` SELECT id, CAST(id % 3 AS INT) FROM range(9)"
    for _ in range(4):
        spark.sql(insert.format(classic))
    assert list((classic / "_delta_log").glob("*.checkpoint.parquet"))
    agreed(engine.jvm, classic)
    spark.sql(f"OPTIMIZE delta.`{classic}`")
    assert len(agreed(engine.jvm, classic).files) == 3
    spark.conf.set("spark.databricks.delta.checkpoint.partSize", "4")
    try:
        for _ in range(2):
            spark.sql(insert.format(classic))
    finally:
        spark.conf.unset("spark.databricks.delta.checkpoint.partSize")
    assert list((classic / "_delta_log").glob("*.checkpoint.*.*.parquet"))
    agreed(engine.jvm, classic)


def test_logs_that_others_wrote(spark: SparkSession, engine: DeltaTableEngine, lake: Path) -> None:
    """Log compaction, tags, files without or with odd statistics, a table without columns, a shallow clone."""
    path = lake / "odd"
    for _ in range(3):
        spark.range(4).write.format("delta").mode("append").save(str(path))
    log = path / "_delta_log"
    lines = [line for number in range(3) for line in (log / f"{number:020d}.json").read_text().splitlines()]
    kept_lines = [line for line in lines if not line.startswith('{"commitInfo"')]
    (log / f"{0:020d}.{2:020d}.compacted.json").write_text("\n".join(kept_lines) + "\n")
    agreed(engine.jvm, path)
    add = next(json.loads(line)["add"] for line in lines if line.startswith('{"add"'))
    odd = [
        {**add, "path": "no-stats.parquet", "stats": None},
        {**add, "path": "few-stats.parquet", "stats": '{"nullCount":{"id":0}}'},
        {
            **add,
            "path": "spaced.parquet",
            "stats": '{ "minValues" : {}, "numRecords" : 17 }',
            "tags": {"T": "1", "Ü": "ä"},
        },
        {**add, "path": "a%20b/%25%E2%80%A8.parquet", "tags": {"k": 'quo"te\n'}},
    ]
    (log / f"{3:020d}.json").write_text("".join(json.dumps({"add": add}) + "\n" for add in odd))
    facts = agreed(engine.jvm, path)
    records = {file.path: file.physical_records for file in facts.files}
    assert [records[add["path"]] for add in odd[:3]] == [None, None, 17]
    spark.sql(f"CREATE TABLE delta.`{lake}/bare` USING delta")
    assert agreed(engine.jvm, lake / "bare").columns == ()


@pytest.mark.every_run
@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (12, 12),
        ("12", None),
        *(pytest.param(*row, marks=pytest.mark.long) for row in ((12.0, 12), (12.5, None), (True, None))),
    ],
)
def test_a_count_of_rows_that_is_no_number_is_unknown_to_spark_too(
    spark: SparkSession,
    engine: DeltaTableEngine,
    lake: Path,
    monkeypatch: pytest.MonkeyPatch,
    count: Any,
    expected: int | None,
) -> None:
    path = lake / "t"
    spark.range(12).coalesce(1).write.format("delta").save(str(path))
    forge_commit(path, 0, partial(_with_stats, json.dumps({"maxValues": {"id": 11}, "numRecords": count})))
    forget_logs(spark)
    jvm = engine.jvm
    log = jvm.log_at(f"file:{path}")
    [file] = jvm.scan_files(jvm.update(log))
    assert json.loads(file.get("stats") or "{}").get("numRecords") == expected

    facts = engine.reader.facts(TableRef(str(path)))
    monkeypatch.setattr(LiveFilesReader, "_read", lambda *anything: None)
    assert engine.versions.row_count(facts, 0, scan=False) == (-1 if expected is None else expected)

    jvm.checkpoint(log)
    (path / "_delta_log" / f"{0:020d}.crc").unlink(missing_ok=True)
    by_session = CommandStorage(CommandSession(spark, lambda: None), str(path))
    for log_of in (TableLog(LocalFiles(), f"file:{path}"), by_session):
        assert [file.records for file in replay_version(log_of).state.files.values()] == [expected]


def _with_stats(text: str, actions: list[dict[str, Any]]) -> None:
    for action in actions:
        if "add" in action:
            action["add"]["stats"] = text


@pytest.mark.long
def test_statistics_settings_and_clones(spark: SparkSession, engine: DeltaTableEngine, lake: Path) -> None:
    path = lake / "stats"
    typed = "TIMESTAMP'2026-11-21 07:08:09.123456', TIMESTAMP_NTZ'2026-11-21 07:08:09.123456', 1234567890123456789.10, "
    typed += "CAST('Infinity' AS DOUBLE), TRUE)"
    spark.sql(
        f"CREATE TABLE delta.`{path}` (a INT, s STRUCT<b: INT, c: STRING>, `d.e` INT, m MAP<INT, INT>, "
        "t TIMESTAMP, n TIMESTAMP_NTZ, x DECIMAL(30, 2), f DOUBLE, o BOOLEAN) USING delta "
        "TBLPROPERTIES ('delta.dataSkippingNumIndexedCols'='2')"
    )
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (1, named_struct('b', 2, 'c', 'x'), 3, map(1, 1), {typed}")
    assert agreed(engine.jvm, path).columns_with_stats == ("a", "s.b")
    spark.sql(
        f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.dataSkippingStatsColumns'='`d.e`, s.c, t, n, x, f')"
    )
    assert agreed(engine.jvm, path).columns_with_stats == ("s.c", "`d.e`", "t", "n", "x", "f")
    spark.sql(f"CREATE TABLE delta.`{lake}/clone` SHALLOW CLONE delta.`{path}`")
    assert agreed(engine.jvm, lake / "clone").files[0].path.startswith("file:/")
    spark.sql(
        f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.checkpoint.writeStatsAsJson'='false', "
        "'delta.checkpoint.writeStatsAsStruct'='true', 'delta.checkpointInterval'='1')"
    )
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (2, NULL, 3, NULL, {typed}")
    facts = agreed(engine.jvm, path)
    assert engine.reader.facts(facts.ref) == facts
    assert [file.physical_records for file in facts.files] == [1, 1]


def test_an_unchanged_table_is_not_read_again(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = lake / "known"
    spark.range(4).write.format("delta").save(str(path))
    reads: list[str] = []
    whole = replay_version

    def counted(storage: TableStorage, version: int | None, listed: Mapping[str, StoredFile]) -> ReplayedVersion:
        reads.append("read")
        return whole(storage, version, listed)

    monkeypatch.setattr(log_reader, "replay_version", counted)
    reader = LogReader()
    storage = TableStorage(engine.jvm, engine.jvm.folder_at(engine.jvm.hadoop_path(str(path))))

    def look() -> TableFacts:
        facts = reader.facts(TableRef(str(path)), storage)
        assert facts is not None
        return facts

    first = look()
    assert look() is first
    assert len(reads) == 1
    spark.range(4).write.format("delta").mode("append").save(str(path))
    assert look().version == 1
    assert look().version == 1
    assert len(reads) == 2
    shutil.rmtree(path)
    with pytest.raises(TableError) as gone:
        reader.facts(TableRef(str(path)), storage)
    assert gone.value.code == "T401"
    for number in (5, 6):
        spark.range(number).write.format("delta").mode("append").save(str(path))
    assert look().version == 1
    assert sum(file.physical_records or 0 for file in look().files) == 11
