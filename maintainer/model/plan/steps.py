"""The steps of a plan, with the bins and batches of those that rewrite.

Words as in Delta: a *bin* is one Spark job that writes one output file (or, for Z-order, one partition), a
*batch* is one commit. Totals are properties: nothing is stored that can be counted.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import ClassVar, Literal, get_args

from maintainer.model.codec import once
from maintainer.model.plan.lanes import BY_SPARK, Codec, LaneChoice
from maintainer.model.plan.layout_tags import (
    CLUSTER_CUBE_TAG,
    ELEMENTS_TAG,
    PACKED_TAG,
    REWRITE_TAG,
    ROW_ORDER_TAGS,
    ZCUBE_COLUMNS_TAG,
    ZORDER_TAG,
    RewriteRequest,
    zorder_tag_value,
)
from maintainer.model.plan.reasons import Reason
from maintainer.model.plan.zorder_turn import ZOrderSettings, ZOrderTurn
from maintainer.model.table.storage_facts import AfterDeletion, Listing, TrashedRun
from maintainer.model.table.table_facts import DataFile, PartitionValues, RemovedFile
from maintainer.units import count_of, format_size, named


class StepKind(StrEnum):
    """What a step does; the word stands in plans, commits, records and the ledger."""

    SET_PROPERTIES = "set_properties"
    COMPACT = "compact"
    ZORDER = "zorder"
    REWRITE = "rewrite"
    CLUSTER = "cluster"
    PURGE = "purge"
    VACUUM = "vacuum"


@dataclass(frozen=True, slots=True)
class Bin:
    """Files of one partition that are rewritten together, in one lane.

    Never empty, and the log spells the partition of all its files in one way: two texts may be two values to a reader.
    """

    files: tuple[DataFile, ...]
    lane: LaneChoice = BY_SPARK

    def __post_init__(self) -> None:
        if not self.files:
            raise ValueError("a bin holds at least one file")
        if any(file.partition_texts != self.files[0].partition_texts for file in self.files):
            raise ValueError("a bin holds files of one partition, spelled in one way")
        if self.files[0].lost_columns:
            raise ValueError("a bin holds files of which the log knows the partition")
        object.__setattr__(self, "lane", once(self.lane))

    @property
    def partition_values(self) -> PartitionValues:
        """The partition all its files belong to."""
        return self.files[0].partition_values

    @property
    def partition_texts(self) -> PartitionValues:
        """The partition as the log spells it for all its files, and will for those that are written."""
        return self.files[0].partition_texts

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
        return tuple(file for bin_ in self.bins for file in bin_.files)

    @property
    def size_bytes(self) -> int:
        return sum(bin_.size_bytes for bin_ in self.bins)


@dataclass(frozen=True, slots=True, repr=False)
class SetPropertiesStep:
    """Make table properties what the policy says. ``before`` has None for a property that was not set.

    ``unset`` are keys to be removed: only those by which a person asked for something that is done now.
    """

    before: tuple[tuple[str, str | None], ...]
    after: tuple[tuple[str, str], ...]
    reasons: tuple[Reason, ...]
    unset: tuple[str, ...] = ()
    kind: Literal[StepKind.SET_PROPERTIES] = StepKind.SET_PROPERTIES

    def __repr__(self) -> str:
        return f"<SetPropertiesStep: {named([*dict(self.after), *self.unset], 5)}>"


@dataclass(frozen=True, slots=True, repr=False)
class BatchedStep(abc.ABC):
    """A step that replaces files by files with the same rows, in batches of one commit each.

    ``codec`` is how new files are compressed; None leaves it to the session.
    """

    batches: tuple[Batch, ...]
    codec: Codec | None = field(default=None, kw_only=True)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {count_of(self.num_files, 'file')}, {format_size(self.size_bytes)}>"

    @property
    def bins(self) -> tuple[Bin, ...]:
        return tuple(bin_ for batch in self.batches for bin_ in batch.bins)

    @property
    def files(self) -> tuple[DataFile, ...]:
        """All files that are read and replaced."""
        return tuple(file for batch in self.batches for file in batch.files)

    @property
    def num_files(self) -> int:
        """How many files are read and replaced."""
        return sum(len(bin_.files) for batch in self.batches for bin_ in batch.bins)

    @property
    def size_bytes(self) -> int:
        return sum(batch.size_bytes for batch in self.batches)

    @property
    def num_files_added(self) -> int:
        """How many files the step is expected to write."""
        return sum(self.num_files_of(bin_) for bin_ in self.bins)

    @abc.abstractmethod
    def num_files_of(self, bin_: Bin) -> int:
        """Return how many files a bin is written as."""

    @property
    @abc.abstractmethod
    def file_tags(self) -> tuple[tuple[str, str], ...]:
        """Tags of every file that the step writes, besides those of single bins: how a later plan knows it."""

    @property
    @abc.abstractmethod
    def order_columns(self) -> tuple[str, ...]:
        """In whose order rows are put; none where they stay as they come."""

    on_curve: ClassVar[bool] = False
    """Whether rows are spread along a curve of Delta's over ``order_columns``; else they are sorted by them."""

    done_when: ClassVar[str] = "the files are as this step writes them"
    """What the table is like once the step has nothing to do."""


