"""The probability that another writer comes in between, from the times at which others committed."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maintainer.model.plan.plan import TablePlan
from maintainer.model.plan.steps import Batch, CompactStep
from maintainer.model.table.commit_records import CommitsRead, CommitStamp, TableCommit, WriterRhythm
from maintainer.model.table.table_facts import TableRef
from maintainer.planning.budget.other_writers import (
    LIKELIEST,
    LOOK_BACK_MS,
    MAX_COMMITS,
    conflict_ratio,
    lost_ratio,
    rhythm_of,
)
from maintainer.planning.budget.run_budget import Learned, expected_loss, expected_losses
from tests.support.runs import sample_plans
from tests.support.runs.planned_steps import plan_all

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
NOW_MS = 20_000 * DAY_MS  # a midnight, UTC
MIB = 2**20
STAMP = CommitStamp("20261121T220000Z-7f3a", "t/compact", 0, "sha256:p")


def commit(version: int, at_ms: int, operation: str = "WRITE", *, takes: bool = False) -> TableCommit:
    return TableCommit(version, at_ms, operation, takes_files=takes)


def rhythm(by_hour: dict[int, int], days: int = 7) -> WriterRhythm:
    """Commits that take files in some hours of the day, over whole days that end at midnight."""
    counts = tuple(by_hour.get(hour, 0) for hour in range(24))
    return WriterRhythm(NOW_MS - days * DAY_MS, NOW_MS, sum(counts), counts if any(counts) else ())


def test_only_others_and_only_what_takes_files_counts() -> None:
    commits = (
        commit(9, NOW_MS - HOUR_MS, "MERGE", takes=True),
        commit(8, NOW_MS - 2 * HOUR_MS),
        replace(commit(7, NOW_MS - 3 * HOUR_MS, "OPTIMIZE", takes=True), stamp=STAMP),
        commit(6, NOW_MS - 25 * HOUR_MS, "DELETE", takes=True),
        commit(5, NOW_MS + 5, "UPDATE", takes=True),  # a clock that is ahead: as if it were now
    )
    measured = rhythm_of(CommitsRead("t", commits, oldest_version=0), NOW_MS)
    assert (measured.since_ms, measured.until_ms) == (NOW_MS - LOOK_BACK_MS, NOW_MS)
    assert (measured.num_commits, measured.num_taking) == (4, 3)
    assert {hour: number for hour, number in enumerate(measured.taking_by_hour) if number} == {0: 1, 23: 2}


@pytest.mark.parametrize(
    ("oldest_version", "num_commits", "since_ms"),
    [
        (4, 3, NOW_MS - 3 * HOUR_MS),  # the log begins there
        (0, 3, NOW_MS - LOOK_BACK_MS),  # older ones are there, from before the week
        (0, MAX_COMMITS, NOW_MS - MAX_COMMITS * HOUR_MS),  # no more were read
    ],
)
def test_a_rhythm_is_over_the_time_that_was_looked_at(oldest_version: int, num_commits: int, since_ms: int) -> None:
    commits = tuple(
        commit(4 + num_commits - 1 - age_hours, NOW_MS - (age_hours + 1) * HOUR_MS) for age_hours in range(num_commits)
    )
    assert rhythm_of(CommitsRead("t", commits, oldest_version), NOW_MS).since_ms == since_ms
    assert rhythm_of(CommitsRead("t", ()), NOW_MS) == WriterRhythm(NOW_MS - LOOK_BACK_MS, NOW_MS, 0)


def test_commits_at_the_same_rate_all_day_are_a_plain_poisson_process() -> None:
    every_hour = rhythm(dict.fromkeys(range(24), 7))
    assert conflict_ratio(every_hour, NOW_MS, 3600) == pytest.approx(1 - math.exp(-1))
    assert conflict_ratio(every_hour, NOW_MS + 17 * 60_000, 360) == pytest.approx(1 - math.exp(-0.1))
    assert conflict_ratio(every_hour, NOW_MS, 30 * 86_400) == LIKELIEST


def test_a_night_is_quieter_than_the_hours_in_which_the_pipeline_runs() -> None:
    # Six updates in the hour from 14:00, each of seven days: 42 in 168 hours.
    measured = rhythm({14: 42})
    mean = 42 / 168
    assert conflict_ratio(measured, NOW_MS + 14 * HOUR_MS, 600) == pytest.approx(1 - math.exp(-(42 + mean) / 8 / 6))
    assert conflict_ratio(measured, NOW_MS + 2 * HOUR_MS, 600) == pytest.approx(1 - math.exp(-mean / 8 / 6))
    # Half an hour on either side of 15:00.
    both = ((42 + mean) + mean) / 8 / 2
    assert conflict_ratio(measured, NOW_MS + int(14.5 * HOUR_MS), 3600) == pytest.approx(1 - math.exp(-both))


def test_nobody_else_or_only_appends_cost_nothing() -> None:
    assert conflict_ratio(None, NOW_MS, 1e6) == 0
    assert conflict_ratio(rhythm({}), NOW_MS, 1e6) == 0
    assert conflict_ratio(rhythm({3: 5}), NOW_MS, 0) == 0


def test_a_table_that_is_minutes_old_is_taken_for_an_hour_old() -> None:
    young = WriterRhythm(NOW_MS - 120_000, NOW_MS, 3, tuple(2 if hour == 23 else 0 for hour in range(24)))
    # Two in two minutes, and not sixty an hour: the mean is two an hour, and the prior is worth one hour of it.
    rate = (2 + 2) / (1 / 30 + 1)
    assert conflict_ratio(young, NOW_MS - 1000 * 60, 60) == pytest.approx(1 - math.exp(-rate / 60))


def test_batches_are_lost_one_by_one_each_at_its_time() -> None:
    measured = rhythm({0: 70})
    work = [(3600.0, 3), (3600.0, 1)]
    first, second = (conflict_ratio(measured, NOW_MS + hour * HOUR_MS, 3600) for hour in (0, 1))
    assert first > second
    assert lost_ratio(measured, NOW_MS, work) == pytest.approx((3 * first + second) / 4)
    assert lost_ratio(measured, NOW_MS, []) == 0


def table(writers: WriterRhythm | None, *sizes_mib: int) -> TablePlan:
    batches = (Batch((sample_plans.data_bin(None, list(sizes_mib), "t"),)),) if sizes_mib else ()
    step = CompactStep(batches, 1024 * MIB, 2, ())
    return TablePlan(TableRef("t"), "p.yml", "d", steps=(step,) if sizes_mib else (), writers=writers)


def test_the_rhythm_is_worth_one_try_of_our_own() -> None:
    measured = rhythm(dict.fromkeys(range(24), 7))
    slow = {"compact": MIB / 36.0}  # 100 MiB in an hour
    p = 1 - math.exp(-1)
    busy = table(measured, 60, 40)
    assert expected_loss(busy, NOW_MS, Learned(slow)) == pytest.approx(p)
    assert expected_loss(busy, NOW_MS, Learned(slow, {"t": (9, 0)})) == pytest.approx(p / 10)
    assert expected_loss(busy, NOW_MS, Learned(slow, {"t": (9, 9)})) == pytest.approx((9 + p) / 10)
    assert expected_loss(table(None, 60), NOW_MS, Learned(slow, {"t": (1, 1)})) == 0.5
    assert expected_loss(table(measured), NOW_MS, Learned(slow, {"t": (1, 1)})) == 0
    plan = replace(plan_all(busy, replace(table(None, 5), ref=TableRef("u"))), created_at_ms=NOW_MS)
    assert expected_losses(plan, Learned(slow)) == {TableRef("t"): pytest.approx(p)}


RHYTHMS = st.builds(
    lambda span, counts, before: WriterRhythm(
        NOW_MS - before - span, NOW_MS - before, sum(counts), tuple(counts) if any(counts) else ()
    ),
    st.integers(0, LOOK_BACK_MS),
    st.lists(st.integers(0, 50), min_size=24, max_size=24),
    st.integers(0, DAY_MS),
)


@given(RHYTHMS, st.integers(0, 10 * DAY_MS), st.floats(0, 10 * 86_400), st.floats(0, 86_400))
def test_it_is_a_probability_that_grows_with_the_time_it_takes(
    measured: WriterRhythm, later: int, seconds: float, more: float
) -> None:
    ratio = conflict_ratio(measured, NOW_MS + later, seconds)
    assert 0 <= ratio <= LIKELIEST
    assert ratio <= conflict_ratio(measured, NOW_MS + later, seconds + more) + 1e-9


@given(RHYTHMS, st.integers(0, 10 * DAY_MS), st.floats(0.1, 86_400))
def test_hours_of_the_day_repeat_and_pieces_make_up_the_whole(
    measured: WriterRhythm, later: int, seconds: float
) -> None:
    start = NOW_MS + later
    assert conflict_ratio(measured, start, seconds) == pytest.approx(conflict_ratio(measured, start + DAY_MS, seconds))
    half = round(seconds * 500)
    spared = [1 - conflict_ratio(measured, at, half / 1000) for at in (start, start + half)]
    whole = 1 - conflict_ratio(measured, start, 2 * half / 1000)
    if whole > 1.001 * (1 - LIKELIEST) and min(spared) > 1.001 * (1 - LIKELIEST):
        assert spared[0] * spared[1] == pytest.approx(whole)


def test_less_than_a_second_counts_and_nothing_at_all_does_not() -> None:
    every_hour = rhythm(dict.fromkeys(range(24), 7))
    assert conflict_ratio(every_hour, NOW_MS, 0.5) == pytest.approx(1 - math.exp(-0.5 / 3600))
    assert conflict_ratio(every_hour, NOW_MS, -1) == 0


def test_batches_begin_where_the_one_before_ended() -> None:
    measured = rhythm({0: 7, 2: 70})
    work = [(3600.0, 1), (3600.0, 1), (3600.0, 1)]
    each = [conflict_ratio(measured, NOW_MS + hour * HOUR_MS, 3600) for hour in range(3)]
    assert len(set(each)) == 3
    assert lost_ratio(measured, NOW_MS, work) == pytest.approx(sum(each) / 3)


def test_hours_that_were_looked_at_in_part_count_in_part() -> None:
    """From 21:30 to 23:45, two updates in each of the hours: an hour seen in part weighs as much as was seen."""
    start = NOW_MS - NOW_MS % DAY_MS + 21 * HOUR_MS + HOUR_MS // 2
    counts = tuple(2 if hour in (21, 22, 23) else 0 for hour in range(24))
    measured = WriterRhythm(start, start + 2 * HOUR_MS + HOUR_MS // 4, 6, counts)
    mean = 6 / 2.25
    for hour, seen in ((21, 0.5), (22, 1.0), (23, 0.75)):
        at_ms = NOW_MS - NOW_MS % DAY_MS + hour * HOUR_MS
        rate = (2 + mean) / (seen + 1)
        assert conflict_ratio(measured, at_ms, 60) == pytest.approx(1 - math.exp(-rate / 60))
    assert conflict_ratio(measured, NOW_MS - NOW_MS % DAY_MS, 60) == pytest.approx(1 - math.exp(-mean / 60))
