"""The lanes of a rewrite: who reads and writes the rows of a bin. What follows is the same in each of them.

A plan says for each bin which lane it expects, and why. Footers of files are read only when the bin is written. A bin
that does not fit its lane then goes to the next one, before anything is committed, and the proof says so.
"""

from __future__ import annotations

from dataclasses import dataclass

from maintainer.model.closed_types import TextEnum

MAX_DELETED_ROWS = 1_000_000
"""Soft-deleted rows of a bin up to which lanes and proofs outside Spark handle their numbers one by one."""


class Lane(TextEnum):
    """Who writes the files of a bin."""

    COPY = "copy"
    """Row groups are copied as they are, without decoding a value."""
    LOCAL = "local"
    """Rows are read and written in the driver's process, without a Spark job."""
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
