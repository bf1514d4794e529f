"""The end of a run for a terminal: what failed, why and what to do about it, and the totals. Goes to stdout."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from maintainer.errors import ExitCode
from maintainer.model.plan.plan import Problem
from maintainer.model.run.exit_codes import exit_code, exit_reason
from maintainer.model.run.outcome import RunEnd, RunOutcome, StepOutcome, StepStatus, TableOutcome, TableStatus
from maintainer.report.plan.step_text import step_word
from maintainer.report.run.outcome_text import assertion_text, message
from maintainer.report.text.style import PLAIN, Role, Style
from maintainer.report.text.text_layout import count, printable
from maintainer.units import format_duration, format_size

MAX_NAMES = 5
"""So many tables are named where one warning is about many of them."""
MAX_BLOCKS = 50
"""Error blocks printed in full; the rest is counted by code, and whole in the run folder."""

END_TEXT = {
    RunEnd.DIED: "The run was killed, or its machine went down: nobody knows its exit code.",
    RunEnd.RUNNING: "The run is still going on.",
}
"""What stands in the place of the exit code of a run that did not come to its end."""

_PLACE = re.compile(r"(.+\.ya?ml)(?::([1-9][0-9]{0,8})(?::[0-9]+)?)?\Z", re.DOTALL)
_TABLE_WORDS: tuple[tuple[TableStatus, str, Role | None], ...] = (
    (TableStatus.DONE, "done", Role.GOOD),
    (TableStatus.UP_TO_DATE, "up to date", None),
    (TableStatus.WAITING, "waiting", None),
    (TableStatus.YIELDED, "yielded to another writer", Role.WARN),
    (TableStatus.BLOCKED, "blocked", Role.WARN),
    (TableStatus.UNSUPPORTED, "not supported", Role.WARN),
    (TableStatus.NOT_REACHED, "not reached", Role.WARN),
    (TableStatus.INTERRUPTED, "interrupted", Role.WARN),
    (TableStatus.FAILED, "failed", Role.BAD),
    (TableStatus.VERIFY_FAILED, "VERIFICATION FAILED", Role.BAD),
)
_WARNING_STATUS = frozenset({StepStatus.YIELDED, StepStatus.INTERRUPTED})
_BAD_STATUS = frozenset({StepStatus.FAILED, StepStatus.VERIFY_FAILED, StepStatus.UNKNOWN, StepStatus.INCOMPLETE})
_CODE_OF_STATUS = {
    StepStatus.VERIFY_FAILED: "V501",
    StepStatus.UNKNOWN: "C703",
    StepStatus.YIELDED: "C701",
    StepStatus.INTERRUPTED: "C710",
    StepStatus.INCOMPLETE: "C704",
    StepStatus.FAILED: "E600",
}
_HELP_OF_STATUS = {
    StepStatus.INCOMPLETE: (
        "a later vacuum takes what is left; where it says permission denied, let this user delete in the table's folder"
    ),
    StepStatus.FAILED: "look into results.json and spark.log of the run folder",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about a run that a person has to know. ``rank`` orders: 0 is a failed verification."""

    rank: int
    severity: str
    table: str
    problem: Problem
    policy_file: str = ""
    notes: tuple[str, ...] = ()
    step: str = ""


def findings(outcome: RunOutcome) -> list[Finding]:
    """Collect what failed, yielded, was blocked or was interrupted: the worst first, else in the run's order."""
    found = [finding for table in outcome.user_tables for finding in _of_table(table)]
    of_ledger = [finding for table in outcome.tables if table.is_ledger for finding in _of_table(table)]
    # Nobody's data is worse for a ledger that could not be maintained; a failed verification stays what it is.
    found += [one if one.rank == 0 else replace(one, rank=3, severity="warning") for one in of_ledger]
    found += [Finding(1, "error", "this run", problem) for problem in outcome.problems]
    return sorted(found, key=lambda finding: finding.rank)


