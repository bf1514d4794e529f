"""What the objects of the Python API show of themselves: short, whole, and with every name escaped. Without Spark."""

from __future__ import annotations

import doctest
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

import maintainer
from maintainer import Plan, Project, Run, RunFailed
from maintainer.app.project_folders import Project as LoadedProject
from maintainer.app.python_api import Rows, Text
from maintainer.app.running.run_listener import RunResult
from maintainer.app.selection.run_spec import RunSpec
from maintainer.errors import ExitCode, ProjectError, Refused
from maintainer.model.plan.lanes import Lane
from maintainer.model.run.history_rows import HistoryRow, StatusRow
from maintainer.model.table.table_facts import TableRef
from maintainer.report.document.blocks import Row, TableBlock
from maintainer.report.html.page import MAX_ROWS_SHOWN, notebook_html
from tests.support.policies.projects import write_project
from tests.support.runs.sample_plans import full_plan
from tests.support.runs.sample_runs import bad_run, good_run

HOSTILE = '<img src=x onerror="alert(1)"> & \x1b[31m'


@pytest.fixture
def project(tmp_path: Path) -> Project:
    files = {
        "maintainer.yml": "version: 1\nenvironments: {prod: {}}\n",
        "policies/orders.yml": "table: sales.orders\nowner: data-team\ntags: [nightly]\n",
        "policies/items.yml": "table: sales.items\n",
    }
    write_project(tmp_path, files)
    return Project.load(tmp_path, env="prod")


@pytest.fixture
def loaded(project: Project) -> LoadedProject:
    return LoadedProject.load(project.root)


