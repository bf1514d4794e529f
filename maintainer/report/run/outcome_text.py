"""Finished steps in words: shared by progress lines, the end of a run, JUnit, Markdown and ``show``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from maintainer.model.codec import encode
from maintainer.model.run.outcome import Assertion, RunOutcome, StepOutcome, StepStatus, VacuumReceipt
from maintainer.model.run.progress import Verified
from maintainer.report.plan.step_text import step_word
from maintainer.report.run.status_words import STEP_ENDS
from maintainer.report.run.work_done import WorkDone
from maintainer.report.text.style import PLAIN, Style
from maintainer.report.text.text_layout import count, printable
from maintainer.units import format_duration, format_size


def figures(step: StepOutcome) -> str:
    """Say what a step did: ``1,204 -> 151 files, 38.4 GiB, 812,440,193 rows proven   v1847``; empty for nothing."""
    work = WorkDone.of((step,))
    parts = []
    if work.files_removed or work.files_added:
        parts.append(f"{work.files_removed:,} -> {count(work.files_added, 'file')}, {format_size(work.bytes_removed)}")
    # Where a check after the commit failed, nobody should read on this line that all is proven.
    if work.commits_proven and step.status is not StepStatus.VERIFY_FAILED:
        rows = sum(receipt.proof.read.rows for receipt in step.commits if receipt.proof and receipt.proof.holds)
        parts.append(f"{count(rows, 'row')} proven")
    if step.vacuum:
        parts.extend(_deleted(step.vacuum))
        if step.vacuum.remaining:
            parts.append(f"{count(len(step.vacuum.remaining), 'file')} still there")
    return "   ".join(part for part in (", ".join(parts), version_span(step)) if part)


def _deleted(vacuum: VacuumReceipt) -> Iterator[str]:
    emptied = vacuum.num_files_emptied
    if vacuum.num_files_deleted or not emptied:
        yield f"{count(vacuum.num_files_deleted, 'file')}, {format_size(vacuum.bytes_deleted)} deleted"
    if emptied:
        yield f"{count(emptied, 'file')}, {format_size(vacuum.bytes_emptied)} emptied from the trash"


def version_span(step: StepOutcome) -> str:
    """Print the versions that a step committed: ``v1847``, ``v1843..v1845`` for several, empty for none."""
    if not step.commits:
        after = step.version_after
        return "" if after is None else f"v{after}"
    first, last = step.commits[0].version, step.commits[-1].version
    return f"v{last}" if first == last else f"v{first}..v{last}"


def message(step: StepOutcome) -> str:
    """Say why a step did not simply succeed: its error, its note, or the words for its status."""
    if step.error:
        return f"{printable(step.error.code)}: {printable(step.error.what)}"
    if step.status is StepStatus.INCOMPLETE and step.vacuum and step.vacuum.remaining:
        remaining = len(step.vacuum.remaining)
        return f"{remaining:,} of {count(remaining + step.vacuum.num_files_deleted, 'file')} could not be deleted"
    return printable(step.note) if step.note else STEP_ENDS[step.status].message


def verified_detail(event: Verified) -> str:
    """Say what a check compared: ``rows 41,220,917 (v77 = v78), content equal``."""
    parts = []
    before, after = event.rows_before, event.rows_after
    old, new = _version(event.version_before, "before"), _version(event.version_after, "after")
    if before is not None and after is not None:
        if before == after:
            parts.append(f"rows {after:,} ({old} = {new})")
        else:
            parts.append(f"rows {before:,} ({old}) but {after:,} ({new})")
    elif after is not None:
        parts.append(f"rows {after:,} ({new})")
    if event.content_equal is not None:
        parts.append("content equal" if event.content_equal else "content DIFFERS")
    if event.num_files_checked is not None and event.result == "pass":
        parts.append(f"all {count(event.num_files_checked, 'file')} of {new} exist")
    parts.extend(assertion_text(assertion) for assertion in event.assertions if assertion.outcome != "pass")
    passed = sum(assertion.outcome == "pass" for assertion in event.assertions)
    if passed:
        parts.append(f"{count(passed, 'check')} passed")
    if event.detail:
        parts.append(printable(event.detail))
    return ", ".join(parts)


def time_text(outcome: RunOutcome) -> str:
    """Print what the command took, and its parts where any came before the run: ``41.0s (start 24.9s, ...)``."""
    before = outcome.preparation
    total = format_duration(outcome.total_seconds)
    if not before.start_seconds and not before.planning_seconds:
        return total
    seconds = {
        "start": before.start_seconds,
        "planning": before.planning_seconds,
        "run": outcome.duration_seconds,
    }
    return f"{total} ({', '.join(f'{part} {format_duration(took)}' for part, took in seconds.items())})"


def _version(version: int | None, otherwise: str) -> str:
    return otherwise if version is None else f"v{version}"


def assertion_text(assertion: Assertion) -> str:
    """Print an assertion in one line: ``expect_x(column): expected 3, observed 4``, or why it could not be checked."""
    name = printable(assertion.expectation) + (f"({printable(assertion.column)})" if assertion.column else "")
    if assertion.outcome == "error":
        return f"{name}: could not check: {printable(assertion.error or 'no reason given')}"
    facts = []
    if assertion.expected is not None:
        facts.append(f"expected {printable(assertion.expected)}")
    if assertion.observed is not None:
        facts.append(f"observed {printable(assertion.observed)}")
    if assertion.outcome == "fail" and assertion.error:
        facts.append(printable(assertion.error))
    return f"{name}: {', '.join(facts) or assertion.outcome}"


MAX_WIDTH = 110


def render_steps(outcome: RunOutcome, style: Style = PLAIN) -> str:
    """Return one paragraph for each step of a run, in order; each line ends in a newline. Empty without steps."""
    lines: list[str] = []
    for table in outcome.tables:
        for step in table.steps:
            end = STEP_ENDS[step.status]
            what = figures(step)
            if not what or (step.status is not StepStatus.SUCCEEDED and step.error is not None):
                what = ", ".join(part for part in (what, message(step)) if part)
            head = f"{printable(table.ref.identifier)}  {step_word(step.kind)}  {style.paint(end.word, end.role)}"
            lines.append(f"{head}  {format_duration(step.duration_seconds)}  {what}".rstrip())
            lines += [f"    {line}" for line in metrics_lines(step)]
    return "".join(line + "\n" for line in lines)


def metrics_lines(step: StepOutcome) -> list[str]:
    """Return a step's metrics as ``name value`` pairs under Delta's names; none where nothing is rewritten."""
    if step.metrics is None:
        return []
    lines: list[str] = []
    for name, value in _flat("", encode(step.metrics)):
        pair = f"{name} {value}"
        if lines and len(lines[-1]) + len(pair) + 3 <= MAX_WIDTH:
            lines[-1] += f"   {pair}"
        else:
            lines.append(pair)
    return lines


def _flat(prefix: str, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield dotted names and their values; values that are missing or false are passed over."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(f"{prefix}{key}.", value)
        elif value is not None and value is not False:
            yield f"{prefix}{key}", f"{value:.1f}" if isinstance(value, float) else str(value)
