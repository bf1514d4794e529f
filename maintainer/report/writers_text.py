"""What is said of a table's other writers: how they commit, and how much of a rewrite they are expected to cost."""

from __future__ import annotations

from maintainer.model.writers import WriterRhythm
from maintainer.report.layout import count
from maintainer.units import format_duration

WORTH_A_LINE = 0.01
"""A plan says nothing of less than this; `why` does."""


def share(ratio: float) -> str:
    """A probability or a share in per cent.

    >>> share(0.0), share(0.002), share(0.118), share(0.999)
    ('none', 'less than 1 %', '12 %', 'more than 99 %')
    """
    if ratio <= 0:
        return "none"
    if ratio < WORTH_A_LINE:
        return "less than 1 %"
    return f"{ratio:.0%}".replace("%", " %") if ratio < 0.995 else "more than 99 %"


def conflict_line(rhythm: WriterRhythm | None, lost_ratio: float) -> str | None:
    """The line of a plan; None where so little is expected to be lost that it is not worth one."""
    if lost_ratio < WORTH_A_LINE:
        return None
    text = f"{share(lost_ratio)} of this is expected to be lost to other writers"
    if rhythm is None or not rhythm.num_taking:
        return f"{text}, as past runs were"
    return f"{text}: {_seen(rhythm)}"


def rhythm_lines(rhythm: WriterRhythm, lost_ratio: float) -> list[str]:
    """All that `why` says of them."""
    lines = [_seen(rhythm)]
    if rhythm.num_taking:
        busiest = max(range(len(rhythm.taking_by_hour)), key=rhythm.taking_by_hour.__getitem__)
        most = rhythm.taking_by_hour[busiest]
        lines.append(
            f"most from {busiest:02d}:00 to {(busiest + 1) % 24:02d}:00 UTC: {most:,} of {rhythm.num_taking:,}"
        )
    lines.append(f"expected to be lost to them if it runs now: {share(lost_ratio)}")
    return lines


def _seen(rhythm: WriterRhythm) -> str:
    span = format_duration(max(1, round(rhythm.seconds)))
    took = "none of them" if not rhythm.num_taking else f"{rhythm.num_taking:,} of them"
    return f"{count(rhythm.num_commits, 'commit')} of others in {span}, {took} took or replaced live files"
