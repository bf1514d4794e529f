"""What planning asks for, one thing after another, until it knows enough."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, time
from typing import Any

import pytest

from maintainer.model.plan.reasons import ReasonCode
from maintainer.model.table.storage_facts import VacuumHistory
from maintainer.model.table.table_facts import ColumnRanges, ColumnSample, TableFacts, TableRecord
from maintainer.planning.needs import (
    ColumnRangesNeed,
    ColumnSampleNeed,
    RewrittenFilesNeed,
    ZOrderHistoryNeed,
    next_need,
)
from maintainer.planning.plan_input import PlanOptions, TableInput
from maintainer.planning.planner import plan_table
from maintainer.planning.schedule import opens_at_ms, vacuum_is_due
from maintainer.planning.zorder.zorder_revision import SAMPLE_ROWS
from maintainer.policy.resolve.resolved import (
    Expectation,
    Origin,
    Suspension,
    VerifyPolicy,
    Window,
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

TODAY = date(2026, 11, 21)


def zordered(facts: TableFacts, mode: ZOrderMode) -> TableInput:
    policy = make_policy(optimize=make_optimize(zorder=ZOrderPolicy(("id",), mode)))
    return TableInput(policy, facts, NEVER_TOUCHED, NOW_MS, TODAY)


def test_a_full_zorder_asks_who_ordered_which_files() -> None:
    facts = make_facts(files=make_files(10, 20))
    assert next_need(zordered(facts, ZOrderMode.FULL)) == ZOrderHistoryNeed(("id",))
    facts = replace(facts, zordered_paths=frozenset())
    assert next_need(zordered(facts, ZOrderMode.FULL)) == ColumnRangesNeed(("id",))
    assert next_need(zordered(replace(facts, column_ranges=ColumnRanges(("id",), {})), ZOrderMode.FULL)) is None
    in_order = replace(facts, zordered_paths=frozenset(file.path for file in facts.files))
    assert next_need(zordered(in_order, ZOrderMode.FULL)) is None


def test_an_engine_of_commands_is_asked_nothing_for_an_incremental_zorder() -> None:
    table = zordered(make_facts(files=make_files(10, 20)), ZOrderMode.INCREMENTAL)
    assert next_need(replace(table, options=PlanOptions(deletes=False))) is None


def test_an_incremental_zorder_asks_for_ranges_then_for_a_sample() -> None:
    facts = make_facts(files=make_files(10, 20))
    assert next_need(zordered(facts, ZOrderMode.INCREMENTAL)) == ColumnRangesNeed(("id",))
    facts = replace(facts, column_ranges=ColumnRanges(("id",), {}))
    assert next_need(zordered(facts, ZOrderMode.INCREMENTAL)) == ColumnSampleNeed(("id",), SAMPLE_ROWS)
    facts = replace(facts, column_sample=ColumnSample(("id",), (("1", "2"),)))
    assert next_need(zordered(facts, ZOrderMode.INCREMENTAL)) is None


CLOSED = Window((1,), time(3), time(4), "UTC")


@pytest.mark.parametrize("held", [
    {"windows": (CLOSED,)}, {"suspend": Suspension(None, "x")}, {"managed_from": (1 << 40, Origin("r.yml", 1))}, {},
])  # fmt: skip
def test_of_a_table_that_is_held_back_only_what_people_see_is_read(held: dict[str, Any]) -> None:
    """A watch looks every thirty seconds: it would list the table's folder, or start Spark, all day for nothing."""
    facts = replace(make_facts(files=make_files(10, 20)), history=VacuumHistory())
    optimize = make_optimize(zorder=ZOrderPolicy(("id",), ZOrderMode.INCREMENTAL), quiet_for_seconds=1 << 40)
    policy = replace(make_policy(optimize=optimize, vacuum=make_vacuum()), **held)
    record = NEVER_TOUCHED if held else TableRecord(quarantined="rows differ")
    table = TableInput(policy, facts, record, NOW_MS, TODAY)
    assert next_need(table) == ColumnRangesNeed(("id",))
    looked = replace(table, facts=replace(facts, column_ranges=ColumnRanges(("id",), {})))
    assert next_need(looked) is None
    open_again = PlanOptions(ignore_windows=True)
    assert (next_need(replace(looked, options=open_again)) is None) is ("windows" not in held)
    assert next_need(replace(table, options=PlanOptions(deletes=False))) is None
    full = replace(policy, optimize=replace(optimize, zorder=ZOrderPolicy(("id",), ZOrderMode.FULL)))
    assert next_need(replace(table, policy=full)) is None


