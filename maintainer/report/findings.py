"""What a person has to know, for ``validate``, a run and ``verify`` alike: one ``Finding``, written for each reader.

GitHub annotations, JUnit XML and SARIF are written here and nowhere else. Which findings there are is decided in
``diagnostics_report`` and ``run``.

GitHub shows ten annotations of a kind for a step and drops the others without a word. So the first ten are printed,
the rest is counted, and all of them go to the step summary. In JUnit a suite is a table or a file, a case is a step,
a check or a finding: a ``failure`` was checked and is wrong, an ``error`` could not be done or checked, and what was
not tried is ``skipped``.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

from maintainer.errors.foreign_text import visible_json
from maintainer.model.product_version import __version__
from maintainer.policy.diagnostics import START_OF_FILE, Severity, SourceSpan
from maintainer.report.text_layout import iso_utc, printable
from maintainer.units import count_of, named

MAX_NAMES = 5
"""Tables named where one finding is about many of them."""

_PLACE = re.compile(r"(.+\.ya?ml)(?::([1-9][0-9]{0,8})(?::[0-9]+)?)?\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a person has to know.

    ``where`` is the place as the finding names it: ``file:line``, ``table@version`` or nothing. ``file`` is the policy
    file that it belongs to, ``span`` the exact place in that file. ``rank`` orders: 0 is a failed verification.
    ``tables`` are all that it is about where ``table`` only says how many.
    """

    severity: Severity
    code: str
    what: str
    help: str = ""
    table: str = ""
    step: str = ""
    where: str = ""
    file: str = ""
    span: SourceSpan | None = None
    notes: tuple[str, ...] = ()
    rank: int = 1
    tables: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """The notes, and below them the first of several tables."""
        return (*self.notes, *([named(self.tables, MAX_NAMES)] if self.tables else []))

    @property
    def headline(self) -> str:
        """The table, the step where it is about one, and what is wrong; for a finding about a file that alone."""
        subject = f"{self.table}, {self.step}" if self.step else self.table
        return f"{subject}: {self.what}" if self.table else self.what

    @property
    def text(self) -> str:
        """The headline, lines and help, one below the other."""
        return "\n".join([self.headline, *self.lines, *([f"help: {self.help}"] if self.help else [])])


def file_and_line(where: str | None, policy_file: str) -> tuple[str, int | None]:
    """Return the policy file and line that ``file:line`` or ``file:line:column`` names, else the file alone."""
    match = _PLACE.match(where or "")
    if match is None:
        return policy_file, None
    return match[1], None if match[2] is None else int(match[2])


MAX_PER_KIND = 10
MAX_SUMMARY_BYTES = 1024 * 1024
SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"
OUTPUT_VARIABLE = "GITHUB_OUTPUT"


def render_annotations(findings: Iterable[Finding]) -> str:
    """Return workflow commands, the first ten of each kind in the order given, each ending in a newline.

    A last plain line counts what was left out.
    """
    lines: list[str] = []
    numbers: Counter[Severity] = Counter()
    for finding in findings:
        numbers[finding.severity] += 1
        if numbers[finding.severity] <= MAX_PER_KIND:
            lines.append(_command(finding))
    more = {f"more {kind.value}": number - MAX_PER_KIND for kind, number in numbers.items()}
    if rest := [count_of(number, what) for what, number in more.items() if number > 0]:
        lines.append(f"{', '.join(rest)}: GitHub shows {MAX_PER_KIND} of a kind; all are in the step summary")
    return "".join(line + "\n" for line in lines)


def _command(finding: Finding) -> str:
    properties: dict[str, str | int | None] = {"title": f"maintainer {finding.code}".rstrip()}
    span = finding.span
    if span is None:
        file, line = file_and_line(finding.where, finding.file)
        properties |= {"file": file or None, "line": line}
    else:
        # GitHub misplaces an annotation that has columns and spans lines.
        columns = {"col": span.column, "endLine": span.end_line, "endColumn": span.end_column}
        several_lines = {"endLine": span.end_line}
        properties |= {"file": finding.file, "line": span.line}
        properties |= columns if span.line == span.end_line else several_lines
    text = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items() if value is not None)
    return f"::{finding.severity.value} {text}::{_message(finding.text)}"


def _message(text: str) -> str:
    """Escape a message: control characters as ``printable`` does, line ends and per cent as a command spells them."""
    visible = "".join(part if part in "\r\n" else printable(part) for part in re.split(r"([\r\n])", text))
    return visible.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")


def write_step_summary(markdown: str, environ: Mapping[str, str]) -> bool:
    """Append Markdown to the step summary, if there is one; return whether it was written.

    Never raises: a summary that cannot be written must not turn a good run red. A text that would make the file
    larger than GitHub takes (1 MiB) is cut at a line, and says so.
    """
    return _appended(environ.get(SUMMARY_VARIABLE), markdown, MAX_SUMMARY_BYTES)


def write_step_output(name: str, value: str, environ: Mapping[str, str]) -> bool:
    """Say a value to the later steps of a GitHub job, as ``steps.ID.outputs.NAME``; return whether it was written.

    Never raises, for the reason of ``write_step_summary``. A value of several lines is not written.
    """
    return len(value.splitlines()) <= 1 and _appended(environ.get(OUTPUT_VARIABLE), f"{name}={value}\n", sys.maxsize)


