"""The pages of a project by their paths, for who serves them: all tables, one table, one run, the run that goes on now.

Every page is drawn from run folders when it is asked for, and kept until a run writes something.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Hashable
from functools import lru_cache

from maintainer.app.lookback.report_pages import (
    NoReport,
    NothingRan,
    fleet_page,
    fleet_runs,
    live_page,
    page_names,
    run_page,
    running_folder,
    table_pages,
)
from maintainer.app.project_folders import Project, local_zone
from maintainer.errors import MaintainerError
from maintainer.journal.event_log import EVENTS_FILE
from maintainer.journal.folder.run_folder import is_run_id, run_folders
from maintainer.report.html.page import Served, message_page, render_page

MAX_PAGES_KEPT = 12
LIVE_SECONDS, LOOK_SECONDS = 3, 30
"""How often a browser asks again: while a run goes on, and else."""

FOUND, NOT_FOUND, FAILED = 200, 404, 500

_LOOKS_AGAIN = "This page looks again, and shows the next run when it begins."


class ServedPages:
    """The pages of one project; on the page of all tables are runs that are not older than ``since_seconds``."""

    def __init__(self, project: Project, since_seconds: int) -> None:
        self._project = project
        self._since_seconds = since_seconds
        self._drawing = threading.Lock()
        self._kept = lru_cache(MAX_PAGES_KEPT)(lambda path, _state: self._drawn(path))

    def page_at(self, path: str) -> tuple[int, str]:
        """Return the status and the page at a path; one that was drawn before, where no run has written since."""
        with self._drawing:
            return self._kept(path, self._state())

    def _state(self) -> Hashable:
        """What changes whenever a run writes, and each few seconds while one goes on."""
        try:
            folders = run_folders(self._project.runs_dir)[-2:]
            sizes = tuple((folder.run_id, (folder.path / EVENTS_FILE).stat().st_size) for folder in folders)
            going_on = running_folder(self._project) is not None
        except (OSError, MaintainerError):
            return time.monotonic()
        return sizes, going_on and int(time.monotonic()), int(time.time() // 60)

    def _drawn(self, path: str) -> tuple[int, str]:
        try:
            return self._drawn_of(path)
        except NothingRan as nothing:
            status, heading = FOUND, f"{nothing.reason[:1].upper()}{nothing.reason[1:]}"
            said = ["`maintainer report` shows the tables as they are, and what a run would do.", _LOOKS_AGAIN]
        except MaintainerError as error:
            status, heading = NOT_FOUND if isinstance(error, NoReport) else FAILED, f"{error.code}: no page"
            said = [error.what, *([error.help] if error.help else [])]
        return status, render_page(message_page(heading, said), Served("/", "", LOOK_SECONDS))

    def _drawn_of(self, path: str) -> tuple[int, str]:
        running, tz, now_ms = running_folder(self._project), local_zone(), time.time_ns() // 1_000_000
        served = Served("" if path == "/" else "/", "/live" if running else "", LOOK_SECONDS)
        if path == "/" or path.startswith("/table/"):
            fleet = fleet_runs(self._project, now_ms - self._since_seconds * 1000)
            pages = page_names(fleet)
            if path == "/":
                links = {name: f"/table/{page}" for name, page in pages.items()}
                links |= {run.outcome.run_id: f"/run/{run.folder.name}" for run in fleet.runs}
                return FOUND, fleet_page(fleet, tz, links, served)
            wanted = {name for name, page in pages.items() if page == path.removeprefix("/table/")}
            for _, page in table_pages(fleet, tz, wanted, served) if wanted else ():
                return FOUND, page
        if path == "/live":
            served, live = Served("/", "", LIVE_SECONDS), None
            said = message_page("No run goes on", (_LOOKS_AGAIN,))
            if running is not None:
                live = live_page(self._project, running, tz, now_ms=now_ms, served=served)
                said = message_page("A run begins", ("Its tables are being planned.",))
            return FOUND, live or render_page(said, served)
        run_id = path.removeprefix("/run/")
        if path.startswith("/run/") and is_run_id(run_id):
            return FOUND, run_page(self._project, run_id, tz, served=served)[1]
        return NOT_FOUND, render_page(message_page("There is no such page", ()), Served("/"))
