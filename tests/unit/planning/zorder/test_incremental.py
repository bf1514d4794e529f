"""Planning incremental Z-order: the turns of a table, what waits, and the reasons for both."""

from __future__ import annotations

from dataclasses import replace

from maintainer.model.plan.layout_tags import ELEMENTS_TAG
from maintainer.model.plan.reasons import ReasonCode
from maintainer.model.plan.steps import PurgeStep
from maintainer.model.plan.zorder_turn import Strategy
from maintainer.model.table.table_facts import ColumnRanges, DeletionVector
from maintainer.planning.zorder.incremental_zorder import loop_columns, next_turn
from maintainer.planning.zorder.zorder_options import layout_of
from maintainer.policy.resolve.resolved import PurgePolicy, WorthPolicy
from tests.support.tables.builders import make_file, make_policy
from tests.unit.planning.zorder.zorder_plans import (
    codes,
    counted,
    facts_of,
    files,
    known,
    plan,
    policy_of,
    tagged,
    zorder_of,
)


def test_the_budget_of_the_table_bounds_all_turns_together() -> None:
    policy = replace(policy_of(), limits=replace(policy_of().limits, max_bytes=1000))
    facts = known(*files(600, 600))
    step = zorder_of(plan(policy, facts))
    assert len(step.batches[0].files) == 1
    assert next_turn(step, facts, spent_bytes=600) is None
    assert next_turn(step, facts, spent_bytes=400) is not None


def test_the_limit_of_files_bounds_all_turns_together() -> None:
    policy = replace(policy_of(), limits=replace(policy_of().limits, max_files=3))
    facts = known(*files(60, 60, 60, 60, 60))
    planned = plan(policy, facts)
    step = zorder_of(planned)
    assert len(step.batches[0].files) == 3
    assert [(left.reason.code, left.num_files) for left in planned.left_alone] == [(ReasonCode.WAITS_FOR_TURN, 2)]
    assert next_turn(step, facts, spent_bytes=180, spent_files=3) is None
    following = next_turn(step, facts, spent_bytes=60, spent_files=1)
    assert following is not None
    assert len(following.batches[0].files) == 2


def test_a_file_above_the_limit_and_those_behind_it_are_not_told_to_wait_for_a_turn() -> None:
    limited = replace(policy_of(), limits=replace(policy_of().limits, max_bytes=1000))
    over, waits = ReasonCode.OVER_LIMIT, ReasonCode.WAITS_FOR_TURN
    for newest_first, left, takes in (
        ((600, 1001), (over, "2 unindexed files: the oldest has 1001 B, limits.maxBytes is 1000 B"), False),
        ((1001, 600), (over, "1 unindexed file: the oldest has 1001 B, limits.maxBytes is 1000 B"), True),
        ((1000, 600), (waits, "1 unindexed file for later turns"), True),
    ):
        facts = known(*files(*newest_first))
        planned = plan(limited, facts)
        assert [(entry.reason.code, entry.reason.text) for entry in planned.left_alone] == [left]
        assert bool(planned.steps) == takes
        counted(planned, facts)


def test_why_names_level_cube_and_group_and_why_others_wait() -> None:
    facts = known(
        *[tagged(f"ready{n}", "01", 60) for n in range(2)],
        *[tagged(f"next{n}", "011", 60) for n in range(2)],
        *[tagged(f"small{n}", "1", 30) for n in range(2)],
        tagged("done", "00", 5000, strategy="pieces", size=1000),
    )
    planned = plan(policy_of(strategies=(Strategy.LEVELED,), bytes_per_iteration=200), facts)
    step = zorder_of(planned)
    assert [reason.text for reason in step.reasons] == [
        "leveled: level 1, cube 01 of revision 1: 2 files with 120 elements, at least 100"
    ]
    assert [(left.reason.code, left.reason.text) for left in planned.left_alone] == [
        (
            ReasonCode.WAITS_FOR_TURN,
            "level 1, cube 011: 2 blocks with 120 elements, after lower levels and wider cubes",
        ),
        (ReasonCode.BELOW_NEXT_LEVEL, "level 1, cube 1: 2 blocks with 60 elements, fewer than 100"),
        (ReasonCode.SAME_ZORDER, "1 file on the Z-order curve of id, day (revision 1)"),
    ]
    counted(planned, facts)


