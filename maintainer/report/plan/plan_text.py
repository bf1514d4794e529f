"""A plan for a terminal: what would be done, to how much, why, and what is left alone and why.

Nothing is left out: without ``verbose`` tables with nothing to do are counted and their reasons with them; with it
each table, each reason and each bin has its line.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence

from maintainer.model.plan.plan import Plan, TablePlan, TableState
from maintainer.report.plan.plan_lines import (
    PlanOptions,
    bin_lines,
    conflict_line,
    fact_lines,
    left_alone_lines,
    problem_lines,
    step_lines,
)
from maintainer.report.plan.step_text import cost_line, describe, is_named, step_word, tables_line, total
from maintainer.report.text.style import PLAIN, Role, Style, Symbol
from maintainer.report.text.text_layout import count, pad, pad_left, padded_width, printable, when
from maintainer.units import format_duration, format_size

__all__ = ["PlanOptions", "render_plan"]


def render_plan(plan: Plan, options: PlanOptions | None = None, style: Style = PLAIN) -> str:
    """Return the plan as text, ending in a newline."""
    options = options or PlanOptions()
    lines = [_header(plan, options, style), ""]
    shown = [table for table in plan.tables if options.verbose or is_named(table)]
    lines.extend(table_lines(shown, options, style))
    quiet = [table for table in plan.user_tables if not is_named(table)]
    if quiet and not options.verbose:
        lines.append(_quiet_line(quiet, style))
    if plan.tables:
        lines.append("")
    lines.extend(_footer(plan, options, style))
    return "\n".join(lines) + "\n"


def _header(plan: Plan, options: PlanOptions, style: Style) -> str:
    commit = f" @ {printable(plan.git_commit)}" if plan.git_commit else ""
    parts = [style.paint(printable(options.project), Role.BOLD) + commit]
    if plan.environment:
        parts.append(f"env {printable(plan.environment)}")
    policies = "" if options.num_policies is None else count(options.num_policies, "policy", "policies") + ", "
    selected = " selected" if plan.selection else ""
    parts.append(f"{policies}{count(len(plan.user_tables), 'table')}{selected}")
    return "   ".join(parts)


def table_lines(tables: Sequence[TablePlan], options: PlanOptions, style: Style) -> list[str]:
    """Return one block of lines a table, their headings in columns."""
    headings = [_heading_cells(table) for table in tables]
    widths = [padded_width(cells[index] for cells in headings) for index in range(4)]
    lines: list[str] = []
    for table, (name, version, size, files) in zip(tables, headings, strict=True):
        symbol = _table_symbol(table)
        cells = [style.symbol(symbol), style.paint(pad(name, widths[0]), Role.BOLD)]
        if any(widths[1:]):
            joint = " in " if size else "    "
            numbers = f"{pad_left(size, widths[2])}{joint}{pad_left(files, widths[3])}"
            cells += [f"  {pad(version, widths[1])}", f"  {numbers}"]
        lines.append(f"  {' '.join(cells)}   {style.paint(printable(table.policy_file), Role.DIM)}".rstrip())
        lines.extend(_body(table, options, style))
    return lines


def _heading_cells(table: TablePlan) -> tuple[str, str, str, str]:
    name = printable(table.ref.identifier)
    seen = table.observed
    if seen is None:
        return (name, "", "", "")
    return (name, f"v{seen.version}", format_size(seen.size_bytes), count(seen.num_files, "file"))


_STATE_SYMBOL = {
    TableState.PROBLEM: Symbol.PROBLEM,
    TableState.BLOCKED: Symbol.BLOCKED,
    TableState.CHANGES: Symbol.CHANGE,
    TableState.WAITING: Symbol.LEFT,
}


def _table_symbol(table: TablePlan) -> str:
    up_to_date = Symbol.LEFT if is_named(table) else Symbol.SAME
    return _STATE_SYMBOL.get(table.state, up_to_date)


def _body(table: TablePlan, options: PlanOptions, style: Style) -> Iterator[str]:
    if table.problem:
        yield from problem_lines(table.problem, style)
    for reason in table.blocked:
        origin = ("", printable(reason.origin or ""))
        yield from fact_lines(Symbol.BLOCKED, "blocked", printable(reason.text), (origin,), options, style)
    for step in table.steps:
        yield from step_lines(describe(step, options.tz), options, style)
        if options.verbose:
            yield from bin_lines(step)
    lost = conflict_line(table.writers, options.lost_ratios.get(table.ref, 0.0))
    if lost is not None:
        yield from fact_lines(Symbol.BLOCKED, "conflicts", lost, (), options, style)
    yield from left_alone_lines(table.left_alone, options, style)


def _quiet_line(tables: Sequence[TablePlan], style: Style) -> str:
    # Each table counts once, by the reason that most of its files are left alone for.
    codes = Counter(
        max(table.left_alone, key=lambda entry: entry.num_files).reason.code.value
        for table in tables
        if table.left_alone
    )
    why = ", ".join(f"{code} in {number:,}" for code, number in codes.items())
    return f"  {style.symbol(Symbol.SAME)} {count(len(tables), 'table')}   nothing to do{': ' + why if why else ''}"


def _footer(plan: Plan, options: PlanOptions, style: Style) -> Iterator[str]:
    if not plan.tables:
        yield "No table is selected: nothing to plan."
        return
    totals = total(plan.user_tables)
    yield style.paint("Plan: ", Role.BOLD) + tables_line(totals) + "."
    for table in plan.tables:
        if table.is_ledger and table.state != "up_to_date":
            steps = ", ".join(step_word(step.kind) for step in table.steps)
            yield f"Also our own ledger: {steps or table.state}."
    cost = cost_line(totals)
    if cost:
        yield cost[0].upper() + cost[1:] + "."
        if options.expected_seconds is not None:
            took = format_duration(max(1, round(options.expected_seconds)))
            yield f"Rewriting is expected to take {took}, at the speed of past runs and one table at a time."
    if not plan.has_changes:
        if totals.num_tables[TableState.WAITING]:
            yield "Nothing to do now."
        elif not totals.num_tables[TableState.BLOCKED] and not totals.num_tables[TableState.PROBLEM]:
            yield "Nothing to do."
        return
    if options.applied_next:
        return
    yield ""
    if options.saved_to is None:
        yield "This plan was not saved: a later `maintainer apply` plans anew and may do something else."
        yield "`--out FILE` saves it, so that `maintainer apply FILE` does exactly this."
    else:
        until = when(plan.expires_at_ms, options.tz)
        yield f"Saved {printable(options.saved_to)}, valid until {until}. To do exactly this:"
        yield f"    maintainer apply {printable(shlex.quote(options.saved_to))}"
