"""Files through a Hadoop file system: HDFS, mounts, and what no other client reaches.

A call to the JVM costs 0.1 ms, so all children of a folder cross in one call.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Sequence

from maintainer.delta.jvm import DeltaJvm, JavaObject
from maintainer.delta.storage.failures.engine_failures import describe
from maintainer.delta.storage.failures.machine_failures import MISSING
from maintainer.delta.storage.failures.store_answers import refuses_credentials, says_no_reason
from maintainer.delta.storage.file_store import FileStore, StoredFile, java_quote, local_path, one_spelling

_STATUS = re.compile(
    r"^\w*FileStatus\{path=(?P<path>.*?); ?isDirectory=(?P<dir>true|false); ?(?:length=(?P<length>\d+);)?.*?"
    r"modification_time=(?P<time>\d+);.*?isSymlink=(?P<link>true|false)",
    re.DOTALL,
)
_S3_ERROR = re.compile(r"S3Error\(Key=.*, Code=(\w+), Message=(.*)\)", re.DOTALL)
_NEXT_STATUS = re.compile(r", (?=\w*FileStatus\{path=)")


class HadoopFiles(FileStore):
    """Implements ``FileStore`` through a Hadoop file system."""

    threads = 8

    def __init__(self, jvm: DeltaJvm, file_system: JavaObject) -> None:
        self._jvm = jvm
        self._fs = file_system

    def children(self, uri: str, *, after: str = "") -> dict[str, StoredFile]:
        """See ``FileStore``."""
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
        """See ``FileStore``."""
        try:
            return self._stored(self._fs.getFileLinkStatus(self._jvm.path(uri)))
        except Exception as error:
            if says_missing(error):
                return None
            if says_no_reason(describe(error)):
                self.children(uri)  # the answer to a list has a body: this raises with the reason
            raise

    def delete(self, uri: str) -> bool:
        """See ``FileStore``."""
        return bool(self._fs.delete(self._jvm.path(uri), False))

    def delete_many(self, uris: Sequence[str]) -> dict[str, str] | None:
        """See ``FileStore``. By Hadoop's BulkDelete, which answers for each file: HADOOP-18679."""
        if not uris:
            return {}
        try:
            opened = self._fs.createBulkDelete(self._fs.makeQualified(self._jvm.path("/")))
        except Exception:  # a Hadoop before 3.4.1, or one file's deletion will say what is wrong
            return None
        with contextlib.closing(opened) as bulk:
            page = int(bulk.pageSize())
            if page < 2:
                return None
            errors: dict[str, str] = {}
            for start in range(0, len(uris), page):
                answer = bulk.bulkDelete(self._jvm.path_list(uris[start : start + page]))
                errors.update(
                    (one_spelling(str(answer[i].getKey().toUri().toString())), why_kept(str(answer[i].getValue())))
                    for i in range(len(answer))
                )
            return errors

    def move(self, uri: str, target: str) -> None:
        """See ``FileStore``. HDFS refuses to rename over a file."""
        source, goal = self._jvm.path(uri), self._jvm.path(target)
        if self.status(uri) is None:
            raise FileNotFoundError(uri)
        if self.status(target) is not None:
            raise FileExistsError(target)
        self._fs.mkdirs(goal.getParent())
        if not self._fs.rename(source, goal):
            raise OSError(f"the file system refused to move {uri}")

    def read(self, uri: str, *, first_bytes: int | None = None) -> bytes:
        """See ``FileStore``."""
        return self._read(uri, 0, first_bytes)

    def read_end(self, file: StoredFile, last_bytes: int) -> bytes:
        """See ``FileStore``."""
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
        """See ``FileStore``."""
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


def why_kept(answer: str) -> str:
    """What a store answered for one key of a deletion of many, in its own words."""
    return _S3_ERROR.sub(r"\1: \2", answer)


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
