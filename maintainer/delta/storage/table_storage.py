"""List, read and delete a table's files and commits, wherever they lie. No Spark jobs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from maintainer.delta.jvm import DeltaJvm, JavaObject, TableFolder
from maintainer.delta.storage.file_store import StoredFile, one_spelling
from maintainer.delta.storage.log_paths import COMMIT_NAME, log_readings, log_uri, path_uri
from maintainer.delta.storage.open_files import direct_files, files_of
from maintainer.model.table.vector_names import vector_of_id, vector_path

INFO_BYTES = 64 << 10
"""So much of a commit holds its ``commitInfo``, which nearly every writer puts first."""

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
    """One published commit file of a table's log. ``file`` is what a listing says of it, where there was one."""

    version: int
    modification_time_ms: int
    uri: str
    file: StoredFile | None = None


class TableStorage:
    """The storage of one table, from its open DeltaLog, its folder or its URI; the last two need no read of the log.

    A URI needs no JVM where the disk or obstore serves it.
    """

    def __init__(self, jvm: DeltaJvm, log: JavaObject | TableFolder | str) -> None:
        self._jvm = jvm
        self._log = log
        direct = direct_files(jvm, log) if isinstance(log, str) else None
        if direct is None:
            root = self.folder.file_system.makeQualified(self.folder.root)
            root_uri = one_spelling(str(root.toUri().toString())).rstrip("/")
            direct = files_of(jvm, root, self.folder.conf), root_uri
            self.location = self.folder.location
        else:
            self.location = direct[1]
        self.files, self._root_uri = direct
        self._log_uri = f"{self._root_uri}/_delta_log"
        self._vectors: dict[tuple[str, str], str] = {}

    @cached_property
    def folder(self) -> TableFolder:
        """The folder as Hadoop sees it; starts the JVM."""
        if isinstance(self._log, TableFolder):
            return self._log
        if isinstance(self._log, str):
            return self._jvm.folder_at(self._jvm.path(self._log))
        return self._jvm.folder_of_log(self._log)

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

    def log_files(self) -> dict[str, StoredFile]:
        """What lies in the log's folder, by URI: one request of a store for a thousand files."""
        return self.files.children(self._log_uri)

    def checksum_uri(self, version: int) -> str:
        """The URI of the checksum file of a version."""
        return f"{self._root_uri}/_delta_log/{version:020d}.crc"

    def commits(self, *, after_version: int = -1) -> list[LogEntry]:
        """The published commit files above a version, in order; none where there is no log yet."""
        after = f"{after_version:020d}.json" if after_version >= 0 else ""
        return commits_among(self.files.children(self._log_uri, after=after).values(), after_version=after_version)

    def commit_info(self, entry: LogEntry) -> dict[str, Any]:
        """The commit's ``commitInfo`` (nearly always its first line); empty if it has none."""
        if entry.file is None or not entry.file.tag:  # a store's whole commit is kept for whoever asks next
            start = self.files.read(entry.uri, first_bytes=INFO_BYTES)
            if len(start) < INFO_BYTES or (b'"commitInfo"' in start[:40] and b"\n" in start):
                return _info_in(start.decode("utf-8", "replace").split("\n"))
        return _info_in(self._text(entry).split("\n"))

    def bodies(self, entries: Sequence[LogEntry]) -> Iterator[tuple[LogEntry, bytes]]:
        """Commits as they are on storage, in order; many are read at once where that is quicker."""
        files = [entry.file or StoredFile(entry.uri, -1, 0, False, False) for entry in entries]
        yield from zip(entries, self.files.read_many(files), strict=True)

    def is_named_since(self, version: int, name: str) -> bool:
        """Whether a commit above a version has a name in it, or its beginning, by its bytes: nothing is parsed."""
        entries = self.commits(after_version=version)
        return any(name.encode() in body for _, body in self.bodies(entries))

    def actions(self, entry: LogEntry, *, with_adds: bool = False) -> Iterator[dict[str, Any]]:
        """The commit's actions as dicts; adds, which are most of the text, only if asked for."""
        for line in self._text(entry).split("\n"):
            if line.strip() and (with_adds or not line.startswith(_DATA_ACTIONS)):
                yield json.loads(line)

    def brief_commits(self, entries: Sequence[LogEntry]) -> Iterator[tuple[LogEntry, list[dict[str, Any]]]]:
        """Commits in order, each with its ``brief_actions``; see ``bodies``."""
        for entry, body in self.bodies(entries):
            yield entry, list(self._brief(body.decode("utf-8")))

    def brief_actions(self, entry: LogEntry) -> Iterator[dict[str, Any]]:
        """The commit's actions as dicts.

        Of adds at least path, modification time and deletion vector; of removes at least path, time, size, deletion
        vector and whether they change data.
        """
        return self._brief(self._text(entry))

    @staticmethod
    def _brief(text: str) -> Iterator[dict[str, Any]]:
        for line in text.split("\n"):
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
        return next(self.files.read_many((entry.file,))) if entry.file is not None else self.files.read(entry.uri)

    def _text(self, entry: LogEntry) -> str:
        """A commit's text."""
        return self.commit_bytes(entry).decode("utf-8")

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
            file_system = self.folder.file_system
            uri = self._jvm.vector_path(kind, path, file_system.makeQualified(self.folder.root))
            self._vectors[key] = one_spelling(str(file_system.makeQualified(uri).toUri().toString()))
        return self._vectors[key]


def commits_among(listed: Iterable[StoredFile], *, after_version: int = -1) -> list[LogEntry]:
    """The commit files above a version among those of a log's folder, in order."""
    commits = []
    for file in listed:
        match = COMMIT_NAME.match(file.name)
        if match and int(match.group(1)) > after_version:
            commits.append(LogEntry(int(match.group(1)), file.modification_time_ms, file.uri, file))
    return sorted(commits, key=lambda entry: entry.version)


def storage_of_path(jvm: DeltaJvm, text: str) -> TableStorage:
    """Return the storage of the table at a path or URI as people write it."""
    uri = path_uri(text)
    is_direct = direct_files(jvm, uri) is not None
    return TableStorage(jvm, uri if is_direct else jvm.folder_at(jvm.hadoop_path(text)))


def _info_in(lines: Iterable[str]) -> dict[str, Any]:
    for line in lines:
        if '"commitInfo"' in line[:40]:
            info: dict[str, Any] = json.loads(line)["commitInfo"]
            return info
    return {}
