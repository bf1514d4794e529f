"""Facts of real tables: what is read equals what Delta's own commands and the log say."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.product import DeltaEngine, DeltaTableEngine, SessionLease, TableError, TableRef, java_quote
from tests.support.tables.delta_tables import bytes_of, forget_logs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.sampled(3), pytest.mark.nightly]


@pytest.fixture(scope="module")
def engine(lease: SessionLease) -> Iterator[DeltaTableEngine]:
    with DeltaEngine(lease).worker("facts") as worker:
        yield worker


def test_plain_table(spark: SparkSession, engine: DeltaTableEngine, lake: Path) -> None:
    path = lake / "a b%20c"
    spark.range(100).selectExpr("id", "id / 2.0d AS half").repartition(3).write.format("delta").save(str(path))
    before = bytes_of(path)
    facts = engine.reader.facts(TableRef(str(path)))
    assert bytes_of(path) == before
    assert facts.location == (lake / "a b%20c").as_uri().replace("file://", "file:")
    assert (facts.version, facts.columns, facts.partition_columns) == (0, ("id", "half"), ())
    assert facts.columns_with_stats == ("id", "half")
    assert len(facts.files) == 3
    assert sum(file.physical_records or 0 for file in facts.files) == 100
    assert facts.size_bytes == sum(file.stat().st_size for file in path.glob("*.parquet"))
    assert (facts.protocol.min_reader_version, facts.protocol.min_writer_version) == (1, 2)
    assert facts.clustering_columns == ()
    assert engine.reader.facts(facts.ref) == facts


def test_partitions_mapping_and_deletion_vectors_under_logical_names(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path
) -> None:
    path = lake / "t"
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT, day STRING, note STRING) USING delta PARTITIONED BY (day) "
        "TBLPROPERTIES ('delta.columnMapping.mode'='name', 'delta.enableDeletionVectors'='true')"
    )
    spark.range(20).selectExpr("id", "if(id < 10, 'a b', NULL) day", "'x' note").coalesce(1).write.format("delta").mode(
        "append"
    ).save(str(path))
    spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN day TO date")
    spark.sql(f"ALTER TABLE delta.`{path}` DROP COLUMN note")
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id IN (1, 2, 3)")
    facts = engine.reader.facts(TableRef(str(path)))
    assert facts.columns == ("id", "date")
    assert facts.partition_columns == ("date",)
    by_value = {file.partition_values: file for file in facts.files}
    assert set(by_value) == {(("date", "a b"),), (("date", None),)}
    deleted = by_value[(("date", "a b"),)]
    assert deleted.deletion_vector is not None
    assert (deleted.physical_records, deleted.deleted_records, deleted.live_records) == (10, 3, 7)
    log = (path / "_delta_log" / f"{facts.version:020d}.json").read_text()
    add = next(json.loads(line)["add"] for line in log.splitlines() if line.startswith('{"add"'))
    vector = add["deletionVector"]
    assert deleted.deletion_vector.unique_id == f"u{vector['pathOrInlineDv']}@{vector['offset']}"
    assert deleted.path == add["path"]
    assert by_value[(("date", None),)].deletion_vector is None


def test_columns_with_stats_follow_properties_and_types(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path
) -> None:
    columns = (
        "i INT, s STRUCT<a: INT, b: STRUCT<c: STRING>>, m MAP<STRING, INT>, l ARRAY<INT>, b BOOLEAN, y BINARY, "
        "d DECIMAL(9,2), t TIMESTAMP, `dot.ted` INT, last INT"
    )
    spark.sql(f"CREATE TABLE delta.`{lake}/all` ({columns}) USING delta")
    facts = engine.reader.facts(TableRef(f"{lake}/all"))
    assert facts.columns_with_stats == ("i", "s.a", "s.b.c", "d", "t", "`dot.ted`", "last")
    spark.sql(f"ALTER TABLE delta.`{lake}/all` SET TBLPROPERTIES ('delta.dataSkippingNumIndexedCols'='2')")
    assert engine.reader.facts(facts.ref).columns_with_stats == ("i", "s.a")
    spark.sql(f"ALTER TABLE delta.`{lake}/all` SET TBLPROPERTIES ('delta.dataSkippingStatsColumns'='last,s.b')")
    assert engine.reader.facts(facts.ref).columns_with_stats == ("s.b.c", "last")


def test_clustering_columns_are_logical(spark: SparkSession, engine: DeltaTableEngine, lake: Path) -> None:
    path = lake / "clustered"
    spark.sql(f"CREATE TABLE delta.`{path}` (a INT, s STRUCT<b: INT>) USING delta CLUSTER BY (a, s.b)")
    facts = engine.reader.facts(TableRef(str(path)))
    assert facts.clustering_columns == ("a", "s.b")
    assert "clustering" in facts.protocol.writer_features


def test_catalog_names(spark: SparkSession, engine: DeltaTableEngine, lake: Path) -> None:
    try:
        spark.sql(f"CREATE TABLE facts_named USING delta LOCATION '{lake}/named' AS SELECT 1 AS id")
        spark.sql("CREATE OR REPLACE VIEW facts_view AS SELECT * FROM facts_named")
        spark.sql(f"CREATE TABLE facts_parquet USING parquet LOCATION '{lake}/pq' AS SELECT 1 AS id")
        facts = engine.reader.facts(TableRef("default.facts_named"))
        assert (facts.version, facts.columns) == (0, ("id",))
        assert facts.location == f"file:{lake}/named"
        for name, code in (("facts_view", "T402"), ("facts_parquet", "T402"), ("facts_nothing", "T401")):
            with pytest.raises(TableError) as caught:
                engine.reader.facts(TableRef(name))
            assert caught.value.code == code
        with pytest.raises(TableError) as caught:
            engine.reader.facts(TableRef("no_such_schema.t"))
        assert caught.value.code == "T401"
    finally:
        spark.sql("DROP VIEW IF EXISTS facts_view")
        for name in ("facts_named", "facts_parquet"):
            spark.sql(f"DROP TABLE IF EXISTS {name}")


def test_no_table_no_log_and_broken_log(spark: SparkSession, engine: DeltaTableEngine, lake: Path) -> None:
    (lake / "empty").mkdir()
    broken = lake / "broken"
    spark.range(3).write.format("delta").save(str(broken))
    log = broken / "_delta_log" / "00000000000000000000.json"
    log.write_text(log.read_text()[:-40])
    (broken / "_delta_log" / ".00000000000000000000.json.crc").unlink(missing_ok=True)
    (broken / "_delta_log" / "00000000000000000000.crc").unlink(missing_ok=True)
    future = lake / "future"
    spark.range(3).write.format("delta").save(str(future))
    with (future / "_delta_log" / "00000000000000000001.json").open("w") as out:
        protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["x"], "writerFeatures": ["x"]}
        out.write(json.dumps({"protocol": protocol}) + "\n")
    before = bytes_of(lake)
    forget_logs(engine.jvm.spark)
    for name, code in (("nothing", "T401"), ("empty", "T402"), ("broken", "T403"), ("future", "T404")):
        with pytest.raises(TableError) as caught:
            engine.reader.facts(TableRef(str(lake / name)))
        assert (name, caught.value.code) == (name, code)
        assert "\n\tat " not in caught.value.render()
    assert bytes_of(lake) == before


def test_a_table_created_again_is_seen_as_the_new_one(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path
) -> None:
    path = lake / "again"
    for _ in range(3):
        spark.range(5).write.format("delta").mode("append").save(str(path))
    old = engine.reader.facts(TableRef(str(path)))
    shutil.rmtree(path)
    with pytest.raises(TableError) as caught:
        engine.reader.facts(old.ref)
    assert caught.value.code == "T401"
    spark.range(7).write.format("delta").save(str(path))
    new = engine.reader.facts(old.ref)
    assert (old.version, new.version) == (2, 0)
    assert new.table_id != old.table_id
    assert sum(file.physical_records or 0 for file in new.files) == 7


def test_java_quote_is_what_hadoop_says(engine: DeltaTableEngine, lake: Path) -> None:
    names = ["plain", "p=a b", "p=a%3Db", "%25"]
    names += ['p=#?[]{}|^`"\\<>', "p=é漢🎉", "p=a\u00a0b\u2003c", "p=~!$&'()*+,;=:@"]
    for name in names:
        (lake / name).mkdir()
    listed = {file.as_posix() for file in lake.iterdir()}
    jvm = engine.jvm
    for text in listed:
        uri = str(jvm.hadoop_path(text).toUri().toString())
        assert java_quote(text) == uri
