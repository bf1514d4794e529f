"""Files through a Hadoop file system: HDFS, mounts, and what no other client reaches.

A call to the JVM costs 0.1 ms, so all children of a folder cross in one call.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TypeVar
from urllib.parse import unquote

from maintainer.delta.jvm import DeltaJvm, JavaObject
from maintainer.delta.storage.failures.engine_failures import describe
from maintainer.delta.storage.failures.machine_failures import MISSING
from maintainer.delta.storage.failures.store_answers import refuses_credentials, says_busy, says_no_reason
from maintainer.delta.storage.file_store import DeletedMany, FileStore, StoredFile, java_quote, local_path, one_spelling
from maintainer.engine.store.object_storage import REQUESTS_ABREAST
from maintainer.engine.store.store_clients import OF_TABLES
from maintainer.engine.store.store_failures import BUSY, StoreFailure
from maintainer.engine.store.store_pace import StorePace
from maintainer.model.table.store_requests import StoreRequests

_STATUS = re.compile(
    r"^\w*FileStatus\{path=(?P<path>.*?); ?isDirectory=(?P<dir>true|false); ?(?:length=(?P<length>\d+);)?.*?"
    r"modification_time=(?P<time>\d+);.*?isSymlink=(?P<link>true|false)",
    re.DOTALL,
)
OBJECTS_AT_ONCE = 1000
"""Objects that one request deletes at most, as S3 has it."""

_Version = tuple[str, bool, bool]
"""Its id, whether it is a delete marker, and whether it is the newest."""

_PACE = StorePace(REQUESTS_ABREAST, OF_TABLES.paced_seconds)
"""Of requests by S3A's own client, which repeats one once: S3A's waits for a busy store are around its other calls."""

_Answer = TypeVar("_Answer")

_NEXT_STATUS = re.compile(r", (?=\w*FileStatus\{path=)")


class HadoopFiles(FileStore):
    """Implements ``FileStore`` through a Hadoop file system."""

    threads = 8

    def __init__(self, jvm: DeltaJvm, file_system: JavaObject) -> None:
        self._jvm = jvm
        self._fs = file_system

    def children(self, uri: str, *, after: str = "") -> dict[str, StoredFile]:
        try:
            statuses = self._fs.listStatus(self._jvm.path(uri))
        except Exception as error:
            if says_missing(error):
                return {}
            raise
        text = self._jvm.text_of_array(statuses)
        parsed = parse_statuses(text)
        # Some file systems (viewfs) say their files' paths only where they are asked one by one.
        folder = uri.rstrip("/")
        if parsed is None or len(parsed) != len(statuses) or any(_folder_of(file) != folder for file in parsed):
            parsed = [self._stored(status) for status in statuses]
        return {file.uri: file for file in parsed if file.name > after}

    def status(self, uri: str) -> StoredFile | None:
        try:
            return self._stored(self._fs.getFileLinkStatus(self._jvm.path(uri)))
        except Exception as error:
            if says_missing(error):
                return None
            if says_no_reason(describe(error)):
                self.children(uri)  # the answer to a list has a body: this raises with the reason
            raise

    def delete(self, uri: str) -> bool:
        return bool(self._fs.delete(self._jvm.path(uri), False))

    def delete_many(self, uris: Sequence[str]) -> DeletedMany | None:
        """By S3A's own client: its BulkDelete (HADOOP-18679) says nothing of delete markers."""
        try:
            with contextlib.closing(self._fs.createBulkDelete(self._fs.makeQualified(self._jvm.path("/")))) as bulk:
                page = int(bulk.pageSize())
            if page > 1:
                self._jvm.require_s3_client(self._fs)
        except Exception:  # a Hadoop before 3.4.1 or with other classes, or one file's deletion will say what is wrong
            return None
        return None if page < 2 else self._delete_objects(dict.fromkeys(uris), page)

    def uncover(self, markers: Mapping[str, str]) -> dict[str, str]:
        """What is written between the look and the removal hides the file as the marker did."""

        def uncovered(part: Sequence[str]) -> dict[str, str]:
            stay, versions = dict[str, str](), self._versions(part)
            for uri in part:
                if (why := _why_covered(versions[uri], markers[uri])) is not None:
                    stay[uri] = why
            removed = {uri: markers[uri] for uri in part if uri not in stay}
            return {**stay, **self._delete_objects(removed, OBJECTS_AT_ONCE).kept}

        return self._by_parts(uncovered, markers)

    def hiding(self, uris: Collection[str]) -> dict[str, str]:
        def hidden(part: Sequence[str]) -> dict[str, str]:
            versions = self._versions(part).items()
            return {uri: each[0] for uri, listed in versions for each in listed if each[1:] == (True, True)}

        try:
            return self._by_parts(hidden, uris)
        except Exception:  # a store without versions, or keys that may not list them: nothing is known then
            return {}

    def _by_parts(self, ask: Callable[[Sequence[str]], dict[str, str]], uris: Collection[str]) -> dict[str, str]:
        """Ask for files in the order of a listing, so many at once as one request deletes."""
        in_order = sorted(uris, key=_key)
        parts = [in_order[start : start + OBJECTS_AT_ONCE] for start in range(0, len(in_order), OBJECTS_AT_ONCE)]
        return {uri: answer for answers in self.abreast(ask, parts) for uri, answer in answers.items()}

    def _versions(self, uris: Sequence[str]) -> dict[str, list[_Version]]:
        """Return the versions of files, which are in the order of a listing: each page begins at the next of them."""
        waiting, found = {_key(uri): uri for uri in uris}, dict[str, list[_Version]]()
        prefix = os.path.commonprefix(list(waiting))  # noqa: RUF071 (any prefix will do)
        while waiting:
            first = next(iter(waiting))
            page, is_cut = self._version_page(prefix, first[:-1])
            last = max(page, default="")
            answered = [key for key in waiting if not is_cut or key < last]
            if not answered:
                page, answered = self._version_page(first, "")[0], [first]
            found.update((waiting.pop(key), page.get(key, [])) for key in answered)
        return found

    def _version_page(self, prefix: str, after: str) -> tuple[dict[str, list[_Version]], bool]:
        return _at_pace(lambda: self._jvm.object_versions(self._fs, prefix, after), StoreRequests(lists=1))

    def _delete_objects(self, versions: Mapping[str, str | None], page: int) -> DeletedMany:
        """Delete files, or the versions named of them, so many by one request."""
        uris, kept, markers = {_key(uri): uri for uri in versions}, dict[str, str](), dict[str, str]()
        keys = list(uris)
        for start in range(0, len(keys), page):
            asked = {key: versions[uris[key]] for key in keys[start : start + page]}
            errors, made = _at_pace(partial(self._jvm.delete_objects, self._fs, asked), StoreRequests(deletions=1))
            kept.update((uris[key], why) for key, why in errors.items())
            markers.update((uris[key], marker) for key, marker in made.items())
        return DeletedMany(kept, markers)

    def move(self, uri: str, target: str) -> None:
        """HDFS refuses to rename over a file."""
        source, goal = self._jvm.path(uri), self._jvm.path(target)
        if self.status(uri) is None:
            raise FileNotFoundError(uri)
        if self.status(target) is not None:
            raise FileExistsError(target)
        self._fs.mkdirs(goal.getParent())
        if not self._fs.rename(source, goal):
            raise OSError(f"the file system refused to move {uri}")

    def read(self, uri: str, *, first_bytes: int | None = None) -> bytes:
        return self._read(uri, 0, first_bytes)

    def read_end(self, file: StoredFile, last_bytes: int) -> bytes:
        return self._read(file.uri, max(0, file.size_bytes - last_bytes), last_bytes)

    def _read(self, uri: str, start: int, length_bytes: int | None) -> bytes:
        try:
            stream = self._fs.open(self._jvm.path(uri))
        except Exception as error:
            if says_missing(error):
                raise FileNotFoundError(uri) from error
            raise
        try:
            if start:
                stream.seek(start)
            return bytes(stream.readAllBytes() if length_bytes is None else stream.readNBytes(length_bytes))
        finally:
            stream.close()

    def write(self, uri: str, data: bytes) -> None:
        if self.status(uri) is not None:
            raise FileExistsError(uri)
        stream = self._fs.create(self._jvm.path(uri), False)
        try:
            stream.write(bytearray(data))
        finally:
            stream.close()

    @staticmethod
    def _stored(status: JavaObject) -> StoredFile:
        uri = one_spelling(str(status.getPath().toUri().toString()))
        return StoredFile(
            uri=uri,
            size_bytes=int(status.getLen()),
            modification_time_ms=int(status.getModificationTime()),
            is_dir=bool(status.isDirectory()),
            # Hadoop's local file system follows links even where it is asked not to.
            is_symlink=bool(status.isSymlink()) or (uri.startswith("file:") and os.path.islink(local_path(uri))),
        )


