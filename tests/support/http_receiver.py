"""A real HTTP server on this machine that keeps what is posted to it, and answers as a test says."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.support.stores.http_relay import HttpAnswer, HttpRelay, HttpRequest, RelayedRequests


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

    def answer(self, request: HttpRequest) -> HttpAnswer:
        self.posts.append((request.target, dict(request.headers), request.body))
        if self.hold is not None:
            self.hold.wait(30)
        status = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        headers = (("Location", self.redirect_to),) if 300 <= status < 400 else ()
        return HttpAnswer(status, "as a test says", headers, 0, b"")


@contextmanager
def http_receiver(answers: Sequence[int] = (200,), hold: threading.Event | None = None) -> Iterator[Receiver]:
    """Serve on a port that the system chooses; with ``hold`` no answer is given before it is set."""
    receiver = Receiver(list(answers), hold=hold)
    handler = type("Received", (RelayedRequests,), {"answer": lambda _, request: receiver.answer(request)})
    server = HttpRelay(0, handler)
    receiver.port = server.server_port
    try:
        yield receiver
    finally:
        if hold is not None:
            hold.set()
        server.close()
