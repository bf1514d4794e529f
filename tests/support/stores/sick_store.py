"""What goes wrong on the way to an object store: too busy, failing, slow, answers that are lost, requests that are.

A rule meets the requests that it names, so many times; ``S3Server.faults`` has them. What it does to a request is what
the client sees at its socket: a real status, a real wait, a connection that is closed without an answer.
"""

from __future__ import annotations

import contextlib
import enum
import io
import socket
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NoReturn

ALWAYS = 1_000_000
LONGEST_WAIT_SECONDS = 120.0

_BODY = "<?xml version='1.0' encoding='UTF-8'?><Error><Code>{code}</Code><Message>{words}</Message></Error>"


class Fault(enum.Enum):
    """What happens to a request."""

    SLOW_DOWN = "503 SlowDown"
    """Refused before anything was done."""
    FAILS = "500 InternalError"
    """Refused before anything was done, in words that leave that open."""
    LOST_ANSWER = "done, and the connection closed without an answer"
    LOST_REQUEST = "not done, and the connection closed without an answer"
    REFUSES = "refused with the status, the code and the words of the rule"
    SLOW = "done, and answered late"
    LATE = "answered not at all, and done at the end of the wait"
    HELD = "done and answered when the rule is released"
    CUTS = "done with a body that lacks its last byte"
    CHANGES = "done with another last byte in its body"


@dataclass
class FaultRule:
    """A fault for requests of a method whose path ends with ``suffix`` and holds ``part``; ``times`` of them."""

    fault: Fault
    method: str = "PUT"
    part: str = ""
    suffix: str = ""
    times: int = 1
    seconds: float = 0.0
    answer: tuple[str, str, str] = ("403 Forbidden", "AccessDenied", "Access Denied")
    released: threading.Event = field(default_factory=threading.Event)
    met: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)
    num_met: int = 0

    def fits(self, method: str, path: str) -> bool:
        """Whether the rule is for this request, and not used up."""
        return (
            self.num_met < self.times
            and self.method in ("*", method)
            and self.part in path
            and path.endswith(self.suffix)
        )


class StoreFaults:
    """The rules of one server, the first that fits counts, and the requests that it was sent. Used by many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rules: list[FaultRule] = []
        self.requests: list[tuple[str, str, Fault | None]] = []

    def add(self, rule: FaultRule) -> FaultRule:
        """Do this to requests from now on."""
        with self._lock:
            self._rules.append(rule)
        return rule

    def clear(self) -> None:
        """Be well again; what is held goes on."""
        with self._lock:
            rules, self._rules = self._rules, []
            self.requests.clear()
        for rule in rules:
            rule.released.set()

    def num_requests(self, method: str, suffix: str, part: str = "") -> int:
        """How many such requests came since the last ``clear``."""
        with self._lock:
            return sum(how == method and path.endswith(suffix) and part in path for how, path, _ in self.requests)

    def answer(
        self,
        environ: dict[str, Any],
        start_response: Any,
        application: Callable[[dict[str, Any], Any], Iterable[bytes]],
    ) -> Iterable[bytes]:
        """Answer a request by the server itself, or as the first rule that fits says."""
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        with self._lock:
            rule = next((rule for rule in self._rules if rule.fits(method, path)), None)
            if rule is not None:
                rule.num_met += 1
            self.requests.append((method, path, None if rule is None else rule.fault))
        if rule is None:
            return application(environ, start_response)
        rule.met.set()
        try:
            return _sick_answer(rule, environ, start_response, application)
        finally:
            rule.done.set()


def _sick_answer(
    rule: FaultRule,
    environ: dict[str, Any],
    start_response: Any,
    application: Callable[[dict[str, Any], Any], Iterable[bytes]],
) -> Iterable[bytes]:
    match rule.fault:
        case Fault.SLOW_DOWN:
            return _refused(start_response, "503 Slow Down", "SlowDown", "Please reduce your request rate.")
        case Fault.FAILS:
            words = "We encountered an internal error. Please try again."
            return _refused(start_response, "500 Internal Server Error", "InternalError", words)
        case Fault.REFUSES:
            return _refused(start_response, *rule.answer)
        case Fault.SLOW:
            rule.released.wait(rule.seconds)
            return application(environ, start_response)
        case Fault.HELD:
            assert rule.released.wait(LONGEST_WAIT_SECONDS), "nobody released the request"
            return application(environ, start_response)
        case Fault.LATE:
            body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            rule.released.wait(rule.seconds)
            return _unanswered({**environ, "wsgi.input": io.BytesIO(body)}, application)
        case Fault.CUTS | Fault.CHANGES:
            body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
            spoilt = body[:-1] + (b"" if rule.fault is Fault.CUTS else bytes([body[-1] ^ 1]))
            length = str(len(spoilt))
            return application({**environ, "wsgi.input": io.BytesIO(spoilt), "CONTENT_LENGTH": length}, start_response)
        case Fault.LOST_ANSWER:
            return _unanswered(environ, application)
        case Fault.LOST_REQUEST:
            raise _hung_up(environ)


def _refused(start_response: Any, status: str, code: str, words: str) -> Iterable[bytes]:
    body = _BODY.format(code=code, words=words).encode()
    start_response(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
    return [body]


def _unanswered(environ: dict[str, Any], application: Callable[[dict[str, Any], Any], Iterable[bytes]]) -> NoReturn:
    """Have the request done, and close the connection instead of an answer."""
    list(application(environ, lambda status, headers, error=None: lambda data: None))
    raise _hung_up(environ)


def _hung_up(environ: dict[str, Any]) -> ConnectionAbortedError:
    """Close the connection; the error ends the request in the server without a word."""
    with contextlib.suppress(OSError):  # the client may have been first
        environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
    return ConnectionAbortedError("the answer is lost on purpose")
