"""Plan the strategies of incremental Z-order: ``leveled`` joins files of one cube, ``pieces`` rewrites whole cubes.

Leveled joins files of one cube and one level once they make a larger file. Every file is of one cube and is a single
block, so its level is that of its rows: floor(log10(rows)). Small files of wide cubes come first, because the files
they join lie in narrower cubes. At least one result has a higher level, so every level gets its turn.

Pieces rewrites the aligned cube where queries gain most for its bytes. New rows come as small files with a wide cube
each. Leveled compaction never joins them with the table's narrow files, because they differ in level and in cube. So
a cube is rewritten whole, with all files inside it, as files of full size. The cube is the one where the expected
cost of a query (``read_share``) falls most for each byte rewritten. It is rewritten only if queries read at least
``MIN_EXCESS`` more of it than they would afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from maintainer.model.table.table_facts import PartitionValues
from maintainer.planning.curve.curve import box_of
from maintainer.planning.curve.curve_files import OPEN_COST_SHARE, CurveFile, divided_share, read_share, sides_of
from maintainer.planning.curve.revision import Revision
from maintainer.planning.selection.partition_texts import value_order
from maintainer.units import grouped


@dataclass(frozen=True, slots=True)
class CubeFiles:
    """Files of one partition that lie in one cube."""

    cube: str
    partition: PartitionValues
    files: tuple[CurveFile, ...]

    @property
    def elements(self) -> int:
        """Rows of all its files."""
        return sum(file.elements for file in self.files)

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)


@dataclass(frozen=True, slots=True)
class Group(CubeFiles):
    """Those of one level; oldest first."""

    level: int

    @property
    def threshold(self) -> int:
        """Rows below which it waits: those of the next level."""
        return int(10 ** (self.level + 1))

    @property
    def qualifies(self) -> bool:
        """Whether it has enough rows for a file of the next level."""
        return self.elements >= self.threshold


def leveled_groups(files: Iterable[CurveFile]) -> list[Group]:
    """Group files by partition, level and cube, in the order in which groups are taken.

    Level, depth of the cube and number of blocks, all ascending; then, so that the order of the files decides
    nothing, partition and cube.
    """
    members_of = grouped(files, lambda file: (file.level, file.cube, file.partition))
    groups = [
        Group(cube, partition, tuple(sorted(members, key=_age)), level)
        for (level, cube, partition), members in members_of.items()
    ]
    return sorted(groups, key=_order)


def _age(file: CurveFile) -> tuple[int, str, str]:
    return (file.file.modification_time_ms, *file.file.key)


def _order(group: Group) -> tuple[int, int, int, list[tuple[bool, str]], str]:
    return (group.level, len(group.cube), len(group.files), value_order(group.partition), group.cube)


def select_leveled(
    groups: Iterable[Group],
    *,
    bytes_per_iteration: int,
    num_files: Callable[[Group], int],
    num_bits: int,
    company_bytes: int = 0,
) -> tuple[Group, ...]:
    """Return the first group that qualifies, cut down to the bytes of one iteration; none when none does.

    Groups of its level that qualify as well and come next go with it while all of them together are no more than
    ``company_bytes``: a commit of a few small files costs more than they do.

    Args:
        groups: From ``leveled_groups``, in their order.
        bytes_per_iteration: At most so many bytes in all, of each group its oldest files first.
        num_files: How many files a group would be written as.
        num_bits: Length of the addresses.
        company_bytes: See above; 0 takes the first group alone.

    Returns:
        Groups with progress in each: it becomes fewer files, or files of deeper cubes. Without that the same bytes
        could be rewritten without limit.
    """
    groups_taken: list[Group] = []
    size_bytes = 0
    for group in groups:
        if groups_taken and group.level != groups_taken[0].level:
            break
        room = bytes_per_iteration - size_bytes
        cut = _cut(group, room) if group.qualifies else None
        if cut is None or not _progresses(cut, num_files(cut), num_bits):
            continue
        if groups_taken and (size_bytes + group.size_bytes > company_bytes or cut != group):
            break
        groups_taken.append(cut)
        size_bytes += cut.size_bytes
    return tuple(groups_taken)


def _cut(group: Group, room: int) -> Group | None:
    """Cut a group to what has room, oldest files first; None if that makes no file of the next level."""
    taken: list[CurveFile] = []
    for file in group.files:
        if file.size_bytes <= room:
            taken.append(file)
            room -= file.size_bytes
    cut = replace(group, files=tuple(taken))
    return cut if len(taken) > 1 and cut.qualifies else None


def _progresses(group: Group, num_files: int, num_bits: int) -> bool:
    deeper = len(group.cube) < num_bits
    return (num_files < len(group.files) and (num_files == 1 or deeper)) or (num_files > 1 and deeper)


MIN_EXCESS = 0.4
"""A piece is worth its bytes when queries read four tenths more of it than they would after it was rewritten.

It bounds what is read as well as what is written: no piece ever costs much more than that, and the average over all
pieces is far below. Measured over 60 nights of appends of 1 % (tests, benchmarks/incremental_zorder.py): 0.3 writes
twice as much, 0.5 leaves twice as many small files.
"""


@dataclass(frozen=True, slots=True)
class Piece(CubeFiles):
    """All files inside a cube. Costs are in bytes read by an average query."""

    cost: float
    cost_after: float

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
) -> Piece | None:
    """Return the piece with the greatest gain per byte, None where none is worth its bytes.

    A piece needs a file that is not settled, and all its files are settled afterwards: so the number of files that
    are not falls with every piece, and the search comes to an end.

    Args:
        files: Files of the revision.
        revision: The revision.
        max_file_size_bytes: Size of the files that are written.
        bytes_per_iteration: A piece with more bytes is not taken; smaller ones inside it may be.
    """
    files = sorted(files, key=lambda file: file.file.key)
    best: tuple[float, int, str, PartitionValues] | None = None
    sums = _sum_up(files, revision, max_file_size_bytes)
    costs: dict[tuple[str, PartitionValues], tuple[float, float]] = {}
    for (cube, partition), totals in sums.items():
        if not totals.num_fresh or totals.num_files < 2 or totals.size_bytes > bytes_per_iteration:
            continue
        after = _cost_after(totals, cube, revision, max_file_size_bytes)
        if totals.cost < (1 + MIN_EXCESS) * after:
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
