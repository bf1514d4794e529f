"""Before files are read: that each is a file. A pipe or a device in its place would be read for ever."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable

from maintainer.delta.file_store import LocalFiles, local_path
from maintainer.delta.storage import TableStorage
from maintainer.errors import TableError

MAX_NAMED = 5


def refuse_what_is_no_file(storage: TableStorage, paths: Iterable[str], where: str) -> None:
    """Look, on a local disk, that everything that is about to be read is a regular file. Object stores hold no other.

    Args:
        storage: The table's storage.
        paths: Data files as the log names them. What is missing is left to whoever reads.
        where: The table, for the message.

    Raises:
        TableError: T422, something else lies in a file's place.
    """
    if not isinstance(storage.files, LocalFiles):
        return
    found = [path for path in paths if _is_something_else(local_path(storage.uri(path)))]
    if found:
        noun = "live file of the table is" if len(found) == 1 else "live files of the table are"
        raise TableError(
            f"{len(found)} {noun} no regular file but a pipe, a folder or a device",
            code="T422",
            where=where,
            found="\n".join(found[:MAX_NAMED]),
            help="bring the file back from a backup, or RESTORE the table to a version without it",
        )


def _is_something_else(path: str) -> bool:
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False
