"""What a store says of an object, and the tag that names its very content."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from obstore import ObjectMeta, PutResult, UpdateVersion


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object as a listing has it. ``modified_ms`` is the store's own clock, milliseconds since 1970 UTC."""

    name: str
    size_bytes: int
    tag: str
    modified_ms: int


@dataclass(frozen=True, slots=True)
class ObjectBody:
    """An object as it was read. ``tag`` names this very content."""

    data: bytes
    tag: str = ""


def stored_object(meta: ObjectMeta) -> StoredObject:
    """Return what obstore says of an object."""
    return StoredObject(meta["path"], meta["size"], tag_of(meta), int(meta["last_modified"].timestamp() * 1000))


def content_tag(tag: str) -> str:
    """Return the part of an object's tag that a listing has, too.

    Google, and a bucket of S3 that keeps versions, name a version where an object is read or written, and none in a
    listing; a server of Google's protocol writes no quotation marks there.
    """
    return tag.partition("\n")[0].strip('"')


def tag_of(meta: PutResult | ObjectMeta) -> str:
    """Return the tag of what was read, listed or written: the ETag, and the version where one is named."""
    return f"{meta['e_tag'] or ''}\n{meta['version'] or ''}"


def condition_of(tag: str) -> UpdateVersion:
    """Return the condition of a write: S3 and Azure compare the ETag, Google the generation."""
    e_tag, _, version = tag.partition("\n")
    return {"e_tag": e_tag, "version": version} if version else {"e_tag": e_tag}
