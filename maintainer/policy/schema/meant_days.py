"""Read days of the week as people write them: ranges, whole names, words for several days."""

from __future__ import annotations

import re

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SEVERAL = {
    "weekday": "mon-fri",
    "weekdays": "mon-fri",
    "workdays": "mon-fri",
    "weekend": "sat-sun",
    "weekends": "sat-sun",
    "daily": "mon-sun",
    "everyday": "mon-sun",
}
_SEPARATOR = re.compile(r"\s*[,;]\s*|\s+(?:and\s+)?")
_RANGE = re.compile(r"\s*(?:-|\u2013|\.\.|\bto\b)\s*")


def meant_days(text: str) -> list[str] | None:
    """Return the days that ``mon-fri``, ``weekend`` or ``Sat, Sun`` likely means, as policies write them, if any."""
    days: list[str] = []
    for part in _SEPARATOR.split(_RANGE.sub("-", text.strip().casefold()[:100])):
        ends = [_day(word) for word in _SEVERAL.get(part, part).split("-")]
        if len(ends) > 2 or any(day is None for day in ends):
            return None
        first, last = (day for day in (ends[0], ends[-1]) if day is not None)
        days += [_DAYS[at % 7][:3] for at in range(first, last + (8 if last < first else 1))]
    return list(dict.fromkeys(days))


def _day(word: str) -> int | None:
    return next((at for at, day in enumerate(_DAYS) if len(word) >= 3 and day.startswith(word)), None)
