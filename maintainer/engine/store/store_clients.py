"""Make the clients of a store: how long each waits, and how often it repeats a request.

A client's limit of silence also runs while a body is sent, when no store says anything. So the client that sends one is
chosen by its size. What such a client says of an object is read here, too, with the tag that names its very content.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from maintainer.engine.store.cloud_settings import StoreSettings, hidden_from_environment

if TYPE_CHECKING:
    from obstore import ObjectMeta, PutResult, UpdateVersion
    from obstore.store import ObjectStore

MAX_RETRIES = 6
RETRY_SECONDS = 20
FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 0.2, 5
"""A request is repeated so often and so long; then the store counts as gone. Each wait is up to three times the one
before, by chance. A store that is busy for some seconds ends no run: before each commit the state must be written."""

REQUEST_SECONDS, CONNECT_SECONDS = 15, 5

SLOWEST_BYTES_PER_SECOND = 1 << 20
"""A body that is sent more slowly is given up. Many tables share one line, so this is a fraction of it."""


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """How long a client waits.

    Attributes:
        request_seconds: For one whole request, with its body.
        silence_seconds: For the next bytes of an answer; longer while a large body is sent.
        retry_seconds: For a request with all its repetitions by obstore.
        fewer_retries: So many fewer than ``MAX_RETRIES``.
        paced_seconds: For a request that is sent again at the store's pace, after obstore gave it up; 0 for never.
    """

    request_seconds: float
    silence_seconds: float
    retry_seconds: float
    fewer_retries: int = 0
    paced_seconds: float = 0.0

    def silence_for(self, num_bytes: int) -> float:
        """Return the limit of silence while a body of so many bytes is sent: it is doubled until it is enough."""
        doublings = int(num_bytes / (SLOWEST_BYTES_PER_SECOND * self.silence_seconds)).bit_length()
        return min(self.request_seconds, self.silence_seconds * 2.0**doublings)


OF_THE_STATE = RequestLimits(REQUEST_SECONDS, REQUEST_SECONDS, RETRY_SECONDS)
OF_TABLES = RequestLimits(600, 15, 14, fewer_retries=5, paced_seconds=14)
"""A data file may take minutes; a store that says nothing for 15 seconds is not asked again. obstore repeats a request
once: what fails then slows all of them down (``store_pace``)."""


def clients(settings: StoreSettings, limits: RequestLimits) -> Callable[[int], ObjectStore]:
    """Return what gives the client for a request with a body of so many bytes; equal waits share one.

    Nothing is asked of the store.

    Raises:
        ImportError: obstore is not installed.
    """
    from obstore.store import from_url

    # The stubs have one overload for each cloud; which one it is, the URL says.
    make: Any = from_url
    # Amazon's SDK for Java asks a machine for its role in the old way, too.
    config = {**settings.config, **({"imdsv1_fallback": "true"} if settings.url.startswith("s3:") else {})}
    retry: Any = {
        "max_retries": max(0, MAX_RETRIES - limits.fewer_retries),
        "retry_timeout": timedelta(seconds=limits.retry_seconds),
        "backoff": {
            "init_backoff": timedelta(seconds=FIRST_WAIT_SECONDS),
            "max_backoff": timedelta(seconds=LONGEST_WAIT_SECONDS),
            "base": 3,
        },
    }

    @cache
    def client(silence_seconds: float) -> ObjectStore:
        options: Any = {
            "timeout": timedelta(seconds=limits.request_seconds),
            "read_timeout": timedelta(seconds=silence_seconds),
            "connect_timeout": timedelta(seconds=min(CONNECT_SECONDS, limits.silence_seconds)),
            **settings.client_options(),
        }
        with hidden_from_environment(settings):
            made: ObjectStore = make(settings.url, config=config, client_options=options, retry_config=retry)
        return made

    return lambda num_bytes: client(limits.silence_for(num_bytes))


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
