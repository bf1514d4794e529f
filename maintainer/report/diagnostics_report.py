"""Findings of ``validate``: as text, JSON, GitHub annotations, JUnit XML and SARIF."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from maintainer.errors.foreign_text import visible_json
from maintainer.model.product_version import __version__
from maintainer.policy.diagnostics import Diagnostic, Severity, text_of
from maintainer.policy.schema.schema_keys import code_titles, describe
from maintainer.policy.yaml.yaml_reader import read_bytes
from maintainer.report import findings
from maintainer.report.document.blocks import Heading, Line, Row, TableBlock
from maintainer.report.document.markdown_writer import markdown_text
from maintainer.report.findings import Case, Finding, Suite, render_annotations, render_suites
from maintainer.report.style import PLAIN, Role, Style
from maintainer.report.text_layout import display_width, printable
from maintainer.units import count_of

FORMAT_VERSION = "1"


@dataclass(frozen=True)
class DiagnosticsReport:
    """All findings of one ``validate``, sorted, and where they are.

    ``files_read`` counts every file, ``policies`` tables and rules, ``managing_rules`` those with ``manage: true``,
    whose tables nobody has looked for; ``no_table_yet`` is whether these are all and have no place to look in.
    ``folder`` is the project's folder relative to the repository, as annotations
    need it; empty where both are the same.
    """

    diagnostics: tuple[Diagnostic, ...]
    files_read: int
    policies: int
    seconds: float = 0.0
    strict: bool = False
    folder: str = ""
    managing_rules: int = 0
    no_table_yet: bool = False
    misplaced: tuple[str, ...] | None = None
    """Files outside policies/ that look like policies; None in a project with policies."""
    texts: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Files that no project holds, such as what was typed in an editor: their texts by their names."""

    @property
    def errors(self) -> int:
        """Findings that make a file invalid."""
        return sum(diagnostic.is_error for diagnostic in self.diagnostics)

    @property
    def warnings(self) -> int:
        """Findings that do so only with ``--strict``."""
        return len(self.diagnostics) - self.errors

    @property
    def failed(self) -> bool:
        """Whether the command ends in 1."""
        return self.errors > 0 or (self.strict and (bool(self.diagnostics) or self.misplaced is not None))

    def summary(self) -> str:
        """Say in one line what is wrong in how many files, and how long it took."""
        took = f"({self.seconds:.2f} s)"
        if not self.diagnostics:
            rules = count_of(self.managing_rules, "rule")
            more = f"; tables of {rules} are looked for when planning" if self.managing_rules else ""
            more = "; no table is managed yet: `roots` in maintainer.yml is empty" if self.no_table_yet else more
            if self.misplaced is not None:
                alike = f", but these look like policies: {', '.join(self.misplaced)}" if self.misplaced else ""
                more = f"; policies/ has no file that ends in .yml or .yaml{alike}"
            return f"{count_of(self.policies, 'policy', 'policies')} valid {took}{more}"
        files = len({diagnostic.file for diagnostic in self.diagnostics})
        numbers = ((self.errors, "error"), (self.warnings, "warning"))
        findings = " and ".join(count_of(number, noun) for number, noun in numbers if number)
        return f"Found {findings} in {files:,} of {count_of(self.files_read, 'file')} {took}."


LinesOf = Callable[[str], list[str]]
"""The lines of a file, from which excerpts are cut; none where it cannot be shown."""


def project_lines(root: Path, texts: Mapping[str, str]) -> LinesOf:
    """Return what reads the files of a project again, one at a time; ``texts`` are files that it does not hold."""

    @lru_cache(maxsize=1)
    def lines(file: str) -> list[str]:
        text = texts.get(file)
        if text is None:
            content = read_bytes(root / file, root)
            if isinstance(content, Diagnostic):
                return []
            text = content.decode("utf-8-sig", errors="replace")
        return text_of(file)(text.replace("\r\n", "\n")).split("\n")

    return lines


WIDEST_LINE = 110
"""Longer source lines are shown as a piece around the place that is meant."""

_CONTEXT = 30
_ROLES = {Severity.ERROR: Role.BAD, Severity.WARNING: Role.WARN}


def render_full(report: DiagnosticsReport, lines_of: LinesOf, style: Style = PLAIN) -> Iterator[str]:
    """Yield the lines of every finding with its excerpt, then the summary; never all of them in memory."""
    for finding in report.diagnostics:
        yield from _finding(finding, lines_of(finding.file), style)
        yield ""
    yield from _closing(report, style)


def render_concise(report: DiagnosticsReport, style: Style = PLAIN) -> Iterator[str]:
    """Yield one line per finding, then the summary."""
    yield from finding_lines(report.diagnostics, style)
    yield from _closing(report, style)


def finding_lines(findings: Iterable[Diagnostic], style: Style = PLAIN) -> Iterator[str]:
    """Yield one line per finding: ``file:line:column: error[P201] message; help``."""
    for finding in findings:
        kind = style.paint(f"{finding.severity.value}[{finding.code}]", _ROLES[finding.severity])
        help = f"; {printable(finding.help)}" if finding.help else ""
        yield f"{printable(finding.place)}: {kind} {printable(finding.message)}{help}"


