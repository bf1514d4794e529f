"""One folder of an object store: list, get, put, and documents that are replaced only as they were read.

obstore does the requests, signs them and repeats those that fail for a moment. What it raises becomes a
``StoreFailure`` (``store_failures``): an ``OSError`` like that of a disk, with the code of its true cause.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from maintainer.engine.store.cloud_settings import StoreSettings
from maintainer.engine.store.request_count import REQUEST_COUNT, lists_of, writes_of
from maintainer.engine.store.store_clients import (
    OF_THE_STATE,
    ObjectBody,
    RequestLimits,
    StoredObject,
    clients,
    condition_of,
    stored_object,
    tag_of,
)
from maintainer.engine.store.store_failures import (
    NO_CONDITIONS,
    TOO_MANY,
    UNREACHABLE,
    StoreFailure,
    is_no_bucket,
    missing_bucket,
    store_failure,
    translated,
)
from maintainer.engine.store.store_pace import StorePace
from maintainer.errors import EnvironmentUnfit
from maintainer.model.table.store_requests import StoreRequests

if TYPE_CHECKING:
    from obstore import Bytes, GetResult, ObjectMeta
    from obstore.store import ObjectStore

_Answer = TypeVar("_Answer")

MAX_OBJECTS = 200_000
"""More than a state has of what runs that go on need: leases, signs of life, requests to stop."""

REQUESTS_ABREAST = 32
"""Requests side by side in this process, of all tables together: more get a store to throttle, and gain little."""

CONFLICT_PAUSES_SECONDS = (0.1, 0.5, 2.0)
"""Waits before a name is created again of which the store says that it is there, and it is not: S3 answers 409 while
another request for the name is under way, and obstore says the same of 409 and 412."""

PIECE_BYTES = 4 << 20
"""So much of a body is in memory at once."""

ONE_PUT_BYTES, PART_BYTES = 512 << 20, 16 << 20
"""Files up to so many bytes are one request, and the store's answer has a checksum of the whole; others go in parts,
and are read back. At ``SLOWEST_BYTES_PER_SECOND`` the largest takes nearly as long as a request may."""

PROBE = "probe"


class ObjectStorage:
    """A folder of an object store. Used from several threads."""

    def __init__(
        self,
        client: ObjectStore,
        uri: str,
        pace: StorePace | None = None,
        sending: Callable[[int], ObjectStore] | None = None,
    ) -> None:
        """Use clients that are there.

        Args:
            client: For all requests but those with a body.
            uri: The folder.
            pace: Of the requests of the store; None for one of its own that never waits.
            sending: Gives the client for a body of so many bytes; None for the same.
        """
        self._client = client
        self.uri = uri.rstrip("/")
        self._pace = pace or StorePace(REQUESTS_ABREAST, 0.0)
        self._sending = sending or (lambda num_bytes: client)

    @staticmethod
    def open(uri: str, settings: StoreSettings, limits: RequestLimits = OF_THE_STATE) -> ObjectStorage:
        """Make a client; nothing is asked yet.

        Raises:
            EnvironmentUnfit: E681, the settings cannot be used, or obstore is not installed.
        """
        try:
            sending = clients(settings, limits)
            client = sending(0)
        except ImportError as error:
            help = "pip install 'maintainer[read]'"
            raise EnvironmentUnfit(
                "obstore is not installed, which a state on an object store needs",
                code=UNREACHABLE, where=uri, found=str(error), help=help,
            ) from error  # fmt: skip
        except Exception as error:
            raise store_failure(error).unfit(uri) from error
        return ObjectStorage(client, uri, StorePace(REQUESTS_ABREAST, limits.paced_seconds), sending)

    def listed(self, prefix: str) -> list[StoredObject]:
        """Return all objects of a folder of the state, sorted by name; see ``below``.

        Raises:
            StoreFailure: They cannot be listed, or are more than ``MAX_OBJECTS``.
        """
        objects: list[StoredObject] = []
        for stored in self.below(prefix):
            objects.append(stored)
            if len(objects) > MAX_OBJECTS:
                raise StoreFailure(TOO_MANY, f"{prefix} has more than {MAX_OBJECTS:,}")
        return sorted(objects, key=lambda stored: stored.name)

    def below(self, prefix: str, after: str | None = None) -> Iterator[StoredObject]:
        """Yield the objects at any depth below a folder, page by page, in the store's order.

        Args:
            prefix: The folder.
            after: Only names behind this one, in the order of their bytes.

        Raises:
            StoreFailure: They cannot be listed.
        """
        import obstore

        pages: Iterator[Sequence[ObjectMeta]] | None = None
        num_names = 0

        def next_page() -> Sequence[ObjectMeta]:
            nonlocal pages, num_names
            if pages is None:
                num_names = 0
                REQUEST_COUNT.add(lists_of(0))
            listing, pages = pages or iter(obstore.list(self._client, prefix=prefix, offset=after)), None
            page = next(listing, ())
            REQUEST_COUNT.add(lists_of(num_names + len(page)) - lists_of(num_names))
            num_names += len(page)
            pages = listing  # one that failed is begun again behind the last name
            return page

        while page := self._ask(next_page, StoreRequests()):
            yield from map(stored_object, page)
            after = page[-1]["path"]

    def children(self, prefix: str) -> tuple[list[StoredObject], list[str]]:
        """Return the objects right below a folder, and the names of the folders there.

        Raises:
            StoreFailure: They cannot be listed.
        """
        import obstore

        page = self._ask(lambda: obstore.list_with_delimiter(self._client, prefix=prefix), lists_of(0))
        REQUEST_COUNT.add(lists_of(len(page["objects"]) + len(page["common_prefixes"])) - lists_of(0))
        return [stored_object(meta) for meta in page["objects"]], list(page["common_prefixes"])

    def head(self, name: str) -> StoredObject | None:
        """Return what the store says of one object; None where there is none.

        Raises:
            StoreFailure: It cannot be asked.
        """
        import obstore

        return self._found(lambda: stored_object(obstore.head(self._client, name)), StoreRequests(looks=1))

    def read_range(self, name: str, start: int, length_bytes: int) -> bytes | None:
        """Return some bytes of an object, as many as there are; None where there is none.

        Raises:
            StoreFailure: It cannot be read.
        """
        import obstore

        return self._found(
            lambda: bytes(obstore.get_range(self._client, name, start=start, length=length_bytes)),
            StoreRequests(reads=1),
        )

    def read(self, name: str) -> ObjectBody | None:
        """Return an object; None where there is none.

        Raises:
            StoreFailure: It cannot be read.
        """
        import obstore

        def body() -> ObjectBody:
            got = obstore.get(self._client, name)
            return ObjectBody(bytes(got.bytes()), tag_of(got.meta))

        return self._found(body, StoreRequests(reads=1))

    def write(self, name: str, data: bytes) -> str:
        """Write an object, whatever was there, and return its tag.

        Raises:
            StoreFailure: It cannot be written.
        """
        import obstore
        from obstore.exceptions import NotFoundError

        def written() -> str:
            try:
                return tag_of(obstore.put(self._sending(len(data)), name, data))
            except (NotFoundError, FileNotFoundError) as error:  # nothing needs to be there but the bucket
                raise missing_bucket(error) from error

        return self._ask(written, writes_of(len(data)))

    def download(self, name: str, path: str) -> tuple[int, str, str] | None:
        """Write an object into a new file, piece by piece; return its bytes, MD5 and tag. None where there is none.

        Raises:
            StoreFailure: It cannot be read.
            OSError: The file cannot be written.
        """
        import obstore

        def arrived() -> tuple[int, str, str] | None:
            got = _unless_missing(lambda: obstore.get(self._client, name))
            if got is None:
                return None
            digest, num_bytes = hashlib.md5(usedforsecurity=False), 0
            with open(path, "wb") as file:
                for piece in _pieces(got):
                    digest.update(piece)
                    num_bytes += len(piece)
                    file.write(piece)
            return num_bytes, digest.hexdigest(), tag_of(got.meta)

        return self._pace.asked(arrived, StoreRequests(reads=1))

    def upload(self, path: str, name: str) -> str:
        """Make an object of a file and return its tag: in one request if there is none yet, a large one in parts.

        A large one replaces what is there: give it a name that nobody has.

        Raises:
            StoreFailure: It cannot be written, or there is another one.
        """
        import obstore
        from obstore.exceptions import AlreadyExistsError

        size_bytes = os.stat(path).st_size
        in_parts, requests = size_bytes > ONE_PUT_BYTES, writes_of(size_bytes, ONE_PUT_BYTES, PART_BYTES)

        def stored() -> str:
            if in_parts:
                client = self._sending(PART_BYTES)
                return tag_of(obstore.put(client, name, Path(path), chunk_size=PART_BYTES, max_concurrency=4))
            try:
                client = self._sending(size_bytes)
                return tag_of(obstore.put(client, name, _mapped(path), mode="create", use_multipart=False))
            except AlreadyExistsError:
                return ""  # a try whose answer was lost, or another object: who asked compares

        for _ in _tries():
            tag = self._ask(stored, requests)
            if tag or self.head(name) is not None:
                break
        return tag

    def remove(self, name: str) -> None:
        """Delete an object; one that is gone already is no error.

        Raises:
            StoreFailure: It cannot be deleted.
        """
        import obstore

        def removed() -> None:
            with suppress(FileNotFoundError):
                obstore.delete(self._client, [name])

        self._ask(removed, StoreRequests(deletions=1))

    def replace(self, name: str, data: bytes, before: ObjectBody | None) -> bool:
        """Write an object if it still is what was read, or if there still is none; see ``Documents.replace``.

        Raises:
            StoreFailure: It cannot be written.
        """
        import obstore
        from obstore.exceptions import AlreadyExistsError, NotFoundError, PreconditionError

        def written() -> bool:
            try:
                client = self._sending(len(data))
                obstore.put(client, name, data, mode="create" if before is None else condition_of(before.tag))
            except (AlreadyExistsError, PreconditionError, NotFoundError, FileNotFoundError) as error:
                if is_no_bucket(error):
                    raise
                if before is None and isinstance(error, (NotFoundError, FileNotFoundError)):
                    raise missing_bucket(error) from error  # nothing needs to be there but the bucket
                return False
            return True

        for _ in _tries():
            if self._ask(written, StoreRequests(writes=1)):
                return True
            # A try whose answer was lost may have written it: the repeated one then finds its own content.
            now = self.read(name)
            if now is not None or before is not None:
                break
        return now is not None and now.data == data

    def _found(self, ask: Callable[[], _Answer], requests: StoreRequests) -> _Answer | None:
        """Ask for an object at the store's pace; None where there is none."""
        return self._pace.asked(lambda: _unless_missing(ask), requests)

    def _ask(self, ask: Callable[[], _Answer], requests: StoreRequests) -> _Answer:
        """Ask the store at its pace; never from within another question."""

        def asked() -> _Answer:
            with translated():
                return ask()

        return self._pace.asked(asked, requests)

    def store_ms(self) -> int:
        """Return the store's clock, milliseconds since 1970 UTC, after showing that it keeps the conditions of writes.

        Raises:
            StoreFailure: E684 where it does not; the store cannot be reached or written.
        """
        self.write(PROBE, secrets.token_bytes(8))
        unlike = secrets.token_bytes(8)
        for before in (None, ObjectBody(b"", '"0123456789abcdef0123456789abcdef"\n1')):
            if self.replace(PROBE, unlike, before):
                raise StoreFailure(NO_CONDITIONS, "a second write replaced what a first one had made")
        import obstore

        return self._ask(lambda: stored_object(obstore.head(self._client, PROBE)), StoreRequests(looks=1)).modified_ms


def _tries() -> Iterator[None]:
    yield
    for seconds in CONFLICT_PAUSES_SECONDS:
        time.sleep(seconds)
        yield


def _unless_missing(ask: Callable[[], _Answer]) -> _Answer | None:
    """Return an answer about an object; None where there is none, but the bucket is there."""
    with translated():
        try:
            return ask()
        except FileNotFoundError as error:
            if is_no_bucket(error):
                raise
            return None


def _pieces(got: GetResult) -> Iterator[Bytes]:
    """Yield a body piece by piece; what a writer of the pieces raises is not the store's."""
    with translated():
        yield from got.stream(min_chunk_size=PIECE_BYTES)


def _mapped(path: str) -> bytes | mmap.mmap:
    """The bytes of a file that nobody changes, without a copy in memory; they go when nobody has them any more."""
    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if os.stat(path).st_size else b""
