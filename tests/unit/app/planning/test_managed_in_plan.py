"""Tables that rules manage, in a plan and in its words: where they come from, which are new, which are gone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from maintainer.app.engine_access import EngineOptions
from maintainer.app.planning.make_plan import PlanRequest, make_plan
from maintainer.app.planning.policy_places import gone_tables, remember_found
from maintainer.app.project_folders import Project
from maintainer.app.selection.managed_search import search_tables
from maintainer.errors import ExitCode
from maintainer.model.plan.plan import Plan, Problem, TableState
from maintainer.model.plan.plan_document import from_json, to_json
from maintainer.model.run.exit_codes import plan_exit_code
from maintainer.report.plan.plan_markdown import render_plan_markdown
from maintainer.report.plan.plan_text import render_plan
from tests.support.policies.projects import write_project
from tests.support.tables.builders import NOW_MS
from tests.unit.app.planning.test_ledger_in_plan import Lake

RULE = "match: {tables: ['lake/*']}\nmanage: true\nowner: team-lake\n"
CONFLICT = "match: {tables: ['lake/odd']}\nowner: another\n"


def fleet(root: Path, *tables: str) -> Project:
    files = {
        "maintainer.yml": "version: 1\nroots: [lake, gone]\n",
        "policies/lake.yml": RULE,
        "policies/odd.yml": CONFLICT,
        "policies/own.yml": "table: lake/own\n",
    }
    write_project(root, files)
    for table in tables:
        (root / table / "_delta_log").mkdir(parents=True, exist_ok=True)
    return search_tables(Project.load(root), EngineOptions())


def planned(project: Project) -> Plan:
    request = PlanRequest(project.policies, NOW_MS, problems=project.loaded.problems)
    return make_plan(project, Lake(), request)  # type: ignore[arg-type] # only facts are asked


def refuse(problem: Problem) -> None:
    pytest.fail(problem.what)


def begin_run(project: Project, *tables: str) -> None:
    """Begin a run of all tables, or of some."""
    plan = planned(project)
    chosen = tuple(table for table in plan.tables if not tables or table.ref.identifier in tables)
    remember_found(project, replace(plan, tables=chosen), refuse)


def new_tables(project: Project) -> list[str]:
    return [table.ref.identifier for table in planned(project).tables if table.is_new]


def test_a_new_table_is_new_until_a_run_has_it(tmp_path: Path) -> None:
    begin_run(fleet(tmp_path, "lake/a", "lake/b"), "lake/a")
    assert new_tables(fleet(tmp_path)) == []  # nobody knows what was there before the first list
    both = fleet(tmp_path, "lake/c", "lake/d")
    begin_run(both, "lake/a", "lake/c")  # one shard
    assert (new_tables(both), gone_tables(both)) == (["lake/d"], ())
    begin_run(both, "lake/b", "lake/d")  # the other
    assert (new_tables(both), gone_tables(both)) == ([], ())


def test_a_plan_says_where_tables_come_from_and_what_could_not_be_done(tmp_path: Path) -> None:
    plan = planned(fleet(tmp_path, "lake/a", "lake/odd", "lake/own"))
    assert {table.ref.identifier: (table.source, table.problem and table.problem.code) for table in plan.tables} == {
        "./gone": ("maintainer.yml", "E645"),
        "lake/a": ("policies/lake.yml:2", None),
        "lake/odd": ("policies/lake.yml:2", "E617"),
        "lake/own": ("policies/own.yml", None),
    }
    assert from_json(to_json(plan)) == plan
    text = render_plan(plan)
    assert "x error E645  there is no such folder" in text
    assert "Managed by rules, without a file of their own: 2 tables." in text
    assert "new" not in text.lower()


@pytest.mark.parametrize(
    ("unsupported", "chosen", "code"),
    [
        (("a",), ("a", "b", "own"), ExitCode.OK),
        (("a",), ("a",), ExitCode.OK),
        (("a", "b"), ("a",), ExitCode.OK),
        (("a", "b"), ("a", "b", "own"), ExitCode.FINDINGS),
        (("own",), ("own",), ExitCode.FINDINGS),
    ],
    ids=["all", "one by name", "one of only such", "all are such", "a policy of its own"],
)
def test_a_selection_makes_no_error_of_a_table_that_cannot_be_maintained(
    tmp_path: Path, unsupported: tuple[str, ...], chosen: tuple[str, ...], code: ExitCode
) -> None:
    project = fleet(tmp_path, "lake/a", "lake/b", "lake/own")
    policies = tuple(policy for policy in project.policies if policy.table.identifier.removeprefix("lake/") in chosen)
    assert len(policies) == len(chosen)
    lake = Lake(**{f"lake_{name}": "T404" for name in unsupported})
    plan = make_plan(project, lake, PlanRequest(policies, NOW_MS))  # type: ignore[arg-type] # only facts are asked
    assert plan_exit_code(plan) is code
    counted = [table for table in plan.tables if table.state is TableState.UNSUPPORTED]
    assert len(counted) == (0 if code is ExitCode.FINDINGS else len(set(unsupported) & set(chosen)))


def test_new_and_gone_tables_are_named_until_the_next_run(tmp_path: Path) -> None:
    begin_run(fleet(tmp_path, "lake/a", "lake/b"))
    (tmp_path / "lake" / "b" / "_delta_log").rmdir()
    plan = planned(fleet(tmp_path, "lake/a", "lake/c"))
    assert [table.ref.identifier for table in plan.tables if table.is_new] == ["lake/c"]
    for text in (render_plan(plan), render_plan_markdown(plan)):
        assert "New since the last run (1): lake/c." in text
        assert "Gone since the last run (1): lake/b (policies/lake.yml:2)." in text.replace("\\", "")
    assert from_json(to_json(plan)) == plan
