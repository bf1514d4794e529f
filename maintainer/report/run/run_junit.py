"""A run as JUnit XML: a suite is a table, a case is a step or an assertion.

Every table of the run has a suite, and a table without steps one case that says why.
"""

from __future__ import annotations

from dataclasses import replace

from maintainer.model.plan.plan import Problem
from maintainer.model.run.outcome import Assertion, RunOutcome, StepOutcome, TableOutcome
from maintainer.report.findings.junit_xml import Case, Suite, render_suites
from maintainer.report.plan.step_text import step_word
from maintainer.report.run.outcome_text import assertion_text, figures, message
from maintainer.report.run.status_words import STEP_ENDS, TABLE_ENDS


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
