"""What a turn writes: where the curve is cut, and the tags of the files that come out of it."""

from __future__ import annotations

from collections.abc import Sequence

from maintainer.model.table import FileRange
from maintainer.model.zorder import CUBE_TAG, ELEMENTS_TAG, REVISION_TAG, STRATEGY_TAG, Strategy
from maintainer.planning.curve import cube_of
from maintainer.planning.revision import Revision


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
