"""The message that a webhook gets about a run: a JSON document with a ``text`` that Slack and others show as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from maintainer.errors import ExitCode
from maintainer.model.plan.plan import Problem, is_place
from maintainer.model.run.exit_codes import exit_reason
from maintainer.model.run.outcome import TableOutcome, TableStatus
from maintainer.policy.project.project_sections import NotifyOn
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
    problem = _problem(table)
    return {
        "table": printable(table.ref.identifier),
        "owner": table.owner,
        "status": table.status.value,
        "code": None if problem is None else problem.code,
        "what": _sentence(table, escape=False),
        "help": None if problem is None or problem.help is None else printable(problem.help),
        "policy_file": table.policy_file,
    }


def _problem(table: TableOutcome) -> Problem | None:
    return table.problem or next((step.error for step in table.steps if step.error is not None), None)


def _sentence(table: TableOutcome, *, escape: bool = True) -> str:
    """Say why a table did not end well: its problem, or that of its first step that failed."""
    problem = _problem(table)
    if problem is not None:
        text = f"{problem.code}: {problem.what}"
    else:
        said = [message(step) for step in table.steps if message(step)]
        text = said[-1] if said else TABLE_ENDS[table.status].text
    text = " ".join(text.split())
    text = text if len(text) <= MAX_SENTENCE else f"{text[: MAX_SENTENCE - 1]}…"
    return _shown(text) if escape else printable(text)


def _about(run: RunNamed) -> str:
    env = f", {_shown(run.environment)}" if run.environment else ""
    return f"maintainer ({_shown(run.project)}{env})"


def _shown(text: str) -> str:
    """Return a text that a chat shows as it is: the three characters with a meaning in Slack are escaped."""
    return printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
