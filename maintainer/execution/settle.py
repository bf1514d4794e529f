"""Before a table is touched: what earlier runs left open is settled with the table's own log.

An earlier process may have died between INTENT and RESULT. The stamp in ``userMetadata`` tells whether its commit
landed; one that did is checked now, as the dead run would have done, and only then recorded. Versions of ours that were
never proven are checked again, for as long as the old version can still be read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from maintainer.engine import is_one_place
from maintainer.execution.attempt import StepWork, Worker
from maintainer.execution.steps import CheckImpossible, take_verification
from maintainer.journal.intents import Fate, Intent
from maintainer.model.table import TableFacts, TableRecord

MAX_VERSIONS_CHECKED = 10
"""Unproven versions that one run checks again on one table; the rest waits for the next run."""


def settle(
    worker: Worker, intents: Iterable[Intent], record: TableRecord, facts: TableFacts
) -> tuple[TableRecord, StepWork]:
    """Settle open intents of earlier runs on this table and check what is not proven.

    An intent that was written for another place with the same table id stays open: the table there answers for itself.
    If its commit is in this log, too, it is checked here like any other.

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
    intents = tuple(intents)
    # While nobody had asked the log, the record assumed the next version.
    debt = set(record.unproven_versions) - {intent.read_version + 1 for intent in intents}
    unproven = set(debt)
    for intent in intents:
        is_own = is_one_place(worker.context.places, intent.location, facts.location)
        if intent.kind == "vacuum":
            if not is_own:
                continue
            worker.context.journal.settled(intent, Fate.NOT_LANDED, None)
            work.notes.append(f"run {intent.stamp.run_id} ended in the middle of a deletion; it goes on from here")
            continue
        version = worker.engine.reader.find_commit(facts, intent.stamp, after_version=intent.read_version)
        if version is not None and intent.kind != "set_properties" and not _check(worker, work, facts, version):
            unproven.add(version)
        fate = Fate.NOT_LANDED if version is None else Fate.LANDED
        how = "did not land" if version is None else f"landed as version {version}"
        if not is_own:
            where = f"at {intent.location}, which has the same table id"
            work.notes.append(f"run {intent.stamp.run_id} ended in the middle of a commit {where}; here it {how}")
            continue
        worker.context.journal.settled(intent, fate, version)
        work.notes.append(f"run {intent.stamp.run_id} ended in the middle of a commit, which {how}")
    for version in sorted(debt)[:MAX_VERSIONS_CHECKED]:
        # The record guesses the version of what another run is just trying. An append that came first must not be
        # accused of changing rows.
        if worker.engine.reader.stamp_of(facts, version) is None:
            work.notes.append(f"version {version} is not known to be ours; it still counts as not proven")
        elif _check(worker, work, facts, version):
            unproven.discard(version)
            work.notes.append(f"version {version} of an earlier run is proven now")
    return replace(record, unproven_versions=tuple(sorted(unproven))), work


def _check(worker: Worker, work: StepWork, facts: TableFacts, version: int) -> bool:
    """Check one version against the one before it; False when it could not be checked."""
    clock = worker.context.clock
    started = clock.monotonic()
    try:
        found = worker.context.verifier.version_pair(worker.engine.versions, facts, version, worker.plan.checks)
        take_verification(worker, work, facts, found, version, clock.monotonic() - started)
    except CheckImpossible as error:
        work.notes.append(f"version {version} is still not proven: {error.what}")
        return False
    return True
