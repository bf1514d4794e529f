"""Say once what holds for several tables: their first names, and one sentence for those that differ in figures."""

from __future__ import annotations

import re
from collections.abc import Sequence

from maintainer.units import named, printed_value

FOLD = 3
"""As many tables of which the same is said are one."""

MAX_FOLDED_NAMES = 3
"""Names that stand for all of them; ``-v`` and the file have every one."""


def first_names(names: Sequence[str]) -> str:
    """Name the first of several tables and count the others."""
    return named(names, MAX_FOLDED_NAMES)


_FIGURE = re.compile(
    r"""(?<![\w.=/:@-])
    (?:[0-9]+(?:\.[0-9]+)?(?:ms|[dhms])(?:\ [0-9]+[hms])*
    | [0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?(?:\ (?:B|KiB|MiB|GiB|TiB|PiB))?)
    (?![\w/:-])""",
    re.VERBOSE,
)
"""A duration, or a number or size."""

_COUNTED = re.compile(r"\A (\w+?)s\b")


def merged(texts: Sequence[str]) -> str:
    """Say once what several sentences say with other figures; where their words differ, the first is said and counted.

    >>> merged(["9 files under 64 MiB", "1 file under 64 MiB", "21 files under 64 MiB"])
    '1 to 21 files under 64 MiB'
    >>> merged(["ran 5h 3m ago", "ran 40s ago", "ran 1d ago"])
    'ran 40s to 1d ago'
    """
    distinct = list(dict.fromkeys(texts))
    if len(set(map(wording, distinct))) > 1:
        return f"{distinct[0]} (and {len(distinct) - 1:,} more like it)"
    columns = zip(*(_FIGURE.findall(text) for text in distinct), strict=True)
    ends = ((min(figures, key=printed_value), max(figures, key=printed_value)) for figures in columns)
    spread = (least if least == most else f"{least} to {most}" for least, most in ends)
    return _FIGURE.sub(lambda _: next(spread), max(distinct, key=len))


def nameless(text: str | None, name: str) -> str:
    """Return what is left of a sentence about a table without the table's name: equal where only that differs."""
    return re.sub(rf"(?<![\w.]){re.escape(name)}(?![\w.])", "", text or "")


def wording(text: str) -> tuple[str, ...]:
    """Return what stands between the figures of a sentence: equal for sentences that ``merged`` makes one of."""
    first, *others = _FIGURE.split(text)
    return (first, *(_COUNTED.sub(r" \1", part) for part in others))
