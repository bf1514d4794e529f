"""Plan the ``pieces`` strategy: rewrite the aligned cube where queries gain most for its bytes.

New rows come as small files with a wide cube each. Leveled compaction never joins them with the table's narrow files,
because they differ in level and in cube. So a cube is rewritten whole, with all files inside it, as files of full
size. The cube is the one where the expected cost of a query (``query_cost``) falls most for each byte rewritten. It is
rewritten only if queries read at least ``MIN_EXCESS`` more of it than they would afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from maintainer.model.table.table_facts import PartitionValues
from maintainer.planning.curve.curve import box_of
from maintainer.planning.curve.curve_files import CurveFile
from maintainer.planning.curve.revision import Revision
from maintainer.planning.curve.skipping_metrics import OPEN_COST_SHARE, divided_share, read_share, sides_of

MIN_EXCESS = 0.4
"""A piece is worth its bytes when queries read four tenths more of it than they would after it was rewritten.

It bounds what is read as well as what is written: no piece ever costs much more than that, and the average over all
pieces is far below. Measured over 60 nights of appends of 1 % (tests, benchmarks/incremental_zorder.py): 0.3 writes
twice as much, 0.5 leaves twice as many small files.
"""


@dataclass(frozen=True, slots=True)
class Piece:
    """A cube of one partition with all files inside it. Costs are in bytes read by an average query."""

    cube: str
    partition: PartitionValues
    files: tuple[CurveFile, ...]
    cost: float
    cost_after: float

    @property
    def size_bytes(self) -> int:
        """Bytes to rewrite."""
        return sum(file.size_bytes for file in self.files)

    @property
    def elements(self) -> int:
        """Rows to rewrite."""
        return sum(file.elements for file in self.files)

    @property
    def excess(self) -> float:
        """How much more of it is read than would be: 0.4 is four tenths more."""
        return self.cost / self.cost_after - 1


@dataclass(slots=True)
class _Sums:
    size_bytes: int = 0
    cost: float = 0.0
    num_files: int = 0
    num_fresh: int = 0
    settled_bytes: int = 0
    settled_cost: float = 0.0
    low: list[int] = field(default_factory=list)
    high: list[int] = field(default_factory=list)


def select_piece(
    files: Iterable[CurveFile],
    revision: Revision,
    *,
    max_file_size_bytes: int,
    bytes_per_iteration: int,
    min_excess: float = MIN_EXCESS,
) -> Piece | None:
    """Return the piece with the greatest gain per byte, None where none is worth its bytes.

    A piece needs a file that is not settled, and all its files are settled afterwards: so the number of files that
    are not falls with every piece, and the search comes to an end.

    Args:
        files: Files of the revision.
        revision: The revision.
        max_file_size_bytes: Size of the files that are written.
        bytes_per_iteration: A piece with more bytes is not taken; smaller ones inside it may be.
        min_excess: See ``MIN_EXCESS``.
    """
    files = sorted(files, key=lambda file: file.file.key)
    best: tuple[float, int, str, PartitionValues] | None = None
    sums = _sum_up(files, revision, max_file_size_bytes)
    costs: dict[tuple[str, PartitionValues], tuple[float, float]] = {}
    for (cube, partition), totals in sums.items():
        if not totals.num_fresh or totals.num_files < 2 or totals.size_bytes > bytes_per_iteration:
            continue
        after = _cost_after(totals, cube, revision, max_file_size_bytes)
        if totals.cost < (1 + min_excess) * after:
            continue
        costs[cube, partition] = (totals.cost, after)
        candidate = ((after - totals.cost) / max(1, totals.size_bytes), len(cube), cube, partition)
        if best is None or candidate[:3] < best[:3]:
            best = candidate
    if best is None:
        return None
    _, _, cube, partition = best
    inside = tuple(file for file in files if file.partition == partition and file.cube.startswith(cube))
    return Piece(cube, partition, inside, *costs[cube, partition])


def _sum_up(
    files: Iterable[CurveFile], revision: Revision, max_file_size_bytes: int
) -> dict[tuple[str, PartitionValues], _Sums]:
    """Add up the files of every cube."""
    num_ranks = [column.num_ranks for column in revision.columns]
    open_cost = max_file_size_bytes * OPEN_COST_SHARE
    sums: dict[tuple[str, PartitionValues], _Sums] = {}
    for file in files:
        cost = (file.size_bytes + open_cost) * read_share(sides_of(file.low, file.high, num_ranks))
        for depth in range(len(file.cube) + 1):
            totals = sums.setdefault((file.cube[:depth], file.partition), _Sums())
            totals.size_bytes += file.size_bytes
            totals.cost += cost
            totals.num_files += 1
            if file.settled:
                totals.settled_bytes += file.size_bytes
                totals.settled_cost += cost
            else:
                totals.num_fresh += 1
            totals.low = [min(pair) for pair in zip(totals.low or file.low, file.low, strict=True)]
            totals.high = [max(pair) for pair in zip(totals.high or file.high, file.high, strict=True)]
    return sums


def _cost_after(totals: _Sums, cube: str, revision: Revision, max_file_size_bytes: int) -> float:
    """Estimate what queries on the piece cost once it is rewritten.

    Either as if its rows filled what they span evenly, or as what is settled in it costs now, where that is most of
    it: columns that go together leave most of a cube empty, and then the first is too high.
    """
    num_ranks = [column.num_ranks for column in revision.columns]
    box_low, box_high = box_of(cube, revision.bits)
    low = [max(pair) for pair in zip(totals.low, box_low, strict=True)]
    high = [min(pair) for pair in zip(totals.high, box_high, strict=True)]
    num_files = max(1, round(totals.size_bytes / max_file_size_bytes))
    share = divided_share(sides_of(low, high, num_ranks), revision.bits, len(cube), num_files)
    even = (totals.size_bytes + num_files * max_file_size_bytes * OPEN_COST_SHARE) * share
    if 2 * totals.settled_bytes < totals.size_bytes:
        return even
    return min(even, totals.settled_cost * totals.size_bytes / totals.settled_bytes)
