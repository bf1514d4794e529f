"""Files on a local disk, through the operating system.

A vacuum looks at thousands of files. Hadoop's local file system starts a process or reads attributes several times for
each, so a local disk is read directly.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Collection, Iterator, Mapping

from maintainer.delta.storage.file_store import FileStore, StoredFile, java_quote, local_path


class OnDisk:
    """Implements ``FilesHere`` for a local disk: nothing is copied."""

    def fetch(self, sizes: Mapping[str, int | None]) -> None:
        """Files of a disk are there already."""

    def path(self, uri: str) -> str:
        return local_path(uri)

    def publish(self, uri: str) -> StoredFile:
        """Who wrote it has synced it."""
        status = os.stat(local_path(uri))
        return StoredFile(uri, status.st_size, status.st_mtime_ns // 1_000_000, False, False)

    def close(self) -> None:
        """No copy has to be removed."""


class LocalFiles(FileStore):
    """Implements ``FileStore`` on a local disk."""

    asks_by_request = False

    def here(self, scratch: str | None = None) -> OnDisk:
        return OnDisk()

    def children(self, uri: str, *, after: str = "") -> dict[str, StoredFile]:
        return {file.uri: file for file in _scanned(uri, after)}

    def listed_in(self, folders: Collection[str]) -> Iterator[StoredFile]:
        return (file for folder in folders for file in _scanned(folder))

    def status(self, uri: str) -> StoredFile | None:
        try:
            return _of_stat(uri, os.lstat(local_path(uri)))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def delete(self, uri: str) -> bool:
        """The checksum that Hadoop keeps beside a file goes with it."""
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
        """By a second link, which never replaces a file; by a rename where there are no links."""
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
        with open(local_path(uri), "rb") as file:
            return file.read(-1 if first_bytes is None else first_bytes)

    def read_end(self, file: StoredFile, last_bytes: int) -> bytes:
        with open(local_path(file.uri), "rb") as stored:
            stored.seek(max(0, file.size_bytes - last_bytes))
            return stored.read(last_bytes)

    def write(self, uri: str, data: bytes) -> None:
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
        """Uses a file without a name, which Linux and most of its local file systems have."""
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


def _scanned(uri: str, after: str = "") -> Iterator[StoredFile]:
    """Yield the children of a folder with names behind ``after``."""
    try:
        with os.scandir(local_path(uri)) as entries:
            for entry in entries:
                if entry.name <= after:
                    continue
                try:
                    entry_stat = entry.stat(follow_symlinks=False)
                except FileNotFoundError:  # deleted while we listed
                    continue
                child = f"{uri}/{java_quote(entry.name)}"
                yield _of_stat(child, entry_stat)
    except (FileNotFoundError, NotADirectoryError):
        return


def _of_stat(uri: str, file_stat: os.stat_result) -> StoredFile:
    link, folder = stat.S_ISLNK(file_stat.st_mode), stat.S_ISDIR(file_stat.st_mode)
    size_bytes = 0 if folder else file_stat.st_size
    identity = (file_stat.st_dev, file_stat.st_ino) if file_stat.st_ino else None
    return StoredFile(uri, size_bytes, file_stat.st_mtime_ns // 1_000_000, folder, link, identity)


def _checksum_of(path: str) -> str:
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.crc")
