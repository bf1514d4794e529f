"""Read what past runs recorded of a table: last optimize and vacuum, versions not yet proven, quarantine.

Every record is a fold over the events of runs. ``.maintainer/state.json`` keeps the fold of all finished runs, so that
a nightly run reads one file and not a year of folders. It is rebuilt from the run folders when it is missing, damaged
or of another format. Runs that did not close their record are read each time until their open intents are settled.

A table is known by its id. A moved table leaves a record at its old place, and a copy has the id of its original, so
records are kept for each place and combined by ``place_records``. Whatever cannot be read counts as not proven.
Runs in a row are counted by id, so that they go on where a table was moved, and at each place, for a table with a copy.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from maintainer.engine.protocols import TablePlaces, is_one_place
from maintainer.journal.events.event_log import (
    EVENTS_FILE,
    Event,
    EventsRead,
    FileExtent,
    event_sizes,
    is_alive,
    is_finished,
    read_events,
)
from maintainer.journal.events.intents import open_intents
from maintainer.journal.folder.documents import MAX_TRIES, Document, Documents, LocalDocuments
from maintainer.journal.folder.run_folder import RunFolder, run_folders
from maintainer.journal.memory.failure_streaks import Streak
from maintainer.journal.memory.place_records import PlaceRecord, bounded, table_record
from maintainer.model.codec import decode, encode
from maintainer.model.plan.steps import REWRITE_KINDS
from maintainer.model.table.table_facts import TableRecord

STATE_FILE = "state.json"
STATE_FORMAT = "6"

CLOCK_TOLERANCE_MS = 5 * 60_000
"""Clocks of two machines may differ by so much; a time that is further ahead of ours is none."""


def latest_time_ms() -> int:
    """Return the latest time that something can have been done at, milliseconds since 1970 UTC."""
    return time.time_ns() // 1_000_000 + CLOCK_TOLERANCE_MS


MAX_PLACES_COUNTED = 20
"""Runs in a row are counted apart at so many places of a table, those seen last."""

PlacedTable = tuple[str, str]
"""A table's id, and the location where a run read it."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Remembered:
    """What past runs say: records and ``place_streaks`` by the table's id and location, and ``streaks`` by its id.

    ``keys`` has id and location of each table by the name that a policy gave it. The streak of a table that was never
    read is kept by that name.
    """

    tables: Mapping[str, Mapping[str, PlaceRecord]] = field(default_factory=dict)
    streaks: Mapping[str, Streak] = field(default_factory=dict)
    place_streaks: Mapping[str, Mapping[str, Streak]] = field(default_factory=dict)
    keys: Mapping[str, PlacedTable] = field(default_factory=dict)

    def streak_of(self, name: str, places: TablePlaces, key: PlacedTable | None = None) -> Streak:
        """Return the runs in a row of a table: of its id, and where it has a copy, of its place alone.

        Args:
            name: What its policy calls it.
            places: Tells which locations are one place, and which still hold a table.
            key: Its id and location; None where it was not read: those that a policy of this name reached before.
        """
        key = key or self.keys.get(name)
        if key is None:
            return self.streaks.get(name, Streak())
        table_id, location = key
        here: list[Streak] = []
        has_copy = False
        for other, streak in self.place_streaks.get(table_id, {}).items():
            if is_one_place(places, other, location):
                here.append(streak)
            else:
                has_copy = has_copy or places.may_hold(other, table_id)
        if not has_copy:
            return self.streaks.get(table_id, Streak())
        return max(here, key=lambda streak: streak.last_at_ms, default=Streak())

    def record_of(self, table_id: str, location: str, places: TablePlaces) -> TableRecord:
        """Return what is remembered of the table with this id at a location; see ``place_records``."""
        return table_record(self.tables.get(table_id, {}), table_id, location, places, latest_time_ms())

    def quarantine_of(self, key: PlacedTable) -> str | None:
        """Return why a table is in quarantine, by what was recorded alone; None where it is not.

        For readers without storage. Who acts asks ``record_of``, which also knows which places are one. A quarantine
        counts from every place of the id. It is over where somebody lifted it here, or there while no other place was
        known: only then it was surely for this table.

        Args:
            key: The table's id, and the location where a run read it.
        """
        table_id, location = key
        records = self.tables.get(table_id, {})
        here = records.get(location.rstrip("/"), PlaceRecord())
        held = [
            (quarantine.at_ms, quarantine.reason)
            for record in records.values()
            for quarantine_id, quarantine in record.quarantines.items()
            if quarantine_id not in here.lifted and not record.lifted.get(quarantine_id, False)
        ]
        return max(held)[1] if held else None


