"""The steps that a plan is made of, and what rewrites among them consist of: bins and batches.

Words as in Delta: a *bin* is one Spark job that writes one output file (or, for Z-order, one partition), a
*batch* is one commit. Totals are properties: nothing is stored that can be counted.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field

from maintainer.model.plan.reasons import Reason
from maintainer.model.plan.zorder_turn import CUBE_TAG as REVISION_CUBE_TAG
from maintainer.model.plan.zorder_turn import ELEMENTS_TAG, REVISION_TAG, STRATEGY_TAG, Turn, ZOrderSettings
from maintainer.model.table.storage_facts import Listing, TrashedRun
from maintainer.model.table.table_facts import DataFile, PartitionValues, RemovedFile

PACKED_TAG = "maintainer.packed"
"""Tag of every file that a rewrite wrote: the step's ``max_file_size_bytes``. Such files are not packed again
among themselves, however small they came out, so that a second run with nothing new commits nothing."""

ZORDER_TAG = "maintainer.zorder"
"""Tag of every file that a Z-order wrote: its columns as a JSON list, in order of weight."""


REWRITE_TAG = "maintainer.rewrite"
"""Tag of every file that a rewrite of partitions wrote: the digest of what was asked for."""

CUBE_TAG = "maintainer.cube"
"""Tag of every file that our clustering wrote: the least and the wanted size of a cube in bytes, ``least/wanted``.
Small cubes that carry the same one are not merged again among themselves."""

ZCUBE_ID_TAG = "ZCUBE_ID"
ZCUBE_COLUMNS_TAG = "ZCUBE_ZORDER_BY"
"""Delta's tags of a clustered file: which files were clustered together, and by which columns (a JSON list)."""

DROPPED_COLUMNS_TAG = "maintainer.dropped"
"""Tag of every file that we wrote to a table of which columns were dropped: a digest of those, so that a later plan
knows without opening the file that it holds none of them."""

ROW_ORDER_TAGS = frozenset(
    {
        *(ZORDER_TAG, REWRITE_TAG, CUBE_TAG, ZCUBE_ID_TAG, ZCUBE_COLUMNS_TAG),
        *(REVISION_TAG, REVISION_CUBE_TAG, ELEMENTS_TAG, STRATEGY_TAG),
    }
)
"""Tags that say in which order a file's rows are, or with which files it was ordered. A file with one of them is never
packed with others by a step that does not order rows, and keeps them when it is written anew in the same order."""

LIQUID = "liquid"
"""What Delta writes as ``clusteringProvider`` of a file that liquid clustering wrote."""


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


class OneFileABin:
    """What steps have in common that write each bin as one file."""

    __slots__ = ()
    batches: tuple[Batch, ...]
    max_file_size_bytes: int

    @property
    def num_files_added(self) -> int:
        """Files the step is expected to write: one a bin."""
        return sum(len(batch.bins) for batch in self.batches)

    @property
    def file_tags(self) -> tuple[tuple[str, str], ...]:
        """Tags that every file written by the step must carry, beside those it keeps."""
        return ((PACKED_TAG, str(self.max_file_size_bytes)),)


