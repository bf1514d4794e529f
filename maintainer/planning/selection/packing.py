"""Pack files into bins and bins into batches, as OPTIMIZE does, but deterministically.

Delta packs *next-fit*: it takes the smallest first, and closes a bin at the first file that does not fit. This is not
the tightest packing, but no two closed bins fit into one. So packing the results again joins nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from maintainer.model.plan.steps import Batch, Bin
from maintainer.model.table.table_facts import DataFile

_T = TypeVar("_T")


def file_order(file: DataFile) -> tuple[int, str, str]:
    """Order files as bins take them: smallest first; equal sizes by identity, so that plans are reproducible."""
    return (file.size_bytes, *file.key)


def bin_order(bin_: Bin) -> tuple[int, tuple[int, str, str]]:
    """Order bins as batches take them: fewest bytes first, equal ones by their first file."""
    return (bin_.size_bytes, file_order(bin_.files[0]))


def pack_bins(files: Iterable[DataFile], *, max_bin_bytes: int) -> tuple[Bin, ...]:
    """Group the files of one partition into bins for one rewrite each, as OPTIMIZE does.

    Bins of one file are returned too; OPTIMIZE drops them, we decide by reason (see ``compaction``).

    Args:
        files: Live files of a single partition, in any order.
        max_bin_bytes: Bound of a bin, in bytes on storage; a bin of exactly that size is still one bin. A file
            above the bound gets a bin of its own and is never split: 300 MiB at a bound of 128 MiB is one bin.

    Returns:
        Bins in the order in which they closed; together they hold every file exactly once.

    Raises:
        ValueError: The bound is not positive, or the files belong to more than one partition.
    """
    ordered = sorted(files, key=file_order)
    if any(file.partition_values != ordered[0].partition_values for file in ordered):
        raise ValueError("bins are packed one partition at a time")
    return tuple(Bin(tuple(group)) for group in _next_fit(ordered, lambda file: file.size_bytes, max_bin_bytes))


def pack_in_order(files: Iterable[DataFile], *, max_bin_bytes: int) -> tuple[Bin, ...]:
    """Group files into bins in the order given, as OPTIMIZE does on clustered tables: cube by cube.

    Args:
        files: Live files of a single partition.
        max_bin_bytes: Bound of a bin; a file above it gets a bin of its own.

    Raises:
        ValueError: The bound is not positive, or the files belong to more than one partition.
    """
    return tuple(Bin(tuple(group)) for group in _next_fit(files, lambda file: file.size_bytes, max_bin_bytes))


def pack_batches(bins: Iterable[Bin], *, batch_size_bytes: int) -> tuple[Batch, ...]:
    """Group bins into batches of one commit each, as OPTIMIZE does with ``optimize.batchSize``.

    Args:
        bins: Bins of any partitions, in any order.
        batch_size_bytes: Bound of a batch, in bytes to read; a bin above it is a batch of its own.

    Returns:
        Batches from small bins to large ones; together they hold every bin exactly once.
    """
    ordered = sorted(bins, key=bin_order)
    return tuple(Batch(tuple(group)) for group in _next_fit(ordered, lambda bin_: bin_.size_bytes, batch_size_bytes))


def _next_fit(ordered: Iterable[_T], size_of: Callable[[_T], int], bound: int) -> list[list[_T]]:
    if bound <= 0:
        raise ValueError(f"a bound must be positive, not {bound}")
    groups: list[list[_T]] = []
    room = -1
    for element in ordered:
        size = size_of(element)
        if size > room:
            groups.append([])
            room = bound
        groups[-1].append(element)
        # Below zero after an element above the bound: nothing fits beside it, not even an empty file.
        room -= size
    return groups
