"""List, read and delete a table's files and commits through Hadoop's file system. No Spark jobs.

A call to the JVM costs about 0.1 ms: filter in the JVM before looping in Python.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from maintainer.delta.jvm import DeltaJvm, JavaObject, TableFolder
from maintainer.delta.storage.file_store import LocalFiles, StoredFile, files_of, local_path, one_spelling, says_missing
from maintainer.delta.storage.log_paths import COMMIT_NAME, log_readings, log_uri
from maintainer.model.table.vector_names import vector_of_id, vector_path

_DATA_ACTIONS = ('{"add":', '{"txn":', '{"domainMetadata":')
_BRIEF_ADD = re.compile(
    r'\{"add":\{"path":"([^"\\]*)","partitionValues":.*?,"modificationTime":(\d+),"dataChange":[^\n]*\}\}$'
)
_BRIEF_REMOVE = re.compile(
    r'\{"remove":\{"path":"([^"\\]*)","deletionTimestamp":(\d+),"dataChange":(true|false)[,}].*?"size":(\d+)(?=[,}]).*\}\}$'
)
"""An add and a remove as Delta writes them, without a deletion vector: most of a log, and read without the rest."""


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One published commit file of a table's log. ``handle`` is Hadoop's, None where the disk is read directly."""

    version: int
    modification_time_ms: int
    uri: str
    handle: JavaObject | None = None


