"""Plans of incremental Z-order: a policy, tables with and without a revision, and the step that is planned."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import date
from typing import Any

from maintainer.model.plan.layout_tags import CURVE_CUBE_TAG, ELEMENTS_TAG, REVISION_TAG, STRATEGY_TAG
from maintainer.model.plan.plan import TablePlan
from maintainer.model.plan.reasons import ReasonCode
from maintainer.model.plan.steps import ZOrderStep
from maintainer.model.table.table_facts import ColumnRanges, ColumnSample, DataFile, TableFacts
from maintainer.planning.curve.revision import Revision, make_column
from maintainer.planning.plan_input import TableInput
from maintainer.planning.planner import plan_table
from maintainer.planning.zorder.zorder_options import ranges_wanted, sample_wanted
from maintainer.policy.resolve.resolved import ResolvedPolicy, ZOrderPolicy
from tests.support.tables.builders import NEVER_TOUCHED, NOW_MS, make_facts, make_file, make_optimize, make_policy

COLUMNS = {"id": "long", "day": "date", "name": "string", "flag": "boolean", "tags": {"type": "array"}}
LINES = {"optimize.zorder": 7, "optimize.zorder.columns": 8}
SAMPLE = {
    "id": tuple(str(number) for number in range(1000)),
    "day": tuple(f"2026-01-{number % 28 + 1:02}" for number in range(1000)),
    "name": tuple(f"n{number % 50}" for number in range(1000)),
}
REVISION = Revision(1, (make_column("id", "long", SAMPLE["id"]), make_column("day", "date", SAMPLE["day"])))


def policy_of(*columns: str, optimize: dict[str, Any] | None = None, **zorder: Any) -> ResolvedPolicy:
    zorder_policy = ZOrderPolicy(columns or ("id", "day"), **zorder)
    return make_policy(optimize=make_optimize(zorder=zorder_policy, max_size=1000, **(optimize or {})), lines=LINES)


def facts_of(*files: DataFile, properties: dict[str, str] | None = None, **others: Any) -> TableFacts:
    return make_facts(
        files=files, columns=COLUMNS, properties=properties, columns_with_stats=("id", "day", "name", "flag"), **others
    )


def read(
    policy: ResolvedPolicy, facts: TableFacts, sample: dict[str, tuple[str | None, ...]] | None = None
) -> TableFacts:
    """What the application reads before planning."""
    columns = ranges_wanted(policy, facts)
    if columns and facts.column_ranges is None:
        facts = replace(facts, column_ranges=ColumnRanges(columns, {}))
    wanted = sample_wanted(policy, facts)
    values = tuple((sample or SAMPLE)[name] for name in wanted)
    return replace(facts, column_sample=ColumnSample(wanted, values)) if wanted else facts


def plan(policy: ResolvedPolicy, facts: TableFacts, **others: Any) -> TablePlan:
    return plan_table(TableInput(policy, read(policy, facts, **others), NEVER_TOUCHED, NOW_MS, date(2026, 11, 21)))


def zorder_of(planned: TablePlan) -> ZOrderStep:
    assert planned.problem is None, planned.problem
    (step,) = [step for step in planned.steps if isinstance(step, ZOrderStep)]
    return step


def tagged(path: str, cube: str, elements: int, *, strategy: str = "unindexed", size: int = 100) -> DataFile:
    tags = {REVISION_TAG: REVISION.tag, CURVE_CUBE_TAG: cube, ELEMENTS_TAG: str(elements), STRATEGY_TAG: strategy}
    return make_file(path, size=size, records=elements, tags=tags)


def known(*files: DataFile, **properties: str) -> TableFacts:
    return facts_of(*files, properties={REVISION.property_name: REVISION.to_json(), **properties})


def codes(planned: TablePlan) -> list[ReasonCode]:
    return [left.reason.code for left in planned.left_alone]


def counted(planned: TablePlan, facts: TableFacts) -> None:
    """Every live file is in the turn, or counted once in what is left alone."""
    taken = sum(len(batch.files) for step in planned.steps if isinstance(step, ZOrderStep) for batch in step.batches)
    assert taken + sum(left.num_files for left in planned.left_alone) == len(facts.files)


def files(*sizes: int) -> Iterable[DataFile]:
    return [make_file(f"f{n}", size=size, modified_at_ms=NOW_MS - n) for n, size in enumerate(sizes)]
