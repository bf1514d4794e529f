"""`show` of runs that have no plan and no results: one that brought files back, and a `verify`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from maintainer.app.running.verify_commits import verification_json
from maintainer.cli.main import run
from maintainer.journal.ledger.ledger_rows import LedgerRow
from maintainer.model.plan.plan import Problem
from maintainer.model.run.commit_verdict import (
    CheckResult,
    CommitCheck,
    CommitVerification,
    TableVerification,
    VerifyRun,
)
from maintainer.model.table.commit_records import CommitStamp
from maintainer.model.table.table_facts import TableRef
from maintainer.report.run.verify_text import render_verify
from tests.support.policies.projects import write_project

RUN = "20261121T220000Z-aaaa"


def test_an_undelete_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = write_project(tmp_path, {"policies/t.yml": "table: lake/t\n"})
    row = LedgerRow(
        run_id=RUN, table="lake/t", step_id="lake/t/undelete", kind="undelete", status="succeeded", reason="",
        num_files_added=3, bytes_added=300, predicted_files_removed=0, predicted_files_added=0,
        predicted_bytes_removed=0, predicted_bytes_added=0, duration_seconds=1.0, policy_file="policies/t.yml",
        policy_digest="d",
    )  # fmt: skip
    folder = root / ".maintainer" / "runs" / RUN
    folder.mkdir(parents=True)
    (folder / "undelete.json").write_text(json.dumps({"format_version": "1", "step": asdict(row), "refused": []}))
    assert run(["--project", str(root), "show", RUN]) == 0
    assert "3 files brought back, 300 B" in capsys.readouterr().out
    assert run(["--project", str(root), "show", RUN, "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["step"]["num_files_added"] == 3


def test_a_verification_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = write_project(tmp_path, {"policies/t.yml": "table: lake/t\n"})
    checks = (
        CommitCheck("actions", "no action changes data", CheckResult.PROVEN),
        CommitCheck("rows", "the rows are the same", CheckResult.WRONG, "3 rows were removed"),
    )
    commit = CommitVerification(7, 1_000, "OPTIMIZE", "spark", None, "rewrite", checks, 2, 1, 3, 0, ("v",), 1.5)
    tables = (
        TableVerification(TableRef("lake/t"), commit, quarantined="V507: version 7", note="look"),
        TableVerification(TableRef("a.b"), problem=Problem("T401", "there is no such table", "a.b", "look again")),
    )
    made = VerifyRun(RUN, 1_000, 2.5, tables)
    folder = root / ".maintainer" / "runs" / RUN
    folder.mkdir(parents=True)
    (folder / "verification.json").write_text(verification_json(made))
    assert run(["--project", str(root), "show", RUN]) == 0
    shown = capsys.readouterr().out
    assert shown == render_verify(made)
    assert "3 rows were removed" in shown
    assert "T401" in shown
    assert run(["--project", str(root), "show", RUN, "-o", "json"]) == 0
    assert capsys.readouterr().out == verification_json(made)
    assert run(["--project", str(root), "show", RUN, "-o", "markdown"]) == 2
    capsys.readouterr()
    for damaged in ("[]", "{", '{"tables": [{"commit": 3}]}'):
        (folder / "verification.json").write_text(damaged)
        assert run(["--project", str(root), "show", RUN]) == 2
        assert "error[E643]: not the record of a verification" in capsys.readouterr().err


def test_the_commit_of_a_writers_hook_is_shown_from_the_tables_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = write_project(tmp_path, {"policies/s.yml": "table: lake/s\n", "policies/t.yml": "table: lake/t\n"})
    (root / "lake" / "s" / "_delta_log").mkdir(parents=True)
    (root / "lake" / "s" / "_delta_log" / f"{0:020d}.json").write_text("{")  # it hides no other table
    stamp = CommitStamp("maintainer-auto-compact-0a1b2c3d", "lake/t/auto_compact", 0, "")
    properties = deltalake.CommitProperties(custom_metadata={"userMetadata": stamp.to_json()})
    table = root / "lake" / "t"
    deltalake.write_deltalake(table, pa.table({"a": [1]}))
    deltalake.write_deltalake(table, pa.table({"a": [2]}), mode="append")
    deltalake.DeltaTable(table).optimize.compact(commit_properties=properties)
    assert run(["--project", str(root), "show", stamp.run_id]) == 0
    shown = capsys.readouterr().out
    assert "lake/t" in shown
    assert "auto compaction right after a write" in shown
    assert run(["--project", str(root), "show", stamp.run_id, "-o", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["history"]
    assert (row["run_id"], row["step"], row["version_after"]) == (stamp.run_id, "auto_compact", 2)
    assert run(["--project", str(root), "show", stamp.run_id, "-o", "markdown"]) == 2
    capsys.readouterr()


def test_a_hooks_commit_that_is_nowhere_is_an_error_that_says_where_to_look(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = write_project(tmp_path, {"policies/t.yml": "table: lake/t\n"})
    assert run(["--project", str(root), "show", "maintainer-auto-compact-0a1b2c3d"]) == 2
    shown = capsys.readouterr().err
    assert "error[E643]" in shown
    assert "maintainer history TABLE" in shown
