"""Values of columns as texts and as keys that compare as Spark compares the values.

The log, a sample of the table and the definition of a revision all hold values as text. Keys are plain Python
values: integers, floats, decimals, days, microseconds or text, of one kind within a column.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias

ValueKey: TypeAlias = Any
"""What a value compares by: an integer, float, decimal or text. Keys of one column are of one kind, and compare."""

_INTEGERS = frozenset({"byte", "short", "integer", "long"})
_FLOATS = frozenset({"float", "double"})
_TIMESTAMPS = frozenset({"timestamp", "timestamp_ntz"})

_DATE = re.compile(r"([+-]?\d{4,7})-(\d{2})-(\d{2})")
_TIME = re.compile(r"(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?(Z|[+-]\d{2}:\d{2})?")

_DAY_US = 86_400_000_000
_MS_US = 1000


def has_min_and_max(type_name: str) -> bool:
    """Return whether Delta keeps smallest and largest values of such a column in the log: without, nothing is skipped.

    Delta's ``SkippingEligibleDataType``: numbers, dates, timestamps and text of the default collation. Not Booleans,
    not binary data, nothing nested.
    """
    plain = type_name in _INTEGERS | _FLOATS | _TIMESTAMPS or type_name in ("date", "string")
    return plain or type_name.startswith(("decimal", "char", "varchar"))


def key_of(type_name: str, text: str) -> ValueKey | None:
    """Return the key of a value, None where the text is not one of the type.

    NaN is above all numbers, as in Spark; -0.0 is 0.0. Days and microseconds count from 1970 in the proleptic
    Gregorian calendar, before 1582 too, as Delta's log and Spark mean them. A timestamp without a zone is UTC.
    """
    try:
        if type_name in _INTEGERS:
            return int(text)
        if type_name in _FLOATS:
            number = float(text)
            # NaN compares with nothing; no boundary is above infinity, so the two get the same rank.
            return math.inf if math.isnan(number) else number + 0.0
        if type_name.startswith("decimal"):
            value = Decimal(text)
            return value if value.is_finite() else None
        if type_name == "date":
            return _days(text)
        if type_name in _TIMESTAMPS:
            return _microseconds(text)
    except (ValueError, InvalidOperation):
        return None
    return text


def _days(text: str) -> int | None:
    match = _DATE.fullmatch(text.strip())
    if match is None:
        return None
    year, month, day = (int(part) for part in match.groups())
    return days_from_civil(year, month, day) if 1 <= month <= 12 and 1 <= day <= 31 else None


def days_from_civil(year: int, month: int, day: int) -> int:
    """Return days since 1970-01-01 in the proleptic Gregorian calendar, for any year.

    Python's own dates end at the years 1 and 9999. Years are counted from March, so that the leap day is the last
    day of a year; 400 years have 146,097 days.
    """
    from_march = year - (month <= 2)
    era, year_of_era = divmod(from_march, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


def _microseconds(text: str) -> int | None:
    day, separator, time = text.strip().replace("T", " ").partition(" ")
    days = _days(day)
    if days is None:
        return None
    if not separator:
        return days * _DAY_US
    match = _TIME.fullmatch(time)
    if match is None:
        return None
    hours, minutes, seconds, fraction, zone = match.groups()
    of_day = (int(hours) * 3600 + int(minutes) * 60 + int(seconds or 0)) * 1_000_000
    of_day += int((fraction or "").ljust(6, "0")[:6])
    if zone and zone != "Z":
        offset = int(zone[1:3]) * 3600 + int(zone[4:6]) * 60
        of_day -= (offset if zone[0] == "+" else -offset) * 1_000_000
    return days * _DAY_US + of_day


def upper_key(type_name: str, text: str) -> ValueKey | None:
    """Return the key that no value of a file is above, from the largest value in the log.

    The log cuts timestamps down to milliseconds, so the true largest may be almost one more. Text that was cut
    already ends in a character above all that were cut off.
    """
    key = key_of(type_name, text)
    if type_name in _TIMESTAMPS and isinstance(key, int):
        return key + _MS_US - 1
    return key
