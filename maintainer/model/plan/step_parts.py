"""What steps are made of: requests for a rewrite, turns of incremental Z-order, lanes, and the tags of written files.

Delta keeps tags with each ``add`` action. Lanes say who reads and writes the rows of a bin; what follows is the same
in each of them. A plan says for each bin which lane it expects, and why. Footers of files are read only when the bin
is written. A bin that does not fit its lane then goes to the next one, before anything is committed, and the proof
says so.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from operator import add

from maintainer.model.closed_types import TextEnum
from maintainer.model.table.table_facts import PartitionValues
from maintainer.units import count_of

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


class Strategy(TextEnum):
    """How a turn chooses its files."""

    UNINDEXED = "unindexed"
    """Files that are not on the curve yet, oldest first."""
    LEVELED = "leveled"
    """Files of one cube and about one size, joined when they make a larger one."""
    PIECES = "pieces"
    """A piece of the curve, written anew where queries gain most for its bytes."""


@dataclass(frozen=True, slots=True)
class LayoutFigures:
    """How a table's files lie to queries on its Z-order columns, by the log alone (``layout_figures``).

    ``files_read`` and ``bytes_read`` are what an average sample query cannot skip. ``overlap_depth`` is the number of
    files over one point, 1 at best. ``unindexed_ratio`` is the share of bytes not in the newest revision, 0 to 1.
    """

    files_read: float
    bytes_read: int
    overlap_depth: float
    unindexed_ratio: float


@dataclass(frozen=True, slots=True)
class LayoutChange:
    """How a table's files lay to queries before a step and after it, measured by one scale."""

    before: LayoutFigures
    after: LayoutFigures


@dataclass(frozen=True, slots=True)
class Turn:
    """What one turn takes, and what is expected of it.

    ``before`` and ``after`` are the layout now and as it is expected; None where nobody worked it out.
    ``num_files`` is the number of files that each bin is to be written as, in the order of the bins. ``elements`` are
    rows, as far as the log knows. ``cube`` and ``level`` are None where the strategy has none. Where small groups of
    one level go together, a bin each, ``cube`` is that of the first, and no other is wider.
    """

    strategy: Strategy
    revision: str
    elements: int
    num_files: tuple[int, ...]
    level: int | None = None
    cube: str | None = None
    before: LayoutFigures | None = None
    after: LayoutFigures | None = None


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """What one turn did: the version it made, and the layout before and after it (None: nobody looked any more)."""

    turn: Turn
    version: int
    before: LayoutFigures
    after: LayoutFigures | None = None


@dataclass(frozen=True, slots=True)
class ZOrderSettings:
    """All that the loop needs to choose its next turn from fresh facts, and what bounds it.

    ``revision`` is the tag of the revision that unindexed files are written in, ``optimized`` that of the one whose
    files leveled compaction and pieces work on. ``partitions`` are the partitions that may be touched, None for all.
    ``request`` says that a person asked for it with properties of the table, which are removed afterwards.
    ``budget_bytes`` bounds all turns together, None: nothing does. Sizes are bytes, times milliseconds since 1970 UTC.
    """

    revision: str
    optimized: str
    strategies: tuple[Strategy, ...]
    batch_bytes: int
    bytes_per_iteration: int
    max_file_size_bytes: int
    max_deleted_rows_ratio: float
    from_timestamp_ms: int = 0
    partitions: tuple[PartitionValues, ...] | None = None
    max_turns: int = 1
    budget_bytes: int | None = None
    request: bool = False


MAX_FINDINGS_SAID = 2
"""Of what is wrong in the log, so much stands on a line; the record of the run has `MAX_SOURCE_FINDINGS`."""

MAX_SOURCE_FINDINGS = 20
"""Findings about rewritten files which are kept; the rest is counted."""

MAX_DELETED_ROWS = 1_000_000
"""Soft-deleted rows of a bin up to which lanes and proofs outside Spark handle their numbers one by one."""


class Lane(TextEnum):
    """Who writes the files of a bin."""

    COPY = "copy"
    """Row groups are copied as they are, without decoding a value."""
    LOCAL = "local"
    """Rows are read and written in one process, the driver's or an executor's, as they are in the files."""
    SPARK = "spark"
    """A Spark job reads and writes them."""


class Codec(TextEnum):
    """Codecs of data files, in the words of Spark's ``spark.sql.parquet.compression.codec``."""

    SNAPPY = "snappy"
    ZSTD = "zstd"
    GZIP = "gzip"
    UNCOMPRESSED = "uncompressed"


@dataclass(frozen=True, slots=True)
class LaneChoice:
    """A lane with the reason for it, in words; ``otherwise`` comes next if a footer shows that it does not fit."""

    lane: Lane
    reason: str
    otherwise: Lane = Lane.SPARK


BY_SPARK = LaneChoice(Lane.SPARK, "")
"""The lane of a bin for which nothing was chosen."""


@dataclass(frozen=True, slots=True)
class LaneUse:
    """Bins of a commit that were written in one lane, and by which library both sides were read to prove them.

    ``planned`` is the lane of the plan, and ``reason`` says why it was this one, or why it became another.
    """

    lane: Lane
    planned: Lane
    num_bins: int
    reason: str
    prover: str

    @property
    def note(self) -> str | None:
        """What is said of bins that went to another lane than planned; None for others."""
        if self.lane is self.planned:
            return None
        bins = "1 bin" if self.num_bins == 1 else f"{self.num_bins:,} bins"
        return f"{bins} went to lane {self.lane}: {self.reason}"


@dataclass(frozen=True, slots=True)
class SourceStatistics:
    """What was found of the statistics that the log has of rewritten files. Those of the new files come from the rows.

    ``num_computed`` counts columns, in each file. ``num_wrong`` says of how many things that the log says of a file its
    rows are not; the first of these are in ``wrong``, each a sentence with the file. ``num_files_not_judged`` have
    statistics that were not looked at.
    """

    num_computed: int = 0
    num_wrong: int = 0
    wrong: tuple[str, ...] = ()
    num_files_not_judged: int = 0

    @staticmethod
    def of(num_computed: int, wrong: Sequence[str], num_files_not_judged: int = 0) -> SourceStatistics:
        """Keep the first findings and count them all."""
        return SourceStatistics(num_computed, len(wrong), tuple(wrong[:MAX_SOURCE_FINDINGS]), num_files_not_judged)

    def __add__(self, other: SourceStatistics) -> SourceStatistics:
        both = SourceStatistics(*map(add, astuple(self), astuple(other)))
        return replace(both, wrong=both.wrong[:MAX_SOURCE_FINDINGS])

    @property
    def note(self) -> str | None:
        """What is said of it; None where the log was right."""
        if not self.num_wrong:
            return None
        more = self.num_wrong - MAX_FINDINGS_SAID
        listed = "; ".join([*self.wrong[:MAX_FINDINGS_SAID], *([f"and {more:,} more"] if more > 0 else [])])
        if self.num_files_not_judged:
            listed += f"; those of {count_of(self.num_files_not_judged, 'file')} were not looked at"
        return (
            f"the log's statistics of rewritten files were wrong in {count_of(self.num_wrong, 'place')}, so filters "
            f"may have missed rows; those of the new files were computed from the rows: {listed}"
        )


NOTHING_JUDGED = SourceStatistics()
