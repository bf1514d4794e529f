"""Read what past runs recorded of a table: last optimize and vacuum, versions not yet proven, quarantine, what is open.

Every record is a fold over the events of runs. ``.maintainer/state.json`` keeps the fold of all finished runs, so that
a nightly run reads one file and not a year of folders. It is made from the run folders where there is none. One that
is there and cannot be read stops whoever asks: it may hold a quarantine of a run whose folder is gone. Runs that did
not close their record are read each time until what they left open is settled. A record with a damaged line is never
taken in: what the line held is not known, so nothing is deleted until somebody has seen to it.

A table is known by its id. A moved table leaves a record at its old place, and a copy has the id of its original, so
records are kept for each place and combined by ``place_records``.
Runs in a row are counted by id, so that they go on where a table was moved, and at each place, for a table with a copy.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

from maintainer.engine.protocols import TablePlaces, is_one_place
from maintainer.journal.event_log import EVENTS_FILE, FileExtent, event_sizes
from maintainer.journal.event_log import run_events as events_of
from maintainer.journal.folder.atomic_files import unreadable_state
from maintainer.journal.folder.documents import Documents, LocalDocuments, StoredDocument, replaced
from maintainer.journal.folder.run_folder import RunFolder, latest_time_ms, run_folders
from maintainer.journal.memory.past_runs import RunRecord, read_record
from maintainer.journal.memory.place_records import PlaceRecord, Streak, bounded, gone_tables, table_record
from maintainer.model.codec import decode, encode
from maintainer.model.plan.steps import REWRITE_KINDS
from maintainer.model.run.outcome import RunEnd
from maintainer.model.run.progress import OfTable, PlacedTable, TableFinished
from maintainer.model.run.run_events import Intent, RunEvent, Writing, step_of
from maintainer.model.table.table_facts import TableRecord
from maintainer.units import count_of

STATE_FILE = "state.json"
STATE_FORMAT = "6"
OLD_STATE_HELP = "use the version that wrote it, and keep it: it says what is in quarantine and what is not proven"
DAMAGED_HELP = "bring it back from a backup; or, if no run folder was ever deleted, delete it: it is made again"

DAMAGED_RECORD_HELP = (
    "bring the file back from a backup; or look whether the tables of that run are right (`maintainer verify TABLE`), "
    "and move the run's folder away, on the store, too: what it recorded is forgotten then"
)

MAX_RUNS_AWAY = 20_000
"""Runs whose folders are not here and which are remembered as taken in, the newest: another machine may have them."""

MAX_PLACES_COUNTED = 20
"""Runs in a row are counted apart at so many places of a table, those seen last."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TablePast:
    """What earlier runs left behind on one table.

    Attributes:
        record: What is remembered: versions not proven and quarantine hold deletion back.
        open_intents: What runs that are over tried without saying how it ended.
        writings: What they wrote and never tried to commit.
    """

    record: TableRecord = field(default_factory=TableRecord)
    open_intents: tuple[Intent, ...] = ()
    writings: tuple[Writing, ...] = ()

    @property
    def is_settled(self) -> bool:
        """Whether nothing has to be settled before the table is touched."""
        return not (self.open_intents or self.writings or self.record.unproven_versions)


@dataclass(frozen=True, slots=True)
class Remembered:
    """What past runs say: records and ``place_streaks`` by the table's id and location, and ``streaks`` by its id.

    ``keys`` has id and location of each table by the name that a policy gave it. The streak of a table that was never
    read is kept by that name. ``open_intents`` and ``writings`` are what runs that are over left open, oldest first.
    """

    tables: Mapping[str, Mapping[str, PlaceRecord]] = field(default_factory=dict)
    streaks: Mapping[str, Streak] = field(default_factory=dict)
    place_streaks: Mapping[str, Mapping[str, Streak]] = field(default_factory=dict)
    keys: Mapping[str, PlacedTable] = field(default_factory=dict)
    open_intents: tuple[Intent, ...] = ()
    writings: tuple[Writing, ...] = ()
    damaged: tuple[tuple[Path, int], ...] = ()
    """Records that have damaged lines, and how many; nothing was kept of them."""

    def check_whole(self) -> None:
        """Make sure that no quarantine and no version that is not proven is lost in a damaged line.

        Raises:
            EnvironmentUnfit: E641, one may be; nothing may be deleted.
        """
        for path, num_lines in self.damaged:
            what = "what an earlier run recorded is damaged, so nothing is deleted"
            raise unreadable_state(path, count_of(num_lines, "damaged line"), DAMAGED_RECORD_HELP, what=what)

    def of_table(self, table_id: str, location: str, places: TablePlaces) -> TablePast:
        """Return what concerns the table with this id at a location."""
        return TablePast(
            self.record_of(table_id, location, places),
            tuple(intent for intent in self.open_intents if intent.table_id == table_id),
            tuple(writing for writing in self.writings if writing.table_id == table_id),
        )

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


