"""There is one version, and whatever names a version names that one."""

from __future__ import annotations

import json
import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import maintainer
from maintainer.cli.main import run
from maintainer.cli.setup_commands import project_files
from maintainer.delta.doctor.doctor_checks import NEWEST_PYTHON, OLDEST_PYTHON
from maintainer.model.plan.plan_document import to_json
from maintainer.model.run.outcome import run_to_json
from maintainer.report.findings import render_sarif
from tests.support.policies.projects import write_project
from tests.support.runs import sample_plans
from tests.support.runs import sample_runs as samples

ROOT = Path(__file__).resolve().parents[3]
VERSION = maintainer.__version__


def test_the_installed_package_has_it() -> None:
    assert metadata.version("maintainer") == VERSION


def test_pyproject_takes_it_from_the_package() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'dynamic = ["version"]' in text
    assert '[tool.hatch.version]\npath = "maintainer/model/product_version.py"' in text


def test_pip_takes_the_pythons_that_doctor_names() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    oldest, (major, minor) = ".".join(map(str, OLDEST_PYTHON)), NEWEST_PYTHON
    assert project["requires-python"] == f">={oldest},<{major}.{minor + 1}"


def test_the_newest_entry_of_the_changelog_is_this_version() -> None:
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert headings[0].rstrip(",") == VERSION


@pytest.mark.parametrize("arguments", [["--version"], ["version"]])
def test_the_command_line_prints_it(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 0
    assert re.search(rf"^maintainer,? +(version )?{re.escape(VERSION)}$", capsys.readouterr().out, flags=re.MULTILINE)


def test_documents_for_programs_have_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies/t.yml").write_text("version: 1\ntable: t\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert run(["validate", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["maintainer"] == VERSION
    assert json.loads(render_sarif([], str, 0))["runs"][0]["tool"]["driver"]["version"] == VERSION


def test_reports_have_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = write_project(tmp_path / "project", {"policies/t.yml": "table: sales.orders\n"})
    folder = root / ".maintainer" / "runs" / samples.RUN
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text(to_json(sample_plans.full_plan()))
    (folder / "results.json").write_text(run_to_json(samples.good_run()))
    for arguments in (["report"], ["report", "--fleet", "--since", "36500d"]):
        assert run(["--project", str(root), *arguments]) == 0
        page = Path(capsys.readouterr().out.strip()).read_text(encoding="utf-8")
        assert f"maintainer {VERSION}" in page, arguments


def test_a_new_project_names_it() -> None:
    requirements = project_files("maintainer @ https://example.com/m")["requirements.txt"]
    assert set(re.findall(r"maintainer(?:==|-)([\d.]*\d)", requirements)) == {VERSION}


def test_no_other_text_names_another_one() -> None:
    """Pages may name versions as examples of what a version means; what is released is named nowhere else."""
    named = {
        str(file.relative_to(ROOT)): version
        for file in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "mkdocs.yml"]
        for version in re.findall(r"maintainer[ =-]+(\d+\.\d+\.\d+)", file.read_text(encoding="utf-8"))
        if version != VERSION
    }
    assert named == {}
