"""Plans of compaction today, their bins, and what they leave alone."""

from __future__ import annotations

from datetime import date

from maintainer.model.plan.plan import TablePlan
from maintainer.model.plan.steps import CompactStep
from maintainer.model.table.table_facts import TableFacts, TableRecord
from maintainer.planning.plan_input import TableInput
from maintainer.planning.planner import plan_table
from maintainer.policy.resolve.resolved import ResolvedPolicy
from tests.support.tables.builders import NEVER_TOUCHED, NOW_MS

TODAY = date(2026, 11, 21)


def plan(policy: ResolvedPolicy, facts: TableFacts, record: TableRecord = NEVER_TOUCHED) -> TablePlan:
    return plan_table(TableInput(policy, facts, record, NOW_MS, TODAY))


def bins_of(planned: TablePlan) -> list[list[str]]:
    return [
        [file.path for file in bin_.files]
        for step in planned.steps
        if isinstance(step, CompactStep)
        for batch in step.batches
        for bin_ in batch.bins
    ]


def left_of(planned: TablePlan) -> list[tuple[str, int, int]]:
    return [(left.reason.code.value, left.num_files, left.size_bytes) for left in planned.left_alone]
