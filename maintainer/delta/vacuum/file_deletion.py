"""Takes files away, chunk by chunk: between two chunks it asks whether to go on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from maintainer.delta.storage.error_classes import message_of
from maintainer.delta.storage.file_store import StoredFile
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.errors import MaintainerError

CHUNK = 500
"""Files between two questions: at most so many go after a stop was asked for."""

MAX_THREADS = 8

TOLD_EACH = 10
"""Deleted files between two words of progress, at the beginning."""


class FileChanged(Exception):
    """A file is not the one that was looked at. It stays."""


@dataclass(slots=True)
class Taken:
    """What came of it. ``errors`` are by URI; ``stopped`` says why not all were tried, ``error`` what ended it."""

    tried: list[str] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)
    stopped: str | None = None
    error: MaintainerError | None = None


class Progress:
    """Counts deleted files over all threads, and tells at a growing distance: what is lost by a kill is a tenth."""

    def __init__(self, tell: Callable[[int], None]) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._num_deleted = 0
        self._told_next = 0

    def add(self, number: int) -> None:
        """So many more are gone; 0 is told, too, before the first."""
        with self._lock:
            self._num_deleted += number
            if self._num_deleted >= self._told_next:
                self._told_next = self._num_deleted + max(TOLD_EACH, self._num_deleted // 10)
                self._tell(self._num_deleted)


def take_away(
    uris: list[str],
    one: Callable[[str], object],
    *,
    stop_reason: Callable[[], str | None],
    check: Callable[[], None],
    progress: Callable[[int], None] = lambda num_deleted: None,
) -> Taken:
    """Delete (or move) files with a few threads.

    Args:
        uris: What goes, in order.
        one: Takes one file away; what it raises is that file's error.
        stop_reason: Asked before each chunk.
        check: Called before each chunk; an error of ours from it ends the work and is kept in the result.
        progress: Told how many files are gone at least; see ``DeletionGuard``.
    """
    done = Taken()
    if not uris:
        return done
    counter = Progress(progress)
    counter.add(0)
    with ThreadPoolExecutor(min(MAX_THREADS, len(uris)), thread_name_prefix="maintainer-vacuum") as pool:
        for part in _chunks(uris, CHUNK):
            done.stopped = stop_reason()
            if done.stopped is not None:
                break
            try:
                check()
            except MaintainerError as error:
                done.error = error
                break
            # A thread takes every eighth file of the chunk: a task for each file would cost more than its deletion.
            for tried, errors in pool.map(lambda share: _take_share(one, share, counter), _shares(part)):
                done.tried.extend(tried)
                done.errors.update(errors)
    return done


def _shares(part: list[str]) -> list[list[str]]:
    return [part[first::MAX_THREADS] for first in range(min(MAX_THREADS, len(part)))]


def _take_share(one: Callable[[str], object], share: list[str], counter: Progress) -> tuple[list[str], dict[str, str]]:
    errors: dict[str, str] = {}
    for uri in share:
        problem = _problem(one, uri)
        if problem is None:
            counter.add(1)
        else:
            errors[uri] = problem
    return share, errors


def _chunks(uris: list[str], size: int) -> Iterator[list[str]]:
    for start in range(0, len(uris), size):
        yield uris[start : start + size]


def _problem(one: Callable[[str], object], uri: str) -> str | None:
    try:
        one(uri)
    except Exception as error:
        return (message_of(error).splitlines() or [type(error).__name__])[0][:200]
    return None


def check_unchanged(storage: TableStorage, seen: StoredFile) -> None:
    """Look at the very file right before it goes: on a local disk, where that costs no request.

    Raises:
        FileChanged: It is another file than the one that was found free to go.
    """
    if seen.device_and_inode is None:
        return
    there = storage.status(seen.uri)
    if there is not None and there != seen:
        raise FileChanged(f"it is no longer the file that was planned: {_difference(seen, there)}")


def _difference(seen: StoredFile, there: StoredFile) -> str:
    if there.is_symlink:
        return "there is a link in its place"
    if there.device_and_inode != seen.device_and_inode:
        return "another file lies in its place"
    if there.size_bytes != seen.size_bytes:
        return f"it had {seen.size_bytes:,} bytes and has {there.size_bytes:,}"
    return "it was written to"


def entries_in(storage: TableStorage, folders: set[str]) -> dict[str, StoredFile]:
    """Everything that lies directly in the folders now, Hadoop's checksums left out."""
    found: dict[str, StoredFile] = {}
    for folder in sorted(folders):
        found.update((uri, one) for uri, one in storage.children(folder).items() if not _is_checksum(one.name))
    return found


def _is_checksum(name: str) -> bool:
    return name.startswith(".") and name.endswith(".crc")
