"""Sizes and durations: the only parser and the only printer of units; and how many things are counted and named.

Sizes are binary. ``128MB`` and ``128m`` are read as Spark reads them, as MiB; `spelled_size` says how to write
them without doubt. A duration always names its units; months and years do not exist, their length varies.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

_Item = TypeVar("_Item")
_Key = TypeVar("_Key")

MAX_SIZE_BYTES = 2**63 - 1
"""Delta and Spark keep sizes in signed 64 bits."""

MAX_DIGITS = 18
"""So many always fit 64 bits."""

MAX_DURATION_SECONDS = 100 * 366 * 86_400
"""A hundred years: any clock time plus or minus this much is still a date that Python and Java can hold."""

_BINARY = {"": 0, "B": 0, "KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40, "PiB": 50}
_SPARK = {"k": 10, "kb": 10, "m": 20, "mb": 20, "g": 30, "gb": 30, "t": 40, "tb": 40, "p": 50, "pb": 50, "b": 0}
_UNIT_OF_SHIFT = {10: "KiB", 20: "MiB", 30: "GiB", 40: "TiB", 50: "PiB"}
_SIZE = re.compile(r"([0-9]+)(\.[0-9]+)? ?([A-Za-z]*)")

_SECONDS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_WORDS = {"week": "w", "day": "d", "hour": "h", "minute": "m", "second": "s"}
_SHORT = re.compile(r"(?:[0-9]+[wdhms] ?)+")
_PART = re.compile(r"([0-9]+)([wdhms])")
_ISO = re.compile(r"P(?:([0-9]+)W|(?:([0-9]+)D)?(?:T(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+)S)?)?)")
_INTERVAL_PART = re.compile(r" +([0-9]+) +(week|day|hour|minute|second)s?", re.IGNORECASE)
_INTERVAL = re.compile(rf"interval(?:{_INTERVAL_PART.pattern})+", re.IGNORECASE)

_SIZE_HELP = "write a whole number and a unit, like `128MiB` or `1GiB`; a plain integer is bytes"
_DURATION_HELP = "write a duration like `7d`, `36h`, `1d 12h` or ISO 8601 `P7D`"


class UnitError(ValueError):
    """A size or duration that cannot be read; ``help`` says how to write it."""

    def __init__(self, message: str, help: str) -> None:
        super().__init__(message)
        self.message = message
        self.help = help


def count_of(number: int, noun: str, plural: str | None = None) -> str:
    """Print a number with its noun: ``1 file``, ``1,204 files``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def named(names: Sequence[str], at_most: int) -> str:
    """Print the first names of a list and count the others: ``a, b and 3 more``."""
    more = f" and {len(names) - at_most:,} more" if len(names) > at_most else ""
    return ", ".join(names[:at_most]) + more


def shortened(lines: Sequence[str], at_most: int) -> str:
    """Print the first of some findings, one on each line, and how many more there are."""
    more = [f"and {len(lines) - at_most:,} more"] if len(lines) > at_most else []
    return "\n".join([*lines[:at_most], *more])