@dataclass(frozen=True, slots=True, repr=False)
class OneFileABin(BatchedStep):
    """A step that writes each bin as one file."""

    max_file_size_bytes: int

    def num_files_of(self, bin_: Bin) -> int:
        """One file a bin."""
        return 1

    @property
    def order_columns(self) -> tuple[str, ...]:
        """None: rows stay as they come."""
        return ()

    @property
    def file_tags(self) -> tuple[tuple[str, str], ...]:
        """The size up to which the file was packed."""
        return ((PACKED_TAG, str(self.max_file_size_bytes)),)


@dataclass(frozen=True, slots=True, repr=False)
class CompactStep(OneFileABin):
    """Write the files of each bin as one file.

    ``auto`` is for the history: the step was decided right after a write, by the writers' hook.

    ``repartition`` says how: with a shuffle, so that many tasks read the bin and one writes it (good for bins of
    thousands of tiny files), or, by default, with one task that reads and writes.
    """

    max_threads: int
    reasons: tuple[Reason, ...]
    auto: bool = False
    repartition: bool = False
    kind: Literal[StepKind.COMPACT] = StepKind.COMPACT


@dataclass(frozen=True, slots=True, repr=False)
class CurveStep(BatchedStep):
    """A step that spreads the rows of each bin along a curve of Delta's over some columns."""

    columns: tuple[str, ...]
    max_file_size_bytes: int
    on_curve: ClassVar[bool] = True

    def num_files_of(self, bin_: Bin) -> int:
        """As OPTIMIZE cuts a bin along a curve."""
        return max(1, bin_.size_bytes // self.max_file_size_bytes)

    @property
    def order_columns(self) -> tuple[str, ...]:
        return self.columns


@dataclass(frozen=True, slots=True, repr=False)
class ZOrderStep(CurveStep):
    """Write the files of each bin (one partition) in Z-order, as files of about ``max_file_size_bytes``.

    With ``planned_turn`` (``turn`` in documents) and ``settings`` it is incremental: the batch is the first turn's, and
    others follow it, planned from the table as it is then. Without, each bin is a whole partition.
    """

    max_threads: int
    reasons: tuple[Reason, ...]
    planned_turn: ZOrderTurn | None = field(default=None, metadata={"alias": "turn"})
    settings: ZOrderSettings | None = None
    kind: Literal[StepKind.ZORDER] = StepKind.ZORDER

    @property
    def num_files_added(self) -> int:
        """As many as OPTIMIZE would write, or those of the turn."""
        return sum(map(self.num_files_of, self.bins) if self.planned_turn is None else self.planned_turn.num_files)

    @property
    def file_tags(self) -> tuple[tuple[str, str], ...]:
        """The columns of the order. Files of a turn have tags of their own: only together are they in order."""
        packed = (PACKED_TAG, str(self.max_file_size_bytes))
        return (packed,) if self.planned_turn is not None else (packed, (ZORDER_TAG, zorder_tag_value(self.columns)))


@dataclass(frozen=True, slots=True, repr=False)
class PartitionRewriteStep(BatchedStep):
    """Write the files of each bin (one partition) as the request asks: so many files, or of such a size, sorted.

    With sort columns, the files of a partition are ranges of the order and do not overlap but at equal values, and
    the rows within a file are in order, too.
    """

    request: RewriteRequest
    max_threads: int
    reasons: tuple[Reason, ...]
    kind: Literal[StepKind.REWRITE] = StepKind.REWRITE
    done_when: ClassVar[str] = "a rewrite of ours wrote the files as optimize.rewrite asks, or without that key"

    def num_files_of(self, bin_: Bin) -> int:
        """As many as were asked for; fewer are written where a partition has fewer rows, or rows equal in the order."""
        return self.request.num_files_of(bin_.size_bytes)

    @property
    def order_columns(self) -> tuple[str, ...]:
        """The columns to sort by."""
        return self.request.sort_columns

    @property
    def file_tags(self) -> tuple[tuple[str, str], ...]:
        """The digest of the request."""
        return ((REWRITE_TAG, self.request.digest),)


@dataclass(frozen=True, slots=True, repr=False)
class ClusterStep(CurveStep):
    """Write the files of each bin along the curve of the table's clustering columns: each bin becomes a cube.

    ``full`` is whether files clustered by other columns are taken as well, as ``OPTIMIZE FULL`` does.
    """

    min_cube_size_bytes: int
    target_cube_size_bytes: int
    max_threads: int
    full: bool
    reasons: tuple[Reason, ...]
    kind: Literal[StepKind.CLUSTER] = StepKind.CLUSTER

    @property
    def file_tags(self) -> tuple[tuple[str, str], ...]:
        """Sizes and columns of the cube; its id is made when it is written."""
        sizes = f"{self.min_cube_size_bytes}/{self.target_cube_size_bytes}"
        return ((CLUSTER_CUBE_TAG, sizes), (ZCUBE_COLUMNS_TAG, zorder_tag_value(self.columns)))


@dataclass(frozen=True, slots=True, repr=False)
class PurgeStep(OneFileABin):
    """Write the files of each bin as one file, without soft-deleted rows and dropped columns; also files alone.

    A file that is alone in its bin keeps the tags that say in which order it is: it has fewer rows, in the same order.
    """

    max_threads: int
    reasons: tuple[Reason, ...]
    kind: Literal[StepKind.PURGE] = StepKind.PURGE
    done_when: ClassVar[str] = "the files hold no deleted rows or dropped columns, or without optimize.purge"

    def row_order_tags(self, bin_: Bin) -> tuple[tuple[str, str], ...]:
        """Return the tags that the file of a bin keeps: a lone file's tags of its order, none of several.

        The tag that counts its rows counts those that are left.
        """
        if len(bin_.files) != 1:
            return ()
        file, new = bin_.files[0], {name for name, _ in self.file_tags}
        tags = {name: value for name, value in file.tags if name in ROW_ORDER_TAGS and name not in new}
        if ELEMENTS_TAG in tags and file.live_records is not None:
            tags[ELEMENTS_TAG] = str(file.live_records)
        return tuple(tags.items())


@dataclass(frozen=True, slots=True, repr=False)
class VacuumStep:
    """Delete files that the log removed before ``removed_before_ms`` and that nothing protects.

    Untracked files, which the log does not mention, are older than ``untracked_before_ms``. With ``trash_seconds``
    above 0 files are not deleted but moved out of the table, and kept there so long. ``emptied`` are earlier runs'
    files in the trash that are past their time. ``listing`` is what looking for untracked files cost. ``after`` is what
    an object store does with what is deleted.
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
    after: AfterDeletion | None = None
    kind: Literal[StepKind.VACUUM] = StepKind.VACUUM

    def __repr__(self) -> str:
        return f"<VacuumStep: {count_of(len(self.files), 'file')}, {format_size(self.size_bytes)}>"

    @property
    def size_bytes(self) -> int:
        """Bytes that deletion frees, trash left out."""
        return sum(file.size_bytes for file in self.files)

    @property
    def done_to_files(self) -> str:
        return "moved to the trash" if self.trash_seconds else "deleted"

    @property
    def by_kind(self) -> tuple[tuple[str, int, int], ...]:
        """For each kind of file: its name, how many, and how many bytes; in the order in which they first come."""
        sums: dict[str, tuple[int, int]] = {}
        for file in self.files:
            count, size_bytes = sums.get(file.kind, (0, 0))
            sums[file.kind] = count + 1, size_bytes + file.size_bytes
        return tuple((kind, count, size_bytes) for kind, (count, size_bytes) in sums.items())

    @property
    def oldest_ms(self) -> int | None:
        """When the file that has waited longest was removed (an untracked one: last changed); None without files."""
        return min((file.removed_at_ms for file in self.files), default=None)

    @property
    def youngest_ms(self) -> int | None:
        """The same of the file that has waited shortest."""
        return max((file.removed_at_ms for file in self.files), default=None)


RewriteStep = CompactStep | ZOrderStep | PartitionRewriteStep | ClusterStep | PurgeStep
"""The closed union of batched steps."""

REWRITE_KINDS: frozenset[StepKind] = frozenset(
    StepKind(str(kind.default)) for step in get_args(RewriteStep) for kind in fields(step) if kind.name == "kind"
)
"""The kinds of steps that replace files by files with the same rows; each sets the time from which ``every`` counts."""

Step = SetPropertiesStep | RewriteStep | VacuumStep  # closed: every walker matches over it, to ``assert_never``
