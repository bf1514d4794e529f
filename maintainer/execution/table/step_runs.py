"""Run each kind of step, with fresh facts, and record the result in a ``StepWork``."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial

from maintainer.engine.protocols import DeletionGuard
from maintainer.errors import CommitConflict, DeletionWaits, Interrupted, Refused, TableAltered, TableHot
from maintainer.errors.missing_files import missing_before
from maintainer.execution.cancellation import RETRY_THE_REST
from maintainer.execution.table.check_result import check_change
from maintainer.execution.table.commit_attempt import (
    CommitAttempt,
    check_quiet,
    check_window,
    recorded_writing,
    step_now,
)
from maintainer.execution.table.table_worker import StepWork, TableWorker
from maintainer.journal.folder.atomic_files import FolderUnwritable
from maintainer.model.plan.plan import TablePlan
from maintainer.model.plan.steps import Batch, RewriteStep, SetPropertiesStep, VacuumStep
from maintainer.model.run.commit_verdict import lift_help
from maintainer.model.run.outcome import StepStatus
from maintainer.model.run.progress import Phase
from maintainer.model.run.run_events import Deleting, named
from maintainer.model.table.commit_records import MAINTENANCE
from maintainer.model.table.table_facts import TableFacts, TableRecord
from maintainer.planning.vacuum.vacuum_plan import is_unproven, unproven_text
from maintainer.units import count_of, format_size

LIFT_HELP = lift_help("TABLE")
_HELD_HELP = "look at what failed first; nothing is lost by waiting, the next apply plans the vacuum again"


def run_properties(worker: TableWorker, work: StepWork, step: SetPropertiesStep) -> StepStatus:
    """Set properties in one commit; nothing to do when somebody has set them meanwhile.

    Raises:
        MaintainerError: It did not work.
    """
    facts = work.facts = worker.engine.reader.facts(worker.plan.ref)
    current = step_now(worker.plan, step, facts)
    if current is None:
        work.notes.append("the properties were already as wanted")
        return StepStatus.NOTHING_LEFT
    commit_properties(worker, work, facts, 0, current)
    work.batches_done = 1
    return StepStatus.SUCCEEDED


def commit_properties(
    worker: TableWorker, work: StepWork, facts: TableFacts, number: int, step: SetPropertiesStep
) -> None:
    """Set or remove table properties in one commit.

    Raises:
        MaintainerError: It did not work.
    """
    with CommitAttempt(worker, work, facts, number, kind=step.kind) as commit:
        receipt = worker.engine.writer.set_properties(facts, step, commit.stamp, commit)
    commit.landed(receipt)


def run_rewrite(worker: TableWorker, work: StepWork, step: RewriteStep) -> StepStatus:
    """Rewrite batch by batch: each is read afresh, proven, committed and checked before the next one begins.

    A batch that meets another writer yields and the next is tried, up to the bound; every other failure ends the step,
    and so does a table that was altered: it is the same for all batches. Batches that landed stay.

    Raises:
        MaintainerError: A batch failed; what landed before is in ``work``.
    """
    yielded: list[CommitConflict] = []
    for number, planned in enumerate(step.batches):
        worker.control.check()
        check_window(worker)
        try:
            run_batch(worker, work, step, number, planned)
        except TableAltered as altered:
            yielded.append(altered)
            break
        except CommitConflict as conflict:
            yielded.append(conflict)
            if len(yielded) >= worker.context.retry.max_yields:
                break
        work.batches_done += 1
    if yielded:
        work.notes.append(f"{len(work.commits)} of {len(step.batches)} batches committed, {len(yielded)} yielded")
        raise yielded[0]
    return StepStatus.SUCCEEDED if work.commits else StepStatus.NOTHING_LEFT


def run_batch(worker: TableWorker, work: StepWork, step: RewriteStep, number: int, planned: Batch) -> None:
    """Rewrite one batch; after a conflict try again with what is still live, within the bounds.

    Raises:
        CommitConflict: The last try met another writer, too.
    """
    bounds = worker.context.retry
    for tried in range(1, bounds.attempts + 1):
        work.meter.begin(Phase.READING_LOG)
        facts = work.facts = worker.engine.reader.facts(worker.plan.ref)
        current = step_now(worker.plan, replace(step, batches=(planned,)), facts)
        if current is None:
            _check_not_replaced(worker, facts)
            work.notes.append(f"batch {number}: its files are no longer live")
            return
        batch = current.batches[0]
        partitions = frozenset(file.partition_values for file in batch.files)
        commit = CommitAttempt(worker, work, facts, number, (len(batch.files), batch.size_bytes), partitions)
        try:
            check_quiet(worker, facts, partitions)
            with recorded_writing(worker, work, facts, number, partitions), commit:
                receipt = worker.engine.writer.rewrite(facts, step, batch, commit.stamp, commit)
        except CommitConflict as conflict:
            if tried == bounds.attempts or isinstance(conflict, TableHot):
                raise
            if worker.context.switch.wait(bounds.pause_seconds(tried)):
                worker.control.check()
            continue
        commit.landed(receipt)
        work.rewritten.append((batch, receipt))
        if receipt.proof is not None:
            notes = [*(use.note for use in receipt.proof.lanes), receipt.proof.source_statistics.note]
            work.notes += [f"batch {number}: {note}" for note in notes if note is not None]
        if receipt.proof is not None and receipt.proof.carried_versions:
            versions = ", ".join(map(str, receipt.proof.carried_versions))
            work.notes.append(f"batch {number}: rows that others deleted meanwhile (version {versions}) stay deleted")
        elif receipt.difference is not None:
            work.notes.append(f"batch {number}: {receipt.difference}")
        dropped = len(planned.bins) - len(batch.bins)
        if dropped:
            work.notes.append(f"batch {number}: {dropped} of {len(planned.bins)} bins are no longer live")
        work.meter.begin(Phase.CHECKING)
        verify, checks = worker.context.verifier.after_rewrite, worker.plan.checks
        check = partial(verify, worker.engine.versions, facts, batch, receipt, checks)
        return check_change(worker, work, facts, receipt, check)


def _check_not_replaced(worker: TableWorker, facts: TableFacts) -> None:
    """Raise a conflict if another writer replaced the files of a batch before it began.

    Raises:
        CommitConflict: C701. Not for maintenance by others, which did what was planned.
        TableError: The log cannot be read.
    """
    planned = worker.plan.observed.version if worker.plan.observed is not None else facts.version
    updates = worker.engine.reader.updates(facts, since_ms=sys.maxsize, after_version=planned)
    update = next((update for update in updates if update.operation.upper() not in MAINTENANCE), None)
    if update is not None:
        raise CommitConflict(
            f"another writer won: the files were replaced before they could be read (version {update.version}, "
            f"{update.operation})",
            where=worker.plan.ref.identifier,
            help="nothing was written; the next plan takes the new state",
        )


def run_vacuum(worker: TableWorker, work: StepWork, step: VacuumStep, record: TableRecord) -> StepStatus:
    """Delete the step's files, unless a rewrite that replaced them is not proven; then check that nothing else is gone.

    Raises:
        MaintainerError: Refused, or it did not work.
    """
    switch = worker.context.switch
    if switch.unproven_tables:
        raise DeletionWaits(f"the vacuum waits for the next run: {switch.deletions_held}", help=_HELD_HELP)
    if switch.deletions_held is not None:
        raise Interrupted(f"this run deletes nothing more: {switch.deletions_held}", code="C715", help=_HELD_HELP)
    worker.control.check()
    _check_all_proven(step, record)
    facts = work.facts = worker.engine.reader.facts(worker.plan.ref)
    current = step_now(worker.plan, step, facts)
    if current is None:
        work.notes.append("its files are gone or live again")
        return StepStatus.NOTHING_LEFT
    if len(current.files) < len(step.files):
        work.notes.append(f"{len(step.files) - len(current.files)} files are live again and were left alone")
    work.meter.begin(Phase.LOOKING)
    _check_undamaged(worker, facts)
    work.deletion = current
    with CommitAttempt(worker, work, facts, 0, (len(current.files), current.size_bytes)) as commit:
        guard = _guard(worker, work, current)
        receipt = worker.engine.writer.vacuum(facts, current, commit.stamp, commit, guard)
    commit.landed(receipt)
    work.batches_done = 1
    if receipt.num_files_emptied:
        size = format_size(receipt.bytes_emptied)
        work.notes.append(f"{receipt.num_files_emptied} files ({size}) of earlier runs went from the trash")
    if receipt.oldest_version is not None:
        work.notes.append(f"every version from {receipt.oldest_version} on still has all of its files")
    if receipt.num_vanished:
        work.notes.append(
            f"{receipt.num_vanished} other files disappeared meanwhile: another program deletes there too"
        )
    if receipt.num_marked:
        work.notes.append(
            f"the bucket keeps {receipt.num_marked:,} of them as older versions: `maintainer undelete` brings them back"
        )
    if receipt.trash is not None:
        work.notes.append(f"moved to {receipt.trash}, from where `maintainer undelete` brings them back")
    work.meter.begin(Phase.CHECKING)
    after = work.facts = worker.engine.reader.facts(worker.plan.ref)
    verify, checks = worker.context.verifier.after_vacuum, worker.plan.checks
    check_change(worker, work, after, receipt, partial(verify, worker.engine.versions, after, receipt, checks))
    if receipt.stopped is not None:
        num_planned = len(current.files) + sum(run.num_files for run in current.emptied)
        done = f"{receipt.num_files_deleted + receipt.num_files_emptied} of {num_planned} files deleted"
        raise Interrupted(f"stopped in the middle of a deletion, {done}: {receipt.stopped}", help=RETRY_THE_REST)
    return StepStatus.INCOMPLETE if receipt.remaining else StepStatus.SUCCEEDED


def _check_undamaged(worker: TableWorker, facts: TableFacts) -> None:
    """Check before a deletion that all live files exist, so that a file already missing is not blamed on it.

    Raises:
        TableError: T422, the table is damaged; what the log removed may be all that is left of its rows.
    """
    if not worker.plan.checks.files:
        return
    missing = worker.engine.versions.missing_files(facts, facts.version).paths
    if missing:
        raise missing_before(missing, f"{facts.ref.identifier}@{facts.version}")


def _guard(worker: TableWorker, work: StepWork, step: VacuumStep) -> DeletionGuard:
    """Return what the engine asks while it deletes: whether the table must end, or deletions are held."""
    context, facts = worker.context, work.facts
    assert facts is not None

    def progress(num_deleted: int, markers: tuple[tuple[str, str], ...]) -> None:
        if work.num_deleted is None:
            work.meter.begin(Phase.DELETING)
        work.num_deleted = max(work.num_deleted or 0, num_deleted)
        work.meter.files(work.num_deleted, len(step.files))
        try:
            at = (context.clock.now_ms(), *named(facts), work.step_id)
            context.record(Deleting(*at, num_deleted, len(step.files), markers))
        except FolderUnwritable as error:  # asked for by ``stop_reason`` before the next chunk
            context.folder_lost(error)

    # The writer looks at every commit since this version. A file that was restored and removed again after the plan was
    # made went later than the plan says: so since the plan, not since now.
    observed = None if worker.plan.observed is None else worker.plan.observed.version
    return DeletionGuard(
        context.known_tables, lambda: worker.control.reason or context.switch.deletions_held, progress, observed
    )


def _check_all_proven(step: VacuumStep, record: TableRecord) -> None:
    """Refuse a deletion while the replacement of a file is not proven.

    Raises:
        Refused: A410 not proven, A411 in quarantine.
    """
    if record.quarantined is not None:
        raise Refused(f"the table is in quarantine: {record.quarantined}", code="A411", help=LIFT_HELP)
    unproven_files = [file for file in step.files if is_unproven(file, record.unproven_versions)]
    if unproven_files:
        raise Refused(
            f"{count_of(len(unproven_files), 'old file')} must stay: {unproven_text(record.unproven_versions)}",
            code="A410",
            help="`maintainer apply` checks it again first, and deletes when it is proven",
        )


def with_protocol(plan: TablePlan, facts: TableFacts) -> TablePlan:
    """Return the plan as later steps hold it after our own properties commit, which may have raised the protocol."""
    if plan.observed is None:
        return plan
    return replace(plan, observed=replace(plan.observed, protocol=facts.protocol))
