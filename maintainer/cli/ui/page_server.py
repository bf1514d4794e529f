"""Serve pages on this machine alone, read-only.

Nothing is changed by any request. Only requests that name this machine as their host are answered, so that no page of
another site reads ours by a name that it points here. At most `MAX_REQUESTS` are worked on at once, each for at most
`REQUEST_SECONDS`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from maintainer.errors import ProjectError

PageAt = Callable[[str], tuple[int, str]]
"""Draws the page at a path: its status of HTTP, and its HTML. It is called by several threads."""

ADDRESS = "127.0.0.1"
HOSTS = (ADDRESS, "localhost")
"""How a request may name us."""

MAX_REQUESTS, REQUEST_SECONDS = 8, 10


class PageServer(ThreadingHTTPServer):
    """The server of pages; the caller closes it, and calls ``serve_forever`` until then.

    Args:
        page_at: Draws them.
        port: The port; 0 lets the system choose.

    Raises:
        ProjectError: E690, nothing can be served at this port.
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, page_at: PageAt, port: int) -> None:
        self.page_at = page_at
        self._room = threading.BoundedSemaphore(MAX_REQUESTS)
        try:
            super().__init__((ADDRESS, port), _Handler)
        except OSError as error:
            raise ProjectError(
                "the reports cannot be served at this port",
                code="E690",
                where=f"{ADDRESS}:{port}",
                found=error.strerror or str(error),
                help="choose another --port; 0 takes a free one",
            ) from error

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


class _Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD; the library refuses every other method."""

    server: PageServer
    server_version, sys_version = "maintainer", ""
    timeout = REQUEST_SECONDS

    def do_GET(self) -> None:
        """Send the page, or why there is none."""
        if self.headers.get("Host") in {name for host in HOSTS for name in (host, f"{host}:{self.server.server_port}")}:
            self._send(*self.server.page_at(urlsplit(self.path).path), "text/html")
        else:
            why = "Only requests to this machine are answered."
            self._send(HTTPStatus.MISDIRECTED_REQUEST, why, "text/plain")

    do_HEAD = do_GET

    def _send(self, status: int, text: str, kind: str) -> None:
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
