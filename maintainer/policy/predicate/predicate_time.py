"""Read days and times as Delta's log and our literals write them; strict, and the same on every Python.

``date.fromisoformat`` reads more forms on Python 3.11 than on 3.10, so it is used only after a pattern.
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta, timezone

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}\Z", re.ASCII)
_TIMESTAMP = re.compile(
    r"(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?(Z|[+-]\d{2}:\d{2})?)?\Z", re.ASCII
)


def read_date(text: str) -> date | None:
    """Read ``yyyy-mm-dd``; None for anything else, also for a day that does not exist."""
    if not _DATE.match(text):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def read_timestamp(text: str) -> datetime | None:
    """Read a time to the microsecond, in UTC unless it names an offset; None for anything else.

    These are the forms of the Delta protocol for partition values: ``yyyy-mm-dd hh:mm:ss[.ffffff]`` and
    ISO 8601 with ``T`` and ``Z``. A day alone is its midnight. Digits beyond microseconds must be zero.
    """
    match = _TIMESTAMP.match(text)
    if match is None:
        return None
    day_text, hour, minute, second, fraction, zone = match.groups()
    day = read_date(day_text)
    if day is None or (fraction or "")[6:].strip("0"):
        return None
    try:
        moment = datetime(
            day.year,
            day.month,
            day.day,
            int(hour or 0),
            int(minute or 0),
            int(second or 0),
            int(((fraction or "") + "000000")[:6]),
            tzinfo=timezone.utc,
        )
        return moment - _offset(zone)
    except (ValueError, OverflowError):
        return None


def _offset(zone: str | None) -> timedelta:
    if zone is None or zone == "Z":
        return timedelta(0)
    hours, minutes = int(zone[1:3]), int(zone[4:6])
    if hours > 18 or minutes > 59:
        raise ValueError(zone)
    distance = timedelta(hours=hours, minutes=minutes)
    return -distance if zone[0] == "-" else distance