def _at_pace(ask: Callable[[], _Answer], requests: StoreRequests) -> _Answer:
    """Ask by S3A's own client, and again while the store is busy. S3A does not count these requests."""

    def asked() -> _Answer:
        try:
            return ask()
        except Exception as error:
            if says_busy(describe(error)):
                raise StoreFailure(BUSY, "") from error  # only how long it lasts is told by it
            raise

    try:
        return _PACE.asked(asked, requests)
    except StoreFailure as failure:
        raise failure.__cause__ or failure from None


def _why_covered(versions: Collection[_Version], marker: str) -> str | None:
    """Say why the removal of a delete marker would bring nothing back."""
    if (marker, True, True) not in versions:
        there = any(version == marker for version, _, _ in versions)
        return "something newer is in its place" if there else "its delete marker is gone"
    is_kept = any(not is_marker for _, is_marker, _ in versions)
    return None if is_kept else "the bucket has no version of it any more"


def _key(uri: str) -> str:
    """The key of an object: the path of its URI, decoded once."""
    return unquote(uri.split("/", 3)[3], errors="surrogateescape")


def _folder_of(file: StoredFile) -> str:
    return file.uri.rpartition("/")[0]


def parse_statuses(text: str) -> list[StoredFile] | None:
    """Read Java's text of an array of ``FileStatus``; None where it is not of a form known here."""
    body = text.removeprefix("Array(").removesuffix(")")
    if not body:
        return []
    files = []
    for status in _NEXT_STATUS.split(body):
        match = _STATUS.match(status)
        if match is None or "FileStatus{path=" in match["path"]:
            return None
        path = match["path"]
        scheme, colon, rest = path.partition(":")
        uri = f"{scheme}:{java_quote(rest)}" if colon and "/" not in scheme else java_quote(path)
        is_dir = match["dir"] == "true"
        if not is_dir and match["length"] is None:
            return None
        size, moment = int(match["length"] or 0), int(match["time"])
        files.append(StoredFile(one_spelling(uri), size, moment, is_dir, match["link"] == "true"))
    return files


def says_missing(error: BaseException) -> bool:
    """Tell whether Hadoop says that there is no such file or folder."""
    chain = describe(error)
    return any(failure.type_name in MISSING for failure in chain) and not refuses_credentials(chain)
