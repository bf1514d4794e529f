"""Plan the ``leveled`` strategy: join files of one cube and one level once they make a larger file.

Every file is of one cube and is a single block, so its level is that of its rows: floor(log10(rows)). Small files of
wide cubes come first, because the files they join lie in narrower cubes. At least one result has a higher level, so
every level gets its turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from maintainer.model.table.table_facts import PartitionValues
from maintainer.planning.curve.curve_files import CurveFile


@dataclass(frozen=True, slots=True)
class Group:
    """Files of one partition, level and cube; oldest first."""

    level: int
    cube: str
    partition: PartitionValues
    files: tuple[CurveFile, ...]

    @property
    def elements(self) -> int:
        """Rows of all its files."""
        return sum(file.elements for file in self.files)

    @property
    def size_bytes(self) -> int:
        """Bytes of all its files."""
        return sum(file.size_bytes for file in self.files)

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
    members_of: dict[tuple[int, str, PartitionValues], list[CurveFile]] = {}
    for file in files:
        members_of.setdefault((file.level, file.cube, file.partition), []).append(file)
    groups = [
        Group(level, cube, partition, tuple(sorted(members, key=_age)))
        for (level, cube, partition), members in members_of.items()
    ]
    return sorted(groups, key=_order)


def _age(file: CurveFile) -> tuple[int, str, str]:
    return (file.file.modification_time_ms, *file.file.key)


def _order(group: Group) -> tuple[int, int, int, list[tuple[bool, str]], str]:
    values = [(value is not None, value or "") for _, value in group.partition]
    return (group.level, len(group.cube), len(group.files), values, group.cube)


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
    cut = Group(group.level, group.cube, group.partition, tuple(taken))
    return cut if len(taken) > 1 and cut.qualifies else None


def _progresses(group: Group, num_files: int, num_bits: int) -> bool:
    deeper = len(group.cube) < num_bits
    return (num_files < len(group.files) and (num_files == 1 or deeper)) or (num_files > 1 and deeper)
