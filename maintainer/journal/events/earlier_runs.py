"""Read what runs that are over tried, and add to their records what is found out about them.

INTENT is written before a commit, RESULT after it. A process can die between the two: then the next run looks into the
table's own log before it touches the table (``execution.table.recovery``). WRITING is recorded before a rewrite writes
its first file. A failed rewrite removes its files itself; of a killed one the next run finds WRITING without INTENT or
WRITTEN_OFF, and removes the files by their names, which tell run, step and batch. After INTENT nothing is removed,
because the commit may have landed or may still land.
"""

from __future__ import annotations

from pathlib import Path

from maintainer.journal.events.event_log import EVENTS_FILE, append_event, read_events, run_events
from maintainer.journal.folder.atomic_files import reading_runs
from maintainer.model.run.run_events import Intent, RunEvent, line_of
from maintainer.model.table.commit_records import CommitStamp


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
