"""What our own past says about a table: last optimize and vacuum, versions not yet proven, quarantine.

Every record is a fold over the events of runs. ``.maintainer/state.json`` keeps the fold of all runs that are over, so
that a nightly run reads one file and not a year of folders; it is rebuilt from the run folders when it is missing,
damaged or of another format. Runs that ended without closing their record are read each time until their open intents
are settled.

The fold is safe in one direction: whatever cannot be read counts as not proven.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from maintainer.journal.durable import exclusive, write_atomically
from maintainer.journal.events import EVENTS_FILE, Event, EventsRead, is_alive, read_events
from maintainer.journal.intents import Fate, intent_of, open_intents
from maintainer.journal.run_folder import run_folders
from maintainer.journal.streaks import Streak
from maintainer.model.table import TableRecord

STATE_FILE = "state.json"
STATE_FORMAT = "1"
MAX_UNPROVEN_VERSIONS = 100
"""One is enough to hold vacuum back; more are kept for people."""

MAX_VACUUMS_REMEMBERED = 10
"""Whose sizes a new one is compared with."""

REWRITES = ("compact", "zorder", "rewrite", "cluster", "purge")
"""Kinds of steps that replace files by files with the same rows; each sets the time from which ``every`` counts."""

_log = logging.getLogger(__name__)


def record_key(table_id: str, location: str) -> str:
    """Name a table in the records: by its id and its place, for a copied folder keeps the id of its original."""
    return f"{table_id}@{location.rstrip('/')}"


@dataclass(frozen=True, slots=True)
class Remembered:
    """Records of tables by ``record_key``, and their streaks by name."""

    tables: Mapping[str, TableRecord] = field(default_factory=dict)
    streaks: Mapping[str, Streak] = field(default_factory=dict)


@dataclass(slots=True)
class _Memory:
    """The mutable form of a record, while events are folded in."""

    last_optimize_at_ms: int | None = None
    last_vacuum_at_ms: int | None = None
    unproven: set[int] = field(default_factory=set)
    quarantined: str | None = None
    quarantined_at_ms: int = 0
    lifted_at_ms: int = -1
    last_listing_at_ms: int | None = None
    vacuumed_bytes: list[int] = field(default_factory=list)

    def to_record(self) -> TableRecord:
        held = self.quarantined if self.quarantined_at_ms > self.lifted_at_ms else None
        return TableRecord(
            last_optimize_at_ms=self.last_optimize_at_ms,
            last_vacuum_at_ms=self.last_vacuum_at_ms,
            unproven_versions=tuple(sorted(self.unproven)[-MAX_UNPROVEN_VERSIONS:]),
            quarantined=held,
            last_listing_at_ms=self.last_listing_at_ms,
            vacuumed_bytes=tuple(self.vacuumed_bytes[-MAX_VACUUMS_REMEMBERED:]),
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "last_optimize_at_ms": self.last_optimize_at_ms,
            "last_vacuum_at_ms": self.last_vacuum_at_ms,
            "unproven": sorted(self.unproven)[-MAX_UNPROVEN_VERSIONS:],
            "quarantined": self.quarantined,
            "quarantined_at_ms": self.quarantined_at_ms,
            "lifted_at_ms": self.lifted_at_ms,
            "last_listing_at_ms": self.last_listing_at_ms,
            "vacuumed_bytes": self.vacuumed_bytes[-MAX_VACUUMS_REMEMBERED:],
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> _Memory:
        return _Memory(
            last_optimize_at_ms=_optional_int(value["last_optimize_at_ms"]),
            last_vacuum_at_ms=_optional_int(value["last_vacuum_at_ms"]),
            unproven={int(version) for version in value["unproven"]},
            quarantined=None if value["quarantined"] is None else str(value["quarantined"]),
            quarantined_at_ms=int(value["quarantined_at_ms"]),
            lifted_at_ms=int(value["lifted_at_ms"]),
            # Not in an index of an earlier version, which must not be thrown away: folders of its runs may be gone.
            last_listing_at_ms=_optional_int(value.get("last_listing_at_ms")),
            vacuumed_bytes=[int(size) for size in value.get("vacuumed_bytes") or ()],
        )


@dataclass(slots=True)
class _State:
    """The fold of the runs named in ``runs``."""

    runs: set[str] = field(default_factory=set)
    tables: dict[str, _Memory] = field(default_factory=dict)
    streaks: dict[str, Streak] = field(default_factory=dict)

    def fold_run(self, read: EventsRead) -> None:
        """Take in a run's events, and its open intents as versions not proven."""
        for event in read.events:
            if isinstance(event.get("table_id"), str) and isinstance(event.get("location"), str):
                key = record_key(event["table_id"], event["location"])
                _fold(self.tables.setdefault(key, _Memory()), event)
            elif event["type"] == "table_finished" and isinstance(event.get("table"), str):
                self._count(event["table"], event)
        for intent in open_intents(read.events):
            if intent.kind in REWRITES:
                key = record_key(intent.table_id, intent.location)
                self.tables.setdefault(key, _Memory()).unproven.add(intent.read_version + 1)

    def _count(self, table: str, event: Event) -> None:
        streak = self.streaks.get(table, Streak()).after(event)
        if streak.matters:
            self.streaks[table] = streak
        else:
            self.streaks.pop(table, None)


