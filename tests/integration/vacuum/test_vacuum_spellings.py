"""A real table that names its own files by absolute path, vacuumed through a link: no live file goes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from tests.support.product import run
from tests.support.tables.aged_tables import tree
from tests.support.tables.bind_mounts import bind_mounts
from tests.support.tables.delta_tables import age, files_on_disk, forget_logs, spark_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

POLICY = "version: 1\ntable: lake/t\nvacuum: {retention: 7d, allowLargeDelete: true}\n"


def live_paths(table: Path) -> set[str]:
    """Paths of the newest version, from the log's own text."""
    live: dict[str, dict[str, Any]] = {}
    for commit in sorted((table / "_delta_log").glob("*.json")):
        for line in commit.read_text().splitlines():
            action = json.loads(line)
            if "remove" in action:
                live.pop(action["remove"]["path"], None)
            if "add" in action:
                live[action["add"]["path"]] = action["add"]
    return set(live)


def rows_of(table: Path) -> list[int]:
    """All ids in the table's live files, by the log's text alone: delta-rs does not read absolute paths."""
    files = [table / path.removeprefix("file:") for path in live_paths(table)]
    return sorted(number for file in files for number in pq.read_table(file)["id"].to_pylist())


@pytest.mark.parametrize("reached", ["link", "mount"])
@pytest.mark.sampled(1)
def test_a_table_that_was_replaced_by_a_clone_of_its_clone(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str], reached: str
) -> None:
    disk, project = tmp_path / "disk", tmp_path / "project"
    (project / "policies").mkdir(parents=True)
    (project / "policies" / "t.yaml").write_text(POLICY)
    real, clone = disk / "t", tmp_path / "clone"
    spark.range(30).repartition(3).write.format("delta").save(str(real))
    spark.sql(f"CREATE TABLE delta.`{clone}` SHALLOW CLONE delta.`{real}`")
    needed = files_on_disk(real)
    spark.range(30, 40).repartition(2).write.format("delta").mode("overwrite").save(str(real))
    free = files_on_disk(real) - needed
    spark.sql(f"DELETE FROM delta.`{real}`")
    spark.sql(f"CREATE OR REPLACE TABLE delta.`{real}` SHALLOW CLONE delta.`{clone}`")
    assert live_paths(real) == {f"file:{real}/{name}" for name in needed}
    age(real, 10)
    forget_logs(spark)
    rows = rows_of(real)
    before = tree(real)
    with bind_mounts() as mount:
        if reached == "link":
            (project / "lake").symlink_to(disk)
        else:
            mount(disk, project / "lake")
        capsys.readouterr()
        code = run(["--project", str(project), "apply", "--yes", "-o", "json"])
        out = capsys.readouterr().out
    assert code == 0, out
    gone = before.keys() - tree(real).keys()
    assert gone == free
    assert (rows_of(real), rows) == (list(range(30)), list(range(30)))
    assert spark_rows(spark, real) == spark_rows(spark, clone)


def test_a_clone_without_a_policy_beside_its_source_keeps_its_files(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "t.yaml").write_text(POLICY)
    table, clone = tmp_path / "lake" / "t", tmp_path / "lake" / "nobodys"
    spark.range(30).repartition(3).write.format("delta").save(str(table))
    spark.sql(f"CREATE TABLE delta.`{clone}` SHALLOW CLONE delta.`{table}`")
    spark.sql(f"OPTIMIZE delta.`{table}`")
    age(table, 10)
    forget_logs(spark)
    before = tree(tmp_path / "lake")
    capsys.readouterr()
    code = run(["--project", str(tmp_path), "apply", "--yes", "-o", "json"])
    assert code == 0, capsys.readouterr().out
    assert tree(tmp_path / "lake") == before
    assert rows_of(clone) == list(range(30))
    capsys.readouterr()
    code = run(["--project", str(tmp_path), "plan", "-o", "json"])
    out = capsys.readouterr().out
    (planned,) = json.loads(out)["tables"]
    texts = [entry["reason"]["text"] for entry in planned["left_alone"] if entry["reason"]["code"] == "kept_for_clone"]
    assert (code, planned["steps"]) == (0, []), out
    assert len(texts) == 1
    assert texts[0].endswith("that lake/nobodys refers to, as a shallow clone does")
