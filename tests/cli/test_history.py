"""`history` of a table on this machine: everyone's commits beside ours, without Spark."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from maintainer.cli.main import run
from maintainer.model.plan.plan_document import to_json
from maintainer.model.run.outcome import run_to_json
from maintainer.model.table.commit_records import CommitStamp
from maintainer.report.run.outcome_text import message
from tests.support.policies.projects import write_project
from tests.support.runs import sample_plans
from tests.support.runs.sample_runs import bad_run

STAMP = CommitStamp("20261121T220000Z-7f3a", "lake/t/compact", 0, "sha256:p")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    table = tmp_path / "lake" / "t"
    for number in range(4):
        deltalake.write_deltalake(table, pa.table({"a": [number]}), mode="append")
    deltalake.DeltaTable(table).optimize.compact()
    return write_project(tmp_path, {"policies/t.yml": "table: lake/t\n", "policies/c.yml": "table: crm.leads\n"})


def history(root: Path, capsys: pytest.CaptureFixture[str], *args: str) -> list[dict[str, object]]:
    assert run(["--project", str(root), "history", *args, "-o", "json"]) == 0
    document: list[dict[str, object]] = json.loads(capsys.readouterr().out)["history"]
    return document


def test_who_ran_optimize_outside_of_maintainer(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = history(root, capsys, "lake/t")
    assert [(row["step"], row["version_after"], row["run_id"]) for row in rows] == [
        ("OPTIMIZE", 4, None),
        *[("WRITE", version, None) for version in (3, 2, 1, 0)],
    ]
    assert str(rows[0]["by"]).startswith("delta-rs")
    assert [row["step"] for row in history(root, capsys, "lake/t", "--limit", "1")] == ["OPTIMIZE"]
    assert history(root, capsys, "lake/t", "--ours") == []
    assert history(root, capsys, "lake/t", "--failed") == []
    assert history(root, capsys) == []


def test_a_commit_of_ours_is_known_by_its_run(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    properties = deltalake.CommitProperties(custom_metadata={"userMetadata": STAMP.to_json()})
    deltalake.write_deltalake(root / "lake" / "t", pa.table({"a": [9]}), mode="append", commit_properties=properties)
    newest = history(root, capsys, "lake/t")[0]
    assert (newest["run_id"], newest["step"], newest["reason"]) == (
        STAMP.run_id, "compact", "its run folder is not here"
    )  # fmt: skip


def test_a_damaged_log_leaves_our_own_rows_and_says_so(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "lake" / "t" / "_delta_log" / f"{4:020d}.json").write_text('{"commitInfo": {')
    assert run(["--project", str(root), "history", "lake/t"]) == 1
    shown = capsys.readouterr()
    assert shown.out == "No runs are recorded yet.\n"
    assert shown.err.startswith("warning[T403]: commits of others are not shown, the table's log cannot be read: ")


def test_a_table_that_is_not_there_is_no_table_without_runs(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(root / "lake")
    assert run(["--project", str(root), "history", "lake/t"]) == 1
    assert capsys.readouterr().err.startswith("warning[T401]: commits of others are not shown, ")
    assert history(root, capsys, "lake/t", "--ours") == []


def test_what_runs_append_to_the_ledger_is_not_somebody_elses(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledger = root / ".maintainer" / "ledger"
    for number in range(4):
        deltalake.write_deltalake(ledger, pa.table({"run_id": [str(number)]}), mode="append")
    deltalake.DeltaTable(ledger).optimize.compact()
    rows = history(root, capsys, ".maintainer/ledger")
    assert [row["reason"] for row in rows[1:]] == ["rows that a run appended"] * 4
    assert run(["--project", str(root), "history", ".maintainer/ledger"]) == 0
    _, optimize, appends = capsys.readouterr().out.splitlines()
    assert "outside maintainer, by delta-rs" in optimize
    assert "WRITE x4" in appends
    assert appends.endswith("rows that a run appended")


def test_a_step_that_was_skipped_has_the_reason_that_show_gives(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan, table = to_json(sample_plans.plan(sample_plans.orders())), bad_run().tables[4]
    _, failed, skipped = table.steps
    write_project(root, {"policies/o.yml": "table: sales.orders\n"})
    notes = {"20261121T220000Z-0002": None, "20261121T220000Z-0001": "sales.items was not verified; the vacuum waits"}
    for run_id, note in notes.items():
        ended = replace(table, steps=(failed, replace(skipped, note=note)))
        folder = root / ".maintainer" / "runs" / run_id
        folder.mkdir(parents=True)
        (folder / "plan.json").write_text(plan)
        (folder / "results.json").write_text(run_to_json(replace(bad_run(), run_id=run_id, tables=(ended,))))
    says = {run_id: message(replace(skipped, note=note)) for run_id, note in notes.items()}
    rows = history(root, capsys, "sales.orders", "--ours")
    assert [(row["run_id"], row["status"], row["note"]) for row in rows] == [
        row for run_id, said in says.items() for row in ((run_id, "skipped", said), (run_id, "verify_failed", None))
    ]
    for run_id, said in says.items():
        for command in (["history"], ["history", "sales.orders", "--ours"], ["show", run_id]):
            run(["--project", str(root), "-v", *command])
            shown = capsys.readouterr().out
            assert any("vacuum" in line and said in line for line in shown.splitlines()), shown


def test_status_says_who_else_optimized_and_vacuumed_last(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From the commits that are read. Those below a checkpoint are not, where nothing is due; `never` is not said."""

    def status(*options: str) -> str:
        assert run(["--project", str(root), "status", "-s", "lake/t", *options]) == 0
        return capsys.readouterr().out

    def cells() -> list[str]:
        """What stands below OPTIMIZED, VACUUMED, PROOF and NEXT."""
        return re.split(r"  +", status().splitlines()[1].strip())[5:]

    optimized, *others = cells()
    assert optimized.startswith("today ")
    assert others == ["never", "-"]
    assert "\n    maintained twice: OPTIMIZE by delta-rs:" in status()
    deltalake.DeltaTable(root / "lake" / "t").vacuum(0, enforce_retention_duration=False, dry_run=False)
    (row,) = json.loads(status("-o", "json"))["tables"]
    end = json.loads((root / "lake" / "t" / "_delta_log" / f"{6:020d}.json").read_text().splitlines()[0])["commitInfo"]
    assert (end["operation"], row["others_vacuumed_by"]) == ("VACUUM END", end["engineInfo"])
    assert row["others_vacuumed_at"].startswith(
        datetime.fromtimestamp(end["timestamp"] / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    )
    assert (row["last_vacuum_at"], row["last_optimize_at"], row["commits_seen_from"]) == (None, None, 0)
    deltalake.DeltaTable(root / "lake" / "t").create_checkpoint()
    assert cells() == ["-", "-", "-"]
    deltalake.write_deltalake(root / "lake" / "t", pa.table({"a": [7]}), mode="append")
    optimized, vacuumed, *_ = cells()
    assert optimized.startswith("today ")
    assert vacuumed.startswith("today ")


@pytest.mark.parametrize("command", ["history", "status"])
def test_runs_of_another_environment_are_pointed_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    settings = (
        "state: here\nenvironments:\n  prod: {state: there}\n  s3: {state: 's3://bucket/m'}\n  same: {}\n"
        "  new: {state: nowhere}\n"
    )
    root = write_project(tmp_path, {"maintainer.yml": settings, "policies/t.yml": "table: lake/t\n"})
    deltalake.write_deltalake(root / "lake" / "t", pa.table({"a": [1]}))
    other = root / "there" / "runs" / "20261121T220000Z-7f3a"
    other.mkdir(parents=True)
    (other / "plan.json").touch()

    def said(*options: str) -> list[str]:
        assert run(["--project", str(root), *options, command]) == 0
        return [line for line in capsys.readouterr().err.splitlines() if "runs" in line or " run:" in line]

    on_store = "environment s3 keeps its runs on s3://bucket/m: --env s3 shows them"
    assert said() == ["environment prod has 1 run: --env prod shows them", on_store]
    assert said("--env", "new") == ["environment prod has 1 run: --env prod shows them", on_store]
    assert said("--env", "prod") == []
    assert said("-q") == []
    ran = root / "here" / "runs" / "20261121T220000Z-0000"
    ran.mkdir(parents=True)  # as `verify` does, which changes no table
    assert said() == ["environment prod has 1 run: --env prod shows them", on_store]
    (ran / "plan.json").touch()
    assert said() == []
    assert said("--env", "new")[0] == "the project without --env has 1 run: no --env shows them"