def grouped(items: Iterable[_Item], key: Callable[[_Item], _Key]) -> dict[_Key, list[_Item]]:
    """Put items of one key together, in the order of the first."""
    groups: dict[_Key, list[_Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def by_cause(items: Sequence[_Item], cause: Callable[[_Item], object], at_least: int = 1) -> list[list[_Item]]:
    """Put items of one cause together, in the order of the first.

    An item whose cause is None stays alone, and so do those of a cause with fewer items than ``at_least``.
    """
    groups: dict[object, list[_Item]] = {}
    for number, item in enumerate(items):
        why = cause(item)
        groups.setdefault(("alone", number) if why is None else ("alike", why), []).append(item)
    return [part for group in groups.values() for part in ([group] if len(group) >= at_least else ([i] for i in group))]


_PRINTED_PART = re.compile(r"([0-9.]+)(ms|[a-z])")
_PRINTED_SECONDS = {**_SECONDS, "ms": 0.001}


def printed_value(figure: str) -> float:
    """Return the number behind a figure as it is printed: ``1,200``, ``64 MiB`` in bytes, ``1h 30m`` in seconds."""
    if figure[-1] in _SECONDS:
        return sum(float(count) * _PRINTED_SECONDS[unit] for count, unit in _PRINTED_PART.findall(figure))
    number, _, unit = figure.partition(" ")
    return float(number.replace(",", "")) * float(1 << _BINARY[unit])


def parse_size(text: str | int) -> int:
    """Read a size as bytes, 0 to 2^63 - 1.

    An integer, and a number without a unit, is bytes. Decimal units are read as Spark's
    ``JavaUtils.byteStringAs`` reads them: ``mb`` is MiB.

    Raises:
        UnitError: Not a size, a fraction, negative, or too large.
    """
    if isinstance(text, bool) or not isinstance(text, (int, str)):
        raise UnitError(f"{_shown(text)} is not a size", _SIZE_HELP)
    if isinstance(text, int):
        return _checked_size(text, str(text) if abs(text) < 10**30 else "this number")
    match = _SIZE.fullmatch(text)
    if match is None:
        negative = re.fullmatch(r"-[0-9.]+ ?[A-Za-z]*", text)
        raise UnitError("a size cannot be negative" if negative else f"{_shown(text)} is not a size", _SIZE_HELP)
    digits, fraction, unit = match.groups()
    shift = _BINARY.get(unit, _SPARK.get(unit.lower()))
    if shift is None:
        raise UnitError(f"unknown unit `{unit[:20]}` of a size", _unit_help(digits, unit))
    if fraction:
        raise UnitError("a size has no fraction", _whole_size_help(digits, fraction, shift))
    # The length is checked first: Python refuses to read thousands of digits at all.
    number = int(digits) if len(digits) <= 20 else 2**63
    return _checked_size(number << shift, _shown(text))


def spelled_size(text: str | int) -> str | None:
    """Return how to write a size that has a decimal or one-letter unit (``128MB``: ``128MiB``), else None.

    None also for what is not a size: `parse_size` says what is wrong with that.
    """
    match = _SIZE.fullmatch(text) if isinstance(text, str) else None
    if match is None or match[3] in _BINARY or match[3] == "b":
        return None
    shift = _SPARK.get(match[3].lower())
    return None if not shift else f"{match[1]}{_UNIT_OF_SHIFT[shift]}"


def format_size(size_bytes: int) -> str:
    """Print a size for people, rounded to one decimal: ``64 MiB``, ``1.2 GiB``, ``812 B``."""
    if abs(size_bytes) < 1024:
        return f"{size_bytes} B"
    for shift, unit in _UNIT_OF_SHIFT.items():
        printed = f"{size_bytes / (1 << shift):.1f}".removesuffix(".0") + f" {unit}"
        # 1023.97 KiB would print as 1024 KiB: take the next unit.
        if abs(size_bytes) < (1024 << shift) - (1 << shift) // 20:
            break
    return printed


def exact_size(size_bytes: int) -> str:
    """Print a size as a policy file may hold it, so that `parse_size` gives the same number back.

    Ten billion bytes are ``10000000000`` and not ``9765625KiB``. ``10GB`` they can never be: that is read as 10 GiB.
    """
    for shift, unit in reversed(_UNIT_OF_SHIFT.items()):
        if size_bytes and size_bytes % (1 << shift) == 0:
            return f"{size_bytes >> shift}{unit}" if decimal_size(size_bytes) is None else str(size_bytes)
    return str(size_bytes)


def round_size_down(size_bytes: int) -> int:
    """Return a size of whole units that is not above this one, and at most a tenth below: 64.96 MiB is 64 MiB."""
    for shift in reversed(_UNIT_OF_SHIFT):
        number, rest = divmod(size_bytes, 1 << shift)
        if number and (not rest or number >= 10):
            return number << shift
    return size_bytes


def round_duration_up(seconds: int) -> int:
    """Return a duration of whole hours from one day on, of whole minutes from one hour on, that is not below this."""
    unit = 3600 if seconds > 86_400 else 60 if seconds > 3600 else 1
    return -(-seconds // unit) * unit


def decimal_size(size_bytes: int) -> str | None:
    """Print a round decimal size as people say it (``10 GB``); None where the binary unit is the shorter one."""
    for exponent, unit in ((15, "PB"), (12, "TB"), (9, "GB"), (6, "MB")):
        number, rest = divmod(size_bytes, 10**exponent)
        if number and not rest:
            return f"{number:,} {unit}" if _binary_digits(size_bytes) > len(str(number)) else None
    return None


def _binary_digits(size_bytes: int) -> int:
    """Count the digits before the largest binary unit that divides a size."""
    zeros = (size_bytes & -size_bytes).bit_length() - 1
    return len(str(size_bytes >> min(zeros // 10 * 10, 50)))


def has_plain_digits(text: str) -> bool:
    """Tell whether Python reads a number from a text only where Spark does: it takes ``1_0``, and other digits, too."""
    return text.isascii() and "_" not in text


def read_digits(text: str | None) -> int | None:
    """Read a number that tags and properties hold as digits alone; None for anything else, and if it is very long."""
    return int(text) if text and len(text) <= MAX_DIGITS and text.isascii() and text.isdigit() else None


def parse_duration(text: str) -> int:
    """Read a duration as whole seconds, 0 to a hundred years.

    Accepts ``7d``, ``36h``, ``90m``, ``2w``, ``45s``, ``1d 12h``, ISO 8601 ``P7D`` and ``PT36H``, and Delta's
    ``interval 7 days``. ``m`` is minutes.

    Raises:
        UnitError: No unit, a fraction, months or years, units that repeat or grow, negative, or too long.
    """
    if not isinstance(text, str):
        raise UnitError(*_bare_number(text))
    if _SHORT.fullmatch(text) and not text.endswith(" "):
        parts = [(int(n) if len(n) < 13 else 10**13, unit) for n, unit in _PART.findall(text)]
    elif (iso := _ISO.fullmatch(text)) and any(iso.groups()) and not text.endswith("T"):
        parts = [
            (int(n) if len(n) < 13 else 10**13, unit)
            for n, unit in zip(iso.groups(), "wdhms", strict=True)
            if n is not None
        ]
    elif _INTERVAL.fullmatch(text):
        parts = [(int(n) if len(n) < 13 else 10**13, _WORDS[word.lower()]) for n, word in _INTERVAL_PART.findall(text)]
    else:
        raise UnitError(*_not_a_duration(text))
    order = ["wdhms".index(unit) for _, unit in parts]
    if order != sorted(set(order)):
        raise UnitError("the units of a duration go from long to short, each once", "write it like `1d 12h 30m`")
    seconds = sum(number * _SECONDS[unit] for number, unit in parts)
    if seconds > MAX_DURATION_SECONDS:
        raise UnitError(f"{_shown(text)} is longer than a hundred years", "use a shorter duration")
    return seconds


def format_duration(seconds: float) -> str:
    """Print a duration: whole seconds exactly (``7d``, ``1h 30m``, ``0s``), run times rounded (``3.2s``, ``40ms``).

    For an int that is not negative, `parse_duration` gives the same number back.
    """
    if seconds < 0:
        return "-" + format_duration(-seconds)
    if isinstance(seconds, float):
        if seconds < 0.0995:
            return f"{seconds * 1000:.0f}ms"
        if seconds < 59.95:
            return f"{seconds:.1f}s"
    rest = round(seconds)
    parts = []
    for unit in "dhms":
        count, rest = divmod(rest, _SECONDS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts) or "0s"


def _checked_size(size_bytes: int, shown: str) -> int:
    if size_bytes < 0:
        raise UnitError("a size cannot be negative", _SIZE_HELP)
    if size_bytes > MAX_SIZE_BYTES:
        raise UnitError(f"{shown} is more than 2^63 - 1 bytes", "use a smaller size, like `1TiB`")
    return size_bytes


def _unit_help(digits: str, unit: str) -> str:
    """Propose the right spelling where only the case is wrong (``mib``), else the general form."""
    for known in _UNIT_OF_SHIFT.values():
        if known.lower() == unit.lower():
            return f"write `{digits[:20]}{known}`"
    return _SIZE_HELP


def _whole_size_help(digits: str, fraction: str, shift: int) -> str:
    """Propose a whole number of a smaller unit (``1.5GiB``: ``1536MiB``)."""
    if len(digits) > 12 or len(fraction) > 12:
        return _SIZE_HELP
    smaller_bytes = 1 << max(shift - 10, 0)
    size_bytes = (int(digits + fraction[1:]) << shift) / 10 ** (len(fraction) - 1)
    return f"write `{exact_size(round(size_bytes / smaller_bytes) * smaller_bytes)}`"


def _bare_number(value: object) -> tuple[str, str]:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**6:
        return f"the duration {value} has no unit", f"write `{value}d` for days or `{value}h` for hours"
    return f"{_shown(value)} is not a duration", _DURATION_HELP


_CRON = re.compile(r"@(?:hourly|daily|weekly|monthly)|[0-9*][0-9*/,-]*(?: [0-9A-Za-z*/,?#-]{1,20}){4,5}")


def _not_a_duration(text: str) -> tuple[str, str]:
    if text.isascii() and text.isdigit() and len(text) < 7:
        return _bare_number(int(text))
    if text.startswith("-"):
        return "a duration cannot be negative", _DURATION_HELP
    if re.fullmatch(r"[0-9]+\.[0-9]+ ?[a-z]+", text):
        return "a duration has no fraction", "write it in a smaller unit, like `90m` or `1h 30m`"
    if re.search(r"month|year|[0-9] ?(?:M|mo|y)\b|^P[0-9YM]*[0-9][YM]", text):
        return "months and years have no fixed length", "write days, like `30d`"
    if _CRON.fullmatch(text):
        return (
            f"{_shown(text)} is a schedule, not a duration",
            "write the least time, like `1d`; your scheduler starts runs",
        )
    return f"{_shown(text)} is not a duration", _DURATION_HELP


def _shown(value: object) -> str:
    """The value in backticks, cut so that a message stays one short line."""
    text = str(value) if not isinstance(value, int) or abs(value) < 10**30 else "a very long number"
    text = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
    return f"`{text[:40]}...`" if len(text) > 43 else f"`{text}`"
