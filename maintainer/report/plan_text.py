"""A plan for a terminal: what would be done, to how much, why, and what is left alone and why.

Nothing is left out: without ``verbose`` tables with nothing to do are counted and their reasons with them; with it
each table, each reason and each bin has its line.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import tzinfo

from maintainer.model.closed import assert_never
from maintainer.model.plan import (
    CompactStep,
    LeftAlone,
    Plan,
    Problem,
    Reason,
    ReasonCode,
    SetPropertiesStep,
    Step,
    TablePlan,
    VacuumStep,
    ZOrderStep,
)
from maintainer.report.layout import (
    UTC,
    columns,
    count,
    display_width,
    pad,
    pad_left,
    padded_width,
    partition,
    printable,
    when,
)
from maintainer.report.steps import (
    StepText,
    cost_line,
    describe,
    group_left_alone,
    how_much,
    is_named,
    tables_line,
    total,
)
from maintainer.report.style import PLAIN, Role, Style, Symbol
from maintainer.units import format_size

_STEP_INDENT = 6
_WORD_WIDTH = 10
_FACT_COLUMN = _STEP_INDENT + 2 + _WORD_WIDTH + 2


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What a rendering of a plan needs beside the plan.

    ``saved_to`` is where the plan was saved, None if it was not. ``width`` is where a reason goes to a line of its
    own; names are never cut, whatever the width.
    """

    project: str = "maintainer.yml"
    num_policies: int | None = None
    saved_to: str | None = None
    verbose: bool = False
    tz: tzinfo = UTC
    width: int = 120


def render_plan(plan: Plan, options: PlanOptions | None = None, style: Style = PLAIN) -> str:
    """Return the plan as text, ending in a newline."""
    options = options or PlanOptions()
    lines = [_header(plan, options, style), ""]
    shown = [table for table in plan.tables if options.verbose or is_named(table)]
    lines.extend(table_lines(shown, options, style))
    quiet = [table for table in plan.tables if not is_named(table)]
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
    parts.append(f"{policies}{count(len(plan.tables), 'table')}{selected}")
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


def _table_symbol(table: TablePlan) -> str:
    match table.state:
        case "problem":
            return Symbol.PROBLEM
        case "blocked":
            return Symbol.BLOCKED
        case "changes":
            return Symbol.CHANGE
        case _:
            return Symbol.LEFT if is_named(table) else Symbol.SAME


def _body(table: TablePlan, options: PlanOptions, style: Style) -> Iterator[str]:
    if table.problem:
        yield from problem_lines(table.problem, style)
    for reason in table.blocked:
        origin = ("", printable(reason.origin or ""))
        yield from fact_lines(Symbol.BLOCKED, "blocked", printable(reason.text), (origin,), options, style)
    for step in table.steps:
        yield from step_lines(describe(step, options.tz), options, style)
        if options.verbose:
            yield from _bin_lines(step)
    yield from left_alone_lines(table.left_alone, options, style)


def problem_lines(problem: Problem, style: Style) -> Iterator[str]:
    """The lines under a table that could not be planned: code, what, where, help."""
    yield _fact_line(Symbol.PROBLEM, printable(problem.code), printable(problem.what), style)
    for label, text in (("at", problem.where), ("help", problem.help)):
        if text:
            yield " " * _FACT_COLUMN + f"{label}: {printable(text)}"


def step_lines(text: StepText, options: PlanOptions, style: Style) -> Iterator[str]:
    """The lines of one step; only the first carries symbol and word."""
    for index, (facts, reasons) in enumerate(zip(text.facts, text.reasons, strict=True)):
        symbol, word = (text.symbol, text.word) if index == 0 else (" ", "")
        yield from fact_lines(symbol, word, facts, tuple(reason_text(reason) for reason in reasons), options, style)


def reason_text(reason: Reason) -> tuple[str, str]:
    """A reason as its sentence and its policy line (empty without one)."""
    return (printable(reason.text), printable(reason.origin or ""))


