"""Copies of a store's files in a scratch folder of this machine, and new files on their way back.

What is written goes into the folder first, then whole onto the store, under a name that nobody has. A new file counts
as stored when the store names the MD5 of its bytes, or else when it was read back and is the same. So what is proven of
the copy holds for the object.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar
from urllib.parse import unquote

from maintainer.delta.storage.file_store import StoredFile, TransferError
from maintainer.engine.store.object_storage import PIECE_BYTES
from maintainer.errors import CommitNotLanded
from maintainer.units import format_size

_Question = TypeVar("_Question")
_Answer = TypeVar("_Answer")

_MD5 = re.compile(r'"?([0-9a-f]{32})"?')


class Transfer(Protocol):
    """What a store can do with whole files."""

    def download(self, uri: str, path: str) -> tuple[int, str, str]:
        """Write an object into a new file; return its bytes, its MD5 and the store's tag. Raises ``TransferError``."""

    def upload(self, path: str, uri: str) -> str:
        """Make an object of a file, unless there is one; return the store's tag. Raises ``TransferError``."""

    def abreast(self, ask: Callable[[_Question], _Answer], questions: Collection[_Question]) -> list[_Answer]: ...

    def status(self, uri: str) -> StoredFile | None:
        """One object's status; None if it is not there."""


OTHER_TAGS = 8
"""So many objects with other tags, and a bucket that has MD5s as well is no longer expected to name them."""


@dataclass(slots=True)
class TagTrust:
    """Whether a bucket's tags are MD5s of the content. They are none where keys of a service encrypt it."""

    is_md5: bool = True
    num_others: int = 0
    has_md5: bool = False

    def says(self, tag: str, md5: str) -> bool | None:
        """Whether a tag says that the content has this MD5; None where it says nothing of it."""
        match = _MD5.fullmatch(tag.partition("\n")[0])
        if match is None or not self.is_md5:
            return None
        is_same = match[1] == md5
        self.has_md5 |= is_same
        return is_same

    def doubt(self) -> None:
        """Take in that the tag of an object is no MD5: of the others nothing is known, unless none had one so far."""
        self.num_others += 1
        self.is_md5 = self.has_md5 and self.num_others < OTHER_TAGS


@dataclass(slots=True)
class ScratchRoom:
    """How many bytes the scratch folders of this process may take, together.

    Attributes:
        most_bytes: The bound; None for half of what is free.
        shares: How many processes share it, each of which takes its part at most.
    """

    most_bytes: int | None = None
    shares: int = 1
    _taken_bytes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, compare=False)

    def take(self, size_bytes: int, folder: Path) -> None:
        """Take room for some bytes; raises ``TransferError`` where there is none."""
        with self._lock:
            free_bytes = shutil.disk_usage(folder).free
            most_bytes = (free_bytes + self._taken_bytes) // 2 if self.most_bytes is None else self.most_bytes
            room_bytes = most_bytes // self.shares
            if self._taken_bytes + size_bytes > room_bytes or size_bytes > free_bytes:
                taken, room = format_size(self._taken_bytes), format_size(room_bytes)
                raise TransferError(
                    f"{format_size(size_bytes)} are needed in {folder}; other bins take {taken} of {room}, and "
                    f"{format_size(free_bytes)} are free on the disk"
                )
            self._taken_bytes += size_bytes

    def give_back(self, size_bytes: int) -> None:
        """Let others have it."""
        with self._lock:
            self._taken_bytes -= size_bytes


SCRATCH_ROOM = ScratchRoom()


@dataclass
class Fetched:
    """Implements ``FilesHere`` for a store. A folder is made below ``scratch`` when the first file is asked for."""

    store: Transfer
    trust: TagTrust
    scratch: str | None = None
    _folder: Path | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _paths: dict[str, str] = field(default_factory=dict)
    _taken_bytes: int = 0

    def fetch(self, sizes: Mapping[str, int | None]) -> None:
        wanted = {uri: size for uri, size in sizes.items() if not os.path.exists(self.path(uri))}
        needed_bytes = 2 * sum(size or 0 for size in wanted.values())  # new files are at most as large as the old ones
        SCRATCH_ROOM.take(needed_bytes, self._scratch())
        with self._lock:
            self._taken_bytes += needed_bytes
        self.store.abreast(self._fetch, list(wanted.items()))

    def _fetch(self, wanted: tuple[str, int | None]) -> None:
        try:
            self._arrive(*wanted)
        except OSError as error:  # of the scratch folder: what the store raises has classes of its own
            raise TransferError(f"{self._folder}: {error.strerror}") from error

    def _arrive(self, uri: str, size_bytes: int | None) -> None:
        path = self.path(uri)
        arriving = f"{path}.arriving"
        num_bytes, md5, tag = self.store.download(uri, arriving)
        if size_bytes is not None and num_bytes != size_bytes:
            raise TransferError(f"{uri} has {num_bytes:,} bytes, and the log says {size_bytes:,}")
        if self.trust.says(tag, md5) is False:
            _, again, _ = self.store.download(uri, arriving)
            if again != md5:
                raise TransferError(f"{uri} arrived twice with different bytes")
            self.trust.doubt()
        os.rename(arriving, path)

    def path(self, uri: str) -> str:
        """Files of one name in two folders have two paths; the name's end stays readable."""
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
        path = self.path(uri)
        size_bytes, md5 = os.stat(path).st_size, _md5_of(path)
        tag = self.store.upload(path, uri)
        stored = self.store.status(uri)
        if stored is None or stored.size_bytes != size_bytes:
            found = "it is not there" if stored is None else f"it has {stored.size_bytes:,} bytes"
            raise _not_as_written(uri, f"{size_bytes:,} bytes were written, and {found}")
        said = self.trust.says(tag, md5)
        if not said:
            back = f"{path}.back"
            _, stored_md5, _ = self.store.download(uri, back)
            os.unlink(back)
            if stored_md5 != md5:
                raise _not_as_written(uri, f"MD5 {md5} was written, and {stored_md5} is read")
            if said is False:
                self.trust.doubt()
        return stored

    def close(self) -> None:
        with self._lock:
            folder, self._folder = self._folder, None
            taken_bytes, self._taken_bytes = self._taken_bytes, 0
            self._paths.clear()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        SCRATCH_ROOM.give_back(taken_bytes)

    def _scratch(self) -> Path:
        with self._lock:
            if self._folder is None:
                self._folder = Path(tempfile.mkdtemp(prefix="maintainer-", dir=self.scratch))
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
