"""Reports of one run, of all runs and of a run that goes on, as HTML, from run folders alone.

Neither Spark nor a network is needed. `report_files` writes them, `served_pages` has them by
their paths.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING

from maintainer.app.lookback.run_history import HistoryQuery, history_row, notes_of, recorded_rows, rows_in_documents
from maintainer.app.project_folders import Project
from maintainer.app.running.verify_commits import VERIFICATION_FILE
from maintainer.app.selection.managed_search import with_recorded_tables
from maintainer.app.selection.recorded_tables import RecordedTable, TableIndex
from maintainer.errors import MaintainerError, ProjectError
from maintainer.journal.event_log import EVENTS_FILE, is_alive, last_event
from maintainer.journal.folder.atomic_files import reading_runs
from maintainer.journal.folder.run_folder import PLAN_FILE, RESULTS_FILE, run_folders
from maintainer.journal.memory.past_runs import PastRun, past_runs, read_record
from maintainer.journal.memory.table_records import remembered
from maintainer.model.plan.plan import Plan
from maintainer.model.run.history_rows import HistoryRow, StatusRow
from maintainer.model.run.outcome import RunOutcome
from maintainer.model.run.progress import PlacedTable
from maintainer.report.html.page import ON_DISK, Served, render_page

if TYPE_CHECKING:
    from maintainer.report.html.run_view import ReportProject
    from maintainer.report.html.table_past import TableKey

MAX_STEPS_READ, MAX_STEPS_SHOWN = 100_000, 100
"""Steps that pages of tables look through, and those that one shows, the newest."""

MAX_FLEET_RUNS = 400
"""Runs that the report of the fleet looks back on."""
MAX_RUNS_BEHIND = 30
"""Earlier runs that a run's curves reach back over."""


class NoReport(ProjectError):
    """Of this run, or of any, no report can be made."""

    default_code = "E643"

    def __init__(self, what: str, where: Path) -> None:
        help = "`maintainer history` lists the runs; `maintainer apply` makes one"
        super().__init__(f"no report can be made: {what}", where=str(where), help=help)


class NothingRan(NoReport):
    """No run can be reported because none was made; `state_page` is what there is to say then."""

    def __init__(self, what: str, runs_dir: Path) -> None:
        super().__init__(what, runs_dir)
        self.reason = what


def run_page(
    project: Project, run_id: str | None, tz: tzinfo, *, served: Served = ON_DISK, known: PastRun | None = None
) -> tuple[Path, str]:
    """Draw one run.

    Args:
        project: The project, for its runs, its name and its prices.
        run_id: Which one; the newest if None.
        tz: For times.
        served: What the page has beside its figures where it is served.
        known: The run, where it was carried out by this process; None reads it.

    Returns:
        The run's folder, and the page.

    Raises:
        NothingRan: None was named, and there is none.
        ProjectError: E643 there is no such run, or it cannot be read.
        EnvironmentUnfit: E641 the folder of runs cannot be listed.
    """
    from maintainer.report.html.run_view import run_view
    from maintainer.report.html.table_past import past_of

    # Right after a run its own folder is here: a machine that comes and goes need not fetch years for the trends.
    is_here = run_id is not None and (project.runs_dir / run_id / RESULTS_FILE).is_file()
    runs_dir = project.runs_dir if is_here else project.past_runs_dir
    chosen: PastRun | None = None
    earlier: list[tuple[Plan, RunOutcome]] = []
    for run in past_runs(runs_dir, known):
        if isinstance(run, tuple):
            if chosen is None and run_id in (None, run[0].name):
                raise NoReport(f"it cannot be read: {run[1]}", runs_dir / (run_id or ""))
        elif chosen is None:
            if run_id in (None, run.folder.name):
                chosen = run
        elif len(earlier) < MAX_RUNS_BEHIND:
            earlier.append((run.plan, run.outcome))
    if chosen is None:
        if not run_id:
            raise NothingRan("no apply ran yet", runs_dir)
        is_there = (runs_dir / Path(run_id).name).is_dir()
        why = f"this run has no plan and no results: `maintainer show {run_id}` shows it"
        raise NoReport(why if is_there else "there is no such run", runs_dir / run_id)
    runs = [(chosen.plan, chosen.outcome), *earlier]
    past = past_of(runs[::-1], _key_of(TableIndex(plan for plan, _ in runs)))
    about, _ = _about(project, runs_dir, [chosen.plan])
    view = run_view(chosen.plan, chosen.outcome, past, tz, run_folder=str(chosen.folder), project=about)
    return chosen.folder, render_page(view, served)


