"""Where a table physically is, whatever path leads there. Needs no Spark.

On a disk of this machine two paths lead to one table when they reach the same ``_delta_log`` folder: device and inode
are asked, so that symlinks, bind mounts, ``..`` and encodings make no difference. Elsewhere the canonical URI decides.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from maintainer.delta.log.local_log import LOG_FOLDER, LocalLog, local_folder
from maintainer.delta.storage.file_identity import canonical

MAX_COMMITS_READ = 1_000
"""Newest commits in which a table's id is looked for; with none in them, the table is taken to be there."""


@dataclass(frozen=True, slots=True)
class StoragePlaces:
    """Implements ``TablePlaces`` where the process sees the storage itself."""

    def place_at(self, location: str) -> str | None:
        """See ``TablePlaces``."""
        folder = local_folder(location)
        if folder is None:
            return canonical(location)
        try:
            known = os.stat(folder / LOG_FOLDER)
        except (OSError, ValueError):
            return None
        return f"disk:{known.st_dev}:{known.st_ino}"

    def may_hold(self, location: str, table_id: str) -> bool:
        """See ``TablePlaces``."""
        folder = local_folder(location)
        if folder is None:
            return True
        try:
            os.stat(folder / LOG_FOLDER)
            found = _newest_id(LocalLog(folder))
        except (FileNotFoundError, NotADirectoryError):
            return False
        except (OSError, ValueError, KeyError, TypeError):
            return True
        return found is None or found == table_id


@dataclass(frozen=True, slots=True)
class SpelledPlaces:
    """Implements ``TablePlaces`` where the storage is a server's: only spellings can be compared."""

    def place_at(self, location: str) -> str | None:
        """See ``TablePlaces``."""
        return canonical(location)

    def may_hold(self, location: str, table_id: str) -> bool:
        """See ``TablePlaces``."""
        return True


def _newest_id(log: LocalLog) -> str | None:
    """The id in the newest metadata action; None where the newest commits have none."""
    for entry in reversed(log.commits()[-MAX_COMMITS_READ:]):
        for action in log.actions(entry):
            if "metaData" in action:
                return str(action["metaData"]["id"])
    return None
