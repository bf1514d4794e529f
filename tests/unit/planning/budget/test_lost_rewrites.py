"""Rewrites that lost against writers: partitions written lately are left alone, for longer with each loss."""

from __future__ import annotations

from dataclasses import replace

import pytest

from maintainer.model.plan.plan import TablePlan
from maintainer.model.plan.reasons import ReasonCode
from maintainer.model.plan.steps import CompactStep
from maintainer.model.table.table_facts import DataFile, TableFacts
from maintainer.planning.budget.other_writers import quiet_seconds, without_hot
from maintainer.planning.plan_input import TableInput
from maintainer.planning.planner import plan_table
from tests.support.runs.planned_steps import plan_all
from tests.support.tables.builders import DAY_MS, HOUR_MS, NEVER_TOUCHED, NOW_MS, make_facts, make_file, make_policy
from tests.unit.planning.budget.hot_table_plans import TODAY, lost


@pytest.mark.parametrize(
    ("runs", "hours_ago", "quiet_hours"),
    [
        (0, 1, 0),
        (1, 24, 1),
        (1, 35.9, 1),
        (1, 36, 0),
        (2, 71, 2),
        (2, 72, 0),
        (3, 100, 4),
        (5, 167, 16),
        (6, 167, 24),
        (60, 167.9, 24),
        (60, 168, 0),
    ],
)
def test_each_loss_doubles_the_quiet_and_how_long_it_is_remembered(
    runs: int, hours_ago: float, quiet_hours: int
) -> None:
    assert quiet_seconds(lost(runs, hours_ago), NOW_MS) == quiet_hours * 3600


def day(name: str, hours_ago: float, number: int) -> list[DataFile]:
    modified_at_ms = NOW_MS - int(hours_ago * HOUR_MS)
    return [
        make_file(f"{name}-{file_number}", size=1, partition={"d": name}, modified_at_ms=modified_at_ms)
        for file_number in range(number)
    ]  # fmt: skip


def facts_of(*files: DataFile) -> TableFacts:
    return make_facts(files=files, columns={"id": "long", "d": "string"}, partitioned_by=("d",))


def compacted(plan: TablePlan) -> set[str]:
    return {
        file.path for step in plan.steps if isinstance(step, CompactStep) for batch in step.batches
        for file in batch.files
    }  # fmt: skip


def test_only_partitions_that_were_written_lately_wait() -> None:
    facts = facts_of(*day("cool", 5, 2), *day("hot", 0.5, 3))
    policy = make_policy()
    plan = plan_table(TableInput(policy, facts, lost(1), NOW_MS, TODAY))
    assert compacted(plan) == {"cool-0", "cool-1"}
    (left,) = plan.left_alone
    assert (left.reason.code, left.num_files, left.partition_values) == (
        ReasonCode.LOST_TO_WRITER, 3, (("d", "hot"),)
    )  # fmt: skip
    assert (
        left.reason.text == "3 files where data was written less than 1h ago, and another writer won in 1 run in a row"
    )
    assert compacted(plan_table(TableInput(policy, facts, NEVER_TOUCHED, NOW_MS, TODAY))) == {
        "cool-0", "cool-1", "hot-0", "hot-1", "hot-2"
    }  # fmt: skip


def test_what_a_rewrite_wrote_lately_does_not_wait() -> None:
    facts = replace(facts_of(*day("hot", 0.5, 3)), rewritten_paths=frozenset({"hot-0", "hot-1"}))
    assert without_hot(facts, lost(1), NOW_MS)[0] == ()
    facts = replace(facts, rewritten_paths=frozenset({"hot-0", "hot-1", "hot-2"}))
    assert without_hot(facts, lost(1), NOW_MS) == (facts.files, ())


def test_a_table_without_partitions_waits_as_a_whole_and_is_taken_up_when_it_was_quiet() -> None:
    for hours, waits in ((3.9, True), (4.1, False)):
        files = [make_file(f"f{n}", size=1, modified_at_ms=NOW_MS - int(hours * HOUR_MS)) for n in range(3)]
        plan = plan_table(TableInput(make_policy(), make_facts(files=files), lost(3), NOW_MS, TODAY))
        assert (plan.steps == ()) is waits
        assert sum(entry.num_files for entry in plan.left_alone) == (3 if waits else 0)


def test_every_file_is_kept_or_counted_once() -> None:
    facts = facts_of(*(file for n in range(30) for file in day(f"p{n:02}", n / 10, 2)))
    cold, left = without_hot(facts, lost(1), NOW_MS)
    assert len(cold) + sum(entry.num_files for entry in left) == 60
    assert len(cold) == 2 * 20


def test_plans_with_it_are_plans() -> None:
    assert plan_all(plan_table(TableInput(make_policy(), make_facts(), lost(9), NOW_MS + DAY_MS, TODAY))).tables


def test_quiet_partitions_are_those_unchanged_since_the_millisecond() -> None:
    files = [
        make_file(f"{name}{n}", size=10, partition={"day": name}, modified_at_ms=NOW_MS - HOUR_MS + after_ms)
        for name, after_ms in (("cool", 0), ("hot", 1))
        for n in range(2)
    ]
    facts = make_facts(files=files, partitioned_by=("day",))
    cool, (left,) = without_hot(facts, lost(1), NOW_MS)
    assert {file.path for file in cool} == {"cool0", "cool1"}
    assert left.partition_values == (("day", "hot"),)


def test_many_hot_partitions_are_counted_together() -> None:
    files = [make_file(f"f{n}", size=10, partition={"day": str(n)}, modified_at_ms=NOW_MS) for n in range(60)]
    _, (left,) = without_hot(make_facts(files=files, partitioned_by=("day",)), lost(2), NOW_MS)
    text = (
        "60 files of 60 partitions where data was written less than 2h ago, and another writer won in 2 runs in a row"
    )
    assert (left.reason.text, left.num_files) == (text, 60)


def test_a_table_is_remembered_as_losing_to_the_millisecond() -> None:
    record = replace(lost(1), last_lost_at_ms=NOW_MS - 36 * HOUR_MS)
    assert quiet_seconds(record, NOW_MS) == 0
    assert quiet_seconds(record, NOW_MS - 1) == 3600
    week = replace(lost(60), last_lost_at_ms=NOW_MS - 7 * DAY_MS)
    assert (quiet_seconds(week, NOW_MS), quiet_seconds(week, NOW_MS - 1)) == (0, 86_400)
