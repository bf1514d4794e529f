"""GitHub Actions: annotations on policy lines, and the step summary.

GitHub shows at most ten annotations of a kind for a step and drops the others without a word; so the ten worst are
printed, the rest is counted, and all of it goes to the step summary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from maintainer.model.plan.plan import Plan
from maintainer.model.run.exit_codes import exit_code, exit_reason
from maintainer.model.run.outcome import RunOutcome, TableStatus
from maintainer.report.plan.step_text import step_word
from maintainer.report.run.outcome_text import STATUS_WORD, figures, message
from maintainer.report.run.run_text import file_and_line, findings, time_text
from maintainer.report.text.markdown import code, escaped, table
from maintainer.report.text.text_layout import count, printable
from maintainer.units import format_duration

MAX_PER_KIND = 10
MAX_SUMMARY_BYTES = 1024 * 1024
SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"


@dataclass(frozen=True, slots=True)
class Annotation:
    """One ``::error``, ``::warning`` or ``::notice``. Lines and columns count from 1; ``end_column`` is exclusive."""

    kind: str
    title: str
    message: str
    file: str | None = None
    line: int | None = None
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None


def render_annotations(annotations: Sequence[Annotation], max_per_kind: int = MAX_PER_KIND) -> str:
    """Return workflow commands, the first ``max_per_kind`` of each kind in the order given, each ending in a newline.

    A last plain line counts what was left out.
    """
    lines = []
    shown: dict[str, int] = {}
    left_out: dict[str, int] = {}
    for annotation in annotations:
        if shown.get(annotation.kind, 0) >= max_per_kind:
            left_out[annotation.kind] = left_out.get(annotation.kind, 0) + 1
            continue
        shown[annotation.kind] = shown.get(annotation.kind, 0) + 1
        lines.append(_command(annotation))
    if left_out:
        rest = ", ".join(count(number, f"more {kind}") for kind, number in left_out.items())
        lines.append(f"{rest}: GitHub shows {max_per_kind} of a kind; all are in the step summary")
    return "".join(line + "\n" for line in lines)


def _command(annotation: Annotation) -> str:
    one_line = annotation.end_line is None or annotation.end_line == annotation.line
    # GitHub misplaces an annotation that has columns and spans lines.
    properties: list[tuple[str, str | int | None]] = [
        ("title", annotation.title),
        ("file", annotation.file or None),
        ("line", annotation.line),
        ("col", annotation.column if one_line else None),
        ("endLine", annotation.end_line),
        ("endColumn", annotation.end_column if one_line else None),
    ]
    text = ",".join(f"{name}={_property(str(value))}" for name, value in properties if value is not None)
    return f"::{annotation.kind} {text}::{_message(annotation.message)}"


def _message(text: str) -> str:
    return _visible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")


def _visible(text: str) -> str:
    """Escape control characters except line ends, which the command has its own spelling for."""
    return "".join(character if character in "\r\n" else printable(character) for character in text)


def run_annotations(outcome: RunOutcome) -> list[Annotation]:
    """Return an annotation for each finding of a run, the worst first."""
    annotations = []
    for finding in findings(outcome):
        file, line = file_and_line(finding.problem.where, finding.policy_file)
        subject = finding.table + (f", {finding.step}" if finding.step else "")
        lines = [f"{subject}: {finding.problem.what}", *finding.notes]
        lines += [f"help: {finding.problem.help}"] if finding.problem.help else []
        title = f"maintainer {finding.problem.code}".rstrip()
        annotations.append(Annotation(finding.severity, title, "\n".join(lines), file, line))
    return annotations


def plan_annotations(plan: Plan) -> list[Annotation]:
    """Return an error for each table that cannot be planned, and a warning for each that is blocked."""
    annotations = []
    for one in plan.tables:
        if one.problem:
            problem = one.problem
            file, line = file_and_line(problem.where, one.policy_file)
            text = f"{one.ref.identifier}: {problem.what}" + (f"\nhelp: {problem.help}" if problem.help else "")
            annotations.append(Annotation("error", f"maintainer {problem.code}", text, file, line))
        for reason in one.blocked:
            file, line = file_and_line(reason.origin, one.policy_file)
            text = f"{one.ref.identifier}: blocked: {reason.text}"
            annotations.append(Annotation("warning", f"maintainer {reason.code.value}", text, file, line))
    return annotations


def run_markdown(outcome: RunOutcome) -> str:
    """Return a run as Markdown for the step summary: the totals, what was found, and every step."""
    result = exit_code(outcome)
    tables = ", ".join(
        f"{outcome.count(status):,} {status.value.replace('_', ' ')}" for status in TableStatus if outcome.count(status)
    )
    lines = [f"### maintainer apply: {exit_reason(result)} (exit code {result.value})", ""]
    lines.append(
        f"Run {code(outcome.run_id)}, {time_text(outcome)}, "
        f"{count(len(outcome.user_tables), 'table')}: {tables or 'none selected'}."
    )
    found = findings(outcome)
    if found:
        rows = [
            (one.severity, code(one.table), escaped(one.step), escaped(f"{one.problem.code} {one.problem.what}"))
            for one in found
        ]
        lines += ["", *table(("", "table", "step", "what"), rows)]
    steps = [
        (
            STATUS_WORD[step.status][0],
            code(one.ref.identifier),
            escaped(step_word(step.kind)),
            format_duration(float(step.duration_seconds)) if step.duration_seconds else "",
            escaped(figures(step) or message(step)),
        )
        for one in outcome.tables
        for step in one.steps
    ]
    if steps:
        lines += ["", *table(("", "table", "step", "took", "result"), steps, right=frozenset({3}))]
    return "\n".join(lines) + "\n"


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
        room = MAX_SUMMARY_BYTES - (file.stat().st_size if file.exists() else 0)
        text = cut_lines(markdown, room)
        if not text:
            return False
        with file.open("a", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(text)
    except (OSError, ValueError):
        return False
    return True


def cut_lines(text: str, max_bytes: int) -> str:
    """Return the first whole lines of a text that fit into ``max_bytes`` of UTF-8, with a word about the cut."""
    data = text.encode("utf-8", "backslashreplace")
    if len(data) <= max_bytes:
        return text
    note = "\nCut: the rest is in the run folder.\n"
    kept: list[str] = []
    room = max_bytes - len(note)
    for line in text.splitlines(keepends=True):
        room -= len(line.encode("utf-8", "backslashreplace"))
        if room < 0:
            break
        kept.append(line)
    return "".join(kept) + note if max_bytes >= len(note) else ""
