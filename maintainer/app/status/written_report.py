"""Write the report that was asked for: of a run, of all runs, or where nothing ran, of the tables as they are."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from maintainer.app.lookback.report_files import write_fleet_report, write_run_report, write_tables_report
from maintainer.app.lookback.report_pages import NothingRan
from maintainer.app.project_folders import Project
from maintainer.app.selection.chosen_tables import opened_tables
from maintainer.app.selection.run_spec import RunSpec
from maintainer.app.status.status_look import look_at_all


def write_report(
    project: Project, spec: RunSpec, *, run_id: str | None = None, since_ms: int | None = None, out: Path | None = None
) -> tuple[Path, tuple[str, ...]]:
    """Write the report of a run; or of all runs; or, where nothing ran, of the tables as they are.

    Args:
        project: The project.
        spec: The engine, for tables that nothing ran on.
        run_id: The run; None with no ``since_ms`` is the newest.
        since_ms: All runs that started then or later, milliseconds since 1970 UTC.
        out: Where to write; None takes a place beside the runs.

    Returns:
        Where the file is, and which runs could not be read.

    Raises:
        ProjectError: E643 there is no such run; E640 the file cannot be written.
        EnvironmentUnfit: E641 the folder of runs cannot be listed; nothing ran, and the engine cannot be used.
    """
    try:
        if since_ms is not None:
            return write_fleet_report(project, since_ms, out)
        return write_run_report(project, run_id, out), ()
    except NothingRan as nothing:
        why_not = nothing.reason
    spec = replace(spec, selection=replace(spec.selection, allow_empty=True))
    with opened_tables(project, spec, "report") as (project, opened, chosen):
        now_ms = time.time_ns() // 1_000_000
        look = look_at_all(project, opened, chosen, spec, at_ms=now_ms)
    unread = tuple(problem.what for table, problem in look.problems if table is None)
    return write_tables_report(project, look.plan, look.rows, why_not, out), unread
