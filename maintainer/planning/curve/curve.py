"""The Z-order curve over ranks: values as keys that compare, addresses, cubes, and the box of a cube.

A value's *rank* in a column is the number of boundaries at or below it (``maintainer.planning.curve.revision``).
Ranks of several columns are interleaved bit by bit, the first column first, into a *Z-address*. A *cube* is a prefix
of addresses, written as text of zeros and ones: ``""`` is everything, each bit more halves one column's range. Cubes
are aligned by nature: two either contain one another or have nothing in common.

The log, a sample of the table and the definition of a revision all hold values as text. Keys are plain Python values:
integers, floats, decimals, days, microseconds or text, of one kind within a column.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from itertools import accumulate, takewhile
from operator import itemgetter
from typing import Any, TypeAlias

from maintainer.units import has_plain_digits

ValueKey: TypeAlias = Any
"""What a value compares by: an integer, float, decimal or text. Keys of one column are of one kind, and compare."""

_INTEGERS = frozenset({"byte", "short", "integer", "long"})
_FLOATS = frozenset({"float", "double"})
_TIMESTAMPS = frozenset({"timestamp", "timestamp_ntz"})

_DATE = re.compile(r"([+-]?\d{4,7})-(\d{2})-(\d{2})", re.ASCII)
_TIME = re.compile(r"(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?(Z|[+-]\d{2}:\d{2})?", re.ASCII)

_DAY_US = 86_400_000_000
_MS_US = 1000


def num_shared(text: str, other: str) -> int:
    """Return the length of what two texts begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(text, other, strict=False)))


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
    is_number = type_name in _INTEGERS or type_name in _FLOATS or type_name.startswith("decimal")
    if is_number and not has_plain_digits(text):
        return None
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


MAX_ADDRESS_BITS = 62
"""Addresses are signed 64-bit integers in Spark; one bit is kept free."""


def bits_of(num_ranks: int) -> int:
    """Return the bits that hold the ranks 0 to ``num_ranks - 1``; one rank alone needs none.

    Raises:
        ValueError: There is not even one rank.
    """
    if num_ranks < 1:
        raise ValueError("a column has at least one rank")
    return (num_ranks - 1).bit_length()


def bit_order(bits: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """List the bits of an address from the most significant on, as ``(column, bit of its rank)``.

    Columns take turns, each with its own highest bit first; one whose bits are used up is passed over, so that a
    column of few distinct values costs the others nothing.
    """
    turns = range(max(bits, default=0))
    return tuple((column, count - 1 - turn) for turn in turns for column, count in enumerate(bits) if turn < count)


def cube_of(low: Sequence[int], high: Sequence[int], bits: Sequence[int]) -> str:
    """Return the smallest cube that holds the box from ``low`` to ``high`` (ranks, both inclusive).

    It is the longest common prefix of the addresses of the two corners, and that of all addresses in the box: a bit
    at which no two points differ in their column's rank is one at which the corners do not differ.
    """
    cube = ""
    for column, bit in bit_order(bits):
        # Bits further up were equal, so the two differ here exactly when their ranks shifted by it differ.
        if low[column] >> bit != high[column] >> bit:
            break
        cube += str(low[column] >> bit & 1)
    return cube


def box_of(cube: str, bits: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the lowest and the highest ranks (inclusive) of a cube.

    Raises:
        ValueError: The cube is deeper than addresses are long.
    """
    order = bit_order(bits)
    if len(cube) > len(order):
        raise ValueError(f"a cube of {len(cube)} bits in addresses of {len(order)}")
    low = [0] * len(bits)
    high = [(1 << count) - 1 for count in bits]
    for digit, (column, bit) in zip(cube, order, strict=False):
        if digit == "1":
            low[column] |= 1 << bit
        else:
            high[column] &= ~(1 << bit)
    return tuple(low), tuple(high)


def is_cube(text: str) -> bool:
    """Return whether the text spells a cube."""
    return len(text) <= MAX_ADDRESS_BITS and not text.strip("01")


def cut_curve(counts: Sequence[tuple[int, int]], *, num_bits: int, max_rows: int) -> tuple[int, ...]:
    """Cut the curve into pieces of at most about ``max_rows``, at the borders of cubes as large as can be.

    A cube is halved while it holds more than ``max_rows``, so that a piece never lies across the border of a cube.
    Where the data is even, pieces hold from half of ``max_rows`` to all of it. A quarter more is let pass where
    halving would leave one half with next to nothing.

    Args:
        counts: ``(address, rows)`` in ascending order of the addresses, each once.
        num_bits: Length of the addresses.
        max_rows: Rows that a piece holds at most, unless one address alone has more.

    Returns:
        The first address of every piece, ascending; the first one is 0. Never empty.

    Raises:
        ValueError: ``max_rows`` is not positive.
    """
    if max_rows <= 0:
        raise ValueError(f"a piece holds at least one row, not {max_rows}")
    starts: list[int] = []
    totals = list(accumulate((rows for _, rows in counts), initial=0))
    # (first and last position in counts, first address, free bits); a stack, for the depth may be 62.
    stack = [(0, len(counts), 0, num_bits)]
    while stack:
        first, last, address, free = stack.pop()
        if first == last:
            continue
        rows = totals[last] - totals[first]
        middle_address = address + (1 << (free - 1) if free else 0)
        middle = bisect_left(counts, middle_address, first, last, key=itemgetter(0))
        smaller_half = min(totals[middle] - totals[first], totals[last] - totals[middle])
        if free == 0 or rows <= max_rows or (4 * rows <= 5 * max_rows and 4 * smaller_half < max_rows):
            starts.append(address)
            continue
        stack.append((middle, last, middle_address, free - 1))
        stack.append((first, middle, address, free - 1))
    return (0, *starts[1:]) if starts else (0,)
