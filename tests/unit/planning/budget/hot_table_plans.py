"""Plans of hot tables: updates by others, their rhythm, and a record of runs that lost."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

from maintainer.model.plan.plan import TablePlan
from maintainer.model.plan.steps import CompactStep
from maintainer.model.table.commit_records import HOURS, WriterRhythm
from maintainer.model.table.table_facts import TableFacts, TableRecord, Update
from maintainer.planning.plan_input import TableInput
from maintainer.planning.planner import plan_table
from tests.support.tables.builders import (
    HOUR_MS,
    MINUTE_MS,
    NEVER_TOUCHED,
    NOW_MS,
    make_facts,
    make_file,
    make_files,
    make_optimize,
    make_policy,
)

TODAY = date(2026, 11, 21)
POLICY = make_policy(optimize=make_optimize(quiet_after_updates_seconds=600), lines={"optimize.quietAfterUpdates": 4})
ORDERS = make_facts(files=make_files(10, 20, 30))
DAYS = make_facts(
    files=[make_file(f"{day}-{i}", size=10, partition={"day": day}) for day in ("21", "22") for i in range(2)],
    partitioned_by=("day",),
)


def update(minutes_ago: float, operation: str = "MERGE", days: tuple[str, ...] | None = None) -> Update:
    partitions = None if days is None else frozenset((("day", day),) for day in days)
    return Update(41, NOW_MS - int(minutes_ago * MINUTE_MS), operation, partitions)


def rhythm(updates_an_hour: int, hours: int) -> WriterRhythm:
    """So many updates in each of the last hours."""
    newest = NOW_MS // HOUR_MS % 24
    by_hour = [0] * HOURS
    for back in range(1, hours + 1):
        by_hour[(newest - back) % 24] += updates_an_hour
    return WriterRhythm(NOW_MS - hours * HOUR_MS, NOW_MS, sum(by_hour), tuple(by_hour))


def planned(facts: TableFacts, *updates: Update, writers: WriterRhythm | None = None, quiet: int = 600) -> TablePlan:
    policy = replace(POLICY, optimize=replace(POLICY.optimize, quiet_after_updates_seconds=quiet))
    facts = replace(facts, updates=updates, writers=writers)
    return plan_table(TableInput(policy, facts, NEVER_TOUCHED, NOW_MS, TODAY))


def days_compacted(plan: TablePlan) -> set[str]:
    steps = [step for step in plan.steps if isinstance(step, CompactStep)]
    return {str(dict(file.partition_values)["day"]) for step in steps for batch in step.batches for file in batch.files}


def lost(runs: int, hours_ago: float = 24) -> TableRecord:
    return replace(NEVER_TOUCHED, lost_in_a_row=runs, last_lost_at_ms=NOW_MS - int(hours_ago * HOUR_MS))
