"""What past runs did, from run folders alone: their steps, and tables in trouble again and again.

Neither Spark nor a network is needed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

from maintainer.app.running.restore_files import past_undeletes
from maintainer.app.running.verify_commits import past_verifications
from maintainer.app.selection.recorded_tables import CurrentTable, RecordedTable
from maintainer.delta.log.table_place import StoragePlaces
from maintainer.journal.ledger.ledger_rows import LedgerRow, rows_of
from maintainer.journal.memory.past_runs import MAX_RUNS_READ, past_runs
from maintainer.journal.memory.table_records import remembered
from maintainer.model.plan.plan import Problem
from maintainer.model.run.history_rows import HistoryRow
from maintainer.model.run.outcome import RunOutcome
from maintainer.report.text_layout import UTC, when
from maintainer.units import count_of

NAMED_AFTER_RUNS = 3
MAX_NAMED = 50
CODE = "C717"
UNREAD_CODE = "E643"
_FAILED_HELP = "`maintainer history --failed` shows why; `suspend:` keeps a table out until it is fixed"
_LOST_HELP = "give the table a `window:`, `quietFor:` or `skipNewestPartitions:`"
HOT_HELP = (
    "run it when its writers rest (`window:`), or partition it and name the partition in their predicates: "
    "`optimize.where:` and `skipNewestPartitions:` leave theirs out"
)


def in_a_row(runs_dir: Path, outcome: RunOutcome) -> list[Problem]:
    """Return what to say about those tables of a run that failed, lost to other writers or were hot in three runs.

    Called when the run is over. At most fifty tables are named one by one.

    Raises:
        OSError: The runs cannot be read.
    """
    records, places = remembered(runs_dir), StoragePlaces()
    problems: list[Problem] = []
    for table in outcome.tables:
        name = table.ref.identifier
        streak = records.streak_of(name, places)
        for number, since_ms, what, help_text in (
            (streak.failed, streak.failing_since_ms, "failed in {}", _FAILED_HELP),
            (streak.lost, None, "another writer won in {}", _LOST_HELP),
            (streak.hot, streak.hot_since_ms, "waiting: hot in {}", HOT_HELP),
        ):
            if number >= NAMED_AFTER_RUNS:
                said = what.format(f"{count_of(number, 'run')} in a row")
                since = "" if since_ms is None else f", since {when(since_ms, UTC)}"
                problems.append(Problem(CODE, f"{said}{since}", name, help_text))
    if len(problems) > MAX_NAMED:
        num_more = len(problems) - MAX_NAMED
        help_text = "`maintainer history --failed` shows them all"
        problems[MAX_NAMED:] = [
            Problem(CODE, f"{num_more:,} more that are in trouble for runs in a row", help=help_text)
        ]
    return problems


OfTable = Callable[[LedgerRow], bool]
"""Tells whether a row is of the table that is asked about."""


def rows_of_table(table: CurrentTable | None, root: Path) -> OfTable:
    """Return what chooses the rows of a table of the project at a folder; None chooses all rows."""
    if table is None:
        return lambda _row: True
    return lambda row: table.was(RecordedTable.of_row(row, root))


def recorded_rows(
    runs_dir: Path,
    *,
    of_table: OfTable = lambda _row: True,
    since_ms: int | None = None,
    failed: bool = False,
    limit: int = 200,
) -> tuple[list[LedgerRow], list[Problem]]:
    """Return the steps of past runs, newest first, and what could not be read.

    Args:
        runs_dir: The folder of all runs.
        of_table: Which rows are meant.
        since_ms: Only steps that started then or later.
        failed: Only steps that did not succeed.
        limit: At most so many rows.

    Raises:
        EnvironmentUnfit: E641, the folder of runs cannot be listed.
    """
    rows: list[LedgerRow] = []
    unread: list[Problem] = []
    for run in past_runs(runs_dir):
        if isinstance(run, tuple):
            unread.append(_unread(*run))
            continue
        ended_at_ms = run.outcome.started_at_ms + int(run.outcome.duration_seconds * 1000)
        if since_ms is not None and ended_at_ms < since_ms:
            break
        steps = [row for row in rows_of(run.plan, run.outcome) if of_table(row)]
        for row in reversed(steps):
            good = row.status in ("succeeded", "nothing_left")
            if (since_ms is None or row.started_at_ms >= since_ms) and not (failed and good):
                rows.append(row)
        if len(rows) >= limit:
            break
    # Runs without a plan.
    for row_or_unread in itertools.chain(
        past_undeletes(runs_dir, most=MAX_RUNS_READ), past_verifications(runs_dir, most=MAX_RUNS_READ)
    ):
        if isinstance(row_or_unread, tuple):
            unread.append(_unread(*row_or_unread))
        elif (
            of_table(row_or_unread)
            and (since_ms is None or row_or_unread.started_at_ms >= since_ms)
            and not (failed and row_or_unread.status == "succeeded")
        ):
            rows.append(row_or_unread)
    # Run ids begin with their time; within a run the order stays.
    rows.sort(key=lambda row: row.run_id, reverse=True)
    return rows[:limit], unread


def _unread(folder: Path, why: str) -> Problem:
    help = "its steps are missing here; restore the folder, or move it away if they are not needed"
    return Problem(UNREAD_CODE, f"a run could not be read: {folder}: {why}", str(folder), help)


def history_row(row: LedgerRow) -> HistoryRow:
    """Return a row of the ledger as `history` shows it."""
    same = {name: getattr(row, name) for name in _SAME}
    proof = None if row.proof_result == "none" else row.proof_result
    return HistoryRow(at_ms=row.started_at_ms, step=row.kind, proof=proof, **same)


_SAME = {field.name for field in fields(HistoryRow)} & {field.name for field in fields(LedgerRow)}
"""What a row of the history and one of the ledger call by one name."""
