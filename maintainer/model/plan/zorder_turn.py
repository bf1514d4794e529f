"""Incremental Z-order as data: strategies, tags of files, one turn of the loop, and the bounds of the loop."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from maintainer.model.table.table_facts import PartitionValues


class Strategy(StrEnum):
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
class ZOrderTurn:
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
    """What one turn did: the version it made, and the layout before and after it (None: nobody looked any more).

    ``planned`` is ``turn`` in documents.
    """

    planned: ZOrderTurn = field(metadata={"alias": "turn"})
    version: int
    before: LayoutFigures
    after: LayoutFigures | None = None


@dataclass(frozen=True, slots=True)
class ZOrderSettings:
    """All that the loop needs to choose its next turn from fresh facts, and what bounds it.

    ``revision`` is the tag of the revision that unindexed files are written in, ``optimized`` that of the one whose
    files leveled compaction and pieces work on. ``partitions`` are the partitions that may be touched, None for all.
    ``request`` says that a person asked for it with properties of the table, which are removed afterwards.
    ``budget_bytes`` and ``budget_files`` bound all turns together, None: nothing does. Sizes are bytes, times
    milliseconds since 1970 UTC.
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
    budget_files: int | None = None
