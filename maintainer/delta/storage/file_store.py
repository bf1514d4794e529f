"""Read, write, move and delete files by URI: local disks through the operating system, the rest through Hadoop.

A vacuum looks at thousands of files. Hadoop's local file system starts a process or reads attributes several times for
each, so a local disk is read directly. A call to the JVM costs 0.1 ms, so elsewhere all children of a folder cross in
one call.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import unquote

from maintainer.delta.jvm import DeltaJvm, JavaObject
from maintainer.delta.storage.failures.engine_failures import describe
from maintainer.delta.storage.failures.store_answers import refuses_credentials, says_no_reason

_UNQUOTED = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-!.~'()*,;:$&+=/@")
PLAIN = re.compile(r"[A-Za-z0-9_\-!.~'()*,;:$&+=/@]*")
"""Paths that are spelled the same with and without percent-encoding."""

_MISSING = frozenset({"FileNotFoundException", "NoSuchFileException"})
_STATUS = re.compile(
    r"^\w*FileStatus\{path=(?P<path>.*?); ?isDirectory=(?P<dir>true|false); ?(?:length=(?P<length>\d+);)?.*?"
    r"modification_time=(?P<time>\d+);.*?isSymlink=(?P<link>true|false)",
    re.DOTALL,
)
_NEXT_STATUS = re.compile(r", (?=\w*FileStatus\{path=)")


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
    """Operations on files; URIs are percent-encoded and in one spelling."""

    def children(self, uri: str, *, after: str = "") -> dict[str, StoredFile]:
        """The direct children of a folder by URI, those with names behind ``after``; none if there is no folder."""
        ...

    def status(self, uri: str) -> StoredFile | None:
        """One file's status, symlinks not followed; None if it is not there."""
        ...

    def delete(self, uri: str) -> bool:
        """Delete one file or empty folder; False if it was not there."""
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

    def read_many(self, files: Iterable[StoredFile]) -> Iterator[bytes]:
        """The content of files as they were listed, in order; many at once where that is quicker.

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


class LocalFiles:
    """Implements ``FileStore`` on a local disk."""

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

    def read_many(self, files: Iterable[StoredFile]) -> Iterator[bytes]:
        """See ``FileStore``."""
        return (self.read(file.uri) for file in files)

    def write(self, uri: str, data: bytes) -> None:
        """See ``FileStore``."""
        path = local_path(uri)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

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


class HadoopFiles:
    """Implements ``FileStore`` through a Hadoop file system."""

    def __init__(self, jvm: DeltaJvm, file_system: JavaObject) -> None:
        self._jvm = jvm
        self._fs = file_system

    def children(self, uri: str, *, after: str = "") -> dict[str, StoredFile]:
        """See ``FileStore``."""
        try:
            statuses = self._fs.listStatus(self._jvm.path(uri))
        except Exception as error:
            if says_missing(error):
                return {}
            raise
        text = self._jvm.text_of_array(statuses)
        parsed = parse_statuses(text)
        # Some file systems (viewfs) say their files' paths only where they are asked one by one.
        folder = uri.rstrip("/")
        if parsed is None or len(parsed) != len(statuses) or any(_folder_of(file) != folder for file in parsed):
            parsed = [self._stored(status) for status in statuses]
        return {file.uri: file for file in parsed if file.name > after}

    def status(self, uri: str) -> StoredFile | None:
        """See ``FileStore``."""
        try:
            return self._stored(self._fs.getFileLinkStatus(self._jvm.path(uri)))
        except Exception as error:
            if says_missing(error):
                return None
            if says_no_reason(describe(error)):
                self.children(uri)  # the answer to a list has a body: this raises with the reason
            raise

    def delete(self, uri: str) -> bool:
        """See ``FileStore``."""
        return bool(self._fs.delete(self._jvm.path(uri), False))

    def move(self, uri: str, target: str) -> None:
        """See ``FileStore``. HDFS refuses to rename over a file."""
        source, goal = self._jvm.path(uri), self._jvm.path(target)
        if self.status(uri) is None:
            raise FileNotFoundError(uri)
        if self.status(target) is not None:
            raise FileExistsError(target)
        self._fs.mkdirs(goal.getParent())
        if not self._fs.rename(source, goal):
            raise OSError(f"the file system refused to move {uri}")

    def read(self, uri: str, *, first_bytes: int | None = None) -> bytes:
        """See ``FileStore``."""
        try:
            stream = self._fs.open(self._jvm.path(uri))
        except Exception as error:
            if says_missing(error):
                raise FileNotFoundError(uri) from error
            raise
        try:
            return bytes(stream.readAllBytes() if first_bytes is None else stream.readNBytes(first_bytes))
        finally:
            stream.close()

    def read_many(self, files: Iterable[StoredFile]) -> Iterator[bytes]:
        """See ``FileStore``."""
        return (self.read(file.uri) for file in files)

    def write(self, uri: str, data: bytes) -> None:
        """See ``FileStore``."""
        if self.status(uri) is not None:
            raise FileExistsError(uri)
        stream = self._fs.create(self._jvm.path(uri), False)
        try:
            stream.write(bytearray(data))
        finally:
            stream.close()

    @staticmethod
    def _stored(status: JavaObject) -> StoredFile:
        uri = one_spelling(str(status.getPath().toUri().toString()))
        return StoredFile(
            uri=uri,
            size_bytes=int(status.getLen()),
            modification_time_ms=int(status.getModificationTime()),
            is_dir=bool(status.isDirectory()),
            # Hadoop's local file system follows links even where it is asked not to.
            is_symlink=bool(status.isSymlink()) or (uri.startswith("file:") and os.path.islink(local_path(uri))),
        )

    def clock_ms(self, uri: str) -> int | None:
        """See ``FileStore``."""
        return None


def _folder_of(file: StoredFile) -> str:
    return file.uri.rpartition("/")[0]


def parse_statuses(text: str) -> list[StoredFile] | None:
    """Read Java's text of an array of ``FileStatus``; None where it is not of a form known here."""
    body = text.removeprefix("Array(").removesuffix(")")
    if not body:
        return []
    files = []
    for status in _NEXT_STATUS.split(body):
        match = _STATUS.match(status)
        if match is None or "FileStatus{path=" in match["path"]:
            return None
        path = match["path"]
        scheme, colon, rest = path.partition(":")
        uri = f"{scheme}:{java_quote(rest)}" if colon and "/" not in scheme else java_quote(path)
        is_dir = match["dir"] == "true"
        if not is_dir and match["length"] is None:
            return None
        size, moment = int(match["length"] or 0), int(match["time"])
        files.append(StoredFile(one_spelling(uri), size, moment, is_dir, match["link"] == "true"))
    return files


def _of_stat(uri: str, file_stat: os.stat_result) -> StoredFile:
    link, folder = stat.S_ISLNK(file_stat.st_mode), stat.S_ISDIR(file_stat.st_mode)
    size_bytes = 0 if folder else file_stat.st_size
    identity = (file_stat.st_dev, file_stat.st_ino) if file_stat.st_ino else None
    return StoredFile(uri, size_bytes, file_stat.st_mtime_ns // 1_000_000, folder, link, identity)


def _checksum_of(path: str) -> str:
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.crc")


def says_missing(error: BaseException) -> bool:
    """Tell whether Hadoop says that there is no such file or folder."""
    chain = describe(error)
    return any(failure.type_name in _MISSING for failure in chain) and not refuses_credentials(chain)
