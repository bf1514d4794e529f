"""Windows, suspension, intervals: when work may start."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, time

import pytest

from maintainer.model.plan.plan import LeftAlone
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.planning.plan_input import PlanOptions, TableInput
from maintainer.planning.planner import plan_table
from maintainer.planning.schedule import closes_at_ms, describe, held_back, is_open, opens_at_ms
from maintainer.policy.property_names import format_interval, parse_interval_ms
from maintainer.policy.resolve.resolved import Suspension, Window
from tests.support.tables.builders import DAY_MS, NEVER_TOUCHED, NOW_MS, make_facts, make_files, make_policy

NIGHTS = Window((1, 2, 3, 4, 5), time(22), time(4), "Europe/Berlin")


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("utc", "open_"),
    [
        ("2026-11-20 20:59:59", False),  # Friday 21:59:59 in Berlin
        ("2026-11-20 21:00:00", True),
        ("2026-11-21 02:59:59", True),  # Saturday 03:59:59: still Friday's night
        ("2026-11-21 03:00:00", False),
        ("2026-11-21 22:00:00", False),  # Saturday night is no window
        ("2026-11-23 02:00:00", False),  # Monday 03:00: Sunday's night is no window
        ("2026-07-17 20:00:00", True),  # summer time: Friday 22:00
    ],
)
def test_a_window_over_midnight_belongs_to_the_day_it_starts(utc: str, open_: bool) -> None:
    assert is_open((NIGHTS,), ms(utc)) is open_


def test_no_window_is_always_open_and_of_several_one_is_enough() -> None:
    noon = Window((6,), time(12), time(13), "UTC")
    assert is_open((), NOW_MS)
    assert is_open((NIGHTS, noon), ms("2026-11-21 12:30:00"))
    assert not is_open((NIGHTS, noon), ms("2026-11-21 13:00:00"))


def test_equal_times_are_a_whole_day() -> None:
    whole = Window((6,), time(0), time(0), "UTC")
    assert is_open((whole,), ms("2026-11-21 00:00:00"))
    assert is_open((whole,), ms("2026-11-21 23:59:59"))
    assert not is_open((whole,), ms("2026-11-22 00:00:00"))


@pytest.mark.parametrize(
    ("utc", "open_"),
    [
        ("2026-03-29 00:30:00", False),  # 01:30, an hour before the clocks go from 02:00 to 03:00
        ("2026-03-29 01:00:00", True),  # 03:00
        ("2026-03-29 01:45:00", False),  # 03:45
        ("2026-10-25 00:15:00", True),  # 02:15, first time
        ("2026-10-25 01:15:00", True),  # 02:15, second time
        ("2026-10-25 02:30:00", False),  # 03:30
    ],
)
def test_the_wall_clock_decides_when_the_clocks_change(utc: str, open_: bool) -> None:
    window = Window((7,), time(2, 10), time(3, 30), "Europe/Berlin")
    assert is_open((window,), ms(utc)) is open_


@pytest.mark.parametrize(
    ("now", "window", "opens"),
    [
        ("2026-11-21 12:00:00", NIGHTS, "2026-11-23 21:00:00"),
        ("2026-11-20 20:00:00", NIGHTS, "2026-11-20 21:00:00"),
        ("2026-03-28 12:00:00", Window((7,), time(2, 10), time(4), "Europe/Berlin"), "2026-03-29 01:00:00"),
        ("2026-11-21 12:00:00", Window((6,), time(10), time(11), "UTC"), "2026-11-28 10:00:00"),
    ],
)
def test_the_next_opening(now: str, window: Window, opens: str) -> None:
    assert opens_at_ms((window,), ms(now)) == ms(opens)


def test_an_open_window_does_not_open() -> None:
    assert opens_at_ms((NIGHTS,), ms("2026-11-20 22:00:00")) is None


def test_a_window_that_only_exists_in_a_skipped_hour_does_not_open_that_day() -> None:
    window = Window((7,), time(2, 10), time(2, 50), "Europe/Berlin")
    assert opens_at_ms((window,), ms("2026-03-28 12:00:00")) == ms("2026-04-05 00:10:00")


@pytest.mark.parametrize(
    ("days", "text"),
    [((1, 2, 3, 4, 5), "mon-fri"), ((6,), "sat"), ((1, 3), "mon,wed"), ((6, 7), "sat,sun")],
)
def test_describe(days: tuple[int, ...], text: str) -> None:
    window = Window(days, time(22), time(4, 30), "Europe/Berlin")
    assert describe(window) == f"{text} 22:00-04:30 Europe/Berlin"


def test_outside_the_window_the_whole_table_is_left_with_its_files() -> None:
    policy = make_policy(windows=(NIGHTS,), lines={"window": 40})
    facts = make_facts(files=make_files(10, 20))
    planned = plan_table(TableInput(policy, facts, NEVER_TOUCHED, NOW_MS, date(2026, 11, 21)))
    text = "outside the window mon-fri 22:00-04:00 Europe/Berlin, opens 2026-11-23 21:00 UTC"
    assert planned.left_alone == (LeftAlone(Reason(ReasonCode.OUTSIDE_WINDOW, text, "orders.yml:40"), 2, 30),)
    assert planned.state == "waiting"
    options = PlanOptions(ignore_windows=True)
    assert plan_table(TableInput(policy, facts, NEVER_TOUCHED, NOW_MS, date(2026, 11, 21), options)).state == "changes"


@pytest.mark.parametrize(
    ("until", "text"),
    [
        (date(2026, 11, 22), "suspended until 2026-11-22: migration"),
        (None, "suspended: migration"),
        (date(2026, 11, 21), None),
    ],
)
def test_a_suspension_ends_on_its_day(until: date | None, text: str | None) -> None:
    policy = make_policy(suspend=Suspension(until, "migration"), lines={"suspend": 50})
    planned = plan_table(
        TableInput(policy, make_facts(files=make_files(10, 20)), NEVER_TOUCHED, NOW_MS, date(2026, 11, 21))
    )
    assert bool(planned.steps) is (text is None)
    if text is not None:
        assert planned.left_alone == (LeftAlone(Reason(ReasonCode.SUSPENDED, text, "orders.yml:50"), 2, 30),)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("interval 1 week", 7 * DAY_MS),
        ("INTERVAL 7 DAYS", 7 * DAY_MS),
        ("168 hours", 7 * DAY_MS),
        ("interval 1 day 12 hours 30 minutes", DAY_MS + 45_000_000),
        ("interval 1.5 seconds", 1500),
        ("interval 1 microsecond", 1),
        ("interval 0 hours", 0),
        ("interval 2 days -1 day", DAY_MS),
        ("interval 1 month", None),
        ("1 year", None),
        ("interval 1.5 days", None),
        ("interval -1 days", None),
        ("interval", None),
        ("7", None),
        ("7 days and more", None),
        ("", None),
    ],
)
def test_delta_intervals(text: str, expected: int | None) -> None:
    assert parse_interval_ms(text) == expected


@pytest.mark.parametrize("seconds", [1, 59, 60, 90, 3600, 86_400, 7 * 86_400, 45 * 86_400 + 1, 0])
def test_intervals_come_back_equal(seconds: int) -> None:
    assert parse_interval_ms(format_interval(seconds)) == seconds * 1000


@pytest.mark.parametrize(
    ("utc", "closes"),
    [
        ("2026-11-20 21:00:00", "2026-11-21 03:00:00"),
        ("2026-11-21 02:59:59", "2026-11-21 03:00:00"),
        ("2026-11-20 20:59:59", None),  # not open
        ("2026-03-27 22:00:00", "2026-03-28 03:00:00"),
    ],
)
def test_the_end_of_the_open_window_is_known(utc: str, closes: str | None) -> None:
    assert closes_at_ms((NIGHTS,), ms(utc)) == (None if closes is None else ms(closes))


def test_windows_that_touch_are_one_and_without_an_end_within_a_day_there_is_none() -> None:
    evening, night = Window((6,), time(20), time(23), "UTC"), Window((6,), time(23), time(2), "UTC")
    assert closes_at_ms((evening, night), ms("2026-11-21 21:00:00")) == ms("2026-11-22 02:00:00")
    assert closes_at_ms((), NOW_MS) is None
    assert closes_at_ms((Window((1, 2, 3, 4, 5, 6, 7), time(0), time(0), "UTC"),), NOW_MS) is None


def test_a_window_follows_the_clock_when_it_is_set_back_and_forward() -> None:
    sunday = Window((7,), time(1), time(2, 30), "Europe/Berlin")
    # 02:30 does not come that night: the clock goes from 02:00 to 03:00 at 01:00 UTC.
    assert closes_at_ms((sunday,), ms("2026-03-29 00:10:00")) == ms("2026-03-29 01:00:00")
    # 02:30 comes twice: at 00:30 UTC for the first time.
    assert closes_at_ms((sunday,), ms("2026-10-25 00:10:00")) == ms("2026-10-25 00:30:00")


def test_a_plan_with_work_says_when_its_window_closes() -> None:
    policy = make_policy(windows=(NIGHTS,), lines={"window": 40})
    facts = make_facts(files=make_files(1, 1, 1))
    moment = ms("2026-11-20 22:00:00")
    planned = plan_table(TableInput(policy, facts, NEVER_TOUCHED, moment, date(2026, 11, 20)))
    assert planned.window_closes_ms == ms("2026-11-21 03:00:00")
    ignored = plan_table(
        TableInput(policy, facts, NEVER_TOUCHED, moment, date(2026, 11, 20), PlanOptions(ignore_windows=True))
    )
    assert ignored.window_closes_ms is None
    assert (
        plan_table(TableInput(make_policy(), facts, NEVER_TOUCHED, moment, date(2026, 11, 20))).window_closes_ms is None
    )


def test_a_window_that_never_opens_promises_no_time() -> None:
    never = Window((), time(1), time(2), "UTC")
    asked = TableInput(make_policy(windows=(never,)), make_facts(), NEVER_TOUCHED, NOW_MS, date(2026, 11, 21))
    reason = held_back(asked)
    assert reason is not None
    assert reason.code is ReasonCode.OUTSIDE_WINDOW
    assert reason.text == f"outside the window {describe(never)}"
    weekly = replace(never, days=(1,))
    reason = held_back(replace(asked, policy=make_policy(windows=(weekly,))))
    assert reason is not None
    assert reason.text.endswith(", opens 2026-11-23 01:00 UTC")
