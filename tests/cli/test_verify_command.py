"""`verify` on the command line: what is refused before anything is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from maintainer.cli.main import run
from tests.support.policies.projects import write_project


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_project(tmp_path, {"maintainer.yml": "", "policies/t.yml": "table: a.t"})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--accept", "looked at it"], "--accept needs one TABLE"),
        (["a.t", "--accept", "  "], "--accept needs a reason, which is recorded"),
        (["a.t", "-s", "tag:nightly"], "name a TABLE or select tables, not both"),
        (["--content", "off"], "'off' is not one of 'fingerprint', 'exact'"),
        (["-s", "no.such"], "error[E623]"),
    ],
)
def test_what_is_refused(root: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    assert run(["--project", str(root), "verify", *arguments]) == 2
    assert said in capsys.readouterr().err
    assert not (root / ".maintainer").exists()


@pytest.mark.parametrize(
    "command",
    [
        ["verify", "orders", "--accept", "looked at it"],
        ["verify", "orders@3", "--accept", "looked at it"],
        ["undelete", "orders", "--run", "20261121T210000Z-dead", "--yes"],
        ["apply", "-s", "orders", "--yes"],
        ["apply", "--exclude", "orders", "--yes"],
    ],
)
def test_a_command_that_changes_something_takes_whole_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    root = write_project(tmp_path, {"maintainer.yml": "", "policies/t.yml": "table: lake/sales/orders"})
    assert run(["--project", str(root), *command]) == 2
    assert "= help: write `lake/sales/orders`\n" in capsys.readouterr().err
