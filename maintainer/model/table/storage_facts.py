"""Facts of a table's storage that a deletion depends on. Frozen values.

Times are milliseconds since 1970 UTC, sizes bytes on storage.
"""

from __future__ import annotations

from dataclasses import dataclass


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
    ``nothing_left_before_ms`` is set: no file that was removed before that moment is left on storage.
    """

    longest_write_ms: int | None = None
    longest_write_version: int | None = None
    positions: tuple[StreamPosition, ...] = ()
    nothing_left_before_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """Files that lie in the table's folder and are not deleted whatever their age.

    ``why`` is a word for machines, such as ``clone`` or ``nested_table``; ``text`` says the same to people.
    """

    why: str
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
class StorageLook:
    """What the look for removed files found beside them: what is kept though it is old, and trash past its time."""

    kept: tuple[Kept, ...] = ()
    listing: Listing | None = None
    trash: tuple[TrashedRun, ...] = ()
