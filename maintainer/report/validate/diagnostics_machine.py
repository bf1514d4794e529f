"""Findings of ``validate`` for programs: JSON, JUnit XML, SARIF, and GitHub's step summary."""

from __future__ import annotations

import json
from itertools import groupby
from typing import Any

from maintainer import __version__
from maintainer.policy.diagnostics import Diagnostic, Severity
from maintainer.report.findings import sarif_log
from maintainer.report.findings.finding import Finding
from maintainer.report.findings.github_annotations import render_annotations
from maintainer.report.findings.junit_xml import Case, Suite, render_suites
from maintainer.report.text.markdown import escaped, table
from maintainer.report.validate.diagnostics_report import FORMAT_VERSION, DiagnosticsReport, title_of


def render_json(report: DiagnosticsReport) -> str:
    """Return one JSON document; ``schemas/validate.schema.json`` describes it."""
    document = {
        "format_version": FORMAT_VERSION,
        "maintainer": __version__,
        "valid": not report.failed,
        "strict": report.strict,
        "files": report.files_read,
        "policies": report.policies,
        "errors": report.errors,
        "warnings": report.warnings,
        "elapsed_seconds": round(report.seconds, 3),
        "diagnostics": [_as_json(diagnostic) for diagnostic in report.diagnostics],
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def _as_json(diagnostic: Diagnostic) -> dict[str, Any]:
    span = diagnostic.span
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity.value,
        "title": title_of(diagnostic.code),
        "message": diagnostic.message,
        "help": diagnostic.help,
        "file": diagnostic.file,
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
    }


def render_github(report: DiagnosticsReport) -> str:
    """Return annotations, errors first, then the summary as plain text."""
    errors_first = sorted(_findings(report), key=lambda finding: list(Severity).index(finding.severity))
    return render_annotations(errors_first) + report.summary()


def render_step_summary(report: DiagnosticsReport) -> str:
    """Return Markdown: the summary line and a table of all findings."""
    rows = [
        (
            escaped(f"{_place(finding)}"),
            escaped(f"{finding.severity.value} {finding.code}: {finding.message}"),
            escaped(finding.help or ""),
        )
        for finding in report.diagnostics
    ]
    lines = ["### maintainer validate", "", escaped(report.summary()), ""]
    return "\n".join([*lines, *(table(("place", "finding", "help"), rows) if rows else [])]) + "\n"


def render_junit(report: DiagnosticsReport) -> str:
    """Return JUnit XML: a suite for each file with findings, a case for each; one passing case without any.

    A warning is a failure only with ``--strict``; otherwise its case passes and carries the text.
    """
    suites = [
        Suite(file, [_case(diagnostic, report.strict) for diagnostic in diagnostics])
        for file, diagnostics in groupby(report.diagnostics, key=lambda diagnostic: diagnostic.file)
    ]
    valid = Suite("maintainer validate", [Case(report.summary())])
    return render_suites("maintainer validate", suites or [valid], report.seconds)


def _case(diagnostic: Diagnostic, strict: bool) -> Case:
    place = f"{diagnostic.span.line}:{diagnostic.span.column}"
    name = f"{diagnostic.code} {title_of(diagnostic.code)} at {place}"
    body = f"{_place(diagnostic)}: {diagnostic.message}" + (f"\nhelp: {diagnostic.help}" if diagnostic.help else "")
    attributes = {"file": diagnostic.file, "line": str(diagnostic.span.line)}
    if diagnostic.is_error or strict:
        code = diagnostic.code
        return Case(name, 0.0, "failure", diagnostic.message, body, code, attributes)
    return Case(name, body=f"warning: {body}", attributes=attributes)


def render_sarif(report: DiagnosticsReport) -> str:
    """Return a SARIF 2.1.0 log."""
    return sarif_log.render_sarif(_findings(report), title_of, report.files_read)


def _findings(report: DiagnosticsReport) -> list[Finding]:
    """Return the findings with the paths that a code host needs."""
    return [
        Finding(
            diagnostic.severity,
            diagnostic.code,
            diagnostic.message,
            diagnostic.help or "",
            file=report.path_in_repository(diagnostic.file),
            span=diagnostic.span,
        )
        for diagnostic in report.diagnostics
    ]


def _place(diagnostic: Diagnostic) -> str:
    return f"{diagnostic.file}:{diagnostic.span.line}:{diagnostic.span.column}"
