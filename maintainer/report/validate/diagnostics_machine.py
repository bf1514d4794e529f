"""Findings for programs: one JSON document, JUnit XML, SARIF 2.1.0."""

from __future__ import annotations

import json
from itertools import groupby
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

from maintainer import __version__
from maintainer.policy.diagnostics.diagnostics import Diagnostic
from maintainer.report.text.text_layout import printable
from maintainer.report.validate.diagnostics_report import FORMAT_VERSION, DiagnosticsReport, title_of

MAX_SARIF_RESULTS = 25_000
"""What code hosts accept in one upload."""


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
        "diagnostics": [_as_json(finding) for finding in report.diagnostics],
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def _as_json(finding: Diagnostic) -> dict[str, Any]:
    span = finding.span
    return {
        "code": finding.code,
        "severity": finding.severity.value,
        "title": title_of(finding.code),
        "message": finding.message,
        "help": finding.help,
        "file": finding.file,
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
    }


def render_junit(report: DiagnosticsReport) -> str:
    """Return JUnit XML: a suite for each file with findings, a case for each finding, and one for the whole.

    A warning is a failure only with ``--strict``; otherwise its case passes and carries the text.
    """
    top = ElementTree.Element("testsuites", name="maintainer validate", time=f"{report.seconds:.3f}")
    whole = ElementTree.SubElement(top, "testsuite", name="maintainer validate", tests="1", failures="0")
    ElementTree.SubElement(whole, "testcase", name=printable(report.summary()), classname="maintainer")
    failures = 0
    for file, group in groupby(report.diagnostics, key=lambda finding: finding.file):
        findings = list(group)
        failed = sum(finding.is_error or report.strict for finding in findings)
        failures += failed
        name = printable(file)
        suite = ElementTree.SubElement(
            top, "testsuite", name=name, tests=str(len(findings)), failures=str(failed), errors="0", skipped="0"
        )
        for finding in findings:
            _add_case(suite, finding, report.strict)
    top.set("tests", str(len(report.diagnostics) + 1))
    top.set("failures", str(failures))
    ElementTree.indent(top)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(top, encoding="unicode")


def _add_case(suite: ElementTree.Element, finding: Diagnostic, strict: bool) -> None:
    place = f"{finding.span.line}:{finding.span.column}"
    name = f"{finding.code} {title_of(finding.code)} at {place}"
    case = ElementTree.SubElement(suite, "testcase", name=name, classname=suite.get("name", ""))
    case.set("file", suite.get("name", ""))
    case.set("line", str(finding.span.line))
    text = f"{printable(finding.file)}:{place}: {printable(finding.message)}"
    if finding.help:
        text += f"\nhelp: {printable(finding.help)}"
    if finding.is_error or strict:
        failure = ElementTree.SubElement(case, "failure", message=printable(finding.message), type=finding.code)
        failure.text = text
    else:
        ElementTree.SubElement(case, "system-out").text = f"warning: {text}"


def render_sarif(report: DiagnosticsReport) -> str:
    """Return a SARIF 2.1.0 log: one run, relative URIs, the code as the rule; at most `MAX_SARIF_RESULTS`."""
    shown = report.diagnostics[:MAX_SARIF_RESULTS]
    codes = sorted({finding.code for finding in shown})
    run = {
        "tool": {
            "driver": {
                "name": "maintainer",
                "version": __version__,
                "rules": [_sarif_rule(code) for code in codes],
            }
        },
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"%SRCROOT%": {"description": {"text": "The top folder of the repository."}}},
        "results": [_as_sarif(finding, codes, report) for finding in shown],
        "properties": {"files": report.files_read, "findings": len(report.diagnostics)},
    }
    log = {
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [run],
    }
    return json.dumps(log, indent=2, ensure_ascii=False)


def _sarif_rule(code: str) -> dict[str, Any]:
    """One code for a person who looks at a result in a code host: what it is, and where more is said."""
    title = title_of(code)
    more = f"The message of each result says what to write. docs/codes.md has the smallest example, under {code}."
    return {
        "id": code,
        "shortDescription": {"text": title},
        "fullDescription": {"text": f"{title[:1].upper()}{title[1:]}."},
        "help": {"text": more},
    }


def _as_sarif(finding: Diagnostic, codes: list[str], report: DiagnosticsReport) -> dict[str, Any]:
    span = finding.span
    text = finding.message + (f"\nhelp: {finding.help}" if finding.help else "")
    region = {
        "startLine": span.line,
        "startColumn": span.column,
        "endLine": span.end_line,
        "endColumn": max(span.end_column, span.column + 1) if span.end_line == span.line else span.end_column,
    }
    uri = quote(report.path_in_repository(finding.file))
    # A file outside the project has an absolute path: that is relative to nothing.
    artifact = {"uri": f"file://{uri}"} if uri.startswith("/") else {"uri": uri, "uriBaseId": "%SRCROOT%"}
    location = {"artifactLocation": artifact, "region": region}
    return {
        "ruleId": finding.code,
        "ruleIndex": codes.index(finding.code),
        "level": finding.severity.value,
        "message": {"text": text},
        "locations": [{"physicalLocation": location}],
    }
