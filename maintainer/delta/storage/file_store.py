"""Read, write, move and delete files by URI: the protocol, and a local disk through the operating system.

A vacuum looks at thousands of files. Hadoop's local file system starts a process or reads attributes several times for
each, so a local disk is read directly.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar
from urllib.parse import unquote

if TYPE_CHECKING:
    from maintainer.delta.storage.files_here import FilesHere

_UNQUOTED = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-!.~'()*,;:$&+=/@")
PLAIN = re.compile(r"[A-Za-z0-9_\-!.~'()*,;:$&+=/@]*")
"""Paths that are spelled the same with and without percent-encoding."""

_Answer = TypeVar("_Answer")


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


def local_path(uri: str) -> str:
    """The path on this machine behind a ``file:`` URI."""
    path = uri.removeprefix("file:")
    return unquote(path, errors="surrogateescape") if "%" in path else path


def path_uri(path: str) -> str:
    """The ``file:`` URI of an absolute path on this machine."""
    return f"file:{java_quote(path)}"


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One file or directory on storage. Device and inode are known on a local disk, and are the link's own for one."""

    uri: str
    size_bytes: int
    modification_time_ms: int
    is_dir: bool
    is_symlink: bool
    device_and_inode: tuple[int, int] | None = None
    tag: str = field(default="", compare=False)
    """What an object store names this very content by; empty elsewhere."""

    @property
    def name(self) -> str:
        """Its last part, not percent-encoded."""
        return unquote(self.uri.rpartition("/")[2], errors="surrogateescape")


class FileStore(Protocol):
    """Operations on files; URIs are percent-encoded and in one spelling.

    ``asks_by_request`` says whether each look at a file costs a request, ``renames_cheaply`` whether a rename is one
    request; where it is not, it is a copy and a deletion.
    """

    @property
    def asks_by_request(self) -> bool:
        """See above."""
        ...

    @property
    def renames_cheaply(self) -> bool:
        """See above."""
        ...

    def children(self, uri: str, *, after: str = "") -> dict[str, StoredFile]:
        """The direct children of a folder by URI, those with names behind ``after``; none if there is no folder."""
        ...

    def status(self, uri: str) -> StoredFile | None:
        """One file's status, symlinks not followed; None if it is not there."""
        ...

    def children_of(self, folders: Collection[str]) -> dict[str, dict[str, StoredFile]]:
        """The children of each of many folders, in as few requests as the storage allows."""
        ...

    def look_many(self, uris: Collection[str]) -> dict[str, StoredFile]:
        """The files and folders among the URIs that are there, symlinks not followed; as few requests as possible."""
        ...

    def delete(self, uri: str) -> bool:
        """Delete one file or empty folder; False if it was not there."""
        ...

    def here(self) -> FilesHere | None:
        """The way to open files in this process by paths; None where there is none."""
        ...

    def delete_many(self, uris: Sequence[str]) -> dict[str, str] | None:
        """Delete many files by few requests; return what kept which. None where each file takes a request of its own.

        A file that is not there is deleted.
        """
        ...

    def move(self, uri: str, target: str) -> None:
        """Move a file; its time stays, folders are made. Never over another file.

        Raises:
            FileExistsError: There is something at the target.
            FileNotFoundError: There is no such file.
        """
        ...

    def read(self, uri: str, *, first_bytes: int | None = None) -> bytes:
        """A small file's content, or its beginning.

        Raises:
            FileNotFoundError: There is no such file.
        """
        ...

    def read_many(self, files: Iterable[StoredFile], *, last_bytes: int | None = None) -> Iterator[bytes]:
        """The content of files as they were listed, or its end, in order; many at once where that is quicker.

        Raises:
            FileNotFoundError: One is not there any more.
        """
        ...

    def write(self, uri: str, data: bytes) -> None:
        """Write a new file, durably; its folders are made.

        Raises:
            FileExistsError: It is there.
        """
        ...

    def clock_ms(self, uri: str) -> int | None:
        """Return the clock of a folder's storage, milliseconds since 1970 UTC, without leaving a file.

        None if the storage has no clock that can be read without a visible file.
        """
        ...


