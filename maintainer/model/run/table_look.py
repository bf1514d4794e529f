"""What a rewrite made of a table's files: how they lay before the step and after it. Frozen values, bounded in size.

Both looks are read from the table's log while the step runs, never taken from the plan. They serve reports.
"""

from __future__ import annotations

from dataclasses import dataclass

from maintainer.model.table.storage_facts import FileSizes

Box = tuple[int, int, int, int]
"""A file as lowest and highest place in the first column, then in the second; each from 0 to `BOX_PLACES`."""

BOX_PLACES = 1000
MAX_BOXES = 300
"""Files whose boxes are kept for each look: every n-th of a larger table."""


@dataclass(frozen=True, slots=True)
class TableLook:
    """The live files of a table at a version.

    ``lookups`` are, for each column of the step's order, the files that a look-up of one value reads on average by the
    smallest and largest values in the log (``lookup_cost`` says how that is estimated); empty where the step has no
    order, or the log was not asked. ``boxes`` are files in the first two of these columns.
    """

    version: int
    at_ms: int
    num_files: int
    size_bytes: int
    file_sizes: FileSizes = ()
    lookups: tuple[float, ...] = ()
    boxes: tuple[Box, ...] = ()

    @property
    def files_read(self) -> float:
        """Files that a typical query reads: a look-up on a column of the order, or else all of them."""
        return sum(self.lookups) / len(self.lookups) if self.lookups else float(self.num_files)


@dataclass(frozen=True, slots=True)
class StepLook:
    """A table as a rewrite met it and as it left it. ``columns`` are those that rows were put in order by."""

    before: TableLook
    after: TableLook
    columns: tuple[str, ...] = ()
