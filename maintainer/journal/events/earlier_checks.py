"""Write into the record of an earlier run how the check of one of its commits ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from maintainer.journal.events.event_fields import table_fields
from maintainer.journal.events.event_log import EVENTS_FILE, append_event, read_events
from maintainer.journal.folder.atomic_files import reading_runs
from maintainer.model.table.commit_records import CommitStamp
from maintainer.model.table.table_facts import TableFacts


def record_check(
    runs_dir: Path,
    stamp: CommitStamp,
    facts: TableFacts,
    fields: Mapping[str, Any],
    is_here: Callable[[str], bool],
    *,
    by: str,
    at_ms: int,
) -> None:
    """Record in the run that made a commit how the check of it ended, where its folder is still here.

    A copy of the table has the commit, too; what is found there is not said of the table that the run changed.

    Args:
        runs_dir: The folder of all runs.
        stamp: The commit's.
        facts: The table that was checked.
        fields: Version, result and detail of the check.
        is_here: Tells whether the table that was at a location is the one that was checked.
        by: The run that checked it.
        at_ms: When, in milliseconds since 1970 UTC.

    Raises:
        FolderUnwritable: E650 or E651.
        EnvironmentUnfit: E641, that run's record cannot be read.
    """
    path = runs_dir / stamp.run_id / EVENTS_FILE
    if not path.is_file():
        return
    with reading_runs(runs_dir):
        events = read_events(path).events
    tried_at = (event.get("location") for event in events if event.get("step") == stamp.step_id)
    if not any(isinstance(place, str) and is_here(place) for place in tried_at):
        return
    about = {"type": "verified", "at_ms": at_ms, **table_fields(facts), "step": stamp.step_id}
    append_event(path, {**about, **fields, "by": by}, by=by)