class Tags(HTMLParser):
    """Collects the elements of a fragment, and checks that each is closed."""

    VOID = frozenset({"br"})

    def __init__(self, fragment: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.open: list[str] = []
        self.feed(fragment)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        assert {name for name, _ in attrs} <= {"class", "scope", "style"}
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def fragment_of(shown: object) -> str:
    """The HTML of an object, of which only plain elements may be there."""
    fragment: str = shown._repr_html_()  # type: ignore[attr-defined] # every object that is shown has it
    plain = {"div", "b", "br", "code", "span", "table", "thead", "tbody", "tr", "th", "td", "pre"}
    assert set(Tags(fragment).names) <= plain
    assert "\x1b" not in fragment
    return fragment


def test_the_package_names_what_is_public_and_loads_it_late() -> None:
    assert dir(maintainer) == ["Plan", "Project", "Run", "RunFailed", "Table", "__version__", "auto_compact"]
    assert all(getattr(maintainer, name) for name in dir(maintainer))
    with pytest.raises(AttributeError):
        _ = maintainer.RunResult
    heavy = "print(sorted({name.split('.')[0] for name in sys.modules} & {'pyspark', 'pydantic', 'jinja2', 'yaml'}))"
    asked = subprocess.run(
        [sys.executable, "-c", f"import sys, maintainer; dir(maintainer); {heavy}"],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert asked.stdout == "[]\n"


def test_a_project_and_its_tables(project: Project) -> None:
    assert repr(project) == f"<Project {project.root}, env prod: 2 tables>"
    fragment = fragment_of(project)
    assert "env prod: 2 tables" in fragment
    assert "data-team" in fragment
    items, orders = project.tables()
    assert (repr(orders), str(orders), orders.owner, orders.tags) == (
        "<Table sales.orders>", "sales.orders", "data-team", ("nightly",),
    )  # fmt: skip
    assert orders == project.table("sales.orders") != items
    assert project.tables(select=["tag:nightly"]) == (orders,)
    assert "owner: data-team" in fragment_of(orders)
    assert "owner" not in fragment_of(items)
    assert "sales.orders" in str(orders.explain())
    assert repr(orders.explain()) == "<Policy of sales.orders>"
    with pytest.raises(ProjectError) as caught:
        project.table("sales.nobody")
    assert caught.value.code == "E613"


def test_a_text_is_one_item_and_not_its_letters(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    items, orders = project.tables()
    assert project.tables(select="tag:nightly") == (orders,)
    assert project.tables(exclude="sales.orders") == (items,)
    asked: list[RunSpec] = []

    def ask(_project: object, spec: RunSpec, *_: object, **__: object) -> None:
        asked.append(spec)
        raise KeyboardInterrupt

    calls: dict[str, Callable[[], object]] = {
        "maintainer.app.operations.plan": lambda: project.plan(select="a b", exclude="c", lanes="copy"),
        "maintainer.app.python_api.project_api.run_of": lambda: project.apply(select="a b", exclude="c", batches="1,5"),
        "maintainer.app.python_api.project_api.status_of": lambda: project.status(select="a b", exclude="c"),
    }
    for name, call in calls.items():
        monkeypatch.setattr(name, ask)
        with pytest.raises(KeyboardInterrupt):
            call()
    assert [(spec.selection.select, spec.selection.exclude) for spec in asked] == [(("a b",), ("c",))] * 3
    assert (asked[0].planning.lanes, asked[1].batches) == ((Lane.COPY,), (1, 5))


def test_a_project_counts_the_tables_that_its_rules_manage(tmp_path: Path) -> None:
    rule = "match: {tables: ['lake/*']}\nmanage: true\n"
    local = {"maintainer.yml": "roots: [lake]\n", "policies/rule.yml": rule, "policies/own.yml": "table: sales.own\n"}
    for name in ("a", "b"):
        (tmp_path / "one" / "lake" / name / "_delta_log").mkdir(parents=True)
    project = Project.load(write_project(tmp_path / "one", {**local, "policies/own.yml": "table: lake/a\n"}))
    assert len(project.tables()) == 2
    for shown in (project, Project.load(project.root)):
        assert repr(shown) == f"<Project {shown.root}: 2 tables>"
        assert "lake/b" in fragment_of(shown)
    on_store = {"maintainer.yml": "roots: ['s3://bucket/lake']\n", "policies/rule.yml": rule.replace("lake", "s3:*")}
    project = Project.load(write_project(tmp_path / "two", on_store))
    assert repr(project) == f"<Project {project.root}: 0 tables, and those that tables() finds>"


def test_the_examples_of_docstrings_are_true(tmp_path: Path) -> None:
    policies = {f"policies/{name}.yml": f"table: lake/{name}\n" for name in ("orders", "returns")}
    project = Project.load(write_project(tmp_path, policies))
    for name, number in (("orders", 3), ("returns", 1)):
        for _ in range(number):
            deltalake.write_deltalake(tmp_path / "lake" / name, pa.table({"id": [1]}), mode="append")
    given = {"project": project, "plan": project.plan()}
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner()
    examples = [
        one
        for shown in (Project, maintainer.Table, Plan, Run)
        for one in finder.find(shown, globs=given)
        if one.examples
    ]
    assert len(examples) == 10
    assert [one.name for one in examples if runner.run(one).failed] == []


def test_the_state_of_one_table_is_one_row(tmp_path: Path) -> None:
    """Those beside it that no policy names are said of a project."""
    project = Project.load(write_project(tmp_path, {"policies/orders.yml": "table: lake/orders\n"}))
    for name in ("orders", "archive"):
        deltalake.write_deltalake(tmp_path / "lake" / name, pa.table({"id": [1]}))
    assert [(row.table, row.state) for row in project.status()] == [
        ("lake/archive", "unmanaged"),
        ("lake/orders", "ok"),
    ]
    assert [row.table for row in project.table("orders").status()] == ["lake/orders"]


def test_a_table_that_is_not_there_is_none_under_a_rule_for_everything(tmp_path: Path) -> None:
    rule = "match: {tables: ['*'], exclude: ['*/tmp']}\nmanage: true\n"
    files = {"maintainer.yml": "roots: [lake]\n", "policies/rule.yml": rule, "policies/own.yml": "table: lake/own\n"}
    project = Project(LoadedProject.load(write_project(tmp_path, files)))
    for name in ("east/a", "west/a", "west/b", "tmp"):
        (tmp_path / "lake" / name / "_delta_log").mkdir(parents=True)
    for name, table in (("lake/own", "lake/own"), ("own", "lake/own"), ("west/a", "lake/west/a"), ("b", "lake/west/b")):
        assert project.table(name).name == table
    for name in ("typo", "lake/typo", "west/typo", "a", "tmp", "lake/tmp"):
        with pytest.raises(ProjectError) as caught:
            project.table(name)
        assert caught.value.code == "E613"


def test_a_plan(loaded: LoadedProject, project: Project, tmp_path: Path) -> None:
    made = Plan(full_plan(), loaded)
    assert repr(made).startswith("<Plan: ")
    assert len(repr(made)) < 200
    assert "\n" not in repr(made)
    assert made.summary().split("\n")[0] in str(made)
    fragment = fragment_of(made)
    assert len(fragment) < 20_000
    for table, step in made.steps:
        assert table.ref.identifier in fragment
        assert step.kind.removeprefix("set_") in fragment
    for rows in (made.tables, made.steps):
        assert made.summary().partition("\n")[0].rstrip(".") in repr(rows)
        assert all(len(repr(row)) < 200 for row in rows)
        assert fragment_of(rows).count("<tr>") == fragment.count("<tr>")
        assert str(rows) == str(made)
    assert all(f"{type(step).__name__}: " in repr(row) for row in made.steps for step in row[1:])
    assert [row["kind"] for row in made.steps.to_dicts()] == [step.kind for _, step in made.steps]
    assert [row["state"] for row in made.tables.to_dicts()] == [table.state for table in made.tables]
    assert "| " in made.to_markdown()
    assert made == Plan(full_plan(), LoadedProject.load(project.root, "prod"))
    assert made != Plan(replace(full_plan(), tables=()), loaded)
    assert Plan(replace(full_plan(), tables=()), loaded).summary() == "0 tables to change, 0 steps; 0 up to date."
    saved = made.save(tmp_path / "plan.json")
    assert saved.read_text(encoding="utf-8") == made.to_json() + "\n"
    assert project.read_plan(saved) == made
    saved.write_text(made.to_json().replace("created_at_ms", "made_at_ms"), encoding="utf-8")
    with pytest.raises(Refused):
        project.read_plan(saved)
    with pytest.raises(ProjectError) as caught:
        project.read_plan(tmp_path / "gone.json")
    assert caught.value.code == "E642"
    with pytest.raises(ProjectError) as caught:
        made.save(tmp_path / "gone" / "plan.json")
    assert caught.value.code == "E640"


def test_a_hostile_name_stays_text(loaded: LoadedProject, tmp_path: Path) -> None:
    tables = tuple(replace(table, ref=TableRef(HOSTILE)) for table in full_plan().tables)
    made = Plan(replace(full_plan(), tables=tables), loaded)
    outcome = good_run()
    ended = tuple(replace(table, ref=TableRef(HOSTILE)) for table in outcome.tables)
    run = Run(RunResult(replace(outcome, tables=ended), made.model, tmp_path), loaded)
    rows = Rows.of_status([StatusRow(HOSTILE, "ok")], 0, [HOSTILE])
    steps = Rows.of_history([HistoryRow(0, HOSTILE, "compact", "succeeded")], None, [HOSTILE])
    for shown in (made, run, rows, steps, Text("why", HOSTILE)):
        assert "&lt;img src=x" in fragment_of(shown)
    for text in (made.to_markdown(), run.to_markdown(), rows.to_markdown()):
        assert "\x1b" not in text


def test_a_run_that_ended_well_and_one_that_did_not(loaded: LoadedProject, tmp_path: Path) -> None:
    good = Run(RunResult(good_run(), full_plan(), tmp_path), loaded)
    assert (good.ok, good.exit_code, good.raise_for_status() is good) == (True, ExitCode.OK, True)
    assert repr(good).startswith(f"<Run {good.id}: ")
    assert str(good) == good.summary()
    assert good.summary() in good.to_text()
    assert good.plan == Plan(full_plan(), loaded)
    bad = Run(RunResult(bad_run(), full_plan(), tmp_path), loaded)
    assert not bad.ok
    with pytest.raises(RunFailed) as caught:
        bad.raise_for_status()
    assert (caught.value.code, caught.value.run, caught.value.where) == ("E670", bad, str(tmp_path))
    fragment = fragment_of(bad)
    for table in bad.outcome.tables:
        assert table.ref.identifier in fragment
    assert f"exit code {bad.exit_code.value}" in bad.to_markdown()


def test_rows_are_a_sequence_of_at_most_so_many_shown() -> None:
    many = [StatusRow(f"lake/t{number}", "ok", num_files=number) for number in range(MAX_ROWS_SHOWN + 2)]
    rows = Rows.of_status(many, 0, ())
    assert (len(rows), rows[1], rows[:2]) == (len(many), many[1], tuple(many[:2]))
    assert repr(rows) == "<Status of 52 tables>"
    assert "and 2 more" in fragment_of(rows)
    assert rows.to_dicts()[3]["num_files"] == 3
    assert rows.to_markdown().count("\n") == len(many) + 2
    none = Rows.of_history([], "lake/t", ["a log cannot be read"])
    assert repr(none) == "<History of lake/t: 0 steps>"
    assert (none.to_dicts(), str(none), none.to_markdown()) == ([], "No step fits.\n", "No step fits.\n")
    assert "a log cannot be read" in fragment_of(none)
    assert "<table>" not in fragment_of(none)


def test_a_fragment_without_a_table() -> None:
    assert "table" not in notebook_html("nothing")
    assert "and" not in notebook_html("few", (), TableBlock(("a",), [Row(("1",))]))


def test_what_is_no_duration_and_a_limit_below_one_are_a_value_error(project: Project) -> None:
    for call in (lambda: project.history(since="yesterday"), lambda: project.fleet_report("yesterday")):
        with pytest.raises(ValueError, match="yesterday"):
            call()
    for limit in (0, -1):
        for history in (project.history, project.table("sales.orders").history):
            with pytest.raises(ValueError, match=rf"limit must be at least 1, and is {limit}$"):
                history(limit=limit)
    assert len(project.history(since="7d")) == 0
    with pytest.raises(ProjectError) as caught:
        project.report("20200101T000000Z-0000")
    assert caught.value.code == "E643"
    assert "No apply ran yet" in project.report().read_text(encoding="utf-8")
