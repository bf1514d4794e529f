"""Findings for GitHub: annotations on the lines of a pull request, and a table in the step summary."""

from __future__ import annotations

from collections.abc import Iterator

from maintainer.policy.diagnostics.diagnostics import Diagnostic, Severity
from maintainer.report.text.markdown import escaped
from maintainer.report.text.text_layout import count
from maintainer.report.validate.diagnostics_report import DiagnosticsReport

MAX_ANNOTATIONS = 10
"""Per kind and step: GitHub drops what comes after."""

MAX_SUMMARY_BYTES = 900_000
"""GitHub refuses a step summary over 1 MiB as a whole."""


def render_github(report: DiagnosticsReport) -> Iterator[str]:
    """Yield workflow commands for the first findings of each kind, then the summary as plain text."""
    left_out = 0
    for severity in Severity:
        findings = [finding for finding in report.diagnostics if finding.severity is severity]
        left_out += max(0, len(findings) - MAX_ANNOTATIONS)
        for finding in findings[:MAX_ANNOTATIONS]:
            yield _annotation(finding, report)
    if left_out:
        yield f"{count(left_out, 'finding')} without an annotation: the step summary lists all"
    yield report.summary()


def _annotation(finding: Diagnostic, report: DiagnosticsReport) -> str:
    span = finding.span
    properties = [
        f"title=maintainer {finding.code}",
        f"file={_property(report.path_in_repository(finding.file))}",
        f"line={span.line}",
    ]
    if span.line == span.end_line:
        # GitHub refuses columns of a span over several lines.
        properties += [f"col={span.column}", f"endLine={span.end_line}", f"endColumn={span.end_column}"]
    else:
        properties += [f"endLine={span.end_line}"]
    text = finding.message + (f"\nhelp: {finding.help}" if finding.help else "")
    return f"::{finding.severity.value} {','.join(properties)}::{_command_text(text)}"


def _command_text(text: str) -> str:
    """Escape the message of a workflow command; a bare line feed would end it."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Escape a property of a workflow command."""
    return _command_text(text).replace(":", "%3A").replace(",", "%2C")


def render_step_summary(report: DiagnosticsReport) -> str:
    """Return Markdown: the summary line and a table of all findings, cut before GitHub would refuse it."""
    lines = ["### maintainer validate", "", escaped(report.summary()), ""]
    if report.diagnostics:
        lines += ["| place | finding | help |", "| --- | --- | --- |"]
    size = sum(len(line.encode()) + 1 for line in lines)
    for index, finding in enumerate(report.diagnostics):
        place = f"{finding.file}:{finding.span.line}:{finding.span.column}"
        what = f"{finding.severity.value} {finding.code}: {finding.message}"
        row = f"| {escaped(place)} | {escaped(what)} | {escaped(finding.help or '')} |"
        size += len(row.encode()) + 1
        if size > MAX_SUMMARY_BYTES:
            lines += ["", f"... and {count(len(report.diagnostics) - index, 'more finding')}"]
            break
        lines.append(row)
    return "\n".join(lines) + "\n"
