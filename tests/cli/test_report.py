"""`report`: a run or the fleet as one file, and links between the two that lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from maintainer.cli.main import run
from maintainer.model.plan.plan_document import to_json
from maintainer.model.run.results_document import run_to_json
from tests.support.policies.projects import write_project
from tests.support.runs import sample_plans
from tests.support.runs import sample_runs as samples


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = write_project(tmp_path / "a project", {"policies/t.yml": "table: sales.orders\n"})
    folder = root / ".maintainer" / "runs" / samples.RUN
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text(to_json(sample_plans.full_plan()))
    (folder / "results.json").write_text(run_to_json(samples.good_run()))
    return root


def links(page: Path) -> list[str]:
    return re.findall(r'<a href="([^#"][^"]*)"', page.read_text(encoding="utf-8"))


def test_the_fleet_leads_to_the_report_of_each_run(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    everything = ("--project", str(root), "report", "--fleet", "--since", "36500d")
    assert run([*everything]) == 0
    fleet = Path(capsys.readouterr().out.strip())
    assert links(fleet) == []  # the run has no report yet

    assert run(["--project", str(root), "report"]) == 0
    report = Path(capsys.readouterr().out.strip())
    assert report == root / ".maintainer" / "runs" / samples.RUN / "report.html"
    for out in (fleet, root / "elsewhere" / "fleet.html"):
        out.parent.mkdir(exist_ok=True)
        assert run([*everything, "--out", str(out)]) == 0
        (link,) = links(out)
        assert (out.parent / unquote(link)).resolve() == report


def test_a_run_that_is_not_there_is_said_so(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--project", str(root), "report", "20200101T000000Z-0000"]) == 2
    error = capsys.readouterr().err
    assert "E643" in error
    assert "there is no such run" in error
    (root / ".maintainer" / "runs" / "20200101T000000Z-0000").mkdir(parents=True)  # as of `verify`
    assert run(["--project", str(root), "report", "20200101T000000Z-0000"]) == 2
    error = capsys.readouterr().err
    assert "no plan and no results: `maintainer show 20200101T000000Z-0000` shows it" in error


def test_a_run_is_shown_by_its_id_wherever_runs_are_kept(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show = ["--project", str(root), "show", samples.RUN]
    assert run(show) == 0
    before = capsys.readouterr().out
    (root / ".maintainer").rename(root / "elsewhere")
    assert run(show) == 2
    (root / "maintainer.yml").write_text("version: 1\nstate: elsewhere\n")
    capsys.readouterr()
    assert run(show) == 0
    assert capsys.readouterr().out.replace("elsewhere", ".maintainer") == before
