"""Facts of a table's storage: what a deletion depends on, and counts of files by size. Frozen values.

Times are milliseconds since 1970 UTC, sizes bytes on storage. Files are counted by powers of two, small enough to keep
in every plan and receipt. These buckets add and subtract, so the sizes after a rewrite follow from those before it
without reading the table again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from maintainer.model.table.commit_records import TableCommit


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """Where a streaming reader of the table is, by its own checkpoint.

    ``version`` is the oldest version that it still needs and ``needed_since_ms`` when that was committed; both None
    where the checkpoint cannot be relied on, and then ``problem`` says why.
    """

    consumer: str
    version: int | None = None
    needed_since_ms: int | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class VacuumHistory:
    """What the log says that bears on how long files must be kept.

    ``longest_write_ms`` is the longest time that any commit still in the log took from its first file, or from the
    start that it reports, to the commit itself; ``longest_write_version`` is that commit. Neither was looked for where
    ``nothing_left_before_ms`` is set: no file that the log says was removed before that moment is left on storage.
    ``first_version`` is the oldest commit in the log: above 0 nobody knows what earlier ones removed. ``maintenance``
    are the newest commits of each kind of maintenance, where the log was read.
    """

    longest_write_ms: int | None = None
    longest_write_version: int | None = None
    positions: tuple[StreamPosition, ...] = ()
    nothing_left_before_ms: int | None = None
    first_version: int = 0
    maintenance: tuple[TableCommit, ...] = ()


class ProtectionReason(StrEnum):
    """Why files in a table's folder are not deleted whatever their age."""

    CLONE = "clone"
    NEEDED = "needed"
    NESTED_TABLE = "nested_table"
    SYMLINK = "symlink"
    UNKNOWN_REFERENCE = "unknown_reference"
    CLOCK = "clock"


@dataclass(frozen=True, slots=True)
class Protection:
    """Files that lie in the table's folder and are not deleted whatever their age; ``text`` says why to people."""

    why: ProtectionReason
    text: str
    num_files: int
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Listing:
    """What looking at the table's folder cost. ``stopped`` says why it was not looked at to its end."""

    num_folders: int
    num_files: int
    num_requests: int
    stopped: str | None = None


@dataclass(frozen=True, slots=True)
class TrashedRun:
    """Files that one run moved into the trash and that are past their time there. ``folder`` is its URI."""

    run_id: str
    folder: str
    num_files: int
    size_bytes: int
    keep_until_ms: int


@dataclass(frozen=True, slots=True)
class MarkedFile:
    """A file that a run was to delete. ``marker`` is the version id of its delete marker, None where none is recorded.

    ``path`` is as the log writes it.
    """

    path: str
    size_bytes: int
    marker: str | None


class AfterDeletion(StrEnum):
    """What an object store does with a file that is deleted."""

    FINAL = "final"
    VERSIONED = "versioned"  # hidden by a delete marker, until a lifecycle rule ends the version
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class MissingFiles:
    """Which of a version's ``num_files`` live files, and of their deletion vectors, were looked for and are gone.

    A file with another size than the logged one counts as gone.
    """

    num_files: int
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StorageLook:
    """What the look for removed files found beside them: what is kept though it is old, and trash past its time.

    ``after`` is what becomes of the oldest file that may be deleted; None on a disk, and without such a file.
    """

    protections: tuple[Protection, ...] = ()
    listing: Listing | None = None
    trash: tuple[TrashedRun, ...] = ()
    after: AfterDeletion | None = None


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
        exponent = max(1, size).bit_length() - 1
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