@pytest.mark.parametrize(
    ("path", "quiet_for_seconds", "record", "since_ms"),
    [
        ("f", 1800, NEVER_TOUCHED, NOW_MS - 1_800_000),
        ("f", 1800, TableRecord(lost_in_a_row=1, last_lost_at_ms=NOW_MS - 1), NOW_MS - 3_600_000),
        ("f", 60, NEVER_TOUCHED, None),
        ("f", 0, NEVER_TOUCHED, None),
        ("part-20261121T220001Z-0000-0123456789abcdef-01234567-part-00000-x", 1800, NEVER_TOUCHED, None),
    ],
)
def test_only_files_that_look_new_and_are_not_ours_are_asked_about(
    path: str, quiet_for_seconds: int, record: TableRecord, since_ms: int | None
) -> None:
    facts = make_facts(files=[make_file(path, modified_at_ms=NOW_MS - 120_000)])
    policy = make_policy(optimize=make_optimize(quiet_for_seconds=quiet_for_seconds))
    table = TableInput(policy, facts, record, NOW_MS, TODAY)
    assert next_need(table) == (None if since_ms is None else RewrittenFilesNeed(since_ms))
    assert next_need(replace(table, facts=replace(facts, rewritten_paths=frozenset()))) is None


@pytest.mark.parametrize(("num_copies", "listed"), [(1, "a"), (3, "a, b, c"), (5, "a, b, c and 2 more")])
def test_copies_of_a_table_are_named_up_to_three(num_copies: int, listed: str) -> None:
    record = TableRecord(copies=("a", "b", "c", "d", "e")[:num_copies])
    planned = plan_table(TableInput(make_policy(), make_facts(), record, NOW_MS, TODAY))
    (copied,) = [left.reason for left in planned.left_alone if left.reason.code is ReasonCode.COPIED_TABLE]
    assert copied.text == (
        f"a table with the same id is at {listed}: one is a copy of the other; each has its own schedule"
    )


def test_expectations_are_in_the_plan_as_text_that_does_not_depend_on_their_order() -> None:
    arguments = ({"column": "id", "min_value": 1}, {"min_value": 1, "column": "id"})
    texts = set()
    for written in arguments:
        policy = make_policy()
        expectations = (Expectation("expect_column_values_to_be_between", written),)
        verify = replace(policy.verify, expectations=expectations)
        facts = make_facts(files=make_files(10, 20))
        planned = plan_table(TableInput(replace(policy, verify=verify), facts, NEVER_TOUCHED, NOW_MS, TODAY))
        texts.add(planned.checks.expectations[0].arguments_json)
        assert isinstance(verify, VerifyPolicy)
    assert texts == {'{"column":"id","min_value":1}'}


def test_a_vacuum_is_due_only_where_the_policy_has_one() -> None:
    record = TableRecord(last_vacuum_at_ms=NOW_MS - DAY_MS)
    for vacuum, due in (
        (None, False),
        (make_vacuum(every_seconds=86_400), True),
        (make_vacuum(every_seconds=2 * 86_400), False),
    ):
        asked = TableInput(make_policy(vacuum=vacuum), make_facts(), record, NOW_MS, TODAY)
        assert vacuum_is_due(asked) is due


def test_without_windows_none_opens() -> None:
    assert opens_at_ms((), NOW_MS) is None
