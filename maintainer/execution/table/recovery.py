"""Settle what earlier runs left open, from the table's own log, before the table is touched.

An earlier process may have died between INTENT and RESULT. The stamp in ``userMetadata`` shows whether its commit
landed; a landed commit is recorded and checked now. Which files an interrupted deletion deleted is found by looking for
exactly these files on storage. Our versions that were never proven are checked again, as long as the version before
them can be read. Files that a killed run was writing, and never tried to commit, are removed.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from maintainer.engine.protocols import TableEngine, is_one_place
from maintainer.errors import CheckImpossible, MaintainerError
from maintainer.execution.table.check_result import check_change
from maintainer.execution.table.table_worker import StepWork, TableWorker
from maintainer.journal.folder.run_folder import PLAN_FILE
from maintainer.journal.memory.past_runs import read_plan, recorded_step
from maintainer.model.plan.steps import REWRITE_KINDS, VacuumStep
from maintainer.model.run.receipts import Amounts, CommitReceipt, VacuumReceipt
from maintainer.model.run.run_events import MAX_PARTITIONS, CommitEnd, Intent, Writing
from maintainer.model.table.commit_records import CommitStamp, CommitsWanted
from maintainer.model.table.table_facts import PartitionValues, TableFacts, TableRecord
from maintainer.units import count_of, format_size

COMMITS_SINCE = 50
"""Commits of other writers that may have followed one of ours before its figures are looked up."""


LATE_MS = 3_600_000
"""So long an attempt may yet write, or commit: by Spark's defaults an executor that lost its driver ends after ten
minutes, and a server ends what nobody asks for after five."""

TRASH = ".maintainer-trash"
"""What a receipt calls the trash where the engine did not come to say in which folder of it the files are."""


def deletion_receipt(
    engine: TableEngine, facts: TableFacts, step: VacuumStep, stamp: CommitStamp, read_version: int
) -> VacuumReceipt | None:
    """Return what a deletion did; None if neither a file went nor anything was committed.

    Args:
        engine: Looks at the log and at storage.
        facts: The table.
        step: What was to go, and whether into the trash.
        stamp: The deletion's own.
        read_version: The version that it began with.

    Raises:
        MaintainerError: The log or the storage cannot be looked at.
    """
    first, last = vacuum_versions(engine, facts, stamp, read_version)
    files = step.files
    existing = engine.versions.files_there(facts, [file.path for file in files])
    deleted = [file for file in files if file.path not in existing]
    if first is None and not deleted:
        return None
    return VacuumReceipt(
        num_files_deleted=len(deleted),
        bytes_deleted=sum(file.size_bytes for file in deleted),
        remaining=tuple(file.path for file in files if file.path in existing),
        version_before=read_version,
        version_after=last or first,
        stopped="it was interrupted",
        trash=TRASH if step.trash_seconds else None,
    )


def end_of(receipt: CommitReceipt | VacuumReceipt | None) -> CommitEnd:
    """Return how the work behind this receipt ended; a deletion may have taken files and have no commit."""
    match receipt:
        case None:
            return CommitEnd.NOT_LANDED
        case VacuumReceipt(version_after=None):
            return CommitEnd.NO_COMMIT
        case _:
            return CommitEnd.LANDED


def vacuum_versions(
    engine: TableEngine, facts: TableFacts, stamp: CommitStamp, read_version: int
) -> tuple[int | None, int | None]:
    """Return the versions of a deletion's VACUUM START and VACUUM END; None for one that is not in the log."""
    first = engine.reader.find_commit(facts, stamp, after_version=read_version)
    last = None if first is None else engine.reader.find_commit(facts, stamp, after_version=first)
    return first, last


def settled_deletion(
    engine: TableEngine, facts: TableFacts, intent: Intent, runs_dir: Path
) -> tuple[VacuumReceipt | None, str]:
    """Return what a dead run's deletion did, and a sentence about it.

    Raises:
        MaintainerError: The log or the storage cannot be looked at.
    """
    planned = planned_deletion(runs_dir, intent)
    first, last = vacuum_versions(engine, facts, intent.stamp, intent.read_version)
    if planned is None:
        return _commits_alone(
            intent, first, last
        ), "its plan is missing, so it is not known how many files were deleted"
    step = recorded_step(runs_dir, intent.stamp)
    if step is None or step.num_deleted is None:
        return _commits_alone(intent, first, last), f"no file of the table was deleted{_without_end(first, last)}"
    receipt = deletion_receipt(engine, facts, planned, intent.stamp, intent.read_version)
    num_files, size_bytes = (0, 0) if receipt is None else (receipt.num_files_deleted, receipt.bytes_deleted)
    # Who took them, and where to, nobody knows any more.
    text = f"{num_files:,} of {len(planned.files):,} files ({format_size(size_bytes)}) are gone"
    return receipt, text + _without_end(first, last)


