"""Events of runs that tests write down themselves, as the executor does."""

from __future__ import annotations

from pathlib import Path

from maintainer.execution.fleet.fleet import table_finished as ended
from maintainer.journal.journal import Journal
from maintainer.journal.memory.table_records import remembered
from maintainer.model.plan.plan import Problem
from maintainer.model.run.outcome import StepOutcome, TableOutcome
from maintainer.model.run.progress import PlacedTable, StepFinished, Verified
from maintainer.model.run.receipts import CommitReceipt, Proof, VacuumReceipt
from maintainer.model.run.run_events import CommitEnd, Intent, Listed, Result, Writing, named
from maintainer.model.table.commit_records import CommitStamp
from maintainer.model.table.table_facts import TableFacts


def intent(
    journal: Journal,
    stamp: CommitStamp,
    facts: TableFacts,
    kind: str,
    *,
    read_version: int,
    num_files: int = 1,
    size_bytes: int = 1,
    proof: Proof | None = None,
) -> None:
    """A commit or deletion is about to be tried."""
    about, proven = (journal.now_ms(), *named(facts), stamp, kind), proof is not None and proof.holds
    journal.record(Intent(*about, read_version, proven, num_files, size_bytes, proof))


def result(
    journal: Journal,
    stamp: CommitStamp,
    facts: TableFacts,
    kind: str,
    fate: CommitEnd,
    *,
    receipt: CommitReceipt | VacuumReceipt | None = None,
    problem: Problem | None = None,
) -> None:
    """How it ended."""
    journal.record(Result(journal.now_ms(), *named(facts), stamp, kind, fate, receipt, problem))


def verified(
    journal: Journal, facts: TableFacts, step_id: str, version: int | None, verdict: str, detail: str | None
) -> None:
    """A check after a commit."""
    name, table_id, location = named(facts)
    journal.record(
        Verified(
            journal.now_ms(),
            name,
            step_id,
            verdict,
            detail=detail,
            version=version,
            table_id=table_id,
            location=location,
        )
    )


def step_finished(journal: Journal, table: str, key: PlacedTable, outcome: StepOutcome) -> None:
    """A step's end."""
    journal.record(StepFinished(journal.now_ms(), table, 1, outcome, *key))


def table_finished(journal: Journal, outcome: TableOutcome, key: PlacedTable | None = None) -> None:
    """A table's end."""
    journal.record(ended(outcome, journal.now_ms(), key))


def listed(journal: Journal, table: str, table_id: str, location: str, at_ms: int) -> None:
    """A table's folder was listed."""
    journal.record(Listed(journal.now_ms(), table, table_id, location, at_ms))


def unfinished(runs_dir: Path, *, except_run: str | None = None) -> tuple[Intent, ...]:
    """What runs that are over tried without saying how it ended."""
    return remembered(runs_dir, except_run=except_run).open_intents


def unfinished_writings(runs_dir: Path) -> tuple[Writing, ...]:
    """What they wrote and never tried to commit."""
    return remembered(runs_dir).writings
