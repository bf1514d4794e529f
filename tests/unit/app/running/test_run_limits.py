"""What one run may rewrite or delete, as maintainer.yml says it."""

from __future__ import annotations

from pathlib import Path

import pytest

from maintainer.app.project_folders import Project
from maintainer.app.running.apply_plan import check_run_limits
from maintainer.errors import Refused
from maintainer.model.plan.plan import Plan
from tests.support.policies.projects import write_project
from tests.support.runs.fake_lake import FakeLake
from tests.support.runs.planned_steps import compact, plan_all, plan_of, vacuum


def plan() -> Plan:
    """Two files are rewritten, and three deleted."""
    lake = FakeLake()
    a, b = lake.table("s.a", (1,), (2,)), lake.table("s.b", (1,))
    return plan_all(plan_of(a, compact(a), vacuum("x", "y")), plan_of(b, vacuum("z")))


@pytest.mark.parametrize(("limits", "found"), [
    ("{maxFiles: 5}", None),
    ("{maxFiles: 4}", "limits.maxFiles: 5 files (2 to rewrite, 3 to delete)"),
    ("{maxFiles: 2, maxBytes: 1}", "limits.maxBytes: 16 B\nlimits.maxFiles: 5 files (2 to rewrite, 3 to delete)"),
])  # fmt: skip
def test_files_to_rewrite_and_to_delete_count_together(tmp_path: Path, limits: str, found: str | None) -> None:
    root = write_project(tmp_path, {"maintainer.yml": f"limits: {limits}\n", "policies/a.yml": "table: s.a\n"})
    project = Project.load(root)
    if found is None:
        check_run_limits(project, plan())
        return
    with pytest.raises(Refused) as caught:
        check_run_limits(project, plan())
    assert (caught.value.code, caught.value.found) == ("A421", found)
