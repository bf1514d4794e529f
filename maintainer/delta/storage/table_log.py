"""List and read a table's log, wherever its files lie. Needs no JVM; every engine reads through it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maintainer.delta.storage.file_store import FileSource, StoredFile, local_path
from maintainer.delta.storage.local_files import LocalFiles
from maintainer.delta.storage.log_paths import log_readings, log_uri, path_uri
from maintainer.model.table.log_names import (
    COMMIT_NAME,
    LOG_FOLDER,
    SIDECAR_FOLDER,
    checksum_name,
    commit_name,
    vector_of_id,
    vector_path,
)

INFO_BYTES = 64 << 10
"""So much of a commit holds its ``commitInfo``, which nearly every writer puts first."""

_URI = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+:")
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
    """One published commit file of a table's log, as it was listed."""

    version: int
    file: StoredFile

    @property
    def modification_time_ms(self) -> int:
        """When storage got it."""
        return self.file.modification_time_ms

    @property
    def uri(self) -> str:
        return self.file.uri


class TableLog:
    """The log of the table at a percent-encoded URI, without a slash at its end."""

    def __init__(self, files: FileSource, root_uri: str) -> None:
        self.files = files
        self._root_uri = root_uri
        self._log_uri = f"{root_uri}/{LOG_FOLDER}"
        self._listed: dict[str, StoredFile] = {}

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

    def is_in_log(self, uri: str) -> bool:
        """Whether a URI lies in the log's folder, by its text."""
        return uri.startswith(f"{self._log_uri}/")

    def commit_uri(self, version: int) -> str:
        """The URI of the commit file of a version."""
        return f"{self._log_uri}/{commit_name(version)}"

    def checksum_uri(self, version: int) -> str:
        """The URI of the checksum file of a version."""
        return self.log_file_uri(checksum_name(version))

    def log_file_uri(self, name: str) -> str:
        """The URI of a file in the log's folder."""
        return f"{self._log_uri}/{name}"

    def log_files(self) -> dict[str, StoredFile]:
        """What lies in the log's folder, by URI: one request of a store for a thousand files."""
        self._listed = self.files.children(self._log_uri)
        return self._listed

    def listed_with(self, version: int) -> dict[str, StoredFile]:
        """The log's folder as it was last listed, where that shows the commit of a version; else as it is now."""
        return self._listed if self.commit_uri(version) in self._listed else self.log_files()

    def sidecars(self) -> dict[str, StoredFile]:
        """The files that manifests of checkpoints may name, by their names."""
        return {file.name: file for file in self.files.children(f"{self._log_uri}/{SIDECAR_FOLDER}").values()}

    def commits(self, *, after_version: int = -1) -> list[LogEntry]:
        """The published commit files above a version, in order; none where there is no log yet."""
        after = commit_name(after_version) if after_version >= 0 else ""
        return commits_among(self.files.children(self._log_uri, after=after).values(), after_version=after_version)

    def bodies(self, entries: Iterable[LogEntry]) -> Iterator[tuple[LogEntry, bytes]]:
        """Commits as they are on storage, in order; many are read at once where that is quicker."""
        entries = list(entries)
        yield from zip(entries, self.files.read_many(entry.file for entry in entries), strict=True)

    def is_named_since(self, version: int, name: str) -> bool:
        """Whether a commit above a version has a name in it, or its beginning, by its bytes: nothing is parsed."""
        entries = self.commits(after_version=version)
        return any(name.encode() in body for _, body in self.bodies(entries))

    def infos(self, entries: Sequence[LogEntry]) -> Iterator[tuple[LogEntry, dict[str, Any]]]:
        """Commits in the order given, each with its ``commitInfo``; see ``bodies``."""
        if self.files.asks_by_request:
            for entry, body in self.bodies(entries):
                yield entry, _info_in(body)
        else:
            yield from ((entry, self.commit_info(entry)) for entry in entries)

    def commit_info(self, entry: LogEntry) -> dict[str, Any]:
        """The commit's ``commitInfo`` (nearly always its first line); empty if it has none."""
        if not entry.file.tag:  # a store's whole commit is kept for whoever asks next
            start = self.files.read(entry.uri, first_bytes=INFO_BYTES)
            if len(start) < INFO_BYTES or (b'"commitInfo"' in start[:40] and b"\n" in start):
                return _info_in(start)
        return _info_in(next(iter(self.files.read_many((entry.file,)))))

    def actions(self, entry: LogEntry, *, with_adds: bool = False) -> Iterator[dict[str, Any]]:
        """The commit's actions as dicts; adds, which are most of the text, only if asked for."""
        yield from next(iter(self.actions_of((entry,), with_adds=with_adds)))[1]

    def actions_of(
        self, entries: Iterable[LogEntry], *, with_adds: bool = False
    ) -> Iterator[tuple[LogEntry, Iterator[dict[str, Any]]]]:
        """Commits in the order given, each with its ``actions``; see ``bodies``."""
        for entry, body in self.bodies(entries):
            wanted = (line for line in lines_of(body) if with_adds or not line.startswith(_DATA_ACTIONS))
            yield entry, map(json.loads, wanted)

    def brief_commits(self, entries: Sequence[LogEntry]) -> Iterator[tuple[LogEntry, BriefActions]]:
        """Commits in order, each with its actions as dicts.

        Of adds at least path, modification time and deletion vector; of removes at least path, time, size, deletion
        vector and whether they change data.
        """
        for entry, body in self.bodies(entries):
            yield entry, BriefActions(body)

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
        """The URI of a deletion vector file from its storage type and encoded path, as Delta's protocol says.

        Raises:
            ValueError: It is not the path of one.
        """
        below = path if kind == "p" else vector_path(path)
        if below is None:
            raise ValueError(f"{path!r} is not the path of a deletion vector")
        return self.uri(below)


