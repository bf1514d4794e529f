"""Rules with ``match.minSize`` where tables are read: the size of the live files decides which policy they have."""

from __future__ import annotations

from pathlib import Path

import pytest

from maintainer.app.engine_access import EngineOptions
from maintainer.app.planning.make_plan import PlannedTable, PlanRequest, make_plan
from maintainer.app.policy_tests import run_policy_tests
from maintainer.app.project_folders import Project
from maintainer.app.running.apply_plan import check_saved_plan
from maintainer.app.selection.managed_search import search_tables
from maintainer.app.status.inventory import inventory, located_at
from maintainer.app.status.status_look import status_row
from maintainer.model.plan.plan import Plan, TablePlan
from maintainer.model.table.commit_records import CommitsRead
from maintainer.model.table.storage_facts import VacuumHistory
from maintainer.model.table.table_facts import TableFacts, TableRef
from maintainer.policy.project.policy_project import load_project
from maintainer.report.plan.counterfactuals import what_would_change
from maintainer.report.plan.plan_totals import rule_lines
from maintainer.report.plan.why_text import render_why
from tests.support.policies.projects import write_project
from tests.support.tables.builders import NOW_MS, make_facts, make_files
from tests.unit.app.planning.test_ledger_in_plan import Lake

MIB = 1 << 20
MANAGING = "match: {tables: ['lake/*'], minSize: 100MiB}\nmanage: true\noptimize: {when: {minSmallFiles: 1}}\n"


class Sized(Lake):
    """Tables of so many files of 10 MiB, by their names, and perhaps one more that is not small."""

    def __init__(self, *more: int, **files: int) -> None:
        super().__init__()
        self.more, self.files = more, files

    def facts(self, ref: TableRef) -> TableFacts:
        files = make_files(*[10 * MIB] * self.files[ref.identifier.rpartition("/")[2]], *self.more)
        return make_facts(files=files, name=ref.identifier, location=f"file:/{ref.identifier}")

    def commits(self, ref: TableRef, wanted: object) -> CommitsRead:
        return CommitsRead(ref.location, (), 0)

    def vacuum_history(self, facts: TableFacts, checkpoints: object, *, removed_before_ms: int) -> VacuumHistory:
        assert facts.size_bytes >= 100 * MIB, "removed files are looked for, and nothing manages the table"
        return VacuumHistory()

    def updates(
        self, facts: TableFacts, *, since_ms: int, after_version: int, until_version: int | None = None
    ) -> tuple[()]:
        return ()


def fleet(root: Path, **policies: str) -> Project:
    files = {f"policies/{name}.yml": text for name, text in policies.items()}
    write_project(root, {"maintainer.yml": "version: 1\nroots: [lake]\n", **files})
    for name in ("small", "large"):
        (root / "lake" / name / "_delta_log").mkdir(parents=True, exist_ok=True)
    return search_tables(Project.load(root), EngineOptions())


def planned(project: Project, lake: Sized, looks: list[PlannedTable] | None = None) -> Plan:
    on_table = None if looks is None else looks.append
    return make_plan(project, lake, PlanRequest(project.policies, NOW_MS, on_table=on_table))  # type: ignore[arg-type]


def table(plan: Plan, name: str) -> TablePlan:
    return next(table for table in plan.tables if table.ref.identifier == name)


def test_a_managing_rule_leaves_a_smaller_table_alone_and_says_by_how_much(tmp_path: Path) -> None:
    looks: list[PlannedTable] = []
    project = fleet(tmp_path, lake=MANAGING, all="match: {tables: ['*']}\nvacuum: {}\n")
    plan = planned(project, Sized(small=9, large=10), looks)
    small, large = table(plan, "lake/small"), table(plan, "lake/large")
    assert [step.kind for step in large.steps] == ["compact"]
    assert (small.steps, small.state, small.problem) == ((), "waiting", None)
    (left,) = small.left_alone
    assert left.reason.text == "no rule manages the table below match.minSize, 100 MiB; it has 90 MiB"
    assert (left.reason.code, left.reason.origin) == ("below_min_size", "policies/lake.yml:2")
    look = next(look for look in looks if look.plan is small)
    assert what_would_change(small, look.policy, NOW_MS)
    assert "below match.minSize, 100 MiB" in render_why(small, look.policy, at_ms=NOW_MS)
    assert status_row(look, ()).state == "ok"
    assert "Managed by rules, without a file of their own: 1 table." in rule_lines(plan)


