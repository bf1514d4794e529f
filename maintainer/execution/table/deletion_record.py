"""Find which planned files an interrupted deletion deleted, by looking for exactly these files on storage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from maintainer.engine.protocols import TableEngine
from maintainer.errors import MaintainerError
from maintainer.journal.memory.past_runs import read_plan, recorded_step
from maintainer.model.plan.steps import VacuumStep
from maintainer.model.run.receipts import Amounts, CommitReceipt, VacuumReceipt
from maintainer.model.run.run_events import Fate, Intent
from maintainer.model.table.commit_records import CommitStamp, CommitsWanted
from maintainer.model.table.table_facts import RemovedFile, TableFacts
from maintainer.units import format_size

COMMITS_SINCE = 50
"""Commits of other writers that may have followed one of ours before its figures are looked up."""


def deletion_receipt(
    engine: TableEngine, facts: TableFacts, files: Sequence[RemovedFile], stamp: CommitStamp, read_version: int
) -> VacuumReceipt | None:
    """Return what a deletion did; None if neither a file went nor anything was committed.

    Args:
        engine: Looks at the log and at storage.
        facts: The table.
        files: What was to go.
        stamp: The deletion's own.
        read_version: The version that it began with.

    Raises:
        MaintainerError: The log or the storage cannot be looked at.
    """
    first, last = vacuum_versions(engine, facts, stamp, read_version)
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
    )


def fate_of(receipt: CommitReceipt | VacuumReceipt | None) -> Fate:
    """Return how the work behind this receipt ended; a deletion may have taken files and have no commit."""
    match receipt:
        case None:
            return Fate.NOT_LANDED
        case VacuumReceipt(version_after=None):
            return Fate.NO_COMMIT
        case _:
            return Fate.LANDED


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
    files = planned_files(runs_dir, intent)
    first, last = vacuum_versions(engine, facts, intent.stamp, intent.read_version)
    if files is None:
        return _commits_alone(
            intent, first, last
        ), "its plan is missing, so it is not known how many files were deleted"
    step = recorded_step(runs_dir, intent.stamp)
    if step is None or step.num_deleted is None:
        return _commits_alone(intent, first, last), f"no file of the table was deleted{_without_end(first, last)}"
    receipt = deletion_receipt(engine, facts, files, intent.stamp, intent.read_version)
    num_files, size_bytes = (0, 0) if receipt is None else (receipt.num_files_deleted, receipt.bytes_deleted)
    text = f"{num_files:,} of {len(files):,} files ({format_size(size_bytes)}) were deleted"
    return receipt, text + _without_end(first, last)


def _commits_alone(intent: Intent, first: int | None, last: int | None) -> VacuumReceipt | None:
    """A deletion that is known by its commits, and took no file that anybody knows of."""
    if first is None:
        return None
    return VacuumReceipt(0, 0, version_before=intent.read_version, version_after=last or first)


def _without_end(first: int | None, last: int | None) -> str:
    return f"; VACUUM START (version {first}) has no VACUUM END" if first is not None and last is None else ""


def planned_files(runs_dir: Path, intent: Intent) -> tuple[RemovedFile, ...] | None:
    """Return the files that a run's deletion was to take, from its folder; None where the plan cannot be read."""
    path = runs_dir / intent.stamp.run_id / "plan.json"
    try:
        plan = read_plan(path)
    except (OSError, ValueError, MaintainerError):
        return None
    for table, step in plan.steps():
        if isinstance(step, VacuumStep) and table.step_id(step) == intent.stamp.step_id:
            return step.files
    return None


def receipt_from_log(engine: TableEngine, facts: TableFacts, version: int, read_version: int) -> CommitReceipt:
    """Make the receipt of a commit of ours that only the log knows: its figures are counted from its actions."""
    receipt = CommitReceipt(version=version, read_version=read_version)
    limit = max(0, facts.version - version) + COMMITS_SINCE
    for commit in engine.reader.commits(facts.ref, CommitsWanted(limit, counted=True)).commits:
        if commit.version == version:
            return replace(receipt, **asdict(Amounts.of([commit])))
    return receipt
