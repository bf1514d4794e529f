"""Spread the rows of a bin over the files to write, for each kind of rewrite."""

from __future__ import annotations

from typing import TYPE_CHECKING

from maintainer.delta.jvm import DeltaJvm
from maintainer.model.closed_types import assert_never
from maintainer.model.plan.steps import (
    Bin,
    ClusterStep,
    CompactStep,
    PartitionRewriteStep,
    PurgeStep,
    RewriteRequest,
    RewriteStep,
    ZOrderStep,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def lay_out(jvm: DeltaJvm, frame: DataFrame, step: RewriteStep, bin_: Bin) -> DataFrame:
    """Arrange the rows of a bin: each Spark partition of the result becomes one file.

    Args:
        jvm: The bridge, for Delta's own curve.
        frame: The bin's rows.
        step: What is done.
        bin_: The bin, for its size and its partition columns.
    """
    match step:
        case CompactStep(repartition=repartition):
            return frame.repartition(1) if repartition else frame.coalesce(1)
        case ZOrderStep(columns=columns, max_file_size_bytes=size):
            return jvm.clustered(frame, max(1, bin_.size_bytes // size), columns)
        case PurgeStep():
            return frame.coalesce(1)
        case ClusterStep(columns=columns, max_file_size_bytes=size):
            # Delta's curves: Hilbert needs two columns, for one it takes the Z-order curve.
            curve = "hilbert" if len(columns) > 1 else "zorder"
            return jvm.clustered(frame, max(1, bin_.size_bytes // size), columns, curve=curve)
        case PartitionRewriteStep(request=request):
            return _as_asked(frame, request, bin_)
        case _:
            assert_never(step)


def _as_asked(frame: DataFrame, request: RewriteRequest, bin_: Bin) -> DataFrame:
    """Arrange rows into the requested number of files of about equal size; sorted, each holds one range of the order.

    The partition columns stand first in the sort within a file, though a bin has one value of each: the writer asks
    for rows by partition, and would sort them again by those columns alone if it were not told that they are.
    """
    num_files = request.num_files_of(bin_.size_bytes)
    if not request.sort_columns:
        return frame.coalesce(1) if num_files == 1 else frame.repartition(num_files)
    ranged = frame.coalesce(1) if num_files == 1 else frame.repartitionByRange(num_files, *request.sort_columns)
    constant = ["`" + column.replace("`", "``") + "`" for column, _ in bin_.partition_values]
    return ranged.sortWithinPartitions(*constant, *request.sort_columns)
