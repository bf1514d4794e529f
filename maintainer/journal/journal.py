"""Write the record of a run while it works: what is about to happen, what happened, what was proven.

Used from several threads. A method that returns has written; INTENT, RESULT and whatever allows a deletion are also
on the disk. After ``FolderUnwritable`` nothing more may be committed.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from maintainer.journal.event_log import EVENTS_FILE, HERE, EventLog, add_event, is_alive
from maintainer.journal.folder.atomic_files import FolderUnwritable, reading_runs
from maintainer.journal.folder.documents import Documents, LocalDocuments
from maintainer.journal.folder.run_folder import LEASES, RunFolder, run_folders, tidy_state
from maintainer.journal.leases import Leases
from maintainer.journal.memory.other_runs import OtherRuns
from maintainer.journal.memory.past_runs import read_record, recorded_step
from maintainer.journal.memory.recorded_outcome import RunFold
from maintainer.journal.memory.table_records import update_state
from maintainer.journal.stop_request import STOPS
from maintainer.model.run.outcome import RunOutcome
from maintainer.model.run.progress import RunFinished, Verified
from maintainer.model.run.receipts import CommitReceipt, VacuumReceipt
from maintainer.model.run.run_events import (
    DURABLE,
    Accepted,
    CommitEnd,
    Intent,
    Note,
    Quarantined,
    RecordOpened,
    RunEvent,
    Settled,
    SettledEarlier,
    Writing,
    WrittenOff,
    line_of,
    named,
)
from maintainer.model.table.commit_records import CommitStamp
from maintainer.model.table.table_facts import TableFacts, TableRecord

if TYPE_CHECKING:  # loaded only for a state on a store
    from maintainer.journal.store.published_run import PublishedRun

NowMs = Callable[[], int]


@dataclass(eq=False)
class Journal:
    """Writes one run's folder. Open it before anything is touched, close it when the run is over.

    ``now_ms`` is the time of the record, milliseconds since 1970 UTC.
    """

    folder: RunFolder
    _log: EventLog
    now_ms: NowMs
    publisher: PublishedRun | None = None
    fold: RunFold = field(default_factory=RunFold)
    """What was recorded, and what could not be."""
    given_up: set[str] = field(default_factory=set)
    """Steps whose threads were given up, by id: what they tried may yet land."""
    _is_over: bool = False

    def __post_init__(self) -> None:
        self._opened_at_ms = self.now_ms()

    @staticmethod
    def open(
        runs_dir: Path,
        run_id: str,
        now_ms: NowMs,
        publisher: PublishedRun | None = None,
        *,
        version: str | None = None,
        host: str | None = None,
        git_commit: str | None = None,
    ) -> Journal:
        """Make the run's folder and write its first event; first delete what killed processes left half-written.

        Args:
            runs_dir: The folder of all runs, ``.maintainer/runs``.
            run_id: A new run id.
            now_ms: The clock, milliseconds since 1970 UTC.
            publisher: Where else the record is kept; None: on this machine only.
            version: Ours, as ``host`` and ``git_commit`` for people who look the run up.
            host: The machine.
            git_commit: Of the project.

        Raises:
            FolderUnwritable: E650; nothing was touched.
        """
        tidy_state(runs_dir, now_ms())
        folder = RunFolder.create(runs_dir, run_id)
        if publisher is not None:
            (folder.path / HERE).touch()
        journal = Journal(folder, EventLog(folder.path / EVENTS_FILE), now_ms, publisher)
        try:
            journal.record(RecordOpened(now_ms(), run_id, os.getpid(), version, host, git_commit))
        except FolderUnwritable as error:
            raise FolderUnwritable(
                "the run folder cannot be written", code="E650", where=error.where, found=error.found, help=error.help
            ) from error
        return journal

    @property
    def run_id(self) -> str:
        """The run that is recorded."""
        return self.folder.run_id

    @property
    def runs_dir(self) -> Path:
        """The folder of all runs."""
        return self.folder.path.parent

    def leases(self, now_ms: NowMs) -> Leases:
        """Return the leases of this run: those that all machines share, or those beside the run folders.

        Args:
            now_ms: The clock of this machine, milliseconds since 1970 UTC.
        """
        if self.publisher is None:
            return Leases(self.runs_dir, self.run_id, now_ms)
        return Leases(self.runs_dir, self.run_id, self.publisher.now_ms, documents=self.publisher.shared(LEASES))

    def stop_requests(self) -> Documents:
        """Return where this run may be asked to stop."""
        return LocalDocuments(self.runs_dir.parent / STOPS) if self.publisher is None else self.publisher.shared(STOPS)

    def other_runs(self) -> OtherRuns:
        """Return the records of all other runs, also of those on other machines."""
        if self.publisher is None:
            return OtherRuns(self.runs_dir, self.run_id)
        return OtherRuns(self.runs_dir, self.run_id, self.publisher.refresh)

    def update_state(self) -> None:
        """Take all runs that are over into ``state.json``; the record is closed before.

        Raises:
            OSError: It cannot be written; the next run reads the folders instead.
            EnvironmentUnfit: E641, what is there cannot be read.
        """
        if self.publisher is None:
            update_state(self.runs_dir)
        else:
            self.publisher.update_state()

    def record(self, event: RunEvent) -> None:
        """Write an event, durably where something is done or left undone because of it.

        Raises:
            FolderUnwritable: E651. What an INTENT announces must not be tried; what landed has landed, and counts as
                unproven; nothing more may be committed.
        """
        durable = isinstance(event, DURABLE)
        try:
            self._log.append(line_of(event), durable=durable)
        finally:
            self.fold.take(event)
            if self._is_over:  # the last word of a thread that was given up
                self.close()
        if durable and self.publisher is not None:
            # Nothing may be tried that only this machine would know of; what happened may wait for a better moment.
            self.publisher.announce(required=isinstance(event, Intent))

    def written_off(self, writing: Writing) -> None:
        """Record that what was written is gone, in this run or, for one that is over, in its record.

        Raises:
            FolderUnwritable: E651. The next run looks for the files once more.
        """
        place = (writing.table, writing.table_id, writing.location)
        event = WrittenOff(self.now_ms(), *place, writing.run_id, writing.step_id, writing.batch, writing.paths)
        if writing.run_id == self.run_id:
            self.record(event)
        else:
            add_event(self.runs_dir, writing.run_id, replace(event, by=self.run_id), by=self.run_id)

    def quarantine(self, facts: TableFacts, reason: str, version: int | None = None) -> str:
        """Durably record that the table must not be rewritten or vacuumed until a person has looked.

        Args:
            facts: The table.
            reason: What is wrong.
            version: The version that is wrong; None where it is not one.

        Returns:
            The id by which it is lifted.

        Raises:
            FolderUnwritable: E651.
        """
        quarantine_id = f"{self.run_id}/{secrets.token_hex(4)}"
        self.record(Quarantined(self.now_ms(), *named(facts), quarantine_id, reason, version))
        return quarantine_id

    def accept(self, facts: TableFacts, record: TableRecord, *, reason: str, by: str) -> None:
        """Durably record that a person accepts the table as it is, as far as it is known.

        Its unproven versions count as proven from now on, and the quarantines in force are lifted, each by its id.

        Args:
            facts: The table.
            record: What is remembered of it, as the person was shown.
            reason: Why it is accepted.
            by: Who accepts it.

        Raises:
            FolderUnwritable: E651.
            EnvironmentUnfit: E641, the record of a run that goes on cannot be read.
        """
        lifted = tuple(each for each, _ in record.quarantines)
        alone, versions = not record.seen_elsewhere, record.unproven_versions
        self.counts_as_proven(Accepted(self.now_ms(), *named(facts), versions, lifted, alone, reason, by), *versions)

    def counts_as_proven(self, event: Verified | Accepted, *versions: int) -> None:
        """Durably record why versions count as proven, in runs that go on and made one of them, too.

        Such a run is taken in after this one: what it recorded before would be the last word. What it has not recorded
        as landed is not accepted.

        Raises:
            FolderUnwritable: E650 or E651.
            EnvironmentUnfit: E641, the record of a run that goes on cannot be read.
        """
        self.record(event)
        with reading_runs(self.runs_dir):
            others = [folder for folder in run_folders(self.runs_dir) if folder.run_id != self.run_id]
            alive = [folder for folder in others if is_alive(folder.path / EVENTS_FILE)]
            made = [(folder.run_id, _step_that_made(folder, event, versions)) for folder in alive]
        for run_id, step_id in made:
            if step_id is None:
                continue
            if isinstance(event, Verified):
                event = replace(event, step_id=step_id, by=self.run_id)
            add_event(self.runs_dir, run_id, event, by=self.run_id)

    def settled(
        self,
        intent: Intent,
        end: CommitEnd,
        receipt: CommitReceipt | VacuumReceipt | None,
        *,
        detail: str | None = None,
    ) -> None:
        """Record in the old run and in this one how an open intent of an earlier run ended.

        Args:
            intent: The open intent.
            end: What the table's log and its storage say; ``UNKNOWN`` leaves it open.
            receipt: What was done, for ``LANDED``: counted from the log, or by looking at storage.
            detail: What else a person should know.

        Raises:
            FolderUnwritable: The record could not be written; the table must not be touched.
        """
        now, stamp, place = self.now_ms(), intent.stamp, (intent.table, intent.table_id, intent.location)
        event = Settled(now, *place, stamp, intent.kind, end, receipt, detail=detail, by=self.run_id)
        add_event(self.runs_dir, stamp.run_id, event, by=self.run_id)
        self.record(SettledEarlier(now, *place, stamp.run_id, stamp.step_id, stamp.batch, end, event.version))

    def verified_earlier(self, stamp: CommitStamp, event: Verified, is_here: Callable[[str], bool]) -> None:
        """Record in the run that made a commit how the check of it ended, where its folder is still here.

        A copy of the table has the commit, too; what is found there is not said of the table that the run changed.

        Args:
            stamp: The commit's.
            event: The check.
            is_here: Tells whether the table that was at a location is the one that was checked.

        Raises:
            FolderUnwritable: E650 or E651.
            EnvironmentUnfit: E641, that run's record cannot be read.
        """
        step = None if stamp.run_id == self.run_id else recorded_step(self.runs_dir, stamp)
        if step is not None and any(is_here(intent.location) for intent in step.intents.values()):
            event = replace(event, step_id=stamp.step_id, by=self.run_id)
            add_event(self.runs_dir, stamp.run_id, event, by=self.run_id)

    def note(self, about: str, **fields: str | None) -> None:
        """Record something that nothing else depends on; see `Note`.

        Raises:
            FolderUnwritable: E651.
        """
        self.record(Note(self.now_ms(), about, **fields))

    def finished(self) -> None:
        """Durably record the end of a run that carries out no plan.

        Raises:
            FolderUnwritable: E651.
        """
        now = self.now_ms()
        seconds = (now - self._opened_at_ms) / 1000
        self.record(RunFinished(now, RunOutcome(self.run_id, self._opened_at_ms, seconds, ())))

    def close(self) -> None:
        """Close the record and release its lock. Safe to call twice.

        As long as a thread of this process that was given up may commit or delete, the lock stays: nobody settles
        meanwhile what the log cannot tell yet, and how it ended is recorded.
        """
        self._is_over = True
        steps = [step for step_id in tuple(self.given_up) if (step := self.fold.steps.get(step_id)) is not None]
        if all(step.intents.keys() <= step.results.keys() for step in steps):
            self._log.close()


def _step_that_made(folder: RunFolder, event: Verified | Accepted, versions: Collection[int]) -> str | None:
    """The step by which a run has recorded that one of the versions of the event's table is its own, by its id."""
    steps = read_record(folder.path, with_plan=False).fold.steps
    results = ((step_id, result) for step_id, step in steps.items() for result in step.results.values())
    landed = (each for each, result in results if result.table_id == event.table_id and result.version in versions)
    return next(landed, None)
