"""What a query costs by the layout alone: a model for choosing, without a single query being run.

A query is a box that takes a share of each column's ranks (``RANGE_SHARE``). A file is read where the two overlap,
which for a box of sides ``s`` happens with probability ``min(1, s + RANGE_SHARE)`` a column. Reading costs the
file's bytes and a fixed cost for opening it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from maintainer.planning.curve import bit_order

RANGE_SHARE = 0.1
"""The share of each column's values that a query takes: a tenth, as in a month of a year."""

OPEN_COST_SHARE = 1 / 32
"""Cost of opening a file, as a share of ``maxFileSize``: at 128 MiB it is Spark's 4 MiB (openCostInBytes)."""


def read_share(sides: Sequence[float]) -> float:
    """Return the probability that a query reads a box with sides of these shares of the columns' ranks."""
    return math.prod(min(1.0, side + RANGE_SHARE) for side in sides)


def sides_of(low: Sequence[int], high: Sequence[int], num_ranks: Sequence[int]) -> tuple[float, ...]:
    """Return the sides of a box of ranks (both ends inclusive) as shares of all ranks of each column."""
    return tuple((min(b, n - 1) - min(a, n - 1) + 1) / n for a, b, n in zip(low, high, num_ranks, strict=True))


def divided_share(sides: Sequence[float], bits: Sequence[int], depth: int, num_files: int) -> float:
    """Return the average ``read_share`` of files into which a cube is cut.

    Args:
        sides: Of what lies in the cube.
        bits: Of the revision.
        depth: Of the cube.
        num_files: How many files; halves, quarters and so on along the order of the bits, in between mixed.
    """
    found = list(sides)
    whole, order = max(1, num_files), bit_order(bits)[depth:]
    parts, share = 1, read_share(found)
    for column, _ in order:
        if parts >= whole:
            break
        found[column] /= 2
        finer = read_share(found)
        if 2 * parts > whole:
            # ``whole - parts`` of the boxes are cut once more: twice as many files, of all files ``whole``.
            cut = 2 * (whole - parts) / whole
            return cut * finer + (1 - cut) * share
        parts, share = 2 * parts, finer
    return share
