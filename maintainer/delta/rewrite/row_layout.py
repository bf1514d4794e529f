"""Spread the rows of a bin over the files to write, for each kind of rewrite."""

from __future__ import annotations

from typing import TYPE_CHECKING

from maintainer.delta.jvm import DeltaJvm
from maintainer.model.plan.steps import Bin, ClusterStep, CompactStep, RewriteStep

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def lay_out(jvm: DeltaJvm, frame: DataFrame, step: RewriteStep, bin_: Bin) -> DataFrame:
    """Arrange the rows of a bin: each Spark partition of the result becomes one file.

    Files are of about equal size; sorted, each holds one range of the order.

    Args:
        jvm: The bridge, for Delta's own curve.
        frame: The bin's rows.
        step: What is done.
        bin_: The bin, for its size and its partition columns.
    """
    num_files = step.num_files_of(bin_)
    if step.on_curve:
        # Delta's curves: Hilbert needs two columns, for one it takes the Z-order curve.
        curve = "hilbert" if isinstance(step, ClusterStep) and len(step.columns) > 1 else "zorder"
        return jvm.clustered(frame, num_files, step.order_columns, curve=curve)
    shuffled = isinstance(step, CompactStep) and step.repartition
    if not step.order_columns:
        return frame.coalesce(1) if num_files == 1 and not shuffled else frame.repartition(num_files)
    ranged = frame.coalesce(1) if num_files == 1 else frame.repartitionByRange(num_files, *step.order_columns)
    # The partition columns stand first in the sort within a file, though a bin has one value of each: the writer asks
    # for rows by partition, and would sort them again by those columns alone if it were not told that they are.
    constant = ["`" + column.replace("`", "``") + "`" for column, _ in bin_.partition_values]
    return ranged.sortWithinPartitions(*constant, *step.order_columns)
