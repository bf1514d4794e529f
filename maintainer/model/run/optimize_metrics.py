"""The metrics of a rewrite step, with the figures and names that Delta's OPTIMIZE returns.

The names and meanings are those of ``OptimizeMetrics`` in delta-spark 4.4.0; documents spell them as Delta does
(``numFilesAdded``). Two things differ: ``endTimeMs`` is the real end (Delta leaves it 0), and the files skipped to
reduce write amplification are counted (Delta leaves them 0). ``totalScheduledTasks`` and
``autoCompactParallelismStats`` are left out, because open-source Delta never fills them. Redundant figures are kept:
this is a record of what was measured, not a state to compute with.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from maintainer.model.codec import DELTA_NAMES


@dataclass(frozen=True, slots=True)
class FileSizeMetrics:
    """Sizes of files in bytes, as recorded in the log. ``min`` and ``max`` are None where there is no file."""

    __pydantic_config__: ClassVar = DELTA_NAMES

    min: int | None = None
    max: int | None = None
    avg: float = 0.0
    total_files: int = 0
    total_size: int = 0

    @staticmethod
    def of(sizes_bytes: Iterable[int]) -> FileSizeMetrics:
        """Sum up files by their sizes."""
        sizes = tuple(sizes_bytes)
        if not sizes:
            return NO_FILES
        return FileSizeMetrics(min(sizes), max(sizes), sum(sizes) / len(sizes), len(sizes), sum(sizes))

    def __add__(self, other: FileSizeMetrics) -> FileSizeMetrics:
        least = [size for size in (self.min, other.min) if size is not None]
        most = [size for size in (self.max, other.max) if size is not None]
        files, size = self.total_files + other.total_files, self.total_size + other.total_size
        return FileSizeMetrics(
            min(least, default=None), max(most, default=None), size / files if files else 0.0, files, size
        )


NO_FILES = FileSizeMetrics()


@dataclass(frozen=True, slots=True)
class DeletionVectorStats:
    """Deletion vectors that went with the removed files, and how many rows they hid."""

    __pydantic_config__: ClassVar = DELTA_NAMES

    num_deletion_vectors_removed: int
    num_deletion_vector_rows_removed: int


@dataclass(frozen=True, slots=True)
class ZOrderFileStats:
    """Files of one kind and their bytes."""

    __pydantic_config__: ClassVar = DELTA_NAMES

    num: int
    size: int


@dataclass(frozen=True, slots=True)
class ZOrderStats:
    """Figures of a Z-order.

    ``input_cube_files`` are removed files that an earlier Z-order of ours by the same columns wrote (Delta marks no
    files and always says 0), ``input_other_files`` the rest; ``merged_files`` are both together. One cube is written
    for each partition.
    """

    __pydantic_config__: ClassVar = DELTA_NAMES

    strategy_name: str
    input_cube_files: ZOrderFileStats
    input_other_files: ZOrderFileStats
    input_num_cubes: int
    merged_files: ZOrderFileStats
    num_output_cubes: int
    merged_num_cubes: int | None = None


@dataclass(frozen=True, slots=True)
class ClusteringFileStats:
    """Files of one kind and their bytes."""

    __pydantic_config__: ClassVar = DELTA_NAMES

    num_files: int
    size: int


@dataclass(frozen=True, slots=True)
class ClusteringStats:
    """Figures of a clustering, over the files that were taken.

    ``input_z_cube_files`` are those that were in a cube, ``input_other_files`` the rest, ``merged_files`` both. Delta
    counts among the input also what it leaves alone; here that is in the plan, with the reason.
    """

    __pydantic_config__: ClassVar = DELTA_NAMES

    input_z_cube_files: ClusteringFileStats
    input_other_files: ClusteringFileStats
    input_num_z_cubes: int
    merged_files: ClusteringFileStats
    num_output_z_cubes: int


@dataclass(frozen=True, slots=True)
class OptimizeMetrics:
    """The figures of one rewrite step over all its commits, as OPTIMIZE returns them.

    ``total_considered_files`` are the live files of the partitions that the step may touch, ``total_files_skipped``
    those of them that were not removed. ``num_batches`` are commits. Times are milliseconds since 1970 UTC.
    """

    __pydantic_config__: ClassVar = DELTA_NAMES

    num_files_added: int
    num_files_removed: int
    files_added: FileSizeMetrics
    files_removed: FileSizeMetrics
    partitions_optimized: int
    num_bins: int
    num_batches: int
    total_considered_files: int
    total_files_skipped: int
    start_time_ms: int
    end_time_ms: int
    z_order_stats: ZOrderStats | None = None
    clustering_stats: ClusteringStats | None = None
    deletion_vector_stats: DeletionVectorStats | None = None
    preserve_insertion_order: bool = False
    num_files_skipped_to_reduce_write_amplification: int = 0
    num_bytes_skipped_to_reduce_write_amplification: int = 0
    total_cluster_parallelism: int = 0
    num_table_columns: int = 0
    num_table_columns_with_stats: int = 0
