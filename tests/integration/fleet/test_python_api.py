"""The Python API on real tables: what it returns, what it raises, and that a borrowed session stays as it was."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import deltalake
import pytest

from maintainer import Project, RunFailed
from maintainer.errors import ExitCode, ProjectError
from maintainer.model.run.outcome import TableStatus

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_plan_apply_and_apply_again(spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for number in range(3):
        spark.range(number * 10, number * 10 + 10, 1, 1).write.format("delta").mode("append").save(str(tmp_path / "t"))
    (tmp_path / "maintainer.yml").write_text("version: 1\n", encoding="utf-8")
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "t.yml").write_text("version: 1\ntable: ./t\ntags: [nightly]\n", encoding="utf-8")
    (tmp_path / "policies" / "gone.yml").write_text("version: 1\ntable: ./gone\n", encoding="utf-8")
    own = spark.newSession()
    before = {row["key"]: row["value"] for row in own.sql("SET").collect()}
    project = Project.load(tmp_path)
    assert project.tables() == ("./gone", "./t")
    capfd.readouterr()

    plan = project.plan(own, select=["tag:nightly"])
    assert [step.kind for _, step in plan.steps()] == ["compact"]
    result = project.apply(own, plan)
    assert result.exit_code is ExitCode.OK
    assert result.raise_for_status() is result
    (table,) = result.outcome.tables
    assert (table.status, table.steps[0].commits[0].version) == (TableStatus.DONE, 3)
    assert sorted(deltalake.DeltaTable(str(tmp_path / "t")).to_pyarrow_table()["id"].to_pylist()) == list(range(30))
    assert (result.run_folder / "results.json").is_file()

    again = project.apply(own, select=["tag:nightly"])
    assert [table.status for table in again.outcome.tables] == [TableStatus.UP_TO_DATE]
    with pytest.raises(ValueError, match="a plan says by itself"):
        project.apply(own, plan, select=["t"])
    with pytest.raises(ProjectError):
        project.plan(own, select=["nobody"])
    everything = project.apply(own)
    with pytest.raises(RunFailed) as caught:
        everything.raise_for_status()
    assert caught.value.result is everything
    assert "./gone (failed)" in (caught.value.found or "")
    assert {row["key"]: row["value"] for row in own.sql("SET").collect()} == before
    assert capfd.readouterr().out == ""
