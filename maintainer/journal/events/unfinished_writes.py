"""Find the files that killed runs were writing: WRITING is recorded before a rewrite writes its first file.

A failed rewrite removes its files itself. A killed process cannot: the next run finds WRITING without INTENT or
WRITTEN_OFF, and removes the files by their names, which tell run, step and batch. After INTENT nothing is removed,
because the commit may have landed or may still land.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maintainer.journal.events.event_log import EVENTS_FILE, Event, append_event, is_alive, read_events
from maintainer.journal.folder.run_folder import run_folders

WRITING, WRITTEN_OFF = "writing", "written_off"
MAX_RUNS = 50
"""So many runs are looked through, the newest."""

MAX_PARTITIONS = 1_000
"""So many partitions of a batch are remembered."""

Partition = tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class Writing:
    """A batch whose new files a run was about to write; ``partitions`` are those of its files."""

    run_id: str
    step_id: str
    batch: int
    table: str
    table_id: str
    location: str
    partitions: tuple[Partition, ...]

    @property
    def fields(self) -> dict[str, Any]:
        """The event's fields."""
        return {
            "run": self.run_id,
            "step": self.step_id,
            "batch": self.batch,
            "table": self.table,
            "table_id": self.table_id,
            "location": self.location,
            "partitions": [[list(value) for value in partition] for partition in self.partitions[:MAX_PARTITIONS]],
        }


def open_writings(events: Iterable[Event]) -> tuple[Writing, ...]:
    """Return what one run began to write, and neither tried to commit nor removed."""
    writings: dict[tuple[str, int], Writing] = {}
    for event in events:
        kind = event.get("type")
        if kind == WRITING:
            writing = _writing_of(event)
            if writing is not None:
                writings[writing.step_id, writing.batch] = writing
        elif kind in ("intent", WRITTEN_OFF):
            writings.pop((str(event.get("step")), int(event.get("batch", -1))), None)
    return tuple(writings.values())


def _writing_of(event: Event) -> Writing | None:
    try:
        return Writing(
            event["run"],
            event["step"],
            int(event["batch"]),
            event["table"],
            event["table_id"],
            event["location"],
            tuple(tuple((str(name), value) for name, value in partition) for partition in event["partitions"]),
        )
    except (KeyError, TypeError, ValueError):
        return None


def unfinished_writings(runs_dir: Path, *, except_run: str | None = None) -> tuple[Writing, ...]:
    """Return what finished runs may have left on storage, oldest run first.

    Raises:
        OSError: The runs folder cannot be listed or a run's events cannot be read.
    """
    unfinished: list[Writing] = []
    for folder in run_folders(runs_dir)[-MAX_RUNS:]:
        path = folder.path / EVENTS_FILE
        # Alive is asked first: a run that ends between the two has then written all that is read.
        if folder.run_id != except_run and path.exists() and not is_alive(path):
            unfinished.extend(open_writings(read_events(path).events))
    return tuple(unfinished)


def record_written_off(runs_dir: Path, writing: Writing, *, by: str, at_ms: int) -> None:
    """Write into the old run's record that its files are gone.

    Raises:
        FolderUnwritable: E650 or E651, the old run's events cannot be written.
    """
    event = {"type": WRITTEN_OFF, "at_ms": at_ms, "by": by, **writing.fields}
    append_event(runs_dir / writing.run_id / EVENTS_FILE, event, by=by)