def _read(folder: RunFolder) -> RunRecord:
    run = read_record(folder.path, with_plan=False, keeps_outcomes=False)
    if not run.read.is_whole:
        _log.warning("%s: %d damaged lines; until that is put right nothing is deleted", run.folder, run.read.damaged)
    return run


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

    def fold_run(self, run: RunRecord) -> None:
        """Take in a run's events, and its open intents as versions not proven."""
        self._fold(run.events, run)
        self.add_intents(run)

    def _fold(self, events: Iterable[RunEvent], run: RunRecord) -> None:
        latest_ms = latest_time_ms()
        for event in events:
            if isinstance(event, TableFinished):
                self._count(event)
            elif isinstance(event, OfTable) and event.place is not None:
                step = run.fold.steps.get(step_of(event) or "")  # what a later run found was done before this one died
                done_ms = event.at_ms if step is None else step.last_at_ms
                self._place(*event.place).fold(event, done_ms, latest_ms, began_at_ms=run.fold.started_at_ms)

    def add_intents(self, run: RunRecord) -> None:
        """Count the versions that open intents may have become as ours and not proven."""
        for intent in run.fold.open_intents:
            if intent.kind in REWRITE_KINDS:
                self._place(intent.table_id, intent.location).add_unproven(intent.read_version + 1)

    def keep(self, run: RunRecord) -> None:
        """Remember that a run was taken in; one that closed its record and left nothing is not looked at again.

        The version that an open intent may become is a guess and is not kept, and files that were written may still lie
        there: such a record is read again until somebody has settled it.
        """
        self.runs.add(run.folder.name)
        before = self.unfinished.pop(run.folder.name, {})
        is_open = bool(run.fold.open_intents or run.fold.open_writings)
        if is_open or run.fold.may_land or run.end is not RunEnd.FINISHED:
            now = {name: replace(each, size_bytes=-1) if is_open else each for name, each in run.read.extent.items()}
            # A file may be missing on this machine, or older than on another one.
            farthest = (max(each, before.get(name, each), key=attrgetter("num_events")) for name, each in now.items())
            self.unfinished[run.folder.name] = {**before, **dict(zip(now, farthest, strict=True))}

    def grown(self, folder: RunFolder) -> RunRecord | None:
        """Return the record of a run that was thought to be over, where it may have recorded something since.

        Raises:
            OSError: Its record cannot be read.
        """
        taken_in, path = self.unfinished.get(folder.run_id), folder.path / EVENTS_FILE
        if taken_in is None or event_sizes(path) == {name: extent.size_bytes for name, extent in taken_in.items()}:
            return None
        return _read(folder)

    def fold_later(self, run: RunRecord) -> None:
        """Take in what a run recorded after it was thought to be over."""
        path = run.folder / EVENTS_FILE
        self._fold(events_of(path, run.read.after(self.unfinished[run.folder.name]).events), run)

    def forget_old_runs(self, here: set[str]) -> None:
        """Forget of the oldest runs without a folder here that they were taken in; what they taught us stays."""
        self.runs -= set(sorted(self.runs - here)[:-MAX_RUNS_AWAY])
        self.unfinished = {name: taken_in for name, taken_in in self.unfinished.items() if name in self.runs}

    def forget_gone_tables(self) -> None:
        """Forget tables that hold nothing back and were replaced, or that no run has worked on for long."""
        gone = gone_tables(self.tables, self.streaks, self.place_streaks, latest_time_ms())
        by_table: tuple[dict[str, Any], ...] = (self.tables, self.streaks, self.place_streaks)
        for kept in by_table:
            for table_id in gone & kept.keys():
                del kept[table_id]
        self.keys = {name: key for name, key in self.keys.items() if key[0] not in gone}

    def _place(self, table_id: str, location: str) -> PlaceRecord:
        return self.tables.setdefault(table_id, {}).setdefault(location.rstrip("/"), PlaceRecord())

    def _count(self, event: TableFinished) -> None:
        table, key = event.outcome.ref.identifier, event.place
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

    def _count_at_place(self, table_id: str, location: str, event: TableFinished) -> None:
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
        EnvironmentUnfit: E641, another version wrote a record or ``state.json``, or the latter is damaged.
    """
    state, _, read = _current(runs_dir, LocalDocuments(runs_dir.parent).read(STATE_FILE), except_run)
    dead = [run for run in read if not run.is_alive]
    return Remembered(
        state.tables,
        state.streaks,
        state.place_streaks,
        state.keys,
        tuple(intent for run in dead for intent in run.fold.open_intents),
        tuple(writing for run in dead for writing in run.fold.open_writings),
        tuple((run.folder / EVENTS_FILE, run.read.damaged) for run in read if not run.read.is_whole),
    )


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
        EnvironmentUnfit: E641, what is there cannot be read, and stays.
    """
    documents = documents or LocalDocuments(runs_dir.parent)

    def folded(before: StoredDocument | None) -> bytes:
        refresh()
        over = _current(runs_dir, before)[1]  # the records of runs, which take more room than the text, are gone
        over.forget_gone_tables()
        return json.dumps(over.document(), indent=1, sort_keys=True).encode() + b"\n"

    replaced(documents, STATE_FILE, folded)


