"""Hot tables: what others updated a moment ago is left to them, whole plans as people read them.

What loses against writers is remembered: partitions written lately are left alone, for longer with each loss.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maintainer.model.plan.plan import LeftAlone, TablePlan
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import CompactStep, VacuumStep
from maintainer.model.table.commit_records import (
    HOURS,
    CommitsRead,
    CommitStamp,
    OwnRewrites,
    TableCommit,
    WriterRhythm,
)
from maintainer.model.table.table_facts import DataFile, RemovedFile, TableFacts, TableRecord, Update
from maintainer.planning.budget.other_writers import own_rewrites_of, quiet_seconds, updates_since_ms, without_hot
from maintainer.planning.plan_input import TableInput
from maintainer.planning.planner import plan_table
from tests.support.runs.fake_lake import plan_all
from tests.support.tables.builders import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
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
POLICY = make_policy(optimize=make_optimize(quiet_after_updates_seconds=600), lines={"optimize.quietAfterUpdates": 4})
ORDERS = make_facts(files=make_files(10, 20, 30))
DAYS = make_facts(
    files=[make_file(f"{day}-{i}", size=10, partition={"day": day}) for day in ("21", "22") for i in range(2)],
    partitioned_by=("day",),
)


def update(minutes_ago: float, operation: str = "MERGE", days: tuple[str, ...] | None = None) -> Update:
    partitions = None if days is None else frozenset((("day", day),) for day in days)
    return Update(41, NOW_MS - int(minutes_ago * MINUTE_MS), operation, partitions)


def rhythm(updates_an_hour: int, hours: int) -> WriterRhythm:
    """So many updates in each of the last hours."""
    newest = NOW_MS // HOUR_MS % 24
    by_hour = [0] * HOURS
    for back in range(1, hours + 1):
        by_hour[(newest - back) % 24] += updates_an_hour
    return WriterRhythm(NOW_MS - hours * HOUR_MS, NOW_MS, sum(by_hour), tuple(by_hour))


def planned(facts: TableFacts, *updates: Update, writers: WriterRhythm | None = None, quiet: int = 600) -> TablePlan:
    policy = replace(POLICY, optimize=replace(POLICY.optimize, quiet_after_updates_seconds=quiet))
    facts = replace(facts, updates=updates, writers=writers)
    return plan_table(TableInput(policy, facts, NEVER_TOUCHED, NOW_MS, TODAY))


def days_compacted(plan: TablePlan) -> set[str]:
    steps = [step for step in plan.steps if isinstance(step, CompactStep)]
    return {str(dict(one.partition_values)["day"]) for step in steps for batch in step.batches for one in batch.files}


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
    text = "2 files hot: MERGE by another writer 2m ago (quietAfterUpdates 10m)"
    assert LeftAlone(Reason(ReasonCode.HOT_PARTITION, text, "orders.yml:4"), 2, 20, (("day", "22"),)) in plan.left_alone


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


def commit(minutes_ago: float, by: str = "", *, takes: bool = True) -> TableCommit:
    """A commit of the run ``by``, or of somebody else."""
    stamp = CommitStamp(by, "t/compact", 0, "d") if by else None
    at_ms = NOW_MS - int(minutes_ago * MINUTE_MS)
    return TableCommit(1000 - int(minutes_ago), at_ms, "OPTIMIZE" if by else "WRITE", stamp=stamp, takes_files=takes)


def resting(*commits: TableCommit, oldest_version: int = 0, quiet: int = 600) -> TablePlan:
    """The plan of a table with these commits, newest first."""
    own = own_rewrites_of(CommitsRead("", commits, oldest_version), NOW_MS)
    policy = replace(POLICY, optimize=replace(POLICY.optimize, quiet_after_updates_seconds=quiet))
    return plan_table(TableInput(policy, replace(ORDERS, own_rewrites=own), NEVER_TOUCHED, NOW_MS, TODAY))


MERGED = commit(300)
APPENDED = [commit(minutes, takes=False) for minutes in range(20, 120)]


@pytest.mark.parametrize(
    ("minutes_ago", "state"), [(0.1, "waiting"), (9.9, "waiting"), (10, "changes"), (60, "changes")]
)
def test_after_our_rewrite_a_table_that_others_update_rests(minutes_ago: float, state: str) -> None:
    assert resting(commit(minutes_ago, "a"), MERGED).state == state


@pytest.mark.parametrize(("runs", "minutes"), [("a", 10), ("aa", 10), ("ab", 20), ("abc", 30), ("abcdefg", 30)])
def test_it_rests_longer_after_each_run_in_a_row_up_to_three_quiet_times(runs: str, minutes: int) -> None:
    ago = [minutes + 60 * number for number in range(len(runs))]
    assert resting(*map(commit, ago, runs), commit(999)).state == "changes"
    assert (
        resting(*[commit(one - 0.1, run) for one, run in zip(ago, runs, strict=True)], commit(999)).state == "waiting"
    )


def test_an_update_that_landed_after_our_rewrite_ends_the_rest_and_the_row() -> None:
    assert resting(commit(2), commit(3, "b"), MERGED).state == "changes"
    assert resting(commit(11, "b"), commit(12), commit(13, "a"), MERGED).state == "changes"


def test_a_table_whose_whole_log_has_nothing_but_appends_does_not_rest() -> None:
    assert resting(commit(1, "a"), *APPENDED[:50]).state == "changes"
    assert resting(commit(1, "a"), *APPENDED[:99], oldest_version=APPENDED[98].version).state == "changes"


def test_a_log_that_is_read_for_less_than_a_week_may_hide_the_updates_of_last_night() -> None:
    assert resting(commit(1, "a"), *APPENDED[:99]).state == "waiting"


def test_without_a_quiet_time_nothing_rests() -> None:
    assert resting(commit(0.1, "a"), MERGED, quiet=0).state == "changes"


def test_what_the_reason_says() -> None:
    (left,) = resting(commit(4, "b"), commit(30, "a"), MERGED).left_alone
    text = (
        "hot: our last rewrite was 4m ago, 2 runs in a row; it rests for 20m, so that a writer who lost to us "
        "can finish (quietAfterUpdates 10m)"
    )
    assert left == LeftAlone(Reason(ReasonCode.HOT, text, "orders.yml:4"), 3, 60)


def tries_of_a_merge(minutes: int, retry_after: int, every: int, *, quiet: int = 600) -> int:
    """How often a MERGE is tried that takes so long and reads all files, beside a run every so many minutes.

    Somebody else appends each minute, so there is always something to compact: a rewrite of ours that lands while the
    MERGE runs makes it fail. Given up after 50 tries.
    """
    log = [commit(minutes, takes=False) for minutes in range(100)]
    begun, tries = 1, 1
    for now in range(1, 10_000):
        log.insert(0, TableCommit(1000 + len(log), NOW_MS + now * MINUTE_MS, "WRITE"))
        if now % every == 0:
            at_ms = NOW_MS + now * MINUTE_MS
            own = own_rewrites_of(CommitsRead("", tuple(log[:100]), 1), at_ms)
            policy = replace(POLICY, optimize=replace(POLICY.optimize, quiet_after_updates_seconds=quiet))
            if (
                plan_table(TableInput(policy, replace(ORDERS, own_rewrites=own), NEVER_TOUCHED, at_ms, TODAY)).state
                == "changes"
            ):
                stamp = CommitStamp(f"r{now}", "t/compact", 0, "d")
                log.insert(0, TableCommit(1000 + len(log), at_ms, "OPTIMIZE", stamp=stamp, takes_files=True))
        if now >= begun + minutes:
            lost = any(one.stamp and one.at_ms > NOW_MS + begun * MINUTE_MS for one in log)
            if not lost:
                return tries
            begun, tries = now + retry_after, tries + 1
            if tries > 50:
                break
    return 50


@given(st.integers(1, 12), st.integers(0, 5), st.sampled_from([1, 5, 10]))
def test_a_merge_that_is_tried_again_wins_though_its_losses_are_in_no_log(minutes: int, retry: int, every: int) -> None:
    assert tries_of_a_merge(minutes, retry, every) <= 12


def test_without_the_rest_it_loses_each_time() -> None:
    assert tries_of_a_merge(8, 2, 5, quiet=0) == 50


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
    updates.sort(key=lambda one: -one.at_ms)
    recent = [one for one in updates if one.at_ms > NOW_MS - 10 * MINUTE_MS]
    free = {day for day in ("21", "22") if not any(one.meets([(("day", day),)]) for one in recent)}
    plan = planned(DAYS, *updates)
    assert days_compacted(plan) == free
    counted = sum(left.num_files for left in plan.left_alone) + 2 * len(free)
    assert counted == len(DAYS.files)


def lost(runs: int, hours_ago: float = 24) -> TableRecord:
    return replace(NEVER_TOUCHED, lost_in_a_row=runs, last_lost_at_ms=NOW_MS - int(hours_ago * HOUR_MS))


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
        make_file(f"{name}-{one}", size=1, partition={"d": name}, modified_at_ms=modified_at_ms)
        for one in range(number)
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
        ReasonCode.HOT_PARTITION, 3, (("d", "hot"),)
    )  # fmt: skip
    assert left.reason.text == "3 files written less than 1h ago, and another writer won in 1 run in a row"
    assert compacted(plan_table(TableInput(policy, facts, NEVER_TOUCHED, NOW_MS, TODAY))) == {
        "cool-0", "cool-1", "hot-0", "hot-1", "hot-2"
    }  # fmt: skip


def test_a_table_without_partitions_waits_as_a_whole_and_is_taken_up_when_it_was_quiet() -> None:
    for hours, waits in ((3.9, True), (4.1, False)):
        files = [make_file(f"f{n}", size=1, modified_at_ms=NOW_MS - int(hours * HOUR_MS)) for n in range(3)]
        plan = plan_table(TableInput(make_policy(), make_facts(files=files), lost(3), NOW_MS, TODAY))
        assert (plan.steps == ()) is waits
        assert sum(one.num_files for one in plan.left_alone) == (3 if waits else 0)


def test_every_file_is_kept_or_counted_once() -> None:
    facts = facts_of(*(file for n in range(30) for file in day(f"p{n:02}", n / 10, 2)))
    kept, left = without_hot(facts, lost(1), NOW_MS)
    assert len(kept) + sum(one.num_files for one in left) == 60
    assert len(kept) == 2 * 20


def test_plans_with_it_are_plans() -> None:
    assert plan_all(plan_table(TableInput(make_policy(), make_facts(), lost(9), NOW_MS + DAY_MS, TODAY))).tables


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
            f"hot: our last rewrite was {ago} ago; it rests for 10m, so that a writer who lost to us can finish "
            "(quietAfterUpdates 10m)"
        )


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
    text = "60 files of 60 partitions written less than 2h ago, and another writer won in 2 runs in a row"
    assert (left.reason.text, left.num_files) == (text, 60)


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


def test_a_table_is_remembered_as_losing_to_the_millisecond() -> None:
    record = replace(lost(1), last_lost_at_ms=NOW_MS - 36 * HOUR_MS)
    assert quiet_seconds(record, NOW_MS) == 0
    assert quiet_seconds(record, NOW_MS - 1) == 3600
    week = replace(lost(60), last_lost_at_ms=NOW_MS - 7 * DAY_MS)
    assert (quiet_seconds(week, NOW_MS), quiet_seconds(week, NOW_MS - 1)) == (0, 86_400)


def test_an_update_of_a_moment_ago_is_named_and_not_the_rhythm_it_is_part_of() -> None:
    for writers in (rhythm(1, 24), rhythm(60, 24)):
        (left,) = planned(ORDERS, update(1), writers=writers).left_alone
        assert left.reason.text == "hot: MERGE by another writer 1m ago (quietAfterUpdates 10m)"
