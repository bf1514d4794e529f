"""How files are written: as the table says and OPTIMIZE honours it, and never as some session happens to be set."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow.parquet as pq
import pytest

from tests.support.product import DeltaEngine, DeltaTableEngine, SessionLease, TableRef
from tests.support.runs.rewrites import partition_values, rewrite
from tests.support.tables.delta_tables import actions_of, forget_logs, second_engine_rows, spark_rows
from tests.support.tables.feature_tables import TABLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.sampled(1), pytest.mark.nightly]


@pytest.fixture(scope="module")
def engine(lease: SessionLease) -> Iterator[DeltaTableEngine]:
    with DeltaEngine(lease).worker("writer settings") as worker:
        yield worker


HOSTILE = {
    "spark.sql.parquet.compression.codec": "gzip",
    "spark.sql.files.maxRecordsPerFile": "1",
    "spark.sql.parquet.writeLegacyFormat": "true",
    "spark.sql.parquet.outputTimestampType": "INT96",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInRead": "LEGACY",
    "spark.sql.session.timeZone": "America/St_Johns",
    "spark.sql.parquet.fieldId.write.enabled": "false",
    "spark.databricks.delta.stats.collect": "false",
    "spark.databricks.delta.write.utcTimestampPartitionValues": "false",
    "spark.databricks.delta.optimizeWrite.enabled": "true",
    "spark.databricks.delta.autoCompact.enabled": "true",
    "spark.databricks.delta.properties.defaults.enableDeletionVectors": "true",
    "spark.databricks.delta.properties.defaults.dataSkippingNumIndexedCols": "1",
}
"""What a colleague's ``spark-defaults.conf`` may say."""


def test_no_writer_setting_of_the_session_gets_into_the_files(
    spark: SparkSession, lease: SessionLease, lake: Path
) -> None:
    path = lake / "t"
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id INT, d DATE, ts TIMESTAMP, n DECIMAL(9,2), a ARRAY<INT>, p TIMESTAMP) "
        "USING delta PARTITIONED BY (p)"
    )
    for _ in range(2):
        spark.sql(
            f"INSERT INTO delta.`{path}` VALUES (1, DATE'1500-02-28', TIMESTAMP'1500-02-28 00:00:00', 1.5, array(1), "
            "TIMESTAMP'2024-01-01 00:00:00'), (2, NULL, NULL, NULL, NULL, TIMESTAMP'2024-01-01 00:00:00')"
        )
    rows, second = spark_rows(spark, path), second_engine_rows(path)
    conf: Any = lease.spark.sparkContext._jsc.sc().conf()
    before = {key: conf.getOption(key) for key in HOSTILE}
    for key, value in HOSTILE.items():
        conf.set(key, value)
    try:
        with DeltaEngine(lease).worker("hostile") as engine:
            receipt = rewrite(engine, path, TABLES["append only"], "compact")
    finally:
        for key, old in before.items():
            conf.set(key, old.get()) if old.isDefined() else conf.remove(key)
    assert receipt.num_files_added == 1
    actions = actions_of(path, receipt.version)
    (add,) = [action["add"] for action in actions if "add" in action]
    stats = json.loads(add["stats"])
    assert (stats["numRecords"], stats["minValues"]["id"], stats["maxValues"]["id"]) == (4, 1, 2)
    assert stats["minValues"]["d"] == "1500-02-28"
    assert partition_values(actions, "add") == partition_values(actions, "remove")
    removed = next(action["remove"]["path"] for action in actions if "remove" in action)
    new, old = (pq.ParquetFile(_on_disk(path, name)) for name in (add["path"], removed))
    # As the table's own writer wrote it, column by column: the physical and logical types and the codec.
    assert _columns(new) == _columns(old)
    assert {new.metadata.row_group(0).column(n).compression for n in range(new.metadata.num_columns)} == {"SNAPPY"}
    assert spark_rows(spark, path) == rows
    assert second_engine_rows(path) == second


def _on_disk(path: Path, relative: str) -> str:
    return str(path / unquote(relative))


def _columns(file: Any) -> list[tuple[str, str, str]]:
    """Path, physical and logical type of each column of a Parquet file."""
    columns = (file.schema.column(number) for number in range(len(file.schema)))
    return [(column.path, column.physical_type, str(column.logical_type)) for column in columns]


WRITER_PROPERTIES = {
    "the first two columns have statistics": "'delta.dataSkippingNumIndexedCols' = '2'",
    "chosen columns have statistics": "'delta.dataSkippingStatsColumns' = 'v,s.y'",
    "no column has statistics": "'delta.dataSkippingNumIndexedCols' = '0'",
    "random prefixes": "'delta.randomizeFilePrefixes' = 'true', 'delta.randomPrefixLength' = '4'",
    "statistics as structs": "'delta.checkpoint.writeStatsAsStruct' = 'true', 'delta.checkpoint.writeStatsAsJson' = "
    "'false', 'delta.checkpointInterval' = '1'",
    "parquet format 2.12": "'delta.parquet.format.version' = '2.12.0'",
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(key, marks=() if key.startswith("chosen") else (pytest.mark.long,)) for key in WRITER_PROPERTIES],
)
def test_the_tables_own_writer_properties_are_honoured_as_by_optimize(
    name: str, spark: SparkSession, engine: DeltaTableEngine, lake: Path
) -> None:
    spark.sql(
        f"CREATE TABLE delta.`{lake}/ours` (id INT, t STRING, v STRING, s STRUCT<x: INT, y: INT>) USING delta "
        f"TBLPROPERTIES ({WRITER_PROPERTIES[name]})"
    )
    for number in (1, 2):
        spark.sql(
            f"INSERT INTO delta.`{lake}/ours` VALUES ({number}, repeat('long', 20), 'v', named_struct('x', 1, 'y', 2))"
        )
    shutil.copytree(lake / "ours", lake / "theirs")
    receipt = rewrite(engine, lake / "ours", TABLES["append only"], "compact")
    spark.sql(f"OPTIMIZE delta.`{lake}/theirs`")
    ours, theirs = (
        next(action["add"] for action in actions_of(lake / table, receipt.version) if "add" in action)
        for table in ("ours", "theirs")
    )
    assert json.loads(ours["stats"]) == json.loads(theirs["stats"])
    assert ours["path"].count("/") == theirs["path"].count("/")
    # Folders that Delta draws at random are as long as its own; names of files begin with the run that wrote them.
    assert len(ours["path"].rpartition("/")[0]) == len(theirs["path"].rpartition("/")[0])
    new, reference = (
        pq.ParquetFile(_on_disk(lake / table, add["path"])) for table, add in (("ours", ours), ("theirs", theirs))
    )
    assert _columns(new) == _columns(reference)
    assert new.metadata.format_version == reference.metadata.format_version
    forget_logs(engine.jvm.spark)
    assert [file.physical_records for file in engine.reader.facts(TableRef(f"{lake}/ours")).files] == [2]
