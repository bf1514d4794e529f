"""Settle what earlier runs left open, from the table's own log, before the table is touched.

An earlier process may have died between INTENT and RESULT. The stamp in ``userMetadata`` shows whether its commit
landed; a landed commit is recorded and checked now. Our versions that were never proven are checked again, as long as
the version before them can be read. Files that a killed run was writing, and never tried to commit, are removed.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from dataclasses import replace

from maintainer.engine.protocols import TablePlaces, is_one_place
from maintainer.errors import CheckImpossible
from maintainer.execution.table.check_result import check_event, take_verification
from maintainer.execution.table.deletion_record import fate_of, receipt_from_log, settled_deletion
from maintainer.execution.table.table_worker import StepWork, TableWorker
from maintainer.model.run.receipts import CommitReceipt
from maintainer.model.run.run_events import Fate, Intent, Writing
from maintainer.model.table.commit_records import CommitStamp
from maintainer.model.table.table_facts import TableFacts, TableRecord
from maintainer.units import count_of

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
    journal, places = worker.context.journal, worker.context.places
    intents = [intent for intent in intents if intent.table_id == facts.table_id]
    # While nobody had asked the log, the record assumed the next version.
    debt = set(record.unproven_versions) - {intent.read_version + 1 for intent in intents}
    unproven = set(debt)

    def is_here(location: str) -> bool:
        return is_one_place(places, location, facts.location) or _was_moved(places, record, facts, location)

    for intent in intents:
        in_place = is_one_place(places, intent.location, facts.location)
        # An older copy, whose original is gone, knows nothing of what the original came to.
        is_own = in_place or (facts.version >= intent.read_version and is_here(intent.location))
        moved = None if in_place else f"the table was at {intent.location}, and is now at {facts.location}"
        if intent.kind == "vacuum":
            if is_own:
                work.notes.append(_settle_deletion(worker, facts, intent, moved))
            continue
        version = worker.engine.reader.find_commit(facts, intent.stamp, after_version=intent.read_version)
        how = "did not land" if version is None else f"landed as version {version}"
        where = "" if is_own else f" at {intent.location}, which has the same table id; here it {how}"
        work.notes.append(f"run {intent.stamp.run_id} ended in the middle of a commit{where or f', which {how}'}")
        if version is None:
            if is_own:
                stay = _what_stays(intent)
                work.notes[-1] += f"; {stay}" if stay else ""
                detail = "; ".join(part for part in (stay, moved) if part) or None
                journal.settled(intent, Fate.NOT_LANDED, None, detail=detail)
            continue
        if is_own:
            # Recorded before it is checked: a version that landed counts as not proven until the check has passed, and
            # one that fails its check must be known all the same.
            receipt = receipt_from_log(worker.engine, facts, version, intent.read_version)
            journal.settled(intent, Fate.LANDED, receipt, detail=moved)
        if intent.kind != "set_properties" and not _check(worker, work, facts, intent.stamp, version, is_here):
            unproven.add(version)
    unproven -= _proven_now(worker, work, facts, debt, is_here)
    return replace(record, unproven_versions=tuple(sorted(unproven))), work


def _proven_now(
    worker: TableWorker, work: StepWork, facts: TableFacts, debt: set[int], is_here: Callable[[str], bool]
) -> set[int]:
    """Check again what earlier runs left unproven, as many versions as have their turn; return those proven now."""
    proven: set[int] = set()
    turn = versions_in_turn(debt, worker.context.run_id)
    for version in turn:
        # The record guesses the version of what another run is just trying. An append that came first must not be
        # accused of changing rows.
        stamp = worker.engine.reader.stamp_of(facts, version)
        if stamp is None:
            work.notes.append(f"version {version} is not known to be ours; it still counts as not proven")
        elif _check(worker, work, facts, stamp, version, is_here):
            proven.add(version)
            work.notes.append(f"version {version} of an earlier run is proven now")
    if len(debt) > len(turn):
        waiting = count_of(len(debt) - len(turn), "more version")
        work.notes.append(f"{waiting} of earlier runs not proven; a later run checks them")
    return proven


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


def _was_moved(places: TablePlaces, record: TableRecord, facts: TableFacts, location: str) -> bool:
    """Return whether this is the table that was at another location: it is no longer there, nor at any known place."""
    return not record.copies and not places.may_hold(location, facts.table_id)


def _settle_deletion(worker: TableWorker, facts: TableFacts, intent: Intent, moved: str | None) -> str:
    """Look on storage which files a dead run's deletion deleted, record it, and describe it in a sentence."""
    journal = worker.context.journal
    receipt, text = settled_deletion(worker.engine, facts, intent, journal.runs_dir)
    text = "; ".join(part for part in (text, moved) if part)
    journal.settled(intent, fate_of(receipt), receipt, detail=text)
    return f"run {intent.stamp.run_id} ended in the middle of a deletion: {text}"


def _check(
    worker: TableWorker,
    work: StepWork,
    facts: TableFacts,
    stamp: CommitStamp,
    version: int,
    is_here: Callable[[str], bool],
) -> bool:
    """Check one version against the one before it; False when it could not be checked."""
    started = worker.context.clock.monotonic()
    try:
        verification = worker.context.verifier.version_pair(worker.engine.versions, facts, version, worker.plan.checks)
        event = check_event(worker, work, facts, verification, started, version)
        worker.context.journal.verified_earlier(stamp, event, is_here)
        take_verification(worker, work, facts, verification, event, CommitReceipt(version, version - 1))
    except CheckImpossible as error:
        work.notes.append(f"version {version} is still not proven: {error.what}")
        return False
    return True


def remove_unfinished(worker: TableWorker, writings: Iterable[Writing], facts: TableFacts) -> list[str]:
    """Remove what runs wrote into this table and committed without, or never tried to commit; return notes about it.

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
                facts, writing.run_id, writing.step_id, writing.batch, writing.partitions
            )
            what = f"what run {writing.run_id} wrote and never tried to commit is gone"
        if remaining:
            notes.append(
                f"run {writing.run_id} left {len(remaining)} files that cannot be removed, such as {remaining[0]}"
            )
            continue
        worker.context.journal.written_off(writing)
        notes += [what] if what else []
    return notes
