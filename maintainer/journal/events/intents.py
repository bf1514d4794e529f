"""Read the commits that runs tried: INTENT is written before a commit, RESULT after it.

A process can die between the two. The record then shows an attempt without its end, and the next run must look into
the table's own log before it touches the table (``execution.table.recovery``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maintainer.journal.events.event_log import EVENTS_FILE, Event, append_event, is_alive, read_events
from maintainer.journal.folder.run_folder import run_folders
from maintainer.model.closed_types import TextEnum
from maintainer.model.table.commit_records import CommitStamp


class Fate(TextEnum):
    """What became of something that was tried."""

    LANDED = "landed"
    NO_COMMIT = "no_commit"  # a deletion that took files and left no commit: from the trash, or before it was stopped
    NOT_LANDED = "not_landed"
    UNKNOWN = "unknown"


DELETED = frozenset({Fate.LANDED.value, Fate.NO_COMMIT.value})
"""How a deletion can have ended that did anything."""


@dataclass(frozen=True, slots=True)
class Intent:
    """Something that a run was about to do to a table, as it was written down before it was tried.

    ``at_ms`` is when; ``kind`` the step's; ``proven`` whether the rows written were shown equal to the rows read
    (always, for a rewrite: nothing else is tried).
    """

    stamp: CommitStamp
    at_ms: int
    table: str
    table_id: str
    location: str
    kind: str
    read_version: int
    proven: bool

    @property
    def key(self) -> tuple[str, int]:
        """Step and batch: what tells intents of one run apart."""
        return (self.stamp.step_id, self.stamp.batch)


def intent_of(event: Event) -> Intent | None:
    """Read an ``intent`` event back; None for another event or one that lacks a field."""
    if event.get("type") != "intent":
        return None
    try:
        stamp = CommitStamp(event["run"], event["step"], int(event["batch"]), event["policy"])
        return Intent(
            stamp=stamp,
            at_ms=int(event["at_ms"]),
            table=event["table"],
            table_id=event["table_id"],
            location=event["location"],
            kind=event["kind"],
            read_version=int(event["read_version"]),
            proven=bool(event["proven"]),
        )
    except (KeyError, TypeError, ValueError):
        return None


def open_intents(events: Iterable[Event]) -> tuple[Intent, ...]:
    """Return the intents of one run that no result and no settlement ended, oldest first.

    A result of fate ``unknown`` does not end an intent: it has to be settled all the same.
    """
    intents: dict[tuple[str, int], Intent] = {}
    for event in events:
        intent = intent_of(event)
        if intent is not None:
            intents[intent.key] = intent
        elif event.get("type") in ("result", "settled") and event.get("fate") != Fate.UNKNOWN.value:
            intents.pop((str(event.get("step")), int(event.get("batch", -1))), None)
    return tuple(intents.values())


def unfinished(runs_dir: Path, *, except_run: str | None = None) -> tuple[Intent, ...]:
    """Open intents of all runs that are over, oldest run first.

    A run that is still alive (its events file is locked) is left out: it will write its results itself.

    Raises:
        OSError: The runs folder cannot be listed or a run's events cannot be read.
    """
    return tuple(intent for folder in run_folders(runs_dir) if folder.run_id != except_run
                 for intent in _unfinished_of(folder.path))  # fmt: skip


def _unfinished_of(folder: Path) -> Iterator[Intent]:
    path = folder / EVENTS_FILE
    if not path.exists():
        return
    # First: a run that ends between the two has then written all that is read.
    if not is_alive(path):
        yield from open_intents(read_events(path).events)


def record_settlement(
    runs_dir: Path, intent: Intent, fate: Fate, figures: Mapping[str, Any], *, by: str, at_ms: int
) -> None:
    """Write into the old run's record how its intent ended, so that nobody has to ask again.

    Args:
        runs_dir: The folder of all runs.
        intent: The open intent.
        fate: What the table's log said. ``UNKNOWN`` leaves it open.
        figures: What was done, as a ``result`` has it.
        by: The run that found out.
        at_ms: When, in milliseconds since 1970 UTC.

    Raises:
        FolderUnwritable: E650 or E651, the old run's events cannot be written.
    """
    about = {
        "type": "settled",
        "at_ms": at_ms,
        "by": by,
        "run": intent.stamp.run_id,
        "step": intent.stamp.step_id,
        "batch": intent.stamp.batch,
        "kind": intent.kind,
        "table_id": intent.table_id,
        "location": intent.location,
        "fate": fate.value,
    }
    append_event(runs_dir / intent.stamp.run_id / EVENTS_FILE, {**about, **figures}, by=by)
