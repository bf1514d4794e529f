"""Delete or move files with a few threads, chunk by chunk; before each chunk it asks whether to go on.

Of the files that a deletion is to take, and of what was seen of each, some 200 bytes are kept: there may be a million.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, TypeVar

from maintainer.delta.storage.failures.engine_failures import first_line_of
from maintainer.delta.storage.file_store import DeletedMany, StoredFile
from maintainer.delta.storage.log_paths import short_uri, whole_uri
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.errors import MaintainerError
from maintainer.model.table.storage_facts import MarkedFile
from maintainer.model.table.table_facts import RemovedFile

CHUNK = 500
"""Files between two checks, where each is deleted by itself: at most so many go after a stop was requested."""

AT_ONCE = 1000
"""Files of one request, which cannot be stopped halfway: right before each request the checks are made."""

MAX_THREADS = 8

REPORT_EVERY = 10
"""Deleted files between two reports of progress, at the beginning."""

NO_MARKERS: Mapping[str, str] = {}

_File = TypeVar("_File", bound=RemovedFile | MarkedFile)


class FileChanged(Exception):
    """A file has changed since it was checked. It stays."""


@dataclass(slots=True)
class DeletionEnd:
    """How a deletion ended. ``errors`` are by URI; ``stopped`` or ``error`` says why not all were tried.

    The first ``num_tried`` of the files were. For ``num_marked`` files the store named the delete marker that hides
    them.
    """

    num_tried: int = 0
    errors: dict[str, str] = field(default_factory=dict)
    num_marked: int = 0
    stopped: str | None = None
    error: MaintainerError | None = None

    def text_of(self, uri: str, path: str) -> str:
        """The path of a file that is still there, with its error."""
        error = self.errors.get(uri)
        return f"{path} ({error})" if error else path


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
) -> DeletionEnd:
    """Delete (or move) files with a few threads, or many by one request.

    Args:
        uris: What goes, in order.
        remove: Deletes or moves one file; what it raises is that file's error.
        stop_reason: Asked before each chunk.
        check: Called before each chunk; a ``MaintainerError`` ends the work and goes into the result.
        progress: Told how many files are gone at least, and by which delete markers, by URI; see ``DeletionGuard``.
        remove_many: Deletes many by one request; see ``FileStore.delete_many``.
    """
    done = DeletionEnd()
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
            shares = [part[first::MAX_THREADS] for first in range(min(MAX_THREADS, len(part)))]
            for errors in pool.map(lambda share: _take_share(remove, share, counter), shares):
                done.errors.update(errors)
    return done


def _take_share(remove: Callable[[str], object], share: list[str], counter: Progress) -> dict[str, str]:
    errors: dict[str, str] = {}
    for uri in share:
        try:
            remove(uri)
        except Exception as error:
            errors[uri] = first_line_of(error)
        else:
            counter.add(1)
    return errors


def _deleted_by(remove_many: Callable[[list[str]], DeletedMany | None], part: list[str]) -> DeletedMany | None:
    """Delete by one request; if it failed as a whole, that is each file's error, and files are looked for."""
    try:
        return remove_many(part)
    except Exception as error:
        return DeletedMany(dict.fromkeys(part, first_line_of(error)))


def is_as_planned(planned: RemovedFile, current: StoredFile) -> bool:
    """Return whether a file is as planned: an untracked file that was written to since then is in use."""
    if planned.kind != "untracked":
        return True
    # A look at one file has whole seconds on some stores. It did not change for long before it was planned.
    seconds = current.modification_time_ms // 1000, planned.removed_at_ms // 1000
    return seconds[0] == seconds[1] and current.size_bytes == planned.size_bytes


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


class PlannedFiles(Mapping[str, _File]):
    """The files of a plan by URI, in its order. URIs are made anew each time: a key is the plan's own text."""

    def __init__(self, storage: TableStorage, files: Sequence[_File]) -> None:
        self._root_uri = storage.root_uri
        self._files = files
        self.num_files = len(files)
        self._numbers: dict[str, int] = {}
        for number, file in enumerate(files):
            key = short_uri(self._root_uri, storage.uri(file.path))
            self._numbers[file.path if file.path == key else key] = number

    def __getitem__(self, uri: str) -> _File:
        return self._files[self._numbers[short_uri(self._root_uri, uri)]]

    def __iter__(self) -> Iterator[str]:
        return (whole_uri(self._root_uri, key) for key in self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def number_of(self, uri: str) -> int | None:
        """The place of a file in the plan; None for another file."""
        return self._numbers.get(short_uri(self._root_uri, uri))

    def among(self, uris: Iterable[str]) -> NamesSeen:
        """Keep names, of these files as one bit each."""
        seen = NamesSeen(self, bytearray(len(self._files)), set())
        for uri in uris:
            number = self.number_of(uri)
            if number is None:
                seen.others.add(uri)
            else:
                seen.flags[number] = 1
        return seen


@dataclass(frozen=True, slots=True)
class NamesSeen(Container[str]):
    """Names on storage: which planned files are among them, and all others."""

    planned: PlannedFiles[Any]
    flags: bytearray
    others: set[str]

    def __contains__(self, uri: object) -> bool:
        number = self.planned.number_of(str(uri))
        return uri in self.others if number is None else bool(self.flags[number])


class PresentFiles(Mapping[str, StoredFile]):
    """Those planned files that were seen on storage, each as it was, by URI in the plan's order."""

    def __init__(self, planned: PlannedFiles[Any]) -> None:
        self._planned = planned
        self._is_seen, self._has_identity = bytearray(planned.num_files), bytearray(planned.num_files)
        self._figures = array("q", bytes(16 * planned.num_files))
        self._identities = array("Q", bytes(16 * planned.num_files))

    def __getitem__(self, uri: str) -> StoredFile:
        number = self._planned.number_of(uri)
        if number is None or not self._is_seen[number]:
            raise KeyError(uri)
        place = slice(2 * number, 2 * number + 2)
        size_bytes, modification_time_ms = self._figures[place]
        device, inode = self._identities[place]
        identity = (device, inode) if self._has_identity[number] else None
        return StoredFile(uri, size_bytes, modification_time_ms, False, False, identity)

    def __iter__(self) -> Iterator[str]:
        return (uri for uri in self._planned if uri in self)

    def __len__(self) -> int:
        return self._is_seen.count(1)

    def add(self, file: StoredFile) -> None:
        """Keep how a planned file is now; it is no folder and no link."""
        number = self._planned.number_of(file.uri)
        assert number is not None, file.uri
        place = slice(2 * number, 2 * number + 2)
        self._is_seen[number] = 1
        self._figures[place] = array("q", (file.size_bytes, file.modification_time_ms))
        if file.device_and_inode is not None:
            self._has_identity[number] = 1
            self._identities[place] = array("Q", file.device_and_inode)
