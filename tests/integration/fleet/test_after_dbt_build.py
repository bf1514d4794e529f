"""examples/after_dbt_build.py is run as it is: on tables of a manifest of dbt, and where nothing can be done."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "after_dbt_build.py"
MODELS = ("orders", "returns", "somebody_elses")

pytestmark = [pytest.mark.spark, pytest.mark.nightly]


def manifest(folder: Path) -> None:
    """What dbt writes of models: a name with or without backticks, and none for what becomes no table."""
    names = [f"`dbt_build`.`{MODELS[0]}`", *(f"dbt_build.{name}" for name in MODELS[1:]), None]
    nodes = {f"model.shop.{number}": {"relation_name": name} for number, name in enumerate(names)}
    (folder / "target").mkdir()
    (folder / "target" / "manifest.json").write_text(json.dumps({"nodes": nodes}), encoding="utf-8")


def test_what_dbt_built_and_a_policy_manages_is_maintained(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "after_dbt_build.py"
    script.write_text(EXAMPLE.read_text(encoding="utf-8").replace("/opt/lake-policies", str(tmp_path / "policies")))
    (tmp_path / "policies" / "policies").mkdir(parents=True)
    runpy.run_path(str(script))
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("no maintenance after this build: ")

    manifest(tmp_path)
    (tmp_path / "policies" / "maintainer.yml").write_text("version: 1\nenvironments: {prod: {}}\n", encoding="utf-8")
    for name in ("orders", "returns", "untouched"):
        policy = f"version: 1\ntable: dbt_build.{name}\n"
        (tmp_path / "policies" / "policies" / f"{name}.yml").write_text(policy, encoding="utf-8")
    spark.sql(f"CREATE DATABASE dbt_build LOCATION '{tmp_path / 'lake'}'")
    try:
        for name in (*MODELS, "untouched"):
            for number in range(3):
                rows = spark.range(number * 10, number * 10 + 10, 1, 1).write.format("delta").mode("append")
                rows.saveAsTable(f"dbt_build.{name}")
        runpy.run_path(str(script))
        out, err = capsys.readouterr()
        assert "2 tables" in out, (out, err)
        assert err == ""
        files = {name: len(spark.table(f"dbt_build.{name}").inputFiles()) for name in (*MODELS, "untouched")}
        assert files == {"orders": 1, "returns": 1, "somebody_elses": 3, "untouched": 3}
        assert spark.table("dbt_build.orders").count() == 30
    finally:
        spark.sql("DROP DATABASE dbt_build CASCADE")
