"""Whose statistics are exact, and whose bounds cannot be trusted for some types, by what ``commitInfo`` says.

The one list of both: the rule for statistics, the plan and the pages go by it. What it says of others was seen in
tables that they wrote: delta-rs 0.15, 0.19, 0.25, 1.0, 1.3 and 1.6 (NaN is in no bound; from 0.19 on a bound of a
decimal is the double beside it), DuckDB 1.5 (NaN; 1.4 writes no bounds), Delta on Spark 3.0 and 3.1 (offsets of the
writer's zone in whole minutes, in the golden tables). That later ones do the same is read from Delta's source: it hands
time stamps to Spark's ``to_json`` in the session's zone from 2.4 to 4.4.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

EXACT_WRITERS = tuple(f"Delta-Lake/4.{minor}." for minor in range(5))
"""Writers whose bounds are known to be reached by a row. Our own commits say it, too."""


_DECIMAL = re.compile(r"decimal\((\d+),")


_EXACT_DIGITS = 15
"""Digits that every double holds."""


_OLD_OFFSET = re.compile(r'"(?:0\d|1[0-8]|19[0-6])\d+-\d\d-\d\dT[^"]*[+-]\d\d:\d\d"|"197[01]-[^"]*T[^"]*[+-]\d\d:\d\d"')
"""A time with an offset in whole minutes, of a year in which offsets of zones had seconds (Monrovia's until 1972)."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """Bounds that rows may lie outside of: by marks of the writer, of which types, and why.

    With ``said`` only in files whose statistics have such a text.
    """

    marks: tuple[str, ...]
    kinds: tuple[str, ...]
    why: str
    said: re.Pattern[str] | None = None

    def is_about(self, type_name: str) -> bool:
        """Whether it is about a column's type."""
        if match := _DECIMAL.match(type_name):
            return "decimal" in self.kinds and int(match[1]) > _EXACT_DIGITS
        return type_name in self.kinds

    def may_be_in(self, stats: object) -> bool:
        """Whether it may be about a file with these statistics."""
        return self.said is None or (isinstance(stats, str) and self.said.search(stats) is not None)


DOUBTS = (
    Doubt(("delta-rs", "DuckDB"), ("float", "double"), "it leaves NaN out"),
    Doubt(("delta-rs",), ("decimal",), "it rounds decimals"),
    Doubt(("Delta-Lake/",), ("timestamp",), "it cuts the seconds of old zone offsets", _OLD_OFFSET),
)


def doubts_about(writer: str) -> tuple[Doubt, ...]:
    """Return what cannot be trusted in the bounds of a writer; nothing where nothing is known of it."""
    return tuple(doubt for doubt in DOUBTS if any(mark in writer for mark in doubt.marks))
