"""Findings of a run: what failed, lost against another writer, was blocked or interrupted, the worst first.

In JUnit XML a suite is a table, a case is a step or an assertion. Every table of the user's has a suite, and a table
without steps one case that says why. Our own ledger has one only where something about it did not go well.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from maintainer.model.plan.plan import PLACES_FILE, Problem
from maintainer.model.run.commit_verdict import lift_help
from maintainer.model.run.outcome import Assertion, RunOutcome, StepOutcome, StepStatus, TableOutcome, TableStatus
from maintainer.policy.diagnostics import Severity
from maintainer.report.document.folding import FOLD, nameless
from maintainer.report.findings import Case, Finding, Suite, render_suites
from maintainer.report.plan.step_text import step_word
from maintainer.report.run.outcome_text import STEP_ENDS, TABLE_ENDS, assertion_text, figures, message
from maintainer.report.style import Role
from maintainer.report.text_layout import printable
from maintainer.units import by_cause, count_of, named

_QUARANTINE = "A411"


def run_findings(outcome: RunOutcome) -> list[Finding]:
    """Return all findings of a run: the worst first, else in the run's order."""
    findings = [finding for table in outcome.user_tables for finding in _of_table(table)]
    of_ledger = [finding for table in outcome.tables if table.is_ledger for finding in _of_table(table)]
    # Nobody's data is worse for a ledger that could not be maintained; a failed verification stays what it is.
    findings += [each if each.rank == 0 else replace(each, rank=3, severity=Severity.WARNING) for each in of_ledger]
    findings += [problem_finding(problem, table="this run") for problem in outcome.problems]
    return sorted(findings, key=lambda finding: finding.rank)


def page_findings(outcome: RunOutcome, quarantined: Mapping[str, str]) -> list[Finding]:
    """Return what a page of reports says first: all findings, and the tables that are in quarantine now.

    Args:
        outcome: The run, or of each table its newest outcome.
        quarantined: Why a table is in quarantine, by its identifier.
    """
    files = {table.ref.identifier: table.policy_file for table in outcome.user_tables}
    held = [held_finding(name, quarantined[name], file) for name, file in files.items() if name in quarantined]
    said = {finding.table for finding in held}
    others = [finding for finding in run_findings(outcome) if finding.code != _QUARANTINE or finding.table not in said]
    return joined(sorted([*others, *held], key=lambda finding: finding.rank))


def held_finding(name: str, reason: str, policy_file: str) -> Finding:
    """Return that a table is in quarantine, why, and what ends it."""
    what = f"in quarantine, no run changes it until a person has looked: {reason}"
    return Finding(Severity.ERROR, _QUARANTINE, what, lift_help(shlex.quote(name)), name, file=policy_file, rank=0)


def problem_finding(problem: Problem, severity: Severity = Severity.ERROR, *, table: str = "") -> Finding:
    """Say of a problem what is said of it everywhere; ``table`` is what it is about."""
    return Finding(severity, problem.code, problem.what, problem.help or "", table, where=problem.where or "")


def joined(findings: Sequence[Finding]) -> list[Finding]:
    """Join what is said alike of three tables or more: a bucket that refuses them, one key that changed, no turn."""
    return [_join(group) if len(group) > 1 else group[0] for group in by_cause(findings, _cause, at_least=FOLD)]


def _join(group: Sequence[Finding]) -> Finding:
    where, file = (_shared(places) for places in ([f.where for f in group], [f.file for f in group]))
    tables = tuple(member.table for member in group)
    noun = "places" if group[0].file == PLACES_FILE else "tables"
    return replace(group[0], table=f"{len(group):,} {noun}", where=where, file=file, tables=tables)


def _shared(places: Sequence[str]) -> str:
    return places[0] if len(set(places)) == 1 else ""


def _cause(finding: Finding) -> tuple[object, ...] | None:
    if not finding.table or finding.notes or finding.tables or finding.rank == 0:
        return None
    is_place = finding.file == PLACES_FILE
    what, to_do = nameless(finding.what, finding.table), nameless(finding.help, finding.table)
    return (is_place, finding.rank, finding.severity, finding.code, what, finding.step, to_do)


def _of_table(table: TableOutcome) -> Iterator[Finding]:
    reported = False
    for step in table.steps:
        if STEP_ENDS[step.status].code or step.error is not None:
            reported = reported or step.error == table.problem
            yield _of_step(table, step)
        elif any(assertion.outcome != "pass" for assertion in step.assertions):
            yield _checks_not_passed(table, step)
    if table.problem and not reported:
        # A table that is done has one where files that were planned were left out.
        rank = 3 if table.status is TableStatus.DONE else TABLE_ENDS[table.status].rank
        severity = Severity.ERROR if rank < 3 else Severity.WARNING
        finding = problem_finding(table.problem, severity, table=table.ref.identifier)
        yield replace(finding, file=table.policy_file, rank=rank)


