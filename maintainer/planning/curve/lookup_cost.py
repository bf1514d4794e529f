"""How many files a look-up of one value reads, and where files lie in two columns, from the log's statistics alone.

A look-up ``WHERE column = value`` reads a file unless the smallest and largest value in the log rule it out. The value
looked for is in the middle of a file's range; every file asks once, with the weight of its bytes. So the figure is that
of a row drawn at random, as far as the log tells. A file without statistics is read by every look-up. No partition is
ruled out. Middles are places among all bounds of both looks, so that texts have one as well as numbers.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from maintainer.model.run.table_look import BOX_PLACES, MAX_BOXES, Box
from maintainer.model.table.table_facts import FileRange
from maintainer.planning.curve.curve import ValueKey, key_of, upper_key

Span = tuple[int, int] | None
"""Places of a file's smallest and largest value among all bounds; None where the log does not say."""


@dataclass(frozen=True, slots=True)
class RangedFile:
    """A file's size, and its ranges in the columns asked for; None without statistics."""

    size_bytes: int
    ranges: tuple[FileRange, ...] | None


@dataclass(frozen=True, slots=True)
class LookupCost:
    """``lookups`` are the files read by a look-up on each column; ``boxes`` the files in the first two of them."""

    lookups: tuple[float, ...]
    boxes: tuple[Box, ...]


def compare_lookups(
    types: Sequence[str], before: Sequence[RangedFile], after: Sequence[RangedFile]
) -> tuple[LookupCost, LookupCost]:
    """Estimate look-ups on each column before and after a rewrite, on one scale.

    Args:
        types: Spark's name of each column's type, in the order of the files' ranges.
        before: The live files before.
        after: The live files after.
    """
    costs: list[list[float]] = [[], []]
    sides: list[list[list[Span]]] = [[], []]
    most: list[int] = []
    for place, type_name in enumerate(types):
        keys = [[_keys(type_name, file, place) for file in files] for files in (before, after)]
        order = {
            key: rank
            for rank, key in enumerate(sorted({key for side in keys for pair in side if pair for key in pair}))
        }
        most.append(max(1, len(order) - 1))
        for number, files in enumerate((before, after)):
            spans = [(order[pair[0]], order[pair[1]]) if pair else None for pair in keys[number]]
            sides[number].append(list(spans))
            costs[number].append(round(files_read(spans, [file.size_bytes for file in files]), 2))
    first, second = (LookupCost(tuple(costs[number]), _boxes(sides[number], most)) for number in (0, 1))
    return first, second


def files_read(spans: Sequence[Span], sizes_bytes: Sequence[int]) -> float:
    """Return the files that a look-up of one value reads on average."""
    known = [span for span in spans if span is not None]
    lows, highs = sorted(low for low, _ in known), sorted(high for _, high in known)
    read = weights = 0
    for span, size_bytes in zip(spans, sizes_bytes, strict=True):
        if span is not None:
            middle, weight = (span[0] + span[1]) // 2, max(1, size_bytes)
            read += weight * (bisect_right(lows, middle) - bisect_left(highs, middle))
            weights += weight
    return len(spans) - len(known) + (read / weights if weights else 0.0)


def _keys(type_name: str, file: RangedFile, place: int) -> tuple[ValueKey, ValueKey] | None:
    least, most, _ = file.ranges[place] if file.ranges is not None else (None, None, True)
    if least is None or most is None:
        return None
    low, high = key_of(type_name, least), upper_key(type_name, most)
    return None if low is None or high is None or high < low else (low, high)


def _boxes(sides: Sequence[Sequence[Span]], most: Sequence[int]) -> tuple[Box, ...]:
    if len(sides) < 2:
        return ()
    every = -(-len(sides[0]) // MAX_BOXES) or 1
    pairs = list(zip(sides[0], sides[1], strict=True))[::every]
    return tuple((*_scaled(first, most[0]), *_scaled(second, most[1])) for first, second in pairs)


def _scaled(span: Span, most: int) -> tuple[int, int]:
    low, high = (0, most) if span is None else span
    return low * BOX_PLACES // most, -(-high * BOX_PLACES // most)
