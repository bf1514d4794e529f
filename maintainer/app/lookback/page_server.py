"""Serve the reports on this machine alone, read-only: all tables, one run, and the run that goes on now.

Every page is drawn from run folders when it is asked for, and kept until a run writes something. Nothing is changed by
any request. Only requests that name this machine as their host are answered, so that no page of another site reads ours
by a name that it points here. At most `MAX_REQUESTS` are worked on at once, each for at most `REQUEST_SECONDS`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from maintainer.app.lookback.report_pages import (
    NoReport,
    NothingRan,
    fleet_page,
    fleet_runs,
    live_page,
    run_page,
    running_folder,
    table_names,
    table_pages,
)
from maintainer.app.project_folders import Project, local_zone
from maintainer.errors import MaintainerError, ProjectError
from maintainer.journal.event_log import EVENTS_FILE
from maintainer.journal.folder.run_folder import is_run_id, run_folders
from maintainer.report.html.page import Served, message_page, render_page

ADDRESS = "127.0.0.1"
HOSTS = ("127.0.0.1", "localhost")
"""How a request may name us."""

MAX_REQUESTS, REQUEST_SECONDS, MAX_PAGES_KEPT = 8, 10, 12
LIVE_SECONDS, LOOK_SECONDS = 3, 30
"""How often a browser asks again: while a run goes on, and else."""

_LOOKS_AGAIN = "This page looks again, and shows the next run when it begins."


class PageServer(ThreadingHTTPServer):
    """The server of one project's pages, on this machine alone."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, project: Project, port: int, since_seconds: int) -> None:
        self._project = project
        self._since_seconds = since_seconds
        self._room = threading.BoundedSemaphore(MAX_REQUESTS)
        self._drawing = threading.Lock()
        self._kept: dict[str, tuple[object, HTTPStatus, str]] = {}
        super().__init__((ADDRESS, port), _Handler)

    @property
    def url(self) -> str:
        """Where the pages are."""
        return f"http://{ADDRESS}:{self.server_port}/"

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 (as the library has it)
        """Answer on a thread of its own; one too many is closed unanswered."""
        if not self._room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """Answer, and give the room back."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """Say nothing of a browser that went away."""

    def page(self, path: str) -> tuple[HTTPStatus, str]:
        """Return the page at a path; one that was drawn before, where no run has written since."""
        with self._drawing:
            state = self._state()
            page = self._kept.get(path)
            if page is not None and page[0] == state:
                return page[1], page[2]
            status, text = self._drawn(path)
            if len(self._kept) >= MAX_PAGES_KEPT:
                self._kept.clear()
            self._kept[path] = (state, status, text)
            return status, text

    def _state(self) -> object:
        """What changes whenever a run writes, and each few seconds while one goes on."""
        try:
            folders = run_folders(self._project.runs_dir)[-2:]
            sizes = [(folder.run_id, (folder.path / EVENTS_FILE).stat().st_size) for folder in folders]
            going_on = running_folder(self._project) is not None
        except (OSError, MaintainerError):
            return time.monotonic()
        return sizes, going_on and int(time.monotonic()), int(time.time() // 60)

    def _drawn(self, path: str) -> tuple[HTTPStatus, str]:
        try:
            return self._drawn_of(path)
        except NothingRan as nothing:
            lines = ("`maintainer report` shows the tables as they are, and what a run would do.", _LOOKS_AGAIN)
            heading = f"{nothing.reason[:1].upper()}{nothing.reason[1:]}"
            return HTTPStatus.OK, render_page(message_page(heading, lines), Served("/", "", LOOK_SECONDS))
        except MaintainerError as error:
            status = HTTPStatus.NOT_FOUND if isinstance(error, NoReport) else HTTPStatus.INTERNAL_SERVER_ERROR
            said = [error.what, *([error.help] if error.help else [])]
            return status, render_page(message_page(f"{error.code}: no page", said), Served("/", "", LOOK_SECONDS))

    def _drawn_of(self, path: str) -> tuple[HTTPStatus, str]:
        running = running_folder(self._project)
        served = Served("" if path == "/" else "/", "/live" if running else "", LOOK_SECONDS)
        now_ms = time.time_ns() // 1_000_000
        if path == "/" or path.startswith("/table/"):
            fleet = fleet_runs(self._project, now_ms - self._since_seconds * 1000)
            pages = table_names(fleet)
            links = {name: f"/table/{page}" for page, name in pages.items()}
            if path == "/":
                links |= {run.outcome.run_id: f"/run/{run.folder.name}" for run in fleet.runs}
                return HTTPStatus.OK, fleet_page(fleet, local_zone(), links, served)
            wanted = pages.get(path.removeprefix("/table/"))
            for _, page in table_pages(fleet, local_zone(), {wanted}, served) if wanted else ():
                return HTTPStatus.OK, page
        if path == "/live":
            return HTTPStatus.OK, self._live(now_ms)
        run_id = path.removeprefix("/run/")
        if path.startswith("/run/") and is_run_id(run_id):
            return HTTPStatus.OK, run_page(self._project, run_id, local_zone(), served=served)[1]
        return HTTPStatus.NOT_FOUND, render_page(message_page("There is no such page", ()), Served("/"))

    def _live(self, now_ms: int) -> str:
        running, often = running_folder(self._project), Served("/", "", LIVE_SECONDS)
        if running is None:
            return render_page(message_page("No run goes on", (_LOOKS_AGAIN,)), Served("/", "", LIVE_SECONDS))
        page = live_page(self._project, running, local_zone(), now_ms=now_ms, served=often)
        if page is None:
            page = render_page(message_page("A run begins", ("Its tables are being planned.",)), often)
        return page


class _Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD; the library refuses every other method."""

    server: PageServer
    server_version, sys_version = "maintainer", ""
    timeout = REQUEST_SECONDS

    def do_GET(self) -> None:
        """Send the page, or why there is none."""
        if not self._names_us():
            self._send(HTTPStatus.MISDIRECTED_REQUEST, "Only requests to this machine are answered.", "text/plain")
            return
        status, page = self.server.page(urlsplit(self.path).path)
        self._send(status, page, "text/html")

    do_HEAD = do_GET

    def _names_us(self) -> bool:
        host = self.headers.get("Host", "")
        return host in {name for known in HOSTS for name in (known, f"{known}:{self.server.server_port}")}

    def _send(self, status: HTTPStatus, text: str, kind: str) -> None:
        body = text.encode("utf-8", "replace")
        self.send_response(status)
        for name, value in (
            ("Content-Type", f"{kind}; charset=utf-8"),
            ("Content-Length", str(len(body))),
            ("Cache-Control", "no-store"),
            ("Referrer-Policy", "no-referrer"),
            ("X-Content-Type-Options", "nosniff"),
            ("X-Frame-Options", "DENY"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
        ):
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Write no line for each request."""


@contextmanager
def page_server(project: Project, port: int, *, since_seconds: int) -> Iterator[PageServer]:
    """Open the server for as long as the block lasts; the caller calls ``serve_forever``.

    Args:
        project: The project.
        port: The port; 0 lets the system choose.
        since_seconds: Runs that are older are left out of the page of all tables.

    Raises:
        ProjectError: E690, nothing can be served at this port.
    """
    try:
        server = PageServer(project, port, since_seconds)
    except OSError as error:
        raise ProjectError(
            "the reports cannot be served at this port",
            code="E690",
            where=f"{ADDRESS}:{port}",
            found=error.strerror or str(error),
            help="choose another --port; 0 takes a free one",
        ) from error
    with server:
        yield server
