"""Write the report of one run, or of the whole fleet, as one HTML file that needs no network."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from maintainer.app.lookback.report_pages import fleet_page, run_page
from maintainer.app.project_folders import Project, local_zone
from maintainer.journal.folder.atomic_files import write_atomically, writing

MAX_FLEET_RUNS = 400
"""Runs that the report of the fleet looks back on, the newest."""


def write_run_report(project: Project, run_id: str | None, out: Path | None = None) -> Path:
    """Write the report of a run, into its folder or to ``out``, and return where it is.

    Args:
        project: The project.
        run_id: Which run; the newest if None.
        out: Where to write; None takes ``report.html`` in the run's folder.

    Raises:
        ProjectError: E624 there is no such run; E640 the file cannot be written.
        EnvironmentUnfit: E641 the folder of runs cannot be listed.
    """
    folder, page = run_page(project, Path(run_id).name if run_id else None, local_zone())
    return _written(out or folder / "report.html", page)


def write_fleet_report(project: Project, since_ms: int, out: Path | None = None) -> Path:
    """Write the report of all runs since a time, and return where it is.

    Args:
        project: The project.
        since_ms: Runs that started before are left out, milliseconds since 1970 UTC.
        out: Where to write; None takes ``fleet.html`` beside the folder of runs.

    Raises:
        ProjectError: E624 there is no run; E640 the file cannot be written.
        EnvironmentUnfit: E641 the folder of runs cannot be listed.
    """
    path = out or project.past_runs_dir.parent / "fleet.html"
    beside = path.parent.absolute()

    def link_of(folder: Path) -> str | None:
        report = folder / "report.html"
        return quote(Path(os.path.relpath(report, beside)).as_posix()) if report.is_file() else None

    page = fleet_page(project, local_zone(), since_ms=since_ms, most_runs=MAX_FLEET_RUNS, link_of=link_of)
    return _written(path, page)


def _written(path: Path, page: str) -> Path:
    with writing(path, "the report"):
        write_atomically(path, page.encode("utf-8", "replace"))
    return path
