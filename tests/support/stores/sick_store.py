"""What goes wrong on the way to an object store: too busy, failing, slow, answers that are lost, requests that are.

A rule meets the requests that it names, so many times; ``S3Server.faults`` has them. What it does to a request is what
the client sees at its socket: a real status, a real wait, a connection that is closed without an answer.
"""

from __future__ import annotations

import enum
import gzip
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tests.support.stores.http_relay import HttpAnswer, HttpRequest

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
    CUT_ANSWER = "done, and the connection closed in the middle of the answer"
    CUTS = "done with a body that lacks its last byte"
    CHANGES = "done with another last byte in its body"
    SHORTENS = "done, and answered without the last line of the body"
    UNPACKS = "done, and answered with the body unpacked, as Google does where it is said to be packed"
    FORGETS_RANGE = "done as if all of the object had been asked for"


@dataclass
class FaultRule:
    """A fault for requests of a method whose path ends with ``suffix`` and holds ``part``; ``times`` of them.

    With ``since`` only for those that come after another rule has met one.
    """

    fault: Fault
    method: str = "PUT"
    part: str = ""
    suffix: str = ""
    times: int = 1
    seconds: float = 0.0
    answer: tuple[str, str, str] = ("403 Forbidden", "AccessDenied", "Access Denied")
    since: FaultRule | None = None
    released: threading.Event = field(default_factory=threading.Event)
    met: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)
    num_met: int = 0

    def fits(self, method: str, path: str) -> bool:
        """Whether the rule is for this request, and not used up."""
        return (
            self.num_met < self.times
            and (self.since is None or self.since.met.is_set())
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
        request: HttpRequest,
        behind: Callable[[HttpRequest], HttpAnswer],
        spoilt: Callable[[HttpRequest], HttpRequest],
    ) -> HttpAnswer | None:
        """Answer a request by the server behind, or as the first rule that fits says.

        Args:
            request: What was asked.
            behind: Has the server do a request.
            spoilt: Makes the server take a request whose body was changed, as one that nothing can notice.
        """
        with self._lock:
            rule = next((rule for rule in self._rules if rule.fits(request.method, request.path)), None)
            if rule is not None:
                rule.num_met += 1
            self.requests.append((request.method, request.path, None if rule is None else rule.fault))
        if rule is None:
            return behind(request)
        rule.met.set()
        try:
            return _sick_answer(rule, request, behind, spoilt)
        finally:
            rule.done.set()


def _sick_answer(
    rule: FaultRule,
    request: HttpRequest,
    behind: Callable[[HttpRequest], HttpAnswer],
    spoilt: Callable[[HttpRequest], HttpRequest],
) -> HttpAnswer | None:
    match rule.fault:
        case Fault.SLOW_DOWN:
            return _refused(request, "503 Slow Down", "SlowDown", "Please reduce your request rate.")
        case Fault.FAILS:
            words = "We encountered an internal error. Please try again."
            return _refused(request, "500 Internal Server Error", "InternalError", words)
        case Fault.REFUSES:
            return _refused(request, *rule.answer)
        case Fault.SLOW:
            rule.released.wait(rule.seconds)
            return behind(request)
        case Fault.HELD:
            assert rule.released.wait(LONGEST_WAIT_SECONDS), "nobody released the request"
            return behind(request)
        case Fault.LATE:
            rule.released.wait(rule.seconds)
            behind(request)
            return None
        case Fault.CUT_ANSWER:
            answer = behind(request)
            return replace(answer, body=answer.body[: len(answer.body) // 2])
        case Fault.CUTS:
            return behind(spoilt(replace(request, body=request.body[:-1])))
        case Fault.CHANGES:
            return behind(spoilt(replace(request, body=request.body[:-1] + bytes([request.body[-1] ^ 1]))))
        case Fault.SHORTENS:
            answer = behind(request)
            return _with_body(answer, b"".join(answer.body.splitlines(keepends=True)[:-1]))
        case Fault.UNPACKS:
            answer = behind(request)
            return _with_body(answer, gzip.decompress(answer.body))
        case Fault.FORGETS_RANGE:
            headers = tuple((name, value) for name, value in request.headers if name.lower() != "range")
            return behind(spoilt(replace(request, headers=headers)))
        case Fault.LOST_ANSWER:
            behind(request)
            return None
        case Fault.LOST_REQUEST:
            return None


def _with_body(answer: HttpAnswer, body: bytes) -> HttpAnswer:
    return replace(answer, length_bytes=len(body), body=body)


def _refused(request: HttpRequest, status: str, code: str, words: str) -> HttpAnswer:
    number, _, reason = status.partition(" ")
    body = b"" if request.method == "HEAD" else _BODY.format(code=code, words=words).encode()
    return HttpAnswer(int(number), reason, (("Content-Type", "application/xml"),), len(body), body)
