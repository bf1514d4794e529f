"""The rest of a table after our own rewrites, so that a writer who lost to us can finish."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maintainer.model.plan.plan import LeftAlone, TablePlan
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.table.commit_records import CommitsRead, CommitStamp, TableCommit
from maintainer.planning.budget.other_writers import own_rewrites_of
from maintainer.planning.plan_input import TableInput
from maintainer.planning.planner import plan_table
from tests.support.tables.builders import MINUTE_MS, NEVER_TOUCHED, NOW_MS
from tests.unit.planning.budget.hot_table_plans import ORDERS, POLICY, TODAY


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
        resting(
            *[commit(minutes_ago - 0.1, run) for minutes_ago, run in zip(ago, runs, strict=True)], commit(999)
        ).state
        == "waiting"
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
        "resting: our last rewrite was 4m ago, 2 runs in a row; it rests for 20m, so that a writer who lost to us "
        "can finish (quietAfterUpdates 10m)"
    )
    assert left == LeftAlone(Reason(ReasonCode.RESTING, text, "orders.yml:4"), 3, 60)


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
            lost = any(past_commit.stamp and past_commit.at_ms > NOW_MS + begun * MINUTE_MS for past_commit in log)
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
