"""Open a table's files in this process: those of a disk where they are, those of a store as copies in a scratch folder.

What is written goes the other way: into the folder first, then whole onto the store, under a name that nobody has. A
new file counts as stored when the store names the MD5 of its bytes, or else when it was read back and is the same. So
what is proven of the copy holds for the object.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote

from maintainer.delta.storage.file_store import StoredFile, local_path
from maintainer.engine.store.object_storage import PIECE_BYTES
from maintainer.errors import CommitNotLanded

FETCHED_ABREAST = 16
"""Files of one bin that are fetched side by side; each is written to the disk as it arrives."""

_MD5 = re.compile(r'"?([0-9a-f]{32})"?')


class FilesHere(Protocol):
    """A table's files as paths of this machine. Used from several threads."""

    def fetch(self, sizes: Mapping[str, int | None]) -> None:
        """Bring files here that are not.

        Args:
            sizes: Bytes by URI, as the log says; None where it does not.

        Raises:
            TooLittleSpace: The scratch folder cannot hold them, and as much again.
            FileNotFoundError: One is not there.
            ShortFile: One has another length than the log says.
        """

    def path(self, uri: str) -> str:
        """Return where a file is, or where a new one is to be written."""

    def publish(self, uri: str) -> StoredFile:
        """Put a new file in its place, for good, and return what its storage says of it.

        Raises:
            CommitNotLanded: The store does not hold what was written.
        """

    def close(self) -> None:
        """Remove the copies."""


class TooLittleSpace(Exception):
    """The scratch folder is too small."""


class ShortFile(Exception):
    """A file has another length than the log says."""


class OnDisk:
    """Implements ``FilesHere`` for a local disk: nothing is copied."""

    def fetch(self, sizes: Mapping[str, int | None]) -> None:
        """See ``FilesHere``."""

    def path(self, uri: str) -> str:
        """See ``FilesHere``."""
        return local_path(uri)

    def publish(self, uri: str) -> StoredFile:
        """See ``FilesHere``. Who wrote it has synced it."""
        status = os.stat(local_path(uri))
        return StoredFile(uri, status.st_size, status.st_mtime_ns // 1_000_000, False, False)

    def close(self) -> None:
        """See ``FilesHere``."""


class Transfer(Protocol):
    """What a store can do with whole files."""

    def download(self, uri: str, path: str) -> tuple[int, str, str]:
        """Write an object into a new file; return its bytes, its MD5 and the store's tag."""

    def upload(self, path: str, uri: str) -> str:
        """Make an object of a file, unless there is one; return the store's tag."""

    def status(self, uri: str) -> StoredFile | None:
        """One object's status; None if it is not there."""


@dataclass(slots=True)
class TagTrust:
    """Whether a bucket's tags are MD5s of the content. They are none where keys of a service encrypt it."""

    is_md5: bool = True

    def names(self, tag: str, md5: str) -> bool:
        """Whether a tag says that the content has this MD5."""
        match = _MD5.fullmatch(tag.partition("\n")[0])
        return self.is_md5 and match is not None and match[1] == md5


@dataclass
class Fetched:
    """Implements ``FilesHere`` for a store. The folder is made when the first file is asked for."""

    store: Transfer
    trust: TagTrust
    _folder: Path | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _paths: dict[str, str] = field(default_factory=dict)

    def fetch(self, sizes: Mapping[str, int | None]) -> None:
        """See ``FilesHere``."""
        wanted = {uri: size for uri, size in sizes.items() if not os.path.exists(self.path(uri))}
        needed_bytes = 2 * sum(size or 0 for size in wanted.values())
        free_bytes = shutil.disk_usage(self._scratch()).free
        if needed_bytes > free_bytes:
            raise TooLittleSpace(f"{self._folder} has {free_bytes:,} bytes free, and {needed_bytes:,} are needed")
        if not wanted:
            return
        with ThreadPoolExecutor(min(FETCHED_ABREAST, len(wanted)), thread_name_prefix="maintainer-fetch") as pool:
            for _ in pool.map(self._fetch, wanted.items()):
                pass

    def _fetch(self, wanted: tuple[str, int | None]) -> None:
        uri, size_bytes = wanted
        path = self.path(uri)
        arriving = f"{path}.arriving"
        num_bytes, md5, tag = self.store.download(uri, arriving)
        if size_bytes is not None and num_bytes != size_bytes:
            raise ShortFile(f"{uri} has {num_bytes:,} bytes, and the log says {size_bytes:,}")
        if _MD5.fullmatch(tag.partition("\n")[0]) and self.trust.is_md5 and not self.trust.names(tag, md5):
            os.unlink(arriving)
            _, again, _ = self.store.download(uri, arriving)
            if again != md5:
                raise ShortFile(f"{uri} arrived twice with different bytes")
            self.trust.is_md5 = False
        os.rename(arriving, path)

    def path(self, uri: str) -> str:
        """See ``FilesHere``. Files of one name in two folders have two paths; the name's end stays readable."""
        with self._lock:
            known = self._paths.get(uri)
        if known is None:
            digest = hashlib.sha256(uri.encode("utf-8", "surrogateescape")).hexdigest()[:16]
            name = re.sub(r"[^A-Za-z0-9._=-]", "_", unquote(uri.rpartition("/")[2]))[-150:]
            known = str(self._scratch() / f"{digest}-{name}")
            with self._lock:
                self._paths[uri] = known
        return known

    def publish(self, uri: str) -> StoredFile:
        """See ``FilesHere``."""
        path = self.path(uri)
        size_bytes, md5 = os.stat(path).st_size, _md5_of(path)
        tag = self.store.upload(path, uri)
        stored = self.store.status(uri)
        if stored is None or stored.size_bytes != size_bytes:
            found = "it is not there" if stored is None else f"it has {stored.size_bytes:,} bytes"
            raise _not_as_written(uri, f"{size_bytes:,} bytes were written, and {found}")
        if not self.trust.names(tag, md5):
            back = f"{path}.back"
            _, stored_md5, _ = self.store.download(uri, back)
            os.unlink(back)
            if stored_md5 != md5:
                raise _not_as_written(uri, f"MD5 {md5} was written, and {stored_md5} is read")
            self.trust.is_md5 = False
        return stored

    def close(self) -> None:
        """See ``FilesHere``."""
        with self._lock:
            folder, self._folder = self._folder, None
            self._paths.clear()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def _scratch(self) -> Path:
        with self._lock:
            if self._folder is None:
                self._folder = Path(tempfile.mkdtemp(prefix="maintainer-"))
            return self._folder


def _not_as_written(uri: str, found: str) -> CommitNotLanded:
    return CommitNotLanded(
        "the store does not hold the new file as it was written; nothing was committed",
        where=uri,
        found=found,
        help="run `maintainer apply` again; if it happens again, look for a proxy or a store that changes content",
    )


def _md5_of(path: str) -> str:
    digest = hashlib.md5(usedforsecurity=False)
    with open(path, "rb") as file:
        while piece := file.read(PIECE_BYTES):
            digest.update(piece)
    return digest.hexdigest()
