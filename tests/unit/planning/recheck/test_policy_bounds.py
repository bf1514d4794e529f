"""A saved plan does nothing that no plan by the policy would do, whoever wrote it and signed it again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from maintainer.model.plan.layout_tags import RewriteRequest
from maintainer.model.plan.plan import Checks, ContentCheck, TablePlan
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import BatchedStep, SetPropertiesStep, VacuumStep, ZOrderStep
from maintainer.model.table.storage_facts import TrashedRun
from maintainer.model.table.table_facts import ColumnRanges, ColumnSample, RemovedFile, TableFacts
from maintainer.planning.curve.revision import PROPERTY_PREFIX
from maintainer.planning.plan_input import TableInput
from maintainer.planning.planner import plan_table
from maintainer.planning.recheck.policy_bounds import beyond_policy
from maintainer.policy.resolve.resolved import (
    AutoCompactPolicy,
    OptimizePolicy,
    PurgePolicy,
    ResolvedPolicy,
    RewritePolicy,
    ZOrderMode,
    ZOrderPolicy,
)
from tests.support.tables.builders import (
    DAY_MS,
    NEVER_TOUCHED,
    NOW_MS,
    make_facts,
    make_file,
    make_files,
    make_optimize,
    make_policy,
    make_vacuum,
)

OLD = RemovedFile("old-1", 10, NOW_MS - 60 * DAY_MS), RemovedFile("old-2", 20, NOW_MS - 60 * DAY_MS)
FACTS = make_facts(files=make_files(10, 20), removed_files=OLD, properties={"delta.appendOnly": "false"})
VACUUM = make_vacuum(retention_seconds=30 * 86400, trash_seconds=14 * 86400)
POLICY = make_policy(vacuum=VACUUM, auto_compact=AutoCompactPolicy(True))
WHY = Reason(ReasonCode.PROPERTY_DRIFT, "asked for")


def planned(policy: ResolvedPolicy = POLICY) -> TablePlan:
    return plan_table(TableInput(policy, FACTS, NEVER_TOUCHED, NOW_MS, date(2026, 11, 21)))


def edited(plan: TablePlan, kind: type, change: Callable[[Any], Any]) -> TablePlan:
    steps = tuple(change(step) if isinstance(step, kind) else step for step in plan.steps)
    assert steps != plan.steps
    return replace(plan, steps=steps)


def with_property(name: str, value: str) -> Callable[[SetPropertiesStep], SetPropertiesStep]:
    return lambda step: replace(step, before=(*step.before, (name, None)), after=(*step.after, (name, value)))


def test_what_the_planner_makes_is_never_beyond() -> None:
    assert [step.kind for step in planned().steps] == ["set_properties", "compact", "vacuum"]
    assert beyond_policy(planned(), POLICY, FACTS) == ()


@pytest.mark.parametrize("mode", [ZOrderMode.INCREMENTAL, ZOrderMode.FULL])
def test_a_compaction_for_want_of_an_order_is_within_a_zorder(mode: ZOrderMode) -> None:
    ranges = ColumnRanges(("id",), {file.key: (("5", "5", False),) for file in FACTS.files})
    facts = replace(FACTS, column_ranges=ranges, column_sample=ColumnSample(("id",), (("5", "5"),)))
    policy = replace(POLICY, optimize=make_optimize(zorder=ZOrderPolicy(("id",), mode)))
    plan = plan_table(TableInput(policy, facts, NEVER_TOUCHED, NOW_MS, date(2026, 11, 21)))
    assert [step.kind for step in plan.rewrites] == ["compact"]
    assert beyond_policy(plan, policy, facts) == ()


def test_deletion_needs_a_vacuum_in_the_policy() -> None:
    plan = replace(planned(), steps=tuple(step for step in planned().steps if isinstance(step, VacuumStep)))
    assert beyond_policy(plan, make_policy(), FACTS) == ("it would delete files, and the policy has no `vacuum:`",)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"retention_seconds": 7 * 86400}, "it would keep removed files for 7d, the policy for 30d"),
        ({"trash_seconds": 0}, "it would delete files that the policy moves into the trash"),
        (
            {"files": (RemovedFile("x", 1, NOW_MS - 60 * DAY_MS, kind="untracked"),)},
            "it would delete files that the log does not know, which the policy does not allow",
        ),
    ],
)
def test_each_way_to_delete_more_is_named(changes: dict[str, Any], says: str) -> None:
    plan = edited(planned(), VacuumStep, lambda step: replace(step, **changes))
    assert beyond_policy(plan, POLICY, FACTS) == (says,)


def test_a_plan_that_only_empties_the_trash_moves_nothing_into_it() -> None:
    trashed = TrashedRun("20261001T220000Z-0000", "file:/lake/.trash/orders/r", 1, 10, NOW_MS - DAY_MS)
    step = VacuumStep((), NOW_MS, 30 * 86400, "policy", (WHY,), emptied=(trashed,))
    assert beyond_policy(replace(planned(), steps=(step,)), POLICY, FACTS) == ()


def test_untracked_files_go_where_the_policy_says_so() -> None:
    files = (RemovedFile("x", 1, NOW_MS - 60 * DAY_MS, kind="untracked"),)
    plan = edited(planned(), VacuumStep, lambda step: replace(step, files=files))
    assert beyond_policy(plan, replace(POLICY, vacuum=replace(VACUUM, delete_untracked=True)), FACTS) == ()


@pytest.mark.parametrize(("name", "value"), [("delta.logRetentionDuration", "interval 0 days"), ("mine", "1")])
def test_a_property_that_nobody_asked_for_is_named(name: str, value: str) -> None:
    plan = edited(planned(), SetPropertiesStep, with_property(name, value))
    says = f"it would set the table property {name} to {value}, which the policy does not ask for"
    assert beyond_policy(plan, POLICY, FACTS) == (says,)


def test_a_property_that_is_set_already_is_no_change() -> None:
    plan = edited(planned(), SetPropertiesStep, with_property("delta.appendOnly", "false"))
    assert beyond_policy(plan, POLICY, FACTS) == ()


def test_a_property_is_not_removed_unasked() -> None:
    plan = edited(planned(), SetPropertiesStep, lambda step: replace(step, unset=("delta.appendOnly",)))
    says = "it would remove the table property delta.appendOnly, which the policy does not ask for"
    assert beyond_policy(plan, POLICY, FACTS) == (says,)
    unset = SetPropertiesStep((("delta.appendOnly", "false"),), (), (WHY,), ("delta.appendOnly",))
    alone = replace(plan, steps=(unset,))
    assert beyond_policy(alone, make_policy(), FACTS) == (says,)


def test_a_revision_belongs_to_an_incremental_zorder_and_to_nothing_else() -> None:
    policy = make_policy(optimize=make_optimize(zorder=ZOrderPolicy(("id",)), max_size=1000))
    sample = ColumnSample(("id",), (tuple(str(number) for number in range(1000)),))
    facts = replace(
        make_facts(files=make_files(600, 700), columns={"id": "long"}, columns_with_stats=("id",)),
        column_ranges=ColumnRanges(("id",), {}),
        column_sample=sample,
    )
    plan = plan_table(TableInput(policy, facts, NEVER_TOUCHED, NOW_MS, date(2026, 11, 21)))
    revision, turn = plan.steps
    assert isinstance(revision, SetPropertiesStep)
    assert isinstance(turn, ZOrderStep)
    ((name, value),) = revision.after
    assert name.startswith(PROPERTY_PREFIX)
    assert beyond_policy(plan, policy, facts) == ()
    (says,) = beyond_policy(replace(plan, steps=(revision,)), policy, facts)
    assert says == f"it would set the table property {name} to {value}, which the policy does not ask for"
    kind = "its rewrite is of the kind zorder, the policy asks for compact"
    assert beyond_policy(plan, make_policy(optimize=make_optimize(max_size=1000)), facts) == (says, kind)


def test_checks_are_not_switched_off() -> None:
    says = ("it would check the work by other checks than the policy's `verify:`",)
    assert beyond_policy(replace(planned(), checks=Checks(content=ContentCheck.OFF)), POLICY, FACTS) == says
    assert beyond_policy(replace(planned(), steps=(), checks=Checks(files=False)), POLICY, FACTS) == ()


def rewrite_planned(optimize: OptimizePolicy, facts: TableFacts) -> tuple[TablePlan, ResolvedPolicy]:
    policy = make_policy(optimize=optimize)
    plan = plan_table(TableInput(policy, facts, NEVER_TOUCHED, NOW_MS, date(2026, 11, 21)))
    assert plan.steps
    assert beyond_policy(plan, policy, facts) == ()
    return plan, policy


SMALL = make_facts(files=make_files(10, 20), columns={"id": "long", "b": "long"}, columns_with_stats=("id", "b"))
CLUSTERED = replace(SMALL, clustering_columns=("id",))
HALF_DELETED = replace(SMALL, files=(make_file(records=100, deleted=60),))
FULL = replace(make_optimize(max_size=1000), zorder=ZOrderPolicy(("id",), ZOrderMode.FULL))
SORTED = replace(make_optimize(max_size=1000), rewrite=RewritePolicy(num_files=1, sort_by=("id",)))
PURGE = replace(make_optimize(max_size=1 << 30), purge=PurgePolicy(), max_deleted_rows_ratio=1.0)
CUBES = "it would cluster by other settings than the policy's `optimize.cluster:`"


@pytest.mark.parametrize(
    ("optimize", "facts", "changes", "says"),
    [
        (make_optimize(max_size=1000), SMALL, {"max_threads": 64}, "it would use 64 threads, the policy 4"),
        (
            make_optimize(max_size=1000),
            SMALL,
            {"max_file_size_bytes": 1 << 40},
            "it would write files of up to 1 TiB, the policy asks for 1000 B",
        ),
        (FULL, SMALL, {"columns": ("b",)}, "it would put rows in order of b, the policy asks for id"),
        (FULL, SMALL, {"max_threads": 64}, "it would use 64 threads, the policy 4"),
        (
            SORTED,
            SMALL,
            {"request": RewriteRequest(7, None, ("b",))},
            "it would write 7 files a partition, sorted by b, the policy asks for 1 file a partition, sorted by id",
        ),
        (make_optimize(max_size=1000), CLUSTERED, {"full": True}, CUBES),
        (make_optimize(max_size=1000), CLUSTERED, {"min_cube_size_bytes": 1}, CUBES),
        (PURGE, HALF_DELETED, {"max_threads": 64}, "it would use 64 threads, the policy 4"),
    ],
)
def test_a_rewrite_is_the_one_that_the_policy_asks_for(
    optimize: OptimizePolicy, facts: TableFacts, changes: dict[str, Any], says: str
) -> None:
    plan, policy = rewrite_planned(optimize, facts)
    assert beyond_policy(edited(plan, BatchedStep, lambda step: replace(step, **changes)), policy, facts) == (says,)


def test_a_rewrite_of_another_kind_is_named() -> None:
    full, policy = rewrite_planned(FULL, SMALL)
    plain = make_policy(optimize=make_optimize(max_size=1000))
    assert beyond_policy(full, plain, SMALL) == ("its rewrite is of the kind zorder, the policy asks for compact",)
    sorted_plan, _ = rewrite_planned(SORTED, SMALL)
    assert beyond_policy(sorted_plan, policy, SMALL) == (
        "its rewrite is of the kind rewrite, the policy asks for zorder",
    )
    mode = "its Z-order is of another mode than the policy's `optimize.zorder.mode`"
    assert beyond_policy(full, make_policy(optimize=replace(FULL, zorder=ZOrderPolicy(("id",)))), SMALL) == (mode,)


def test_a_purge_needs_one_in_the_policy() -> None:
    plan, _ = rewrite_planned(PURGE, HALF_DELETED)
    (says,) = beyond_policy(plan, make_policy(optimize=replace(PURGE, purge=None)), HALF_DELETED)
    assert says == "it would purge files, and the policy has no `optimize.purge:`"