def _current(
    runs_dir: Path, stored_fold: StoredDocument | None, except_run: str | None = None
) -> tuple[_State, _State, list[RunRecord]]:
    """The fold of all runs, that of those that are over (what may be kept), and the records that were read for it."""
    folders = run_folders(runs_dir)
    names = {folder.run_id for folder in folders}
    over = _load(stored_fold, runs_dir.parent / STATE_FILE)
    read: list[RunRecord] = []
    for folder in folders:
        if folder.run_id == except_run:
            continue
        if folder.run_id in over.runs:
            grown = over.grown(folder)
            if grown is not None:
                read.append(grown)
                if grown.read.is_whole:
                    over.fold_later(grown)
                    over.keep(grown)
            continue
        run = _read(folder)
        read.append(run)
        # Nothing will be added: all it tried is settled, and the run closed its record or died.
        if run.read.is_whole and not run.fold.open_intents and run.end is not RunEnd.RUNNING:
            over.fold_run(run)
            over.keep(run)
    over.forget_old_runs(names)
    open_runs = [
        run for run in read if not run.read.is_whole or run.fold.open_intents or run.folder.name not in over.runs
    ]
    everything = deepcopy(over) if open_runs else over
    for run in open_runs:
        if run.folder.name not in over.runs:
            everything.fold_run(run)
            continue
        if not run.read.is_whole:
            everything.fold_later(run)
        everything.add_intents(run)
    return everything, over, read


def _load(stored_fold: StoredDocument | None, path: Path) -> _State:
    """The kept fold; an empty one where there is none.

    Raises:
        EnvironmentUnfit: E641, there is one, and it cannot be read.
    """
    if stored_fold is None:
        return _State()
    try:
        document = json.loads(stored_fold.data)
        if document["format_version"] != STATE_FORMAT:
            found = f'format_version "{document["format_version"]}"; this version reads "{STATE_FORMAT}"'
            raise unreadable_state(path, found, OLD_STATE_HELP)
        state = decode(_State, document)
        if state.document() != document:
            raise ValueError("it lacks something")
        return state
    except (ValueError, KeyError, TypeError) as error:
        raise unreadable_state(path, f"it is damaged: {error}", DAMAGED_HELP) from error
