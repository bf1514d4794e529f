"""`verify` on the command line: what is refused before anything is started."""

from __future__ import annotations

import json
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


@pytest.mark.parametrize("command", [["verify", "orders"], ["verify", "orders@3"], ["why", "orders"]])
def test_the_end_of_a_name_that_may_lie_where_nobody_could_look_is_no_name_of_a_catalog(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    rule = "match: {tables: ['*/lake/*']}\nmanage: true\n"
    root = write_project(tmp_path, {"maintainer.yml": "roots: [gone/lake]\n", "policies/rule.yml": rule})
    assert run(["--project", str(root), *command]) == 2
    said = capsys.readouterr().err
    assert "error[E645]: there is no such folder" in said
    assert f"{root}/gone/lake" in said


def test_explain_asks_no_network_and_does_not_say_that_it_looked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rule = "match: {tables: ['s3://lake/tables/*']}\nmanage: true\n"
    settings = "roots: ['s3://lake/tables']\n"
    root = write_project(tmp_path, {"maintainer.yml": settings, "policies/rule.yml": rule})
    assert run(["--project", str(root), "explain", "orders"]) == 2
    said = capsys.readouterr().err
    assert "no policy names `orders`, and this command does not look into `s3://lake/tables`" in said
    assert "= help: write its whole name; `maintainer list` looks, and has all names" in said
    assert "no rule" not in said
    for whole in ("s3://other/tables/orders", "sales.orders"):
        assert run(["--project", str(root), "explain", whole]) == 2
        assert f"no policy names `{whole}`, and no rule reaches it" in capsys.readouterr().err
    state = root / ".maintainer"
    state.mkdir()
    found = {"format_version": "1", "tables": {"s3://lake/tables/orders": "policies/rule.yml:2"}}
    (state / "found_tables.json").write_text(json.dumps(found))
    assert run(["--project", str(root), "explain", "orders"]) == 0
    assert capsys.readouterr().out.startswith("s3://lake/tables/orders ")
    assert run(["--project", str(root), "explain", "ordes"]) == 2
    assert "does not look into `s3://lake/tables`" in capsys.readouterr().err


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
