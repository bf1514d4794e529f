"""JUnit XML: a suite is a table or a file, a case is a step, a check or a finding.

A ``failure`` was checked and is wrong, an ``error`` could not be done or checked, and what was not tried is
``skipped``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape, quoteattr

from maintainer.report.text.text_layout import iso_utc, printable


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
    numbers = [("tests", len(cases))]
    for element, attribute in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        numbers.append((attribute, sum(case.element == element for case in cases)))
    counts = " ".join(f'{attribute}="{number}"' for attribute, number in numbers)
    return f'name={_attribute(name)} {counts} time="{seconds:.3f}"'


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
