"""Read what other runs recorded: when a run begins, and again when the turn of a table comes.

A run of hours would otherwise work on a table that another run put into quarantine meanwhile, or delete files that
hold back a rewrite that nobody has proven. Who works on a table holds its lease; so the lease names the run that had
the table last, and what that run recorded is read before anything else is done. What is recorded without a lease, as
by `maintainer verify`, is seen within ``RECORDS_SECONDS`` when a table is begun, and always before files are deleted.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from maintainer.journal.event_log import EVENTS_FILE, event_sizes, is_alive
from maintainer.journal.folder.atomic_files import FolderUnwritable, reading_runs
from maintainer.journal.folder.run_folder import run_folders
from maintainer.journal.memory.table_records import Remembered, remembered

RECORDS_SECONDS = 30.0
"""So old may be what is known of other runs, where no lease says that another run had the table."""


@dataclass(eq=False)
class OtherRuns:
    """The records of all runs but one. Used from several threads.

    Args:
        runs_dir: The folder of all runs.
        run_id: The run that asks, whose own record is not read.
        refresh: Brings what other machines recorded into ``runs_dir``; may raise ``FolderUnwritable``.
        monotonic: The clock, seconds.
    """

    runs_dir: Path
    run_id: str
    refresh: Callable[[], None] = lambda: None
    monotonic: Callable[[], float] = time.monotonic
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _read: Remembered = field(default_factory=Remembered)
    _sizes: dict[Path, int] = field(default_factory=dict)
    _over: set[str] = field(default_factory=set)
    _absent: set[str] = field(default_factory=set)
    _read_at: float = 0.0
    _looked_at: float = -1.0

    def read(self) -> Remembered:
        """Read all records.

        Raises:
            EnvironmentUnfit: E641, the records cannot be read.
        """
        with self._lock:
            return self._read_all()

    def newest(self, previous_run: str | None, *, max_age_seconds: float = RECORDS_SECONDS) -> Remembered:
        """Return what is known of other runs, read again where they may have recorded more.

        Args:
            previous_run: The run that held the table's lease before; None where there was none.
            max_age_seconds: So long ago it may have been looked whether other runs recorded anything.

        Raises:
            EnvironmentUnfit: E641, the records cannot be read.
            FolderUnwritable: Another run had the table, and its record cannot be fetched.
        """
        asked_at = self.monotonic()
        with self._lock:
            is_known = previous_run is None or previous_run == self.run_id or self._is_read(previous_run)
            # Of those that wait here one looks for all.
            if self._looked_at > asked_at or (is_known and self.monotonic() - self._read_at < max_age_seconds):
                return self._read
            looked_at = self.monotonic()
            try:
                self.refresh()
            except FolderUnwritable:
                if not is_known or not max_age_seconds:
                    raise
                looked_at = self._looked_at
            with reading_runs(self.runs_dir):
                unchanged = (self._sizes_now(), self._over_now()) == (self._sizes, self._over)
            if previous_run is not None and not (self.runs_dir / previous_run).is_dir():
                self._absent.add(previous_run)  # deleted: nothing of it can be read, now or later
            if unchanged:
                self._read_at = self.monotonic()
            else:
                self._read_all()
            self._looked_at = looked_at
            return self._read

    def _is_read(self, run_id: str) -> bool:
        """Whether a run was over when its record was read, and added nothing to it since."""
        if run_id in self._absent:
            return True
        folder = self.runs_dir / run_id
        before = {path: size for path, size in self._sizes.items() if path.parent == folder}
        return run_id in self._over and self._sizes_of(folder) == before

    def _read_all(self) -> Remembered:
        read_at = self.monotonic()
        with reading_runs(self.runs_dir):
            # Looked at first: what is written meanwhile is read now, and looked at once more.
            self._sizes, self._over = self._sizes_now(), self._over_now()
            self._read = remembered(self.runs_dir, except_run=self.run_id)
        self._read_at = read_at
        return self._read

    def _folders(self) -> list[Path]:
        return [folder.path for folder in run_folders(self.runs_dir) if folder.run_id != self.run_id]

    def _over_now(self) -> set[str]:
        return {path.name for path in self._folders() if not is_alive(path / EVENTS_FILE)}

    def _sizes_now(self) -> dict[Path, int]:
        """Sizes of all event files of other runs: they only grow."""
        return {path: size for folder in self._folders() for path, size in self._sizes_of(folder).items()}

    @staticmethod
    def _sizes_of(folder: Path) -> dict[Path, int]:
        return {folder / name: size for name, size in event_sizes(folder / EVENTS_FILE).items()}