class OneByOne:
    """What ``FileStore`` promises of many files, by asking for one after the other.

    ``threads`` ask side by side. From ``list_from`` wanted names in one folder on, the folder is listed.
    """

    threads = 1
    list_from = 8
    asks_by_request = True
    renames_cheaply = True

    def children(self, uri: str, *, after: str = "") -> dict[str, StoredFile]:
        """See ``FileStore``."""
        raise NotImplementedError

    def status(self, uri: str) -> StoredFile | None:
        """See ``FileStore``."""
        raise NotImplementedError

    def read(self, uri: str, *, first_bytes: int | None = None) -> bytes:
        """See ``FileStore``."""
        raise NotImplementedError

    def read_many(self, files: Iterable[StoredFile], *, last_bytes: int | None = None) -> Iterator[bytes]:
        """See ``FileStore``."""
        return (self.read(file.uri) if last_bytes is None else self._end_of(file, last_bytes) for file in files)

    def _end_of(self, file: StoredFile, last_bytes: int) -> bytes:
        raise NotImplementedError

    def children_of(self, folders: Collection[str]) -> dict[str, dict[str, StoredFile]]:
        """See ``FileStore``."""
        return dict(zip(folders, self._abreast(self.children, folders), strict=True))

    def look_many(self, uris: Collection[str]) -> dict[str, StoredFile]:
        """See ``FileStore``."""
        by_folder: dict[str, list[str]] = defaultdict(list)
        for uri in uris:
            by_folder[uri.rpartition("/")[0]].append(uri)
        listed = [folder for folder, names in by_folder.items() if len(names) >= self.list_from]
        alone = [uri for names in by_folder.values() if len(names) < self.list_from for uri in names]
        found = dict(zip(alone, self._abreast(self.status, alone), strict=True))
        for folder, children in self.children_of(listed).items():
            found.update((uri, children.get(uri)) for uri in by_folder[folder])
        return {uri: file for uri, file in found.items() if file is not None}

    def here(self) -> FilesHere | None:
        """See ``FileStore``."""
        return None

    def delete_many(self, uris: Sequence[str]) -> dict[str, str] | None:
        """See ``FileStore``."""
        return None

    def _abreast(self, ask: Callable[[str], _Answer], uris: Collection[str]) -> list[_Answer]:
        if self.threads == 1 or len(uris) < 2:
            return [ask(uri) for uri in uris]
        with ThreadPoolExecutor(min(self.threads, len(uris)), thread_name_prefix="maintainer-look") as pool:
            return list(pool.map(ask, uris))


class LocalFiles(OneByOne):
    """Implements ``FileStore`` on a local disk."""

    asks_by_request = False

    def here(self) -> FilesHere | None:
        """See ``FileStore``."""
        from maintainer.delta.storage.files_here import OnDisk

        return OnDisk()

    def children(self, uri: str, *, after: str = "") -> dict[str, StoredFile]:
        """See ``FileStore``."""
        try:
            with os.scandir(local_path(uri)) as entries:
                files = {}
                for entry in entries:
                    if entry.name <= after:
                        continue
                    try:
                        entry_stat = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:  # deleted while we listed
                        continue
                    child = f"{uri}/{java_quote(entry.name)}"
                    files[child] = _of_stat(child, entry_stat)
                return files
        except (FileNotFoundError, NotADirectoryError):
            return {}

    def status(self, uri: str) -> StoredFile | None:
        """See ``FileStore``."""
        try:
            return _of_stat(uri, os.lstat(local_path(uri)))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def delete(self, uri: str) -> bool:
        """See ``FileStore``. The checksum that Hadoop keeps beside a file goes with it."""
        path = local_path(uri)
        try:
            if stat.S_ISDIR(os.lstat(path).st_mode):
                os.rmdir(path)
                return True
            os.unlink(path)
        except FileNotFoundError:
            return False
        with contextlib.suppress(FileNotFoundError):
            os.unlink(_checksum_of(path))
        return True

    def move(self, uri: str, target: str) -> None:
        """See ``FileStore``. By a second link, which never replaces a file; by a rename where there are no links."""
        source, goal = local_path(uri), local_path(target)
        os.makedirs(os.path.dirname(goal), exist_ok=True)
        try:
            os.link(source, goal, follow_symlinks=False)
        except FileExistsError:
            raise
        except OSError:
            if not os.path.lexists(source):
                raise FileNotFoundError(source) from None
            if os.path.lexists(goal):
                raise FileExistsError(goal) from None
            os.rename(source, goal)
        else:
            try:
                os.unlink(source)
            except OSError:
                os.unlink(goal)
                raise
        with contextlib.suppress(FileNotFoundError):
            os.unlink(_checksum_of(source))

    def read(self, uri: str, *, first_bytes: int | None = None) -> bytes:
        """See ``FileStore``."""
        with open(local_path(uri), "rb") as file:
            return file.read(-1 if first_bytes is None else first_bytes)

    def _end_of(self, file: StoredFile, last_bytes: int) -> bytes:
        with open(local_path(file.uri), "rb") as stored:
            stored.seek(max(0, file.size_bytes - last_bytes))
            return stored.read(last_bytes)

    def write(self, uri: str, data: bytes) -> None:
        """See ``FileStore``."""
        path = local_path(uri)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "xb") as file:
            try:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            except BaseException:
                os.unlink(path)
                raise

    def clock_ms(self, uri: str) -> int | None:
        """See ``FileStore``. Uses a file without a name, which Linux and most of its local file systems have."""
        without_name: int | None = getattr(os, "O_TMPFILE", None)
        if without_name is None:
            return None
        try:
            file = os.open(local_path(uri), without_name | os.O_WRONLY, 0o600)
        except OSError:
            return None
        try:
            return os.fstat(file).st_mtime_ns // 1_000_000
        finally:
            os.close(file)


def _of_stat(uri: str, file_stat: os.stat_result) -> StoredFile:
    link, folder = stat.S_ISLNK(file_stat.st_mode), stat.S_ISDIR(file_stat.st_mode)
    size_bytes = 0 if folder else file_stat.st_size
    identity = (file_stat.st_dev, file_stat.st_ino) if file_stat.st_ino else None
    return StoredFile(uri, size_bytes, file_stat.st_mtime_ns // 1_000_000, folder, link, identity)


def _checksum_of(path: str) -> str:
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.crc")
