"""What past runs did, from run folders alone: their steps, reports as HTML, and tables in trouble again and again.

Neither Spark nor a network is needed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import datetime, timezone, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from maintainer.app.project_folders import Project
from maintainer.app.running.restore_files import past_undeletes
from maintainer.app.selection.recorded_tables import CurrentTable, RecordedTable, TableIndex
from maintainer.delta.log.table_place import StoragePlaces
from maintainer.errors import ProjectError
from maintainer.journal.ledger.ledger_rows import LedgerRow, rows_of
from maintainer.journal.memory.past_runs import MAX_RUNS_READ, PastRun, past_runs
from maintainer.journal.memory.table_records import remembered
from maintainer.model.plan.plan import Plan, Problem
from maintainer.model.run.history_rows import HistoryRow
from maintainer.model.run.outcome import RunOutcome
from maintainer.units import count_of

if TYPE_CHECKING:
    from maintainer.report.html.run_view import ReportProject
    from maintainer.report.html.table_past import TableKey

NAMED_AFTER_RUNS = 3
MAX_NAMED = 50
CODE = "C717"
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
        if streak.failed >= NAMED_AFTER_RUNS:
            since = datetime.fromtimestamp((streak.failing_since_ms or 0) / 1000, tz=timezone.utc)
            what = f"failed in {count_of(streak.failed, 'run')} in a row, since {since:%Y-%m-%d %H:%M} UTC"
            help_text = "`maintainer history --failed` shows why; `suspend:` keeps a table out until it is fixed"
            problems.append(Problem(CODE, what, name, help_text))
        if streak.lost >= NAMED_AFTER_RUNS:
            what = f"another writer won in {count_of(streak.lost, 'run')} in a row"
            problems.append(
                Problem(CODE, what, name, "give the table a `window:`, `quietFor:` or `skipNewestPartitions:`")
            )
        if streak.hot >= NAMED_AFTER_RUNS:
            since = datetime.fromtimestamp((streak.hot_since_ms or 0) / 1000, tz=timezone.utc)
            what = f"waiting: hot in {count_of(streak.hot, 'run')} in a row, since {since:%Y-%m-%d %H:%M} UTC"
            problems.append(Problem(CODE, what, name, HOT_HELP))
    if len(problems) > MAX_NAMED:
        num_more = len(problems) - MAX_NAMED
        help_text = "`maintainer history --failed` shows them all"
        problems[MAX_NAMED:] = [
            Problem(CODE, f"{num_more:,} more that are in trouble for runs in a row", help=help_text)
        ]
    return problems


MAX_RUNS_BEHIND = 30
"""Earlier runs that a run's curves reach back over."""


def run_page(project: Project, run_id: str | None, tz: tzinfo) -> tuple[Path, str]:
    """Draw one run.

    Args:
        project: The project, for its runs, its name and its prices.
        run_id: Which one; the newest if None.
        tz: For times.

    Returns:
        The run's folder, and the page.

    Raises:
        ProjectError: E624 there is no such run, or it cannot be read.
        EnvironmentUnfit: E641 the folder of runs cannot be listed.
    """
    from maintainer.report.html.page import render_run_page
    from maintainer.report.html.run_view import run_view
    from maintainer.report.html.table_past import past_of

    runs_dir = project.runs_dir
    chosen: PastRun | None = None
    earlier: list[tuple[Plan, RunOutcome]] = []
    for run in past_runs(runs_dir):
        if isinstance(run, tuple):
            if chosen is None and run_id in (None, run[0].name):
                raise _no_run(run_id, runs_dir, f"it cannot be read: {run[1]}")
        elif chosen is None:
            if run_id in (None, run.folder.name):
                chosen = run
        elif len(earlier) < MAX_RUNS_BEHIND:
            earlier.append((run.plan, run.outcome))
    if chosen is None:
        raise _no_run(run_id, runs_dir, "there is no such run" if run_id else "there is no run yet")
    runs = [(chosen.plan, chosen.outcome), *earlier]
    past = past_of(runs[::-1], _key_of(runs))
    about = _about(project)
    view = run_view(chosen.plan, chosen.outcome, past, tz, run_folder=str(chosen.folder), project=about)
    return chosen.folder, render_run_page(view)


def _about(project: Project) -> ReportProject:
    from maintainer.report.html.run_view import ReportProject

    return ReportProject(project.loaded.project.name, project.loaded.project.prices)


