"""The end of a run for a terminal: what failed, why and what to do about it, and the totals. Goes to stdout."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from maintainer.errors import ExitCode
from maintainer.model.run.exit_codes import exit_code, exit_reason
from maintainer.model.run.outcome import RunEnd, RunOutcome, StepStatus, TableStatus
from maintainer.policy.diagnostics import Severity
from maintainer.report.findings import Finding
from maintainer.report.plan.step_text import step_word
from maintainer.report.run.outcome_text import STEP_ENDS, TABLE_ENDS, WorkDone, time_text
from maintainer.report.run.run_findings import joined, run_findings
from maintainer.report.style import PLAIN, Role, Style
from maintainer.report.text_layout import printable
from maintainer.units import count_of, format_size

MAX_BLOCKS = 50
"""Error blocks printed in full; the rest is counted by code, and whole in the run folder."""

END_TEXT = {
    RunEnd.DIED: "The run was killed, or its machine went down: its exit code is not known.",
    RunEnd.RUNNING: "The run is still going on.",
}
"""What stands in the place of the exit code of a run that did not come to its end."""

_LEFT_UNDONE = frozenset(
    {TableStatus.FAILED, TableStatus.YIELDED, TableStatus.NOT_REACHED, TableStatus.INTERRUPTED},
)
"""Tables with a rest that ``retry`` takes up; a failed verification is not for a retry."""


def render_run(
    outcome: RunOutcome,
    style: Style = PLAIN,
    *,
    run_folder: str | None = None,
    next_command: str | None = "maintainer retry",
) -> str:
    """Return the end of a run as text, ending in a newline: error blocks, totals, what to do next, the exit code.

    ``run_folder`` is where plan, results and events are, ``next_command`` takes up an unfinished rest; None leaves
    either line out.
    """
    findings = joined(run_findings(outcome))
    lines = [line for finding in findings[:MAX_BLOCKS] for line in _block(finding, style)]
    lines += _counted(findings[MAX_BLOCKS:])
    lines += [""] if findings else []
    lines += [_steps_line(outcome, style), _tables_line(outcome, style)]
    lines += [line for line in (_work_line(outcome), _ledger_line(outcome)) if line]
    code = exit_code(outcome)
    if outcome.end is not RunEnd.FINISHED:
        lines.append(style.paint(END_TEXT[outcome.end], Role.WARN))
    elif code is not ExitCode.OK:
        lines.append(style.paint(f"Exit code {code.value}: {exit_reason(code)}.", Role.BAD))
    if next_command and any(table.status in _LEFT_UNDONE for table in outcome.user_tables):
        lines.append(f"To continue with the rest:    {printable(next_command)}")
    if run_folder:
        lines.append(f"Everything about this run:    {printable(run_folder)}")
    return "\n".join(lines) + "\n"


def _block(finding: Finding, style: Style) -> list[str]:
    """Lay a finding out as `MaintainerError.render` does, with the table in front of the sentence."""
    code = f"[{printable(finding.code)}]" if finding.code else ""
    role = Role.BAD if finding.severity is Severity.ERROR else Role.WARN
    lines = [f"{style.paint(f'{finding.severity.value}{code}', role)}: {printable(finding.headline)}"]
    where = finding.where or finding.file
    lines += [f"  --> {printable(where)}"] if where else []
    lines += [f"   = {note}" for note in finding.notes]
    if finding.help:
        first, *rest = finding.help.split("\n")
        lines += [f"   = help: {printable(first)}", *(f"           {printable(line)}" for line in rest)]
    return lines


def _counted(rest: Sequence[Finding]) -> list[str]:
    if not rest:
        return []
    codes = Counter(finding.code for finding in rest)
    by_code = ", ".join(f"{printable(code)} {number:,}" for code, number in codes.items())
    return [f"... and {len(rest):,} more ({by_code}): all in results.json of the run folder"]


def _steps_line(outcome: RunOutcome, style: Style) -> str:
    numbers = Counter(step.status for table in outcome.user_tables for step in table.steps)
    failed = numbers[StepStatus.FAILED] + numbers[StepStatus.VERIFY_FAILED]
    parts = [
        f"{count_of(numbers[StepStatus.SUCCEEDED], 'step')} succeeded",
        style.paint(f"{failed:,} failed", Role.BAD) if failed else "0 failed",
        *(
            f"{numbers[status]:,} {end.counted}"
            for status, end in STEP_ENDS.items()
            if numbers[status] and end.counted not in ("succeeded", "failed")
        ),
    ]
    verb = f"Interrupted by {printable(outcome.interrupted_by)} after" if outcome.interrupted_by else "Done in"
    if outcome.end is not RunEnd.FINISHED:
        verb = "Killed after" if outcome.end is RunEnd.DIED else "Since"
    # Proofs stand behind the steps: a failed step must not read as a failed check.
    work = WorkDone.of_run(outcome)
    proofs = [f"{count_of(work.commits_proven, 'commit')} proven"] if work.commits_proven else []
    proofs += [f"{work.checks_passed:,} of {count_of(work.checks, 'check')} passed"] if work.checks else []
    return f"{verb} {time_text(outcome)}: {'; '.join(', '.join(part) for part in (parts, proofs) if part)}."


def _tables_line(outcome: RunOutcome, style: Style) -> str:
    parts = []
    for status, end in TABLE_ENDS.items():
        if number := outcome.count(status):
            text = f"{number:,} {end.counted}"
            parts.append(style.paint(text, end.role) if end.role else text)
    return f"{count_of(len(outcome.user_tables), 'table')}: {', '.join(parts) or 'none selected'}."


def _work_line(outcome: RunOutcome) -> str:
    work = WorkDone.of_run(outcome)
    parts = []
    if work.files_removed:
        metrics = [step.metrics for table in outcome.user_tables for step in table.steps if step.metrics]
        num_bins, num_commits = sum(each.num_bins for each in metrics), sum(each.num_batches for each in metrics)
        bins = f" in {count_of(num_bins, 'bin')} and {count_of(num_commits, 'commit')}" if num_bins else ""
        size = format_size(work.bytes_removed)
        parts.append(f"rewrote {work.files_removed:,} -> {count_of(work.files_added, 'file')}, {size}{bins}")
    if work.files_deleted:
        parts.append(f"deleted {count_of(work.files_deleted, 'file')}, {format_size(work.bytes_deleted)}")
    if work.files_moved:
        parts.append(f"moved {count_of(work.files_moved, 'file')}, {format_size(work.bytes_moved)} to the trash")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _ledger_line(outcome: RunOutcome) -> str:
    """Return what was done to our own ledger, which is no table of the user's; empty where nothing was."""
    for table in outcome.tables:
        if table.is_ledger and (table.steps or table.problem):
            steps = [f"{step_word(step.kind)} {step.status.value.replace('_', ' ')}" for step in table.steps]
            ended = ", ".join(steps) or table.status.value.replace("_", " ")
            return f"The ledger ({printable(table.ref.identifier)}): {ended}."
    return ""
