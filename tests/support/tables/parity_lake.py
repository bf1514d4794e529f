"""Many small tables, each with a policy of its own, planned and applied in one run: what parity tests look at.

Tables are written by another engine, one file a partition and commit, so that building them starts no Spark job. What
came of them is read from the log as plain JSON.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from maintainer.app.planning.make_plan import PlanRequest, make_plan
from maintainer.app.project_folders import Project
from maintainer.app.running.apply_plan import apply_plan, open_journal
from maintainer.app.selection.run_spec import RunSpec
from maintainer.engine.protocols import Engine
from maintainer.model.plan.plan import Plan, TablePlan
from maintainer.model.run.optimize_metrics import OptimizeMetrics
from maintainer.model.run.outcome import RunOutcome, TableOutcome
from tests.support.policies.projects import write_project
from tests.support.runs.app_runs import CHEAP_CHECKS, commit_info, newest_version
from tests.support.tables.aged_tables import now_ms
from tests.support.tables.delta_tables import actions_of, second_engine_rows


@dataclass(frozen=True)
class Case:
    """How a table is built (at the path given), the rest of its policy, and its name where it is not the path."""

    build: Callable[[Path], object]
    policy: str = ""
    name: str | None = None


@dataclass(frozen=True)
class Before:
    """A table as it was before anything of ours touched it."""

    version: int
    files: tuple[dict[str, Any], ...]
    rows: Counter[str] | None


@dataclass(frozen=True)
class Applied:
    """All cases after one apply; ``second`` is the plan that was made right after it."""

    root: Path
    before: Mapping[str, Before]
    plan: Plan
    outcome: RunOutcome
    second: Plan

    def path(self, case: str) -> Path:
        return self.root / "lake" / case

    def planned(self, case: str, plan: Plan | None = None) -> TablePlan:
        wanted = f"policies/{case}.yml"
        (table_of_case,) = (table for table in (plan or self.plan).tables if table.policy_file == wanted)
        return table_of_case

    def ended(self, case: str) -> TableOutcome:
        (table_of_case,) = (table for table in self.outcome.tables if table.policy_file == f"policies/{case}.yml")
        return table_of_case

    def metrics(self, case: str) -> OptimizeMetrics:
        """The figures of the case's only rewrite, which succeeded."""
        (step,) = (step for step in self.ended(case).steps if step.metrics is not None)
        assert step.status.value == "succeeded", step
        assert step.metrics is not None
        return step.metrics

    def files(self, case: str) -> dict[tuple[str | None, ...], int]:
        """Live files now, by partition values."""
        return files_by_partition(live_files(self.path(case)))

    def commits(self, case: str) -> list[dict[str, Any]]:
        """``commitInfo`` of every commit since, oldest first."""
        path = self.path(case)
        return [
            commit_info(path, version) for version in range(self.before[case].version + 1, newest_version(path) + 1)
        ]

    def check_only_layout_changed(self, case: str) -> None:
        """The same rows by the second engine, and no action of ours says that it changed data."""
        path, before = self.path(case), self.before[case]
        if before.rows is not None:
            assert second_engine_rows(path) == before.rows
        for version in range(before.version + 1, newest_version(path) + 1):
            actions = [action.get("add") or action.get("remove") for action in actions_of(path, version)]
            assert {action["dataChange"] for action in actions if action is not None} <= {False}

    def check_nothing_is_left(self, case: str) -> None:
        """A second apply would commit nothing."""
        assert self.planned(case, self.second).state == "up_to_date"


def run_cases(engine: Engine, root: Path, cases: Mapping[str, Case], *, read_rows: bool = True) -> Applied:
    """Build every table, plan and apply all of them in one run, and plan once more."""
    before: dict[str, Before] = {}
    files = {"maintainer.yml": CHEAP_CHECKS}
    for case, made in cases.items():
        path = root / "lake" / case
        made.build(path)
        rows = second_engine_rows(path) if read_rows else None
        before[case] = Before(newest_version(path), tuple(live_files(path)), rows)
        files[f"policies/{case}.yml"] = f"table: {made.name or path}\n{made.policy}"
    project = Project.load(write_project(root, files))
    plan = make_plan(project, engine, PlanRequest(project.policies, now_ms(), jobs=2))
    with open_journal(project) as journal:
        outcome = apply_plan(project, engine, plan, journal, None, RunSpec(jobs=2))
    second = make_plan(project, engine, PlanRequest(project.policies, now_ms(), jobs=2))
    return Applied(root, before, plan, outcome, second)


def live_files(path: Path) -> list[dict[str, Any]]:
    """The live ``add`` actions, by replaying every commit file."""
    live: dict[tuple[str, str], dict[str, Any]] = {}
    for version in range(newest_version(path) + 1):
        for action in actions_of(path, version):
            for kind in ("remove", "add"):
                if kind in action:
                    vector = action[kind].get("deletionVector") or {}
                    key = (action[kind]["path"], f"{vector.get('pathOrInlineDv')}@{vector.get('offset')}")
                    live.pop(key, None)
                    if kind == "add":
                        live[key] = action[kind]
    return list(live.values())


def files_by_partition(files: Sequence[Mapping[str, Any]]) -> dict[tuple[str | None, ...], int]:
    """Files by partition values, columns in alphabetical order."""
    return dict(
        Counter(tuple(file["partitionValues"][key] for key in sorted(file["partitionValues"])) for file in files)
    )


def table_of(
    *commits: Sequence[Mapping[str, Any]],
    by: Sequence[str] = (),
    schema: pa.Schema | None = None,
    properties: Mapping[str, str] | None = None,
) -> Callable[[Path], None]:
    """A builder: one append for each list of rows."""

    def build(path: Path) -> None:
        for rows in commits:
            data = pa.Table.from_pylist([dict(row) for row in rows], schema=schema)
            write_deltalake(
                str(path),
                data,
                mode="append",
                partition_by=list(by) or None,
                configuration=dict(properties) if properties else None,
            )

    return build