@dataclass(slots=True)
class _State:
    """The fold of the runs named in ``runs``, as ``state.json`` keeps it.

    ``unfinished`` are those of them that never closed their record, with how far its files were taken in: one that
    only lost the store for a while publishes more of it later.
    """

    runs: set[str] = field(default_factory=set)
    unfinished: dict[str, dict[str, FileExtent]] = field(default_factory=dict)
    tables: dict[str, dict[str, PlaceRecord]] = field(default_factory=dict)
    streaks: dict[str, Streak] = field(default_factory=dict)
    place_streaks: dict[str, dict[str, Streak]] = field(default_factory=dict)
    keys: dict[str, PlacedTable] = field(default_factory=dict)
    format_version: str = STATE_FORMAT

    def document(self) -> dict[str, Any]:
        """Return the JSON document, without what is too much to remember."""
        tables = {table_id: dict(bounded(records)) for table_id, records in self.tables.items()}
        document: dict[str, Any] = encode(replace(self, tables=tables))
        document["runs"].sort()
        for records in document["tables"].values():
            for record in records.values():
                record["unproven"] = sorted(record["unproven"])
        return document

    def fold_run(self, read: EventsRead) -> None:
        """Take in a run's events, and its open intents as versions not proven."""
        self._fold(read.events, read)
        self.claim_intents(read)

    def _fold(self, events: Iterable[Event], read: EventsRead) -> None:
        done_at_ms: dict[str, int] = {}
        latest_ms = latest_time_ms()
        for event in read.events:
            if "by" not in event:  # what a later run found out was done before this run died
                done_at_ms[str(event.get("step"))] = int(event.get("at_ms", 0))
        for event in events:
            key, step = _key_of(event), str(event.get("step"))
            if event["type"] == "table_finished":
                if isinstance(event.get("table"), str):
                    self._count(event["table"], key, event)
            elif key is not None:
                self._place(*key).fold(event, done_at_ms.get(step, int(event.get("at_ms", 0))), latest_ms)

    def claim_intents(self, read: EventsRead) -> None:
        """Count the versions that open intents may have become as ours and not proven."""
        for intent in open_intents(read.events):
            if intent.kind in REWRITE_KINDS:
                self._place(intent.table_id, intent.location).claim(intent.read_version + 1)

    def keep(self, run_id: str, read: EventsRead) -> None:
        """Remember that a run was taken in; one that closed its record is not looked at again."""
        self.runs.add(run_id)
        self.unfinished.pop(run_id, None)
        if not is_finished(read.events):
            self.unfinished[run_id] = read.extent

    def fold_grown(self, folder: RunFolder) -> EventsRead | None:
        """Take in what a run that was thought to be over recorded since.

        Returns:
            The record, where an intent of it is open: the version that it may become is a guess and is not kept, so the
            record is read again until somebody has asked the log.

        Raises:
            OSError: Its record cannot be read.
        """
        taken_in, path = self.unfinished.get(folder.run_id), folder.path / EVENTS_FILE
        if taken_in is None or event_sizes(path) == {name: extent.size_bytes for name, extent in taken_in.items()}:
            return None
        read = read_events(path)
        self._fold(read.after(taken_in), read)
        self.keep(folder.run_id, read)
        if not open_intents(read.events):
            return None
        self.unfinished[folder.run_id] = {name: replace(each, size_bytes=-1) for name, each in read.extent.items()}
        return read

    def _place(self, table_id: str, location: str) -> PlaceRecord:
        return self.tables.setdefault(table_id, {}).setdefault(location.rstrip("/"), PlaceRecord())

    def _count(self, table: str, key: PlacedTable | None, event: Event) -> None:
        if key is not None:
            self.keys[table] = key
            if table in self.streaks:  # of runs in which the table could not be read
                unread = self.streaks.pop(table)
                self.streaks.setdefault(key[0], unread)
                self.place_streaks.setdefault(key[0], {}).setdefault(key[1], unread)
        key = self.keys.get(table)
        counted = table if key is None else key[0]
        streak = self.streaks.get(counted, Streak()).after(event)
        if streak.matters:
            self.streaks[counted] = streak
        else:
            self.streaks.pop(counted, None)
        if key is not None:
            self._count_at_place(*key, event)

    def _count_at_place(self, table_id: str, location: str, event: Event) -> None:
        """Count a run at the place where it read the table.

        A place that is well is remembered only beside others: it says that there may be a copy.
        """
        streaks = self.place_streaks.setdefault(table_id, {})
        streaks[location] = streaks.pop(location, Streak()).after(event)
        while len(streaks) > MAX_PLACES_COUNTED:
            del streaks[min(streaks, key=lambda other: streaks[other].last_at_ms)]
        if not any(streak.matters for streak in streaks.values()):
            del self.place_streaks[table_id]


