"""The documents that runs share, in a folder of the object store that holds the state."""

from __future__ import annotations

from dataclasses import dataclass

from maintainer.engine.store.object_storage import ObjectStorage
from maintainer.engine.store.stored_object import ObjectBody
from maintainer.journal.folder.documents import Document


@dataclass(frozen=True, slots=True)
class StoreDocuments:
    """Documents in one folder of an object store; see ``Documents``."""

    storage: ObjectStorage
    prefix: str

    def names(self) -> list[str]:
        """See ``Documents``."""
        return [stored.name.removeprefix(self.prefix) for stored in self.storage.listed(self.prefix)]

    def read(self, name: str) -> Document | None:
        """See ``Documents``."""
        body = self.storage.read(self.prefix + name)
        return None if body is None else Document(body.data, body.tag)

    def replace(self, name: str, data: bytes, before: Document | None, *, durable: bool = True) -> bool:
        """See ``Documents``. What a store has taken is durable."""
        body = None if before is None else ObjectBody(before.data, before.tag)
        return self.storage.replace(self.prefix + name, data, body)

    def remove(self, name: str) -> None:
        """See ``Documents``."""
        self.storage.remove(self.prefix + name)

    def place(self, name: str) -> str:
        """See ``Documents``."""
        return f"{self.storage.uri}/{self.prefix}{name}"


def documents_in(storage: ObjectStorage, folder: str) -> StoreDocuments:
    """Return the documents of a folder; ``""`` is the state itself."""
    return StoreDocuments(storage, f"{folder}/" if folder else "")
