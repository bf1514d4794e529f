"""Facts read from the log without Spark equal those of Spark's own Delta, for a zoo of tables."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from maintainer.delta.commands.command_session import CommandSession
from maintainer.delta.commands.command_storage import SparkStorage
from maintainer.delta.engine.table_engine import DeltaEngine, DeltaTableEngine
from maintainer.delta.jvm import DeltaJvm, JavaObject
from maintainer.delta.log.replay.version_replay import ReplayedVersion, replay_version
from maintainer.delta.snapshot import log_reader
from maintainer.delta.snapshot.log_reader import LogReader
from maintainer.delta.snapshot.spark_reader import SparkReader
from maintainer.delta.spark.spark_session import SessionLease
from maintainer.delta.storage.file_store import StoredFile
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.delta.transaction.live_files import LiveFilesReader
from maintainer.errors import TableError
from maintainer.model.table.table_facts import TableFacts, TableRef
from tests.support.tables.delta_tables import forge_commit, forget_logs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.sampled(1), pytest.mark.nightly]

APART = ("a b", "", None, "p%20q", "x/y", "k=v", "h#i:j", "naïve 🎉")


@pytest.fixture(scope="module")
def engine(lease: SessionLease) -> Iterator[DeltaTableEngine]:
    with DeltaEngine(lease).worker("agree") as worker:
        yield worker


def agreed(jvm: DeltaJvm, path: Path, *, kernel: bool | None = True, replayed: bool = True) -> TableFacts:
    """Facts by both readers, equal; and where Kernel reads them, each file's action equals Spark's.

    ``kernel`` says whether Kernel alone is to read the table; None: it may. ``replayed``: our own replay reads it.
    """
    forget_logs(jvm.spark)
    ref, root = TableRef(str(path)), jvm.hadoop_path(str(path))
    storage = TableStorage(jvm, jvm.folder_at(root))
    by_spark = SparkReader(jvm).facts(ref, storage)
    by_kernel = LogReader(jvm).facts(ref, storage)
    by_kernel_alone = alone_by_kernel(jvm, ref, storage)
    assert kernel is None or (by_kernel_alone is not None) == kernel
    assert by_kernel_alone in (by_kernel, None)
    snapshot = jvm.update(jvm.log_of_root(root))
    assert_same_actions(jvm, snapshot)
    if replayed:
        assert replay_version(storage) is not None
    if by_kernel is not None:
        assert by_kernel == by_spark
        live = LiveFilesReader(jvm).of_snapshot(by_spark, snapshot, by_spark.file_keys)
        assert (frozenset(live.adds), live.version) == (by_spark.file_keys, by_spark.version)
        wanted = {file["path"]: file for file in jvm.scan_files(snapshot)}
        handles = jvm.add_files(live.adds.values())
        for number, (name, _) in enumerate(live.adds):
            document = json.loads(handles.apply(number).json())["add"]
            assert document == {**document, **{key: value for key, value in wanted[name].items() if value is not None}}
    return by_spark


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


def alone_by_kernel(jvm: DeltaJvm, ref: TableRef, storage: TableStorage) -> TableFacts | None:
    """Facts by Kernel, also where the commits alone would tell everything."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_reader, "replay_version", lambda storage, version, listed: None)
        return LogReader(jvm).facts(ref, storage)


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
    # Kernel leaves out who clustered a file.
    assert agreed(engine.jvm, lake / "clustered", kernel=False).clustering_columns == ("a", "s.b")


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
    assert agreed(engine.jvm, lake / "bare", kernel=None).columns == ()


