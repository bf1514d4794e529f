"""Which runs of a state on a store are looked into: as many as may have recorded more, however many there are.

Of all runs only the ids are listed. What a run is known to have ended with is in ``state.json``. What no run must know
lies apart on the store, so that a listing of runs is short: ``assertions/``, and rows that wait for the ledger.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from maintainer.engine.store.object_storage import ObjectStorage
from maintainer.engine.store.store_clients import StoredObject
from maintainer.journal.folder.documents import abreast
from maintainer.journal.folder.run_folder import is_run_id
from maintainer.units import grouped

RUNS = "runs"
GROWING_DAYS = 30
"""So long after it began a run that never closed its record is looked into: it may only have lost the store. What its
machine publishes still later is taken into ``state.json`` by that machine's next run.
"""

MAX_LISTED_ALONE = 64
"""Where more runs are looked into, one listing of all that lies behind the first takes less."""


@dataclass(frozen=True, slots=True)
class FoldedRuns:
    """The runs that ``state.json`` has: all of them, and those that may record more."""

    run_ids: frozenset[str] = frozenset()
    unfinished: frozenset[str] = frozenset()
    open: frozenset[str] = frozenset()
    """Those of them that left something open, which is read each time."""

    @staticmethod
    def of(data: bytes) -> FoldedRuns:
        """Read a state; none where it is damaged: then the records are read, and it is made again."""
        try:
            state = json.loads(data)
            files = {run_id: files.values() for run_id, files in state["unfinished"].items()}
            is_open = {run_id for run_id, extents in files.items() if any(each["size_bytes"] < 0 for each in extents)}
            return FoldedRuns(frozenset(state["runs"]), frozenset(files), frozenset(is_open))
        except (ValueError, KeyError, TypeError, AttributeError):
            return FoldedRuns()

    def growing(self, run_ids: Iterable[str], now_ms: int) -> set[str]:
        """Return those of all runs that may have recorded something that is not in the state."""
        oldest = datetime.fromtimestamp(now_ms / 1000, tz=UTC) - timedelta(days=GROWING_DAYS)
        first_id = f"{oldest:%Y%m%dT%H%M%SZ}"
        young = {run_id for run_id in self.unfinished if run_id > first_id}
        return {run_id for run_id in run_ids if run_id not in self.run_ids or run_id in self.open or run_id in young}


def stored_run_ids(storage: ObjectStorage) -> list[str]:
    """Return the ids of all runs, oldest first.

    Raises:
        StoreFailure: They cannot be listed.
    """
    _, folders = storage.children(f"{RUNS}/")
    return sorted(filter(is_run_id, (folder.rstrip("/").rpartition("/")[2] for folder in folders)))


def objects_of_runs(
    storage: ObjectStorage, run_ids: Collection[str], newest: Collection[str]
) -> dict[str, list[StoredObject]]:
    """Return the objects right below the folders of runs.

    Args:
        storage: The state.
        run_ids: The runs.
        newest: The newest of all runs, which are listed together.

    Raises:
        StoreFailure: They cannot be listed.
    """
    alone = sorted({*run_ids} - {*newest})
    together = [*newest]
    if len(alone) > MAX_LISTED_ALONE:
        alone, together = [], [*alone, *newest]
    found = abreast(lambda run_id: storage.children(f"{RUNS}/{run_id}/")[0], alone)
    objects = dict(zip(alone, found, strict=True))
    if together:
        behind = storage.below(f"{RUNS}/", after=f"{RUNS}/{min(together)}")
        listed = grouped((stored for stored in behind if stored.name.count("/") == 2), _run_of)
        objects |= {run_id: listed[run_id] for run_id in {*run_ids, *newest} & listed.keys()}
    return objects


def _run_of(stored: StoredObject) -> str:
    return stored.name.split("/")[1]
