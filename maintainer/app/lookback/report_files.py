"""Write what people read of a run beside its results, and the report of the whole fleet: files that need no network."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from maintainer.app.lookback.report_pages import (
    fleet_page,
    fleet_runs,
    page_names,
    run_page,
    table_pages,
    tables_page,
)
from maintainer.app.project_folders import Project, local_zone
from maintainer.errors import MaintainerError
from maintainer.journal.folder.atomic_files import PRIVATE_FOLDER, write_atomically, writing
from maintainer.journal.memory.past_runs import PastRun
from maintainer.model.plan.plan import Plan, Problem
from maintainer.model.run.history_rows import StatusRow
from maintainer.report.html.page import Served
from maintainer.report.run.run_findings import render_junit


def write_run_pages(project: Project, run: PastRun) -> Iterator[Problem]:
    """Write ``junit.xml`` and ``report.html`` into a run's folder, and yield what could not be written.

    The run is over and its results are written: a file that is missing beside them (E651) does not make it fail.

    Args:
        project: The project.
        run: What was carried out, and what came of it.
    """
    folder = run.folder
    drawings: Mapping[str, Callable[[], str]] = {
        "junit.xml": lambda: render_junit(run.outcome),
        "report.html": lambda: run_page(project, run.outcome.run_id, local_zone(), known=run)[1],
    }
    for name, draw in drawings.items():
        try:
            write_atomically(folder / name, draw().encode("utf-8", "replace"))
        except (OSError, MaintainerError) as error:
            reason = error.what if isinstance(error, MaintainerError) else error.strerror or str(error)
            what = f"{name} could not be written: {reason}"
            yield Problem("E651", what, str(folder / name), "results.json beside it holds the same outcomes")


def write_run_report(project: Project, run_id: str | None, out: Path | None = None) -> Path:
    """Write the report of a run, into its folder or to ``out``, and return where it is.

    Args:
        project: The project.
        run_id: Which run; the newest if None.
        out: Where to write; None takes ``report.html`` in the run's folder.

    Raises:
        NothingRan: None was named, and there is none.
        ProjectError: E643 there is no such run; E640 the file cannot be written.
        EnvironmentUnfit: E641 the folder of runs cannot be listed.
    """
    folder, page = run_page(project, Path(run_id).name if run_id else None, local_zone())
    return _written(out or folder / "report.html", page)


def write_fleet_report(project: Project, since_ms: int, out: Path | None = None) -> tuple[Path, tuple[str, ...]]:
    """Write the report of all runs since a time, and a page of each table into a folder beside it.

    Returns where it is, and which runs could not be read.

    Args:
        project: The project.
        since_ms: Runs that started before are left out, milliseconds since 1970 UTC.
        out: Where to write; None takes ``fleet.html`` beside the folder of runs.

    Raises:
        NothingRan: There is no run.
        ProjectError: E643 none can be read; E640 the file cannot be written.
        EnvironmentUnfit: E641 the folder of runs cannot be listed.
    """
    path, tz = out or _fleet_path(project), local_zone()
    fleet, folder = fleet_runs(project, since_ms), path.parent / f"{path.stem}-tables"
    pages = page_names(fleet)
    links = {name: quote(f"{folder.name}/{page}.html") for name, page in pages.items()}
    for run in fleet.runs:
        report = run.folder / "report.html"
        if report.is_file():
            relative = Path(os.path.relpath(report, path.parent.absolute())).as_posix()
            links[run.outcome.run_id] = quote(relative)
    with writing(folder, "the pages of tables"):
        folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        for name, drawn in table_pages(fleet, tz, pages, Served(home_link=quote(f"../{path.name}"))):
            write_atomically(folder / f"{pages[name]}.html", drawn.encode("utf-8", "replace"))
    return _written(path, fleet_page(fleet, tz, links)), fleet.unread


def write_tables_report(
    project: Project, plan: Plan, rows: Sequence[StatusRow], why: str, out: Path | None = None
) -> Path:
    """Write what there is to say where nothing ran, and return where it is.

    Args:
        project: The project.
        plan: What a run would do now.
        rows: The tables as `status` sees them.
        why: Why no run is reported.
        out: Where to write; None takes ``fleet.html`` beside the folder of runs.

    Raises:
        ProjectError: E640 the file cannot be written.
    """
    page, path = tables_page(project, plan, rows, why, local_zone()), out or _fleet_path(project)
    if out is None:
        with writing(path, "the report"):
            path.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    return _written(path, page)


def _fleet_path(project: Project) -> Path:
    return project.past_runs_dir.parent / "fleet.html"


def _written(path: Path, page: str) -> Path:
    with writing(path, "the report"):
        write_atomically(path, page.encode("utf-8", "replace"))
    return path