def test_of_several_managing_rules_the_one_for_its_size_manages(tmp_path: Path) -> None:
    every = "match: {tables: ['lake/*']}\npriority: -1\nmanage: true\noptimize: {when: {minSmallFiles: 1000}}\n"
    plan = planned(fleet(tmp_path, lake=MANAGING, every=every), Sized(small=9, large=10))
    assert {name: table(plan, f"lake/{name}").source for name in ("small", "large")} == {
        "small": "policies/every.yml:2",
        "large": "policies/lake.yml:2",
    }
    assert [entry.reason.code for entry in table(plan, "lake/small").left_alone] == ["not_worth_it"]


def test_a_table_with_a_file_has_the_settings_for_its_size(tmp_path: Path) -> None:
    rule = "match: {minSize: 100MiB}\noptimize: {maxThreads: 3}\n"
    project = fleet(tmp_path, small="table: lake/small\n", large="table: lake/large\n", rule=rule)
    looks: list[PlannedTable] = []
    planned(project, Sized(small=9, large=10), looks)
    assert {look.policy.table.identifier: look.policy.optimize.max_threads for look in looks} == {
        "lake/small": 8,
        "lake/large": 3,
    }


@pytest.mark.parametrize("more_now", [(), (300 * MIB,)])
def test_a_saved_plan_keeps_the_size_that_was_measured(tmp_path: Path, more_now: tuple[int, ...]) -> None:
    rule = "match: {minSize: 200MiB}\noptimize: {maxThreads: 3}\n"
    project = fleet(tmp_path, large="table: lake/large\n", rule=rule)
    plan = planned(project, Sized(300 * MIB, large=10))
    lake = Sized(*more_now, large=10)
    checked = check_saved_plan(project, lake, plan, {}, now_ms=NOW_MS)  # type: ignore[arg-type]
    (step,) = table(checked, "lake/large").rewrites
    assert step.max_threads == 3
    changed = fleet(tmp_path, rule=rule.replace("3", "4"))
    (blocked,) = table(check_saved_plan(changed, lake, plan, {}, now_ms=NOW_MS), "lake/large").blocked  # type: ignore[arg-type]
    assert "optimize.maxThreads" in blocked.text


def test_a_test_of_policies_has_the_size_of_the_files_that_it_gives(tmp_path: Path) -> None:
    tests = """\
        tests:
          - {name: small, table: lake/a, given: {files: [{count: 9, size: 10MiB}]}, expect: {steps: []}}
          - name: large
            table: lake/a
            given: {files: [{count: 10, size: 10MiB}]}
            expect: {steps: [{action: compact, files: 10}]}
        """
    rules = {
        "policies/a.yml": "table: lake/a\noptimize: {when: {minSmallFiles: 1000}}\n",
        "policies/rule.yml": "match: {minSize: 100MiB}\nlimits: {maxFiles: 10}\n",
        "policies/_tests/a.yml": tests,
    }
    assert [
        finding.message for finding in run_policy_tests(load_project(write_project(tmp_path, rules))).diagnostics
    ] == ["test `large`: the steps are []"]
    rules["policies/a.yml"] = "table: lake/a\n"
    rules["policies/rule.yml"] = "match: {minSize: 90MiB}\nsuspend: {reason: large}\n"
    messages = [
        finding.message for finding in run_policy_tests(load_project(write_project(tmp_path, rules))).diagnostics
    ]
    assert messages == ["test `large`: the steps are []"]


def test_the_inventory_says_what_it_does_not_know(tmp_path: Path) -> None:
    found = [located_at(f"file:{tmp_path}/lake/{name}", tmp_path) for name in ("small", "large")]
    project = fleet(tmp_path, lake=MANAGING, small="table: lake/small\n").loaded
    entries = inventory(project, found, whole_catalog=False)
    assert {entry.table.identifier: (entry.care.value, entry.policy_file) for entry in entries} == {
        "lake/small": ("managed", "policies/small.yml"),
        "lake/large": ("by size", "policies/lake.yml:2"),
    }
