"""Delta's interval strings, as table properties hold them: ``interval 7 days``.

Delta reads them with Spark's calendar intervals, ``interval`` in front or not, in any case, and refuses months
and years because they have no fixed length.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal

_MICROSECONDS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_PART = re.compile(r"([+-]?[0-9]{1,18}(?:\.[0-9]{1,9})?)\s+(" + "|".join(_MICROSECONDS) + r")s?(?:\s+|$)")


def parse_interval_ms(text: str) -> int | None:
    """Read a Delta interval as whole milliseconds, rounded up; None for what Delta would refuse or we cannot read.

    Only seconds may have a fraction, as in Spark.
    """
    rest = text.strip().lower()
    if rest.startswith("interval"):
        rest = rest.removeprefix("interval").strip()
    total, position = Decimal(0), 0
    while position < len(rest):
        match = _PART.match(rest, position)
        if match is None or ("." in match[1] and match[2] != "second"):
            return None
        total += Decimal(match[1]) * _MICROSECONDS[match[2]]
        position = match.end()
    if not rest or total < 0:
        return None
    return math.ceil(total / 1000)


def format_interval(seconds: int) -> str:
    """Print seconds as Delta writes intervals, in the largest unit that is exact: ``interval 7 days``."""
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds and seconds % length == 0:
            return f"interval {seconds // length} {unit}s"
    return f"interval {seconds} seconds"
