"""A plan as a comment on a pull request: totals, one table, folded details, and what differs from another plan.

Stable from run to run: no times, no table versions and no ages, so that the comment changes only when the plan does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from maintainer.model.plan.plan import Plan, TablePlan
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import SetPropertiesStep, Step
from maintainer.report.markdown_text import code, code_block, escaped, fitting, folded, table
from maintainer.report.plan.comparison_markdown import Comparison, render_comparison
from maintainer.report.plan.step_text import (
    INTERNAL,
    StepText,
    cost_line,
    describe,
    group_left_alone,
    how_much,
    is_internal,
    is_named,
    problem_cause,
    rule_lines,
    shortened,
    tables_line,
    total,
    with_code,
)
from maintainer.report.style import Symbol
from maintainer.report.text_layout import alike
from maintainer.units import by_cause, count_of

MARKER = "<!-- maintainer:plan -->"
"""First line of the comment, by which a pipeline finds its own comment to update it."""

MAX_CHARACTERS = 60_000
"""GitHub takes 65,536 characters in a comment; the rest is for what a pipeline adds."""

_WITHOUT_TIMES: dict[ReasonCode, str] = {
    ReasonCode.NOT_DUE: "ran too recently",
    ReasonCode.OUTSIDE_WINDOW: "outside the maintenance window",
    ReasonCode.HOT: "hot: left to its writers",
    ReasonCode.RESTING: "resting after our own rewrites",
}
"""Reasons whose sentence says when something was or will be, and what is said here instead."""


def render_plan_markdown(plan: Plan, max_characters: int = MAX_CHARACTERS, compared: Comparison | None = None) -> str:
    """Return the plan as GitHub Markdown of at most ``max_characters``, ending in a newline.

    What does not fit is counted, never dropped silently.
    """
    totals = total(plan.user_tables)
    where = f" ({escaped(plan.environment)})" if plan.environment else ""
    lines = [MARKER, f"### maintainer plan{where}", "", f"**{tables_line(totals)}**"]
    cost = cost_line(totals)
    if cost:
        lines += ["", cost[0].upper() + cost[1:] + "."]
    if not plan.tables:
        lines += ["", "No table is selected."]
    for line in rule_lines(plan, escaped):
        lines += ["", line]
    if compared is not None:
        lines += ["", *render_comparison(plan, compared, max_characters // 2), "", "#### What the next apply does"]
    room = max_characters - sum(len(line) + 1 for line in lines) - 1_000

    groups = by_cause([table_plan for table_plan in plan.tables if is_named(table_plan)], problem_cause)
    named = [row for group in groups for row in _group_rows(group)]
    shown, room = fitting(named, room)
    if shown:
        lines += ["", *table(("", "table", "step", "what", "why"), shown)]
    lines += _left_out(len(named) - len(shown), "row")

    for title, members in _sections(plan):
        rows = [row for member in members for row in _left_rows(member)]
        shown, room = fitting(rows, room)
        if shown:
            lines += ["", *folded(title, table(("table", "left alone", "why"), shown))]
        lines += _left_out(len(rows) - len(shown), "row")
    return "\n".join(lines) + "\n"


MAX_ERROR_LINES = 100
MAX_ERROR_CHARACTERS = 500
"""Of one line of an error."""


def render_failure_markdown(error: str, findings: Iterable[str] = (), environment: str | None = None) -> str:
    """Return the comment that stands where a plan would, when there is none: the error as it is on the terminal.

    Args:
        error: The error, in one or several lines.
        findings: What is wrong in the policies, a line each.
        environment: Of which environment the plan was to be.
    """
    where = f" ({escaped(environment)})" if environment else ""
    lines = [*error.splitlines(), *findings]
    rest = len(lines) - MAX_ERROR_LINES
    shown = [line[:MAX_ERROR_CHARACTERS] for line in lines[:MAX_ERROR_LINES]]
    more = [f"and {count_of(rest, 'more line')}"] if rest > 0 else []
    text = [MARKER, f"### maintainer plan{where}", "", "**There is no plan, because of this error:**", ""]
    return "\n".join([*text, *code_block([*shown, *more])]) + "\n"


def _sections(plan: Plan) -> list[tuple[str, list[TablePlan]]]:
    changed = [member for member in plan.user_tables if member.steps and member.left_alone]
    unnamed = [member for member in plan.user_tables if not is_named(member)]
    waiting = [member for member in unnamed if member.state == "waiting"]
    quiet = [member for member in unnamed if member.state != "waiting"]
    sections = [
        (f"Left alone in {count_of(len(changed), 'table')} to change", changed),
        (f"{count_of(len(waiting), 'table')} waiting", waiting),
        (f"{count_of(len(quiet), 'table')} up to date", quiet),
    ]
    return [(title, members) for title, members in sections if members]


def _group_rows(group: Sequence[TablePlan]) -> list[tuple[str, ...]]:
    """Return the rows of a table, or the one of tables that cannot be planned for one reason."""
    rows = _rows(group[0])
    if len(group) == 1:
        return rows
    [(symbol, name, step, what, where)] = rows
    return [(symbol, name, step, f"{what}; {alike([code(table.ref.identifier) for table in group[1:]])}", where)]


def _rows(table_plan: TablePlan) -> list[tuple[str, ...]]:
    """Return the rows of one table: its problem, what blocks it, its steps, or why it is left alone as a whole."""
    name = code(table_plan.ref.identifier)
    if table_plan.problem:
        problem = table_plan.problem
        help_text = f". {escaped(problem.help[:1].upper() + problem.help[1:])}" if problem.help else ""
        where = code(problem.where) if problem.where else ""
        symbol, word = (Symbol.LEFT, "left alone") if table_plan.is_passed_over else (Symbol.PROBLEM, "error")
        return [(symbol, name, f"{word} {escaped(problem.code)}", escaped(problem.what) + help_text, where)]
    if table_plan.blocked:
        return [
            (f"**{Symbol.BLOCKED}**", name, "blocked", escaped(reason.text), _origin(reason))
            for reason in table_plan.blocked
        ]
    if table_plan.steps:
        return [row for step in table_plan.steps for row in _step_rows(name, step)]
    return [
        (Symbol.LEFT, name, "left alone", "", _why(entry.reason))
        for entry in {entry.reason.code: entry for entry in reversed(table_plan.left_alone)}.values()
    ]


def _step_rows(name: str, step: Step) -> list[tuple[str, ...]]:
    text = describe(step, None)
    if isinstance(step, SetPropertiesStep):
        return _property_rows(name, step, text)
    facts = "; ".join(escaped(fact).replace("  ", " ") for fact in text.facts)
    why = "; ".join(_why(reason) for reasons in text.reasons for reason in reasons)
    return [(text.symbol, name, text.word, facts, why)]


def _property_rows(name: str, step: SetPropertiesStep, text: StepText) -> list[tuple[str, ...]]:
    """Return a row for each property; what Z-order remembers in the table between runs is named, and not printed."""
    before = dict(step.before)
    rows: list[tuple[str, ...]] = []
    for (key, value), reasons in zip(step.after, text.reasons, strict=True):
        old = before.get(key)
        change = f"{'not set' if old is None else code(shortened(old))} -> {code(shortened(value))}"
        what = f"{code(key)} {change}"
        if is_internal(key):
            what, reasons = INTERNAL, tuple(replace(why, text=why.text.removeprefix(f"{key}: ")) for why in reasons)
        rows.append((text.symbol, name, text.word, what, "; ".join(map(_why, reasons))))
    return rows


def _left_rows(table_plan: TablePlan) -> list[tuple[str, ...]]:
    name = code(table_plan.ref.identifier)
    if not table_plan.left_alone:
        return [(name, "", "nothing to do")]
    rows: list[tuple[str, ...]] = []
    for group in group_left_alone(table_plan.left_alone):
        origins = ", ".join(code(origin) for origin in group.origins)
        text = escaped(_WITHOUT_TIMES.get(group.code, group.text))
        amount = how_much(group.num_files, group.size_bytes, group.num_partitions)
        rows.append((name, amount, f"{with_code(group.code, text)} {origins}".rstrip()))
    return rows


def _why(reason: Reason) -> str:
    return f"{escaped(_WITHOUT_TIMES.get(reason.code, reason.text))} {_origin(reason)}".rstrip()


def _origin(reason: Reason) -> str:
    return code(reason.origin) if reason.origin else ""


def _left_out(number: int, noun: str) -> list[str]:
    return ["", f"{count_of(number, 'more ' + noun)} did not fit: see the saved plan."] if number else []
