"""A plan for a terminal: what would be done, to how much, why, and what is left alone and why.

Nothing is left out: without ``verbose`` tables with nothing to do are counted and their reasons with them; with it
each table, each reason and each bin has its line. ``why`` shares the lines of facts and reasons.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from itertools import islice

from maintainer.model.closed_types import assert_never
from maintainer.model.plan.plan import LeftAlone, Plan, Problem, TablePlan, TableState
from maintainer.model.plan.reasons import ReasonCode
from maintainer.model.plan.steps import (
    BatchedStep,
    SetPropertiesStep,
    Step,
    VacuumStep,
)
from maintainer.model.table.commit_records import WriterRhythm
from maintainer.model.table.table_facts import TableRef
from maintainer.planning.budget.expected_time import ExpectedTime
from maintainer.report.plan.reason_words import LEFT_ALONE_WORDS
from maintainer.report.plan.step_text import (
    StepText,
    cost_line,
    describe,
    group_left_alone,
    how_much,
    is_named,
    problem_cause,
    rule_lines,
    step_word,
    tables_line,
    total,
    with_code,
)
from maintainer.report.style import PLAIN, Role, Style, Symbol
from maintainer.report.text_layout import (
    UTC,
    alike,
    columns,
    display_width,
    pad,
    pad_left,
    padded_width,
    partition,
    printable,
    short_commit,
    when,
)
from maintainer.units import by_cause, count_of, format_duration, format_size

_STEP_INDENT = 6
_WORD_WIDTH = 10
ONLY_APPLY_CAN_TELL = "only apply checks: both clocks, other tables' logs, whether each file is still the same"
_FACT_COLUMN = _STEP_INDENT + 2 + _WORD_WIDTH + 2


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What a rendering of a plan needs beside the plan.

    ``saved_to`` is where the plan was saved, None if it was not; ``applied_next`` leaves out what is said about that.
    ``in_brief``: of a problem only what it is, because the end of the run says it in full.
    ``width`` is where a reason goes to a line of its own; names are never cut, whatever the width.
    ``expected_time`` is how long the rewrites take at the speed of past runs, None where nobody knows.
    ``lost_ratios`` are the shares of tables' rewrites (0 to 1) that are expected to be lost to other writers.
    """

    project: str = "maintainer.yml"
    num_policies: int | None = None
    saved_to: str | None = None
    applied_next: bool = False
    in_brief: bool = False
    verbose: bool = False
    tz: tzinfo = UTC
    width: int = 120
    expected_time: ExpectedTime | None = None
    lost_ratios: Mapping[TableRef, float] = field(default_factory=dict)


def problem_lines(problem: Problem, style: Style, symbol: str = Symbol.PROBLEM) -> Iterator[str]:
    """Yield the lines under a table that could not be planned: code, what, where, help."""
    yield _fact_line(symbol, printable(problem.code), printable(problem.what), style)
    for label, text in (("at", problem.where), ("help", problem.help)):
        if text:
            yield " " * _FACT_COLUMN + f"{label}: {printable(text)}"


def step_lines(text: StepText, options: PlanOptions, style: Style) -> Iterator[str]:
    """Yield the lines of one step; only the first has the symbol and the word."""
    for index, (facts, reasons) in enumerate(zip(text.facts, text.reasons, strict=True)):
        symbol, word = (text.symbol, text.word) if index == 0 else (" ", "")
        texts = [(printable(reason.text), printable(reason.origin or "")) for reason in reasons]
        yield from fact_lines(symbol, word, facts, texts, options, style)