def remembered(runs_dir: Path, *, except_run: str | None = None) -> Remembered:
    """Read everything that the runs so far say about tables, but for one run. Writes nothing.

    Raises:
        OSError: The runs folder cannot be listed or read.
    """
    state, _ = _current(runs_dir, _stored_fold(runs_dir), except_run)
    return Remembered(state.tables, state.streaks, state.place_streaks, state.keys)


def update_state(
    runs_dir: Path, documents: Documents | None = None, refresh: Callable[[], None] = lambda: None
) -> None:
    """Take all runs that are over into ``state.json``. Called at the end of each run; several may do so at once.

    Args:
        runs_dir: The folder of all runs, on this machine.
        documents: Where ``state.json`` is, if other machines share it; None: beside the run folders.
        refresh: Brings what other machines recorded into ``runs_dir``.

    Raises:
        OSError: It cannot be written; the next run reads the folders instead.
    """
    documents = documents or LocalDocuments(runs_dir.parent)
    for _ in range(MAX_TRIES):
        before = documents.read(STATE_FILE)
        refresh()
        _, over = _current(runs_dir, before)
        text = json.dumps(over.document(), indent=1, sort_keys=True)
        if documents.replace(STATE_FILE, text.encode() + b"\n", before):
            return
    raise OSError(0, f"other runs replaced {STATE_FILE} {MAX_TRIES} times while it was read")


def _current(runs_dir: Path, stored_fold: Document | None, except_run: str | None = None) -> tuple[_State, _State]:
    """The fold of all runs, and the fold of those that are over (what may be kept)."""
    folders = run_folders(runs_dir)
    names = {folder.run_id for folder in folders}
    over = _load(stored_fold, runs_dir.parent / STATE_FILE) or _State()
    still_open, grown = [], []
    for folder in folders:
        if folder.run_id == except_run:
            continue
        if folder.run_id in over.runs:
            read_on = over.fold_grown(folder)
            if read_on is not None:
                grown.append(read_on)
            continue
        # First: a run that ends between the two has then written all that is read.
        alive = is_alive(folder.path / EVENTS_FILE)
        read = read_events(folder.path / EVENTS_FILE)
        if not read.is_whole:
            _log.warning("%s: %d damaged lines; what they recorded counts as not proven", folder.path, read.damaged)
        if _is_over(read.events, alive=alive):
            over.fold_run(read)
            over.keep(folder.run_id, read)
        else:
            still_open.append(read)
    over.runs &= names  # folders that were deleted need not be remembered; what they taught us stays
    over.unfinished = {run_id: taken_in for run_id, taken_in in over.unfinished.items() if run_id in names}
    everything = deepcopy(over) if still_open or grown else over
    for read in still_open:
        everything.fold_run(read)
    for read in grown:
        everything.claim_intents(read)
    return everything, over


def _key_of(event: Event) -> PlacedTable | None:
    table_id, location = event.get("table_id"), event.get("location")
    if isinstance(table_id, str) and isinstance(location, str):
        return table_id, location.rstrip("/")
    return None


def _is_over(events: tuple[Event, ...], *, alive: bool) -> bool:
    """Whether nothing will be added: all it tried is settled, and the run closed its record or died."""
    if open_intents(events):
        return False
    return is_finished(events) or not alive


def _stored_fold(runs_dir: Path) -> Document | None:
    """``state.json`` beside the run folders; one that cannot be read is rebuilt."""
    try:
        return LocalDocuments(runs_dir.parent).read(STATE_FILE)
    except OSError:
        _log.warning("%s cannot be read; it is rebuilt from the run folders", runs_dir.parent / STATE_FILE)
        return None


def _load(stored_fold: Document | None, path: Path) -> _State | None:
    """The kept fold, or None when it has to be rebuilt."""
    if stored_fold is None:
        return None
    try:
        document = json.loads(stored_fold.data)
        if document["format_version"] != STATE_FORMAT:
            return None
        state = decode(_State, document)
        if state.document() != document:
            raise ValueError("it lacks something")
        return state
    except (ValueError, KeyError, TypeError):
        _log.warning("%s cannot be read; it is rebuilt from the run folders", path)
        return None
