"""What `verify` found, as text, JUnit XML and annotations."""

from __future__ import annotations

from collections.abc import Iterator

from maintainer.model.run.commit_verdict import (
    CheckResult,
    CommitCheck,
    CommitVerification,
    TableVerification,
    VerifyRun,
)
from maintainer.report.run.github_annotations import Annotation
from maintainer.report.run.junit_xml import Case, Suite, render_suites
from maintainer.report.text.style import PLAIN, Role, Style
from maintainer.report.text.text_layout import count, iso_utc, printable
from maintainer.units import format_duration

WORDS = {
    CheckResult.PROVEN: ("proven", Role.GOOD),
    CheckResult.WRONG: ("WRONG", Role.BAD),
    CheckResult.NOT_CHECKED: ("could not check", Role.WARN),
}
"""How a check ended, in words; the words carry the meaning."""

_KINDS = {
    "rewrite": "claims to change no data",
    "data_change": "changes data: only the files of its version can be checked",
    "other": "adds and removes no files: only the files of its version can be checked",
}


def render_verify(run: VerifyRun, style: Style = PLAIN) -> str:
    """Return all answers as text, ending in a newline."""
    lines: list[str] = []
    for one in run.tables:
        lines += [*_table(one, style), ""]
    totals = ", ".join(f"{run.count(result):,} {WORDS[result][0]}" for result in CheckResult if run.count(result))
    lines.append(f"{count(len(run.tables), 'table')}: {totals or 'none selected'}, "
                 f"{format_duration(run.duration_seconds)}   run {run.run_id}")  # fmt: skip
    return "\n".join(lines) + "\n"


def verify_line(one: TableVerification, style: Style = PLAIN) -> str:
    """One table on one line, for progress."""
    word, role = WORDS[one.result]
    version = "" if one.commit is None else f"@{one.commit.version}"
    return f"{style.paint(word, role)}  {printable(one.ref.identifier)}{version}"


def _table(one: TableVerification, style: Style) -> Iterator[str]:
    commit = one.commit
    if commit is None:
        yield verify_line(one, style)
        if one.problem is not None:
            yield f"  {one.problem.code}: {printable(one.problem.what)}"
            if one.problem.help:
                yield f"  help: {printable(one.problem.help)}"
        return
    yield style.paint(f"{printable(one.ref.identifier)}@{commit.version}", Role.BOLD) + f"  {_about(commit)}"
    for check in commit.checks:
        yield from _check(check, style)
    if commit.uncovered_columns:
        yield f"  note: the fingerprint does not cover {printable(', '.join(commit.uncovered_columns))}"
    if one.quarantined:
        yield f"  in quarantine: {printable(one.quarantined)}"
    if one.note:
        yield f"  note: {printable(one.note)}"


def _about(commit: CommitVerification) -> str:
    who = f"run {commit.run_id}" if commit.run_id else commit.engine or "unknown engine"
    when = iso_utc(commit.committed_at_ms) if commit.committed_at_ms else "at an unknown time"
    files = f"{commit.num_files_removed:,} -> {count(commit.num_files_added, 'file')}"
    moved = f", {files}" if commit.num_files_removed or commit.num_files_added else ""
    return printable(f"{commit.operation} by {who}, {when}{moved}; {_KINDS[commit.kind]}")


def _check(check: CommitCheck, style: Style) -> Iterator[str]:
    word, role = WORDS[check.result]
    detail = (check.detail or "").split("\n")
    head = f"  {style.paint(word, role)}: {printable(check.name)}"
    if check.result is CheckResult.WRONG:
        yield head
        yield from (f"      {printable(line)}" for line in detail if line)
    else:
        yield head + (f" ({printable(check.detail)})" if check.detail else "")


def verify_junit(run: VerifyRun) -> str:
    """Return a verification as JUnit XML: a suite is a table, a case a check; what could not be checked, an error."""
    suites = [_suite(one) for one in run.tables]
    return render_suites("maintainer verify", run.started_at_ms, run.duration_seconds, suites)


def _suite(one: TableVerification) -> Suite:
    if one.commit is None:
        what = "" if one.problem is None else f"{one.problem.code}: {one.problem.what}"
        return Suite(one.ref.identifier, 0.0, [Case("verify", 0.0, "error", what)])
    element = {CheckResult.PROVEN: None, CheckResult.WRONG: "failure", CheckResult.NOT_CHECKED: "error"}
    cases = [
        Case(f"v{one.commit.version} {check.level}: {check.name}", 0.0, element[check.result],
             (check.detail or "").split("\n")[0], check.detail or "")
        for check in one.commit.checks
    ]  # fmt: skip
    return Suite(one.ref.identifier, one.commit.duration_seconds, cases)


def verify_annotations(run: VerifyRun) -> list[Annotation]:
    """Return an error for each wrong check and a warning for each that could not be made, the worst first."""
    found = []
    for one in run.tables:
        name = one.ref.identifier
        if one.commit is None:
            text = "" if one.problem is None else f"{one.problem.code}: {one.problem.what}"
            found.append(Annotation("warning", "maintainer verify", f"{name}: could not check: {text}"))
            continue
        for check in one.commit.checks:
            if check.result is not CheckResult.PROVEN:
                kind = "error" if check.result is CheckResult.WRONG else "warning"
                word = WORDS[check.result][0]
                text = f"{name}@{one.commit.version}: {word}: {check.name}\n{check.detail or ''}".rstrip()
                found.append(Annotation(kind, "maintainer verify", text))
    return sorted(found, key=lambda annotation: annotation.kind)
