"""Revisions of incremental Z-order: the first as a visible step, new ones, damaged ones, and what is made of each."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from maintainer.model.plan.reasons import ReasonCode
from maintainer.model.plan.steps import SetPropertiesStep, ZOrderStep
from maintainer.model.plan.zorder_turn import Strategy
from maintainer.model.table.table_facts import ColumnRanges, ColumnSample, Update
from maintainer.planning.curve.revision import Revision, make_column, read_revision
from maintainer.planning.plan_input import TableInput
from maintainer.planning.planner import plan_table
from maintainer.planning.zorder.incremental_zorder import next_turn
from maintainer.planning.zorder.zorder_options import sample_wanted
from tests.support.tables.builders import NEVER_TOUCHED, NOW_MS, make_file
from tests.unit.planning.zorder.zorder_plans import (
    REVISION,
    SAMPLE,
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


def test_the_first_plan_makes_a_revision_as_a_step_that_can_be_seen() -> None:
    facts = facts_of(*files(500, 500, 500))
    planned = plan(policy_of(), facts)
    properties, step = planned.steps
    assert isinstance(properties, SetPropertiesStep)
    ((name, text),) = properties.after
    assert (name, properties.before) == ("maintainer.zorder.revision.1", ((name, None),))
    assert read_revision(name, text) == REVISION
    assert [reason.code for reason in properties.reasons] == [ReasonCode.NEW_REVISION]
    assert properties.reasons[0].text == "maintainer.zorder.revision.1: id in 256 ranges, day in 28 ranges"
    assert isinstance(step, ZOrderStep)
    assert step.planned_turn is not None
    assert (step.planned_turn.strategy, step.planned_turn.revision, step.planned_turn.num_files) == (
        Strategy.UNINDEXED,
        REVISION.tag,
        (2,),
    )
    assert step.reasons[0].code is ReasonCode.UNINDEXED_FILES
    assert step.reasons[0].origin == "orders.yml:7"
    counted(planned, facts)


def test_a_table_of_one_file_needs_no_revision() -> None:
    planned = plan(policy_of(), facts_of(*files(1999)))
    assert planned.state == "up_to_date"
    assert codes(planned) == [ReasonCode.NO_PARTNER]


def test_a_revision_that_is_there_is_used_again() -> None:
    facts = known(*files(500, 500))
    policy = policy_of()
    assert sample_wanted(policy, facts) == ()
    planned = plan(policy, facts)
    assert [step.kind for step in planned.steps] == ["zorder"]
    assert zorder_of(planned).columns == ("id", "day")


def test_other_columns_make_a_new_revision_and_old_files_move_over() -> None:
    facts = known(tagged("a", "0", 500), tagged("b", "1", 500))
    planned = plan(policy_of("name"), facts)
    properties, step = planned.steps
    assert isinstance(properties, SetPropertiesStep)
    assert properties.after[0][0] == "maintainer.zorder.revision.2"
    assert isinstance(step, ZOrderStep)
    assert {file.path for file in step.batches[0].files} == {"a", "b"}


@pytest.mark.parametrize("text", ["", "{}", REVISION.to_json()[:-5]])
def test_a_damaged_property_is_no_error_but_a_new_revision(text: str) -> None:
    facts = facts_of(tagged("a", "0", 500), tagged("b", "1", 500), properties={REVISION.property_name: text})
    properties, step = plan(policy_of(), facts).steps
    assert isinstance(properties, SetPropertiesStep)
    assert properties.after[0][0] == "maintainer.zorder.revision.2"
    assert isinstance(step, ZOrderStep)
    assert len(step.batches[0].files) == 2


@pytest.mark.parametrize(("escaped_bytes", "makes_new"), [(100, False), (400, True)])
def test_values_that_outgrow_the_boundaries_make_a_new_revision(escaped_bytes: int, makes_new: bool) -> None:
    inside, outside = tagged("in", "0", 500, size=1000), make_file("out", size=escaped_bytes)
    ranges = {
        inside.key: (("0", "900", False), ("2026-01-01", "2026-01-28", False)),
        outside.key: (("0", "900", False), ("2026-02-01", "2026-03-28", False)),
    }
    facts = replace(known(inside, outside), column_ranges=ColumnRanges(("id", "day"), ranges))
    assert bool(sample_wanted(policy_of(), facts)) is makes_new


@pytest.mark.parametrize(("newest", "makes_new"), [("2026-01-28", False), ("2026-03-28", True)])
def test_a_new_revision_is_made_only_where_less_escapes_it(newest: str, makes_new: bool) -> None:
    """A few values that no sample has, such as a date of the year 9999, would make another one each night."""
    inside, outside = tagged("in", "0", 500, size=1000), tagged("out", "1", 500, size=400)
    days = ("2026-02-20", newest, False) if makes_new else ("2026-01-01", "9999-12-31", False)
    ranges = {
        inside.key: (("0", "900", False), ("2026-01-01", "2026-01-28", False)),
        outside.key: (("0", "900", False), days),
    }
    facts = replace(known(inside, outside), column_ranges=ColumnRanges(("id", "day"), ranges))
    assert sample_wanted(policy_of(), facts)
    sample = {**SAMPLE, "day": (*SAMPLE["day"], newest)}
    planned = plan(policy_of(), facts, sample=sample)
    assert any(isinstance(step, SetPropertiesStep) for step in planned.steps) is makes_new


def test_where_the_files_that_are_left_want_a_sample_that_nobody_read_the_revision_stays() -> None:
    """Others update the partition in which most files lie: of those that are left most escape."""
    old = [replace(tagged(f"p=a/{n}", "", 500, size=400), partition_values=(("name", "a"),)) for n in range(4)]
    new = [replace(file, partition_values=(("name", "b"),)) for file in files(100, 100, 100)]
    inside = (("0", "900", False), ("2026-01-01", "2026-01-28", False))
    escaped = (("5000", "6000", False), ("2026-01-01", "2026-01-28", False))
    ranges = {**{file.key: inside for file in old}, **{file.key: escaped for file in new}}
    facts = replace(
        known(*old, *new),
        column_ranges=ColumnRanges(("id", "day"), ranges),
        partition_columns=("name",),
        updates=(Update(6, NOW_MS - 60_000, "DELETE", frozenset({(("name", "a"),)})),),
    )
    policy = policy_of(optimize={"quiet_after_updates_seconds": 600})
    assert not sample_wanted(policy, facts)
    planned = plan_table(TableInput(policy, facts, NEVER_TOUCHED, NOW_MS, date(2026, 11, 21)))
    assert planned.problem is None
    assert zorder_of(planned).planned_turn.revision == REVISION.tag  # type: ignore[union-attr]


def test_later_turns_are_planned_from_the_table_as_it_is() -> None:
    facts = known(*files(600, 600, 600))
    step = zorder_of(plan(policy_of(batch_bytes=1200), facts))
    assert [file.path for file in step.batches[0].files] == ["f2", "f1"]
    later = known(tagged("x", "0", 600, size=600), tagged("y", "1", 600, size=600), *list(files(600, 600, 600))[:1])
    following = next_turn(step, later, spent_bytes=1200)
    assert following is not None
    assert [file.path for file in following.batches[0].files] == ["f0"]
    assert next_turn(step, known(tagged("x", "0", 6), tagged("y", "1", 6)), spent_bytes=0) is None
    assert next_turn(step, facts_of(*files(600)), spent_bytes=0) is None


def test_one_revision_can_be_worked_on_by_itself() -> None:
    second = Revision(2, (make_column("name", "string", SAMPLE["name"]),))
    facts = known(*[tagged(f"r{n}", "01", 60) for n in range(2)], **{second.property_name: second.to_json()})
    planned = plan(policy_of("name", revision=1), facts)
    assert zorder_of(planned).planned_turn.strategy is Strategy.LEVELED  # type: ignore[union-attr]
    assert zorder_of(planned).planned_turn.revision == REVISION.tag  # type: ignore[union-attr]
    refused = plan(policy_of("name", revision=9), facts).problem
    assert refused is not None
    assert (refused.code, refused.what) == ("T426", "the table has no Z-order revision 9 (found: 1, 2)")


def test_revision_zero_puts_files_on_the_curve_and_does_nothing_else() -> None:
    facts = known(*[tagged(f"r{n}", "01", 60) for n in range(2)])
    assert plan(policy_of(revision=0), facts).state == "up_to_date"
    assert zorder_of(plan(policy_of(revision=0), known(*files(100, 100)))).planned_turn is not None


def test_a_new_revision_is_never_made_without_its_sample() -> None:
    policy, facts = policy_of(), facts_of(*files(500, 500))
    columns = ("id", "day")
    ready = replace(facts, column_ranges=ColumnRanges(columns, {}))
    for sample in (None, ColumnSample(("day", "id"), ((), ()))):
        with pytest.raises(ValueError, match="needs a sample"):
            plan_table(
                TableInput(policy, replace(ready, column_sample=sample), NEVER_TOUCHED, NOW_MS, date(2026, 11, 21))
            )
