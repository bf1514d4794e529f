"""Write the record of a run while it works: what is about to happen, what happened, what was proven.

Used from several threads. A method that returns has written; INTENT, RESULT and whatever allows a deletion are also
on the disk. After ``FolderUnwritable`` nothing more may be committed.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from maintainer.errors import CommitConflict, TableHot
from maintainer.journal.events.earlier_checks import record_check
from maintainer.journal.events.event_fields import (
    problem_fields,
    proof_fields,
    receipt_fields,
    stamp_fields,
    table_fields,
)
from maintainer.journal.events.event_log import EVENTS_FILE, HERE, EventLog
from maintainer.journal.events.intents import Fate, Intent, record_settlement
from maintainer.journal.events.unfinished_writes import WRITING, WRITTEN_OFF, Writing, record_written_off
from maintainer.journal.folder.atomic_files import FolderUnwritable
from maintainer.journal.folder.publisher import Publisher
from maintainer.journal.folder.run_folder import RunFolder, tidy_state
from maintainer.journal.leases import Leases
from maintainer.journal.memory.other_runs import OtherRuns
from maintainer.journal.memory.table_records import update_state
from maintainer.model.codec import encode
from maintainer.model.plan.plan import Problem
from maintainer.model.plan.steps import REWRITE_KINDS
from maintainer.model.plan.zorder_turn import TurnOutcome
from maintainer.model.run.outcome import CommitReceipt, Proof, StepOutcome, TableOutcome, VacuumReceipt
from maintainer.model.table.commit_records import CommitStamp
from maintainer.model.table.table_facts import TableFacts, TableRecord

LOST = CommitConflict.default_code
"""The code of a step that yielded because another writer was there first."""

HOT = TableHot.default_code
"""The code of a step that was held back so that no other writer loses."""

NowMs = Callable[[], int]


class Journal:
    """Writes one run's folder. Open it before anything is touched, close it when the run is over."""

    def __init__(self, folder: RunFolder, log: EventLog, now_ms: NowMs, publisher: Publisher | None = None) -> None:
        self.folder = folder
        self.publisher = publisher
        self._log = log
        self._now_ms = now_ms

    @staticmethod
    def open(
        runs_dir: Path, run_id: str, now_ms: NowMs, publisher: Publisher | None = None, **about: object
    ) -> Journal:
        """Make the run's folder and write its first event; first delete what killed processes left half-written.

        Args:
            runs_dir: The folder of all runs, ``.maintainer/runs``.
            run_id: A new run id.
            now_ms: The clock, milliseconds since 1970 UTC.
            publisher: Where else the record is kept; None: on this machine only.
            about: Whatever identifies the run for people: version, git commit, host.

        Raises:
            FolderUnwritable: E650; nothing was touched.
        """
        tidy_state(runs_dir, now_ms())
        folder = RunFolder.create(runs_dir, run_id)
        if publisher is not None:
            (folder.path / HERE).touch()
        journal = Journal(folder, EventLog(folder.path / EVENTS_FILE), now_ms, publisher)
        try:
            journal._write("run_started", {"run": run_id, "pid": os.getpid(), **about}, durable=True)
        except FolderUnwritable as error:
            raise FolderUnwritable(
                "the run folder cannot be written", code="E650", where=error.where, found=error.found, help=error.help
            ) from error
        return journal

    def now_ms(self) -> int:
        """Return the time of the record, milliseconds since 1970 UTC."""
        return self._now_ms()

    @property
    def run_id(self) -> str:
        """The run that is recorded."""
        return self.folder.run_id

    @property
    def runs_dir(self) -> Path:
        """The folder of all runs."""
        return self.folder.path.parent

    @property
    def failed(self) -> bool:
        """Whether a record could not be written: nothing may be committed any more."""
        return self._log.failed

    def leases(self, now_ms: NowMs) -> Leases:
        """Return the leases of this run: those that all machines share, or those beside the run folders.

        Args:
            now_ms: The clock of this machine, milliseconds since 1970 UTC.
        """
        if self.publisher is None:
            return Leases(self.runs_dir, self.run_id, now_ms)
        return Leases(self.runs_dir, self.run_id, self.publisher.now_ms, documents=self.publisher.leases())

    def other_runs(self) -> OtherRuns:
        """Return the records of all other runs, also of those on other machines."""
        if self.publisher is None:
            return OtherRuns(self.runs_dir, self.run_id)
        return OtherRuns(self.runs_dir, self.run_id, self.publisher.refresh)

    def update_state(self) -> None:
        """Take all runs that are over into ``state.json``; the record is closed before.

        Raises:
            OSError: It cannot be written; the next run reads the folders instead.
        """
        if self.publisher is None:
            update_state(self.runs_dir)
        else:
            self.publisher.update_state()

    def writing(self, writing: Writing) -> None:
        """Record that a rewrite begins to write files. Call it before the first one.

        Raises:
            FolderUnwritable: E651. Nothing was written.
        """
        self._write(WRITING, writing.fields)

    def written_off(self, writing: Writing) -> None:
        """Record that what was written is gone, in this run or, for one that is over, in its record, too.

        Raises:
            FolderUnwritable: E651. The next run looks for the files once more.
        """
        if writing.run_id != self.run_id:
            record_written_off(self.runs_dir, writing, by=self.run_id, at_ms=self._now_ms())
            self._write("written_off_earlier", {"of_run": writing.run_id, "table": writing.table})
        else:
            self._write(WRITTEN_OFF, writing.fields)

    def intent(
        self,
        stamp: CommitStamp,
        facts: TableFacts,
        kind: str,
        *,
        read_version: int,
        num_files: int,
        size_bytes: int,
        proof: Proof | None,
    ) -> None:
        """Durably record that a commit (or a deletion) is about to be tried. Call it right before.

        Raises:
            FolderUnwritable: E651. The commit must not be tried.
        """
        self._write(
            "intent",
            {
                **stamp_fields(stamp),
                **table_fields(facts),
                "kind": kind,
                "read_version": read_version,
                "num_files": num_files,
                "size_bytes": size_bytes,
                "proven": proof is not None and proof.holds,
                "proof": proof_fields(proof),
            },
            durable=True,
        )

    def result(
        self,
        stamp: CommitStamp,
        facts: TableFacts,
        kind: str,
        fate: Fate,
        *,
        receipt: CommitReceipt | VacuumReceipt | None = None,
        problem: Problem | None = None,
    ) -> None:
        """Durably record how the commit or deletion ended.

        Raises:
            FolderUnwritable: E651. What landed has landed; nothing more may be committed.
        """
        figures = {
            **stamp_fields(stamp),
            **table_fields(facts),
            "kind": kind,
            "fate": fate.value,
            **receipt_fields(receipt),
        }
        self._write("result", {**figures, **problem_fields(problem)}, durable=True)

    def verified(self, facts: TableFacts, step_id: str, version: int | None, result: str, detail: str | None) -> None:
        """Durably record a check after a commit: ``pass``, ``fail`` or ``error`` (could not check).

        Raises:
            FolderUnwritable: E651. The version counts as unproven.
        """
        fields = {"step": step_id, "version": version, "result": result, "detail": detail}
        self._write("verified", {**table_fields(facts), **fields}, durable=True)

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
        fields = {"quarantine": quarantine_id, "reason": reason, "version": version}
        self._write("quarantined", {**table_fields(facts), **fields}, durable=True)
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
        """
        fields = {"versions": list(record.unproven_versions), "reason": reason, "by": by}
        self._write("accepted", {**table_fields(facts), **fields}, durable=True)
        lifted = {
            "quarantines": [each for each, _ in record.quarantines],
            "alone": not record.seen_elsewhere,
            "reason": reason,
        }
        self._write("quarantine_lifted", {**table_fields(facts), **lifted}, durable=True)

    def settled(
        self, intent: Intent, fate: Fate, receipt: CommitReceipt | VacuumReceipt | None, *, detail: str | None = None
    ) -> None:
        """Record in the old run and in this one how an open intent of an earlier run ended.

        Args:
            intent: The open intent.
            fate: What the table's log and its storage say.
            receipt: What was done, for ``LANDED``: counted from the log, or by looking at storage.
            detail: What else a person should know.

        Raises:
            FolderUnwritable: The record could not be written; the table must not be touched.
        """
        now, figures = self._now_ms(), {"version": None, **receipt_fields(receipt), "detail": detail}
        record_settlement(self.runs_dir, intent, fate, figures, by=self.run_id, at_ms=now)
        fields = {"of_run": intent.stamp.run_id, "of_step": intent.stamp.step_id, "of_batch": intent.stamp.batch}
        key = {"table": intent.table, "table_id": intent.table_id, "location": intent.location}
        self._write("settled_earlier", {**fields, **key, "fate": fate.value, "version": figures["version"]})

    def verified_earlier(
        self,
        stamp: CommitStamp,
        facts: TableFacts,
        version: int,
        result: str,
        detail: str | None,
        is_here: Callable[[str], bool],
    ) -> None:
        """See ``record_check``.

        Raises:
            FolderUnwritable: E650 or E651.
            EnvironmentUnfit: E641, that run's record cannot be read.
        """
        if stamp.run_id != self.run_id:
            fields = {"version": version, "result": result, "detail": detail}
            record_check(self.runs_dir, stamp, facts, fields, is_here, by=self.run_id, at_ms=self._now_ms())

    def step_started(self, table: str, step_id: str, kind: str) -> None:
        """Record that a step begins.

        Raises:
            FolderUnwritable: E651.
        """
        self._write("step_started", {"table": table, "step": step_id, "kind": kind})

    def turn(self, table: str, step_id: str, outcome: TurnOutcome) -> None:
        """Record what a turn of an incremental Z-order was, once its commit has landed.

        Raises:
            FolderUnwritable: E651.
        """
        self._write("turn", {"table": table, "step": step_id, "turn": encode(outcome)})

    def deleting(self, facts: TableFacts, step_id: str, num_deleted: int, num_files: int) -> None:
        """Durably record how far a deletion has come: at least ``num_deleted`` of ``num_files`` files are gone.

        Raises:
            FolderUnwritable: E651.
        """
        fields = {"step": step_id, "num_deleted": num_deleted, "num_files": num_files}
        self._write("deleting", {**table_fields(facts), **fields}, durable=True)

    def step_finished(self, table: str, key: tuple[str, str] | None, outcome: StepOutcome) -> None:
        """Record a step's end.

        Args:
            table: The table's name.
            key: Its id and location, where they are known.
            outcome: The step.

        Raises:
            FolderUnwritable: E651.
        """
        about = {"table": table} if key is None else {"table": table, "table_id": key[0], "location": key[1]}
        fields = {"step": outcome.step_id, "kind": outcome.kind, "status": outcome.status.value, "note": outcome.note}
        duration = {"duration_seconds": round(outcome.duration_seconds, 3)}
        self._write("step_finished", {**about, **fields, **duration, **problem_fields(outcome.error)})

    def table_finished(self, outcome: TableOutcome, *, hot: bool = False, key: tuple[str, str] | None = None) -> None:
        """Record a table's end. ``hot`` says that its plan left all rewrites to quieter hours.

        ``key`` is its id and location, None where the table could not be read.

        Raises:
            FolderUnwritable: E651.
        """
        rewrites = [step for step in outcome.steps if step.kind in REWRITE_KINDS]
        fields: dict[str, object] = {
            "table": outcome.ref.identifier,
            "status": outcome.status.value,
            "lost": any(step.error is not None and step.error.code == LOST for step in rewrites),
            "hot": hot or any(step.error is not None and step.error.code == HOT for step in rewrites),
            "rewritten": any(step.commits for step in rewrites),
        }
        if key is not None:
            fields["table_id"], fields["location"] = key
        self._write("table_finished", {**fields, **problem_fields(outcome.problem)})

    def listed(self, table: str, table_id: str, location: str, at_ms: int) -> None:
        """Record that a table's folder was listed for the plan that is applied: it need not be soon again.

        Raises:
            FolderUnwritable: E651.
        """
        self._write("listed", {"table": table, "table_id": table_id, "location": location, "listed_at_ms": at_ms})

    def note(self, about: str, **fields: object) -> None:
        """Record something that nothing else depends on.

        Raises:
            FolderUnwritable: E651.
        """
        self._write("note", {"about": about, **fields})

    def finished(self, interrupted_by: str | None, *, rows_known: bool = True) -> None:
        """Record the run's end, durably.

        Args:
            interrupted_by: The signal that ended it; None where there was none.
            rows_known: Whether its rows are in the ledger or wait for it; else the next run makes them again.

        Raises:
            FolderUnwritable: E651.
        """
        end = {"run": self.run_id, "interrupted_by": interrupted_by, "rows_known": rows_known}
        self._write("run_finished", end, durable=True)

    def close(self) -> None:
        """Close the record and release its lock. Safe to call twice."""
        self._log.close()

    def _write(self, kind: str, fields: Mapping[str, Any], *, durable: bool = False) -> None:
        self._log.append({"type": kind, "at_ms": self._now_ms(), **fields}, durable=durable)
        if durable and self.publisher is not None:
            # Nothing may be tried that only this machine would know of; what happened may wait for a better moment.
            self.publisher.announce(required=kind == "intent")
