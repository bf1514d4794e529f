"""A real HTTP server on this machine that keeps what is posted to it, and answers as a test says."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Receiver:
    """What came: path, headers and body of each request, in order. ``answers`` are used up, the last one stays."""

    answers: list[int]
    redirect_to: str = "/elsewhere"
    posts: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    hold: threading.Event | None = None
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def answer(self) -> int:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@contextmanager
def http_receiver(answers: Sequence[int] = (200,), hold: threading.Event | None = None) -> Iterator[Receiver]:
    """Serve on a port that the system chooses; with ``hold`` no answer is given before it is set."""
    receiver = Receiver(list(answers), hold=hold)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            receiver.posts.append((self.path, dict(self.headers.items()), body))
            if receiver.hold is not None:
                receiver.hold.wait(30)
            status = receiver.answer()
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", receiver.redirect_to)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing on stderr."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        if hold is not None:
            hold.set()
        server.shutdown()
        server.server_close()
        thread.join(10)
