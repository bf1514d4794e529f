"""Observers of other packages: found by their entry points, handed the events, and told of where they are broken."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from maintainer.app.project_folders import Project
from maintainer.app.running.observers import lineage
from maintainer.app.running.observers.observed_run import observed_run
from maintainer.app.running.run_listener import RunListener
from maintainer.model.plan.plan import Problem
from maintainer.model.run.progress import BatchStarted
from tests.support.policies.projects import write_project
from tests.support.runs.sample_plans import full_plan

PACKAGE = """
import pathlib

class Lines:
    what, where = "lines", "a file"
    def __init__(self, run):
        self.run = run
    def event(self, event):
        with open(self.run.environ["LINES"], "a") as file:
            print(self.run.project, type(event).__name__, event.number, file=file)
    def close(self):
        with open(self.run.environ["LINES"], "a") as file:
            print("closed", file=file)

def lines_of(run):
    return Lines(run)

def none_of(run):
    return None

def broken_of(run):
    raise RuntimeError("no answer from https://user:hunter2@lines.example/in")

def other_of(run):
    return object()
"""


@pytest.fixture(name="installed")
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package as pip leaves it: the module, and its metadata with the entry points."""
    site = tmp_path / "site"
    (site / "company_observers-1.0.dist-info").mkdir(parents=True)
    (site / "company_observers.py").write_text(PACKAGE)
    (site / "company_observers-1.0.dist-info/METADATA").write_text("Name: company-observers\nVersion: 1.0\n")
    (site / "company_observers-1.0.dist-info/entry_points.txt").write_text(
        "[maintainer.observers]\nlines = company_observers:lines_of\nnone = company_observers:none_of\n"
        "broken = company_observers:broken_of\ngone = company_gone:anything\nother = company_observers:other_of\n"
    )
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("LINES", str(tmp_path / "lines.txt"))
    monkeypatch.delitem(sys.modules, "company_observers", raising=False)
    return tmp_path / "lines.txt"


def test_an_installed_observer_gets_the_events_and_one_that_is_broken_is_told_of(
    tmp_path: Path, installed: Path
) -> None:
    root = tmp_path / "lake"
    write_project(root, {"maintainer.yml": "", "policies/t.yml": "table: s.t\n"})
    problems: list[Problem] = []
    with observed_run(Project.load(root), full_plan(), RunListener(), problems.append) as sink:
        assert sink is not None
        sink(BatchStarted(1, 1, 2, 3))
        sink(BatchStarted(2, 2, 2, 3))
    assert installed.read_text().splitlines() == ["lake BatchStarted 1", "lake BatchStarted 2", "closed"]
    assert [problem.code for problem in problems] == ["E657", "E657", "E657"]
    assert ["company_observers:broken_of" in problem.what for problem in problems] == [True, False, False]
    assert "no answer from https://" in problems[0].what
    assert "hunter2" not in problems[0].what
    assert "company_gone" in problems[1].what
    assert "company_observers:other_of" in problems[2].what


def test_an_observer_of_ours_that_cannot_be_made_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A location that cannot be read as an address must not end a run, nor be blamed on another package."""
    root = tmp_path / "lake"
    write_project(root, {"maintainer.yml": "", "policies/t.yml": "table: s.t\n"})
    monkeypatch.setenv("OPENLINEAGE_URL", "http://127.0.0.1:9")
    monkeypatch.setattr(lineage, "require_extra", lambda *of: None)
    plan = full_plan()
    table = next(table for table in plan.tables if table.observed is not None)
    assert table.observed is not None
    wrong = replace(table, observed=replace(table.observed, location="s3://[bucket/t"))
    problems: list[Problem] = []
    with observed_run(Project.load(root), replace(plan, tables=(wrong,)), RunListener(), problems.append) as sink:
        assert sink is None
    assert [problem.code for problem in problems] == ["E657"]
    assert "observers.lineage:lineage_of" in problems[0].what