def _key_of(message: str) -> str | None:
    """Return the key that a message begins with, or the map that it is in; None where it begins with none."""
    name = re.match(r"[A-Za-z][\w.\[\]-]*", message, re.ASCII)
    parts = re.sub(r"\[[0-9]+\]", "", name[0]).rstrip(".").split(".") if name else []
    if len(parts) < 2 and not re.match(r"[\w\[\]]+(?:: | must | is empty| has | cannot | uses )", message, re.ASCII):
        return None
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((key for key in names if describe(key) is not None), None)


def _closing(report: DiagnosticsReport, style: Style) -> Iterator[str]:
    role = Role.BAD if report.failed else Role.WARN if report.diagnostics else Role.GOOD
    key = next(filter(None, (_key_of(diagnostic.message) for diagnostic in report.diagnostics)), None)
    hint = f" `maintainer schema {key}` explains the key." if key else ""
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
    yield f"{' ' * gutter}--> {printable(finding.place)}"
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
    # An order to a pipeline of Azure, wherever it stands; one character for one, so that the caret fits.
    text = re.sub(r"#(?=#(?:vso)?\[)", "\N{REPLACEMENT CHARACTER}", text)
    text = "..." + text[start + 3 : end] if start and len(text) > start else text[start:end]
    return text[:-3] + "..." if len(line) > end else text


def _caret(finding: Diagnostic, line: str, start: int, end: int) -> str:
    """Underline the span, at least one character, at most to the end of its first line."""
    span = finding.span
    first = span.column - 1
    last = span.end_column - 1 if span.end_line == span.line else len(line)
    before = _piece(line, start, end)[: first - start]
    marked = line[first : min(max(last, first + 1), end)]
    return " " * display_width(before) + "^" * max(display_width(marked), 1)


def render_json(report: DiagnosticsReport) -> str:
    """Return one JSON document; ``schemas/validate.schema.json`` describes it."""
    document = {
        "format_version": FORMAT_VERSION,
        "maintainer": __version__,
        "valid": not report.failed,
        "strict": report.strict,
        "files": report.files_read,
        "policies": report.policies,
        "managing_rules": report.managing_rules,
        "errors": report.errors,
        "warnings": report.warnings,
        "elapsed_seconds": round(report.seconds, 3),
        "diagnostics": [_as_json(diagnostic) for diagnostic in report.diagnostics],
    }
    return visible_json(json.dumps(document, indent=2, ensure_ascii=False))


def _as_json(diagnostic: Diagnostic) -> dict[str, Any]:
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity.value,
        "title": code_titles()[diagnostic.code],
        "message": diagnostic.message,
        "help": diagnostic.help,
        "file": diagnostic.file,
        **asdict(diagnostic.span),
    }


def render_github(report: DiagnosticsReport) -> str:
    """Return annotations, errors first, then the summary as plain text."""
    errors_first = sorted(_findings(report), key=lambda finding: list(Severity).index(finding.severity))
    return render_annotations(errors_first) + report.summary()


def render_step_summary(report: DiagnosticsReport) -> str:
    """Return Markdown: the summary line and a table of all findings."""
    rows = [
        Row((finding.place, f"{finding.severity.value} {finding.code}: {finding.message}", finding.help or ""))
        for finding in report.diagnostics
    ]
    table = [TableBlock(("place", "finding", "help"), rows)] if rows else []
    return markdown_text([Heading("maintainer validate", 1), Line(report.summary()), *table])


def render_junit(report: DiagnosticsReport) -> str:
    """Return JUnit XML: a suite for each file with findings, a case for each; one passing case without any.

    A warning is a failure only with ``--strict``; otherwise its case passes and carries the text.
    """
    by_file = groupby(report.diagnostics, key=attrgetter("file"))
    suites = [Suite(file, [_case(each, report.strict) for each in diagnostics]) for file, diagnostics in by_file]
    valid = Suite("maintainer validate", [Case(report.summary())])
    return render_suites("maintainer validate", suites or [valid], report.seconds)


def _case(diagnostic: Diagnostic, strict: bool) -> Case:
    place = f"{diagnostic.span.line}:{diagnostic.span.column}"
    name = f"{diagnostic.code} {code_titles()[diagnostic.code]} at {place}"
    body = f"{diagnostic.place}: {diagnostic.message}" + (f"\nhelp: {diagnostic.help}" if diagnostic.help else "")
    attributes = {"file": diagnostic.file, "line": str(diagnostic.span.line)}
    if diagnostic.is_error or strict:
        return Case(name, 0.0, "failure", diagnostic.message, body, diagnostic.code, attributes)
    return Case(name, body=f"warning: {body}", attributes=attributes)


def render_sarif(report: DiagnosticsReport) -> str:
    """Return a SARIF 2.1.0 log."""
    return findings.render_sarif(_findings(report), code_titles().__getitem__, report.files_read)


def _findings(report: DiagnosticsReport) -> list[Finding]:
    findings, folder = [], f"{report.folder}/" if report.folder else ""
    for each in report.diagnostics:
        file = each.file if each.file.startswith("/") else f"{folder}{each.file}"
        findings.append(Finding(each.severity, each.code, each.message, each.help or "", file=file, span=each.span))
    return findings
