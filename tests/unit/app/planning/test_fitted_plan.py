"""The budgets and limits of a project that a plan is fitted into."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from maintainer.app.planning.make_plan import fit
from maintainer.app.project_folders import Project
from maintainer.model.plan.steps import Batch, ZOrderStep
from maintainer.model.plan.zorder_turn import Strategy, ZOrderSettings
from maintainer.policy.project.project_settings import Budget
from tests.support.policies.projects import write_project
from tests.support.runs import sample_plans

MIB = 2**20


@pytest.mark.parametrize(
    ("settings", "given", "most_mib", "most_files"),
    [
        ("", Budget(), None, None),
        ("budget: {maxBytes: 40MiB}\n", Budget(), 40, None),
        ("budget: {maxBytes: 40MiB}\n", Budget(size_bytes=20 * MIB), 20, None),
        ("budget: {maxBytes: 40MiB}\nlimits: {maxBytes: 30MiB}\n", Budget(), 30, None),
        ("limits: {maxFiles: 6}\n", Budget(), None, 6),
    ],
)
def test_later_turns_of_a_z_order_are_within_them(
    tmp_path: Path, settings: str, given: Budget, most_mib: int | None, most_files: int | None
) -> None:
    write_project(tmp_path, {"maintainer.yml": settings, "policies/t.yml": "table: sales.orders\n"})
    turn = ZOrderSettings("r", "r", (Strategy.UNINDEXED,), 1, 1, 1, 0.0, max_turns=500)
    bins = (sample_plans.data_bin(None, [5, 5], "t"),)
    step = ZOrderStep((Batch(bins),), ("id",), MIB, 2, (), settings=turn)
    plan = sample_plans.plan(replace(sample_plans.orders(), steps=(step,)))
    (fitted,) = fit(Project.load(tmp_path), plan, given).tables[0].steps
    assert isinstance(fitted, ZOrderStep)
    assert fitted.settings is not None
    assert fitted.settings.budget_bytes == (None if most_mib is None else most_mib * MIB)
    assert fitted.settings.budget_files == most_files