def _checks_not_passed(table: TableOutcome, step: StepOutcome) -> Finding:
    """Report checks that did not change the step's end: they could not be made, or failed before the step as well."""
    name, notes = table.ref.identifier, _check_notes(step)
    what = f"{len(notes):,} of {count_of(len(step.assertions), 'check')} did not pass; the step itself stands"
    finding = Finding(Severity.WARNING, "", step.note or what, table=name, step=step_word(step.kind))
    return replace(finding, file=table.policy_file, notes=tuple(notes), rank=3)


def _of_step(table: TableOutcome, step: StepOutcome) -> Finding:
    end, incomplete = STEP_ENDS[step.status], step.status is StepStatus.INCOMPLETE
    what = message(step) if incomplete else step.note or message(step)
    problem = step.error or Problem(end.code, what, help=end.help)
    notes = _check_notes(step)
    if step.commits:
        versions = ", ".join(f"v{receipt.version}" for receipt in step.commits)
        notes.append(f"already committed: {versions}")
    if step.vacuum and step.vacuum.remaining:
        notes.append(f"still there: {named([printable(path) for path in step.vacuum.remaining], 3)}")
    if step.note and (incomplete or step.error):
        notes.append(printable(step.note))
    severity, rank = (Severity.ERROR, 1) if end.role is Role.BAD else (Severity.WARNING, 3)
    rank = 0 if step.status is StepStatus.VERIFY_FAILED else rank
    finding = problem_finding(problem, severity, table=table.ref.identifier)
    return replace(finding, step=step_word(step.kind), file=table.policy_file, notes=tuple(notes), rank=rank)


def _check_notes(step: StepOutcome) -> list[str]:
    return [assertion_text(assertion) for assertion in step.assertions if assertion.outcome != "pass"]


def render_junit(outcome: RunOutcome) -> str:
    """Return a run as a JUnit XML document, ending in a newline."""
    suites = []
    for table in outcome.tables:
        cases, seconds = _cases(table), sum(step.duration_seconds for step in table.steps)
        if not table.is_ledger or any(case.element for case in cases):
            suites.append(Suite(table.ref.identifier, cases, seconds))
    return render_suites("maintainer apply", suites, outcome.duration_seconds, outcome.started_at_ms)


def _cases(table: TableOutcome) -> list[Case]:
    cases: list[Case] = []
    for step in table.steps:
        cases.append(_step_case(step))
        cases += [_assertion_case(step, assertion) for assertion in step.assertions]
    if not table.steps or (table.problem and all(step.error != table.problem for step in table.steps)):
        cases.insert(0, _table_case(table))
    if table.is_ledger:  # a warning, and no failed test of the user's
        return [replace(case, element="skipped") if case.element == "error" else case for case in cases]
    return cases


def _table_case(table: TableOutcome) -> Case:
    end, problem = TABLE_ENDS[table.status], table.problem
    if end.element is None:
        return Case("plan")
    what = f"{problem.code}: {problem.what}" if problem else end.text
    return Case("plan", 0.0, end.element, what, _problem_body(problem))


def _step_case(step: StepOutcome) -> Case:
    element = STEP_ENDS[step.status].element
    done = figures(step)
    if element is None:
        return Case(step_word(step.kind), step.duration_seconds, body=done or (step.note or ""))
    body = "\n".join(part for part in (done, _problem_body(step.error)) if part)
    return Case(step_word(step.kind), step.duration_seconds, element, message(step), body)


def _assertion_case(step: StepOutcome, assertion: Assertion) -> Case:
    version = "" if assertion.version is None else f" v{assertion.version}"
    column = f"({assertion.column})" if assertion.column else ""
    name = f"{step_word(step.kind)}{version}: {assertion.expectation}{column}"
    element = {"pass": None, "fail": "failure"}.get(assertion.outcome, "error")
    return Case(name, 0.0, element, "" if element is None else assertion_text(assertion))


def _problem_body(problem: Problem | None) -> str:
    if problem is None:
        return ""
    lines = [f"{problem.code}: {problem.what}"]
    lines += [f"at {problem.where}"] if problem.where else []
    lines += [f"help: {line}" for line in (problem.help or "").split("\n") if line]
    return "\n".join(lines)
