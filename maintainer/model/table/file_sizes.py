"""File sizes of a table: counts by powers of two, small enough to keep in every plan and receipt.

Buckets add and subtract, so the sizes after a rewrite follow from those before it without reading the table again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class SizeBucket:
    """Files of 2^exponent bytes up to, but not including, 2^(exponent+1). Empty files count as one byte."""

    exponent: int
    num_files: int
    size_bytes: int


FileSizes = tuple[SizeBucket, ...]
"""Buckets by ascending exponent; one without files is left out. At most 63 of them."""


def file_sizes(sizes_bytes: Iterable[int]) -> FileSizes:
    """Count files by size.

    Args:
        sizes_bytes: The size of each file.
    """
    buckets: dict[int, tuple[int, int]] = {}
    for size in sizes_bytes:
        exponent = max(0, size).bit_length() - 1 if size > 0 else 0
        num_files, size_bytes = buckets.get(exponent, (0, 0))
        buckets[exponent] = (num_files + 1, size_bytes + size)
    return tuple(SizeBucket(exponent, *buckets[exponent]) for exponent in sorted(buckets))


def combined(before: FileSizes, removed: Iterable[FileSizes], added: Iterable[FileSizes]) -> FileSizes:
    """Return the sizes after files were removed and added; a bucket never falls below 0.

    Others may have changed the table as well: then this is what our own commits alone made of it.
    """
    totals = {bucket.exponent: [bucket.num_files, bucket.size_bytes] for bucket in before}
    for sign, groups in ((-1, removed), (1, added)):
        for bucket in (bucket for group in groups for bucket in group):
            total = totals.setdefault(bucket.exponent, [0, 0])
            total[0] += sign * bucket.num_files
            total[1] += sign * bucket.size_bytes
    return tuple(
        SizeBucket(exponent, num_files, max(0, size_bytes))
        for exponent, (num_files, size_bytes) in sorted(totals.items())
        if num_files > 0
    )
