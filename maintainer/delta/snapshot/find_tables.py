"""Find Delta tables in the session's catalog, and in folders below a root. Reads names only, no log."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from maintainer.delta.jvm import DeltaJvm
from maintainer.delta.log.local_log import LOG_FOLDER
from maintainer.delta.log.schema_names import quote
from maintainer.delta.storage.error_classes import table_errors
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


def tables_in_catalog(jvm: DeltaJvm) -> Iterator[tuple[str, str]]:
    """Yield name and location URI of every Delta table of the session's catalog, in the order of the names.

    Raises:
        TableError: The catalog cannot be listed. A single entry that cannot be looked at is left out.
    """
    jvm.activate()
    if not jvm.has_catalog:
        return
    with table_errors("the catalog"):
        databases = sorted(str(row[0]) for row in jvm.spark.sql("SHOW DATABASES").collect())
        names = [
            f"{_quoted(str(row[0]))}.{_quoted(str(row[1]))}"
            for database in databases
            for row in sorted(jvm.spark.sql(f"SHOW TABLES IN {quote(database)}").collect())
            if not row[2]
        ]
    for name in names:
        try:
            entry = jvm.catalog_location(name)
        except Exception:  # an entry that Spark cannot read is not one of our tables
            continue
        if entry is not None and entry[2] != "VIEW" and entry[1].lower() == "delta":
            yield name, entry[0]


def _quoted(part: str) -> str:
    return part if part.replace("_", "a").isalnum() and part.isascii() else quote(part)
