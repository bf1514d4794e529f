"""Find Delta tables in folders below a root. Reads names only, no log."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from maintainer.delta.log.local_log import LOG_FOLDER
from maintainer.delta.storage.file_store import FileStore
from maintainer.errors import ProjectError

MAX_DEPTH = 12
MAX_FOLDERS = 200_000
"""A walk that meets more folders than this is over the wrong root."""


def tables_below(files: FileStore, root_uri: str, *, max_depth: int = MAX_DEPTH) -> Iterator[str]:
    """Yield the URI of each folder that holds a Delta log, the highest first.

    Below a table nothing is looked for, nor in folders whose names begin with ``.`` or ``_`` or that are partitions
    (``day=2026-11-21``); links are not followed.

    Raises:
        ProjectError: E644, there are too many folders.
        OSError: A folder cannot be listed.
    """
    waiting = deque([(root_uri.rstrip("/"), 0)])
    num_folders = 0
    while waiting:
        uri, depth = waiting.popleft()
        num_folders += 1
        if num_folders > MAX_FOLDERS:
            raise ProjectError(
                "there are too many folders to look through",
                code="E644",
                where=root_uri,
                found=f"more than {MAX_FOLDERS:,}",
                help="name a folder closer to the tables",
            )
        folders = {
            child_file.name: child
            for child, child_file in files.children(uri).items()
            if child_file.is_dir and not child_file.is_symlink
        }
        if LOG_FOLDER in folders:
            yield uri
        elif depth < max_depth:
            waiting.extend((folders[name], depth + 1) for name in sorted(folders) if _may_hold_tables(name))


def _may_hold_tables(name: str) -> bool:
    return not name.startswith((".", "_")) and "=" not in name
