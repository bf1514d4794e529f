"""An apply is killed; one complete apply later ledger, history, show, report and the tables' logs agree.

What every test here leaves behind is compared as a whole by the checker of truth that runs after it.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pytest

from tests.support.faults.killed_apply import DELETIONS
from tests.support.product import run
from tests.support.tables.delta_tables import age, files_on_disk, forget_logs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A whole apply in a process of its own, and one here: minutes on a busy machine.
pytestmark = [pytest.mark.spark, pytest.mark.nightly, pytest.mark.timeout(900)]

ROOT = Path(__file__).resolve().parents[2]
NUM_OLD = 60
POLICY = """\
version: 1
table: lake/t
properties: {delta.logRetentionDuration: interval 45 days}
optimize: {when: {minSmallFiles: 2}}
vacuum: {retention: 7d, allowLargeDelete: true}
"""
TURNS = """\
version: 1
table: lake/t
optimize:
  maxFileSize: 64KiB
  zorder: {columns: [a, b], batchBytes: 40000}
"""


def make_project(spark: SparkSession, project: Path, policy: str) -> Path:
    (project / "policies").mkdir(parents=True)
    (project / "maintainer.yml").write_text("version: 1\n", encoding="utf-8")
    (project / "policies" / "t.yml").write_text(policy, encoding="utf-8")
    return project / "lake" / "t"


def old_table(spark: SparkSession, path: Path) -> set[str]:
    """Sixty files that were overwritten ten days ago, and four small ones; returns the names of the sixty."""
    spark.range(600).repartition(NUM_OLD).write.format("delta").save(str(path))
    old = files_on_disk(path)
    spark.range(600).repartition(4).write.format("delta").mode("overwrite").save(str(path))
    age(path, 10)
    forget_logs(spark)
    return old


def kill(project: Path, point: str) -> str:
    """Apply in a process of its own that is killed at the point; returns the run's id."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.faults.killed_apply", str(project), point],
        cwd=ROOT, capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, (done.stdout + done.stderr)[-3000:]
    return sorted(path.name for path in (project / ".maintainer" / "runs").iterdir())[-1]


def command(project: Path, capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str]:
    capsys.readouterr()
    code = run(["--project", str(project), *args])
    return code, capsys.readouterr().out


def ledger_rows(project: Path, run_id: str) -> list[dict[str, Any]]:
    table = deltalake.DeltaTable(str(project / ".maintainer" / "ledger")).to_pyarrow_table()
    rows = [row for row in table.to_pylist() if row["run_id"] == run_id]
    return sorted(rows, key=lambda row: row["started_at"])


@pytest.mark.parametrize(
    ("point", "kinds"),
    [
        ("properties landed", {"set_properties"}),
        ("compact tried", {"set_properties", "compact"}),
        ("compact landed", {"set_properties", "compact"}),
        ("rows appended", {"set_properties", "compact", "vacuum"}),
    ],
)
@pytest.mark.sampled(1)
def test_commits_of_a_killed_run_are_in_every_record(
    point: str, kinds: set[str], spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = tmp_path / "project"
    path = make_project(spark, project, POLICY)
    old_table(spark, path)
    dead = kill(project, point)
    code, shown = command(project, capsys, "show", dead)
    assert (code, "Exit code" in shown, "its exit code is not known" in shown) == (0, False, True), shown
    assert command(project, capsys, "apply", "--yes", "-o", "json")[0] == 0

    rows = ledger_rows(project, dead)
    assert {row["kind"] for row in rows} == kinds
    assert len({row["step_id"] for row in rows}) == len(rows)
    history = deltalake.DeltaTable(str(path)).history()
    ours = {
        row["version"]: json.loads(row["userMetadata"])["maintainer"]
        for row in history
        if dead in (row.get("userMetadata") or "")
    }
    for version, stamp in ours.items():
        (row,) = [row for row in rows if (row["version_before"] or 0) < version <= (row["version_after"] or -1)]
        assert stamp["step"].startswith(row["step_id"])
    if point == "compact landed":
        (compact,) = [row for row in rows if row["kind"] == "compact"]
        assert (compact["num_files_removed"], compact["num_files_added"]) == (4, 1)
        assert (compact["proof_level"], compact["proof_result"], compact["source"]) == (
            "fingerprint", "pass", "run folder"
        )  # fmt: skip
    code, history_text = command(project, capsys, "history", "lake/t")
    assert (code, "run folder is not here" in history_text) == (0, False), history_text
    assert command(project, capsys, "report", dead)[0] == 0


@pytest.mark.long
def test_a_deletion_that_was_killed_says_how_many_files_went(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = tmp_path / "project"
    path = make_project(spark, project, POLICY)
    old = old_table(spark, path)
    sizes = {name: (path / name).stat().st_size for name in old}
    dead = kill(project, "49 deleted")
    gone = old - files_on_disk(path)
    assert len(gone) == DELETIONS

    _, shown = command(project, capsys, "show", dead)
    assert f"of {NUM_OLD} files were deleted" in shown, shown
    assert "interrupted, at least " in shown, shown
    _, history_text = command(project, capsys, "history", "lake/t")
    vacuums = [line for line in history_text.splitlines() if "  vacuum  " in line]
    assert any(f"at least 40 of {NUM_OLD} files were deleted" in line for line in vacuums), history_text
    assert not any("  ok  " in line for line in vacuums), history_text

    assert command(project, capsys, "apply", "--yes", "-o", "json")[0] == 0
    (row,) = [row for row in ledger_rows(project, dead) if row["kind"] == "vacuum"]
    assert (row["status"], row["num_files_removed"]) == ("interrupted", DELETIONS)
    assert row["bytes_removed"] == sum(sizes[name] for name in gone)
    assert f"{DELETIONS} of {NUM_OLD} files" in row["error"]
    assert "has no VACUUM END" in row["error"]
    _, shown = command(project, capsys, "show", dead)
    assert f"{DELETIONS} of {NUM_OLD} files" in shown, shown
    _, history_text = command(project, capsys, "history", "lake/t")
    assert f"{DELETIONS} files" in history_text, history_text
    assert not old & files_on_disk(path)


@pytest.mark.long
def test_turns_of_an_incremental_zorder_are_in_the_ledger_one_by_one(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = tmp_path / "project"
    path = make_project(spark, project, TURNS)
    for part in range(6):
        frame = spark.range(part * 1000, part * 1000 + 1000, 1, 1)
        frame = frame.selectExpr("id", "(id * 7919) % 100003 AS a", "(id * 104729) % 65537 AS b")
        frame.write.format("delta").mode("append").save(str(path))
    dead = kill(project, "turn landed")
    assert command(project, capsys, "apply", "--yes", "-o", "json")[0] == 0
    versions = [
        row["version"]
        for row in deltalake.DeltaTable(str(path)).history()
        if dead in (row.get("userMetadata") or "") and row["operation"] == "OPTIMIZE"
    ]
    rows = [row for row in ledger_rows(project, dead) if row["kind"] == "zorder"]
    assert sorted(row["version_after"] for row in rows) == sorted(versions)
    assert len(versions) == 2