def test_small_groups_of_one_level_are_one_turn_with_a_bin_each() -> None:
    facts = known(
        *[tagged(f"first{n}", "01", 60) for n in range(2)],
        *[tagged(f"second{n}", "011", 70) for n in range(2)],
        tagged("done", "00", 5000, strategy="pieces", size=1000),
    )
    step = zorder_of(plan(policy_of(strategies=(Strategy.LEVELED,)), facts))
    assert step.planned_turn is not None
    assert (
        step.planned_turn.elements,
        step.planned_turn.level,
        step.planned_turn.cube,
        len(step.planned_turn.num_files),
    ) == (260, 1, "01", 2)
    assert [[file.path for file in bin_.files] for bin_ in step.batches[0].bins] == [
        ["first0", "first1"],
        ["second0", "second1"],
    ]
    assert [reason.text for reason in step.reasons] == [
        "leveled: level 1, cube 01 of revision 1: 2 files with 120 elements, at least 100; "
        "with it 1 small group of its level"
    ]


def test_when_holds_unindexed_files_back_but_not_the_rest() -> None:
    facts = known(*files(100, 100), *[tagged(f"r{n}", "01", 60) for n in range(2)])
    policy = policy_of(optimize={"when": WorthPolicy(min_small_files=3)})
    planned = plan(policy, facts)
    assert zorder_of(planned).planned_turn is not None
    assert zorder_of(planned).planned_turn.strategy is Strategy.LEVELED  # type: ignore[union-attr]
    assert ReasonCode.NOT_WORTH_IT in codes(planned)
    counted(planned, facts)


def test_figures_of_the_layout_come_with_a_revision() -> None:
    policy = policy_of()
    indexed, raw = tagged("a", "0", 500, size=300), make_file("b", size=100)
    ranges = {
        indexed.key: (("0", "400", False), ("2026-01-01", "2026-01-28", False)),
        raw.key: (("0", "999", False), ("2026-01-01", "2026-01-28", False)),
    }
    facts = replace(known(indexed, raw), column_ranges=ColumnRanges(("id", "day"), ranges))
    figures = layout_of(policy, facts)
    assert figures is not None
    assert 1 < figures.files_read < 2
    assert (figures.overlap_depth, figures.unindexed_ratio) == (1.5, 0.25)
    assert layout_of(policy, facts_of(indexed, raw)) is None
    assert layout_of(make_policy(), facts) is None


def test_a_purge_of_files_on_the_curve_leaves_them_on_it() -> None:
    """Each is written alone, in the order it has, with the tags that name its place; the next plan finds it there."""
    on_curve = [tagged(f"c{cube}", cube, 100) for cube in ("000", "001", "010", "011")]
    dirty = [replace(file, deletion_vector=DeletionVector(f"u{file.path}@1", 1, 40)) for file in on_curve]
    policy = policy_of(optimize={"purge": PurgePolicy(), "min_size": 1})
    planned = plan(policy, known(*dirty))
    (step,) = planned.steps
    assert isinstance(step, PurgeStep)
    bins = [bin_ for batch in step.batches for bin_ in batch.bins]
    assert [[file.path for file in bin_.files] for bin_ in bins] == [["c000"], ["c001"], ["c010"], ["c011"]]
    for bin_ in bins:
        before = dict(bin_.files[0].tags)
        assert dict(step.row_order_tags(bin_)) == {**before, ELEMENTS_TAG: "99"}
    written = [
        make_file(
            f"p{bin_.files[0].path}", size=100, records=99, tags=dict((*step.file_tags, *step.row_order_tags(bin_)))
        )
        for bin_ in bins
    ]
    assert plan(policy, known(*written)).state == "up_to_date"


def test_a_group_of_many_cubes_that_wait_is_named_up_to_five() -> None:
    cubes = [f"{number:03b}" for number in range(8)]
    facts = known(*[tagged(f"c{cube}{n}", cube, 2, size=10) for cube in cubes for n in range(2)])
    planned = plan(policy_of(), facts)
    waiting = [left for left in planned.left_alone if left.reason.code is ReasonCode.BELOW_NEXT_LEVEL]
    assert [left.num_files for left in waiting] == [2, 2, 2, 2, 2, 4]
    assert waiting[-1].reason.text == "2 more groups of files in one cube"
    counted(planned, facts)


def test_many_deleted_rows_in_a_turn_are_a_reason_of_their_own() -> None:
    clean, dirty = make_file("a", size=500), make_file("b", size=500, records=100, deleted=50)
    reasons = zorder_of(plan(policy_of(), facts_of(clean, dirty))).reasons
    assert [reason.code for reason in reasons] == [ReasonCode.UNINDEXED_FILES, ReasonCode.DELETED_ROWS]
    assert reasons[1].text == "1 file with more than 5% of its rows deleted"


def test_a_step_without_turns_has_no_next_one_and_its_own_columns() -> None:
    facts = known(*files(100, 100))
    step = zorder_of(plan(policy_of(), facts))
    assert loop_columns(step, facts) == ("id", "day")
    full = replace(step, settings=None, columns=("name",))
    assert loop_columns(full, facts) == ("name",)
    assert next_turn(full, facts, spent_bytes=0) is None
    assert next_turn(step, facts, spent_bytes=0) is not None
