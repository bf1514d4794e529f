"""Findings for GitHub Actions: annotations on the lines of policies, and the step summary.

GitHub shows ten annotations of a kind for a step and drops the others without a word. So the first ten are printed,
the rest is counted, and all of them go to the step summary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from maintainer.policy.diagnostics import Severity
from maintainer.report.findings.finding import Finding, file_and_line
from maintainer.report.text.text_layout import count, printable

MAX_PER_KIND = 10
MAX_SUMMARY_BYTES = 1024 * 1024
SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"


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
    rest = [
        count(number - MAX_PER_KIND, f"more {kind.value}") for kind, number in numbers.items() if number > MAX_PER_KIND
    ]
    if rest:
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
    visible = "".join(character if character in "\r\n" else printable(character) for character in text)
    return visible.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")


def write_step_summary(markdown: str, environ: Mapping[str, str]) -> bool:
    """Append Markdown to the step summary, if there is one; return whether it was written.

    Never raises: a summary that cannot be written must not turn a good run red. A text that would make the file
    larger than GitHub takes (1 MiB) is cut at a line, and says so.
    """
    path = environ.get(SUMMARY_VARIABLE)
    if not path:
        return False
    file = Path(path)
    try:
        text = cut_lines(markdown, MAX_SUMMARY_BYTES - (file.stat().st_size if file.exists() else 0))
        if text:
            with file.open("a", encoding="utf-8", errors="backslashreplace") as stream:
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
