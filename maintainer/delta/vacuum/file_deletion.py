"""Delete or move files with a few threads, chunk by chunk; before each chunk it asks whether to go on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain, islice

from maintainer.delta.storage.failures.engine_failures import first_line_of
from maintainer.delta.storage.file_store import DeletedMany, StoredFile
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.errors import MaintainerError

CHUNK = 500
"""Files between two checks, where each is deleted by itself: at most so many go after a stop was requested."""

AT_ONCE = 1000
"""Files of one request, which cannot be stopped halfway: right before each request the checks are made."""

MAX_THREADS = 8

REPORT_EVERY = 10
"""Deleted files between two reports of progress, at the beginning."""

NO_MARKERS: Mapping[str, str] = {}


class FileChanged(Exception):
    """A file has changed since it was checked. It stays."""


@dataclass(slots=True)
class Taken:
    """The result of a deletion. ``errors`` are by URI; ``stopped`` or ``error`` says why not all were tried.

    The first ``num_tried`` of the files were. For ``num_marked`` files the store named the delete marker that hides
    them.
    """

    num_tried: int = 0
    errors: dict[str, str] = field(default_factory=dict)
    num_marked: int = 0
    stopped: str | None = None
    error: MaintainerError | None = None


class Progress:
    """Count deleted files over all threads and report every tenth more, so that a kill loses a tenth at most.

    Delete markers are reported as soon as the store has named them.
    """

    def __init__(self, tell: Callable[[int, Mapping[str, str]], None]) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._num_deleted = 0
        self._next_report = 0

    def add(self, number: int, markers: Mapping[str, str] = NO_MARKERS) -> None:
        """Add deleted files, with the delete markers that hide them; 0 is reported, too, before the first."""
        with self._lock:
            self._num_deleted += number
            if markers or self._num_deleted >= self._next_report:
                self._next_report = self._num_deleted + max(REPORT_EVERY, self._num_deleted // 10)
                self._tell(self._num_deleted, markers)


def take_away(
    uris: Collection[str],
    remove: Callable[[str], object],
    *,
    stop_reason: Callable[[], str | None],
    check: Callable[[], None],
    progress: Callable[[int, Mapping[str, str]], None] = lambda num_deleted, markers: None,
    remove_many: Callable[[list[str]], DeletedMany | None] = lambda uris: None,
) -> Taken:
    """Delete (or move) files with a few threads, or many by one request.

    Args:
        uris: What goes, in order.
        remove: Deletes or moves one file; what it raises is that file's error.
        stop_reason: Asked before each chunk.
        check: Called before each chunk; a ``MaintainerError`` ends the work and goes into the result.
        progress: Told how many files are gone at least, and by which delete markers, by URI; see ``DeletionGuard``.
        remove_many: Deletes many by one request; see ``FileStore.delete_many``.
    """
    done = Taken()
    if not uris:
        return done
    counter = Progress(progress)
    counter.add(0)
    with ThreadPoolExecutor(min(MAX_THREADS, len(uris)), thread_name_prefix="maintainer-vacuum") as pool:
        waiting, size = iter(uris), AT_ONCE
        while part := list(islice(waiting, size)):
            done.stopped = stop_reason()
            if done.stopped is not None:
                break
            try:
                check()
            except MaintainerError as error:
                done.error = error
                break
            at_once = _deleted_by(remove_many, part)
            if at_once is None:  # none is deleted yet
                size, waiting, part = CHUNK, chain(part[CHUNK:], waiting), part[:CHUNK]
            done.num_tried += len(part)
            if at_once is not None:
                done.errors.update(at_once.kept)
                done.num_marked += len(at_once.markers)
                counter.add(len(part) - len(at_once.kept), at_once.markers)
                continue
            # A thread takes every eighth file of the chunk: a task for each file would cost more than its deletion.
            for errors in pool.map(lambda share: _take_share(remove, share, counter), _shares(part)):
                done.errors.update(errors)
    return done


def _shares(part: list[str]) -> list[list[str]]:
    return [part[first::MAX_THREADS] for first in range(min(MAX_THREADS, len(part)))]


def _take_share(remove: Callable[[str], object], share: list[str], counter: Progress) -> dict[str, str]:
    errors: dict[str, str] = {}
    for uri in share:
        problem = _problem(remove, uri)
        if problem is None:
            counter.add(1)
        else:
            errors[uri] = problem
    return errors


def _deleted_by(remove_many: Callable[[list[str]], DeletedMany | None], part: list[str]) -> DeletedMany | None:
    """Delete by one request; if it failed as a whole, that is each file's error, and files are looked for."""
    try:
        return remove_many(part)
    except Exception as error:
        return DeletedMany(dict.fromkeys(part, first_line_of(error)))


def _problem(remove: Callable[[str], object], uri: str) -> str | None:
    try:
        remove(uri)
    except Exception as error:
        return first_line_of(error)
    return None


def check_unchanged(storage: TableStorage, listed: StoredFile) -> None:
    """Check a file again right before its deletion, on a local disk, where that costs no request.

    Raises:
        FileChanged: It is not the file that was checked before.
    """
    if listed.device_and_inode is None:
        return
    current = storage.status(listed.uri)
    if current is not None and current != listed:
        raise FileChanged(f"it is no longer the file that was planned: {_difference(listed, current)}")


def _difference(listed: StoredFile, current: StoredFile) -> str:
    if current.is_symlink:
        return "there is a link in its place"
    if current.device_and_inode != listed.device_and_inode:
        return "another file is in its place"
    if current.size_bytes != listed.size_bytes:
        return f"it had {listed.size_bytes:,} bytes and has {current.size_bytes:,}"
    return "it was written to"