def _appended(path: str | None, text: str, most_bytes: int) -> bool:
    if not path:
        return False
    try:
        with Path(path).open("a", encoding="utf-8", errors="backslashreplace") as stream:
            text = cut_lines(text, most_bytes - stream.tell())
            stream.write(text)
    except (OSError, ValueError):
        return False
    return bool(text)


def cut_lines(text: str, max_bytes: int) -> str:
    """Return the first whole lines of a text that fit into ``max_bytes`` of UTF-8, with a word about the cut."""
    data = text.encode("utf-8", "backslashreplace")
    if len(data) <= max_bytes:
        return text
    note = b"\nCut: GitHub shows no more than 1 MiB.\n"
    if max_bytes < len(note):
        return ""
    whole_lines = data[: data.rfind(b"\n", 0, max_bytes - len(note) + 1) + 1]
    return (whole_lines + note).decode("utf-8")


@dataclass(frozen=True, slots=True)
class Case:
    """One ``testcase``; ``element`` is None or one of failure, error, skipped, and ``code`` its type."""

    name: str
    seconds: float = 0.0
    element: str | None = None
    message: str = ""
    body: str = ""
    code: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Suite:
    """One ``testsuite``."""

    name: str
    cases: Sequence[Case]
    seconds: float = 0.0


def render_suites(name: str, suites: Sequence[Suite], seconds: float, started_at_ms: int | None = None) -> str:
    """Return suites as a JUnit XML document, ending in a newline."""
    stamp = "" if started_at_ms is None else f' timestamp="{iso_utc(started_at_ms).removesuffix("Z")}"'
    cases = [case for suite in suites for case in suite.cases]
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f"<testsuites {_head(name, cases, seconds)}{stamp}>"]
    for suite in suites:
        lines.append(f"  <testsuite {_head(suite.name, suite.cases, suite.seconds)}{stamp}>")
        lines += [line for case in suite.cases for line in _case(suite.name, case)]
        lines.append("  </testsuite>")
    return "\n".join([*lines, "</testsuites>"]) + "\n"


def _head(name: str, cases: Sequence[Case], seconds: float) -> str:
    ends = Counter(case.element for case in cases)
    counts = f'failures="{ends["failure"]}" errors="{ends["error"]}" skipped="{ends["skipped"]}"'
    return f'name={_attribute(name)} tests="{len(cases)}" {counts} time="{seconds:.3f}"'


def _case(suite: str, case: Case) -> list[str]:
    more = "".join(f" {name}={_attribute(value)}" for name, value in case.attributes.items())
    head = f'    <testcase classname={_attribute(suite)} name={_attribute(case.name)}{more} time="{case.seconds:.3f}"'
    if case.element is not None:
        inner = f"      <{case.element} message={_attribute(case.message)}"
        inner += f" type={_attribute(case.code)}" if case.code else ""
        inner += f">{_text(case.body)}</{case.element}>" if case.body else "/>"
    elif case.body:
        inner = f"      <system-out>{_text(case.body)}</system-out>"
    else:
        return [head + "/>"]
    return [head + ">", inner, "    </testcase>"]


def _attribute(text: str) -> str:
    return quoteattr(printable(text))


def _text(text: str) -> str:
    """Escape element text line by line: control characters have no place in XML 1.0, not even as entities."""
    return "\n".join(escape(printable(line)) for line in text.split("\n"))


MAX_SARIF_RESULTS = 25_000
"""What code hosts accept in one upload."""

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def render_sarif(findings: Sequence[Finding], title_of: Callable[[str], str], files_read: int) -> str:
    """Return a log of one run, with relative URIs and the code as the rule; at most `MAX_SARIF_RESULTS` results."""
    shown = findings[:MAX_SARIF_RESULTS]
    codes = sorted({finding.code for finding in shown})
    rules = [_rule(code, title_of(code)) for code in codes]
    run = {
        "tool": {"driver": {"name": "maintainer", "version": __version__, "rules": rules}},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"%SRCROOT%": {"description": {"text": "The top folder of the repository."}}},
        "results": [_result(finding, codes) for finding in shown],
        "properties": {"files": files_read, "findings": len(findings)},
    }
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return visible_json(json.dumps(log, indent=2, ensure_ascii=False))


def _rule(code: str, title: str) -> dict[str, Any]:
    more = f"The message of each result says what to write. `maintainer explain {code}` has the smallest example."
    return {
        "id": code,
        "shortDescription": {"text": title},
        "fullDescription": {"text": f"{title[:1].upper()}{title[1:]}."},
        "help": {"text": more},
    }


def _result(finding: Finding, codes: list[str]) -> dict[str, Any]:
    span = finding.span or START_OF_FILE
    end_column = max(span.end_column, span.column + 1) if span.end_line == span.line else span.end_column
    lines = {"startLine": span.line, "startColumn": span.column, "endLine": span.end_line}
    region = {**lines, "endColumn": end_column}
    uri = quote(finding.file, errors="surrogateescape")  # a file name need not be UTF-8
    # A file outside the project has an absolute path: that is relative to nothing.
    artifact = {"uri": f"file://{uri}"} if uri.startswith("/") else {"uri": uri, "uriBaseId": "%SRCROOT%"}
    return {
        "ruleId": finding.code,
        "ruleIndex": codes.index(finding.code),
        "level": finding.severity.value,
        "message": {"text": finding.text},
        "locations": [{"physicalLocation": {"artifactLocation": artifact, "region": region}}],
    }