def together(found: Sequence[Finding]) -> list[Finding]:
    """Put warnings that say the same of many tables, such as that the run never came to them, into one each."""
    same: dict[tuple[str, str], list[Finding]] = {}
    for one in found:
        if one.severity == "warning" and not one.notes and not one.step:
            same.setdefault((one.problem.code, one.problem.what), []).append(one)
    kept: list[Finding] = []
    for one in found:
        group = same.get((one.problem.code, one.problem.what), [])
        if one not in group or len(group) < 3:
            kept.append(one)
        elif one is group[0]:
            names = ", ".join(each.table for each in group[:MAX_NAMES])
            more = f" and {len(group) - MAX_NAMES:,} more" if len(group) > MAX_NAMES else ""
            note = printable(f"{names}{more}")
            kept.append(replace(one, table=f"{len(group):,} tables", policy_file="", notes=(note,)))
    return kept


def _of_table(table: TableOutcome) -> Iterator[Finding]:
    name = table.ref.identifier
    reported = False
    for step in table.steps:
        if step.status in _BAD_STATUS or step.status in _WARNING_STATUS:
            reported = reported or step.error == table.problem
            yield _of_step(table, step)
        elif any(assertion.outcome != "pass" for assertion in step.assertions):
            yield _not_deciding(table, step)
    if table.problem and not reported:
        rank, severity = {
            TableStatus.VERIFY_FAILED: (0, "error"),
            TableStatus.BLOCKED: (2, "error"),
            TableStatus.UNSUPPORTED: (2, "error"),
            TableStatus.YIELDED: (3, "warning"),
            TableStatus.WAITING: (3, "warning"),
            TableStatus.NOT_REACHED: (3, "warning"),
            TableStatus.INTERRUPTED: (3, "warning"),
        }.get(table.status, (1, "error"))
        yield Finding(rank, severity, name, table.problem, table.policy_file)


def _not_deciding(table: TableOutcome, step: StepOutcome) -> Finding:
    """Checks that did not pass and did not decide: they could not be made, or failed before the step as well."""
    wrong = [assertion for assertion in step.assertions if assertion.outcome != "pass"]
    what = step.note or f"{len(wrong):,} of {count(len(step.assertions), 'check')} did not pass; the step itself stands"
    notes = tuple(assertion_text(assertion) for assertion in wrong)
    return Finding(
        3, "warning", table.ref.identifier, Problem("", what), table.policy_file, notes, step_word(step.kind)
    )


def _of_step(table: TableOutcome, step: StepOutcome) -> Finding:
    code, help_text = _CODE_OF_STATUS[step.status], _HELP_OF_STATUS.get(step.status)
    incomplete = step.status is StepStatus.INCOMPLETE
    problem = step.error or Problem(code, message(step) if incomplete else step.note or message(step), help=help_text)
    wrong = [assertion for assertion in step.assertions if assertion.outcome != "pass"]
    notes = [assertion_text(assertion) for assertion in wrong]
    if step.commits and step.status is not StepStatus.SUCCEEDED:
        versions = ", ".join(f"v{receipt.version}" for receipt in step.commits)
        notes.append(f"already committed: {versions}")
    if step.vacuum and step.vacuum.remaining:
        remaining = step.vacuum.remaining
        shown = ", ".join(printable(path) for path in remaining[:3])
        more = f" and {len(remaining) - 3:,} more" if len(remaining) > 3 else ""
        notes.append(f"still there: {shown}{more}")
    if incomplete and step.note:
        notes.append(printable(step.note))
    rank = 0 if step.status is StepStatus.VERIFY_FAILED else 1 if step.status in _BAD_STATUS else 3
    severity = "error" if step.status in _BAD_STATUS else "warning"
    name = table.ref.identifier
    return Finding(rank, severity, name, problem, table.policy_file, tuple(notes), step_word(step.kind))


