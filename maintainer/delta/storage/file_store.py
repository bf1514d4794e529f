"""Read, write, move and delete files by URI: what each storage does, and how URIs of files are spelled."""

from __future__ import annotations

import re
import unicodedata
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol, TypeVar
from urllib.parse import unquote

from maintainer.engine.store.store_clients import content_tag

_UNQUOTED = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-!.~'()*,;:$&+=/@")
PLAIN = re.compile(r"[A-Za-z0-9_\-!.~'()*,;:$&+=/@]*")
"""Paths that are spelled the same with and without percent-encoding."""

_FOLDERS_AT_ONCE = 32
_LOOKS_AT_ONCE = 10_000

_Question = TypeVar("_Question")
_Answer = TypeVar("_Answer")

Listed = Callable[[Collection[str]], None]


def unheard(listed: Collection[str]) -> None:
    """Take no notice of what was listed."""


def seen_of(wanted: Collection[str], tell: Callable[[int, int], None]) -> Listed:
    """Return what tells how many of the wanted URIs were listed so far, and of how many, which it tells at once.

    A listing may be begun again folder by folder: never more than there are.
    """
    num_seen = 0

    def count(listed: Collection[str]) -> None:
        nonlocal num_seen
        num_seen = min(num_seen + sum(uri in wanted for uri in listed), len(wanted))
        tell(num_seen, len(wanted))

    count(())
    return count


def java_quote(path: str) -> str:
    """Percent-encode a path as ``java.net.URI`` does, so that URIs made here equal those that Hadoop lists.

    Done here and not in the JVM because it loops over all files of a table; nearly all need nothing done.
    """
    if PLAIN.fullmatch(path):
        return path
    return "".join(
        sign
        if sign in _UNQUOTED or (ord(sign) > 127 and unicodedata.category(sign)[0] != "Z" and ord(sign) > 0x9F)
        else "".join(f"%{byte:02X}" for byte in sign.encode("utf-8", "surrogateescape"))
        for sign in path
    )


def one_spelling(uri: str) -> str:
    """Return a URI with ``file:/x`` instead of ``file:///x``; Hadoop uses both."""
    return "file:/" + uri[8:] if uri.startswith("file:///") else uri


def last_name(uri: str) -> str:
    """Return the last part of a URI or a path of the log, decoded."""
    return unquote(uri.rpartition("/")[2], errors="surrogateescape")