def _commits_alone(intent: Intent, first: int | None, last: int | None) -> VacuumReceipt | None:
    """A deletion that is known by its commits, and took no file that anybody knows of."""
    if first is None:
        return None
    return VacuumReceipt(0, 0, version_before=intent.read_version, version_after=last or first)


def _without_end(first: int | None, last: int | None) -> str:
    return f"; VACUUM START (version {first}) has no VACUUM END" if first is not None and last is None else ""


def planned_deletion(runs_dir: Path, intent: Intent) -> VacuumStep | None:
    """Return what a run's deletion was to take, from its folder; None where the plan cannot be read."""
    path = runs_dir / intent.stamp.run_id / PLAN_FILE
    try:
        plan = read_plan(path)
    except (OSError, ValueError, MaintainerError):
        return None
    steps = (table.step_of(intent.stamp.step_id) for table in plan.tables)
    return next((step for step in steps if isinstance(step, VacuumStep)), None)


def receipt_from_log(engine: TableEngine, facts: TableFacts, version: int, read_version: int) -> CommitReceipt:
    """Make the receipt of a commit of ours that only the log knows: its figures are counted from its actions."""
    receipt = CommitReceipt(version=version, read_version=read_version)
    limit = max(0, facts.version - version) + COMMITS_SINCE
    for commit in engine.reader.commits(facts.ref, CommitsWanted(limit, counted=True)).commits:
        if commit.version == version:
            return replace(receipt, **asdict(Amounts.of([commit])))
    return receipt


MAX_VERSIONS_CHECKED = 10
"""Unproven versions that one run checks again on one table; the rest waits for the next run."""


def settle(
    worker: TableWorker, intents: Iterable[Intent], record: TableRecord, facts: TableFacts
) -> tuple[TableRecord, StepWork]:
    """Settle open intents of earlier runs on this table and check what is not proven.

    An intent that was written for another place, which may still hold the table, stays open: the table there answers
    for itself. If its commit is in this log, too, it is checked here like any other. Where the old place does not hold
    the table any more, it was moved here, and answers here.

    Args:
        worker: The table's worker.
        intents: Open intents for the table's id.
        record: What is remembered of the table.
        facts: The table as it is now.

    Returns:
        The record as it is now (versions still unproven), and notes and assertions of the checks.

    Raises:
        VerificationFailed: A commit of an earlier run is wrong; the table must not be touched.
        MaintainerError: The log could not be asked, or the answer not be recorded; the table must not be touched.
    """
    work = StepWork(step_id=f"{worker.plan.ref.identifier}/settle", kind="settle", facts=facts)
    settling = _Settling(worker, work, record, facts)
    intents = [intent for intent in intents if intent.table_id == facts.table_id]
    unproven = {version for intent in intents if (version := settling.unproven_version(intent)) is not None}
    debt = set(record.unproven_versions) - settling.answered - unproven
    unproven = (unproven | debt) - settling.proven_now(debt)
    return replace(record, unproven_versions=tuple(sorted(unproven))), work


_OF_LOST_COMMIT = (
    "may have landed: the log no longer has version {}, which counts as not proven; if the table is right, "
    "`maintainer verify TABLE --accept REASON`"
)


