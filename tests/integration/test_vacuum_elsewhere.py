"""A vacuum through Hadoop's file system, as on HDFS: a table behind a view file system that is mounted on this disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from maintainer.cli.main import run
from maintainer.delta.jvm import DeltaJvm
from maintainer.delta.session import SessionLease
from tests.aged_tables import tree
from tests.delta_tables import age, files_on_disk, spark_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.long]


@pytest.fixture
def mounted(lease: SessionLease, tmp_path: Path) -> str:
    """The URI of a folder on this disk, seen through Hadoop."""
    jsc: Any = lease.spark.sparkContext._jsc
    (tmp_path / "lake").mkdir()
    jsc.hadoopConfiguration().set("fs.viewfs.mounttable.cluster.link./lake", f"file://{tmp_path}/lake")
    return "viewfs://cluster/lake"


def command(project: Path, capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str]:
    capsys.readouterr()
    code = run(["--project", str(project), *args])
    return code, capsys.readouterr().out


def test_files_go_to_the_trash_come_back_and_are_deleted(
    spark: SparkSession, mounted: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "policies").mkdir()
    policy = tmp_path / "policies" / "t.yml"
    text = (
        f"version: 1\ntable: {mounted}/t\nvacuum: {{retention: 7d, allowLargeDelete: rewritten, deleteUntracked: true"
    )
    policy.write_text(f"{text}, trash: 7d}}\n")
    table = tmp_path / "lake" / "t"
    spark.range(30).repartition(3).selectExpr("id", "'a b' p").write.format("delta").partitionBy("p").save(str(table))
    old = files_on_disk(table)
    spark.sql(f"OPTIMIZE delta.`{table}`")
    (table / "child" / "_delta_log").mkdir(parents=True)
    (table / "child" / "x.parquet").write_bytes(b"another table's")
    (table / "aborted write.parquet").write_bytes(b"nobody's")
    age(table, 40)
    DeltaJvm(spark).forget_logs()
    rows, before = spark_rows(spark, table), tree(table)
    code, out = command(tmp_path, capsys, "apply", "-o", "json")
    assert code == 0, out
    run_id = json.loads(out)["run_id"]
    after = tree(table)
    assert before.keys() - after.keys() == old | {"aborted write.parquet"}
    assert {path: after[path] for path in before.keys() & after.keys()} == {
        path: before[path] for path in before.keys() & after.keys()
    }
    assert spark_rows(spark, table) == rows
    code, out = command(tmp_path, capsys, "undelete", f"{mounted}/t", "--run", run_id)
    assert (code, "4 files (" in out) == (0, True), out
    restored = tree(table)
    assert {path: restored[path] for path in before} == before
    policy.write_text(f"{text}}}\n")
    code, out = command(tmp_path, capsys, "apply", "-o", "json")
    assert code == 0, out
    assert before.keys() - tree(table).keys() == old | {"aborted write.parquet"}
    assert spark_rows(spark, table) == rows
    version = max(one.name for one in (table / "_delta_log").glob("*.json"))
    code, out = command(tmp_path, capsys, "apply", "-o", "json")
    assert code == 0, out
    assert max(one.name for one in (table / "_delta_log").glob("*.json")) == version