def local_path(uri: str) -> str:
    """The path on this machine behind a ``file:`` URI."""
    path = uri.removeprefix("file:")
    return unquote(path, errors="surrogateescape") if "%" in path else path


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One file or directory on storage. Device and inode are known on a local disk, and are the link's own for one.

    Two are equal if nothing tells them apart: a tag does so only where both have one, and then the time's seconds do: a
    look has no more, where a listing has milliseconds.
    """

    uri: str
    size_bytes: int
    modification_time_ms: int
    is_dir: bool
    is_symlink: bool
    device_and_inode: tuple[int, int] | None = None
    tag: str = ""
    """What an object store names this very content by; empty elsewhere."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StoredFile):
            return NotImplemented
        tags = content_tag(self.tag), content_tag(other.tag)
        is_same_time = all(tags) or self.modification_time_ms == other.modification_time_ms
        return is_same_time and self._told_by() == other._told_by() and (not all(tags) or tags[0] == tags[1])

    def __hash__(self) -> int:
        return hash(self._told_by())

    def _told_by(self) -> tuple[object, ...]:
        is_what = (self.is_dir, self.is_symlink, self.device_and_inode)
        return (self.uri, self.size_bytes, self.modification_time_ms // 1000, *is_what)

    @property
    def name(self) -> str:
        """Its last part, not percent-encoded."""
        return last_name(self.uri)


@dataclass(frozen=True, slots=True)
class DeletedMany:
    """What a deletion of many files did: what kept which, and the delete markers by which a bucket hides the others.

    Both are by URI; a marker is named by its version id, and there is none where a bucket keeps no versions.
    """

    kept: Mapping[str, str]
    markers: Mapping[str, str] = field(default_factory=dict)


class FileSource(ABC):
    """What reads a table's log: lists folders, reads files. URIs are percent-encoded and in one spelling.

    ``asks_by_request`` says whether each look at a file costs a request.
    """

    asks_by_request = True

    @abstractmethod
    def children(self, uri: str, *, after: str = "") -> dict[str, StoredFile]:
        """The direct children of a folder by URI, those with names behind ``after``; none if there is no folder."""

    @abstractmethod
    def read(self, uri: str, *, first_bytes: int | None = None) -> bytes:
        """A small file's content, or its beginning.

        Raises:
            FileNotFoundError: There is no such file.
        """

    def read_many(self, files: Iterable[StoredFile]) -> Iterator[bytes]:
        """The content of files as they were listed, in order; many at once where that is quicker.

        Raises:
            FileNotFoundError: One is not there any more.
        """
        return (self.read(file.uri) for file in files)

    def forget(self, folder: str) -> int:
        """Drop what is kept of files below a folder, which nobody reads again soon; return its bytes."""
        return 0


def data_files(files: Iterable[StoredFile]) -> Iterator[StoredFile]:
    """Leave Hadoop's checksums out of what lies in a folder."""
    return (file for file in files if not (file.name.startswith(".") and file.name.endswith(".crc")))


class FileStore(FileSource):
    """Operations on files.

    What is asked of many files is asked of one after the other, unless a store knows better. ``renames_cheaply`` says
    whether a rename is one request; else it is a copy and a deletion. ``has_links`` says whether a folder or a file may
    be a link to another place. ``threads`` ask side by side. From ``list_from`` wanted names in one folder on, the
    folder is listed.
    """

    renames_cheaply = True
    has_links = True
    threads = 1
    list_from = 8

    @abstractmethod
    def status(self, uri: str) -> StoredFile | None:
        """One file's status, symlinks not followed; None if it is not there."""

    def children_of(self, folders: Collection[str], listed: Listed = unheard) -> dict[str, dict[str, StoredFile]]:
        """The children of each of many folders, in as few requests as the storage allows.

        Args:
            folders: Their URIs.
            listed: Told the URIs of what was listed, part by part, from any thread.
        """

        def children(folder: str) -> dict[str, StoredFile]:
            found = self.children(folder)
            listed(found)
            return found

        return dict(zip(folders, self.abreast(children, folders), strict=True))

    def look_many(self, uris: Collection[str], list_from: int | None = None) -> dict[str, StoredFile]:
        """The files and folders among the URIs that are there, by URI; see ``there``."""
        return {file.uri: file for file in self.there(dict.fromkeys(uris), list_from)}

    def there(self, uris: Collection[str], list_from: int | None = None) -> Iterator[StoredFile]:
        """Yield the files and folders among the URIs that are there, symlinks not followed; few requests are made.

        Few of a million are in memory at once.

        Args:
            uris: Asked quickly whether a URI is among them.
            list_from: Holds instead of the storage's own.
        """
        list_from = list_from or self.list_from
        wanted = Counter(uri.rpartition("/")[0] for uri in uris)
        alone = (uri for uri in uris if wanted[uri.rpartition("/")[0]] < list_from)
        while part := list(islice(alone, _LOOKS_AT_ONCE)):
            yield from (file for file in self.abreast(self.status, part) if file is not None)
        listed = [folder for folder, number in wanted.items() if number >= list_from]
        yield from (file for file in self.listed_in(listed) if file.uri in uris)

    def names_in(self, folders: Collection[str]) -> Iterator[str]:
        """Yield the URIs of all that lies directly in folders, Hadoop's checksums left out."""
        return (file.uri for file in data_files(self.listed_in(folders)))

    def listed_in(self, folders: Collection[str]) -> Iterator[StoredFile]:
        """Yield what lies directly in folders, of which few are in memory at once."""
        waiting = iter(folders)
        while group := list(islice(waiting, _FOLDERS_AT_ONCE)):
            for children in self.abreast(self.children, group):
                yield from children.values()

    @abstractmethod
    def delete(self, uri: str) -> bool:
        """Delete one file or empty folder; False if it was not there."""

    def delete_many(self, uris: Sequence[str]) -> DeletedMany | None:
        """Delete many files by few requests. None where each file takes a request of its own.

        A file that is not there is deleted.
        """
        return None

    def uncover(self, markers: Mapping[str, str]) -> dict[str, str]:
        """Remove delete markers, each only while it is the newest version of its file; return why which stayed.

        Args:
            markers: Their version ids by URI.
        """
        return dict.fromkeys(markers, "this storage has no delete markers")

    def hiding(self, uris: Collection[str]) -> dict[str, str]:
        """The version ids of delete markers that are the newest version of files, by URI; one request a file."""
        return {}

    @abstractmethod
    def move(self, uri: str, target: str) -> None:
        """Move a file; its time stays, folders are made. Never over another file.

        Raises:
            FileExistsError: There is something at the target.
            FileNotFoundError: There is no such file.
        """

    @abstractmethod
    def read_end(self, file: StoredFile, last_bytes: int) -> bytes:
        """The end of a file as it was listed: so many bytes or more, or all of it where it is shorter.

        Raises:
            FileNotFoundError: There is no such file.
        """

    def read_many(self, files: Iterable[StoredFile]) -> Iterator[bytes]:
        waiting = iter(files)
        while group := list(islice(waiting, self.threads)):
            yield from self.abreast(lambda file: self.read(file.uri), group)

    @abstractmethod
    def write(self, uri: str, data: bytes) -> None:
        """Write a new file, durably; its folders are made.

        Raises:
            FileExistsError: It is there.
        """

    def replace(self, uri: str, data: bytes) -> None:
        """Write a small file, whatever was there. Where that is no single request, it may be missing for a moment.

        Raises:
            FileExistsError: Somebody else wrote it meanwhile.
        """
        self.delete(uri)
        self.write(uri, data)

    def here(self, scratch: str | None = None) -> FilesHere | None:
        """The way to open files in this process by paths; None where there is none. Copies lie below ``scratch``."""
        return None

    def clock_ms(self, uri: str) -> int | None:
        """Return the clock of a folder's storage, milliseconds since 1970 UTC, without leaving a file.

        None if the storage has no clock that can be read without a visible file.
        """
        return None

    def abreast(self, ask: Callable[[_Question], _Answer], questions: Collection[_Question]) -> list[_Answer]:
        """Ask many questions side by side, as many at once as this storage bears; the answers are in order."""
        if self.threads == 1 or len(questions) < 2:
            return [ask(question) for question in questions]
        with ThreadPoolExecutor(min(self.threads, len(questions)), thread_name_prefix="maintainer-look") as pool:
            return list(pool.map(ask, questions))


class FilesHere(Protocol):
    """A table's files as paths of this machine. Used from several threads."""

    def fetch(self, sizes: Mapping[str, int | None]) -> None:
        """Bring files here that are not.

        Args:
            sizes: Bytes by URI, as the log says; None where it does not.

        Raises:
            TransferError: One is not as the log says, the store refuses it, or the scratch folder cannot hold them and
                as much again.
        """

    def path(self, uri: str) -> str:
        """Return where a file is, or where a new one is to be written."""

    def publish(self, uri: str) -> StoredFile:
        """Put a new file in its place, for good, and return what its storage says of it.

        Raises:
            TransferError: The store refuses it, or to show what it took.
            CommitNotLanded: The store does not hold what was written.
        """

    def close(self) -> None: ...


class TransferError(Exception):
    """Files cannot be brought here, or put back, for the reason in the text. Another way to read them may do."""
