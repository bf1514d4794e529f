"""Make ledger rows from a run's folder, also where the run was killed before it made them itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from maintainer.journal.ledger.ledger_rows import LedgerRow, rows_of, step_row
from maintainer.journal.memory.past_runs import RunRecord
from maintainer.model.plan.plan import Plan
from maintainer.model.run.outcome import RunOutcome

ROWS_KNOWN = "ledger_rows"
"""Type of the event that says: the rows that follow from the events so far are in the folder, or in the ledger."""

FROM_RUN_FOLDER = "run folder"
"""What ``source`` says of a row that was made from the run's folder; null in a row that its run appended."""

SETTLED = "#settled"
"""Behind the id of a step whose row was known before a later run found out what came of it."""


def recorded_rows(record: RunRecord, num_events: int | None = None) -> tuple[LedgerRow, ...]:
    """Return the rows that a run's folder tells of, marked as such.

    What was found out after the rows were known for the first time is a row of its own: the row before it is in the
    ledger, and stays as it is.

    Args:
        record: The run's folder.
        num_events: Only what the first so many events tell; None: all of them.
    """
    events = record.events[:num_events]
    first = next((number for number, event in enumerate(events) if event["type"] == ROWS_KNOWN), None)
    outcome = record.outcome(num_events)
    rows = rows_of(record.plan, outcome)
    if first is not None:
        first_outcome = record.outcome(first)
        rows = (*rows_of(record.plan, first_outcome), *_settled_rows(record.plan, first_outcome, outcome))
    return tuple(replace(row, source=FROM_RUN_FOLDER) for row in rows)


def missing_rows(record: RunRecord) -> tuple[LedgerRow, ...]:
    """Return the rows of a run that are in no ledger and wait in no folder, as far as its record says."""
    last = max((number for number, event in enumerate(record.events) if event["type"] == ROWS_KNOWN), default=None)
    step_ids = frozenset[str]() if last is None else {row.step_id for row in recorded_rows(record, last + 1)}
    return tuple(row for row in recorded_rows(record) if row.step_id not in step_ids)


def _settled_rows(plan: Plan, first_outcome: RunOutcome, outcome: RunOutcome) -> Iterator[LedgerRow]:
    """Rows of commits and deletions that a later run found out about."""
    before = {step.step_id: step for table in first_outcome.tables for step in table.steps}
    for table in outcome.tables:
        for step in table.steps:
            old = before.get(step.step_id)
            versions = {receipt.version for receipt in old.commits} if old else set()
            commits = tuple(commit for commit in step.commits if commit.version not in versions)
            vacuum = None if old is not None and old.vacuum == step.vacuum else step.vacuum
            if old is None or commits or vacuum is not None:
                row = step_row(plan, outcome, table, replace(step, commits=commits, vacuum=vacuum, turns=()))
                if row is not None:
                    yield row if old is None else replace(row, step_id=f"{step.step_id}{SETTLED}")
