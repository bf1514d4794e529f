"""Collect what ``status`` shows of all tables: plans, past runs, and neighbours that nobody manages."""

from __future__ import annotations

from dataclasses import dataclass, replace

from maintainer.app.engine_access import OpenedEngine
from maintainer.app.ledger_access import ledger_problem
from maintainer.app.lookback.run_history import history_rows
from maintainer.app.planning.make_plan import PlanRequest, TableLook, make_plan
from maintainer.app.planning.neighbours import unmanaged_tables
from maintainer.app.project_folders import Project
from maintainer.app.selection.table_selection import SelectionOptions, narrowed
from maintainer.app.status.status_row import running_tables, status_row
from maintainer.model.plan.plan import Problem
from maintainer.model.run.auto_compaction import SESSION_ENABLED
from maintainer.model.run.history_rows import HistoryRow, StatusRow
from maintainer.policy.resolve.resolved import ResolvedPolicy

MAX_PAST_STEPS = 10_000
_NO_POLICY = "no policy names it, nothing is done to it: maintainer inventory"


@dataclass(frozen=True, slots=True)
class StatusLook:
    """What one look found: rows sorted by table, when, unreadable runs, and what is wrong with the ledger."""

    at_ms: int
    rows: tuple[StatusRow, ...]
    unread: tuple[str, ...]
    ledger: Problem | None = None


def look_at_all(
    project: Project,
    opened: OpenedEngine,
    policies: tuple[ResolvedPolicy, ...],
    chosen: SelectionOptions,
    *,
    at_ms: int,
    jobs: int,
    scheduled: bool = False,
) -> StatusLook:
    """Look at the tables of some policies as they are now. Nothing is changed.

    Args:
        project: The project; without a selection, tables beside its own are named, too.
        opened: The engine.
        policies: Tables to look at.
        chosen: The selection that they come from.
        at_ms: Now, milliseconds since 1970 UTC.
        jobs: Tables looked at side by side.
        scheduled: Only tables that a run is working on, or whose files the next apply would rewrite.

    Raises:
        MaintainerError: The engine, or the folder of runs, cannot be used.
    """
    past: dict[str, list[HistoryRow]] = {}
    steps, unread = history_rows(project.runs_dir, limit=MAX_PAST_STEPS)
    for step in steps:
        past.setdefault(step.table, []).append(step)
    rows: list[StatusRow] = []
    in_session = opened.session_setting(SESSION_ENABLED)
    running = running_tables(project.runs_dir, at_ms)

    def look_at(look: TableLook) -> None:
        table = look.policy.table.identifier
        rows.append(status_row(look, past.get(table, []), in_session, running.get(table)))

    plan = make_plan(project, opened.engine, PlanRequest(policies, at_ms, jobs=jobs, on_table=look_at))
    names = {str(table.ref) for table in narrowed(plan, project.loaded, chosen, command="status").tables}
    rows = [row for row in rows if row.table in names and (row.scheduled or row.running or not scheduled)]
    problem = ledger_problem(project, opened.ledger_at(project.ledger_location))
    if problem is not None:  # a plan reads the log alone, and may not have noticed
        rows = [replace(row, state="problem", next=problem.help) if row.is_ledger else row for row in rows]
    if not chosen.given and not scheduled:
        rows += (StatusRow(ref.identifier, "unmanaged", next=_NO_POLICY) for ref in unmanaged_tables(project))
    return StatusLook(at_ms, tuple(sorted(rows, key=lambda row: row.table)), tuple(unread), problem)
