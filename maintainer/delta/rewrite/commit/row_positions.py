"""Say where rows of files that were read lie in the files that a lane wrote. Pure.

A lane reads the files of a bin one after the other, without their soft-deleted rows. It writes the rows as they come,
or in an order that it keeps. So a row's place in its old file says its place in the new one, and nothing is searched.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


class CannotCarryError(Exception):
    """Deletes of others cannot be carried over, so the rewrite yields to them. The text says why."""


@dataclass(frozen=True, slots=True)
class RowsRead:
    """The rows of one file as a lane read them: their number, and which of them were soft-deleted, ascending."""

    num_rows: int
    deleted_rows: Sequence[int] = ()

    @property
    def live_rows(self) -> int:
        """Rows that the lane wrote."""
        return self.num_rows - len(self.deleted_rows)

    def since_then(self, deleted_rows: Sequence[int] | None) -> list[int]:
        """Return the places, among the rows that were written, of rows that have been deleted since.

        Args:
            deleted_rows: The soft-deleted rows now, ascending; None where the file is no longer live at all.

        Raises:
            CannotCarryError: Rows that were deleted are back, or a row is deleted that the file does not have.
        """
        if deleted_rows is None:
            return list(range(self.live_rows))
        before = set(self.deleted_rows)
        if not before.issubset(deleted_rows):
            raise CannotCarryError("rows that were deleted are back")
        if deleted_rows and deleted_rows[-1] >= self.num_rows:
            raise CannotCarryError("a deletion vector names rows that its file does not have")
        return [row - bisect.bisect_left(self.deleted_rows, row) for row in deleted_rows if row not in before]


def places_in_bin(
    files: Iterable[tuple[RowsRead, Sequence[int] | None]],
) -> tuple[list[int], int]:
    """Return the places of deleted rows among all rows of a bin that were written, and how many were written.

    Args:
        files: The bin's files in the order in which they were read, each with its soft-deleted rows now.

    Raises:
        CannotCarryError: As ``RowsRead.since_then``.
    """
    places: list[int] = []
    first = 0
    for read, deleted_rows in files:
        places += [first + place for place in read.since_then(deleted_rows)]
        first += read.live_rows
    return places, first


def places_in_files(places: Sequence[int], row_order: Sequence[np.ndarray] | None) -> list[list[int]]:
    """Return the places of rows of a bin within each of its new files, ascending.

    Args:
        places: The rows' places among all rows of the bin, as they were read.
        row_order: For each new file the places of its rows; None for one file with all rows as they were read.
    """
    if row_order is None:
        return [list(places)]
    import numpy as np

    wanted = np.array(places, dtype=np.int64)
    return [np.flatnonzero(np.isin(order, wanted)).tolist() for order in row_order]