@dataclass(slots=True)
class _Settling:
    worker: TableWorker
    work: StepWork
    record: TableRecord
    facts: TableFacts
    answered: set[int] = field(default_factory=set)
    """Versions that intents became, and those that the record assumed while nobody had asked the log."""

    def unproven_version(self, intent: Intent) -> int | None:
        """Settle an intent; returns the version that it became, where that could not be checked."""
        facts, work, journal = self.facts, self.work, self.worker.context.journal
        in_place = is_one_place(self.worker.context.places, intent.location, facts.location)
        # An older copy, whose original is gone, knows nothing of what the original came to.
        is_own = in_place or (facts.version >= intent.read_version and self._is_here(intent.location))
        moved = None if in_place else f"the table was at {intent.location}, and is now at {facts.location}"
        if intent.kind == "vacuum":
            if is_own:
                self._settle_deletion(intent, moved)
            return None
        version, guess = self._version_of(intent), intent.read_version + 1
        if version is None and is_own and self._may_be_late(intent):
            until = f"{datetime.fromtimestamp((intent.at_ms + LATE_MS) / 1000, tz=UTC):%Y-%m-%d %H:%M} UTC"
            work.notes.append(
                f"run {intent.stamp.run_id} ended in the middle of a commit that is not in the log; a server may still "
                f"be at work on it, so it stays open until {until}, and a run after that settles it"
            )
            return None
        lost = _OF_LOST_COMMIT.format(guess) if version is None and not self._tells(guess) else None
        how = lost or ("did not land" if version is None else f"landed as version {version}")
        where = "" if is_own else f" at {intent.location}, which has the same table id; here it {how}"
        work.notes.append(f"run {intent.stamp.run_id} ended in the middle of a commit{where or f', which {how}'}")
        if version is None:
            stay = f"the commit {lost}" if lost else _what_stays(intent)
            if is_own:
                work.notes[-1] += f"; {stay}" if stay and not lost else ""
                detail = "; ".join(part for part in (stay, moved) if part) or None
                end = CommitEnd.UNKNOWN if lost else CommitEnd.NOT_LANDED
                receipt = CommitReceipt(guess, intent.read_version) if lost else None
                journal.settled(intent, end, receipt, detail=detail)
            return guess if lost and intent.kind != "set_properties" else None
        if is_own:
            # Recorded before it is checked: a version that landed counts as not proven until the check has passed, and
            # one that fails its check must be known all the same.
            receipt = receipt_from_log(self.worker.engine, facts, version, intent.read_version)
            journal.settled(intent, CommitEnd.LANDED, receipt, detail=moved)
        return None if intent.kind == "set_properties" or self._check(intent.stamp, version) else version

    def _may_be_late(self, intent: Intent) -> bool:
        """Whether a server may yet commit it: a command is proven after its commit, and may outlive its run."""
        age_ms = abs(self.worker.context.clock.now_ms() - intent.at_ms)  # by a clock that was ahead: not without end
        return intent.kind in REWRITE_KINDS and not intent.proven and age_ms < LATE_MS

    def _version_of(self, intent: Intent) -> int | None:
        """Return the version that an intent became here; it, and what the record assumed of the intent, is answered.

        Not where the log cannot tell, or has a commit of ours there: another run made that, and it may be unproven too.
        """
        reader, guess = self.worker.engine.reader, intent.read_version + 1
        version = reader.find_commit(self.facts, intent.stamp, after_version=intent.read_version)
        if version is not None:
            self.answered.add(version)
        if (guess > self.facts.version or reader.stamp_of(self.facts, guess) is None) and self._tells(guess):
            self.answered.add(guess)
        return version

    def _tells(self, version: int) -> bool:
        """Whether the log tells what became of a version. Asked last: a commit that is there now was there before."""
        return version > self.facts.version or self.worker.engine.reader.has_commit(self.facts, version)

    def proven_now(self, debt: set[int]) -> set[int]:
        """Check again what earlier runs left unproven, as many versions as have their turn; return those proven now."""
        proven: set[int] = set()
        notes, turn = self.work.notes, versions_in_turn(debt, self.worker.context.run_id)
        for version in turn:
            # The record guesses the version of what another run is just trying. An append that came first must not be
            # accused of changing rows.
            stamp = self.worker.engine.reader.stamp_of(self.facts, version)
            if stamp is None:
                notes.append(f"version {version} is not known to be ours; it still counts as not proven")
            elif self._check(stamp, version):
                proven.add(version)
                notes.append(f"version {version} of an earlier run is proven now")
        if len(debt) > len(turn):
            waiting = count_of(len(debt) - len(turn), "more version")
            notes.append(f"{waiting} of earlier runs not proven; a later run checks them")
        return proven

    def _is_here(self, location: str) -> bool:
        """Whether it is the table at a location, or was: it is no longer there, nor at any known place."""
        places, facts = self.worker.context.places, self.facts
        in_place = is_one_place(places, location, facts.location)
        return in_place or not (self.record.copies or places.may_hold(location, facts.table_id))

    def _settle_deletion(self, intent: Intent, moved: str | None) -> None:
        """Look on storage which files a dead run's deletion deleted, record it, and describe it in a sentence."""
        journal = self.worker.context.journal
        receipt, text = settled_deletion(self.worker.engine, self.facts, intent, journal.runs_dir)
        text = "; ".join(part for part in (text, moved) if part)
        journal.settled(intent, end_of(receipt), receipt, detail=text)
        self.work.notes.append(f"run {intent.stamp.run_id} ended in the middle of a deletion: {text}")

    def _check(self, stamp: CommitStamp, version: int) -> bool:
        """Check one version against the one before it; False when it could not be checked."""
        worker, context = self.worker, self.worker.context
        check = partial(context.verifier.version_pair, worker.engine.versions, self.facts, version, worker.plan.checks)
        try:
            check_change(
                worker, self.work, self.facts, CommitReceipt(version, version - 1), check,
                lambda event: context.journal.verified_earlier(stamp, event, self._is_here),
            )  # fmt: skip
        except CheckImpossible as error:
            self.work.notes.append(f"version {version} is still not proven: {error.what}")
            return False
        return True


