"""What a change of policies is compared with: a plan of the same tables by the policies as they were."""

from __future__ import annotations

from pathlib import Path

from maintainer.app.planning.make_plan import PlanRequest, compare_plan, fit, make_plan
from maintainer.app.project_folders import Project
from maintainer.policy.project.policy_changes import policies_at
from maintainer.policy.project.project_settings import Budget
from maintainer.report.plan.plan_markdown import render_plan_markdown
from tests.support.policies.projects import git, write_project
from tests.support.runs.fake_lake import FakeLake
from tests.support.runs.fake_table import ROW_BYTES
from tests.support.tables.builders import NOW_MS

SIZE = "optimize: {{maxFileSize: {size}, minFileSize: {size}}}\n"
ENOUGH = SIZE.format(size="1B")
MORE = SIZE.format(size="1MiB")


def test_changed_tables_are_planned_as_they_were_and_the_others_are_not_read_again(tmp_path: Path) -> None:
    write_project(
        tmp_path,
        {"policies/changed.yml": f"table: changed\n{ENOUGH}", "policies/same.yml": f"table: same\n{MORE}"},
    )
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "before")
    write_project(tmp_path, {"policies/changed.yml": f"table: changed\n{MORE}"})
    project, lake = Project.load(tmp_path), FakeLake()
    for name in ("changed", "same", "new"):
        lake.table(name, (1, 2), (3, 4, 5))
    request = PlanRequest(project.policies, NOW_MS)
    made = make_plan(project, lake, request)
    read: list[str] = []
    lake.at("facts", lambda where: read.append(where.table.name))
    compared = compare_plan(project, lake, request, made, policies_at(project.loaded, "HEAD"), "HEAD", Budget())
    before = {table.ref.identifier: sum(step.num_files for step in table.rewrites) for table in compared.plan.tables}
    now = {table.ref.identifier: sum(step.num_files for step in table.rewrites) for table in made.tables}
    assert (before, now) == ({"changed": 0, "same": 2}, {"changed": 2, "same": 2})
    assert set(read) == {"changed"}
    (change,) = compared.changes.changed
    assert change.table == "changed"
    bytes_before, bytes_now = 5 * ROW_BYTES, 10 * ROW_BYTES
    text = f"the next apply rewrites {bytes_before} B more: {bytes_before} B -> {bytes_now} B"
    assert text in render_plan_markdown(made, compared=compared)


def test_both_plans_are_fitted_into_the_budget_of_the_run(tmp_path: Path) -> None:
    """A budget leaves rewrites for other nights by either policy; a change that rewrites nothing saves nothing."""

    def policy(name: str, hours: int) -> str:
        return f"table: {name}\n{MORE}limits: {{timeout: {hours}h}}\n"

    names = ("changed", "other", "same")
    write_project(tmp_path, {f"policies/{name}.yml": policy(name, 3) for name in names})
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "before")
    write_project(tmp_path, {"policies/changed.yml": policy("changed", 2)})
    project, lake, budget = Project.load(tmp_path), FakeLake(), Budget(size_bytes=2 * 5 * ROW_BYTES)
    for name in names:
        lake.table(name, (1, 2), (3, 4, 5))
    request = PlanRequest(project.policies, NOW_MS)
    made = make_plan(project, lake, request)
    compared = compare_plan(project, lake, request, made, policies_at(project.loaded, "HEAD"), "HEAD", budget)
    lines = render_plan_markdown(fit(project, made, budget), compared=compared).splitlines()
    said = [line.strip("* -") for line in lines if "the next apply rewrites" in line]
    assert said == ["the next apply rewrites and deletes as much as before"]
