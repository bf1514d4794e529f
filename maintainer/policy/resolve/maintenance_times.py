"""When a policy lets maintenance run: its window, and a suspension."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, time

from maintainer.policy.resolve.policy_fields import setting

_TIME = "^([01][0-9]|2[0-3]):[0-5][0-9]$"
WEEKDAYS = dict(enumerate(("mon", "tue", "wed", "thu", "fri", "sat", "sun"), start=1))


@dataclass(frozen=True, slots=True)
class Window:
    """When steps may start. ``days`` are ISO weekdays (Monday 1); ``end`` before ``start`` crosses midnight."""

    days: tuple[int, ...] = setting(
        ..., words=WEEKDAYS, minItems=1, maxItems=7, note="every day", example=["mon", "tue", "wed", "thu", "fri"]
    )
    """Days on which the window opens."""
    start: time = setting(
        ..., key="from", pattern=_TIME, form="time", unit="time of day; `22:00`", example="22:00", required=True
    )
    """Time of day at which the window opens."""
    end: time = setting(
        ..., key="to", pattern=_TIME, form="time", unit="time of day; `04:00`", example="04:00", required=True
    )
    """Time of day at which the window closes."""
    timezone: str = setting(
        ...,
        minLength=1,
        maxLength=100,
        form="timezone",
        note="`timezone` of maintainer.yml, else UTC",
        example="Europe/Berlin",
    )
    """An IANA time zone."""


@dataclass(frozen=True, slots=True)
class Suspension:
    """Nothing is done until the day given (exclusive of the day itself: on it, work starts again)."""

    until: date | None = setting(
        pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}$", form="date", unit="date; `2026-12-01`", example="2026-12-01"
    )
    """Maintenance starts again on this day. Without it, when you remove `suspend`."""
    reason: str = setting("", minLength=1, maxLength=500, example="migration", required=True)
    """Why; shown in plans."""
    below: tuple[Suspension, ...] = ()

    def on(self, day: date) -> Suspension | None:
        """Return what holds on a day: this one, or where it is over the first ``below`` that is not."""
        return next((each for each in (self, *self.below) if each.until is None or day < each.until), None)
