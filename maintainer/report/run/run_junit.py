"""A run as JUnit XML: a suite is a table, a case is a step or an assertion.

Every table of the run has a suite, and a table without steps one case that says why.
"""

from __future__ import annotations

from dataclasses import replace

from maintainer.model.plan.plan import Problem
from maintainer.model.run.outcome import Assertion, RunOutcome, StepOutcome, StepStatus, TableOutcome, TableStatus
from maintainer.report.findings.junit_xml import Case, Suite, render_suites
from maintainer.report.plan.step_text import step_word
from maintainer.report.run.outcome_text import TABLE_STATUS_TEXT, assertion_text, figures, message

_STEP_ELEMENT = {
    StepStatus.SUCCEEDED: None,
    StepStatus.NOTHING_LEFT: None,
    StepStatus.YIELDED: "skipped",
    StepStatus.SKIPPED: "skipped",
    StepStatus.VERIFY_FAILED: "failure",
}
_TABLE_ELEMENT = {
    TableStatus.NOT_REACHED: "skipped",
    TableStatus.YIELDED: "skipped",
    TableStatus.WAITING: "skipped",
    TableStatus.VERIFY_FAILED: "failure",
}
"""What stands for a step and a table that ended so; every other status but success is an ``error``."""


def render_junit(outcome: RunOutcome) -> str:
    """Return a run as a JUnit XML document, ending in a newline."""
    suites = [
        Suite(table.ref.identifier, _cases(table), sum(step.duration_seconds for step in table.steps))
        for table in outcome.tables
    ]
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
    """Return the case of a table without steps, or that failed apart from its steps."""
    if table.status in (TableStatus.UP_TO_DATE, TableStatus.DONE):
        return Case("plan")
    problem = table.problem
    what = f"{problem.code}: {problem.what}" if problem else TABLE_STATUS_TEXT[table.status]
    return Case("plan", 0.0, _TABLE_ELEMENT.get(table.status, "error"), what, _problem_body(problem))


def _step_case(step: StepOutcome) -> Case:
    element = _STEP_ELEMENT.get(step.status, "error")
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
