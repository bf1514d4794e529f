"""Finished steps in words, and what they did added up: files, bytes, proofs and checks.

Shared by progress lines, the end of a run, findings, JUnit, Markdown, pages and ``show``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from maintainer.model.codec import encode
from maintainer.model.run.outcome import Assertion, RunOutcome, StepOutcome, StepStatus, TableOutcome, TableStatus
from maintainer.model.run.progress import Verified
from maintainer.model.run.receipts import Amounts, VacuumReceipt, Verdict
from maintainer.report.style import Role
from maintainer.report.text_layout import printable
from maintainer.units import count_of, format_duration, format_size


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
    "a later vacuum deletes what is left; "
    "if the reason is permission denied, let this user delete in the table's folder"
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
    TableStatus.UNSUPPORTED: TableEnd("not supported: not touched", "not supported", Role.WARN, "skipped", 3, "SKIP"),
    TableStatus.NOT_REACHED: TableEnd(_NOT_REACHED, "not reached", Role.WARN, "skipped", 3, "SKIP"),
    TableStatus.INTERRUPTED: TableEnd("interrupted", "interrupted", Role.WARN, "error", 3),
    TableStatus.FAILED: TableEnd("failed", "failed", Role.BAD, "error"),
    TableStatus.VERIFY_FAILED: TableEnd("verification failed", "VERIFICATION FAILED", Role.BAD, "failure", 0),
}


class WorkDone:
    """Totals of commits, deletions, proofs and checks; counted here, stored nowhere.

    ``files_deleted`` left the storage: from the table's folder, or from the trash. ``files_moved`` went to the trash,
    where they still take room. ``proofs_after_commit`` are those of Delta's own commands, which commit first.
    ``steps_wrong`` failed a verification: a proof that failed before its commit is in none.
    """

    def __init__(self, steps: Iterable[StepOutcome]) -> None:
        steps = tuple(steps)
        proofs = [proof for step in steps for proof in step.proofs]
        vacuums = [step.vacuum for step in steps if step.vacuum]
        into_trash = [vacuum for vacuum in vacuums if vacuum.trash is not None]
        outcomes = [assertion.outcome for step in steps for assertion in step.assertions]
        done = Amounts.of(receipt for step in steps for receipt in step.commits)
        self.files_removed, self.bytes_removed = done.num_files_removed, done.bytes_removed
        self.files_added, self.bytes_added = done.num_files_added, done.bytes_added
        self.files_deleted = sum(vacuum.num_files_freed for vacuum in vacuums)
        self.bytes_deleted = sum(vacuum.bytes_freed for vacuum in vacuums)
        self.files_moved = sum(vacuum.num_files_deleted for vacuum in into_trash)
        self.bytes_moved = sum(vacuum.bytes_deleted for vacuum in into_trash)
        self.commits_proven = sum(proof.holds for proof in proofs)
        self.commits_with_proof = len(proofs)
        self.steps_wrong = sum(
            step.status is StepStatus.VERIFY_FAILED or not all(proof.holds for proof in step.proofs) for step in steps
        )
        self.proofs_after_commit = sum(proof.after_commit for proof in proofs)
        self.checks = len(outcomes)
        self.checks_passed, self.checks_failed = outcomes.count(Verdict.PASS), outcomes.count(Verdict.FAIL)

    @staticmethod
    def of_tables(tables: Iterable[TableOutcome]) -> WorkDone:
        """Add up the steps of tables."""
        return WorkDone(step for table in tables for step in table.steps)

    @staticmethod
    def of_run(outcome: RunOutcome) -> WorkDone:
        """Add up the steps of a run's tables, our own ledger left out."""
        return WorkDone.of_tables(outcome.user_tables)


def figures(*steps: StepOutcome) -> str:
    """Say what steps did: ``1,204 -> 151 files, 38.4 GiB, 812,440,193 rows proven   v1847``; empty for nothing."""
    work = WorkDone(steps)
    parts = []
    if work.files_removed or work.files_added:
        files = f"{work.files_removed:,} -> {count_of(work.files_added, 'file')}"
        parts.append(f"{files}, {format_size(work.bytes_removed)}")
    # Where a check after the commit failed, nobody should read on this line that all is proven.
    if work.commits_proven and all(step.status is not StepStatus.VERIFY_FAILED for step in steps):
        rows = sum(proof.read.rows for step in steps for proof in step.proofs if proof.holds)
        parts.append(f"{count_of(rows, 'row')} proven")
    parts += _deleted([step.vacuum for step in steps if step.vacuum])
    versions = version_span(steps[0]) if len(steps) == 1 else ""
    return "   ".join(part for part in (", ".join(parts), versions) if part)


def _deleted(vacuums: Sequence[VacuumReceipt]) -> Iterator[str]:
    for_good = [vacuum for vacuum in vacuums if vacuum.trash is None]
    into_trash = [vacuum for vacuum in vacuums if vacuum.trash is not None]
    for done, receipts in (("deleted", for_good), ("moved to the trash", into_trash)):
        num, size = sum(each.num_files_deleted for each in receipts), sum(each.bytes_deleted for each in receipts)
        if num or any(not each.num_files_emptied for each in receipts):
            yield f"{count_of(num, 'file')}, {format_size(size)} {done}"
    if emptied := sum(vacuum.num_files_emptied for vacuum in vacuums):
        size = sum(vacuum.bytes_emptied for vacuum in vacuums)
        yield f"{count_of(emptied, 'file')}, {format_size(size)} emptied from the trash"
    if remaining := sum(len(vacuum.remaining) for vacuum in vacuums):
        yield f"{count_of(remaining, 'file')} still there"


