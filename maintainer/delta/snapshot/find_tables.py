"""Find Delta tables in folders below a root. Reads names only, no log."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from maintainer.delta.storage.file_store import FileStore
from maintainer.delta.storage.local_files import LocalFiles
from maintainer.delta.storage.log_paths import path_uri
from maintainer.errors import FoldersTooDeep, MaintainerError, ProjectError
from maintainer.model.table.log_names import LOG_FOLDER

CLOSER = "name a folder closer to the tables"

FOLDERS_AT_ONCE = 100
"""Folders of which a store is asked side by side, within the bound of the process."""


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """How far a search goes below one root: levels, folders that hold no table, tables, seconds."""

    max_depth: int = 12
    max_folders: int = 200_000
    max_tables: int = 20_000
    max_seconds: float = 600.0


@dataclass(slots=True)
class _Walk:
    files: FileStore
    root_uri: str
    limits: SearchLimits
    monotonic: Callable[[], float]
    num_folders: int = 0
    num_tables: int = 0
    deepest: str | None = None
    unreadable: tuple[str, str] | None = None
    num_unreadable: int = 0

    def tables(self) -> Iterator[str]:
        started = self.monotonic()
        waiting = deque([(self.root_uri, 0)])
        while waiting:
            group = [waiting.popleft() for _ in range(min(len(waiting), FOLDERS_AT_ONCE))]
            looks = self.files.abreast(self._folders_of, [uri for uri, _ in group])
            for (uri, depth), folders in zip(group, looks, strict=True):
                self._check_limits(self.monotonic() - started)
                if isinstance(folders, OSError):
                    self.num_unreadable += 1
                    self.unreadable = self.unreadable or (uri, folders.strerror or str(folders))
                elif folders is None:
                    self.num_tables += 1
                    yield uri
                else:
                    self.num_folders += 1
                    if depth < self.limits.max_depth:
                        waiting.extend((folder, depth + 1) for folder in folders)
                    elif folders:
                        self.deepest = self.deepest or uri

    def _folders_of(self, uri: str) -> list[str] | OSError | None:
        """Return the folders in a folder that may hold tables; None of a table; the error where it cannot be listed."""
        try:
            log = self.files.status(f"{uri}/{LOG_FOLDER}")
            if log is not None and log.is_dir:
                return None
            children = self.files.children(uri)
        except OSError as error:
            return error
        folders = {file.name: child for child, file in children.items() if file.is_dir and not file.is_symlink}
        return [folders[name] for name in sorted(folders) if _may_hold_tables(name)]

    def _check_limits(self, seconds: float) -> None:
        limits, where = self.limits, self.root_uri
        if self.num_folders >= limits.max_folders:
            found, what = f"more than {limits.max_folders:,}", "there are too many folders to look through"
            raise ProjectError(what, code="E644", where=where, found=found, help=CLOSER)
        if self.num_tables >= limits.max_tables:
            found, what = f"more than {limits.max_tables:,}", "there are too many tables below one folder"
            raise ProjectError(what, code="E646", where=where, found=found, help=f"{CLOSER}, or several of them")
        if seconds > limits.max_seconds:
            what = f"looking for tables took longer than {limits.max_seconds:g} s"
            found = f"{self.num_folders:,} folders and {self.num_tables:,} tables so far"
            raise ProjectError(what, code="E649", where=where, found=found, help=CLOSER)

    def what_was_left_out(self) -> MaintainerError | None:
        if self.unreadable is not None:
            uri, reason = self.unreadable
            more = f", and {self.num_unreadable - 1:,} more" if self.num_unreadable > 1 else ""
            what = f"a folder cannot be searched for tables: {reason}{more}"
            way_out = "let the user that runs maintainer list it, or name roots beside it"
            return ProjectError(what, code="E645", where=uri, help=way_out)
        if self.deepest is not None:
            what = f"folders more than {self.limits.max_depth} levels below the root were not searched"
            return FoldersTooDeep(what, where=self.deepest, help=CLOSER)
        return None


def tables_below(
    files: FileStore, root_uri: str, limits: SearchLimits | None = None, monotonic: Callable[[], float] = time.monotonic
) -> Iterator[str]:
    """Yield the URI of each folder that holds a Delta log, the highest first.

    Below a table nothing is looked for, nor in folders whose names begin with ``.`` or ``_`` or that are partitions
    (``day=2026-11-21``); links are not followed.

    Raises:
        ProjectError: After the tables that could be found: E644 too many folders, E646 too many tables, E649 it takes
            too long, E645 a folder cannot be listed or the root is not there, E648 folders lie too deep.
        MaintainerError: The storage does not answer.
    """
    walk = _Walk(files, root_uri.rstrip("/"), limits or SearchLimits(), monotonic)
    yield from walk.tables()
    if not walk.num_tables and walk.num_unreadable == 0 and files.status(walk.root_uri) is None:
        way_out = "correct the path, or see whether its disk is mounted"
        raise ProjectError("there is no such folder", code="E645", where=root_uri, help=way_out)
    left_out = walk.what_was_left_out()
    if left_out is not None:
        raise left_out


def local_tables_below(folder: Path) -> Iterator[str]:
    """Yield the same below a folder of this machine, without Spark. Raises what `tables_below` raises."""
    yield from tables_below(LocalFiles(), path_uri(str(folder)))


def _may_hold_tables(name: str) -> bool:
    return not name.startswith((".", "_")) and "=" not in name
