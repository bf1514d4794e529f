"""The lanes of a rewrite: who reads and writes the rows of a bin. What follows is the same in each of them.

A plan says for each bin which lane it expects, and why. Footers of files are read only when the bin is written. A bin
that does not fit its lane then goes to the next one, before anything is committed, and the proof says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from enum import StrEnum
from operator import add

from maintainer.units import count_of

MAX_FINDINGS_SAID = 2
"""Of what is wrong in the log, so much stands on a line; the record of the run has `MAX_SOURCE_FINDINGS`."""


MAX_SOURCE_FINDINGS = 20
"""Findings about rewritten files which are kept; the rest is counted."""


MAX_DELETED_ROWS = 1_000_000
"""Soft-deleted rows of a bin up to which lanes and proofs outside Spark handle their numbers one by one."""


class Lane(StrEnum):
    """Who writes the files of a bin."""

    COPY = "copy"
    """Row groups are copied as they are, without decoding a value."""
    LOCAL = "local"
    """Rows are read and written in one process, the driver's or an executor's, as they are in the files."""
    SPARK = "spark"
    """A Spark job reads and writes them."""


class Codec(StrEnum):
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
        return f"{count_of(self.num_bins, 'bin')} went to lane {self.lane}: {self.reason}"


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
