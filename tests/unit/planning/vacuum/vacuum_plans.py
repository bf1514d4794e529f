"""Plans of vacuum: a policy with its lines, removed files, and the plan of a table today."""

from __future__ import annotations

from datetime import date
from typing import Any

from maintainer.model.plan.plan import TablePlan
from maintainer.model.table.table_facts import RemovedFile, TableFacts, TableRecord
from maintainer.planning.plan_input import TableInput
from maintainer.planning.planner import plan_table
from maintainer.policy.resolve.resolved import Consumer, ResolvedPolicy
from tests.support.tables.builders import DAY_MS, NEVER_TOUCHED, NOW_MS, make_policy, make_vacuum

TODAY = date(2026, 11, 21)
LINES = {"vacuum": 11, "vacuum.retention": 12, "vacuum.every": 13, "consumers": 15}
FILES_PROPERTY = "delta.deletedFileRetentionDuration"


def policy_of(*, consumers: tuple[Consumer, ...] = (), **vacuum: Any) -> ResolvedPolicy:
    return make_policy(vacuum=make_vacuum(**vacuum), consumers=consumers, lines=LINES)


def removed(path: str, *, days_ago: float, version: int | None = 5, size: int = 100) -> RemovedFile:
    return RemovedFile(path, size, NOW_MS - int(days_ago * DAY_MS), removed_in_version=version)


def plan(policy: ResolvedPolicy, facts: TableFacts, record: TableRecord = NEVER_TOUCHED) -> TablePlan:
    return plan_table(TableInput(policy, facts, record, NOW_MS, TODAY))
