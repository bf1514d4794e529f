"""How steps and tables end, in words: each status once, for progress, totals, findings, JUnit and pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from maintainer.model.run.outcome import StepStatus, TableStatus
from maintainer.report.text.style import Role


@dataclass(frozen=True, slots=True)
class StepEnd:
    """The words for one end of a step.

    ``word`` stands on its progress line, ``message`` where the step says nothing itself, ``counted`` in the totals of
    a run. ``element`` is JUnit's, None for a case that passes. ``code`` is the finding's where the step has no error of
    its own, empty where there is no finding.
    """

    word: str
    role: Role
    message: str
    counted: str
    element: str | None = None
    code: str = ""
    help: str | None = None


_REMAINING = (
    "a later vacuum takes what is left; where it says permission denied, let this user delete in the table's folder"
)
_LOGS = "look into results.json and spark.log of the run folder"
_YIELDED = "another writer was first; nothing more was committed"
_UNKNOWN = "whether the commit landed is not known"
_SKIPPED = "an earlier step of this table did not succeed"

STEP_ENDS: Mapping[StepStatus, StepEnd] = {
    StepStatus.SUCCEEDED: StepEnd("OK", Role.GOOD, "", "succeeded"),
    StepStatus.NOTHING_LEFT: StepEnd("NOOP", Role.DIM, "nothing left to do", "had nothing left to do"),
    StepStatus.YIELDED: StepEnd("YIELD", Role.WARN, _YIELDED, "yielded", "skipped", "C701"),
    StepStatus.INCOMPLETE: StepEnd(
        "INCOMPLETE", Role.BAD, "not all planned files are gone", "incomplete", "error", "C704", _REMAINING
    ),
    StepStatus.FAILED: StepEnd("FAIL", Role.BAD, "failed", "failed", "error", "E600", _LOGS),
    StepStatus.VERIFY_FAILED: StepEnd("FAIL", Role.BAD, "verification failed", "failed", "failure", "V501"),
    StepStatus.UNKNOWN: StepEnd("UNKNOWN", Role.BAD, _UNKNOWN, "with an unknown result", "error", "C703"),
    StepStatus.SKIPPED: StepEnd("SKIP", Role.WARN, _SKIPPED, "skipped", "skipped"),
    StepStatus.INTERRUPTED: StepEnd("STOP", Role.WARN, "interrupted", "interrupted", "error", "C710"),
}


@dataclass(frozen=True, slots=True)
class TableEnd:
    """The words for one end of a table.

    ``text`` stands where the table has no problem of its own, ``counted`` in the totals of a run, ``word`` on a
    progress line (empty where the steps have said all). ``element`` is JUnit's. ``rank`` orders findings: 0 is a failed
    verification, 3 a warning.
    """

    text: str
    counted: str
    role: Role | None
    element: str | None
    rank: int = 1
    word: str = ""


_NOT_REACHED = "not reached: the run ended before its turn"

TABLE_ENDS: Mapping[TableStatus, TableEnd] = {
    TableStatus.DONE: TableEnd("done", "done", Role.GOOD, None),
    TableStatus.UP_TO_DATE: TableEnd("up to date", "up to date", None, None, word="OK"),
    TableStatus.WAITING: TableEnd("waiting: held back for now", "waiting", None, "skipped", 3, "WAIT"),
    TableStatus.YIELDED: TableEnd("another writer was first", "yielded to another writer", Role.WARN, "skipped", 3),
    TableStatus.BLOCKED: TableEnd("blocked: not touched", "blocked", Role.WARN, "error", 2, "BLOCKED"),
    TableStatus.UNSUPPORTED: TableEnd("not supported: not touched", "not supported", Role.WARN, "error", 2, "SKIP"),
    TableStatus.NOT_REACHED: TableEnd(_NOT_REACHED, "not reached", Role.WARN, "skipped", 3, "SKIP"),
    TableStatus.INTERRUPTED: TableEnd("interrupted", "interrupted", Role.WARN, "error", 3),
    TableStatus.FAILED: TableEnd("failed", "failed", Role.BAD, "error"),
    TableStatus.VERIFY_FAILED: TableEnd("verification failed", "VERIFICATION FAILED", Role.BAD, "failure", 0),
}
