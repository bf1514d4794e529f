"""The commands for fleets on real tables: a budget, a watch until nothing is left, a retry of what was left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.product import run
from tests.support.tables.sick_tables import rows_and_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def small_files(spark: SparkSession, path: Path, num_files: int) -> None:
    spark.range(0, num_files * 10, 1, num_files).write.format("delta").mode("append").save(str(path))


@pytest.mark.long
def test_budget_watch_and_retry(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "policies").mkdir()
    for name, num_files in (("few", 2), ("many", 9)):
        small_files(spark, tmp_path / name, num_files)
        (tmp_path / "policies" / f"{name}.yml").write_text(f"version: 1\ntable: ./{name}\n", encoding="utf-8")
    (tmp_path / "maintainer.yml").write_text("version: 1\n", encoding="utf-8")
    here = ["--project", str(tmp_path)]

    assert run([*here, "plan", "-o", "json", "--budget-files", "10"]) == 0
    tables = {table["ref"]["identifier"]: table for table in json.loads(capsys.readouterr().out)["tables"]}
    assert [step["kind"] for step in tables["./many"]["steps"]] == ["compact"]
    assert tables["./few"]["steps"] == []
    waits = tables["./few"]["left_alone"][-1]["reason"]
    assert waits["code"] == "over_budget"
    assert "place 1 of 1 in the queue" in waits["text"]

    assert run([*here, "apply", "--yes", "--budget-files", "10"]) == 0
    assert rows_and_files(tmp_path / "many") == (list(range(90)), 1)
    assert rows_and_files(tmp_path / "few") == (list(range(20)), 2)
    assert run([*here, "watch", "--yes", "--until-idle", "--interval", "1s"]) == 0
    assert rows_and_files(tmp_path / "few") == (list(range(20)), 1)
    assert "2 looks, 1 run" in capsys.readouterr().err

    log = tmp_path / "many" / "_delta_log"
    log.rename(tmp_path / "many_log")
    assert run([*here, "apply", "--yes"]) == 1
    (tmp_path / "many_log").rename(log)
    small_files(spark, tmp_path / "many", 3)
    small_files(spark, tmp_path / "few", 3)
    capsys.readouterr()
    assert run([*here, "retry", "--yes"]) == 0
    assert "1 table of run" in capsys.readouterr().err
    assert [rows_and_files(tmp_path / name)[1] for name in ("many", "few")] == [1, 4]
    assert run([*here, "retry", "--yes"]) == 0
    assert capsys.readouterr().out.startswith("Nothing is left of run ")