def render_run(
    outcome: RunOutcome,
    style: Style = PLAIN,
    *,
    run_folder: str | None = None,
    next_command: str | None = "maintainer retry",
) -> str:
    """Return the end of a run as text, ending in a newline: error blocks, totals, what to do next, the exit code.

    Args:
        outcome: What came of the run.
        style: Colour or none.
        run_folder: Where plan, results and events lie; None leaves the line out.
        next_command: What takes up the unfinished rest; shown only if there is one, None leaves it out.
    """
    lines: list[str] = []
    found = together(findings(outcome))
    for finding in found[:MAX_BLOCKS]:
        lines += _block(finding, style)
    lines += _counted(found[MAX_BLOCKS:])
    if found:
        lines.append("")
    lines.append(_steps_line(outcome, style))
    lines.append(_tables_line(outcome, style))
    lines += [line for line in (_work_line(outcome), _ledger_line(outcome)) if line]
    code = exit_code(outcome)
    if outcome.end is not RunEnd.FINISHED:
        lines.append(style.paint(END_TEXT[outcome.end], Role.WARN))
    elif code is not ExitCode.OK:
        lines.append(style.paint(f"Exit code {code.value}: {exit_reason(code)}.", Role.BAD))
    if next_command and _has_rest(outcome):
        lines.append(f"To go on with what is left:   {printable(next_command)}")
    if run_folder:
        lines.append(f"Everything about this run:    {printable(run_folder)}")
    return "\n".join(lines) + "\n"


def _block(finding: Finding, style: Style) -> list[str]:
    """One finding in the form of `MaintainerError.render`, with the table in front of the sentence."""
    problem = finding.problem
    code = f"[{printable(problem.code)}]" if problem.code else ""
    head = style.paint(f"{finding.severity}{code}", _role(finding))
    subject = printable(finding.table) + (f", {finding.step}" if finding.step else "")
    lines = [f"{head}: {subject}: {printable(problem.what)}"]
    where = problem.where or finding.policy_file
    if where:
        lines.append(f"  --> {printable(where)}")
    lines += [f"   = {note}" for note in finding.notes]
    first, *rest = (problem.help or "").split("\n")
    if first:
        lines.append(f"   = help: {printable(first)}")
        lines += [f"           {printable(line)}" for line in rest]
    return lines


def _role(finding: Finding) -> Role:
    return Role.BAD if finding.severity == "error" else Role.WARN


def _counted(rest: Sequence[Finding]) -> list[str]:
    codes: dict[str, int] = {}
    for finding in rest:
        codes[finding.problem.code] = codes.get(finding.problem.code, 0) + 1
    by_code = ", ".join(f"{printable(code)} {number:,}" for code, number in codes.items())
    return [f"... and {len(rest):,} more ({by_code}): all in results.json of the run folder"] if rest else []


def _steps_line(outcome: RunOutcome, style: Style) -> str:
    steps = [step for table in outcome.user_tables for step in table.steps]
    done = sum(step.status is StepStatus.SUCCEEDED for step in steps)
    failed = sum(step.status in (StepStatus.FAILED, StepStatus.VERIFY_FAILED) for step in steps)
    parts = [
        f"{count(done, 'step')} succeeded",
        style.paint(f"{failed:,} failed", Role.BAD) if failed else "0 failed",
    ]
    for status, word in (
        (StepStatus.NOTHING_LEFT, "had nothing left to do"),
        (StepStatus.YIELDED, "yielded"),
        (StepStatus.INCOMPLETE, "incomplete"),
        (StepStatus.UNKNOWN, "of unknown fate"),
        (StepStatus.SKIPPED, "skipped"),
        (StepStatus.INTERRUPTED, "interrupted"),
    ):
        number = sum(step.status is status for step in steps)
        if number:
            parts.append(f"{number:,} {word}")
    verb = f"Interrupted by {printable(outcome.interrupted_by)} after" if outcome.interrupted_by else "Done in"
    if outcome.end is not RunEnd.FINISHED:
        verb = "Killed after" if outcome.end is RunEnd.DIED else "Since"
    return f"{verb} {time_text(outcome)}: {'; '.join([', '.join(parts), *_proof_parts(steps)])}."