def version_span(step: StepOutcome) -> str:
    """Print the versions that a step committed: ``v1847``, ``v1843..v1845`` for several, empty for none."""
    if not step.commits:
        after = step.version_after
        return "" if after is None else f"v{after}"
    first, last = step.commits[0].version, step.commits[-1].version
    return f"v{last}" if first == last else f"v{first}..v{last}"


def message(step: StepOutcome) -> str:
    """Say why a step did not simply succeed: its error, its note, or the words for its status."""
    if step.error:
        return f"{printable(step.error.code)}: {printable(step.error.what)}"
    if step.status is StepStatus.INCOMPLETE and step.vacuum and step.vacuum.remaining:
        remaining = len(step.vacuum.remaining)
        return f"{remaining:,} of {count_of(remaining + step.vacuum.num_files_deleted, 'file')} could not be deleted"
    return printable(step.note) if step.note else STEP_ENDS[step.status].message


def said_of(step: StepOutcome) -> str:
    """Say the same; nothing of a step that simply succeeded."""
    return "" if step.status is StepStatus.SUCCEEDED and not step.error else message(step)


def verified_detail(event: Verified) -> str:
    """Say what a check compared: ``rows 41,220,917 (v77 = v78), content equal``."""
    parts = []
    before, after = event.rows_before, event.rows_after
    old, new = _version(event.version_before, "before"), _version(event.version_after, "after")
    if before is not None and after is not None:
        if before == after:
            parts.append(f"rows {after:,} ({old} = {new})")
        else:
            parts.append(f"rows {before:,} ({old}) but {after:,} ({new})")
    elif after is not None:
        parts.append(f"rows {after:,} ({new})")
    if event.content_equal is not None:
        parts.append("content equal" if event.content_equal else "content DIFFERS")
    if event.num_files_checked is not None and event.result == "pass":
        parts.append(f"all {count_of(event.num_files_checked, 'file')} of {new} exist")
    parts += [assertion_text(each) for each in event.assertions if each.outcome != "pass" and not each.failed_before]
    if passed := sum(assertion.outcome == "pass" for assertion in event.assertions):
        of_all = "" if passed == len(event.assertions) else f" of {len(event.assertions):,}"
        parts.append(f"{passed:,}{of_all} checks passed" if of_all else f"{count_of(passed, 'check')} passed")
    if event.detail:  # it names the checks that failed before as well
        parts.append(printable(event.detail))
    return ", ".join(parts)


def time_text(outcome: RunOutcome) -> str:
    """Print what the command took, and its parts where any came before the run: ``41.0s (start 24.9s, ...)``."""
    before = outcome.preparation
    total = format_duration(outcome.total_seconds)
    if not before.start_seconds and not before.planning_seconds:
        return total
    seconds = {"start": before.start_seconds, "planning": before.planning_seconds, "run": outcome.duration_seconds}
    return f"{total} ({', '.join(f'{part} {format_duration(took)}' for part, took in seconds.items())})"


def _version(version: int | None, otherwise: str) -> str:
    return otherwise if version is None else f"v{version}"


def assertion_text(assertion: Assertion) -> str:
    """Print an assertion in one line: ``expect_x(column): expected 3, observed 4``, or why it could not be checked."""
    name = printable(assertion.expectation) + (f"({printable(assertion.column)})" if assertion.column else "")
    if assertion.outcome == "error":
        return f"{name}: could not check: {printable(assertion.error or 'no reason given')}"
    facts = []
    if assertion.expected is not None:
        facts.append(f"expected {printable(assertion.expected)}")
    if assertion.observed is not None:
        facts.append(f"observed {printable(assertion.observed)}")
    if assertion.carried_from is not None:
        facts.append(f"run at version {assertion.carried_from}, which has the same rows by proof")
    if assertion.outcome == "fail" and assertion.error:
        facts.append(printable(assertion.error))
    return f"{name}: {', '.join(facts) or assertion.outcome}"


MAX_WIDTH = 110


def details(step: StepOutcome) -> list[str]:
    """Return what only who asks for everything reads: Delta's metrics, and what was wrong in the log."""
    wrong = [text for proof in step.proofs for text in proof.source_statistics.wrong]
    note = [printable(step.note)] if step.note else []
    return [*note, *metrics_lines(step), *(f"wrong in the log: {printable(text)}" for text in wrong)]


def metrics_lines(step: StepOutcome) -> list[str]:
    """Return a step's metrics as ``name value`` pairs under Delta's names; none where nothing is rewritten."""
    if step.metrics is None:
        return []
    lines: list[str] = []
    for name, value in _flat("", encode(step.metrics)):
        pair = f"{name} {value}"
        if lines and len(lines[-1]) + len(pair) + 3 <= MAX_WIDTH:
            lines[-1] += f"   {pair}"
        else:
            lines.append(pair)
    return lines


def _flat(prefix: str, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield dotted names and their values; values that are missing or false are passed over."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(f"{prefix}{key}.", value)
        elif value is not None and value is not False:
            yield f"{prefix}{key}", f"{value:.1f}" if isinstance(value, float) else str(value)
