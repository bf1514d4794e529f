"""The verdict of `verify` about a past commit. Frozen values, no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from maintainer.model.plan.plan import Problem
from maintainer.model.table.table_facts import TableRef


class CheckResult(StrEnum):
    """How one check ended. *Wrong* and *could not check* are never mixed up; a note says nothing against the commit.

    *Files only*: all that was looked at holds, and no rows were to be compared, since the commit is no rewrite.
    *Spelled anew*: the rows are the same in UTC, or in a zone of their writer, and another tool changed the text of
    partition values.
    """

    PROVEN = "proven"
    FILES_ONLY = "files_only"
    WRONG = "wrong"
    NOT_CHECKED = "not_checked"
    SPELLED_ANEW = "spelled_anew"
    NOTED = "noted"


VERDICTS = tuple(result for result in CheckResult if result is not CheckResult.NOTED)
"""How a commit may end: a note is only ever a check's, and *files only* a commit's."""


@dataclass(frozen=True, slots=True)
class CommitCheck:
    """One check of a commit.

    Attributes:
        level: ``actions``, ``partitions``, ``rows``, ``statistics``, ``files``; ``inputs`` for what was there before
            the commit.
        name: What was checked, as a sentence that is true when it holds.
        result: How it ended.
        detail: Figures where it holds, findings where it does not, the reason where it could not be checked.
    """

    level: str
    name: str
    result: CheckResult
    detail: str | None = None

    @property
    def finding(self) -> str:
        """What it found, on one line."""
        return (self.detail or self.name).replace("\n", "; ")


@dataclass(frozen=True, slots=True)
class CommitVerification:
    """One commit, checked. ``kind`` is ``rewrite`` (it claims to change no data), ``data_change`` or ``other``.

    ``rows_removed`` and ``rows_added`` were counted by reading the files; None where that was not done.
    """

    version: int
    committed_at_ms: int
    operation: str
    engine: str | None
    run_id: str | None
    kind: str
    checks: tuple[CommitCheck, ...]
    num_files_removed: int = 0
    num_files_added: int = 0
    rows_removed: int | None = None
    rows_added: int | None = None
    uncovered_columns: tuple[str, ...] = ()
    duration_seconds: float = 0.0

    @property
    def result(self) -> CheckResult:
        """The gravest of all checks; without any, nothing was checked."""
        results = {check.result for check in self.checks}
        for result in (CheckResult.WRONG, CheckResult.NOT_CHECKED, CheckResult.SPELLED_ANEW):
            if result in results:
                return result
        if not results:
            return CheckResult.NOT_CHECKED
        return CheckResult.PROVEN if self.kind == "rewrite" else CheckResult.FILES_ONLY

    @property
    def who(self) -> str:
        """What made it, for people: a run of ours, or an engine."""
        return f"run {self.run_id}" if self.run_id else self.engine or "unknown engine"

    def worst(self, result: CheckResult) -> CommitCheck | None:
        """Return the first check with this result."""
        return next((check for check in self.checks if check.result is result), None)

    @property
    def content_is_wrong(self) -> bool:
        """Whether rows or actions are wrong: then the files that it removed must be kept."""
        return any(check.result is CheckResult.WRONG and check.level in ("actions", "rows") for check in self.checks)


ACCEPTED = "accepted: "
"""How the note of a table begins that a person accepted."""


@dataclass(frozen=True, slots=True)
class TableVerification:
    """One table's answer: a commit that was checked, or why none could be.

    ``quarantined`` is why the table was in quarantine before, None where it was not. Neither our own ledger
    (``is_ledger``) nor a place that could not be searched (``is_place``) is counted among the user's tables.
    ``table_id`` and ``location`` are None where it was not read.
    """

    ref: TableRef
    commit: CommitVerification | None = None
    problem: Problem | None = None
    quarantined: str | None = None
    note: str | None = None
    is_ledger: bool = False
    is_place: bool = False
    table_id: str | None = None
    location: str | None = None

    @property
    def is_accepted(self) -> bool:
        """Whether a person accepted the table as it is."""
        return self.note is not None and self.note.startswith(ACCEPTED)

    @property
    def result(self) -> CheckResult:
        return CheckResult.NOT_CHECKED if self.commit is None else self.commit.result


@dataclass(frozen=True, slots=True)
class VerifyRun:
    """All that one `verify` found, in the order of the tables."""

    run_id: str
    started_at_ms: int
    duration_seconds: float
    tables: tuple[TableVerification, ...]

    @property
    def user_tables(self) -> tuple[TableVerification, ...]:
        """All tables but our own ledger."""
        return tuple(table for table in self.tables if not table.is_ledger)

    def count(self, result: CheckResult) -> int:
        """Count the user's tables with this result."""
        return sum(table.result is result and not table.is_place for table in self.user_tables)


def lift_help(table: str) -> str:
    """Say how a table gets out of quarantine, in the order that loses nothing. ``table`` is it, as a shell reads it."""
    return (
        "look at what failed and at the table, and bring back rows that are wrong or missing; only then "
        f"`maintainer verify {table} --accept REASON`, because after it a vacuum may delete the files that have "
        "these rows"
    )
