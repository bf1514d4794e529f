"""Check texts for more than their type: a size, a date, a time zone, a predicate."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from maintainer.policy.diagnostics.diagnostics import Severity, nearest
from maintainer.policy.predicate.partition_predicate import parse_predicate
from maintainer.policy.predicate.predicate_lex import PredicateError
from maintainer.policy.schema.known_expectations import EXPECTATIONS, REFUSED_EXPECTATIONS, WITHOUT_SPARK
from maintainer.units import UnitError, parse_duration, parse_size, spelled_size

_LONGEST_REMEMBERED = 200


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a text. ``offset`` and ``length`` narrow it to a part of the text, in characters."""

    code: str
    message: str
    help: str | None
    severity: Severity = Severity.ERROR
    offset: int | None = None
    length: int = 1


def check_format(format: str, value: str | int | float) -> Problem | None:
    """Return what is wrong with a value of this ``x-format``, None if nothing is.

    The message begins with a lower-case sentence that stands behind the dotted name of the key.
    """
    if isinstance(value, str) and len(value) > _LONGEST_REMEMBERED:
        return _CHECKS[format](value)
    return _remembered(format, value)


@lru_cache(maxsize=4096, typed=True)
def _remembered(format: str, value: str | int | float) -> Problem | None:
    """Files of one project repeat a few values: `7d`, `256MiB`, the same predicate."""
    return _CHECKS[format](value)


def _check_size(value: str | int | float) -> Problem | None:
    try:
        parse_size(value if isinstance(value, (str, int)) else str(value))
    except UnitError as error:
        return Problem("P205", error.message, error.help)
    meant = spelled_size(value) if isinstance(value, str) else None
    if meant is None:
        return None
    message = f"`{value}` is read as `{meant}`, as Spark does"
    return Problem("P301", message, f"write `{meant}` to say so", Severity.WARNING)


def is_zero(format: str, value: str | int) -> bool:
    """Tell whether a size or duration is nothing."""
    try:
        return (parse_size(value) if format == "size" else parse_duration(str(value))) == 0
    except UnitError:
        return False


def _check_duration(value: str | int | float) -> Problem | None:
    try:
        parse_duration(str(value))
    except UnitError as error:
        return Problem("P205", error.message, error.help)
    return None


def _check_time(value: str | int | float) -> Problem | None:
    text = str(value)
    if re.fullmatch(r"([01][0-9]|2[0-3]):[0-5][0-9]", text):
        return None
    help = "write a time of day with two digits each, like `22:00`"
    if text == "24:00":
        help = "write `00:00`; a window from `22:00` to `00:00` ends at midnight"
    elif re.fullmatch(r"[0-9]:[0-5][0-9]", text):
        help = f"write `0{text}`"
    return Problem("P205", f"{_quoted(text)} is not a time of day", help)


def _check_date(value: str | int | float) -> Problem | None:
    text = str(value)
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return Problem("P205", f"{_quoted(text)} is not a date", "write year, month and day, like `2026-12-01`")
    try:
        date.fromisoformat(text)
    except ValueError:
        return Problem("P313", f"{_quoted(text)} is not in the calendar", "check the month and the day")
    return None


def _check_timezone(value: str | int | float) -> Problem | None:
    name = str(value)
    if name == "UTC":
        return None
    try:
        # The characters first: ZoneInfo reads a file of that name.
        if re.fullmatch(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*", name):
            ZoneInfo(name)
            return None
    except (OSError, ValueError, KeyError):
        pass
    near = nearest(name, _timezones())
    help = f"did you mean `{near}`?" if near else "write an IANA name, like `Europe/Berlin` or `UTC`"
    return Problem("P314", f"{_quoted(name)} is not a time zone", help)


@lru_cache(maxsize=1)
def _timezones() -> frozenset[str]:
    """All names; the standard library looks through folders for them on every call."""
    return frozenset(available_timezones())


def _check_predicate(value: str | int | float) -> Problem | None:
    try:
        parse_predicate(str(value))
    except PredicateError as error:
        return Problem("P310", error.message, error.help, Severity.ERROR, error.offset, error.length)
    return None


def _check_table(value: str | int | float) -> Problem | None:
    text = str(value)
    if not text.isprintable():
        return Problem("P205", "a table's name or path has a character that cannot be shown", "remove it")
    if text != text.strip():
        return Problem("P205", "a table's name or path begins or ends with a blank", f"write {_quoted(text.strip())}")
    if "/" not in text and re.search(r"[*?\[]", text):
        help = f'for many tables write `match: {{tables: ["{text[:60]}"]}}`'
        return Problem("P205", f"{_quoted(text)} is a pattern, and `table` names one table", help)
    return None


def _check_expectation(value: str | int | float) -> Problem | None:
    name = str(value)
    if name in REFUSED_EXPECTATIONS:
        return Problem("P316", f"`{name}` cannot be used: {REFUSED_EXPECTATIONS[name]}", _EXPECTATION_HELP)
    if name in WITHOUT_SPARK:
        return Problem(
            "P316", f"`{name}` cannot be used: Great Expectations has it, but not for Spark", WITHOUT_SPARK[name]
        )
    if name in EXPECTATIONS:
        return None
    near = nearest(name, EXPECTATIONS)
    help = f"did you mean `{near}`?" if near else _EXPECTATION_HELP
    return Problem("P311", f"Great Expectations has no {_quoted(name)}", help)


_EXPECTATION_HELP = "write a registered name, like `expect_column_values_to_not_be_null`"

_CHECKS: dict[str, Callable[[str | int | float], Problem | None]] = {
    "size": _check_size,
    "duration": _check_duration,
    "time": _check_time,
    "date": _check_date,
    "timezone": _check_timezone,
    "predicate": _check_predicate,
    "table": _check_table,
    "expectation": _check_expectation,
}

CHECKED_FORMATS = frozenset(_CHECKS)
"""The values of ``x-format`` that a schema may use."""


def _quoted(text: str) -> str:
    return f"`{text[:60]}...`" if len(text) > 63 else f"`{text}`"
