"""`show` of a run that brought files back: `history` names it, so it can be shown."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from maintainer.cli.main import run
from maintainer.journal.ledger.ledger_rows import LedgerRow
from tests.support.policies.projects import write_project

RUN = "20261121T220000Z-aaaa"


def test_an_undelete_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = write_project(tmp_path, {"policies/t.yml": "table: lake/t\n"})
    row = LedgerRow(
        RUN, "lake/t", None, None, "lake/t/undelete", "undelete", "succeeded", "", None, None, 0, 3, 0, 300, 0, 0, 0, 0,
        0, 1.0, "none", "none", "policies/t.yml", "d", None, None, None, None, None,
    )  # fmt: skip
    folder = root / ".maintainer" / "runs" / RUN
    folder.mkdir(parents=True)
    (folder / "undelete.json").write_text(json.dumps({"format_version": "1", "step": asdict(row), "refused": []}))
    assert run(["--project", str(root), "show", RUN]) == 0
    assert "3 files brought back, 300 B" in capsys.readouterr().out
    assert run(["--project", str(root), "show", RUN, "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["step"]["num_files_added"] == 3
