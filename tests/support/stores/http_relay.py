"""A relay in this process before a server on 127.0.0.1: it has each request whole, and decides what is answered.

What it passes on arrives as it was sent, with the same host, so that signatures stay right.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import urllib.parse
from abc import abstractmethod
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECONDS = 60
"""The server behind answers within them."""

_OF_A_CONNECTION = {"connection", "keep-alive", "transfer-encoding", "content-length", "expect"}

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class HttpRequest:
    """A request with its body; ``target`` is path and query as they were sent."""

    method: str
    target: str
    headers: Headers
    body: bytes

    @property
    def path(self) -> str:
        """The path alone, with every character as itself."""
        return urllib.parse.unquote(self.target.partition("?")[0])

    def header(self, name: str) -> str | None:
        """The value of a header, whose name is given in lower case."""
        return next((value for key, value in self.headers if key.lower() == name), None)


@dataclass(frozen=True)
class HttpAnswer:
    """An answer. One with fewer bytes than ``length_bytes`` ends with the connection, unless it is one to HEAD."""

    status: int
    reason: str
    headers: Headers
    length_bytes: int
    body: bytes


def passed_on(port: int, request: HttpRequest) -> HttpAnswer:
    """Ask the server at a port of this machine."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    try:
        connection.putrequest(request.method, request.target, skip_host=True, skip_accept_encoding=True)
        for name, value in request.headers:
            if name.lower() not in _OF_A_CONNECTION:
                connection.putheader(name, value)
        if request.body or request.method in ("PUT", "POST"):
            connection.putheader("Content-Length", str(len(request.body)))
        connection.endheaders(request.body)
        answer = connection.getresponse()
        body = answer.read()
        length = answer.getheader("Content-Length") if request.method == "HEAD" else None
        headers = tuple((name, value) for name, value in answer.getheaders() if name.lower() not in _OF_A_CONNECTION)
        return HttpAnswer(answer.status, answer.reason, headers, int(length or len(body)), body)
    finally:
        connection.close()


class RelayedRequests(BaseHTTPRequestHandler):
    """The requests of one connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    @abstractmethod
    def answer(self, request: HttpRequest) -> HttpAnswer | None:
        """Return the answer to a request; None closes the connection without one."""

    def do_GET(self) -> None:
        """Take a request of any method."""
        answer = self.answer(HttpRequest(self.command, self.path, tuple(self.headers.items()), self._body()))
        with contextlib.suppress(OSError):  # the client may be gone
            self._send(answer)

    do_HEAD = do_PUT = do_POST = do_DELETE = do_PATCH = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def _send(self, answer: HttpAnswer | None) -> None:
        if answer is None:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        lines = [f"{self.protocol_version} {answer.status} {answer.reason}"]
        lines += [f"{name}: {value}" for name, value in answer.headers]
        if answer.status != http.HTTPStatus.NO_CONTENT:
            lines.append(f"Content-Length: {answer.length_bytes}")
        head = "\r\n".join([*lines, "", ""]).encode("latin-1")
        self.wfile.write(head + (b"" if self.command == "HEAD" else answer.body))
        if self.command != "HEAD" and len(answer.body) < answer.length_bytes:
            self.close_connection = True

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return b"".join(parts)


class HttpRelay(ThreadingHTTPServer):
    """Listens at a port of this machine, by threads of its own; closed, it ends the connections that are open, too."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, port: int, handler: type[RelayedRequests]) -> None:
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(("127.0.0.1", port), handler)
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Refuse connections from now on, and end those that are open."""
        self.shutdown()
        self.server_close()
        self._thread.join()
        with self._lock:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def process_request_thread(self, request: socket.socket, client_address: object) -> None:  # type: ignore[override]
        """Keep the connection among the open ones while it is served."""
        with self._lock:
            self._open.add(request)
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                self._open.discard(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of a client that went away."""