@dataclass(frozen=True, slots=True)
class CompactStep(OneFileABin):
    """Write the files of each bin as one file.

    ``auto`` is for the history: the step was decided right after a write, by the writers' hook.

    ``repartition`` says how: with a shuffle, so that many tasks read the bin and one writes it (good for bins of
    thousands of tiny files), or, by default, with one task that reads and writes.
    """

    batches: tuple[Batch, ...]
    max_file_size_bytes: int
    max_threads: int
    reasons: tuple[Reason, ...]
    auto: bool = False
    repartition: bool = False
    kind: str = field(default="compact", init=False)


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
        """Tags that every file written by the step must carry: how a later plan sees that it is in order.

        A turn's files carry its own tags instead (``model.zorder``): only together with others are they in order.
        """
        if self.turn is not None:
            return ((PACKED_TAG, str(self.max_file_size_bytes)),)
        return ((PACKED_TAG, str(self.max_file_size_bytes)), (ZORDER_TAG, zorder_tag_value(self.columns)))


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
        asked = [self.num_files, self.file_size_bytes, list(self.sort_columns)]
        return hashlib.sha256(json.dumps(asked, separators=(",", ":")).encode()).hexdigest()[:16]

    def num_files_of(self, size_bytes: int) -> int:
        """Files that a partition of so many bytes gives: the number, or as many as come nearest to the size."""
        if self.file_size_bytes is None:
            return self.num_files or 1
        return max(1, (size_bytes + self.file_size_bytes // 2) // self.file_size_bytes)


@dataclass(frozen=True, slots=True)
class PartitionRewriteStep:
    """Write the files of each bin (one partition) as the request asks: so many files, or of such a size, sorted.

    With sort columns, the files of a partition are ranges of the order and do not overlap but at equal values, and
    the rows within a file are in order, too.
    """

    batches: tuple[Batch, ...]
    request: RewriteRequest
    max_threads: int
    reasons: tuple[Reason, ...]
    kind: str = field(default="rewrite", init=False)

    @property
    def num_files_added(self) -> int:
        """Files the step is expected to write; fewer where a partition has fewer rows, or rows equal in the order."""
        return sum(self.request.num_files_of(one.size_bytes) for batch in self.batches for one in batch.bins)

    @property
    def file_tags(self) -> tuple[tuple[str, str], ...]:
        """Tags that every file written by the step must carry: how a later plan sees that it is as asked."""
        return ((REWRITE_TAG, self.request.digest),)


@dataclass(frozen=True, slots=True)
class ClusterStep:
    """Write the files of each bin along the curve of the table's clustering columns: each bin becomes a cube.

    ``full`` is whether files clustered by other columns are taken as well, as ``OPTIMIZE FULL`` does.
    """

    batches: tuple[Batch, ...]
    columns: tuple[str, ...]
    min_cube_size_bytes: int
    target_cube_size_bytes: int
    max_file_size_bytes: int
    max_threads: int
    full: bool
    reasons: tuple[Reason, ...]
    kind: str = field(default="cluster", init=False)

    @property
    def num_files_added(self) -> int:
        """Files the step is expected to write: max(1, floor(bytes / max)) a bin, as OPTIMIZE does."""
        return sum(max(1, one.size_bytes // self.max_file_size_bytes) for batch in self.batches for one in batch.bins)

    @property
    def file_tags(self) -> tuple[tuple[str, str], ...]:
        """Tags that every file written by the step must carry; the id of its cube is made when it is written."""
        sizes = f"{self.min_cube_size_bytes}/{self.target_cube_size_bytes}"
        return ((CUBE_TAG, sizes), (ZCUBE_COLUMNS_TAG, zorder_tag_value(self.columns)))


@dataclass(frozen=True, slots=True)
class PurgeStep(OneFileABin):
    """Write the files of each bin as one file, without soft-deleted rows and dropped columns; also files alone.

    A file that is alone in its bin keeps the tags that say in which order it is: it has fewer rows, in the same order.
    """

    batches: tuple[Batch, ...]
    max_file_size_bytes: int
    max_threads: int
    reasons: tuple[Reason, ...]
    kind: str = field(default="purge", init=False)

    def kept_tags(self, one: Bin) -> tuple[tuple[str, str], ...]:
        """Tags that the file of a bin keeps: those of a lone file that say how it is ordered, none of several.

        The tag that counts its rows counts those that are left.
        """
        if len(one.files) != 1:
            return ()
        file, new = one.files[0], {name for name, _ in self.file_tags}
        kept = {name: value for name, value in file.tags if name in ROW_ORDER_TAGS and name not in new}
        if ELEMENTS_TAG in kept and file.live_records is not None:
            kept[ELEMENTS_TAG] = str(file.live_records)
        return tuple(kept.items())


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


RewriteStep = CompactStep | ZOrderStep | PartitionRewriteStep | ClusterStep | PurgeStep
"""Steps that replace files by files with the same rows, in batches of one commit each."""

Step = SetPropertiesStep | RewriteStep | VacuumStep
"""Closed: every walker matches over it and ends in ``assert_never``."""
