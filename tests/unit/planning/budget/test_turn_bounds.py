"""Later turns of an incremental Z-order keep to the bounds that the first one was counted for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from maintainer.model.plan.plan import Plan, TablePlan
from maintainer.model.plan.steps import Batch, CompactStep, ZOrderStep
from maintainer.model.plan.zorder_turn import Strategy, ZOrderSettings
from maintainer.model.table.table_facts import TableRef
from maintainer.planning.budget.run_budget import Learned
from maintainer.planning.budget.turn_bounds import with_turns_bounded
from maintainer.policy.project.project_settings import Budget, Budgets
from tests.support.runs import sample_plans

MIB = 2**20
NO_LIMITS = Budget()


def turns(
    name: str, *, limit_mib: int | None = None, owner: str | None = None, policy_file: str = "p.yml"
) -> TablePlan:
    """A table whose first turn takes two files of 5 MiB together."""
    limit = None if limit_mib is None else limit_mib * MIB
    settings = ZOrderSettings("r", "r", (Strategy.UNINDEXED,), 1, 1, 1, 0.0, max_turns=500, budget_bytes=limit)
    bins = (sample_plans.data_bin(None, [5, 5], name),)
    step = ZOrderStep((Batch(bins),), ("id",), 1024 * MIB, 2, (), settings=settings)
    return TablePlan(TableRef(name), policy_file, "sha256:0", steps=(step,), owner=owner)


def compaction(name: str, size_mib: int, owner: str | None = None) -> TablePlan:
    bin_ = sample_plans.data_bin(None, [size_mib - 1, 1], name)
    return TablePlan(
        TableRef(name), "p.yml", "sha256:0", steps=(CompactStep((Batch((bin_,)),), 1024 * MIB, 2, ()),), owner=owner
    )


def plan_of(*tables: TablePlan) -> Plan:
    return replace(sample_plans.full_plan(), tables=tables)


def granted(
    plan: Plan, budgets: Budgets, limits: Budget = NO_LIMITS, learned: Learned | None = None
) -> list[int | None]:
    """The MiB of all turns of each table together, None for no bound; those of files come behind."""
    bounded = with_turns_bounded(plan, budgets, learned or Learned(), limits)
    steps = (step for table in bounded.tables for step in table.steps if isinstance(step, ZOrderStep))
    settings = [step.settings for step in steps if step.settings is not None]
    size = [None if each.budget_bytes is None else each.budget_bytes // MIB for each in settings]
    files = [each.budget_files for each in settings]
    return size if set(files) == {None} else [*size, *files]


def run(**bounds: int) -> Budgets:
    return Budgets(Budget(**bounds))


@pytest.mark.parametrize(("budgets", "most"), [
    (Budgets(), None),
    (run(size_bytes=10 * MIB), 10),
    (run(size_bytes=50 * MIB), 50),
    (run(seconds=3), 30),
    (run(size_bytes=50 * MIB, seconds=2), 20),
    (Budgets(tables=(("t", Budget(size_bytes=40 * MIB)),)), 40),
    (Budgets(tables=(("u", Budget(size_bytes=40 * MIB)),)), None),
    (Budgets(owners=(("ann", Budget(size_bytes=30 * MIB)),)), 30),
    (Budgets(owners=(("bob", Budget(size_bytes=30 * MIB)),)), None),
])  # fmt: skip
def test_all_turns_together_are_within_each_bound(budgets: Budgets, most: int | None) -> None:
    slow = Learned({"zorder": 10.0 * MIB})
    assert granted(plan_of(turns("t", owner="ann")), budgets, learned=slow) == [most]
    # A limit of the policy stays where it is the smaller one.
    assert granted(plan_of(turns("t", owner="ann", limit_mib=25)), budgets, learned=slow) == [min(most or 25, 25)]


def test_files_are_bounded_as_files() -> None:
    assert granted(plan_of(turns("t")), run(num_files=7)) == [None, 7]
    assert granted(plan_of(turns("a"), turns("b"), compaction("c", 20)), run(num_files=13)) == [None, None, 5, 5]
    assert granted(plan_of(turns("t")), run(size_bytes=30 * MIB, num_files=1)) == [30, 2]


def test_what_is_left_is_divided_among_those_that_go_on() -> None:
    tables = (turns("a", owner="ann"), compaction("b", 20, "ann"), turns("c"), turns("l", policy_file="built-in"))
    assert granted(plan_of(*tables), run(size_bytes=100 * MIB)) == [40, 40, None]  # the ledger has no part in it
    owned = Budgets(Budget(size_bytes=100 * MIB), owners=(("ann", Budget(size_bytes=35 * MIB)),))
    assert granted(plan_of(*tables), owned) == [15, 40, None]


def test_a_limit_of_the_run_bounds_them_as_well() -> None:
    tables = (turns("a"), compaction("b", 20))
    assert granted(plan_of(*tables), Budgets(), Budget(size_bytes=60 * MIB)) == [40]
    assert granted(plan_of(*tables), Budgets(), Budget(size_bytes=60 * MIB, num_files=5)) == [40, 3]
    assert granted(plan_of(*tables), Budgets(), Budget(size_bytes=25 * MIB)) == [10]  # the run will be refused


def test_other_steps_and_a_plan_without_turns_stay_as_they_are() -> None:
    plan = plan_of(compaction("b", 20), compaction("c", 20))
    assert with_turns_bounded(plan, run(size_bytes=1), Learned(), Budget()) is plan
