"""Policies applied in this process: a project on disk, planned and carried out through the app layer, no command line.

What is looked at afterwards is read from the table's log as plain JSON, which shares nothing with what is tested.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maintainer.app.planning.make_plan import PlanRequest, make_plan
from maintainer.app.project_folders import Project
from maintainer.app.running.apply_plan import apply_plan, open_journal
from maintainer.app.selection.run_spec import RunSpec
from maintainer.engine.protocols import Engine
from maintainer.model.plan.plan import Plan, TablePlan
from maintainer.model.run.outcome import RunOutcome, StepOutcome, TableOutcome
from tests.support.policies.projects import write_project
from tests.support.tables.delta_tables import actions_of

CHEAP_CHECKS = "defaults: {verify: {rowCount: off, content: off, files: false}, optimize: {quietAfterUpdates: 0s}}\n"
"""The proof before each commit stays; what is looked at after it, these tests look at themselves. Tables were made a
moment ago, by updates as well, and nobody else is at work."""


@dataclass(frozen=True)
class Applied:
    """What a policy planned for one table and what came of it."""

    plan: Plan
    outcome: RunOutcome

    @property
    def table_plan(self) -> TablePlan:
        """The plan of the only table."""
        (table,) = self.plan.tables
        return table

    @property
    def table(self) -> TableOutcome:
        """How the only table ended."""
        (table,) = self.outcome.tables
        return table

    @property
    def step(self) -> StepOutcome:
        """The only step."""
        (step,) = self.table.steps
        return step


def planned(engine: Engine, root: Path, policy: str) -> tuple[Project, Plan]:
    """Write ``policy`` as the only one of a project at ``root`` and plan it."""
    project = Project.load(write_project(root, {"maintainer.yml": CHEAP_CHECKS, "policies/table.yml": policy}))
    return project, make_plan(project, engine, PlanRequest(project.policies, int(time.time() * 1000), jobs=1))


def applied(engine: Engine, root: Path, policy: str) -> Applied:
    """Write ``policy`` as the only one of a project at ``root``, plan it and apply the plan."""
    project, plan = planned(engine, root, policy)
    with open_journal(project) as journal:
        return Applied(plan, apply_plan(project, engine, plan, journal, None, RunSpec()))


def commit_info(table: Path, version: int) -> dict[str, Any]:
    """The ``commitInfo`` of one commit."""
    (info,) = (action["commitInfo"] for action in actions_of(table, version) if "commitInfo" in action)
    return dict(info)


def newest_version(table: Path) -> int:
    """The newest version that the log has a commit file of."""
    return max(int(file.stem) for file in (table / "_delta_log").glob("*.json") if file.stem.isdigit())
