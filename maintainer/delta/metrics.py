"""The operation metrics that OPTIMIZE writes into a table's history, computed the way it does. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from maintainer.model.steps import Batch


def optimize_metrics(batch: Batch, added_sizes_bytes: Sequence[int]) -> dict[str, int]:
    """All metrics that Delta's OPTIMIZE registers; Delta itself drops those that its history does not keep.

    The file sizes are of added files; the quantiles are Delta's: the element at ``floor(n * q)`` of the sorted
    sizes. Without added files (a batch whose rows were all soft-deleted) they are 0.
    """
    sizes = sorted(added_sizes_bytes)
    vectors = [one.deletion_vector for one in batch.files if one.deletion_vector is not None]

    def quantile(percent: int) -> int:
        return sizes[min(len(sizes) - 1, len(sizes) * percent // 100)] if sizes else 0

    return {
        "minFileSize": quantile(0),
        "p25FileSize": quantile(25),
        "p50FileSize": quantile(50),
        "p75FileSize": quantile(75),
        "maxFileSize": quantile(100),
        "numAddedFiles": len(sizes),
        "numRemovedFiles": len(batch.files),
        "numAddedBytes": sum(sizes),
        "numRemovedBytes": batch.size_bytes,
        "numDeletionVectorsRemoved": len(vectors),
        "numDeletionVectorRowsRemoved": sum(one.cardinality for one in vectors),
        "numDeletionVectorBytesRemoved": sum(one.size_bytes for one in vectors),
    }