def _fold(memory: _Memory, event: Event) -> None:
    kind, at_ms, version = event["type"], int(event.get("at_ms", 0)), event.get("version")
    if kind == "intent":
        intent = intent_of(event)
        if intent is None and event.get("kind") in REWRITES:
            memory.unproven.add(int(event.get("read_version", -2)) + 1)
    elif kind in ("result", "settled"):
        # A rewrite counts as unproven until a `verified` event says otherwise.
        if event.get("kind") in REWRITES and event.get("fate") == Fate.LANDED.value and isinstance(version, int):
            memory.unproven.add(version)
        if event.get("kind") == "vacuum" and event.get("fate") == Fate.LANDED.value:
            deleted = event.get("bytes_deleted")
            if isinstance(deleted, int) and event.get("num_files_deleted"):
                memory.vacuumed_bytes = [*memory.vacuumed_bytes, deleted][-MAX_VACUUMS_REMEMBERED:]
    elif kind == "listed":
        memory.last_listing_at_ms = max(memory.last_listing_at_ms or 0, int(event.get("listed_at_ms", 0)))
    elif kind == "verified":
        if event.get("result") == "pass" and isinstance(version, int):
            memory.unproven.discard(version)
    elif kind == "step_finished":
        if event.get("status") == "succeeded":
            if event.get("kind") in REWRITES:
                memory.last_optimize_at_ms = max(memory.last_optimize_at_ms or 0, at_ms)
            elif event.get("kind") == "vacuum":
                memory.last_vacuum_at_ms = max(memory.last_vacuum_at_ms or 0, at_ms)
    elif kind == "quarantined":
        if at_ms >= memory.quarantined_at_ms:
            memory.quarantined, memory.quarantined_at_ms = str(event.get("reason")), at_ms
    elif kind == "accepted":
        memory.unproven.difference_update(one for one in event.get("versions") or () if isinstance(one, int))
    elif kind == "quarantine_lifted":
        memory.lifted_at_ms = max(memory.lifted_at_ms, at_ms)


def table_records(runs_dir: Path) -> Mapping[str, TableRecord]:
    """Records of all tables that any run touched, by ``record_key``. Reads only.

    Raises:
        OSError: The runs folder cannot be listed or read.
    """
    return remembered(runs_dir).tables


def remembered(runs_dir: Path) -> Remembered:
    """Everything that the runs so far say about tables. Reads only.

    Raises:
        OSError: The runs folder cannot be listed or read.
    """
    state, _ = _current(runs_dir)
    return Remembered({key: memory.to_record() for key, memory in state.tables.items()}, state.streaks)


def update_state(runs_dir: Path) -> None:
    """Take all runs that are over into ``state.json``. Called at the end of each run; several may do so at once.

    Raises:
        OSError: It cannot be written; the next run reads the folders instead.
    """
    with exclusive(runs_dir.parent / f".{STATE_FILE}.lock"):
        _, over = _current(runs_dir)
        tables = {key: memory.to_json() for key, memory in sorted(over.tables.items())}
        streaks = {name: streak.to_json() for name, streak in sorted(over.streaks.items())}
        document = {"format_version": STATE_FORMAT, "runs": sorted(over.runs), "tables": tables, "streaks": streaks}
        write_atomically(runs_dir.parent / STATE_FILE, json.dumps(document, indent=1).encode() + b"\n")


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
    tables = {key: _Memory.from_json(m.to_json()) for key, m in over.tables.items()}
    everything = _State(set(over.runs), tables, dict(over.streaks))
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
        tables = {str(key): _Memory.from_json(value) for key, value in document["tables"].items()}
        # Not in an index of an earlier version, which must not be thrown away.
        streaks = {str(name): Streak.from_json(value) for name, value in (document.get("streaks") or {}).items()}
        return _State({str(run) for run in document["runs"]}, tables, streaks)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        _log.warning("%s cannot be read; it is rebuilt from the run folders", path)
        return None


def _optional_int(value: object) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int):
        raise TypeError(f"not a time: {value!r}")
    return value
