"""``maintainer inventory`` on a real catalog and on folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.product import run
from tests.support.tables.sick_tables import make_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.long]


def test_catalog_and_folders(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spark.sql("CREATE DATABASE IF NOT EXISTS stock")
    for name, provider in (("known", "delta"), ("new_one", "delta"), ("other", "parquet")):
        spark.sql(f"CREATE TABLE stock.{name} (id INT) USING {provider} LOCATION '{tmp_path}/w/{name.strip('`')}'")
    spark.sql("CREATE VIEW stock.seen AS SELECT * FROM stock.known")
    make_table(tmp_path / "lake" / "deep" / "t")
    (tmp_path / "policies").mkdir()
    (tmp_path / "maintainer.yml").write_text("version: 1\n", encoding="utf-8")
    (tmp_path / "policies" / "k.yml").write_text("version: 1\ntable: stock.known\n", encoding="utf-8")

    def tables(*options: str) -> dict[str, str]:
        capsys.readouterr()
        assert run(["--project", str(tmp_path), "inventory", "-o", "json", *options]) == 0
        document: dict[str, Any] = json.loads(capsys.readouterr().out)
        return {table["table"]: table["care"] for table in document["tables"]}

    try:
        assert tables() == {"stock.known": "managed", "stock.new_one": "unmanaged"}
        assert tables(str(tmp_path / "lake")) == {"lake/deep/t": "unmanaged"}
        assert tables(str(tmp_path), "--unmanaged") == {"stock.new_one": "unmanaged", "lake/deep/t": "unmanaged"}
        tables(str(tmp_path), "--write")
        assert set(tables(str(tmp_path)).values()) == {"managed"}
        assert run(["--project", str(tmp_path), "plan", "-o", "json"]) == 0
    finally:
        spark.sql("DROP DATABASE stock CASCADE")