@pytest.mark.every_run
def test_a_count_of_rows_that_is_no_number_is_unknown_to_spark_too(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files with one count each, all of them in one version, and then each of them alone in a version."""
    counts: list[Any] = [12, 12.0, "12", 12.5, True]
    expected = [12, 12, None, None, None]
    path = lake / "t"
    spark.range(12).coalesce(1).write.format("delta").save(str(path))
    adds: list[dict[str, Any]] = []

    def split(actions: list[dict[str, Any]]) -> None:
        add = next(action["add"] for action in actions if "add" in action)
        actions.remove({"add": add})
        for number, count in enumerate(counts):
            stats = json.dumps({"maxValues": {"id": 11}, "numRecords": count})
            adds.append({"add": {**add, "path": f"{number}.parquet", "stats": stats}})
        actions.extend(adds)

    forge_commit(path, 0, split)
    forget_logs(spark)
    jvm = engine.jvm
    log = jvm.log_at(f"file:{path}")
    files = sorted(jvm.scan_files(jvm.update(log)), key=lambda file: str(file.get("path")))
    assert [json.loads(file.get("stats") or "{}").get("numRecords") for file in files] == expected

    jvm.checkpoint(log)
    storage = SparkStorage(CommandSession(spark, lambda: None), str(path))
    stored = [
        action["add"] for action in storage.checkpoint_actions((f"{0:020d}.checkpoint.parquet",)) if "add" in action
    ]
    by_path = {add["path"]: json.loads(add.get("stats") or "{}").get("numRecords") for add in stored}
    assert [by_path[f"{number}.parquet"] for number in range(len(counts))] == expected

    live = adds
    for version, add in enumerate(adds, start=1):
        removes = [
            {"remove": {"path": old["add"]["path"], "deletionTimestamp": 1, "dataChange": True}}
            for old in live if old is not add
        ]  # fmt: skip
        live = [add]
        actions = [{"commitInfo": {"timestamp": version, "operation": "WRITE"}}, *removes, add]
        commit = path / "_delta_log" / f"{version:020d}.json"
        commit.write_text("".join(json.dumps(action) + "\n" for action in actions), encoding="utf-8")
    forget_logs(spark)
    facts = engine.reader.facts(TableRef(str(path)))
    monkeypatch.setattr(LiveFilesReader, "of_version", lambda reader, facts, version, **others: None)
    found = [engine.versions.row_count(facts, 1 + number, scan=False) for number in range(len(counts))]
    assert found == [12, 12, -1, -1, -1]


@pytest.mark.long
def test_statistics_settings_and_clones(spark: SparkSession, engine: DeltaTableEngine, lake: Path) -> None:
    path = lake / "stats"
    spark.sql(
        f"CREATE TABLE delta.`{path}` (a INT, s STRUCT<b: INT, c: STRING>, `d.e` INT, m MAP<INT, INT>) USING delta "
        "TBLPROPERTIES ('delta.dataSkippingNumIndexedCols'='2')"
    )
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (1, named_struct('b', 2, 'c', 'x'), 3, map(1, 1))")
    assert agreed(engine.jvm, path).columns_with_stats == ("a", "s.b")
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.dataSkippingStatsColumns'='`d.e`, s.c')")
    assert agreed(engine.jvm, path).columns_with_stats == ("s.c", "`d.e`")
    spark.sql(f"CREATE TABLE delta.`{lake}/clone` SHALLOW CLONE delta.`{path}`")
    assert agreed(engine.jvm, lake / "clone").files[0].path.startswith("file:/")
    # Kernel does not put statistics together from the columns of a checkpoint.
    spark.sql(
        f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.checkpoint.writeStatsAsJson'='false', "
        "'delta.checkpoint.writeStatsAsStruct'='true', 'delta.checkpointInterval'='1')"
    )
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (2, NULL, 3, NULL)")
    facts = agreed(engine.jvm, path, kernel=False)
    assert engine.reader.facts(facts.ref) == facts
    assert [file.physical_records for file in facts.files] == [1, 1]


def test_an_unchanged_table_is_not_read_again(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = lake / "known"
    spark.range(4).write.format("delta").save(str(path))
    reads: list[str] = []
    whole = replay_version

    def counted(storage: TableStorage, version: int | None, listed: Mapping[str, StoredFile]) -> ReplayedVersion | None:
        reads.append("read")
        return whole(storage, version, listed)

    monkeypatch.setattr(log_reader, "replay_version", counted)
    reader = LogReader(engine.jvm)
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
