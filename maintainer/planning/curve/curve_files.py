"""Z-order metadata of files: revision, cube, rank box and rows, read from tags and written for new files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from maintainer.model.plan.zorder_turn import CUBE_TAG, ELEMENTS_TAG, REVISION_TAG, STRATEGY_TAG, Strategy
from maintainer.model.table.table_facts import DataFile, FileRange, PartitionValues
from maintainer.planning.curve.curve import box_of, cube_of, is_cube
from maintainer.planning.curve.revision import Revision

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
        """The file's partition."""
        return self.file.partition_values

    @property
    def size_bytes(self) -> int:
        """Bytes on storage."""
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
    cube, elements = tags.get(CUBE_TAG, "?"), tags.get(ELEMENTS_TAG, "")
    if not is_cube(cube) or len(cube) > revision.num_bits or not elements.isdecimal():
        return None
    file_ranges = ranges.get(file.key)
    low, high = box_of(cube, revision.bits) if file_ranges is None else revision.box(file_ranges)
    settled = tags.get(STRATEGY_TAG) == Strategy.PIECES.value
    return CurveFile(file, int(elements), cube, low, high, settled)


def max_rows_of(num_rows: int, num_files: int) -> int:
    """Return the rows from which a cube is halved, so that about ``num_files`` files come out.

    Halving leaves between half of this and all of it in a file, three quarters on average.
    """
    return max(1, -(-4 * num_rows // (3 * num_files))) if num_files > 1 else max(1, num_rows)


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
        (CUBE_TAG, cube_of(low, high, revision.bits)),
        (ELEMENTS_TAG, str(num_records)),
        (STRATEGY_TAG, strategy.value),
    )
