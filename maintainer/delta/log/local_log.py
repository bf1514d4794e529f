"""Read the log of a table on this machine's own disk, without Spark and without a JVM."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from maintainer.delta.storage.file_store import local_path
from maintainer.delta.storage.log_paths import COMMIT_NAME
from maintainer.delta.storage.table_storage import LogEntry

_URI = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+:")
LOG_FOLDER = "_delta_log"


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


class LocalLog:
    """Implements ``LogStorage`` on a folder. It reads, and follows no link out of the log."""

    def __init__(self, root: Path) -> None:
        self._log = root / LOG_FOLDER

    @staticmethod
    def at(location: str) -> LocalLog | None:
        """The log of a table at a path or URI; None where there is none on this machine.

        Raises:
            PermissionError: The folder may not be listed.
        """
        look_into(location)
        folder = local_folder(location)
        return LocalLog(folder) if folder is not None and (folder / LOG_FOLDER).is_dir() else None

    def commits(self, *, after_version: int = -1) -> list[LogEntry]:
        """The published commit files above a version, in order."""
        commits = []
        with os.scandir(self._log) as entries:
            for file in entries:
                match = COMMIT_NAME.match(file.name)
                if match and int(match[1]) > after_version and file.is_file(follow_symlinks=False):
                    commits.append(LogEntry(int(match[1]), int(file.stat().st_mtime * 1000), file.path))
        return sorted(commits, key=lambda entry: entry.version)

    def commit_info(self, entry: LogEntry) -> dict[str, Any]:
        """The commit's ``commitInfo`` (nearly always its first line); empty if it has none."""
        with open(entry.uri, encoding="utf-8") as file:
            for line in file:
                if '"commitInfo"' in line[:40]:
                    info: dict[str, Any] = json.loads(line)["commitInfo"]
                    return info
        return {}

    def checksum(self, entry: LogEntry) -> dict[str, Any]:
        """Return the content of the checksum file beside a commit; empty if there is none."""
        try:
            with open(self._log / f"{entry.version:020d}.crc", encoding="utf-8") as file:
                checksum: dict[str, Any] = json.load(file)
                return checksum
        except FileNotFoundError:
            return {}

    def actions(self, entry: LogEntry, *, with_adds: bool = False) -> Iterator[dict[str, Any]]:
        """The commit's actions; adds only if asked for."""
        with open(entry.uri, encoding="utf-8") as file:
            for line in file:
                if line.strip() and (with_adds or not line.startswith('{"add":')):
                    yield json.loads(line)
