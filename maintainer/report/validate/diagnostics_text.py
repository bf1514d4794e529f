"""Findings for people: with an excerpt and a caret, or one line each."""

from __future__ import annotations

from collections.abc import Iterator

from maintainer.policy.diagnostics import Diagnostic, Severity
from maintainer.report.text.style import PLAIN, Role, Style
from maintainer.report.text.text_layout import display_width, printable
from maintainer.report.validate.diagnostics_report import DiagnosticsReport, Sources

WIDEST_LINE = 110
"""Longer source lines are shown as a piece around the place that is meant."""

_CONTEXT = 30
_ROLES = {Severity.ERROR: Role.BAD, Severity.WARNING: Role.WARN}


def render_full(report: DiagnosticsReport, sources: Sources, style: Style = PLAIN) -> Iterator[str]:
    """Yield the lines of every finding with its excerpt, then the summary; never all of them in memory."""
    for finding in report.diagnostics:
        yield from _finding(finding, sources.lines(finding.file), style)
        yield ""
    yield from _closing(report, style)


def render_concise(report: DiagnosticsReport, style: Style = PLAIN) -> Iterator[str]:
    """Yield one line per finding, ``file:line:column: error[P201] message; help``, then the summary."""
    for finding in report.diagnostics:
        place = f"{printable(finding.file)}:{finding.span.line}:{finding.span.column}"
        kind = style.paint(f"{finding.severity.value}[{finding.code}]", _ROLES[finding.severity])
        help = f"; {printable(finding.help)}" if finding.help else ""
        yield f"{place}: {kind} {printable(finding.message)}{help}"
    yield from _closing(report, style)


def _closing(report: DiagnosticsReport, style: Style) -> Iterator[str]:
    role = Role.BAD if report.failed else Role.WARN if report.diagnostics else Role.GOOD
    hint = " `maintainer schema vacuum.retention` explains a key." if report.diagnostics else ""
    yield style.paint(report.summary(), role) + hint


def _finding(finding: Diagnostic, lines: list[str], style: Style) -> Iterator[str]:
    span = finding.span
    role = _ROLES[finding.severity]
    shown = [number for number in (span.line - 1, span.line, span.line + 1) if 0 < number <= len(lines)]
    # The empty line behind the last line feed is no line to a person.
    if shown and shown[-1] == len(lines) and shown[-1] != span.line and not lines[-1]:
        shown.pop()
    gutter = len(str(shown[-1])) if shown else 1
    heading = style.paint(f"{finding.severity.value}[{finding.code}]", role)
    yield f"{heading}: {style.paint(printable(finding.message), Role.BOLD)}"
    yield f"{' ' * gutter}--> {printable(finding.file)}:{span.line}:{span.column}"
    if span.line in shown:
        bar = style.paint("|", Role.DIM)
        start, end = _window(lines[span.line - 1], span.column - 1)
        yield f"{' ' * gutter} {bar}"
        for number in shown:
            text = _piece(lines[number - 1], start, end)
            yield f"{number:>{gutter}} {bar} {text}".rstrip()
            if number == span.line:
                yield f"{' ' * gutter} {bar} {style.paint(_caret(finding, lines[number - 1], start, end), role)}"
    if finding.help:
        yield f"{' ' * gutter} = help: {printable(finding.help)}"


def _window(line: str, column: int) -> tuple[int, int]:
    """Return the part of a long line to show: around the column, the same for the lines above and below."""
    if len(line) <= WIDEST_LINE:
        return 0, WIDEST_LINE
    start = max(0, min(column - _CONTEXT, len(line) - WIDEST_LINE))
    return start, start + WIDEST_LINE


def _piece(line: str, start: int, end: int) -> str:
    """Cut a line, with ``...`` where something is missing; every character takes its usual room."""
    text = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in line)
    if start and len(text) > start:
        text = "..." + text[start + 3 : end]
    else:
        text = text[start:end]
    return text[:-3] + "..." if len(line) > end else text


def _caret(finding: Diagnostic, line: str, start: int, end: int) -> str:
    """Underline the span, at least one character, at most to the end of its first line."""
    span = finding.span
    first = span.column - 1
    last = span.end_column - 1 if span.end_line == span.line else len(line)
    before = _piece(line, start, end)[: first - start]
    marked = line[first : min(max(last, first + 1), end)]
    return " " * display_width(before) + "^" * max(display_width(marked), 1)
