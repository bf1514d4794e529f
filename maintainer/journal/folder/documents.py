"""Documents that several runs share, such as leases and ``state.json``: each is replaced as a whole, or not at all.

Whoever replaces a document says which content it has read. If another run was faster, nothing is written, and the
caller reads again. ``LocalDocuments`` is a folder of this machine, ``StoreDocuments`` one of an object store.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from maintainer.engine.store.object_storage import ObjectStorage
from maintainer.engine.store.store_clients import ObjectBody
from maintainer.journal.folder.atomic_files import PRIVATE_FOLDER, exclusive, write_atomically
from maintainer.model.codec import decode

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_T = TypeVar("_T")
_Item = TypeVar("_Item")
_Answer = TypeVar("_Answer")
TRANSFERS = 16

MAX_TRIES = 10
"""So often a document is read again because another run replaced it in the meantime."""


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document as it was read. ``tag`` names this very content; only its folder reads it."""

    data: bytes
    tag: str = ""


class Documents(Protocol):
    """A folder of documents."""

    def names(self, before_ms: int | None = None) -> list[str]:
        """Return the names of all documents, sorted; with ``before_ms`` of those last written before it.

        Raises:
            OSError: They cannot be listed.
        """

    def read(self, name: str) -> StoredDocument | None:
        """Return a document; None where there is none.

        Raises:
            OSError: It cannot be read.
        """

    def replace(self, name: str, data: bytes, before: StoredDocument | None, *, durable: bool = True) -> bool:
        """Write a document if it still is what was read before; None: if there still is none.

        Returns:
            Whether it was written. False: another run was faster.

        Raises:
            OSError: It cannot be written, or whether it was written is not known.
        """

    def remove(self, name: str) -> None:
        """Delete a document that no run replaces any more; one that is gone already is no error.

        Raises:
            OSError: It cannot be deleted.
        """

    def place(self, name: str) -> str:
        """Return where a document is, for messages."""


def value_in(document: StoredDocument | None, kind: type[_T]) -> _T | None:
    """Return what a document says, as one value; None where there is none, or where it is damaged."""
    if document is None:
        return None
    try:
        return decode(kind, json.loads(document.data), ignore_unknown=True)
    except ValueError:
        return None


def data_of(value: DataclassInstance) -> bytes:
    """Return the content of a document that says this."""
    return json.dumps(asdict(value)).encode("utf-8", "surrogatepass")


def replaced(
    documents: Documents, name: str, change: Callable[[StoredDocument | None], bytes | None]
) -> StoredDocument | None:
    """Replace a document by what ``change`` makes of it; it is read again where another run was faster.

    Returns:
        The document as it was before. Where ``change`` returns None, it stays.

    Raises:
        OSError: It cannot be read or written, or other runs were faster each time.
    """
    for _ in range(MAX_TRIES):
        before = documents.read(name)
        data = change(before)
        if data is None or documents.replace(name, data, before):
            return before
    raise OSError(0, f"other runs replaced {name} {MAX_TRIES} times while it was read")


def abreast(ask: Callable[[_Item], _Answer], items: Iterable[_Item]) -> list[_Answer]:
    """Ask for several documents at once, and return the answers in order; the first failure is raised."""
    with ThreadPoolExecutor(TRANSFERS, thread_name_prefix="maintainer-fetch") as pool:
        return list(pool.map(ask, items))


@dataclass(frozen=True, slots=True)
class LocalDocuments:
    """Documents in a folder of this machine, or of a disk that several machines share and lock files on."""

    folder: Path

    def names(self, before_ms: int | None = None) -> list[str]:
        paths = [path for path in self.folder.glob("*.json") if not path.name.startswith(".")]
        if before_ms is not None:
            paths = [path for path in paths if path.stat().st_mtime_ns // 1_000_000 < before_ms]
        return sorted(path.name for path in paths)

    def read(self, name: str) -> StoredDocument | None:
        try:
            return StoredDocument((self.folder / name).read_bytes())
        except FileNotFoundError:
            return None

    def replace(self, name: str, data: bytes, before: StoredDocument | None, *, durable: bool = True) -> bool:
        """``durable=False`` leaves it to the system when it reaches the disk."""
        self.folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        with exclusive(self.folder / f".{name}.lock"):
            if self.read(name) != before:
                return False
            write_atomically(self.folder / name, data, durable=durable)
        return True

    def remove(self, name: str) -> None:
        """Its lock file, which has no content, goes with it."""
        for gone in (name, f".{name}.lock"):
            (self.folder / gone).unlink(missing_ok=True)

    def place(self, name: str) -> str:
        return str(self.folder / name)


@dataclass(frozen=True, slots=True)
class StoreDocuments:
    """Documents in one folder of an object store; see ``Documents``."""

    storage: ObjectStorage
    prefix: str

    def names(self, before_ms: int | None = None) -> list[str]:
        stored = self.storage.listed(self.prefix)
        return [
            each.name.removeprefix(self.prefix) for each in stored if before_ms is None or each.modified_ms < before_ms
        ]

    def read(self, name: str) -> StoredDocument | None:
        body = self.storage.read(self.prefix + name)
        return None if body is None else StoredDocument(body.data, body.tag)

    def replace(self, name: str, data: bytes, before: StoredDocument | None, *, durable: bool = True) -> bool:
        """What a store has taken is durable."""
        body = None if before is None else ObjectBody(before.data, before.tag)
        return self.storage.replace(self.prefix + name, data, body)

    def remove(self, name: str) -> None:
        self.storage.remove(self.prefix + name)

    def place(self, name: str) -> str:
        return f"{self.storage.uri}/{self.prefix}{name}"


def documents_in(storage: ObjectStorage, folder: str) -> StoreDocuments:
    """Return the documents of a folder; ``""`` is the state itself."""
    return StoreDocuments(storage, f"{folder}/" if folder else "")
