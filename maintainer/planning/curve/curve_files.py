"""Z-order metadata of files, and the cost of queries on a table's layout, from the log alone.

Revision, cube, rank box and rows are read from tags, and written for new files.

The smallest and largest values of the Z-order columns in each file are compared with a seeded set of queries over the
ranks of a revision: half are ranges of a tenth of each column's values, half are points. A file is read when no
column rules it out; a file without statistics is always read. No file is opened, and no query is run.

The cost model chooses between rewrites. A query is a box that takes a share of each column's ranks (``RANGE_SHARE``).
It reads a file with sides ``s`` with probability ``min(1, s + RANGE_SHARE)`` for each column; reading costs the
file's bytes and a fixed cost for opening it.

Boxes of files in the first two Z-order columns, for a picture, are made from facts that the loop has in hand.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from maintainer.model.cached_property import cached_property
from maintainer.model.plan.layout_tags import CURVE_CUBE_TAG, ELEMENTS_TAG, REVISION_TAG, STRATEGY_TAG
from maintainer.model.plan.zorder_turn import LayoutFigures, Strategy
from maintainer.model.table.table_facts import (
    MAX_BOXES,
    DataFile,
    FileBox,
    FileRange,
    LayoutBoxes,
    PartitionValues,
    TableFacts,
)
from maintainer.planning.curve.curve import bit_order, box_of, cube_of, is_cube
from maintainer.planning.curve.revision import Revision
from maintainer.units import read_digits

Ranges = Mapping[tuple[str, str], Sequence[FileRange]]
"""The ranges of each file by its key, in the order of the revision's columns. A file may be missing."""


@dataclass(frozen=True)
class CurveFile:
    """A file of a revision. ``low`` and ``high`` are the ranks that its rows lie between, both inclusive.

    ``settled`` says that a piece of the curve was written as a whole and this file is part of it: nothing is gained
    by writing it again until something new lies beside it.
    """

    file: DataFile
    elements: int
    cube: str
    low: tuple[int, ...]
    high: tuple[int, ...]
    settled: bool

    @property
    def partition(self) -> PartitionValues:
        """The file's partition as the log spells it: only files with equal texts are joined."""
        return self.file.partition_texts

    @property
    def size_bytes(self) -> int:
        return self.file.size_bytes

    @cached_property
    def level(self) -> int:
        """floor(log10(elements)): 1 to 9 rows are level 0, 10 to 99 level 1. Without rows: 0."""
        return len(str(self.elements)) - 1


def curve_files(files: Iterable[DataFile], revision: Revision, ranges: Ranges) -> list[CurveFile]:
    """Return the files that carry the revision's tags, whole and sound; all others are not indexed in it.

    Args:
        files: Live files.
        revision: The revision; a tag that names another definition of the same number does not match.
        ranges: Where the log has smallest and largest values; elsewhere the cube stands for them.
    """
    on_curve = (_curve_file(file, revision, ranges) for file in files)
    return [curve_file for curve_file in on_curve if curve_file is not None]


def _curve_file(file: DataFile, revision: Revision, ranges: Ranges) -> CurveFile | None:
    tags = dict(file.tags)
    if tags.get(REVISION_TAG) != revision.tag:
        return None
    cube, elements = tags.get(CURVE_CUBE_TAG, "?"), read_digits(tags.get(ELEMENTS_TAG))
    if not is_cube(cube) or len(cube) > revision.num_bits or elements is None:
        return None
    file_ranges = ranges.get(file.key)
    low, high = box_of(cube, revision.bits) if file_ranges is None else revision.box(file_ranges)
    settled = tags.get(STRATEGY_TAG) == Strategy.PIECES.value
    return CurveFile(file, elements, cube, low, high, settled)


