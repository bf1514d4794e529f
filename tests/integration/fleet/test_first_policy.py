"""The README's first policy, a purge and a vacuum, in a session that was started before: `make matrix` runs it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from tests.support.product import run
from tests.support.tables.aged_tables import AgedTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.long]

README = (Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8")
POLICIES = {
    "old": "vacuum: {retention: 7d, allowLargeDelete: true}\n",
    "halves": "optimize: {purge: {}, quietAfterUpdates: 0s}\n",
}


def rows_of(spark: SparkSession, path: Path) -> list[tuple[object, ...]]:
    frame = spark.read.format("delta").load(str(path))
    return sorted(tuple(row) for row in frame.select(*sorted(frame.columns)).collect())


def test_the_first_policy_a_purge_and_a_vacuum(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake, policies = tmp_path / "lake", tmp_path / "policies"
    policies.mkdir()
    first = re.search(r"```yaml\n(.*?)```", README, flags=re.DOTALL)
    assert first is not None
    (policies / "orders.yaml").write_text(first[1], encoding="utf-8")
    for name, text in POLICIES.items():
        (policies / f"{name}.yaml").write_text(f"version: 1\ntable: lake/{name}\n{text}", encoding="utf-8")
    for number in range(5):
        rows = spark.range(number * 400, number * 400 + 400, 1, 1)
        rows.selectExpr("id", "id % 7 customer_id", "id % 11 product_id").write.format("delta").mode("append").save(
            str(lake / "orders")
        )
    spark.range(0, 300, 1, 1).write.format("delta").option("delta.enableDeletionVectors", "true").save(
        str(lake / "halves")
    )
    spark.sql(f"DELETE FROM delta.`{lake / 'halves'}` WHERE id % 2 = 0")
    old = AgedTable(lake / "old")
    old.append(30, "old.parquet", "one.parquet", "three.parquet")
    old.delete(20, "old.parquet")
    before = {name: rows_of(spark, lake / name) for name in ("orders", "halves", "old")}

    code = run(["--project", str(tmp_path), "apply", "--yes"])
    assert code == 0, "\n".join(capsys.readouterr())
    assert {name: rows_of(spark, lake / name) for name in before} == before
    orders = DeltaTable(str(lake / "orders"))
    assert len(orders.file_uris()) == 1
    assert "OPTIMIZE" in {entry["operation"] for entry in orders.history()}
    assert orders.metadata().configuration["delta.autoOptimize.autoCompact"] == "true"
    assert all(not file["deletionVector"] for file in live_files(lake / "halves"))
    assert not (lake / "old" / "old.parquet").exists()
    code = run(["--project", str(tmp_path), "verify", "lake/orders"])
    assert code == 0, "\n".join(capsys.readouterr())

    versions = {name: DeltaTable(str(lake / name)).version() for name in ("orders", "old")}
    assert run(["--project", str(tmp_path), "apply", "--yes"]) == 0
    assert {name: DeltaTable(str(lake / name)).version() for name in versions} == versions


def live_files(path: Path) -> list[dict[str, object]]:
    """Path and deletion vector of each live file, from the log's own JSON."""
    live: dict[str, dict[str, object]] = {}
    for commit in sorted((path / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in commit.read_text(encoding="utf-8").splitlines()]
        for action in actions:
            if "remove" in action:
                live.pop(action["remove"]["path"], None)
        for action in actions:
            if "add" in action:
                live[action["add"]["path"]] = {"deletionVector": None, **action["add"]}
    return list(live.values())