def fact_lines(
    symbol: str,
    word: str,
    facts: str,
    reasons: Sequence[tuple[str, str]],
    options: PlanOptions,
    style: Style,
) -> Iterator[str]:
    """Facts and reasons on one line where they fit, else each reason on a line of its own below.

    Each reason is its sentence and its policy line, either of which may be empty.
    """
    tails = ["   ".join(part for part in reason if part) for reason in reasons]
    tails = [tail for tail in tails if tail]
    one_line = "   ".join([facts, *tails]) if facts else "   ".join(tails)
    if len(tails) <= 1 and _FACT_COLUMN + display_width(one_line) <= options.width:
        painted = [style.paint(tail, Role.DIM) for tail in tails]
        yield _fact_line(symbol, word, "   ".join([facts, *painted] if facts else painted), style)
        return
    yield _fact_line(symbol, word, facts, style)
    for tail in tails:
        yield " " * _FACT_COLUMN + style.paint(tail, Role.DIM)


def _fact_line(symbol: str, word: str, facts: str, style: Style) -> str:
    mark = style.symbol(symbol) if symbol.strip() else symbol
    return f"{' ' * _STEP_INDENT}{mark} {pad(word, _WORD_WIDTH)}  {facts}".rstrip()


def _bin_lines(step: Step) -> Iterator[str]:
    """One line a bin, or a deleted file: exactly what the step takes."""
    match step:
        case SetPropertiesStep():
            return
        case CompactStep() | ZOrderStep():
            rows = [
                (
                    f"commit {number}/{len(step.batches)}",
                    f"{count(len(one.files), 'file')}",
                    format_size(one.size_bytes),
                    partition(one.partition_values),
                )
                for number, batch in enumerate(step.batches, start=1)
                for one in batch.bins
            ]
        case VacuumStep():
            rows = [("delete", file.kind, format_size(file.size_bytes), printable(file.path)) for file in step.files]
        case _:
            assert_never(step)
    for line in columns(rows, right=frozenset({1, 2})):
        yield " " * _FACT_COLUMN + line


def left_alone_lines(entries: Sequence[LeftAlone], options: PlanOptions, style: Style) -> Iterator[str]:
    """What is left alone: a line for each reason code, or with ``verbose`` for each entry."""
    if not options.verbose:
        for group in group_left_alone(entries):
            amount = how_much(group.num_files, group.size_bytes, group.num_partitions)
            origin = ", ".join(printable(origin) for origin in group.origins)
            yield from _left_line(amount, group.code, group.text, origin, options, style)
        return
    for entry in entries:
        amount = how_much(entry.num_files, entry.size_bytes)
        if entry.partition_values:
            amount = f"{partition(entry.partition_values)}  {amount}".rstrip()
        yield from _left_line(amount, entry.reason.code, entry.reason.text, entry.reason.origin or "", options, style)


def _left_line(
    amount: str, code: ReasonCode, text: str, origin: str, options: PlanOptions, style: Style
) -> Iterator[str]:
    reason = (f"{code.value}: {printable(text)}", printable(origin))
    yield from fact_lines(Symbol.LEFT, "left alone", amount, (reason,), options, style)


def _quiet_line(tables: Sequence[TablePlan], style: Style) -> str:
    codes: dict[str, int] = {}
    for table in tables:
        for code in dict.fromkeys(entry.reason.code.value for entry in table.left_alone):
            codes[code] = codes.get(code, 0) + 1
    why = ", ".join(f"{code} in {number:,}" for code, number in codes.items())
    return f"  {style.symbol(Symbol.SAME)} {count(len(tables), 'table')}   nothing to do{': ' + why if why else ''}"


def _footer(plan: Plan, options: PlanOptions, style: Style) -> Iterator[str]:
    if not plan.tables:
        yield "No table is selected: nothing to plan."
        return
    totals = total(plan.tables)
    yield style.paint("Plan: ", Role.BOLD) + tables_line(totals) + "."
    cost = cost_line(totals)
    if cost:
        yield cost[0].upper() + cost[1:] + "."
    if not plan.has_changes:
        if not totals.num_blocked and not totals.num_problems:
            yield "Nothing to do."
        return
    yield ""
    if options.saved_to is None:
        yield "This plan was not saved: a later `maintainer apply` plans anew and may do something else."
        yield "`--out FILE` saves it, so that `maintainer apply FILE` does exactly this."
    else:
        until = when(plan.expires_at_ms, options.tz)
        yield f"Saved {printable(options.saved_to)}, valid until {until}. To do exactly this:"
        yield f"    maintainer apply {printable(shlex.quote(options.saved_to))}"
