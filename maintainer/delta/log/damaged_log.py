"""Refuse to write to a table whose log is damaged in a way that every reader passes over.

A commit file without a byte is what a full disk or a machine that lost its power leaves: Delta reads it as a version
that did nothing, and what the writer had put there is gone without a word. A checksum file that counts other files than
the log belongs to another log, or one of the two was changed; Delta would derive those of later versions from it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from maintainer.delta.storage.failures.engine_failures import log_unreadable
from maintainer.delta.storage.file_store import StoredFile
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.errors import TableError
from maintainer.model.table.log_names import COMMIT_NAME
from maintainer.model.table.table_facts import TableFacts


def refuse_empty_commits(log_files: Iterable[StoredFile], where: str) -> None:
    """Look at the commit files of a table's log before anything is written to it.

    Args:
        log_files: What lies in its folder.
        where: The table, for the message.

    Raises:
        TableError: T403, one of them is empty.
    """
    empty = sorted(file.name for file in log_files if COMMIT_NAME.match(file.name) and not file.size_bytes)
    if empty:
        raise _damaged(where, f"{empty[0]} has no bytes: what its writer committed is lost")


def refuse_other_checksum(storage: TableStorage, facts: TableFacts) -> None:
    """Compare a version with its checksum file, where there is one, before a rewrite of its files.

    Raises:
        TableError: T403, the checksum file counts other files than the log.
    """
    uri = storage.checksum_uri(facts.version)
    try:
        counted = _counted(storage.files.read(uri))
    except FileNotFoundError:
        return
    in_log = (len(facts.files), sum(file.size_bytes for file in facts.files))
    if counted is not None and counted != in_log:
        name = uri.rpartition("/")[2]
        raise _damaged(
            facts.ref.identifier,
            f"{name} counts {counted[0]} files of {counted[1]} bytes, the log has {in_log[0]} of {in_log[1]}",
        )


def _counted(text: bytes) -> tuple[int, int] | None:
    """Files and bytes that a checksum file counts; None where it cannot be read, as Delta takes it."""
    try:
        checksum = json.loads(text)
        return int(checksum["numFiles"]), int(checksum["tableSizeBytes"])
    except (ValueError, KeyError, TypeError):
        return None


def _damaged(where: str, found: str) -> TableError:
    return log_unreadable("the table's log is damaged", where, found)
