"""A run as JUnit XML: a suite is a table, a case is a step or an assertion.

*Checked, wrong* is a ``failure``; what could not be done or checked is an ``error``; what was not tried is
``skipped``. Every table of the run has a suite, and a table without steps one case that says why.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from xml.sax.saxutils import escape, quoteattr

from maintainer.model.plan.plan import Problem
from maintainer.model.run.outcome import Assertion, RunOutcome, StepOutcome, StepStatus, TableOutcome, TableStatus
from maintainer.report.plan.step_text import step_word
from maintainer.report.run.outcome_text import TABLE_STATUS_TEXT, assertion_text, figures, message
from maintainer.report.text.text_layout import iso_utc, printable

_ELEMENT = {
    StepStatus.SUCCEEDED: None,
    StepStatus.NOTHING_LEFT: None,
    StepStatus.YIELDED: "skipped",
    StepStatus.SKIPPED: "skipped",
    StepStatus.INTERRUPTED: "error",
    StepStatus.INCOMPLETE: "error",
    StepStatus.UNKNOWN: "error",
    StepStatus.FAILED: "error",
    StepStatus.VERIFY_FAILED: "failure",
}


@dataclass(frozen=True, slots=True)
class Case:
    """One ``testcase``; ``element`` is None or one of failure, error, skipped."""

    name: str
    seconds: float
    element: str | None = None
    message: str = ""
    body: str = ""

    def xml(self, suite: str) -> list[str]:
        """The element's lines."""
        head = f'    <testcase classname={_attribute(suite)} name={_attribute(self.name)} time="{self.seconds:.3f}"'
        if self.element is None:
            if not self.body:
                return [head + "/>"]
            return [head + ">", f"      <system-out>{_text(self.body)}</system-out>", "    </testcase>"]
        inner = f"      <{self.element} message={_attribute(self.message)}"
        inner += f">{_text(self.body)}</{self.element}>" if self.body else "/>"
        return [head + ">", inner, "    </testcase>"]


@dataclass(frozen=True, slots=True)
class Suite:
    """One ``testsuite``: a table."""

    name: str
    seconds: float
    cases: list[Case]


def render_junit(outcome: RunOutcome, name: str = "maintainer apply") -> str:
    """Return a run as a JUnit XML document, ending in a newline."""
    suites = [
        Suite(table.ref.identifier, sum(step.duration_seconds for step in table.steps), _cases(table))
        for table in outcome.tables
    ]
    return render_suites(name, outcome.started_at_ms, outcome.duration_seconds, suites)


def render_suites(name: str, started_at_ms: int, seconds: float, suites: list[Suite]) -> str:
    """Return suites as a JUnit XML document, ending in a newline."""
    everything = [case for suite in suites for case in suite.cases]
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    stamp = iso_utc(started_at_ms).removesuffix("Z")
    lines.append(f'<testsuites name={_attribute(name)} {_counts(everything)} time="{seconds:.3f}" timestamp="{stamp}">')
    for suite in suites:
        lines.append(
            f'  <testsuite name={_attribute(suite.name)} {_counts(suite.cases)} time="{suite.seconds:.3f}" '
            f'timestamp="{stamp}">'
        )
        for case in suite.cases:
            lines += case.xml(suite.name)
        lines.append("  </testsuite>")
    lines.append("</testsuites>")
    return "\n".join(lines) + "\n"


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
    """The case of a table that came to no step, or failed apart from its steps."""
    problem = table.problem
    what = f"{problem.code}: {problem.what}" if problem else TABLE_STATUS_TEXT[table.status]
    body = _problem_body(problem)
    match table.status:
        case TableStatus.UP_TO_DATE | TableStatus.DONE:
            return Case("plan", 0.0)
        case TableStatus.NOT_REACHED | TableStatus.YIELDED | TableStatus.WAITING:
            return Case("plan", 0.0, "skipped", what, body)
        case TableStatus.VERIFY_FAILED:
            return Case("plan", 0.0, "failure", what, body)
        case _:
            return Case("plan", 0.0, "error", what, body)


def _step_case(step: StepOutcome) -> Case:
    element = _ELEMENT[step.status]
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


def _counts(cases: list[Case]) -> str:
    numbers = {element: sum(case.element == element for case in cases) for element in ("failure", "error", "skipped")}
    return (
        f'tests="{len(cases)}" failures="{numbers["failure"]}" errors="{numbers["error"]}" '
        f'skipped="{numbers["skipped"]}"'
    )


def _attribute(text: str) -> str:
    return quoteattr(printable(text))


def _text(text: str) -> str:
    """Escape element text line by line: control characters have no place in XML 1.0, not even as entities."""
    return "\n".join(escape(printable(line)) for line in text.split("\n"))
