"""Files of S3, ADLS and GCS through obstore, without the JVM and many abreast.

Delta commits through Hadoop, so Hadoop's answer decides: what the store refuses to obstore (credentials that only
Hadoop finds, a name that obstore cannot spell) is asked again there, and what Hadoop then says is what the user reads.
A store that gives no answer, does not accept the keys that both have, or has no such bucket, is not asked twice.
"""

from __future__ import annotations

import os
import threading
import zlib
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TypeVar
from urllib.parse import unquote

from maintainer.delta.storage.failures.store_answers import (
    BucketMissing,
    KeysMissing,
    KeysRefused,
    StoreAway,
    StoreBusy,
    names_wrong_keys,
)
from maintainer.delta.storage.fetched_files import Fetched, TagTrust
from maintainer.delta.storage.file_store import (
    DeletedMany,
    FilesHere,
    FileStore,
    Listed,
    StoredFile,
    TransferError,
    java_quote,
    unheard,
)
from maintainer.engine.store.object_storage import PROBE, REQUESTS_ABREAST, ObjectStorage
from maintainer.engine.store.store_clients import StoredObject
from maintainer.engine.store.store_failures import BUSY, NO_BUCKET, NO_CREDENTIALS, NOT_TRUSTED, REFUSED, StoreFailure
from maintainer.model.table.store_requests import LISTED_AT_ONCE, MOST_LISTED

BODIES_KEPT_BYTES = 64 << 20
"""Bodies of the log that are kept, compressed, for whoever asks next: they never change while their tag is the same."""

END_KEPT_BYTES = 64 << 10
"""Of a data file that was fetched its end is kept until the check after the commit asks for it, once."""

_Question = TypeVar("_Question")
_Answer = TypeVar("_Answer")


@dataclass(slots=True)
class Bucket:
    """One bucket's client, shared by all tables of this process.

    ``reopen`` makes the same in another one, from the settings that this was made from. ``through_hadoop``: only Java
    can reach or open it. ``has_answered``: keys for it were found once.
    """

    storage: ObjectStorage
    reopen: Callable[[], Bucket] | None = None
    through_hadoop: bool = False
    has_answered: bool = False
    tags: TagTrust = field(default_factory=TagTrust)


