"""Machines that share one state on an object store: each has a cache of its own, and all have one clock."""

from __future__ import annotations

import time
from pathlib import Path

from maintainer.engine.store.object_storage import ObjectStorage
from maintainer.journal.folder.run_folder import new_run_id
from maintainer.journal.journal import Journal
from maintainer.journal.store.published_run import PublishedRun
from maintainer.journal.store.state_mirror import StateMirror
from maintainer.model.table.commit_records import CommitStamp
from maintainer.model.table.table_facts import TableFacts
from tests.support.writers.recorded_events import intent


def now_ms() -> int:
    """The clock of this machine."""
    return time.time_ns() // 1_000_000


class Machine:
    """One machine, with the run that works on it."""

    def __init__(self, storage: ObjectStorage, cache: Path, number: int = 0) -> None:
        self.mirror = StateMirror(storage, cache)
        self.number = number

    def begin(self) -> Journal:
        """Begin a run."""
        self.number += 1
        run_id = new_run_id(now_ms() + self.number * 1000)
        self.run = PublishedRun.begin(self.mirror, run_id)
        return Journal.open(self.mirror.runs_dir, run_id, now_ms, self.run)

    def end(self, journal: Journal) -> None:
        """End a run as every command does; what could not be published is an error here."""
        journal.finished()
        journal.close()
        journal.update_state()
        assert self.run.end() is None


def intend(journal: Journal, facts: TableFacts, *, step: str = "compact-0", batch: int = 0) -> CommitStamp:
    """Write the INTENT of a compaction."""
    stamp = CommitStamp(journal.run_id, step, batch, "policy")
    intent(journal, stamp, facts, "compact", read_version=3, num_files=2, size_bytes=10, proof=None)
    return stamp