@dataclass(frozen=True, slots=True)
class FleetRuns:
    """The runs of a time, newest first, as pages of all tables and of each one are drawn from them.

    ``unread`` are those that could not be read, ``about`` is what the pages need to know beside the runs.
    """

    project: Project
    runs: tuple[PastRun, ...]
    unread: tuple[str, ...]
    about: ReportProject

    @property
    def pairs(self) -> list[tuple[Plan, RunOutcome]]:
        """Plan and outcome of each run, the oldest first."""
        return [(run.plan, run.outcome) for run in reversed(self.runs)]


def fleet_runs(project: Project, since_ms: int) -> FleetRuns:
    """Read all runs since a time, milliseconds since 1970 UTC: the newest, at most ``MAX_FLEET_RUNS``.

    Raises:
        NothingRan: No run of this time has a plan and results.
        ProjectError: E643 none of them can be read.
        EnvironmentUnfit: E641 the folder of runs cannot be listed.
    """
    runs_dir = project.past_runs_dir
    runs: list[PastRun] = []
    unread: list[str] = []
    for run in past_runs(runs_dir, since_ms=lambda: since_ms):
        if isinstance(run, tuple):
            unread.append(f"{run[0].name}: {run[1]}")
        elif len(runs) >= MAX_FLEET_RUNS:
            break
        elif run.outcome.started_at_ms >= since_ms:  # one that planned for long may have begun before one that ended
            runs.append(run)
    if not runs and unread:
        raise NoReport(f"no run of this time can be read: {unread[0]}", runs_dir)
    if not runs:
        raise NothingRan("no apply ran in this time", runs_dir)
    about, unread_checks = _about(project, runs_dir, [run.plan for run in runs], since_ms)
    return FleetRuns(project, tuple(runs), (*unread, *unread_checks), about)


def fleet_page(fleet: FleetRuns, tz: tzinfo, links: Mapping[str, str], served: Served = ON_DISK) -> str:
    """Draw all runs.

    Args:
        fleet: The runs.
        tz: For times.
        links: Where the page of a run (by its id) or of a table (by its name) is.
        served: What the page has beside its figures where it is served.
    """
    from maintainer.report.html.fleet_view import fleet_view

    key_of = _key_of(TableIndex(run.plan for run in fleet.runs))
    view = fleet_view(fleet.pairs, tz, unread=fleet.unread, links=links, key_of=key_of, project=fleet.about)
    return render_page(view, served)


def page_names(fleet: FleetRuns) -> dict[str, str]:
    """Return the names of the pages of tables, by the tables' own: short, and safe in a folder and an address."""
    names = dict.fromkeys(table.ref.identifier for run in fleet.runs for table in run.plan.tables)
    short = {name: re.sub(r"[^A-Za-z0-9_-]+", "-", name)[-60:] for name in names}
    return {name: f"{short[name]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}" for name in names}


def table_pages(fleet: FleetRuns, tz: tzinfo, names: Container[str], served: Served) -> Iterator[tuple[str, str]]:
    """Draw tables of these names: yield name and page of each.

    Args:
        fleet: The runs.
        tz: For times.
        names: Which tables.
        served: As for the page of all runs.
    """
    from maintainer.report.html.fleet_view import fleet_tables
    from maintainer.report.html.table_pages import KnownTable, table_page

    plans = [run.plan for run in reversed(fleet.runs)]
    newest = {table.ref.identifier: (table, plan.created_at_ms) for plan in plans for table in plan.tables}
    project = with_recorded_tables(fleet.project, (table.ref for table, _ in newest.values()))
    index = TableIndex(run.plan for run in fleet.runs)
    steps: dict[object, list[HistoryRow]] = {}
    notes: dict[tuple[str, str], str] = {}
    every_step = HistoryQuery(limit=MAX_STEPS_READ)
    rows, _ = recorded_rows(project.past_runs_dir, every_step, on_run=lambda run: notes.update(notes_of([run])))
    for row in rows:
        steps.setdefault(index.key_of(RecordedTable.of_row(row, project.root)), []).append(history_row(row, notes))
    for table in fleet_tables(fleet.pairs, tz, _key_of(index), fleet.about.quarantined):
        if table.name not in names or table.name not in newest:
            continue
        policy = None
        with suppress(MaintainerError):
            policy = project.loaded.resolution_of(table.name)
        planned, at_ms = newest[table.name]
        key = index.key_of(RecordedTable.of_plan(planned))
        own = [] if key is None else steps.get(key, [])[:MAX_STEPS_SHOWN]
        page = table_page(KnownTable(table, planned, at_ms, own, policy), tz)
        yield table.name, render_page(page, served)


