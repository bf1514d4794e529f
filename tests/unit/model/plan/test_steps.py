"""Plans and steps hold together: what a bin may hold, what a blocked table may, and what is counted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from maintainer.model.plan.lanes import Lane, LaneChoice
from maintainer.model.plan.layout_tags import PACKED_TAG, ZORDER_TAG
from maintainer.model.plan.plan import Problem, TablePlan
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import Batch, Bin, CompactStep, ZOrderStep
from maintainer.model.plan.zorder_turn import Strategy, ZOrderTurn
from maintainer.model.table.table_facts import TableRef
from tests.support.runs import sample_plans
from tests.support.tables.builders import MIB, make_file, make_files

COMPACT = CompactStep((Batch((Bin(make_files(1, 2)),)),), 100, 2, ())


def test_a_bin_holds_files_and_all_of_one_partition() -> None:
    with pytest.raises(ValueError, match="at least one file"):
        Bin(())
    with pytest.raises(ValueError, match="one partition"):
        Bin((make_file("a", partition={"d": "1"}), make_file("b", partition={"d": "2"})))


@pytest.mark.parametrize(
    "why",
    [{"blocked": (Reason(ReasonCode.QUARANTINED, "x"),)}, {"problem": Problem("T401", "x", None, None)}],
    ids=["blocked", "problem"],
)
def test_a_table_that_is_left_alone_has_no_steps(why: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="no steps"):
        TablePlan(TableRef("t"), "t.yml", "sha256:0", steps=(COMPACT,), **why)  # type: ignore[arg-type]


def test_bytes_for_spark_are_those_of_the_bins_in_its_lane() -> None:
    local = replace(sample_plans.data_bin(None, [1, 2]), lane=LaneChoice(Lane.LOCAL, "small"))
    steps = (CompactStep((Batch((local, sample_plans.data_bin(None, [3, 5], "q"))),), 100, 2, ()),)
    table = TablePlan(TableRef("t"), "t.yml", "sha256:0", steps=steps)
    assert replace(sample_plans.full_plan(), tables=(table,)).spark_lane_bytes == 8 * MIB


def test_files_of_a_turn_do_not_say_that_they_are_in_order_by_themselves() -> None:
    step = ZOrderStep((Batch((Bin(make_files(1, 2)),)),), ("`a`", "`b`"), 100, 2, ())
    assert step.file_tags == ((PACKED_TAG, "100"), (ZORDER_TAG, '["`a`","`b`"]'))
    turn = ZOrderTurn(Strategy.UNINDEXED, "revision", 2, (1,))
    assert replace(step, planned_turn=turn).file_tags == ((PACKED_TAG, "100"),)
