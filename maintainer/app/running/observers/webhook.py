"""Post to the address in ``notify:`` when a run fails or a table goes into quarantine, or when it is tested.

A message is a JSON document with a ``text`` that Slack and others show as it is.
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.client import HTTPException, HTTPMessage
from typing import IO, Any

from maintainer.app.running.observers.event_thread import NotDelivered
from maintainer.errors import ExitCode
from maintainer.model.plan.plan import is_place
from maintainer.model.product_version import __version__
from maintainer.model.run.exit_codes import exit_code, exit_reason
from maintainer.model.run.outcome import TableOutcome, TableStatus
from maintainer.model.run.progress import ProgressEvent, RunFinished, RunStarted, TableFinished
from maintainer.policy.project.project_sections import Notify, NotifyOn
from maintainer.report.run.outcome_text import TABLE_ENDS, message
from maintainer.report.text_layout import iso_utc, noun_of, printable
from maintainer.units import by_cause, count_of, named

FORMAT_VERSION = "1"
MAX_TABLES = 50
"""Tables that a message lists; the rest is counted."""

TEST = "test"
"""The event of a message that somebody asked for, to see whether it arrives."""

MAX_LINES = 10
MAX_NAMES = 5
"""Causes in the text, and tables named of each."""

MAX_SENTENCE = 300
"""Characters of what is said about one table in the text."""

_BAD = frozenset(
    {
        TableStatus.FAILED,
        TableStatus.VERIFY_FAILED,
        TableStatus.BLOCKED,
        TableStatus.NOT_REACHED,
        TableStatus.INTERRUPTED,
    }
)


@dataclass(frozen=True, slots=True)
class RunNamed:
    """Which run is spoken of. ``folder`` is a path on the machine of the run."""

    run_id: str
    folder: str
    project: str
    environment: str | None


def quarantine_message(run: RunNamed, table: TableOutcome, at_ms: int) -> dict[str, Any]:
    """Return the message that a verification failed, so that the table is in quarantine."""
    name = table.ref.identifier
    text = f"{_about(run)}: {_shown(name)} is in quarantine: a verification failed. {_sentence(table)}"
    text += f"\nLook at it before anybody writes to it: maintainer verify {_shown(name)}"
    return _document(run, NotifyOn.QUARANTINE.value, text, [table], at_ms, None)


def failure_message(run: RunNamed, tables: Sequence[TableOutcome], code: ExitCode, at_ms: int) -> dict[str, Any]:
    """Return the message that a run did not end well, with the tables that need a person."""
    bad = [table for table in tables if table.status in _BAD]
    lines = [f"{_about(run)}: {exit_reason(code)} (exit code {code.value}), run {run.run_id}"]
    causes = by_cause(bad, lambda table: (noun_of(table), _sentence(table)))
    for alike in causes[:MAX_LINES]:
        names = named([_shown(table.ref.identifier) for table in alike], MAX_NAMES)
        many = f"{count_of(len(alike), noun_of(alike[0]))} ({names})"
        lines.append(f"• {many if alike[1:] else names}: {_sentence(alike[0])}")
    rest = sum(len(alike) for alike in causes[MAX_LINES:])
    if rest:
        lines.append(f"and {count_of(rest, 'more table')}")
    unsupported = sum(table.status is TableStatus.UNSUPPORTED for table in tables)
    if unsupported:
        lines.append(f"{count_of(unsupported, 'table')} not supported and left alone")
    lines.append(f"maintainer show {run.run_id}")
    return _document(run, NotifyOn.FAILURE.value, "\n".join(lines), bad, at_ms, code)


def test_message(run: RunNamed, at_ms: int) -> dict[str, Any]:
    """Return the message that shows that messages arrive; no run and no table is behind it."""
    text = f"{_about(run)}: this is a test by `maintainer doctor --notify`. Nothing failed."
    return _document(run, TEST, text, [], at_ms, None)


def _document(
    run: RunNamed, event: str, text: str, tables: Sequence[TableOutcome], at_ms: int, code: ExitCode | None
) -> dict[str, Any]:
    return {
        "format_version": FORMAT_VERSION,
        "text": text,
        "event": event,
        "at": iso_utc(at_ms),
        "project": printable(run.project),
        "environment": run.environment,
        "run_id": run.run_id,
        "run_folder": printable(run.folder),
        "exit_code": None if code is None else code.value,
        "num_tables": sum(not is_place(table) for table in tables),
        "tables": [_table(table) for table in tables[:MAX_TABLES]],
    }


def _table(table: TableOutcome) -> dict[str, Any]:
    problem = table.first_problem
    return {
        "table": printable(table.ref.identifier),
        "owner": table.owner,
        "status": table.status.value,
        "code": None if problem is None else problem.code,
        "what": _sentence(table, escape=False),
        "help": None if problem is None or problem.help is None else printable(problem.help),
        "policy_file": table.policy_file,
    }


def _sentence(table: TableOutcome, *, escape: bool = True) -> str:
    """Say why a table did not end well: its problem, or that of its first step that failed."""
    problem = table.first_problem
    said = [message(step) for step in table.steps if message(step)]
    text = said[-1] if said else TABLE_ENDS[table.status].text
    if problem is not None:
        text = f"{problem.code}: {problem.what}"
    text = " ".join(text.split())
    text = text if len(text) <= MAX_SENTENCE else f"{text[: MAX_SENTENCE - 1]}…"
    return _shown(text) if escape else printable(text)


def _about(run: RunNamed) -> str:
    env = f", {_shown(run.environment)}" if run.environment else ""
    return f"maintainer ({_shown(run.project)}{env})"


def _shown(text: str) -> str:
    """Return a text that a chat shows as it is: the three characters with a meaning in Slack are escaped."""
    return printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


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