def fact_lines(
    symbol: str,
    word: str,
    facts: str,
    reasons: Sequence[tuple[str, str]],
    options: PlanOptions,
    style: Style,
) -> Iterator[str]:
    """Yield facts and reasons on one line where they fit, else each reason on a line of its own below.

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


def bin_lines(step: Step) -> Iterator[str]:
    """Yield a line for each bin or deleted file: exactly what the step takes."""
    match step:
        case SetPropertiesStep():
            return
        case BatchedStep():
            rows = [
                (
                    f"commit {number}/{len(step.batches)}",
                    f"{count_of(len(bin_.files), 'file')}",
                    format_size(bin_.size_bytes),
                    partition(bin_.partition_texts),
                )
                for number, batch in enumerate(step.batches, start=1)
                for bin_ in batch.bins
            ]
        case VacuumStep():
            rows = [("delete", file.kind, format_size(file.size_bytes), printable(file.path)) for file in step.files]
        case _:
            assert_never(step)
    for line in columns(rows, right=frozenset({1, 2})):
        yield " " * _FACT_COLUMN + line
    if isinstance(step, VacuumStep) and step.files:
        yield " " * _FACT_COLUMN + ONLY_APPLY_CAN_TELL


def left_alone_lines(entries: Sequence[LeftAlone], options: PlanOptions, style: Style) -> Iterator[str]:
    """Yield a line for each reason why something is left alone, or with ``verbose`` for each entry."""
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
    reason = (with_code(code, printable(text)), printable(origin))
    yield from fact_lines(Symbol.LEFT, "left alone", amount, (reason,), options, style)


WORTH_A_LINE = 0.01
"""A plan says nothing of less than this; `why` does."""


def share(ratio: float) -> str:
    """Print a probability or a share in per cent.

    >>> share(0.0), share(0.002), share(0.118), share(0.999)
    ('0 %', 'less than 1 %', '12 %', 'more than 99 %')
    """
    if ratio <= 0:
        return "0 %"
    if ratio < WORTH_A_LINE:
        return "less than 1 %"
    return f"{ratio:.0%}".replace("%", " %") if ratio < 0.995 else "more than 99 %"


def conflict_line(rhythm: WriterRhythm | None, lost_ratio: float) -> str | None:
    """Say how much of a rewrite is expected to be lost to other writers; None for less than ``WORTH_A_LINE``."""
    if lost_ratio < WORTH_A_LINE:
        return None
    text = f"{share(lost_ratio)} of this is expected to be lost to other writers"
    if rhythm is None or not rhythm.num_taking:
        return f"{text}, as past runs were"
    return f"{text}: {_seen(rhythm)}"


def rhythm_lines(rhythm: WriterRhythm, lost_ratio: float) -> list[str]:
    """Say everything about other writers, for ``why``."""
    lines = [_seen(rhythm)]
    if rhythm.num_taking:
        busiest = max(range(len(rhythm.taking_by_hour)), key=rhythm.taking_by_hour.__getitem__)
        most = rhythm.taking_by_hour[busiest]
        lines.append(
            f"most from {busiest:02d}:00 to {(busiest + 1) % 24:02d}:00 UTC: {most:,} of {rhythm.num_taking:,}"
        )
    lines.append(f"chance that they make a rewrite useless if it runs now: {share(lost_ratio)}")
    return lines


def _seen(rhythm: WriterRhythm) -> str:
    span = format_duration(max(1, round(rhythm.seconds)))
    took = "none of them" if not rhythm.num_taking else f"{rhythm.num_taking:,} of them"
    return f"{count_of(rhythm.num_commits, 'commit')} of others in {span}, {took} took or replaced live files"


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
    commit = f" @ {short_commit(plan.git_commit)}" if plan.git_commit else ""
    parts = [style.paint(printable(options.project), Role.BOLD) + commit]
    if plan.environment:
        parts.append(f"env {printable(plan.environment)}")
    policies = "" if options.num_policies is None else count_of(options.num_policies, "policy", "policies") + ", "
    selected = " selected" if plan.selection else ""
    parts.append(f"{policies}{count_of(len(plan.user_tables), 'table')}{selected}")
    return "   ".join(parts)


def table_lines(tables: Sequence[TablePlan], options: PlanOptions, style: Style) -> list[str]:
    """Return one block of lines a table, their headings in columns; tables of one problem share a block."""
    groups = by_cause(tables, lambda table: None if options.verbose else problem_cause(table))
    others = {group[0].ref: [printable(table.ref.identifier) for table in group[1:]] for group in groups}
    tables = [group[0] for group in groups]
    headings = [_heading_cells(table) for table in tables]
    widths = [padded_width(cells[index] for cells in headings) for index in range(4)]
    lines: list[str] = []
    for table, (name, version, size, files) in zip(tables, headings, strict=True):
        symbol = _STATE_SYMBOL.get(table.state, Symbol.LEFT if is_named(table) else Symbol.SAME)
        cells = [style.symbol(symbol), style.paint(pad(name, widths[0]), Role.BOLD)]
        if any(widths[1:]):
            joint = " in " if size else "    "
            numbers = f"{pad_left(size, widths[2])}{joint}{pad_left(files, widths[3])}"
            cells += [f"  {pad(version, widths[1])}", f"  {numbers}"]
        source = printable(table.source) + ("   new" if table.is_new else "")
        lines.append(f"  {' '.join(cells)}   {style.paint(source, Role.DIM)}".rstrip())
        lines.extend(_body(table, options, style))
        if others[table.ref]:
            lines.append(" " * _FACT_COLUMN + alike(others[table.ref]))
    return lines


def _heading_cells(table: TablePlan) -> tuple[str, str, str, str]:
    name = printable(table.ref.identifier)
    seen = table.observed
    if seen is None:
        return (name, "", "", "")
    return (name, f"v{seen.version}", format_size(seen.size_bytes), count_of(seen.num_files, "file"))


_STATE_SYMBOL = {
    TableState.PROBLEM: Symbol.PROBLEM,
    TableState.UNSUPPORTED: Symbol.LEFT,
    TableState.BLOCKED: Symbol.BLOCKED,
    TableState.CHANGES: Symbol.CHANGE,
    TableState.WAITING: Symbol.LEFT,
}


def _body(table: TablePlan, options: PlanOptions, style: Style) -> Iterator[str]:
    if table.problem:
        lines = problem_lines(table.problem, style, _STATE_SYMBOL[table.state])
        yield from islice(lines, 1 if options.in_brief else None)
    for reason in table.blocked:
        origin = ("", printable(reason.origin or ""))
        yield from fact_lines(Symbol.BLOCKED, "blocked", printable(reason.text), (origin,), options, style)
    for step in table.steps:
        yield from step_lines(describe(step, options.tz), options, style)
        if options.verbose:
            yield from bin_lines(step)
    yield from note_lines(table, options, style)
    lost = conflict_line(table.writers, options.lost_ratios.get(table.ref, 0.0))
    if lost is not None:
        yield from fact_lines(Symbol.BLOCKED, "conflicts", lost, (), options, style)
    yield from left_alone_lines(table.left_alone, options, style)


def note_lines(table: TablePlan, options: PlanOptions, style: Style) -> Iterator[str]:
    """Yield a line for each note on what is rewritten."""
    for note in table.notes:
        yield from fact_lines(Symbol.SAME, "note", printable(note.text), (), options, style)


def _quiet_line(tables: Sequence[TablePlan], style: Style) -> str:
    # Each table counts once, by the reason that most of its files are left alone for.
    codes = Counter(
        max(table.left_alone, key=lambda entry: entry.num_files).reason.code for table in tables if table.left_alone
    )
    why = ", ".join(
        f"{LEFT_ALONE_WORDS.get(code, code.value)} ({count_of(number, 'table')})" for code, number in codes.items()
    )
    return f"  {style.symbol(Symbol.SAME)} {count_of(len(tables), 'table')}   nothing to do{': ' + why if why else ''}"


def expected_line(expected: ExpectedTime) -> str:
    """Say how long rewriting takes, and what that rests on."""
    by = f"by {count_of(expected.num_commits, 'past commit')} and one table at a time"
    if expected.misses is None or expected.least_seconds is None or expected.most_seconds is None:
        return f"Rewriting takes roughly {_seconds(expected.seconds)}, {by}: a first guess."
    least, most = _seconds(expected.least_seconds), _seconds(expected.most_seconds)
    times = f"past runs took {expected.misses[0]:.1f} to {expected.misses[1]:.1f} times what was expected"
    return f"Rewriting is expected to take {least if least == most else f'{least} to {most}'}, {by}: {times}."


def _seconds(seconds: float) -> str:
    return format_duration(max(1, round(seconds)))


def _footer(plan: Plan, options: PlanOptions, style: Style) -> Iterator[str]:
    if not plan.tables:
        yield "No table is selected: nothing to plan."
        yield from rule_lines(plan, printable)
        yield from _saved_without_changes(options)
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
        if options.expected_time is not None:
            yield expected_line(options.expected_time)
    yield from rule_lines(plan, printable)
    if not plan.has_changes:
        if totals.num_tables[TableState.WAITING]:
            yield f"Nothing to do now{_why_nothing(options)}."
        elif not totals.num_tables[TableState.BLOCKED] and not totals.num_tables[TableState.PROBLEM]:
            yield f"Nothing to do{_why_nothing(options)}."
        yield from _saved_without_changes(options)
        return
    if options.applied_next:
        return
    yield ""
    if options.saved_to is None:
        yield "This plan was not saved: a later `maintainer apply` plans again and may do something else."
        yield "`--out FILE` saves it, so that `maintainer apply FILE` does exactly this."
    else:
        until = when(plan.expires_at_ms, options.tz)
        yield f"Saved {printable(options.saved_to)}, valid until {until}. To do exactly this:"
        yield f"    maintainer apply {printable(shlex.quote(options.saved_to))}"


def _why_nothing(options: PlanOptions) -> str:
    """Name the command that gives each table's reason, where it was not given already and no run follows."""
    return "" if options.verbose or options.applied_next else "; `maintainer -v plan` says why, for each table"


def _saved_without_changes(options: PlanOptions) -> Iterator[str]:
    if options.saved_to is not None and not options.applied_next:
        yield f"Saved {printable(options.saved_to)}: it changes nothing."
