"""Facts read from the log without Spark equal those of Spark's own Delta, for a zoo of tables."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from maintainer.delta.jvm import DeltaJvm
from maintainer.delta.kernel_reader import KernelReader
from maintainer.delta.live_files import live_files
from maintainer.delta.session import SessionLease
from maintainer.delta.spark_reader import SparkReader
from maintainer.delta.table_engine import DeltaEngine, DeltaTableEngine
from maintainer.model.table import TableFacts, TableRef

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def engine(lease: SessionLease) -> Iterator[DeltaTableEngine]:
    with DeltaEngine(lease).worker("agree") as worker:
        yield worker


def agreed(jvm: DeltaJvm, path: Path, *, kernel: bool | None = True) -> TableFacts:
    """Facts by both readers, equal; and where Kernel reads them, each file's action equals Spark's.

    ``kernel`` says whether Kernel is to read the table; None: it may.
    """
    jvm.forget_logs()
    ref, root = TableRef(str(path)), jvm.hadoop_path(str(path))
    by_spark = SparkReader(jvm).facts(ref, root)
    by_kernel = KernelReader(jvm).facts(ref, root)
    assert kernel is None or (by_kernel is not None) == kernel
    if by_kernel is not None:
        assert by_kernel == by_spark
        log = jvm.log_of_root(root)
        snapshot = jvm.update(log)
        handles = live_files(jvm, log, snapshot, by_spark.file_keys)
        assert set(handles) == by_spark.file_keys
        wanted = {one["path"]: one for one in jvm.scan_files(snapshot)[1]}
        for (name, _), handle in handles.items():
            found = json.loads(handle.json())["add"]
            assert found == {**found, **{key: value for key, value in wanted[name].items() if value is not None}}
    return by_spark


def make_everything_v2(spark: SparkSession, path: Path) -> None:
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT, v VARIANT, n TIMESTAMP_NTZ) USING delta TBLPROPERTIES ("
        "'delta.checkpointPolicy'='v2', 'delta.checkpointInterval'='2', 'delta.enableInCommitTimestamps'='true', "
        "'delta.enableRowTracking'='true', 'delta.enableDeletionVectors'='true', 'delta.enableTypeWidening'='true')"
    )
    for number in range(3):
        spark.sql(f"INSERT INTO delta.`{path}` SELECT id, parse_json('[{number}]'), NULL FROM range(0, 20, 1, 2)")
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 3")


def test_every_form_of_checkpoint(spark: SparkSession, engine: DeltaTableEngine, lake: Path) -> None:
    make_everything_v2(spark, lake / "v2")
    assert list((lake / "v2" / "_delta_log").glob("*.checkpoint.*-*.*"))
    assert len(agreed(engine.jvm, lake / "v2").files) == 6
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


def test_an_unchanged_table_is_not_read_again(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = lake / "known"
    spark.range(4).write.format("delta").save(str(path))
    reads: list[str] = []
    whole = DeltaJvm.kernel_snapshot

    def counted(self: DeltaJvm, *given: object) -> object:
        reads.append("read")
        return whole(self, *given)  # type: ignore[arg-type]  # passed on as they came

    monkeypatch.setattr(DeltaJvm, "kernel_snapshot", counted)
    reader = KernelReader(engine.jvm)
    root = engine.jvm.hadoop_path(str(path))

    def look() -> TableFacts:
        found = reader.facts(TableRef(str(path)), root)
        assert found is not None
        return found

    first = look()
    assert look() is first
    assert len(reads) == 1
    spark.range(4).write.format("delta").mode("append").save(str(path))
    assert look().version == 1
    assert look().version == 1
    assert len(reads) == 2
    shutil.rmtree(path)
    assert reader.facts(TableRef(str(path)), root) is None
    for number in (5, 6):
        spark.range(number).write.format("delta").mode("append").save(str(path))
    assert look().version == 1
    assert sum(one.physical_records or 0 for one in look().files) == 11
