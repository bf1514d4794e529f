"""Decide which spellings mean one file, by asking the storage and not by the text alone.

A log may name one file as ``part-1``, ``./part-1`` and ``file:/link/table/part-1``. On a local disk two names are one
file if device and inode are the same, or if they are the same name in the same real folder. On other storage the
canonical URI decides. In doubt two names count as one file: then a file stays that could have been deleted.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Set
from dataclasses import dataclass
from pathlib import Path

from maintainer.delta.storage.file_store import StoredFile, java_quote, last_name, local_path, one_spelling
from maintainer.model.table.store_kinds import store_kind

FileIdentity = str | tuple[int, int]
"""A canonical URI (on a local disk with its folder's real path), or device and inode."""


def canonical_uri(uri: str) -> str:
    """Return the one spelling of a place: schemes of one store are equal, and local links are resolved."""
    if uri.startswith("/"):
        uri = "file:" + uri
    scheme, _, rest = one_spelling(uri).rstrip("/").partition(":")
    if scheme.lower() == "file":
        return "file:" + java_quote(os.path.realpath(local_path(f"file:{rest}")))
    return f"{store_kind(uri).spelled}:{rest}"


def is_really_below(root_uri: str, folder_uri: str) -> bool:
    """Whether a folder is the root or below it with all symlinks followed; always true off a local disk."""
    if not root_uri.startswith("file:") or not folder_uri.startswith("file:"):
        return True
    root, folder = os.path.realpath(local_path(root_uri)), os.path.realpath(local_path(folder_uri))
    return os.path.commonpath([root, folder]) == root


def empty_folder(uri: str) -> str | None:
    """Return the folder in which a path ends on a local disk, if nothing is in it; None where something may be."""
    if not uri.startswith("file:"):
        return None
    folder = Path(local_path(uri))
    while not os.path.isdir(folder):
        folder = folder.parent
    try:
        return None if any(folder.iterdir()) else str(folder)
    except OSError:  # not to be listed: a disk that is not mounted leaves a folder that is
        return None


@dataclass(frozen=True, slots=True)
class FileNeed:
    """Why a file is needed: the spelling under which it is. ``certain`` is false where only the names are the same."""

    uri: str
    certain: bool


class NeededFiles:
    """Files that have to stay, by everything that identifies them.

    A folder's links are followed once: one that is changed later is not noticed.
    """

    def __init__(self) -> None:
        self._folders: dict[str, str] = {}
        self._spellings: dict[FileIdentity, str] = {}
        self._elsewhere: dict[str, list[tuple[str, int | None]]] = {}
        self._there: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._spellings)

    def _place(self, uri: str) -> str:
        """The URI of a file with its folder's links resolved; the file itself may be a link."""
        folder, _, name = uri.rpartition("/")
        if folder not in self._folders:
            self._folders[folder] = canonical_uri(folder)
        resolved = self._folders[folder]
        return uri if resolved == folder else f"{resolved}/{name}"

    def add(self, uris: Iterable[str], *, root_uri: str | None = None) -> None:
        """Add files as they are now.

        Args:
            uris: Percent-encoded and qualified.
            root_uri: Where the table lies whose log names them relative to it; None where all are absolute.
        """
        prefix = None if root_uri is None else root_uri + "/"
        for uri in uris:
            place = self._place(uri)
            self._spellings.setdefault(place, uri)
            device = None
            if place.startswith("file:"):
                try:
                    stat = os.stat(local_path(uri))
                except OSError:
                    # Gone, or not to be reached from this machine: its name protects it, and for a link its target's.
                    with contextlib.suppress(OSError):
                        target = os.path.basename(os.readlink(local_path(uri)))
                        self._elsewhere.setdefault(target, []).append((place, None))
                else:
                    device = stat.st_dev
                    self._there[uri] = place
                    if stat.st_ino:
                        self._spellings.setdefault((stat.st_dev, stat.st_ino), uri)
            if prefix is None or not uri.startswith(prefix):
                self._elsewhere.setdefault(last_name(uri), []).append((place, device))

    def need_of(self, file: StoredFile) -> FileNeed | None:
        """Why a file that lies in the table's folder is needed; None where nothing needs it."""
        place = self._place(file.uri)
        for key in (place, file.device_and_inode):
            if key is not None and key in self._spellings:
                return FileNeed(self._spellings[key], certain=True)
        for other, device in self._elsewhere.get(file.name, ()):
            if not _are_two_files(place, file.device_and_inode, other, device):
                return FileNeed(self._spellings[other], certain=False)
        return None

    def is_known_as(self, uri: str) -> bool:
        """Whether a URI, as it is spelled or resolved, is among them."""
        return self._place(uri) in self._spellings

    def gone_since(self, before: Set[str], after: Set[str]) -> list[str]:
        """Return the needed files that were on storage before and are not now.

        Args:
            before: URIs of what was listed before; on a local disk each file was looked at itself.
            after: The same, now.
        """
        gone = {self._place(uri) for uri in before - after}
        places = gone - {place for uri in after if (place := self._place(uri)) in gone}
        missing = {uri for key, uri in self._spellings.items() if key in places}
        return sorted(missing | {uri for uri in self._there if not os.path.exists(local_path(uri))})


def _are_two_files(place: str, identity: tuple[int, int] | None, other: str, device: int | None) -> bool:
    """Whether two files of one name are certainly not the same one.

    A path that is not there may be written from another machine's view, one on another device may be a second mount of
    the same disk, and one with another scheme or host may be another way to the same store.
    """
    if place.startswith("file:"):
        return identity is not None and device == identity[0]
    return _store_of(place) == _store_of(other)


def _store_of(place: str) -> str:
    """Scheme and authority of a canonical URI."""
    scheme, _, rest = place.partition(":")
    return f"{scheme}:{rest[2:].partition('/')[0] if rest.startswith('//') else ''}"