@dataclass(slots=True)
class _Process:
    """What this process keeps of what it read, and the threads that read."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    bodies: OrderedDict[tuple[str, str], bytes] = field(default_factory=OrderedDict)
    num_bytes: int = 0
    pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(REQUESTS_ABREAST, "store"))


_PROCESS = _Process()


def _keep(key: tuple[str, str], data: bytes) -> None:
    """Keep what was read for whoever asks next."""
    with _PROCESS.lock:
        if key not in _PROCESS.bodies:
            _PROCESS.bodies[key] = data
            _PROCESS.num_bytes += len(data)
        while _PROCESS.num_bytes > BODIES_KEPT_BYTES:
            _PROCESS.num_bytes -= len(_PROCESS.bodies.popitem(last=False)[1])


def _key_of_end(uri: str, size_bytes: int) -> tuple[str, str]:
    """What the end of a data file is kept under: names of data files are never given twice."""
    return uri, f"end of {size_bytes}"


class ObjectFiles(FileStore):
    """Implements ``FileStore`` on a bucket or container."""

    list_from = 2
    renames_cheaply = False
    has_links = False

    def __init__(
        self, base_uri: str, bucket: Bucket, hadoop: Callable[[], FileStore], *, hadoop_has_more_keys: bool = True
    ) -> None:
        self._base_uri = base_uri.rstrip("/")
        self._bucket = bucket
        self._open_hadoop = hadoop
        self._hadoop_has_more_keys = hadoop_has_more_keys

    def __reduce__(self) -> tuple[object, ...]:
        """Pickled, it is what opens the store in another process, where there is no Hadoop beside it."""
        return _without_hadoop, (self._base_uri, self._bucket.reopen)

    def children(self, uri: str, *, after: str = "") -> dict[str, StoredFile]:
        """A listing that begins behind a name leaves folders out."""
        folder = self._name(uri)
        prefix = f"{folder}/" if folder else ""

        def listed() -> dict[str, StoredFile]:
            if after:
                found = self._bucket.storage.below(prefix, f"{prefix}{after}")
                objects, folders = [stored for stored in found if "/" not in stored.name[len(prefix) :]], list[str]()
            else:
                objects, folders = self._bucket.storage.children(prefix)
            names = {name.rstrip("/") for name in folders}
            files = [StoredFile(self._uri(name), 0, 0, True, False) for name in names]
            # An empty object with a folder's name is how some programs mark that there is one.
            files += [self._stored(stored) for stored in objects if stored.name not in names | {folder}]
            return {file.uri: file for file in sorted(files, key=lambda file: file.uri)}

        return self._asked(listed, lambda files: files.children(uri, after=after))

    def status(self, uri: str) -> StoredFile | None:
        name = self._name(uri)

        def looked() -> StoredFile | None:
            stored = self._bucket.storage.head(name) if name else None
            if stored is not None:
                return self._stored(stored)
            is_folder = next(iter(self._bucket.storage.below(f"{name}/" if name else "")), None) is not None
            return StoredFile(uri, 0, 0, True, False) if is_folder else None

        return self._asked(looked, lambda files: files.status(uri))

    def children_of(self, folders: Collection[str], listed: Listed = unheard) -> dict[str, dict[str, StoredFile]]:
        """By one listing of all that lies below them, while that takes no more requests."""
        tree = None if len(folders) < 2 else self._asked(lambda: self._tree(folders, listed), lambda files: None)
        found = super().children_of(folders, listed) if tree is None else tree
        return {folder: found.get(folder, {}) for folder in folders}

    def listed_in(self, folders: Collection[str]) -> Iterator[StoredFile]:
        """By one listing, as ``children_of``."""
        tree = None if len(folders) < 2 else self._asked(lambda: self._tree(folders, unheard), lambda files: None)
        yield from (file for folder in folders for file in (tree or {}).get(folder, {}).values())
        waiting = iter(folders if tree is None else ())
        while group := list(islice(waiting, REQUESTS_ABREAST)):
            for page, more in self.abreast(self._first_page, group):
                while page:
                    yield from page
                    page = self._answered(partial(_page_of, more))

    def _first_page(self, folder: str) -> tuple[list[StoredFile], Iterator[StoredFile]]:
        """Return the first files in a folder, and what yields the others."""
        more = self._entries(folder)
        page = self._asked(partial(_page_of, more), lambda files: list(files.children(folder).values()))
        return page, iter(()) if self._bucket.through_hadoop else more

    def _entries(self, uri: str) -> Iterator[StoredFile]:
        """Yield what lies in a folder, page by page; where folders lie there, too, all the rest by one listing."""
        prefix, last = f"{self._name(uri)}/".lstrip("/"), ""
        for stored in self._bucket.storage.below(prefix):
            if "/" in stored.name[len(prefix) :]:
                yield from (file for file in self.children(uri).values() if file.is_dir or self._name(file.uri) > last)
                return
            last = stored.name
            yield self._stored(stored)

    def _tree(self, folders: Collection[str], listed: Listed) -> dict[str, dict[str, StoredFile]] | None:
        """Return what lies in each folder below the one that holds them all; None where that is too much to list."""
        names = [self._name(folder) for folder in folders]
        above = os.path.commonpath(names) if all(names) else ""
        bound = min(len(folders) * LISTED_AT_ONCE, MOST_LISTED)
        tree: dict[str, dict[str, StoredFile]] = defaultdict(dict)
        untold: list[str] = []
        for number, stored in enumerate(self._bucket.storage.below(f"{above}/" if above else "")):
            if number >= bound:
                return None
            file = self._stored(stored)
            untold.append(file.uri)
            if len(untold) == LISTED_AT_ONCE:
                listed(untold)
                untold = []
            folder = file.uri.rpartition("/")[0]
            tree[folder].setdefault(file.uri, file)
            while folder != self._base_uri and len(folder) > len(self._uri(above)):
                parent = folder.rpartition("/")[0]
                if tree[parent].get(folder, file).is_dir:
                    break
                tree[parent][folder] = StoredFile(folder, 0, 0, True, False)  # also in place of what marks it
                folder = parent
        listed(untold)
        return tree

    def here(self, scratch: str | None = None) -> FilesHere | None:
        """None where this bucket is read through Hadoop alone."""
        return None if self._bucket.through_hadoop else Fetched(self, self._bucket.tags, scratch)

    def download(self, uri: str, path: str) -> tuple[int, str, str]:
        found = self._transferred(lambda: self._bucket.storage.download(self._name(uri), path))
        if found is None:
            raise TransferError(f"{uri} is not there")
        with open(path, "rb") as fetched:
            fetched.seek(max(0, found[0] - END_KEPT_BYTES))
            _keep(_key_of_end(uri, found[0]), fetched.read())
        return found

    def upload(self, path: str, uri: str) -> str:
        return self._transferred(lambda: self._bucket.storage.upload(path, self._name(uri)))

    def _transferred(self, transfer: Callable[[], _Answer]) -> _Answer:
        try:
            return self._answered(transfer)
        except StoreFailure as failure:
            raise TransferError(f"{self._base_uri}: {failure.found}") from failure

    def delete_many(self, uris: Sequence[str]) -> DeletedMany | None:
        """The client does not say which delete markers were made."""
        return self._open_hadoop().delete_many(uris)

    def uncover(self, markers: Mapping[str, str]) -> dict[str, str]:
        return self._open_hadoop().uncover(markers)

    def hiding(self, uris: Collection[str]) -> dict[str, str]:
        return self._open_hadoop().hiding(uris)

    def abreast(self, ask: Callable[[_Question], _Answer], questions: Collection[_Question]) -> list[_Answer]:
        """One bound holds for all tables of the process."""
        return list(_PROCESS.pool.map(ask, questions))

    def delete(self, uri: str) -> bool:
        return self._open_hadoop().delete(uri)

    def move(self, uri: str, target: str) -> None:
        """No store has a cheap rename."""
        self._open_hadoop().move(uri, target)

    def read(self, uri: str, *, first_bytes: int | None = None) -> bytes:
        name = self._name(uri)

        def body() -> bytes:
            storage = self._bucket.storage
            if first_bytes is not None:
                start = storage.read_range(name, 0, first_bytes)
                if start is not None:
                    return start
            elif (whole := storage.read(name)) is not None:
                return whole.data
            raise FileNotFoundError(uri)

        return self._asked(body, lambda files: files.read(uri, first_bytes=first_bytes))

    def read_many(self, files: Iterable[StoredFile]) -> Iterator[bytes]:
        waiting: list[Future[bytes]] = []
        try:
            for file in files:
                waiting.append(_PROCESS.pool.submit(self._body, file))
                if len(waiting) > REQUESTS_ABREAST:
                    yield waiting.pop(0).result()
            while waiting:
                yield waiting.pop(0).result()
        finally:
            for future in waiting:
                future.cancel()

    def forget(self, folder: str) -> int:
        with _PROCESS.lock:
            below = [key for key in _PROCESS.bodies if key[0].startswith(f"{folder}/")]
            num_bytes = sum(len(_PROCESS.bodies.pop(key)) for key in below)
            _PROCESS.num_bytes -= num_bytes
        return num_bytes

    def write(self, uri: str, data: bytes) -> None:
        """One conditional request; where its answer was lost, what lies there decides."""

        def written() -> None:
            if not self._bucket.storage.replace(self._name(uri), data, None):
                raise FileExistsError(uri)

        self._asked(written, lambda files: files.write(uri, data))

    def replace(self, uri: str, data: bytes) -> None:
        def replaced() -> None:
            self._bucket.storage.write(self._name(uri), data)

        self._asked(replaced, lambda files: files.replace(uri, data))

    def read_end(self, file: StoredFile, last_bytes: int) -> bytes:
        """The end of a file which was fetched is there, once, and is returned as it is."""
        with _PROCESS.lock:
            kept = _PROCESS.bodies.pop(_key_of_end(file.uri, file.size_bytes), None)
            _PROCESS.num_bytes -= len(kept or b"")
        if kept is not None and len(kept) >= min(last_bytes, file.size_bytes):
            return kept
        name, start = self._name(file.uri), max(0, file.size_bytes - last_bytes)

        def end() -> bytes:
            found = self._bucket.storage.read_range(name, start, last_bytes)
            if found is None:
                raise FileNotFoundError(file.uri)
            return found

        return self._asked(end, lambda files: files.read_end(file, last_bytes))

    def _body(self, file: StoredFile) -> bytes:
        """Read a whole file, from what is kept where it is the same one."""
        key = (file.uri, file.tag)
        with _PROCESS.lock:
            kept = _PROCESS.bodies.get(key)
        if kept is not None:
            return zlib.decompress(kept)
        data = self.read(file.uri)
        if len(data) != file.size_bytes:  # cut, or unpacked on its way; or it is another one by now
            return self._open_hadoop().read(file.uri)
        # 43,200 commits, one a minute for 30 days, have 86 MB; one of 25,000 removals has 5.7 MB, and 0.9 MB packed.
        packed = zlib.compress(data, 1) if file.tag and len(data) <= BODIES_KEPT_BYTES else b""
        if packed and len(packed) <= BODIES_KEPT_BYTES // 4:
            _keep(key, packed)
        return data

    def _asked(self, ask: Callable[[], _Answer], through_hadoop: Callable[[FileStore], _Answer]) -> _Answer:
        if not self._bucket.through_hadoop:
            try:
                return self._answered(ask)
            except StoreFailure as failure:
                if failure.may_pass and self._bucket.has_answered:
                    # A cloud's role has keys for hours: it did not give the next ones yet.
                    raise StoreBusy(f"{self._base_uri}: {failure.found}") from None
                if failure.code == NO_CREDENTIALS and not self._hadoop_has_more_keys:
                    raise KeysMissing(f"{self._base_uri}: {failure.found}") from None
                if failure.code in (NO_CREDENTIALS, NOT_TRUSTED):
                    self._bucket.through_hadoop = True
                elif failure.code == REFUSED:
                    self._raise_if_keys_are_wrong()
        return through_hadoop(self._open_hadoop())

    def _raise_if_keys_are_wrong(self) -> None:
        """Ask for a list of nothing: its name is spelled alike by every client, and an answer to it says why.

        Raises:
            KeysRefused: The store does not accept the keys.
        """
        try:
            next(self._bucket.storage.below(PROBE), None)
        except StoreFailure as failure:
            if names_wrong_keys(failure.found):
                raise KeysRefused(f"{self._base_uri}: {failure.found}") from None

    def _answered(self, ask: Callable[[], _Answer]) -> _Answer:
        """Ask, and tell a store that gave no answer, or has no such bucket, from one that refused."""
        try:
            answer = ask()
        except StoreFailure as failure:
            otherwise = StoreAway if failure.gave_no_answer else None
            kind = {BUSY: StoreBusy, NO_BUCKET: BucketMissing}.get(failure.code, otherwise)
            if kind is None:
                raise
            raise kind(f"{self._base_uri}: {failure.found}") from None
        self._bucket.has_answered = True
        return answer

    def _name(self, uri: str) -> str:
        """The key of an object: the path of its URI, decoded once. ``TransferError`` for another place's."""
        if not f"{uri}/".startswith(f"{self._base_uri}/"):
            raise TransferError(f"{uri} is not on {self._base_uri}")
        return unquote(uri[len(self._base_uri) + 1 :], errors="surrogateescape").rstrip("/")

    def _uri(self, name: str) -> str:
        return f"{self._base_uri}/{java_quote(name)}"

    def _stored(self, stored: StoredObject) -> StoredFile:
        return StoredFile(
            self._uri(stored.name), stored.size_bytes, stored.modified_ms, False, False, tag=stored.tag.strip()
        )


def _page_of(files: Iterator[StoredFile]) -> list[StoredFile]:
    return list(islice(files, LISTED_AT_ONCE))


def _without_hadoop(base_uri: str, reopen: Callable[[], Bucket]) -> ObjectFiles:
    def hadoop() -> FileStore:
        raise TransferError(f"{base_uri} is read through Hadoop alone")

    return ObjectFiles(base_uri, reopen(), hadoop)