def max_rows_of(num_rows: int, num_files: int) -> int:
    """Return the rows from which a cube is halved, so that about ``num_files`` files come out.

    Halving leaves between half of this and all of it in a file, three quarters on average.
    """
    return max(1, -(-4 * num_rows // (3 * num_files))) if num_files > 1 else max(1, num_rows)


def files_of_pieces(counts: Sequence[tuple[int, int]], starts: Sequence[int], max_rows: int) -> tuple[int, ...]:
    """Return the number of files of each piece of a curve: one, unless a single address holds too many rows.

    Args:
        counts: ``(address, rows)`` in ascending order of the addresses.
        starts: The first address of each piece, from ``cut_curve``.
        max_rows: What the curve was cut with.
    """
    totals = [0] * len(starts)
    place = 0
    for address, rows in counts:
        while place + 1 < len(starts) and starts[place + 1] <= address:
            place += 1
        totals[place] += rows
    return tuple(max(1, -(-total // (2 * max_rows))) if total > 2 * max_rows else 1 for total in totals)


def tags_of(
    revision: Revision, strategy: Strategy, ranges: Sequence[FileRange], num_records: int
) -> tuple[tuple[str, str], ...]:
    """Return the tags of a file that a turn wrote.

    Args:
        revision: In which it was written.
        strategy: Of the turn.
        ranges: Smallest and largest values as the file's own statistics have them; the cube follows from them.
        num_records: Its rows.
    """
    low, high = revision.box(ranges)
    return (
        (REVISION_TAG, revision.tag),
        (CURVE_CUBE_TAG, cube_of(low, high, revision.bits)),
        (ELEMENTS_TAG, str(num_records)),
        (STRATEGY_TAG, strategy.value),
    )


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
    halved = list(sides)
    whole, order = max(1, num_files), bit_order(bits)[depth:]
    parts, share = 1, read_share(halved)
    for column, _ in order:
        if parts >= whole:
            break
        halved[column] /= 2
        finer = read_share(halved)
        if 2 * parts > whole:
            # ``whole - parts`` of the boxes are cut once more: twice as many files, of all files ``whole``.
            cut = 2 * (whole - parts) / whole
            return cut * finer + (1 - cut) * share
        parts, share = 2 * parts, finer
    return share


QUERIES = 64
"""Half ranges, half points. Their average moves by a few per cent with the seed; one seed, so that it moves only when
the table does."""

SEED = 20_260_101

MAX_FILES = 10_000
"""Of more files every n-th is looked at, in order of their paths, and figures are scaled up."""


@dataclass(frozen=True, slots=True)
class Box:
    """What of the ranks a file may hold (both ends inclusive), and its size."""

    low: tuple[int, ...]
    high: tuple[int, ...]
    size_bytes: int


def boxes_of(files: Sequence[DataFile], revision: Revision, ranges: Ranges) -> list[Box]:
    """Return each file's box in a revision's ranks; a file of which nothing is known spans everything."""
    everything = tuple(column.num_ranks - 1 for column in revision.columns)
    nothing = (0,) * len(revision.columns)
    boxes = []
    for file in files:
        file_ranges = ranges.get(file.key)
        low, high = (nothing, everything) if file_ranges is None else revision.box(file_ranges)
        boxes.append(Box(low, high, file.size_bytes))
    return boxes


def layout_figures(files: Sequence[DataFile], revision: Revision, ranges: Ranges) -> LayoutFigures:
    """Measure the layout of the files under a revision.

    Args:
        files: Live files of the table.
        revision: Whose columns and boundaries the queries use.
        ranges: Smallest and largest values of its columns in each file.
    """
    total = sum(file.size_bytes for file in files)
    ratio = unindexed_bytes(files, revision) / total if total else 0.0
    return figures_of_boxes(boxes_of(sorted(files, key=lambda file: file.key), revision, ranges), revision, ratio)


def unindexed_bytes(files: Sequence[DataFile], revision: Revision) -> int:
    """Return the bytes in files that are not of the revision."""
    indexed = sum(curve_file.size_bytes for curve_file in curve_files(files, revision, {}))
    return sum(file.size_bytes for file in files) - indexed


def figures_of_boxes(boxes: Sequence[Box], revision: Revision, unindexed_ratio: float) -> LayoutFigures:
    """Measure boxes, of files that are there or that are expected."""
    every = -(-len(boxes) // MAX_FILES) or 1
    looked_at = boxes[::every]
    num_read, bytes_read = _read_by_queries(looked_at, revision)
    return LayoutFigures(
        files_read=round(every * num_read, 3),
        bytes_read=round(every * bytes_read),
        overlap_depth=round(every * _overlap_depth(looked_at), 3),
        unindexed_ratio=round(unindexed_ratio, 4),
    )


def queries(revision: Revision) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return the sample queries as boxes of ranks: ranges first, then points."""
    chance = random.Random(SEED)
    boxes = []
    for number in range(QUERIES):
        low, high = [], []
        for column in revision.columns:
            width = max(1, round(column.num_ranks * RANGE_SHARE)) if number < QUERIES // 2 else 1
            first = chance.randrange(column.num_ranks - width + 1)
            low.append(first)
            high.append(first + width - 1)
        boxes.append((tuple(low), tuple(high)))
    return boxes


def _read_by_queries(boxes: Sequence[Box], revision: Revision) -> tuple[float, float]:
    num_files = size_bytes = 0
    for low, high in queries(revision):
        for box in boxes:
            if _meet(box.low, box.high, low, high):
                num_files += 1
                size_bytes += box.size_bytes
    return num_files / QUERIES, size_bytes / QUERIES


def _overlap_depth(boxes: Sequence[Box]) -> float:
    """Files that lie over the middle of a file, itself included; averaged over a seeded choice of files. 1 is best."""
    if not boxes:
        return 0.0
    chance = random.Random(SEED)
    chosen = boxes if len(boxes) <= QUERIES else chance.sample(list(boxes), QUERIES)
    total = 0
    for box in chosen:
        middle = tuple((a + b) // 2 for a, b in zip(box.low, box.high, strict=True))
        total += sum(_meet(other.low, other.high, middle, middle) for other in boxes)
    return total / len(chosen)


def _meet(low: Sequence[int], high: Sequence[int], other_low: Sequence[int], other_high: Sequence[int]) -> bool:
    return all(c <= b and a <= d for a, b, c, d in zip(low, high, other_low, other_high, strict=True))


def layout_boxes(revision: Revision | None, facts: TableFacts, earlier: LayoutBoxes | None) -> LayoutBoxes | None:
    """Return the boxes with those of this look added: the first look is before the step, the newest after it.

    Args:
        revision: The layout that is worked on; None where the table does not have it yet.
        facts: The table with the ranges of the revision's columns.
        earlier: What looks before this one gave; None for the first.

    Returns:
        What was given where nothing can be drawn: a single column, or ranges of other columns.
    """
    ranges = facts.column_ranges
    if revision is None or ranges is None or ranges.columns != revision.names() or len(ranges.columns) < 2:
        return earlier
    files = sorted(key for key in facts.file_keys if key in ranges.by_file)
    every = -(-len(files) // MAX_BOXES) or 1
    corners = (revision.box(ranges.by_file[key]) for key in files[::every])
    boxes: tuple[FileBox, ...] = tuple((low[0], high[0], low[1], high[1]) for low, high in corners)
    if earlier is not None:
        return replace(earlier, after=boxes, num_after=len(facts.files))
    first, second = revision.columns[:2]
    return LayoutBoxes((first.name, second.name), (first.num_ranks, second.num_ranks), boxes, len(facts.files))
