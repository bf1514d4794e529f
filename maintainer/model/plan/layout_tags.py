"""Name the tags of data files that say how a rewrite laid them out, and what `optimize.rewrite` asks of one.

Delta keeps tags with each ``add`` action.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass

PACKED_TAG = "maintainer.packed"
"""Tag of every file that a rewrite wrote: the step's ``max_file_size_bytes``. Such files are not packed again
among themselves, however small they came out, so that a second run with nothing new commits nothing."""


ZORDER_TAG = "maintainer.zorder"
"""Tag of every file that a Z-order wrote: its columns as a JSON list, in order of weight."""


REWRITE_TAG = "maintainer.rewrite"
"""Tag of every file that a rewrite of partitions wrote: the digest of what was asked for."""


CLUSTER_CUBE_TAG = "maintainer.cube"
"""Tag of every file that our clustering wrote: the least and the wanted size of a cube in bytes, ``least/wanted``.
Small cubes that carry the same one are not merged again among themselves."""


ZCUBE_ID_TAG = "ZCUBE_ID"


ZCUBE_COLUMNS_TAG = "ZCUBE_ZORDER_BY"
"""Delta's tags of a clustered file: which files were clustered together, and by which columns (a JSON list)."""


DROPPED_COLUMNS_TAG = "maintainer.dropped"
"""Tag of every file that we wrote to a table of which columns were dropped: a digest of those, so that a later plan
knows without opening the file that it holds none of them."""


REVISION_TAG = "maintainer.zorder.revision"
"""Tag of every file that an incremental Z-order wrote: the revision's number and a digest of its definition."""


CURVE_CUBE_TAG = "maintainer.zorder.cube"
"""The file's cube: the longest common prefix of the Z-addresses of its rows, as zeros and ones."""


ELEMENTS_TAG = "maintainer.zorder.elements"
"""The number of rows in the file."""


STRATEGY_TAG = "maintainer.zorder.strategy"
"""The strategy whose turn wrote the file."""


ROW_ORDER_TAGS = frozenset(
    {
        *(ZORDER_TAG, REWRITE_TAG, CLUSTER_CUBE_TAG, ZCUBE_ID_TAG, ZCUBE_COLUMNS_TAG),
        *(REVISION_TAG, CURVE_CUBE_TAG, ELEMENTS_TAG, STRATEGY_TAG),
    }
)
"""Tags that say in which order a file's rows are, or with which files it was ordered. A file with one of them is never
packed with others by a step that does not order rows, and keeps them when it is written anew in the same order."""


def has_row_order(tags: Iterable[tuple[str, str]]) -> bool:
    """Return whether the tags of a file say in which order its rows are."""
    return any(name in ROW_ORDER_TAGS for name, _ in tags)


LIQUID = "liquid"
"""What Delta writes as ``clusteringProvider`` of a file that liquid clustering wrote."""


def zorder_tag_value(columns: tuple[str, ...]) -> str:
    """Spell Z-order columns as the value of ``ZORDER_TAG``."""
    return json.dumps(list(columns), ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class RewriteRequest:
    """How the files of a partition shall be: exactly one of a number and a size (bytes), and an order or none."""

    num_files: int | None
    file_size_bytes: int | None
    sort_columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.num_files is None) == (self.file_size_bytes is None):
            raise ValueError("either a number of files or a size")

    @property
    def digest(self) -> str:
        """What files carry that were written so: 16 hex digits, the same for the same request in every run."""
        request = [self.num_files, self.file_size_bytes, list(self.sort_columns)]
        return hashlib.sha256(json.dumps(request, separators=(",", ":")).encode()).hexdigest()[:16]

    def num_files_of(self, size_bytes: int) -> int:
        """Return how many files a partition of so many bytes gives: the number, or the one nearest to the size."""
        if self.file_size_bytes is None:
            return self.num_files or 1
        return max(1, (size_bytes + self.file_size_bytes // 2) // self.file_size_bytes)
