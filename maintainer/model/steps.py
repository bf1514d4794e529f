"""The steps that a plan is made of, and what rewrites among them consist of: bins and batches.

Words as in Delta: a *bin* is one Spark job that writes one output file (or, for Z-order, one partition), a
*batch* is one commit. Totals are properties: nothing is stored that can be counted.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from maintainer.model.reasons import Reason
from maintainer.model.table import DataFile, PartitionValues, RemovedFile
from maintainer.model.vacuum import Listing, TrashedRun
from maintainer.model.zorder import Turn, ZOrderSettings

PACKED_TAG = "maintainer.packed"
"""Tag of every file that a rewrite wrote: the step's ``max_file_size_bytes``. Such files are not packed again
among themselves, however small they came out, so that a second run with nothing new commits nothing."""

ZORDER_TAG = "maintainer.zorder"
"""Tag of every file that a Z-order wrote: its columns as a JSON list, in order of weight."""


@dataclass(frozen=True, slots=True)
class Bin:
    """Files of one partition that are rewritten by one job. Never empty, never two partitions."""

    files: tuple[DataFile, ...]

    def __post_init__(self) -> None:
        if not self.files:
            raise ValueError("a bin holds at least one file")
        if any(file.partition_values != self.files[0].partition_values for file in self.files):
            raise ValueError("a bin holds files of one partition")

    @property
    def partition_values(self) -> PartitionValues:
        """The partition all its files belong to."""
        return self.files[0].partition_values

    @property
    def size_bytes(self) -> int:
        """Bytes to read, as recorded in the log."""
        return sum(file.size_bytes for file in self.files)

    @property
    def live_records(self) -> int | None:
        """Rows to write, None where the log cannot say for each file."""
        counts = [file.live_records for file in self.files]
        return None if any(count is None for count in counts) else sum(c for c in counts if c is not None)


@dataclass(frozen=True, slots=True)
class Batch:
    """Bins that are committed together: what a failure or a conflict can cost."""

    bins: tuple[Bin, ...]

    def __post_init__(self) -> None:
        if not self.bins:
            raise ValueError("a batch holds at least one bin")

    @property
    def files(self) -> tuple[DataFile, ...]:
        """All files of all bins."""
        return tuple(file for one in self.bins for file in one.files)

    @property
    def size_bytes(self) -> int:
        """Bytes to read."""
        return sum(one.size_bytes for one in self.bins)


@dataclass(frozen=True, slots=True)
class SetPropertiesStep:
    """Make table properties what the policy says. ``before`` has None for a property that was not set.

    ``unset`` are keys to be removed: only those by which a person asked for something that is done now.
    """

    before: tuple[tuple[str, str | None], ...]
    after: tuple[tuple[str, str], ...]
    reasons: tuple[Reason, ...]
    unset: tuple[str, ...] = ()
    kind: str = field(default="set_properties", init=False)


@dataclass(frozen=True, slots=True)
class CompactStep:
    """Write the files of each bin as one file.

    ``auto`` is for the history: the step was decided right after a write, by the writers' hook.
    """

    batches: tuple[Batch, ...]
    max_file_size_bytes: int
    max_threads: int
    reasons: tuple[Reason, ...]
    auto: bool = False
    kind: str = field(default="compact", init=False)

    @property
    def num_files_added(self) -> int:
        """Files the step is expected to write: one a bin."""
        return sum(len(batch.bins) for batch in self.batches)

    @property
    def file_tags(self) -> tuple[tuple[str, str], ...]:
        """Tags that every file written by the step must carry."""
        return ((PACKED_TAG, str(self.max_file_size_bytes)),)


@dataclass(frozen=True, slots=True)
class ZOrderStep:
    """Write the files of each bin (one partition) in Z-order, as files of about ``max_file_size_bytes``.

    With ``turn`` and ``settings`` it is incremental: the batch is the first turn's, and others follow it, planned from
    the table as it is then. Without, each bin is a whole partition.
    """

    batches: tuple[Batch, ...]
    columns: tuple[str, ...]
    max_file_size_bytes: int
    max_threads: int
    reasons: tuple[Reason, ...]
    turn: Turn | None = None
    settings: ZOrderSettings | None = None
    kind: str = field(default="zorder", init=False)

    @property
    def num_files_added(self) -> int:
        """Files the step is expected to write: max(1, floor(bytes / max)) a bin, as OPTIMIZE does; or the turn's."""
        if self.turn is not None:
            return sum(self.turn.num_files)
        return sum(max(1, one.size_bytes // self.max_file_size_bytes) for batch in self.batches for one in batch.bins)

    @property
    def file_tags(self) -> tuple[tuple[str, str], ...]:
        """Tags that every file written by the step must carry: how a later plan sees that it is in order."""
        return ((PACKED_TAG, str(self.max_file_size_bytes)), (ZORDER_TAG, zorder_tag_value(self.columns)))


def zorder_tag_value(columns: tuple[str, ...]) -> str:
    """Spell Z-order columns as the value of ``ZORDER_TAG``."""
    return json.dumps(list(columns), ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class VacuumStep:
    """Delete files that the log removed before ``removed_before_ms`` and that nothing protects.

    Untracked files, which the log never knew, are older than ``untracked_before_ms``. With ``trash_seconds`` above 0
    files are not deleted but moved out of the table, and kept there so long. ``emptied`` are earlier runs' files in
    the trash that are past their time. ``listing`` is what looking for untracked files cost.
    """

    files: tuple[RemovedFile, ...]
    removed_before_ms: int
    retention_seconds: int
    decided_by: str
    reasons: tuple[Reason, ...]
    untracked_before_ms: int | None = None
    trash_seconds: int = 0
    emptied: tuple[TrashedRun, ...] = ()
    listing: Listing | None = None
    kind: str = field(default="vacuum", init=False)

    @property
    def size_bytes(self) -> int:
        """Bytes that deletion frees, trash left out."""
        return sum(file.size_bytes for file in self.files)

    @property
    def by_kind(self) -> tuple[tuple[str, int, int], ...]:
        """For each kind of file: its name, how many, and how many bytes; in the order in which they first come."""
        found: dict[str, list[int]] = {}
        for file in self.files:
            sums = found.setdefault(file.kind, [0, 0])
            sums[0] += 1
            sums[1] += file.size_bytes
        return tuple((kind, count, size) for kind, (count, size) in found.items())

    @property
    def oldest_ms(self) -> int | None:
        """When the file that has waited longest was removed (an untracked one: last changed); None without files."""
        return min((file.removed_at_ms for file in self.files), default=None)

    @property
    def youngest_ms(self) -> int | None:
        """The same of the file that has waited shortest."""
        return max((file.removed_at_ms for file in self.files), default=None)


RewriteStep = CompactStep | ZOrderStep
Step = SetPropertiesStep | CompactStep | ZOrderStep | VacuumStep
"""Closed: every walker matches over it and ends in ``assert_never``."""