def versions_in_turn(versions: Iterable[int], run_id: str) -> tuple[int, ...]:
    """Return the versions that a run checks, at most ``MAX_VERSIONS_CHECKED``, in order.

    Each run begins at another one, by its id: versions that can never be checked, as their files are gone, must not
    keep the others waiting for ever.
    """
    waiting = sorted(versions)
    if len(waiting) <= MAX_VERSIONS_CHECKED:
        return tuple(waiting)
    first = zlib.crc32(run_id.encode()) % len(waiting)
    return tuple(sorted((waiting[first:] + waiting[:first])[:MAX_VERSIONS_CHECKED]))


def _what_stays(intent: Intent) -> str | None:
    """Say which files a rewrite that was killed right before its commit may have left; None for what writes none.

    They stay: an engine that outlives its run for a moment could still commit them.
    """
    if intent.kind == "set_properties":
        return None
    return (
        f"data files whose names begin with part-{intent.stamp.run_id}- and that no version names may be left of it: "
        "`vacuum.deleteUntracked` deletes them"
    )


def remove_unfinished(worker: TableWorker, writings: Iterable[Writing], facts: TableFacts) -> list[str]:
    """Remove what runs wrote into this table and committed without, or never tried to commit; return notes about it.

    A later run looks once more for what may yet be written.

    Args:
        worker: The table's worker.
        writings: What those runs began to write, in any table.
        facts: The table as it is now.

    Raises:
        MaintainerError: The folders could not be read, or the answer not be recorded.
    """
    notes = []
    for writing in writings:
        if writing.table_id != facts.table_id:
            continue
        places = worker.context.places
        in_place = is_one_place(places, writing.location, facts.location)
        # Where the old place may still hold the table, this is a copy of it, or the other way round.
        if not in_place and places.may_hold(writing.location, writing.table_id):
            continue
        if writing.paths:
            gone, remaining = worker.engine.writer.remove_late(facts, writing.paths)
            wrote = f"{count_of(len(gone), 'file')}, such as {gone[0]}" if gone else ""
            what = f"what a late attempt of run {writing.run_id} wrote is gone: {wrote}" if gone else ""
        else:
            remaining = worker.engine.writer.remove_unfinished(
                facts, writing.run_id, writing.step_id, writing.batch, _written_to(writing, facts)
            )
            what = f"what run {writing.run_id} wrote and never tried to commit is gone"
        if remaining:
            notes.append(
                f"run {writing.run_id} left {len(remaining)} files that cannot be removed, such as {remaining[0]}"
            )
            continue
        notes += [what] if what else []
        # A clock that was ahead must not have it looked for without end.
        if not writing.paths or abs(worker.context.clock.now_ms() - writing.at_ms) >= LATE_MS:
            worker.context.journal.written_off(writing)
    return notes


def _written_to(writing: Writing, facts: TableFacts) -> Iterable[PartitionValues]:
    """The partitions that a batch may have written to: of very many the record has the first."""
    if len(writing.partitions) < MAX_PARTITIONS:
        return writing.partitions
    return dict.fromkeys((*writing.partitions, *(file.partition_values for file in facts.files)))
