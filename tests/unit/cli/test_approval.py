"""Who is asked before tables are changed: a person on a terminal; a pipeline agrees by `--yes` or by a saved plan."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from maintainer.app.project_folders import Project
from maintainer.cli.act import run_output
from maintainer.cli.act.run_output import RunOutput
from maintainer.cli.context import CliContext
from maintainer.cli.main import run
from maintainer.errors import ProjectError
from tests.support.policies.projects import write_project
from tests.support.runs import sample_plans


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("arguments", "first"),
    [
        (["apply"], "`maintainer plan` shows what would be done"),
        (["retry"], "on a terminal it shows what it would do, and asks"),
        (["watch"], "`maintainer plan` shows what is due now"),
        (["undelete", "lake/t", "--run", "20261121T210000Z-dead"], "it overwrites no file that exists"),
    ],
    ids=["apply", "retry", "watch", "undelete"],
)
def test_a_pipeline_that_did_not_agree_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], first: str
) -> None:
    write_project(tmp_path, {"policies/t.yml": "table: lake/t\n"})
    before = sorted(tmp_path.rglob("*"))
    assert run(["--project", str(tmp_path), *arguments]) == 2
    message = capsys.readouterr().err
    assert message.startswith(f"error[E628]: `maintainer {arguments[0]}` changes tables")
    assert f"in a pipeline write `maintainer {arguments[0]} --yes`; {first}\n" in message
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("stdin", [True, False])
@pytest.mark.parametrize("stderr", [True, False])
def test_both_ends_of_a_question_must_be_a_terminal(
    monkeypatch: pytest.MonkeyPatch, *, stdin: bool, stderr: bool
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal() if stdin else io.StringIO())
    monkeypatch.setattr("sys.stderr", Terminal() if stderr else io.StringIO())
    if stdin and stderr:
        run_output.require_approval(yes=False, command="maintainer apply", first="look")
    else:
        with pytest.raises(ProjectError, match="no terminal"):
            run_output.require_approval(yes=False, command="maintainer apply", first="look")
    run_output.require_approval(yes=True, command="maintainer apply", first="look")


@pytest.mark.parametrize("output", ["text", "json", "jsonl", "github", "junit"])
@pytest.mark.parametrize("verbosity", [-1, 0])
def test_nobody_is_asked_about_a_plan_that_was_not_shown(
    output: str, verbosity: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project = Project.load(write_project(tmp_path, {"policies/t.yml": "table: sales.orders\n"}))
    plan = sample_plans.plan(sample_plans.orders())
    monkeypatch.setattr("sys.stdin", Terminal("n\n"))
    listener = RunOutput(CliContext(tmp_path, verbosity=verbosity), project, output, ask=True)
    assert not listener.agrees_to(plan)
    captured = capsys.readouterr()
    assert captured.out == ""
    plan_shown, _, answer = captured.err.partition("Apply this plan? [y/N]")
    assert "9 files, 233 MiB -> about 3 files" in plan_shown
    assert answer.endswith("Nothing was done.\n")
    agreed = RunOutput(CliContext(tmp_path, verbosity=verbosity), project, output, ask=False)
    assert agreed.agrees_to(plan)
    assert "Apply this plan?" not in capsys.readouterr().err


@pytest.mark.parametrize("ask", [True, False])
def test_what_is_wrong_with_a_table_is_said_in_full_once_unless_somebody_decides_by_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, ask: bool
) -> None:
    """The end of the run says it in full."""
    project = Project.load(write_project(tmp_path, {"policies/t.yml": "table: sales.orders\n"}))
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    plan = sample_plans.plan(sample_plans.orders(), sample_plans.gone())
    assert RunOutput(CliContext(tmp_path), project, "text", ask=ask).agrees_to(plan)
    shown = capsys.readouterr().err
    assert "x error T401  no table `crm.gone` in the catalog\n" in shown
    assert ("help: check the name, or drop the file\n" in shown) is ask


@pytest.mark.parametrize(("answer", "approved"), [("y\n", True), ("\n", False), ("n\n", False)])
def test_enter_means_no(monkeypatch: pytest.MonkeyPatch, *, answer: str, approved: bool) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    assert run_output.is_approved("Apply this plan?", yes=False) is approved
