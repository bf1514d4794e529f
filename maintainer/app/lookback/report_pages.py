"""Make reports from run folders alone: of one run, or of the fleet over many. No Spark, no network."""

from __future__ import annotations

import os
from datetime import tzinfo
from pathlib import Path
from urllib.parse import quote

from maintainer.errors import ProjectError
from maintainer.journal.memory.past_runs import PastRun, past_runs
from maintainer.model.plan.plan import Plan
from maintainer.model.run.outcome import RunOutcome

MAX_RUNS_BEHIND = 30
"""Earlier runs that a run's curves reach back over."""


def run_page(runs_dir: Path, run_id: str | None, tz: tzinfo) -> tuple[Path, str]:
    """Draw one run.

    Args:
        runs_dir: The folder of all runs.
        run_id: Which one; the newest if None.
        tz: For times.

    Returns:
        The run's folder, and the page.

    Raises:
        ProjectError: E624 there is no such run, or it cannot be read.
        EnvironmentUnfit: E641 the folder of runs cannot be listed.
    """
    from maintainer.report.html.charts import past_of
    from maintainer.report.html.page import render_run_page
    from maintainer.report.html.run_view import run_view

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
    past = past_of([*reversed(earlier), (chosen.plan, chosen.outcome)])
    view = run_view(chosen.plan, chosen.outcome, past, tz, run_folder=str(chosen.folder))
    return chosen.folder, render_run_page(view)


def fleet_page(runs_dir: Path, tz: tzinfo, *, since_ms: int, most_runs: int, beside: Path | None = None) -> str:
    """Draw all runs since a time.

    Args:
        runs_dir: The folder of all runs.
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
    return render_fleet_page(fleet_view(list(reversed(runs)), tz, unread=unread, links=links))


def _no_run(run_id: str | None, runs_dir: Path, why: str) -> ProjectError:
    return ProjectError(
        f"no report can be made: {why}",
        code="E624",
        where=str(runs_dir / run_id) if run_id else str(runs_dir),
        help="`maintainer history` lists the runs; `maintainer apply` makes one",
    )
