"""The result of ``verify`` as text, JUnit XML and findings."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from maintainer.model.run.commit_verdict import (
    VERDICTS,
    CheckResult,
    CommitCheck,
    CommitVerification,
    TableVerification,
    VerifyRun,
    lift_help,
)
from maintainer.policy.diagnostics import Severity
from maintainer.report.document.blocks import Line, Statement, Subject, Subjects
from maintainer.report.document.folding import nameless
from maintainer.report.document.terminal_writer import terminal_text
from maintainer.report.findings import Case, Finding, Suite, render_suites
from maintainer.report.run.run_findings import joined
from maintainer.report.run.run_text import symbol_of
from maintainer.report.style import PLAIN, Role, Style, Symbol
from maintainer.report.text_layout import PROOF_WORDS, iso_utc, printable, unsearched
from maintainer.units import by_cause, count_of, format_duration

WORDS = {
    CheckResult.PROVEN: (PROOF_WORDS["pass"], Role.GOOD),
    CheckResult.FILES_ONLY: ("files only, no rows compared", Role.GOOD),
    CheckResult.WRONG: ("WRONG", Role.BAD),
    CheckResult.NOT_CHECKED: (PROOF_WORDS["error"], Role.WARN),
    CheckResult.SPELLED_ANEW: (PROOF_WORDS["spelled_anew"], Role.WARN),
    CheckResult.NOTED: ("note", Role.WARN),
}
"""How a check ended, in words; the words carry the meaning."""

_ELEMENTS = {CheckResult.WRONG: "failure", CheckResult.NOT_CHECKED: "error", CheckResult.SPELLED_ANEW: "error"}

_KINDS = {
    "rewrite": "claims to change no data",
    "data_change": "changes data: only the files of its version can be checked",
    "other": "adds and removes no files: only the files of its version can be checked",
}


def render_verify(run: VerifyRun, style: Style = PLAIN, *, verbose: bool = False) -> str:
    """Return all results as text, ending in a newline.

    Tables of which nothing was checked for one cause are one, if not ``verbose``.
    """
    subjects = [_subject(group) for group in by_cause(run.tables, lambda table: None if verbose else _cause(table))]
    counts = [(run.count(result), WORDS[result][0]) for result in VERDICTS]
    totals = ", ".join(f"{number:,} {word}" for number, word in counts if number)
    of_ledger = "".join(f"; our own ledger: {WORDS[table.result][0]}" for table in run.tables if table.is_ledger)
    took = f"{format_duration(run.duration_seconds)}   run {run.run_id}"
    places = sum(table.is_place for table in run.tables)
    tables = count_of(len(run.user_tables) - places, "table")
    end = f"{tables}: {totals or 'none selected'}{unsearched(places)}{of_ledger}, {took}"
    return terminal_text([Subjects(subjects), Line(), Line(end)], style)


def _cause(table: TableVerification) -> object:
    problem = table.problem
    if problem is None or table.commit is not None:
        return None
    what, to_do = (nameless(said, table.ref.identifier) for said in (problem.what, problem.help))
    return (table.is_place, problem.code, what, to_do)


def verify_line(table: TableVerification, style: Style = PLAIN) -> str:
    """Print one table on one line, for progress."""
    word, role = WORDS[table.result]
    version = "" if table.commit is None else f"@{table.commit.version}"
    return f"{style.paint(word, role)}  {printable(table.ref.identifier)}{version}"


def _subject(tables: Sequence[TableVerification]) -> Subject:
    first, names = tables[0], tuple(table.ref.identifier for table in tables)
    symbol, commit = symbol_of(WORDS[first.result][1]), first.commit
    if commit is not None:
        statements = (*map(_check, commit.checks), *_remarks(first, commit))
        return Subject(symbol, (f"{names[0]}@{commit.version}",), statements, place=_about(commit))
    facts = (_problem(first),) if first.problem else ()
    help_text = (first.problem and first.problem.help) or ""
    said = Statement(symbol, WORDS[first.result][0], facts, help=help_text)
    return Subject(symbol, names, (said,), noun="place" if first.is_place else "table")


def _about(commit: CommitVerification) -> str:
    when = iso_utc(commit.committed_at_ms) if commit.committed_at_ms else "at an unknown time"
    files = f"{commit.num_files_removed:,} -> {count_of(commit.num_files_added, 'file')}"
    moved = f", {files}" if commit.num_files_removed or commit.num_files_added else ""
    return f"{commit.operation} by {commit.who}, {when}{moved}; {_KINDS[commit.kind]}"


def _check(check: CommitCheck) -> Statement:
    word, role = WORDS[check.result]
    if check.result in (CheckResult.WRONG, CheckResult.SPELLED_ANEW, CheckResult.NOTED):
        # What was found comes first: the name says what would be right.
        found, *more = (check.detail or f"not true: {check.name}").split("\n")
        return Statement(symbol_of(role), word, (found,), below=(*filter(None, more), f"checked: {check.name}"))
    detail = f" ({check.detail})" if check.detail else ""
    return Statement(symbol_of(role), word, (f"{check.name}{detail}",))


def _remarks(table: TableVerification, commit: CommitVerification) -> Iterator[Statement]:
    """Say what else a person should know: columns that no fingerprint covers, the quarantine, what verify noted."""
    if commit.uncovered_columns:
        columns = ", ".join(commit.uncovered_columns)
        yield Statement(Symbol.SAME, "note", (f"the fingerprint does not cover {columns}",))
    begins = commit.content_is_wrong and not table.is_accepted
    if table.quarantined or begins:
        at = f"{table.ref.identifier}@{commit.version}" if commit.content_is_wrong else table.ref.identifier
        why = table.quarantined or "from now on: no run changes the table"
        help_text = "" if table.is_accepted else lift_help(shlex.quote(at))
        yield Statement(Symbol.BLOCKED, "in quarantine", (why,), help=help_text)
    if table.note:
        yield Statement(Symbol.SAME, "note", (table.note,))


def verify_junit(run: VerifyRun) -> str:
    """Return a verification as JUnit XML: a suite is a table, a case a check; what could not be checked, an error.

    Our own ledger has a suite only when it was not proven.
    """
    suites = [_suite(table) for table in run.tables if not table.is_ledger or table.result in _ELEMENTS]
    return render_suites("maintainer verify", suites, run.duration_seconds, run.started_at_ms)


def _suite(table: TableVerification) -> Suite:
    commit = table.commit
    if commit is None:
        return Suite(table.ref.identifier, [Case("verify", element="error", message=_problem(table))])
    cases = []
    for check in commit.checks:
        detail = check.detail or ""
        name = f"v{commit.version} {check.level}: {check.name}"
        cases.append(Case(name, 0.0, _ELEMENTS.get(check.result), detail.split("\n")[0], detail))
    return Suite(table.ref.identifier, cases, commit.duration_seconds)


def _problem(table: TableVerification) -> str:
    return "" if table.problem is None else f"{table.problem.code}: {table.problem.what}"


def verify_findings(run: VerifyRun) -> list[Finding]:
    """Return an error for each wrong check, a warning for each note and each that could not be made; errors first."""
    findings = []
    for table in run.tables:
        name, commit = table.ref.identifier, table.commit
        if commit is None:
            findings.append(Finding(Severity.WARNING, "verify", f"could not check: {_problem(table)}", table=name))
            continue
        for check in commit.checks:
            if check.result is not CheckResult.PROVEN:
                severity = Severity.ERROR if check.result is CheckResult.WRONG else Severity.WARNING
                what = f"{WORDS[check.result][0]}: {check.name}\n{check.detail or ''}".rstrip()
                findings.append(Finding(severity, "verify", what, table=f"{name}@{commit.version}"))
    return joined(sorted(findings, key=lambda finding: finding.severity is not Severity.ERROR))
