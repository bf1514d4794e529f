"""The Python API on real tables: what it returns, what it raises, and that a borrowed session stays as it was."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import deltalake
import pytest

from maintainer import Project, RunFailed
from tests.support.product import ExitCode, ProjectError, TableStatus
from tests.support.product import run as command

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.nightly, pytest.mark.sampled(1)]


def write_table(spark: SparkSession, path: Path) -> None:
    """Write thirty rows in three commits of one file each."""
    for number in range(3):
        spark.range(number * 10, number * 10 + 10, 1, 1).write.format("delta").mode("append").save(str(path))


@pytest.fixture
def root(spark: SparkSession, tmp_path: Path) -> Path:
    """A project with a table of three small files, and a policy of a table that is gone."""
    write_table(spark, tmp_path / "t")
    (tmp_path / "maintainer.yml").write_text("version: 1\n", encoding="utf-8")
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "t.yml").write_text("version: 1\ntable: ./t\ntags: [nightly]\n", encoding="utf-8")
    (tmp_path / "policies" / "gone.yml").write_text("version: 1\ntable: ./gone\n", encoding="utf-8")
    return tmp_path


def test_plan_apply_and_apply_again(spark: SparkSession, root: Path, capfd: pytest.CaptureFixture[str]) -> None:
    own = spark.newSession()
    before = {row["key"]: row["value"] for row in own.sql("SET").collect()}
    project = Project.load(root)
    assert [table.name for table in project.tables()] == ["./gone", "./t"]
    capfd.readouterr()

    plan = project.plan(own, select=["tag:nightly"])
    assert [step.kind for _, step in plan.steps] == ["compact"]
    run = project.apply(own, project.read_plan(plan.save(root / "plan.json")))
    assert run.exit_code is ExitCode.OK
    assert run.raise_for_status() is run
    (table,) = run.outcome.tables
    assert (table.status, table.steps[0].commits[0].version) == (TableStatus.DONE, 3)
    assert sorted(deltalake.DeltaTable(str(root / "t")).to_pyarrow_table()["id"].to_pylist()) == list(range(30))

    again = project.apply(own, select=["tag:nightly"])
    assert [table.status for table in again.outcome.tables] == [TableStatus.UP_TO_DATE]
    with pytest.raises(ValueError, match="a plan already names its tables"):
        project.apply(own, plan, select=["t"])
    with pytest.raises(ProjectError):
        project.plan(own, select=["nobody"])
    everything = project.apply(own)
    with pytest.raises(RunFailed) as caught:
        everything.raise_for_status()
    assert caught.value.run is everything
    assert "./gone (failed)" in (caught.value.found or "")
    assert {row["key"]: row["value"] for row in own.sql("SET").collect()} == before
    assert capfd.readouterr().out == ""


def test_a_run_leaves_the_files_that_one_of_the_command_line_leaves(
    spark: SparkSession, root: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    project = Project.load(root)
    by_api = project.apply(select=["tag:nightly"])
    spark.range(10, 20, 1, 1).write.format("delta").mode("append").save(str(root / "t"))
    spark.range(20, 30, 1, 1).write.format("delta").mode("append").save(str(root / "t"))
    assert command(["--project", str(root), "apply", "--yes", "-s", "tag:nightly"]) == 0
    capfd.readouterr()
    by_command = max((root / ".maintainer" / "runs").iterdir())
    assert by_command != by_api.run_folder
    names = {path.name for path in by_api.run_folder.iterdir()}
    assert {"plan.json", "events.jsonl", "results.json", "report.html", "junit.xml"} <= names
    assert names == {path.name for path in by_command.iterdir()}
    assert by_api.report() == by_api.run_folder / "report.html"
    assert by_api.id in by_api.report().read_text(encoding="utf-8")


def test_looking_prints_what_the_commands_print(
    spark: SparkSession, root: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    project = Project.load(root)
    table = project.table("./t")
    run = table.apply(spark)
    said = {
        "why": str(table.why()),
        "explain": str(table.explain()),
        "status": str(project.status(select=["tag:nightly"])),
        "history": str(project.history()),
        "history t": str(table.history()),
        "show": run.to_text(),
    }
    lines = {
        "why": ["why", "./t"],
        "explain": ["explain", "./t"],
        "status": ["status", "-s", "tag:nightly"],
        "history": ["history"],
        "history t": ["history", "./t"],
        "show": ["show", run.id],
    }
    for name, line in lines.items():
        capfd.readouterr()
        assert command(["--project", str(root), *line]) == 0
        assert capfd.readouterr().out.rstrip() == said[name].rstrip(), name
    (row,) = table.status(spark)
    assert (row.table, row.state, row.last_proof) == ("./t", "ok", "pass")
    assert [row.step for row in table.history(ours=True)] == ["compact"]
    assert table.history().to_dicts()[0]["step"] == "compact"
    assert run.id in project.fleet_report(out=root / "fleet.html").read_text(encoding="utf-8")
