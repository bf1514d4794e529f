"""A table's files and log as Hadoop's file system sees them: list, look, read, delete. No Spark jobs.

Calls cross to the JVM at about 0.1 ms each, so what loops is cut down on the JVM's side first.
"""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from maintainer.delta.error_classes import describe
from maintainer.delta.jvm import DeltaJvm, JavaObject, TableFolder

_COMMIT_NAME = re.compile(r"^(\d{20})\.json$")
_DATA_ACTIONS = ('{"add":', '{"txn":', '{"domainMetadata":')


_ABSOLUTE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:")
_UNQUOTED = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-!.~'()*,;:$&+=/@")


def java_quote(path: str) -> str:
    """Percent-encode a path as ``java.net.URI`` does, so that URIs made here equal those that Hadoop lists.

    Done here and not in the JVM because it loops over all files of a table.
    """
    return "".join(
        one
        if one in _UNQUOTED or (ord(one) > 127 and unicodedata.category(one)[0] != "Z" and ord(one) > 0x9F)
        else "".join(f"%{byte:02X}" for byte in one.encode())
        for one in path
    )


def one_spelling(uri: str) -> str:
    """Hadoop says ``file:/x`` in one place and ``file:///x`` in another: the first is ours."""
    return "file:/" + uri[8:] if uri.startswith("file:///") else uri


def local_path(uri: str) -> str:
    """The path on this machine behind a ``file:`` URI."""
    return unquote(uri.removeprefix("file:"))


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One published commit file of a table's log."""

    version: int
    modification_time_ms: int
    handle: JavaObject


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One file or directory on storage."""

    uri: str
    size_bytes: int
    modification_time_ms: int
    is_dir: bool
    is_symlink: bool


class TableStorage:
    """The storage of one table: by its open DeltaLog, or by its folder, which costs no look at the log."""

    def __init__(self, jvm: DeltaJvm, log: JavaObject | TableFolder) -> None:
        self._jvm = jvm
        folder = log if isinstance(log, TableFolder) else jvm.folder_of_log(log)
        self._fs, self._conf, self._store, self._log_path = (
            folder.file_system,
            folder.conf,
            folder.store,
            folder.log_path,
        )
        self._root = self._fs.makeQualified(folder.root)
        self._root_uri = one_spelling(str(self._root.toUri().toString())).rstrip("/")
        self._vectors: dict[tuple[str, str], str] = {}

    @property
    def root_uri(self) -> str:
        """The qualified, percent-encoded URI of the table's root, without a trailing slash."""
        return self._root_uri

    def uri(self, relative: str) -> str:
        """The qualified URI of a path as the log writes it (percent-encoded; relative to the root or absolute)."""
        if not _ABSOLUTE.match(relative):
            return f"{self.root_uri}/{java_quote(unquote(relative))}"
        return one_spelling(str(self._fs.makeQualified(self._jvm.child(self._root, relative)).toUri().toString()))

    def commit_uri(self, version: int) -> str:
        """The URI of the commit file of a version."""
        return f"{self._root_uri}/_delta_log/{version:020d}.json"

    def is_below_root(self, uri: str) -> bool:
        """Whether a qualified URI lies strictly below the table's root (by its text; see ``real_path_is_below``)."""
        parts = uri[len(self.root_uri) + 1 :].split("/")
        return uri.startswith(self.root_uri + "/") and ".." not in parts

    def status(self, uri: str) -> StoredFile | None:
        """One file's status, symlinks not followed; None if it is not there."""
        try:
            found = self._fs.getFileLinkStatus(self._jvm.path(uri))
        except Exception as error:
            if any(one.type_name in {"FileNotFoundException", "NoSuchFileException"} for one in describe(error)):
                return None
            raise
        return self._stored(found)

    def children(self, uri: str) -> dict[str, StoredFile]:
        """The direct children of a directory by URI; empty if there is no such directory."""
        try:
            children = self._fs.listStatus(self._jvm.path(uri))
        except Exception as error:
            if any(one.type_name in {"FileNotFoundException", "NoSuchFileException"} for one in describe(error)):
                return {}
            raise
        stored = (self._stored(child) for child in children)
        return {one.uri: one for one in stored}

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

    def delete(self, uri: str) -> bool:
        """Delete one file, never a directory with something in it; False if it was not there."""
        return bool(self._fs.delete(self._jvm.path(uri), False))

    def commits(self, *, after_version: int = -1) -> list[LogEntry]:
        """The published commit files above a version, in order."""
        prefix = self._jvm.child(self._log_path, f"{after_version + 1:020d}.json")
        listing = self._store.listFrom(prefix, self._conf)
        found = []
        while listing.hasNext():
            status = listing.next()
            match = _COMMIT_NAME.match(str(status.getPath().getName()))
            if match:
                found.append(LogEntry(int(match.group(1)), int(status.getModificationTime()), status))
        return found

    def commit_info(self, entry: LogEntry) -> dict[str, Any]:
        """The commit's ``commitInfo`` (nearly always its first line); empty if it has none."""
        lines = self._store.readAsIterator(entry.handle, self._conf)
        try:
            while lines.hasNext():
                line = str(lines.next())
                if '"commitInfo"' in line[:40]:
                    found: dict[str, Any] = json.loads(line)["commitInfo"]
                    return found
            return {}
        finally:
            lines.close()

    def actions(self, entry: LogEntry, *, with_adds: bool = False) -> Iterator[dict[str, Any]]:
        """The commit's actions as dicts; adds, which are most of the text, only if asked for."""
        text: Any = self._jvm.text_of(self._store.read(entry.handle, self._conf))
        for line in self._jvm.across(text).split("\n"):
            if line.strip() and (with_adds or not line.startswith(_DATA_ACTIONS)):
                yield json.loads(line)

    def deletion_vector_uri(self, action: dict[str, Any]) -> str | None:
        """The URI of the deletion vector file of an add or remove; None without one, or if it is inline."""
        (body,) = action.values()
        vector = body.get("deletionVector")
        if not vector or vector["storageType"] == "i":
            return None
        return self.vector_uri(vector["storageType"], vector["pathOrInlineDv"])

    def vector_uri_of_id(self, unique_id: str) -> str | None:
        """The URI of the deletion vector file behind a unique id; None if the vector is inline."""
        kind, rest = unique_id[:1], unique_id[1:]
        if kind == "i":
            return None
        # The offset is digits after the last "@"; the encoded path of kind "u" may hold an "@" of its own.
        path, _, offset = rest.rpartition("@")
        return self.vector_uri(kind, path if path and offset.isdigit() and len(path) >= 20 else rest)

    def vector_uri(self, kind: str, path: str) -> str:
        """The URI of a deletion vector file from its storage type and encoded path, as Delta decodes it."""
        key = (kind, path)
        if key not in self._vectors:
            found = self._jvm.vector_path(kind, path, self._root)
            self._vectors[key] = one_spelling(str(self._fs.makeQualified(found).toUri().toString()))
        return self._vectors[key]