class TableStorage:
    """The storage of one table, from its open DeltaLog or from its folder; the folder needs no read of the log."""

    def __init__(self, jvm: DeltaJvm, log: JavaObject | TableFolder) -> None:
        self._jvm = jvm
        folder = log if isinstance(log, TableFolder) else jvm.folder_of_log(log)
        self._folder = folder
        self._fs, self._conf, self._log_path = folder.file_system, folder.conf, folder.log_path
        self._root = self._fs.makeQualified(folder.root)
        self._root_uri = one_spelling(str(self._root.toUri().toString())).rstrip("/")
        self._log_uri = one_spelling(str(self._fs.makeQualified(folder.log_path).toUri().toString()))
        self.files = files_of(jvm, self._root, self._conf)
        self._vectors: dict[tuple[str, str], str] = {}

    @property
    def root_uri(self) -> str:
        """The qualified, percent-encoded URI of the table's root, without a trailing slash."""
        return self._root_uri

    def uri(self, relative: str) -> str:
        """The qualified URI of a path as the log writes it (percent-encoded; relative to the root or absolute)."""
        return log_uri(self._root_uri, relative)

    def readings(self, relative: str) -> tuple[str, ...]:
        """Return all URIs that a path of the log may mean, nearly always one. A file behind any of them must stay."""
        return log_readings(self._root_uri, relative)

    def commit_uri(self, version: int) -> str:
        """The URI of the commit file of a version."""
        return f"{self._root_uri}/_delta_log/{version:020d}.json"

    def is_below_root(self, uri: str) -> bool:
        """Whether a qualified URI lies strictly below the table's root by its text (see ``vacuum`` for links)."""
        parts = uri[len(self.root_uri) + 1 :].split("/")
        return uri.startswith(self.root_uri + "/") and ".." not in parts

    def status(self, uri: str) -> StoredFile | None:
        """One file's status, symlinks not followed; None if it is not there."""
        return self.files.status(uri)

    def children(self, uri: str) -> dict[str, StoredFile]:
        """The direct children of a directory by URI; empty if there is no such directory."""
        return self.files.children(uri)

    def delete(self, uri: str) -> bool:
        """Delete one file, never a directory with something in it; False if it was not there."""
        return self.files.delete(uri)

    def commits(self, *, after_version: int = -1) -> list[LogEntry]:
        """The published commit files above a version, in order; none where there is no log yet."""
        if isinstance(self.files, LocalFiles):
            return self._local_commits(after_version)
        prefix = self._jvm.child(self._log_path, f"{after_version + 1:020d}.json")
        try:
            listing = self._folder.store.listFrom(prefix, self._conf)
        except Exception as error:
            if says_missing(error):
                return []
            raise
        commits = []
        while listing.hasNext():
            status = listing.next()
            match = COMMIT_NAME.match(str(status.getPath().getName()))
            if match:
                uri = f"{self._log_uri}/{match.group(0)}"
                commits.append(LogEntry(int(match.group(1)), int(status.getModificationTime()), uri, status))
        return commits

    def _local_commits(self, after_version: int) -> list[LogEntry]:
        commits = []
        for uri, file in self.files.children(self._log_uri).items():
            match = COMMIT_NAME.match(file.name)
            if match and int(match.group(1)) > after_version:
                commits.append(LogEntry(int(match.group(1)), file.modification_time_ms, uri))
        return sorted(commits, key=lambda entry: entry.version)

    def commit_info(self, entry: LogEntry) -> dict[str, Any]:
        """The commit's ``commitInfo`` (nearly always its first line); empty if it has none."""
        if entry.handle is None:
            with open(local_path(entry.uri), encoding="utf-8") as file:
                return _info_in(file)
        lines = self._folder.store.readAsIterator(entry.handle, self._conf)
        try:
            return _info_in(_each(lines))
        finally:
            lines.close()

    def actions(self, entry: LogEntry, *, with_adds: bool = False) -> Iterator[dict[str, Any]]:
        """The commit's actions as dicts; adds, which are most of the text, only if asked for."""
        for line in self._text(entry).split("\n"):
            if line.strip() and (with_adds or not line.startswith(_DATA_ACTIONS)):
                yield json.loads(line)

    def brief_actions(self, entry: LogEntry) -> Iterator[dict[str, Any]]:
        """The commit's actions as dicts.

        Of adds at least path, modification time and deletion vector; of removes at least path, time, size, deletion
        vector and whether they change data.
        """
        for line in self._text(entry).split("\n"):
            if '"deletionVector"' not in line:
                if match := _BRIEF_ADD.match(line):
                    yield {"add": {"path": match[1], "modificationTime": int(match[2])}}
                    continue
                if match := _BRIEF_REMOVE.match(line):
                    size, changes = int(match[4]), match[3] == "true"
                    body = {"path": match[1], "deletionTimestamp": int(match[2]), "dataChange": changes, "size": size}
                    yield {"remove": body}
                    continue
            if line.strip():
                yield json.loads(line)

    def commit_bytes(self, entry: LogEntry) -> bytes:
        """A commit as it is on storage."""
        return self.files.read(entry.uri) if entry.handle is None else self._text(entry).encode("utf-8")

    def _text(self, entry: LogEntry) -> str:
        """A commit's text."""
        if entry.handle is None:
            return self.files.read(entry.uri).decode("utf-8")
        return self._jvm.across(self._jvm.text_of(self._folder.store.read(entry.handle, self._conf)))

    def deletion_vector_uri(self, action: dict[str, Any]) -> str | None:
        """The URI of the deletion vector file of an add or remove; None without one, or if it is inline."""
        (body,) = action.values()
        vector = body.get("deletionVector")
        if not vector or vector["storageType"] == "i":
            return None
        return self.vector_uri(vector["storageType"], vector["pathOrInlineDv"])

    def vector_uri_of_id(self, unique_id: str) -> str | None:
        """The URI of the deletion vector file behind a unique id; None if the vector is inline."""
        vector = vector_of_id(unique_id)
        return None if vector is None else self.vector_uri(*vector)

    def vector_uri(self, kind: str, path: str) -> str:
        """The URI of a deletion vector file from its storage type and encoded path, as Delta decodes it."""
        key = (kind, path)
        if key not in self._vectors:
            below = vector_path(path) if kind == "u" else None
            if below is not None:
                return f"{self._root_uri}/{below}"
            uri = self._jvm.vector_path(kind, path, self._root)
            self._vectors[key] = one_spelling(str(self._fs.makeQualified(uri).toUri().toString()))
        return self._vectors[key]


def _each(lines: JavaObject) -> Iterator[str]:
    while lines.hasNext():
        yield str(lines.next())


def _info_in(lines: Iterable[str]) -> dict[str, Any]:
    for line in lines:
        if '"commitInfo"' in line[:40]:
            info: dict[str, Any] = json.loads(line)["commitInfo"]
            return info
    return {}
