"""Posts to the address in ``notify:`` when a run fails or a table goes into quarantine."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPException, HTTPMessage
from typing import IO, Any

from maintainer.app.running.observers.event_thread import NotDelivered
from maintainer.errors import ExitCode
from maintainer.model.product_version import __version__
from maintainer.model.run.exit_codes import exit_code
from maintainer.model.run.outcome import TableStatus
from maintainer.model.run.progress import ProgressEvent, RunFinished, RunStarted, TableFinished
from maintainer.policy.project.project_sections import Notify, NotifyOn
from maintainer.report.run.notification import RunNamed, failure_message, quarantine_message, test_message

TRY_SECONDS = 5.0
"""For one attempt: to connect, and for each answer of the server."""

PAUSES_SECONDS = (0.5, 1.5)
"""Between attempts: three are made."""

MAX_QUARANTINES = 20
"""Tables of one run of whose quarantine a message is sent at once; all are in the message at the end."""

_NO_FAILURE = frozenset({ExitCode.OK, ExitCode.INTERRUPTED, ExitCode.TERMINATED})
_WORTH_ANOTHER_TRY = frozenset({408, 425, 429, 500, 502, 503, 504})


class Webhook:
    """Sends a message at once when a table goes into quarantine, and one at the end of a run that failed.

    Args:
        notify: The address, and what for.
        project: The project's name.
        environment: The environment, None without one.
        sleep: Waits between attempts, seconds.
    """

    what = "notifications"

    def __init__(
        self, notify: Notify, project: str, environment: str | None, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.where = notify.host
        self._notify = notify
        self._run = RunNamed("", "", project, environment)
        self._sleep = sleep
        self._num_quarantines = 0
        self._opener = urllib.request.build_opener(_NoRedirects)

    def event(self, event: ProgressEvent) -> None:
        """Send what the event is worth.

        Raises:
            NotDelivered: After all attempts.
        """
        match event:
            case RunStarted():
                self._run = RunNamed(event.run_id, event.run_folder, self._run.project, self._run.environment)
            case TableFinished() if event.outcome.status is TableStatus.VERIFY_FAILED:
                self._num_quarantines += 1
                if NotifyOn.QUARANTINE in self._notify.on and self._num_quarantines <= MAX_QUARANTINES:
                    self._post(quarantine_message(self._run, event.outcome, event.at_ms))
            case RunFinished():
                code = exit_code(event.outcome)
                if NotifyOn.FAILURE in self._notify.on and code not in _NO_FAILURE:
                    self._post(failure_message(self._run, event.outcome.tables, code, event.at_ms))
            case _:
                pass

    def test(self, at_ms: int) -> None:
        """Send a test message, whatever messages are asked for.

        Raises:
            NotDelivered: After all attempts.
        """
        self._post(test_message(self._run, at_ms))

    def close(self) -> None:
        """Nothing waits: each message is sent when its event comes."""

    def _post(self, message: dict[str, Any]) -> None:
        body = json.dumps(message, ensure_ascii=True).encode("ascii")
        reason = ""
        for pause in (*PAUSES_SECONDS, None):
            reason, again = self._try(body)
            if not reason:
                return
            if not again or pause is None:
                break
            self._sleep(pause)
        raise NotDelivered(reason)

    def _try(self, body: bytes) -> tuple[str, bool]:
        """Post once; return why it was not taken, empty where it was, and whether another attempt may help."""
        headers = {"Content-Type": "application/json", "User-Agent": f"maintainer/{__version__}"}
        request = urllib.request.Request(self._notify.url, data=body, headers=headers, method="POST")
        try:
            with self._opener.open(request, timeout=TRY_SECONDS):
                return "", False  # what the server says besides is not read
        except urllib.error.HTTPError as error:
            with error:
                if 300 <= error.code < 400:
                    return f"HTTP {error.code}: the address redirects to another one, which is not followed", False
                return f"HTTP {error.code}", error.code in _WORTH_ANOTHER_TRY
        except urllib.error.URLError as error:
            return _said(error.reason), True
        except (OSError, HTTPException) as error:
            return _said(error), True


def _said(error: object) -> str:
    """Return why there is no answer, in the words of the operating system; a library's own may quote the address."""
    if isinstance(error, TimeoutError):
        return f"no answer within {TRY_SECONDS:g} s"
    return (error.strerror if isinstance(error, OSError) else None) or f"no answer ({type(error).__name__})"


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows nothing: a message would go to a place that nobody chose."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        """Let every redirect end as an error."""
