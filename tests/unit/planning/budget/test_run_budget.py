"""A plan within a budget: the best rewrites stay, the rest waits with its place, and nothing else is lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from maintainer.model.plan.plan import BUILT_IN_POLICY, Plan, TablePlan
from maintainer.model.plan.reasons import ReasonCode
from maintainer.model.plan.steps import Batch, CompactStep, SetPropertiesStep, ZOrderStep
from maintainer.model.plan.zorder_turn import Strategy, ZOrderSettings
from maintainer.model.table.table_facts import TableRef
from maintainer.planning.budget.run_budget import Learned, candidate_of, cut_to, within_budget
from maintainer.policy.project.project_settings import Budget, Budgets, Scorer
from maintainer.report.plan.plan_text import render_plan
from tests.support.runs import sample_plans

MIB = 2**20
DAY_MS = 86_400_000


def table(name: str, *sizes_mib: int) -> TablePlan:
    bin_ = sample_plans.data_bin(None, list(sizes_mib), name)
    step = CompactStep((Batch((bin_,)),), 1024 * MIB, 2, ())
    properties = SetPropertiesStep((("a", None),), (("a", "1"),), ())
    return TablePlan(TableRef(name), "p.yml", "sha256:0", steps=(properties, step))


def made(*tables: TablePlan) -> Plan:
    return replace(sample_plans.full_plan(), tables=tables, created_at_ms=100 * DAY_MS)


def test_what_does_not_fit_waits_with_its_place_and_keeps_its_other_steps() -> None:
    plan = made(table("big", 400, 400), table("best", *[1] * 50), table("good", *[10] * 20))
    fitted, choice = within_budget(plan, Budgets(Budget(size_bytes=300 * MIB)), Learned())
    assert [candidate.name for candidate in choice.chosen] == ["best", "good"]
    big, best, good = fitted.tables
    assert (best, good) == (plan.tables[1], plan.tables[2])
    assert [step.kind for step in big.steps] == ["set_properties"]
    (left,) = big.left_alone
    assert left.reason.code is ReasonCode.OVER_BUDGET
    assert left.reason.text == (
        "waits: its 800 MiB in 2 files alone are more than the budget of bytes; no run takes them until that is "
        "larger, or `budget.tables` in maintainer.yml lets a run take a part"
    )
    assert (left.num_files, left.size_bytes) == (2, 800 * MIB)


def test_a_candidate_is_counted_from_the_exact_bins_and_past_runs() -> None:
    learned = Learned({"compact": 10.0 * MIB}, {"t": (9, 4)}, {"t": 93 * DAY_MS})
    candidate = candidate_of(table("t", 10, 20, 30), 100 * DAY_MS, learned)
    assert candidate is not None
    assert (candidate.files_fewer, candidate.num_files, candidate.size_bytes) == (2, 3, 60 * MIB)
    assert (candidate.seconds, candidate.conflict_ratio, candidate.waiting_days) == pytest.approx((6.0, 0.4, 7.0))
    nothing = replace(table("t", 1, 1), steps=())
    assert candidate_of(nothing, 0, learned) is None


def test_a_table_whose_only_work_waits_is_not_called_up_to_date() -> None:
    pair = [table("large", 400, 400), table("small", 10, 10)]
    large, small = (replace(table, steps=table.steps[1:]) for table in pair)
    plan = made(large, small, replace(small, ref=TableRef("same"), steps=()))
    fitted, _ = within_budget(plan, Budgets(Budget(size_bytes=300 * MIB)), Learned())
    assert [table.state for table in fitted.tables] == ["waiting", "changes", "up_to_date"]
    text = render_plan(fitted)
    assert "over_budget: waits: its 800 MiB in 2 files alone are more than the budget of bytes" in text
    assert "1 table   nothing to do\n" in text
    assert "1 table to change, 1 step (compact 1); 1 up to date, 1 waiting." in text
    nothing, _ = within_budget(made(large), Budgets(Budget(num_files=1)), Learned())
    assert render_plan(nothing).splitlines()[-2:] == [
        "Plan: 0 tables to change, 0 steps; 0 up to date, 1 waiting.",
        "Nothing to do now; `maintainer -v plan` says why, for each table.",
    ]


def test_waiting_is_said_in_days() -> None:
    learned = Learned(waiting_since_ms={"t": 97 * DAY_MS})
    fitted, _ = within_budget(made(table("t", 10, 10)), Budgets(Budget(num_files=1)), learned)
    assert fitted.tables[0].left_alone[0].reason.text.startswith("waits, for 3 days now: its 20 MiB in 2 files alone")
    better = table("better", *[1] * 3)
    fitted, _ = within_budget(made(table("t", 10, 10), better), Budgets(Budget(num_files=4)), learned)
    assert fitted.tables[0].left_alone[0].reason.text == (
        "waits: the budget of files has no room for 20 MiB; place 1 of 1 in the queue, for 3 days now"
    )


def test_what_exceeds_its_owners_budget_alone_is_not_told_to_wait_for_a_turn() -> None:
    owned = replace(table("t", 400, 400), owner="sales")
    budgets = Budgets(Budget(size_bytes=1024 * MIB), owners=(("sales", Budget(size_bytes=300 * MIB)),))
    (waiting,) = within_budget(made(owned), budgets, Learned())[1].waiting
    assert (waiting.alone, waiting.budget) == (True, "the budget of bytes of sales")


def bins_of(table: TablePlan) -> list[int]:
    return [bin_.size_bytes // MIB for step in table.steps if isinstance(step, CompactStep)
            for batch in step.batches for bin_ in batch.bins]  # fmt: skip


def many_bins(name: str, *sizes_mib: int) -> TablePlan:
    made = [sample_plans.data_bin(None, [size - 1, 1], f"{name}{number}") for number, size in enumerate(sizes_mib)]
    batches = tuple(Batch(tuple(made[at : at + 2])) for at in range(0, len(made), 2))
    return replace(table(name, 1, 1), steps=(CompactStep(batches, 1024 * MIB, 2, ()),))


def test_a_tables_own_budget_cuts_it_bin_by_bin_and_skips_over_what_does_not_fit() -> None:
    plan = made(many_bins("sales.a", 100, 300, 200, 50), many_bins("other", 100, 300))
    budgets = Budgets(tables=(("sales.*", Budget(size_bytes=350 * MIB)),))
    too_small = within_budget(plan, Budgets(tables=(("sales.*", Budget(size_bytes=250 * MIB)),)), Learned())[0]
    cut = next(table for table in too_small.tables if table.ref.identifier == "sales.a")
    assert cut.left_alone[0].reason.text.endswith("; 300 MiB of it do not fit until that budget is larger")
    fitted, choice = within_budget(plan, budgets, Learned())
    other, sales = sorted(fitted.tables, key=lambda table: table.ref.identifier)
    assert (bins_of(sales), bins_of(other)) == ([100, 200, 50], [100, 300])
    (left,) = sales.left_alone
    assert (left.reason.code, left.num_files, left.size_bytes) == (ReasonCode.OVER_BUDGET, 2, 300 * MIB)
    assert left.reason.text == "waits for the next run: the table's own budget has no room for 300 MiB more"
    assert not choice.waiting


def test_files_and_expected_time_bound_a_table_as_well() -> None:
    plan = made(many_bins("t", 100, 100, 100))
    by_files, _ = within_budget(plan, Budgets(tables=(("*", Budget(num_files=5)),)), Learned())
    assert bins_of(by_files.tables[0]) == [100, 100]
    slow = Learned({"compact": 10.0 * MIB})
    by_time, _ = within_budget(plan, Budgets(tables=(("*", Budget(seconds=19.9)),)), slow)
    assert bins_of(by_time.tables[0]) == [100]
    nothing, _ = within_budget(plan, Budgets(tables=(("*", Budget(num_files=1)),)), slow)
    assert nothing.tables[0].steps == ()
    assert nothing.tables[0].left_alone[0].size_bytes == 300 * MIB


def test_what_a_tables_budget_leaves_is_what_the_run_is_charged_for() -> None:
    plan = made(many_bins("a", 100, 100), many_bins("b", 100, 100))
    budgets = Budgets(Budget(size_bytes=300 * MIB), tables=(("a", Budget(size_bytes=100 * MIB)),))
    fitted, choice = within_budget(plan, budgets, Learned())
    assert [bins_of(table) for table in fitted.tables] == [[100], [100, 100]]
    assert not choice.waiting
    assert len(within_budget(plan, Budgets(budgets.run), Learned())[1].waiting) == 1


def test_our_own_ledger_has_no_part_in_a_budget_whose_glob_matches_its_name() -> None:
    ledger = replace(many_bins("state/ledger", 100, 100), policy_file=BUILT_IN_POLICY)
    plan = made(ledger, many_bins("a", 100, 100))
    fitted, _ = within_budget(plan, Budgets(tables=(("*", Budget(size_bytes=100 * MIB)),)), Learned())
    assert [bins_of(table) for table in fitted.tables] == [[100, 100], [100]]
    assert fitted.tables[0] == ledger


def test_the_first_glob_that_matches_is_a_tables_budget() -> None:
    budgets = Budgets(tables=(("sales.o*", Budget(num_files=1)), ("*", Budget(num_files=2))))
    assert budgets.of_table(TableRef("sales.orders")) == Budget(num_files=1)
    assert budgets.of_table(TableRef("sales.lines")) == Budget(num_files=2)
    assert Budgets().of_table(TableRef("x")) == Budget()


def test_owners_share_a_budget_and_each_other_owner_has_the_common_one() -> None:
    budgets = Budgets(owners=(("ann", Budget(num_files=9)), ("*", Budget(num_files=3))))
    assert [budgets.of_owner(name).num_files for name in ("ann", "bob", None)] == [9, 3, None]


def test_the_scorer_is_chosen() -> None:
    """What gains most wins with AutoComp, what costs least for its gain with our own score."""
    plan = made(table("large", *[10] * 200), table("small", *[1] * 60))
    room = Budget(size_bytes=2000 * MIB)
    chosen = {
        scorer: [candidate.name for candidate in within_budget(plan, Budgets(room, scorer=scorer), Learned())[1].chosen]
        for scorer in Scorer
    }
    assert chosen == {Scorer.BENEFIT: ["small"], Scorer.AUTOCOMP: ["large"]}


def test_options_win_over_the_file_bound_by_bound() -> None:
    budgets = Budgets(Budget(1, 2, 3.0)).with_run(Budget(num_files=7))
    assert budgets.run == Budget(1, 7, 3.0)
    assert budgets.bounded
    assert not Budgets(scorer=Scorer.AUTOCOMP).bounded


def test_a_z_order_counts_the_files_that_it_puts_in_order() -> None:
    from maintainer.model.plan.steps import Batch, ZOrderStep

    bin_ = sample_plans.data_bin(None, [10, 10, 10], "z")
    step = ZOrderStep((Batch((bin_,)),), ("a",), 10 * MIB, 2, ())
    candidate = candidate_of(replace(table("t", 1, 1), steps=(step,)), 0, Learned())
    assert candidate is not None
    assert (candidate.files_fewer, candidate.layout_files) == (0, 3)
    plain = candidate_of(table("t", 10, 10), 0, Learned())
    assert plain is not None
    assert plain.layout_files == 0


def test_a_tables_own_budget_cuts_bins_and_leaves_other_steps_alone() -> None:
    whole = table("t", 10, 20)
    assert cut_to(whole, Budget(), Learned()) == whole
    assert cut_to(whole, Budget(size_bytes=30 * MIB), Learned()) == whole, "all of it fits"
    cut = cut_to(whole, Budget(size_bytes=30 * MIB - 1), Learned())
    assert [step.kind for step in cut.steps] == ["set_properties"]
    (left,) = cut.left_alone
    assert (left.reason.code, left.num_files, left.size_bytes) == (ReasonCode.OVER_BUDGET, 2, 30 * MIB)
    assert left.reason.text == (
        "waits for the next run: the table's own budget has no room for 30 MiB more; 30 MiB of it do not fit until "
        "that budget is larger"
    )


def test_a_turn_of_incremental_zorder_is_one_whole() -> None:
    bins = tuple(sample_plans.data_bin(None, [size], f"b{size}") for size in (10, 20))
    settings = ZOrderSettings("r", "r", (Strategy.UNINDEXED,), 1, 1, 1, 0.0)
    step = ZOrderStep((Batch(bins),), ("id",), 1024 * MIB, 2, (), settings=settings)
    turn = TablePlan(TableRef("t"), "p.yml", "sha256:0", steps=(step,))
    assert cut_to(turn, Budget(size_bytes=30 * MIB), Learned()) == turn
    cut = cut_to(turn, Budget(size_bytes=20 * MIB), Learned())
    assert cut.steps == ()
    assert (cut.left_alone[0].num_files, cut.left_alone[0].size_bytes) == (2, 30 * MIB)
    in_bins = replace(turn, steps=(replace(step, settings=None),))
    (fitted,) = cut_to(in_bins, Budget(size_bytes=20 * MIB), Learned()).steps
    assert isinstance(fitted, ZOrderStep)
    assert fitted.bins == bins[:1], "a Z-order of whole partitions is cut by bins"
