"""What a table's files were when a run met it, or left it. Frozen values, no I/O.

A run reads a table before it commits, and each commit says what it removed and added. Both are written down, so that a
report shows a table as it really was and reads nothing again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from maintainer.model.table.storage_facts import FileSizes, combined, file_sizes
from maintainer.model.table.table_facts import TableFacts

MAX_BOXES = 120
"""Files of a table whose boxes are kept for a picture; of more, every n-th."""


@dataclass(frozen=True, slots=True)
class FilesSeen:
    """The live files of a table at one version, counted by size. ``at_ms`` is when it was read, or left."""

    at_ms: int
    version: int
    sizes: FileSizes

    @staticmethod
    def of(facts: TableFacts, at_ms: int) -> FilesSeen:
        """Count the files of a table that was just read."""
        return FilesSeen(at_ms, facts.version, file_sizes(file.size_bytes for file in facts.files))

    @property
    def num_files(self) -> int:
        """All live files."""
        return sum(bucket.num_files for bucket in self.sizes)

    @property
    def size_bytes(self) -> int:
        """Bytes of all live files."""
        return sum(bucket.size_bytes for bucket in self.sizes)

    def changed(
        self, removed: Iterable[FileSizes], added: Iterable[FileSizes], *, version: int, at_ms: int
    ) -> FilesSeen:
        """Return the table with files removed and added, as it was at another version and time."""
        return FilesSeen(at_ms, version, combined(self.sizes, removed, added))


FileBox = tuple[int, int, int, int]
"""Lowest and highest rank of a file in the first column, then in the second; both inclusive."""


@dataclass(frozen=True, slots=True)
class LayoutBoxes:
    """Where the files of a table with a Z-order lie in its first two columns, before a step and after it.

    A box says between which values a file's rows lie: the less boxes overlap, the fewer files a query reads. Ranks are
    steps of about as many rows each, those of the layout's revision or of a scale for one full Z-order; ``num_ranks``
    is how many a column has.

    ``num_before`` and ``num_after`` count all files, of which at most `MAX_BOXES` are kept. ``after`` is None where
    nobody looked any more.
    """

    columns: tuple[str, str]
    num_ranks: tuple[int, int]
    before: tuple[FileBox, ...]
    num_before: int
    after: tuple[FileBox, ...] | None = None
    num_after: int = 0