def commits_among(listed: Iterable[StoredFile], *, after_version: int = -1) -> list[LogEntry]:
    """The commit files above a version among those of a log's folder, in order."""
    commits = []
    for file in listed:
        match = COMMIT_NAME.match(file.name)
        if match and int(match.group(1)) > after_version:
            commits.append(LogEntry(int(match.group(1)), file))
    return sorted(commits, key=lambda entry: entry.version)


def lines_of(body: bytes) -> Iterator[str]:
    """The lines of a commit that hold an action, one after the other: there may be a million of them.

    Raises:
        UnicodeDecodeError: It is no UTF-8.
    """
    return (line.decode("utf-8") for line in io.BytesIO(body) if line.strip())


@dataclass(frozen=True, slots=True)
class BriefActions:
    """The actions in a commit's body, read anew by each loop over them; see ``TableLog.brief_commits``."""

    body: bytes

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for line in lines_of(self.body):
            if '"deletionVector"' not in line:
                if match := _BRIEF_ADD.match(line):
                    yield {"add": {"path": match[1], "modificationTime": int(match[2])}}
                    continue
                if match := _BRIEF_REMOVE.match(line):
                    size, changes = int(match[4]), match[3] == "true"
                    body = {"path": match[1], "deletionTimestamp": int(match[2]), "dataChange": changes, "size": size}
                    yield {"remove": body}
                    continue
            yield json.loads(line)


def _info_in(start: bytes) -> dict[str, Any]:
    for line in io.BytesIO(start):
        if b'"commitInfo"' in line[:40]:
            info: dict[str, Any] = json.loads(line.decode("utf-8", "replace"))["commitInfo"]
            return info
    return {}


def local_folder(location: str) -> Path | None:
    """Return the folder behind a path or ``file:`` URI; None for a place on other storage."""
    if location.startswith("file:"):
        return Path(local_path(location.replace("file://", "file:", 1)))
    return None if _URI.match(location) else Path(location)


def look_into(location: str) -> None:
    """Raise if we may not list a table's folder or its log on this machine; other storage is not checked.

    Java's file system reports a folder that it may not list as missing.

    Raises:
        PermissionError: A folder may not be listed.
    """
    folder = local_folder(location)
    if folder is None:
        return
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for path in (folder, folder / LOG_FOLDER):
            with os.scandir(path) as entries:
                for entry in entries:
                    entry.stat(follow_symlinks=False)
                    break


def log_on_disk(location: str) -> TableLog | None:
    """The log of a table at a path or URI; None where there is none on this machine.

    Raises:
        PermissionError: The folder may not be listed.
    """
    look_into(location)
    folder = local_folder(location)
    if folder is None or not (folder / LOG_FOLDER).is_dir():
        return None
    return TableLog(LocalFiles(), path_uri(str(folder.absolute())))
