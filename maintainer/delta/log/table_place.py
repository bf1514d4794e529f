"""Find where a table physically is, whatever path leads there. Needs no Spark.

On a disk of this machine two paths mean one table if they reach the same ``_delta_log`` folder, by device and inode.
So symlinks, bind mounts, ``..`` and encodings make no difference. Elsewhere the canonical URI decides.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

from maintainer.delta.storage.file_identity import canonical_uri
from maintainer.delta.storage.log_paths import path_uri
from maintainer.delta.storage.table_log import TableLog, local_folder, log_on_disk
from maintainer.engine.protocols import TablePlaces
from maintainer.model.table.log_names import LOG_FOLDER
from maintainer.model.table.table_facts import TableRef

MAX_COMMITS_READ = 1_000
"""Newest commits in which a table's id is looked for; with none in them, the table is taken to be there."""


@dataclass(frozen=True, slots=True)
class StoragePlaces:
    """Implements ``TablePlaces`` where the process sees the storage itself."""

    def place_at(self, location: str) -> str | None:
        folder = local_folder(location)
        if folder is None:
            return canonical_uri(location)
        try:
            folder_stat = os.stat(folder / LOG_FOLDER)
        except (OSError, ValueError):
            return None
        return f"disk:{folder_stat.st_dev}:{folder_stat.st_ino}"

    def may_hold(self, location: str, table_id: str) -> bool:
        folder = local_folder(location)
        if folder is None:
            return True
        try:
            os.stat(folder / LOG_FOLDER)
            log = log_on_disk(location)
            newest_id = None if log is None else _newest_id(log)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except (OSError, ValueError, KeyError, TypeError):
            return True
        return newest_id is None or newest_id == table_id


@dataclass(frozen=True, slots=True)
class SpelledPlaces:
    """Implements ``TablePlaces`` where the storage is a server's: only spellings can be compared."""

    def place_at(self, location: str) -> str | None:
        return canonical_uri(location)

    def may_hold(self, location: str, table_id: str) -> bool:
        return True


def table_id_at(location: str) -> str | None:
    """Return the id of the table at a path or URI, from its log alone.

    None if the log is not on this machine, cannot be read, or has no id in the newest commits and checksums.
    """
    try:
        log = log_on_disk(location)
        return None if log is None else _newest_id(log, with_checksums=True)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def location_of(ref: TableRef) -> str:
    """Return where a table by path lies, as records spell it: on a store percent-encoded, which people do not write."""
    return ref.location if local_folder(ref.location) is not None else path_uri(ref.location)


def place_key(places: TablePlaces, location: str) -> str:
    """Return a key of the place behind a location; its spelling if no table is there or it cannot be read."""
    return places.place_at(location) or canonical_uri(location)


def _newest_id(log: TableLog, *, with_checksums: bool = False) -> str | None:
    """Return the id in the newest metadata action; None if the newest commits have none.

    A version's checksum has the same id in one small file. It is not in the protocol: no deletion relies on it.
    """
    for entry in reversed(log.commits()[-MAX_COMMITS_READ:]):
        metadata = _checksum(log, entry.version).get("metadata") if with_checksums else None
        if metadata:
            return str(metadata["id"])
        for action in log.actions(entry):
            if "metaData" in action:
                return str(action["metaData"]["id"])
    return None


def _checksum(log: TableLog, version: int) -> dict[str, Any]:
    try:
        checksum: dict[str, Any] = json.loads(log.files.read(log.checksum_uri(version)))
    except FileNotFoundError:
        return {}
    return checksum