def time_text(outcome: RunOutcome) -> str:
    """What the command took, and its parts where any came before the run: ``41.0s (start 24.9s, planning ...)``."""
    before = outcome.preparation
    total = format_duration(outcome.total_seconds)
    if not before.start_seconds and not before.planning_seconds:
        return total
    parts = (
        f"start {format_duration(before.start_seconds)}",
        f"planning {format_duration(before.planning_seconds)}",
        f"run {format_duration(outcome.duration_seconds)}",
    )
    return f"{total} ({', '.join(parts)})"


def _proof_parts(steps: Sequence[StepOutcome]) -> list[str]:
    """Commits proven and checks passed, behind the steps: a failed step must not read as a failed check."""
    checks = [assertion for step in steps for assertion in step.assertions]
    passed = sum(assertion.outcome == "pass" for assertion in checks)
    proofs = sum(bool(receipt.proof and receipt.proof.holds) for step in steps for receipt in step.commits)
    parts = [f"{count(proofs, 'commit')} proven"] if proofs else []
    if checks:
        parts.append(f"{passed:,} of {count(len(checks), 'check')} passed")
    return [", ".join(parts)] if parts else []


def _tables_line(outcome: RunOutcome, style: Style) -> str:
    parts = []
    for status, word, role in _TABLE_WORDS:
        number = outcome.count(status)
        if number:
            text = f"{number:,} {word}"
            parts.append(style.paint(text, role) if role else text)
    return f"{count(len(outcome.user_tables), 'table')}: {', '.join(parts) or 'none selected'}."


def _work_line(outcome: RunOutcome) -> str | None:
    commits = [receipt for table in outcome.user_tables for step in table.steps for receipt in step.commits]
    vacuums = [step.vacuum for table in outcome.user_tables for step in table.steps if step.vacuum]
    parts = []
    removed = sum(receipt.num_files_removed for receipt in commits)
    if removed:
        added = sum(receipt.num_files_added for receipt in commits)
        size = format_size(sum(receipt.bytes_removed for receipt in commits))
        metrics = [step.metrics for table in outcome.user_tables for step in table.steps if step.metrics]
        bins = sum(one.num_bins for one in metrics)
        of = f" in {count(bins, 'bin')} and {count(sum(one.num_batches for one in metrics), 'commit')}" if bins else ""
        parts.append(f"rewrote {removed:,} -> {count(added, 'file')}, {size}{of}")
    deleted = sum(vacuum.num_files_deleted for vacuum in vacuums)
    if deleted:
        size = format_size(sum(vacuum.bytes_deleted for vacuum in vacuums))
        parts.append(f"deleted {count(deleted, 'file')}, {size}")
    text = "; ".join(parts)
    return text[0].upper() + text[1:] + "." if text else None


def _ledger_line(outcome: RunOutcome) -> str | None:
    """What was done to our own ledger, which is no table of the user's; None where nothing was to be done."""
    tables = [table for table in outcome.tables if table.is_ledger and (table.steps or table.problem)]
    if not tables:
        return None
    (table,) = tables
    steps = [f"{step_word(step.kind)} {step.status.value.replace('_', ' ')}" for step in table.steps]
    return (
        f"The ledger ({printable(table.ref.identifier)}): {', '.join(steps) or table.status.value.replace('_', ' ')}."
    )


def _has_rest(outcome: RunOutcome) -> bool:
    """Whether another run would find something that this one left; a failed verification is not for a retry."""
    return any(
        table.status in (TableStatus.FAILED, TableStatus.YIELDED, TableStatus.NOT_REACHED, TableStatus.INTERRUPTED)
        for table in outcome.user_tables
    )


def file_and_line(where: str | None, policy_file: str) -> tuple[str, int | None]:
    """Return the policy file and line that ``file:line`` or ``file:line:column`` names, else the file alone."""
    match = _PLACE.match(where or "")
    if match:
        return match[1], None if match[2] is None else int(match[2])
    return policy_file, None
