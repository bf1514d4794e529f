"""Tables that rules manage, in a plan and in its words: where they come from, which are new, which are gone."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import cast

import pytest

from maintainer.app.engine_access import EngineOptions, ProvingWorker
from maintainer.app.planning.make_plan import PlanRequest, make_plan
from maintainer.app.project_folders import Project
from maintainer.app.running.observers.webhook import RunNamed, failure_message
from maintainer.app.running.verify_commits import (
    VerifyRequest,
    verification_document,
    verification_from_json,
    verification_json,
    verify_tables,
)
from maintainer.app.selection.managed_search import gone_tables, remember_found, search_tables
from maintainer.errors import ExitCode
from maintainer.journal.journal import Journal
from maintainer.model.plan.plan import Plan, Problem, TableState, is_place
from maintainer.model.plan.plan_document import from_json, to_json
from maintainer.model.plan.reasons import ReasonCode
from maintainer.model.run.commit_verdict import TableVerification, VerifyRun
from maintainer.model.run.exit_codes import exit_code, plan_exit_code
from maintainer.model.run.history_rows import StatusRow
from maintainer.model.run.outcome import RunOutcome, TableOutcome, TableStatus, run_to_document
from maintainer.model.table.storage_facts import StorageLook
from maintainer.model.table.table_facts import TableFacts, TableRef
from maintainer.report.html.fleet_view import fleet_view
from maintainer.report.html.page import render_page
from maintainer.report.html.run_view import run_view
from maintainer.report.plan.plan_markdown import render_plan_markdown
from maintainer.report.plan.plan_text import render_plan
from maintainer.report.run.run_text import ended_tables, render_run
from maintainer.report.run.verify_text import render_verify
from maintainer.report.status_text import render_status
from tests.support.policies.projects import write_project
from tests.support.tables.builders import NOW_MS
from tests.unit.app.planning.test_ledger_in_plan import Lake
from tests.unit.report.html.page_outline import said

RULE = "match: {tables: ['lake/*', 'gone/*']}\nmanage: true\nowner: team-lake\nvacuum: {retention: 7d}\n"
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


class LookedAt(Lake):
    """Its tables have nothing to delete, and nothing that holds a deletion."""

    def vacuum_look(self, facts: TableFacts, question: object) -> TableFacts:
        return replace(facts, removed_files=(), storage=StorageLook())


@pytest.mark.parametrize(
    ("clones", "who"),
    [(["gone/clone"], "gone/clone"), (["gone/c1", "gone/c2", "gone/c3"], "gone/c1, or any of 2 more,")],
)
def test_a_clone_below_a_root_that_is_missing_holds_every_deletion(tmp_path: Path, clones: list[str], who: str) -> None:
    """Its disk may not be mounted. The table may as well be gone, which nobody can tell."""
    begin_run(fleet(tmp_path, "lake/a", *clones))
    shutil.rmtree(tmp_path / "gone")
    project = fleet(tmp_path)
    request = PlanRequest(project.policies, NOW_MS, problems=project.loaded.problems)
    plan = make_plan(project, LookedAt(), request)  # type: ignore[arg-type] # only facts are asked
    (table,) = (table for table in plan.tables if table.ref.identifier == "lake/a")
    said = f"whether {who} needs files of this table is not known: its place could not be searched"
    assert [(reason.code, reason.text) for reason in table.blocked] == [(ReasonCode.CANNOT_BE_SURE, said)]


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


def test_a_place_that_could_not_be_searched_is_no_table_of_any_sum(tmp_path: Path) -> None:
    project = fleet(tmp_path, "lake/a", "lake/odd", "lake/own")
    plan = planned(project)
    assert [table.ref.identifier for table in plan.tables if is_place(table)] == ["./gone"]
    text = render_plan(plan)
    assert "   3 tables\n" in text
    sums = "0 tables to change, 0 steps; 2 up to date, 1 cannot be planned; 1 place could not be searched"
    assert f"\nPlan: {sums}.\n" in text
    assert f"**{sums}**" in render_plan_markdown(plan)
    ends = [TableOutcome.of(table, TableStatus.UP_TO_DATE, problem=table.problem) for table in plan.tables]
    ends = [replace(end, status=TableStatus.FAILED) if end.problem else end for end in ends]
    outcome = RunOutcome("20261121T220001Z-0000", NOW_MS, 1.0, tuple(ends))
    assert "\n3 tables: 2 up to date, 1 failed; 1 place could not be searched.\n" in render_run(outcome)
    counts = run_to_document(outcome)["counts"]
    assert (counts["up_to_date"], counts["failed"], sum(counts.values())) == (2, 1, 3)
    assert exit_code(outcome) is plan_exit_code(plan) is ExitCode.FINDINGS
    page = " ".join(said(render_page(run_view(plan, outcome, {}, UTC, run_folder="r"))).split())
    assert "0 of 3tables changed 1failed 1place that could not be searched" in page
    fleet_page = said(render_page(fleet_view([(plan, outcome)], UTC)))
    assert "In their last run, of 3: 1 table failed; 1 place could not be searched." in fleet_page
    rows = [
        StatusRow(end.ref.identifier, "problem" if end.problem else "ok", policy_file=end.policy_file) for end in ends
    ]
    assert render_status(rows, NOW_MS).endswith("\n3 tables: 2 ok, 1 problem; 1 place could not be searched\n")
    request = VerifyRequest((), project.loaded.problems)
    journal = Journal.open(project.runs_dir, "20261121T220002Z-0000", lambda: NOW_MS)
    verified = verify_tables(project, cast("ProvingWorker", None), journal, request)
    assert "\n1 table: 1 could not check; 1 place could not be searched, " in render_verify(verified)
    assert verification_document(verified)["counts"]["not_checked"] == 1
    assert verification_from_json(verification_json(verified)) == verified


def test_several_places_with_one_cause_are_called_places(tmp_path: Path) -> None:
    one = next(table for table in planned(fleet(tmp_path)).tables if is_place(table))
    bad = [replace(one, ref=TableRef(f"./gone{number}")) for number in range(3)]
    bad += [replace(each, ref=TableRef(f"a.t{number}"), policy_file="p.yml") for number, each in enumerate(bad)]
    plan = Plan(NOW_MS, NOW_MS, tuple(bad))
    ends = tuple(TableOutcome.of(table, TableStatus.FAILED, problem=table.problem) for table in bad)
    outcome = RunOutcome("20261121T220001Z-0000", NOW_MS, 1.0, ends)
    rows = [StatusRow(str(end.ref), "problem", next="gone", policy_file=end.policy_file) for end in ends]
    verified = VerifyRun(
        "r", NOW_MS, 1.0,
        tuple(TableVerification(end.ref, problem=end.problem, is_place=is_place(end)) for end in ends),
    )  # fmt: skip
    run = RunNamed("r", "/runs/r", "lake", None)
    message = failure_message(run, ends, ExitCode.FINDINGS, NOW_MS)
    assert message["num_tables"] == 3
    for text in (
        render_plan(plan),
        render_run(outcome),
        " ".join(subject.title for subject in ended_tables(ends).subjects),
        render_status(rows, NOW_MS),
        render_verify(verified),
        message["text"],
        said(render_page(run_view(plan, outcome, {}, UTC, run_folder="r"))),
        said(render_page(fleet_view([(plan, outcome)], UTC))),
    ):
        assert "3 places" in text
        assert "3 tables" in text
        assert "6 tables" not in text


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
    assert "New since the last run (1): lake/c." in render_plan(plan)
    assert "Gone since the last run (1): lake/b (policies/lake.yml:2)." in render_plan(plan)
    assert from_json(to_json(plan)) == plan


def test_markdown_names_new_and_gone_tables_whole(tmp_path: Path) -> None:
    begin_run(fleet(tmp_path, "lake/a", "lake/b @old"))
    (tmp_path / "lake" / "b @old" / "_delta_log").rmdir()
    text = render_plan_markdown(planned(fleet(tmp_path, "lake/a", "lake/c $new $1")))
    assert "New since the last run (1): `lake/c $new $1`." in text
    assert "Gone since the last run (1): `lake/b @old` (`policies/lake.yml:2`)." in text
