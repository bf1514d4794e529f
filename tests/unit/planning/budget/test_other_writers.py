"""Hot tables: what others updated a moment ago is left to them, whole plans as people read them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maintainer.model.plan.plan import LeftAlone
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import VacuumStep
from maintainer.model.table.commit_records import OwnRewrites, WriterRhythm
from maintainer.model.table.table_facts import RemovedFile, Update
from maintainer.planning.budget.other_writers import updates_since_ms
from maintainer.planning.plan_input import TableInput
from maintainer.planning.planner import plan_table
from tests.support.tables.builders import DAY_MS, HOUR_MS, MINUTE_MS, NEVER_TOUCHED, NOW_MS, make_vacuum
from tests.unit.planning.budget.hot_table_plans import (
    DAYS,
    ORDERS,
    POLICY,
    TODAY,
    days_compacted,
    planned,
    rhythm,
    update,
)


def test_a_table_that_was_merged_into_a_moment_ago_waits_and_says_why() -> None:
    plan = planned(ORDERS, update(2))
    assert (plan.state, plan.steps) == ("waiting", ())
    text = "hot: MERGE by another writer 2m ago (quietAfterUpdates 10m)"
    assert plan.left_alone == (LeftAlone(Reason(ReasonCode.HOT, text, "orders.yml:4"), 3, 60),)


@pytest.mark.parametrize("operation", ["DELETE", "UPDATE", "WRITE", "OPTIMIZE", "RESTORE", "TRUNCATE"])
def test_any_update_makes_it_hot(operation: str) -> None:
    assert planned(ORDERS, update(9.9, operation)).state == "waiting"


def test_after_the_quiet_time_it_is_taken() -> None:
    assert planned(ORDERS, update(10)).state == "changes"
    assert planned(ORDERS, update(10), quiet=601).state == "waiting"


def test_zero_switches_it_off() -> None:
    assert planned(ORDERS, update(0), writers=rhythm(60, 24), quiet=0).state == "changes"


def test_a_table_that_only_grows_is_never_hot() -> None:
    appends = WriterRhythm(NOW_MS - DAY_MS, NOW_MS, 1440)
    assert planned(ORDERS, writers=appends).state == "changes"


def test_updates_of_one_day_leave_the_other_days_to_us() -> None:
    plan = planned(DAYS, update(2, days=("22",)))
    assert (plan.state, days_compacted(plan)) == ("changes", {"21"})
    text = "2 files updated: MERGE by another writer 2m ago (quietAfterUpdates 10m)"
    reason = Reason(ReasonCode.UPDATED_PARTITION, text, "orders.yml:4")
    assert LeftAlone(reason, 2, 20, (("day", "22"),)) in plan.left_alone


def test_an_update_that_may_have_read_every_day_leaves_none() -> None:
    plan = planned(DAYS, update(2, days=("22",)), update(3))
    assert plan.state == "waiting"
    assert plan.left_alone[0].reason.text == (
        "hot: MERGE by another writer 2m ago (quietAfterUpdates 10m), and may have read every partition"
    )


def test_a_rhythm_by_which_the_next_update_is_likely_makes_it_hot_as_well() -> None:
    plan = planned(ORDERS, update(11), writers=rhythm(5, 6))
    assert plan.state == "waiting"
    assert plan.left_alone[0].reason.text == (
        "hot: 30 updates by others in 6h, the last 11m ago; the next one is likely within 10m (quietAfterUpdates)"
    )


@pytest.mark.parametrize(("an_hour", "hours", "state"), [(4, 24, "changes"), (5, 24, "waiting"), (60, 24, "waiting")])
def test_likely_is_more_likely_than_not(an_hour: int, hours: int, state: str) -> None:
    """Four an hour: 1 - exp(-4/6) = 49 % in ten minutes; five: 57 %."""
    assert planned(ORDERS, update(11), writers=rhythm(an_hour, hours)).state == state


def test_less_than_an_hour_of_log_has_no_rhythm() -> None:
    young = replace(rhythm(30, 1), since_ms=NOW_MS - HOUR_MS + 1)
    assert planned(ORDERS, update(11), writers=young).state == "changes"


def test_a_hot_table_is_vacuumed_all_the_same() -> None:
    policy = replace(POLICY, vacuum=make_vacuum())
    facts = replace(ORDERS, updates=(update(2),), removed_files=(RemovedFile("old", 5, NOW_MS - 9 * DAY_MS),))
    plan = plan_table(TableInput(policy, facts, NEVER_TOUCHED, NOW_MS, TODAY))
    assert [type(step) for step in plan.steps] == [VacuumStep]
    assert plan.hot is not None


def test_the_plan_carries_the_quiet_time_to_the_last_look() -> None:
    assert planned(ORDERS).quiet_after_updates_seconds == 600


_UPDATES = st.lists(
    st.builds(
        lambda minutes, days: update(minutes, days=days),
        st.floats(0, 30),
        st.none() | st.lists(st.sampled_from(["21", "22", "23"]), max_size=2).map(tuple),
    ),
    max_size=4,
)


@given(_UPDATES)
def test_what_is_rewritten_is_what_no_recent_update_met(updates: list[Update]) -> None:
    updates.sort(key=lambda update: -update.at_ms)
    recent = [update for update in updates if update.at_ms > NOW_MS - 10 * MINUTE_MS]
    free = {day for day in ("21", "22") if not any(update.meets([(("day", day),)]) for update in recent)}
    plan = planned(DAYS, *updates)
    assert days_compacted(plan) == free
    counted = sum(left.num_files for left in plan.left_alone) + 2 * len(free)
    assert counted == len(DAYS.files)


@pytest.mark.parametrize(
    ("ago_ms", "waits"),
    [(600_000, False), (599_999, True), (0, True), (-5_000, True)],
    ids=["at", "in", "now", "ahead"],
)
def test_the_quiet_time_ends_to_the_millisecond(ago_ms: int, waits: bool) -> None:
    updated = replace(update(0), at_ms=NOW_MS - ago_ms)
    plan = planned(ORDERS, updated)
    assert (plan.state == "waiting") is waits
    own = OwnRewrites(1, NOW_MS - ago_ms, False)
    rests = plan_table(TableInput(POLICY, replace(ORDERS, own_rewrites=own), NEVER_TOUCHED, NOW_MS, TODAY))
    assert (rests.state == "waiting") is waits
    if waits:
        ago = "9m 59s" if ago_ms > 0 else "0s"
        assert plan.left_alone[0].reason.text == f"hot: MERGE by another writer {ago} ago (quietAfterUpdates 10m)"
        assert rests.left_alone[0].reason.text == (
            f"resting: our last rewrite was {ago} ago; it rests for 10m, so that a writer who lost to us can finish "
            "(quietAfterUpdates 10m)"
        )


def test_a_partition_is_hot_if_any_update_met_it() -> None:
    assert days_compacted(planned(DAYS, update(1, days=("21",)), update(2, days=("22",)))) == set()
    assert days_compacted(planned(DAYS, update(1, days=("21",)), update(2, days=("21",)))) == {"22"}


def test_updates_are_asked_for_six_hours_back_where_the_next_one_is_likely() -> None:
    busy = rhythm(60, 24)
    assert updates_since_ms(POLICY, busy, NOW_MS) == NOW_MS - 6 * HOUR_MS
    assert updates_since_ms(POLICY, rhythm(0, 24), NOW_MS) == NOW_MS - 10 * MINUTE_MS
    day_long = replace(POLICY, optimize=replace(POLICY.optimize, quiet_after_updates_seconds=86_400))
    assert updates_since_ms(day_long, busy, NOW_MS) == NOW_MS - DAY_MS


@pytest.mark.parametrize(("more_ms", "has_rhythm"), [(0, True), (-1000, False)])
def test_an_hour_of_log_is_enough_for_a_rhythm(more_ms: int, has_rhythm: bool) -> None:
    counted = rhythm(60, 1)
    young = replace(counted, since_ms=counted.since_ms - more_ms)
    assert (updates_since_ms(POLICY, young, NOW_MS) < NOW_MS - 10 * MINUTE_MS) is has_rhythm


def test_a_rhythm_that_makes_a_table_hot_says_since_when() -> None:
    (left,) = planned(ORDERS, update(20), writers=rhythm(60, 2)).left_alone
    assert left.reason.text == (
        "hot: 120 updates by others in 2h, the last 20m ago; the next one is likely within 10m (quietAfterUpdates)"
    )


def test_an_update_of_a_moment_ago_is_named_and_not_the_rhythm_it_is_part_of() -> None:
    for writers in (rhythm(1, 24), rhythm(60, 24)):
        (left,) = planned(ORDERS, update(1), writers=writers).left_alone
        assert left.reason.text == "hot: MERGE by another writer 1m ago (quietAfterUpdates 10m)"