def fleet_page(project: Project, tz: tzinfo, *, since_ms: int, most_runs: int, beside: Path | None = None) -> str:
    """Draw all runs since a time.

    Args:
        project: The project, for its runs, its name and its prices.
        tz: For times.
        since_ms: Runs that started before are left out.
        most_runs: At most so many, the newest.
        beside: The folder that the page will lie in, for links to the reports of single runs; None leaves them out.

    Raises:
        ProjectError: E624 there is no run.
        EnvironmentUnfit: E641 the folder of runs cannot be listed.
    """
    from maintainer.report.html.fleet_view import fleet_view
    from maintainer.report.html.page import render_fleet_page

    runs_dir = project.runs_dir
    runs: list[tuple[Plan, RunOutcome]] = []
    unread: list[str] = []
    links: dict[str, str] = {}
    for run in past_runs(runs_dir):
        if isinstance(run, tuple):
            unread.append(f"{run[0].name}: {run[1]}")
        elif run.outcome.started_at_ms < since_ms or len(runs) >= most_runs:
            break
        else:
            runs.append((run.plan, run.outcome))
            report = run.folder / "report.html"
            if beside is not None and report.is_file():
                links[run.outcome.run_id] = quote(Path(os.path.relpath(report, beside)).as_posix())
    if not runs:
        raise _no_run(None, runs_dir, "there is no run in this time")
    view = fleet_view(runs[::-1], tz, unread=unread, links=links, key_of=_key_of(runs), project=_about(project))
    return render_fleet_page(view)


def _key_of(runs: Sequence[tuple[Plan, RunOutcome]]) -> TableKey:
    """Return what tells tables apart in the plans of runs, the newest first: see `TableIndex`."""
    index = TableIndex(plan for plan, _ in runs)
    return lambda table: index.key_of(RecordedTable.of_plan(table))


def _no_run(run_id: str | None, runs_dir: Path, why: str) -> ProjectError:
    return ProjectError(
        f"no report can be made: {why}",
        code="E624",
        where=str(runs_dir / run_id) if run_id else str(runs_dir),
        help="`maintainer history` lists the runs; `maintainer apply` makes one",
    )


OfTable = Callable[[LedgerRow], bool]
"""Tells whether a row is of the table that is asked about."""


def rows_of_table(table: CurrentTable | None, root: Path) -> OfTable:
    """Return what chooses the rows of a table of the project at a folder; None chooses all rows."""
    if table is None:
        return lambda _row: True
    return lambda row: table.was(RecordedTable.of_row(row, root))


def history_rows(
    runs_dir: Path,
    *,
    of_table: OfTable = lambda _row: True,
    since_ms: int | None = None,
    failed: bool = False,
    limit: int = 200,
) -> tuple[list[HistoryRow], list[str]]:
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
    rows: list[HistoryRow] = []
    unread: list[str] = []
    for run in past_runs(runs_dir):
        if isinstance(run, tuple):
            unread.append(f"{run[0]}: {run[1]}")
            continue
        ended_at_ms = run.outcome.started_at_ms + int(run.outcome.duration_seconds * 1000)
        if since_ms is not None and ended_at_ms < since_ms:
            break
        steps = [row for row in rows_of(run.plan, run.outcome) if of_table(row)]
        for row in reversed(steps):
            good = row.status in ("succeeded", "nothing_left")
            if (since_ms is None or row.started_at_ms >= since_ms) and not (failed and good):
                rows.append(history_row(row))
        if len(rows) >= limit:
            break
    for past_undelete in past_undeletes(runs_dir, most=MAX_RUNS_READ):
        if isinstance(past_undelete, tuple):
            unread.append(f"{past_undelete[0]}: {past_undelete[1]}")
        elif (
            of_table(past_undelete)
            and (since_ms is None or past_undelete.started_at_ms >= since_ms)
            and not (failed and past_undelete.status == "succeeded")
        ):
            rows.append(history_row(past_undelete))
    # Run ids begin with their time; within a run the order stays.
    rows.sort(key=lambda row: row.run_id or "", reverse=True)
    return rows[:limit], unread


def history_row(row: LedgerRow) -> HistoryRow:
    """Return a row of the ledger as `history` shows it."""
    return HistoryRow(
        at_ms=row.started_at_ms,
        table=row.table,
        step=row.kind,
        status=row.status,
        run_id=row.run_id,
        version_before=row.version_before,
        version_after=row.version_after,
        num_files_removed=row.num_files_removed,
        num_files_added=row.num_files_added,
        bytes_removed=row.bytes_removed,
        bytes_added=row.bytes_added,
        duration_seconds=row.duration_seconds,
        proof=None if row.proof_result == "none" else row.proof_result,
        reason=row.reason,
        error_code=row.error_code,
        error=row.error,
        policy_file=row.policy_file,
        git_commit=row.git_commit,
    )
