"""Read what runs that are over tried, and add to their records what is found out about them.

INTENT is written before a commit, RESULT after it. A process can die between the two: then the next run looks into the
table's own log before it touches the table (``execution.table.recovery``). WRITING is recorded before a rewrite writes
its first file. A failed rewrite removes its files itself; of a killed one the next run finds WRITING without INTENT or
WRITTEN_OFF, and removes the files by their names, which tell run, step and batch. After INTENT nothing is removed,
because the commit may have landed or may still land.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from maintainer.journal.events.event_log import EVENTS_FILE, append_event, read_events, run_events
from maintainer.journal.folder.atomic_files import reading_runs
from maintainer.model.run.run_events import Fate, Intent, Result, RunEvent, Writing, WrittenOff, line_of
from maintainer.model.table.commit_records import CommitStamp


def open_intents(events: Iterable[RunEvent]) -> tuple[Intent, ...]:
    """Return the intents of one run that no result and no settlement ended, oldest first.

    A result of fate ``UNKNOWN`` does not end an intent: it has to be settled all the same.
    """
    intents: dict[tuple[str, int], Intent] = {}
    for event in events:
        match event:
            case Intent(stamp=stamp):
                intents[stamp.step_id, stamp.batch] = event
            case Result(stamp=stamp, fate=fate) if fate is not Fate.UNKNOWN:
                intents.pop((stamp.step_id, stamp.batch), None)
    return tuple(intents.values())


def open_writings(events: Iterable[RunEvent]) -> tuple[Writing, ...]:
    """Return what one run began to write, and neither tried to commit nor removed."""
    writings: dict[tuple[str, int], Writing] = {}
    for event in events:
        match event:
            case Writing():
                writings[event.step_id, event.batch] = event
            case WrittenOff(step_id=step_id, batch=batch) | Intent(stamp=CommitStamp(step_id=step_id, batch=batch)):
                writings.pop((step_id, batch), None)
    return tuple(writings.values())


def events_of_run(runs_dir: Path, run_id: str) -> tuple[RunEvent, ...]:
    """Return what a run recorded; nothing where its folder is gone.

    Raises:
        EnvironmentUnfit: E641, its record cannot be read.
    """
    path = runs_dir / run_id / EVENTS_FILE
    with reading_runs(runs_dir):
        return run_events(path, read_events(path).events)


def tried_at(runs_dir: Path, stamp: CommitStamp) -> frozenset[str]:
    """Return where a run tried the commit with a stamp.

    Raises:
        EnvironmentUnfit: E641, its record cannot be read.
    """
    events = events_of_run(runs_dir, stamp.run_id)
    return frozenset(
        event.location for event in events if isinstance(event, Intent) and event.stamp.step_id == stamp.step_id
    )


def add_event(runs_dir: Path, run_id: str, event: RunEvent, *, by: str) -> None:
    """Durably add an event to the record of a run that is over.

    Raises:
        FolderUnwritable: E650 or E651.
    """
    append_event(runs_dir / run_id / EVENTS_FILE, line_of(event), by=by)
