"""Read what past runs recorded of a table: last optimize and vacuum, versions not yet proven, quarantine.

Every record is a fold over the events of runs. ``.maintainer/state.json`` keeps the fold of all finished runs, so that
a nightly run reads one file and not a year of folders. It is rebuilt from the run folders when it is missing, damaged
or of another format. Runs that did not close their record are read each time until their open intents are settled.

A table is known by its id. A moved table leaves a record at its old place, and a copy has the id of its original, so
records are kept for each place and combined by ``place_records``. Whatever cannot be read counts as not proven.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from maintainer.engine.protocols import TablePlaces
from maintainer.journal.events.event_log import EVENTS_FILE, Event, EventsRead, is_alive, read_events
from maintainer.journal.events.intents import open_intents
from maintainer.journal.folder.atomic_files import exclusive, write_atomically
from maintainer.journal.folder.run_folder import run_folders
from maintainer.journal.memory.failure_streaks import Streak
from maintainer.journal.memory.place_records import MAX_UNPROVEN_VERSIONS, REWRITES, PlaceRecord, bounded, table_record
from maintainer.model.codec import decode, encode
from maintainer.model.table.table_facts import TableRecord

STATE_FILE = "state.json"
STATE_FORMAT = "3"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Remembered:
    """What past runs say: records by the table's id and the location it was seen at, and streaks by its id.

    ``table_ids`` has the id of each table by the name that a policy gave it. The streak of a table that was never read
    is kept by that name.
    """

    tables: Mapping[str, Mapping[str, PlaceRecord]] = field(default_factory=dict)
    streaks: Mapping[str, Streak] = field(default_factory=dict)
    table_ids: Mapping[str, str] = field(default_factory=dict)

    def streak_of(self, name: str, table_id: str | None = None) -> Streak:
        """Return the runs in a row of a table: by its id, else by the id that a policy of this name reached before."""
        return self.streaks.get(table_id or self.table_ids.get(name, name), Streak())

    def record_of(self, table_id: str, location: str, places: TablePlaces) -> TableRecord:
        """Return what is remembered of the table with this id at a location; see ``place_records``."""
        return table_record(self.tables.get(table_id, {}), table_id, location, places)


@dataclass(slots=True)
class _State:
    """The fold of the runs named in ``runs``, as ``state.json`` keeps it."""

    runs: set[str] = field(default_factory=set)
    tables: dict[str, dict[str, PlaceRecord]] = field(default_factory=dict)
    streaks: dict[str, Streak] = field(default_factory=dict)
    table_ids: dict[str, str] = field(default_factory=dict)
    format_version: str = STATE_FORMAT

    def document(self) -> dict[str, Any]:
        """Return the JSON document, without what is too much to remember."""
        tables = {table_id: dict(bounded(records)) for table_id, records in self.tables.items()}
        document: dict[str, Any] = encode(replace(self, tables=tables))
        document["runs"].sort()
        for records in document["tables"].values():
            for record in records.values():
                record["unproven"] = sorted(record["unproven"])[-MAX_UNPROVEN_VERSIONS:]
        return document

    def fold_run(self, read: EventsRead) -> None:
        """Take in a run's events, and its open intents as versions not proven."""
        for event in read.events:
            if isinstance(event.get("table_id"), str) and isinstance(event.get("location"), str):
                self._place(event["table_id"], event["location"]).fold(event)
            elif event["type"] == "table_finished" and isinstance(event.get("table"), str):
                self._count(event["table"], event)
        for intent in open_intents(read.events):
            if intent.kind in REWRITES:
                self._place(intent.table_id, intent.location).claim(intent.read_version + 1)

    def _place(self, table_id: str, location: str) -> PlaceRecord:
        return self.tables.setdefault(table_id, {}).setdefault(location.rstrip("/"), PlaceRecord())

    def _count(self, table: str, event: Event) -> None:
        table_id = event.get("table_id")
        if isinstance(table_id, str):
            self.table_ids[table] = table_id
            if table in self.streaks:  # of runs in which the table could not be read
                self.streaks.setdefault(table_id, self.streaks.pop(table))
        key = self.table_ids.get(table, table)
        streak = self.streaks.get(key, Streak()).after(event)
        if streak.matters:
            self.streaks[key] = streak
        else:
            self.streaks.pop(key, None)


def remembered(runs_dir: Path) -> Remembered:
    """Read everything that the runs so far say about tables. Writes nothing.

    Raises:
        OSError: The runs folder cannot be listed or read.
    """
    state, _ = _current(runs_dir)
    return Remembered(state.tables, state.streaks, state.table_ids)


def update_state(runs_dir: Path) -> None:
    """Take all runs that are over into ``state.json``. Called at the end of each run; several may do so at once.

    Raises:
        OSError: It cannot be written; the next run reads the folders instead.
    """
    with exclusive(runs_dir.parent / f".{STATE_FILE}.lock"):
        _, over = _current(runs_dir)
        text = json.dumps(over.document(), indent=1, sort_keys=True)
        write_atomically(runs_dir.parent / STATE_FILE, text.encode() + b"\n")


def _current(runs_dir: Path) -> tuple[_State, _State]:
    """The fold of all runs, and the fold of those that are over (what may be kept)."""
    folders = run_folders(runs_dir)
    names = {folder.run_id for folder in folders}
    over = _load(runs_dir.parent / STATE_FILE) or _State()
    still_open = []
    for folder in folders:
        if folder.run_id in over.runs:
            continue
        read = read_events(folder.path / EVENTS_FILE)
        if not read.is_whole:
            _log.warning("%s: %d damaged lines; what they recorded counts as not proven", folder.path, read.damaged)
        if _is_over(folder.path / EVENTS_FILE, read.events):
            over.fold_run(read)
            over.runs.add(folder.run_id)
        else:
            still_open.append(read)
    over.runs &= names  # folders that were deleted need not be remembered; what they taught us stays
    everything = deepcopy(over) if still_open else over
    for read in still_open:
        everything.fold_run(read)
    return everything, over


def _is_over(path: Path, events: tuple[Event, ...]) -> bool:
    """Whether nothing will be added: all it tried is settled, and the run closed its record or died."""
    if open_intents(events):
        return False
    return any(event["type"] == "run_finished" for event in events) or not is_alive(path)


def _load(path: Path) -> _State | None:
    """The kept fold, or None when it has to be rebuilt."""
    try:
        document = json.loads(path.read_bytes())
        if document["format_version"] != STATE_FORMAT:
            return None
        state = decode(_State, document)
        if state.document() != document:
            raise ValueError("it lacks something")
        return state
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        _log.warning("%s cannot be read; it is rebuilt from the run folders", path)
        return None