def tables_page(project: Project, plan: Plan, rows: Sequence[StatusRow], why: str, tz: tzinfo) -> str:
    """Draw the tables as they are, and what a run would do, where no run can be reported.

    Args:
        project: The project, for its name and what `verify` recorded.
        plan: What a run would do now.
        rows: The tables as `status` sees them.
        why: Why no run is reported.
        tz: For times.
    """
    from maintainer.report.html.table_pages import state_page

    about, _ = _about(project, project.past_runs_dir, [plan])
    return render_page(state_page(about, why, plan, rows, tz))


def _quarantined(runs_dir: Path, plans: Sequence[Plan]) -> dict[str, str]:
    """Return why tables are in quarantine now, by identifier, by what runs recorded. ``plans`` are the newest first."""
    with reading_runs(runs_dir):
        records = remembered(runs_dir)
    keys: dict[str, PlacedTable] = dict(records.keys)
    for plan in reversed(plans):
        seen = ((table.ref.identifier, table.observed) for table in plan.tables)
        keys |= {name: (observed.table_id, observed.location) for name, observed in seen if observed is not None}
    reasons = {name: records.quarantine_of(key) for name, key in keys.items()}
    return {name: reason for name, reason in reasons.items() if reason is not None}


def _about(
    project: Project, runs_dir: Path, plans: Sequence[Plan], since_ms: int = 0
) -> tuple[ReportProject, list[str]]:
    """Return what a page of plans (the newest first) needs to know beside them, and what cannot be read.

    What `verify` found is that since a time.
    """
    from maintainer.report.html.run_view import ReportProject

    index = TableIndex(plans)
    found: list[HistoryRow] = []
    unread: list[str] = []
    for row in rows_in_documents(runs_dir, VERIFICATION_FILE):
        if isinstance(row, tuple):
            unread.append(f"{row[0].parent.name}: {row[1]}")
        elif row.started_at_ms >= since_ms and index.key_of(RecordedTable.of_row(row, project.root)) is not None:
            found.append(history_row(row))
    settings = project.loaded.project
    return ReportProject(settings.name, settings.prices, _quarantined(runs_dir, plans), found), unread


def _key_of(index: TableIndex) -> TableKey:
    """Return what tells tables apart in the plans of an index."""
    return lambda table: index.key_of(RecordedTable.of_plan(table))


def running_folder(project: Project) -> Path | None:
    """Return the folder of the newest run where it still goes on, else None.

    Raises:
        EnvironmentUnfit: E641 the folder of runs cannot be listed.
    """
    with reading_runs(project.runs_dir):
        folders = run_folders(project.runs_dir)
        if not folders:
            return None
        path = folders[-1].path / EVENTS_FILE
        last = last_event(path)
    over = last is None or last["type"] == "run_finished" or not is_alive(path)
    return None if over else folders[-1].path


def live_page(project: Project, folder: Path, tz: tzinfo, *, now_ms: int, served: Served) -> str | None:
    """Draw what a run is doing now; None while it is still planned, or starts.

    Raises:
        MaintainerError: Its plan is damaged.
        EnvironmentUnfit: E641 its record cannot be read.
    """
    from maintainer.report.html.live_view import live_view

    with reading_runs(project.runs_dir):
        if not (folder / PLAN_FILE).is_file():
            return None
        run = read_record(folder)
    name = project.loaded.project.name
    return render_page(live_view(name, folder.name, run.plan, run.fold, tz, now_ms=now_ms), served)
