"""A plan as a comment on a pull request: totals, one table, folded details, and what differs from another plan.

Stable from run to run: no times, no table versions and no ages, so that the comment changes only when the plan does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from maintainer.model.plan.plan import Plan, TablePlan
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import Step
from maintainer.policy.project.policy_changes import PolicyChanges, TableChange
from maintainer.report.plan.step_text import (
    Totals,
    cost_line,
    describe,
    group_left_alone,
    how_much,
    is_named,
    tables_line,
    total,
    with_code,
)
from maintainer.report.style import Symbol
from maintainer.report.text_layout import code, escaped, folded, named, table
from maintainer.units import count_of, format_size

MAX_NAMES = 12
"""Tables named in a sentence; the rest is counted."""

MAX_VALUES = 200
"""Changed values listed; the rest is counted."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What the plan is compared with: policies at ``ref``, and what they alone would have done to the same tables."""

    ref: str
    changes: PolicyChanges
    plan: Plan


def render_comparison(plan: Plan, compared: Comparison) -> list[str]:
    """Return Markdown lines: tables that come in, go out, change; what tonight costs more or less; what keeps less.

    Args:
        plan: By the policies as they are.
        compared: With what.
    """
    changes = compared.changes
    if not changes.any:
        return [f"Compared with {code(compared.ref)}: no table's policy changes."]
    lines = [f"Compared with {code(compared.ref)}:", ""]
    for names, verb in ((changes.added, "in"), (changes.removed, "out")):
        if names:
            comes = ("comes" if len(names) == 1 else "come") if verb == "in" else ("goes" if len(names) == 1 else "go")
            lines.append(f"* {count_of(len(names), 'table')} {comes} {verb}: {_names(names)}")
    if changes.changed:
        verb = "changes" if len(changes.changed) == 1 else "change"
        names = tuple(change.table for change in changes.changed)
        lines.append(f"* {count_of(len(names), 'table')} {verb}: {_names(names)}")
    lines += [f"* **{_keeps_less(change)}**" for change in changes.changed if change.shorter_retention]
    lines += [f"* {line}" for line in _tonight(total(compared.plan.user_tables), total(plan.user_tables))]
    values = [
        (escaped(change.table), code(value.key), code(value.before), code(value.now))
        for change in changes.changed
        for value in change.values
    ]
    if values:
        shown = table(("table", "value", "before", "now"), values[:MAX_VALUES])
        more = [] if len(values) <= MAX_VALUES else ["", f"and {len(values) - MAX_VALUES:,} more"]
        lines += ["", *folded(f"{count_of(len(values), 'value')} that change", [*shown, *more])]
    return lines


def _names(names: Sequence[str]) -> str:
    return named([escaped(name) for name in names], MAX_NAMES)


def _keeps_less(change: TableChange) -> str:
    assert change.shorter_retention is not None
    before, now = change.shorter_retention
    return f"{escaped(change.table)} keeps less: retention {before} -&gt; {now}"


def _tonight(before: Totals, now: Totals) -> list[str]:
    lines = []
    for old, new, what in (
        (before.bytes_rewritten, now.bytes_rewritten, "rewritten"),
        (before.bytes_deleted, now.bytes_deleted, "deleted"),
    ):
        if old != new:
            more = "more" if new > old else "less"
            lines.append(
                f"tonight {format_size(abs(new - old))} {more} {what}: {format_size(old)} -&gt; {format_size(new)}"
            )
    return lines or ["tonight as much is rewritten and deleted as before"]


MARKER = "<!-- maintainer:plan -->"
"""First line of the comment, by which a pipeline finds its own comment to update it."""

MAX_CHARACTERS = 60_000
"""GitHub takes 65,536 characters in a comment; the rest is for what a pipeline adds."""

_WITHOUT_TIMES: dict[ReasonCode, str] = {
    ReasonCode.NOT_DUE: "ran too recently",
    ReasonCode.OUTSIDE_WINDOW: "outside the maintenance window",
    ReasonCode.HOT: "hot: left to its writers",
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
    if compared is not None:
        lines += ["", *render_comparison(plan, compared)]
    room = max_characters - sum(len(line) + 1 for line in lines) - 1_000

    named = [row for table_plan in plan.tables if is_named(table_plan) for row in _rows(table_plan)]
    shown, room = _fit(named, room)
    if shown:
        lines += ["", *table(("", "table", "step", "what", "why"), shown)]
    lines += _left_out(len(named) - len(shown), "row")

    for title, members in _sections(plan):
        rows = [row for member in members for row in _left_rows(member)]
        shown, room = _fit(rows, room)
        if shown:
            lines += ["", *folded(title, table(("table", "left alone", "why"), shown))]
        lines += _left_out(len(rows) - len(shown), "row")
    return "\n".join(lines) + "\n"


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


def _rows(table_plan: TablePlan) -> list[tuple[str, ...]]:
    """Return the rows of one table: its problem, what blocks it, its steps, or why it is left alone as a whole."""
    name = code(table_plan.ref.identifier)
    if table_plan.problem:
        problem = table_plan.problem
        help_text = f" ({escaped(problem.help)})" if problem.help else ""
        where = code(problem.where) if problem.where else ""
        return [(Symbol.PROBLEM, name, f"error {escaped(problem.code)}", escaped(problem.what) + help_text, where)]
    if table_plan.blocked:
        return [
            (f"**{Symbol.BLOCKED}**", name, "blocked", escaped(reason.text), _origin(reason))
            for reason in table_plan.blocked
        ]
    if table_plan.steps:
        return [_step_row(name, step) for step in table_plan.steps]
    return [
        (Symbol.LEFT, name, "left alone", "", _why(entry.reason))
        for entry in {entry.reason.code: entry for entry in reversed(table_plan.left_alone)}.values()
    ]


def _step_row(name: str, step: Step) -> tuple[str, ...]:
    text = describe(step, None)
    symbol = "&#45;" if text.symbol == Symbol.DELETE else f"&#{ord(text.symbol)};"
    facts = "<br>".join(escaped(fact).replace("  ", " ") for fact in text.facts)
    why = "<br>".join(_why(reason) for reasons in text.reasons for reason in reasons)
    return (symbol, name, text.word, facts, why)


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


def _fit(rows: Sequence[tuple[str, ...]], room: int) -> tuple[list[tuple[str, ...]], int]:
    """Return the rows that fit, from the first on, and the room that is left."""
    fitting: list[tuple[str, ...]] = []
    for row in rows:
        needed = sum(len(cell) + 3 for cell in row) + 2
        if needed > room:
            return fitting, 0
        room -= needed
        fitting.append(row)
    return fitting, room


def _left_out(number: int, noun: str) -> list[str]:
    return ["", f"{count_of(number, 'more ' + noun)} did not fit: see the saved plan."] if number else []
