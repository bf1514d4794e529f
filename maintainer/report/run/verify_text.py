"""The result of ``verify`` as text, JUnit XML and findings."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

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
from maintainer.report.findings import Case, Finding, Suite, render_suites
from maintainer.report.run.run_findings import joined
from maintainer.report.style import PLAIN, Role, Style
from maintainer.report.text_layout import alike, iso_utc, printable
from maintainer.units import by_cause, count_of, format_duration

WORDS = {
    CheckResult.PROVEN: ("proven", Role.GOOD),
    CheckResult.WRONG: ("WRONG", Role.BAD),
    CheckResult.NOT_CHECKED: ("could not check", Role.WARN),
    CheckResult.SPELLED_ANEW: ("SPELLED ANEW", Role.WARN),
    CheckResult.NOTED: ("note", Role.WARN),
}
"""How a check ended, in words; the words carry the meaning."""

_ELEMENTS = {CheckResult.WRONG: "failure", CheckResult.NOT_CHECKED: "error", CheckResult.SPELLED_ANEW: "error"}

_KINDS = {
    "rewrite": "claims to change no data",
    "data_change": "changes data: only the files of its version can be checked",
    "other": "adds and removes no files: only the files of its version can be checked",
}


def render_verify(run: VerifyRun, style: Style = PLAIN) -> str:
    """Return all results as text, ending in a newline."""
    lines: list[str] = []
    for group in by_cause(run.tables, _cause):
        lines += [*_table(group[0], style)]
        lines += [f"  {printable(alike([table.ref.identifier for table in group[1:]]))}"] if group[1:] else []
        lines.append("")
    totals = ", ".join(f"{run.count(result):,} {WORDS[result][0]}" for result in VERDICTS if run.count(result))
    of_ledger = "".join(f"; our own ledger: {WORDS[table.result][0]}" for table in run.tables if table.is_ledger)
    lines.append(f"{count_of(len(run.user_tables), 'table')}: {totals or 'none selected'}{of_ledger}, "
                 f"{format_duration(run.duration_seconds)}   run {run.run_id}")  # fmt: skip
    return "\n".join(lines) + "\n"


def _cause(table: TableVerification) -> object:
    problem = table.problem
    return None if table.commit is not None or problem is None else (problem.code, problem.what, problem.help)


def verify_line(table: TableVerification, style: Style = PLAIN) -> str:
    """Print one table on one line, for progress."""
    word, role = WORDS[table.result]
    version = "" if table.commit is None else f"@{table.commit.version}"
    return f"{style.paint(word, role)}  {printable(table.ref.identifier)}{version}"


def _table(table: TableVerification, style: Style) -> Iterator[str]:
    commit = table.commit
    if commit is None:
        yield verify_line(table, style)
        if table.problem is not None:
            yield f"  {table.problem.code}: {printable(table.problem.what)}"
            if table.problem.help:
                yield f"  help: {printable(table.problem.help)}"
        return
    yield style.paint(f"{printable(table.ref.identifier)}@{commit.version}", Role.BOLD) + f"  {_about(commit)}"
    for check in commit.checks:
        yield from _check(check, style)
    if commit.uncovered_columns:
        yield f"  note: the fingerprint does not cover {printable(', '.join(commit.uncovered_columns))}"
    if table.quarantined:
        yield f"  in quarantine: {printable(table.quarantined)}"
    elif commit.content_is_wrong and not table.is_accepted:
        yield "  in quarantine from now on: no run changes the table"
    if (table.quarantined or commit.content_is_wrong) and not table.is_accepted:
        at = f"{table.ref.identifier}@{commit.version}" if commit.content_is_wrong else table.ref.identifier
        yield f"  help: {printable(lift_help(shlex.quote(at)))}"
    if table.note:
        yield f"  note: {printable(table.note)}"


def _about(commit: CommitVerification) -> str:
    who = f"run {commit.run_id}" if commit.run_id else commit.engine or "unknown engine"
    when = iso_utc(commit.committed_at_ms) if commit.committed_at_ms else "at an unknown time"
    files = f"{commit.num_files_removed:,} -> {count_of(commit.num_files_added, 'file')}"
    moved = f", {files}" if commit.num_files_removed or commit.num_files_added else ""
    return printable(f"{commit.operation} by {who}, {when}{moved}; {_KINDS[commit.kind]}")


def _check(check: CommitCheck, style: Style) -> Iterator[str]:
    word, role = WORDS[check.result]
    detail = (check.detail or "").split("\n")
    if check.result in (CheckResult.WRONG, CheckResult.SPELLED_ANEW, CheckResult.NOTED):
        # What was found comes first: the name says what would be right.
        yield f"  {style.paint(word, role)}: {printable(detail[0] or f'not true: {check.name}')}"
        yield from (f"      {printable(line)}" for line in detail[1:] if line)
        yield f"      checked: {printable(check.name)}"
    else:
        head = f"  {style.paint(word, role)}: {printable(check.name)}"
        yield head + (f" ({printable(check.detail)})" if check.detail else "")


def verify_junit(run: VerifyRun) -> str:
    """Return a verification as JUnit XML: a suite is a table, a case a check; what could not be checked, an error.

    Our own ledger has a suite only when it was not proven.
    """
    suites = [_suite(table) for table in run.tables if not table.is_ledger or table.result is not CheckResult.PROVEN]
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
