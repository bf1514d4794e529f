"""A plan in words: what would be done, to how much, why, and what is left alone and why.

Tables of which the same holds (state, steps, reasons, policy lines) are said once, with sums and the first names;
``verbose`` names each of them, each reason and each bin. The comment on a pull request and ``why`` say the same.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from pathlib import PurePosixPath

from maintainer.model.plan.plan import Plan, TablePlan, TableState, is_place
from maintainer.model.plan.reasons import Reason
from maintainer.model.table.commit_records import WriterRhythm
from maintainer.model.table.store_requests import RunRequests
from maintainer.model.table.table_facts import TableRef
from maintainer.planning.budget.request_estimate import requests_of, step_terms
from maintainer.planning.budget.run_budget import ExpectedTime
from maintainer.report.document.blocks import (
    Block,
    CodeBlock,
    Line,
    Span,
    Statement,
    Subject,
    Subjects,
    TableBlock,
    spans,
    subject_table,
)
from maintainer.report.document.folding import FOLD, merged, nameless
from maintainer.report.document.terminal_writer import terminal_text
from maintainer.report.plan.plan_totals import Totals, cost_line, rule_lines, tables_line
from maintainer.report.plan.step_text import (
    alike,
    describe,
    is_named,
    left_alone,
    places,
    price_of,
    reason_words,
    said_reasons,
    step_word,
)
from maintainer.report.style import PLAIN, Role, Style, Symbol
from maintainer.report.text_layout import noun_of, short_commit, short_share, when
from maintainer.units import by_cause, count_of, format_duration, format_size


@dataclass(frozen=True, slots=True)
class PlanTextOptions:
    """What a rendering of a plan needs beside the plan.

    ``saved_to`` is where the plan was saved, None if it was not; ``applied_next`` leaves out what is said about that.
    ``in_brief``: of a problem only what it is, because the end of the run says it in full. ``tz`` is the zone of
    times; with None no time and no version is said, so that a comment changes only when the plan does.
    ``expected_time`` is how long the rewrites take at the speed of past runs, None where nobody knows.
    ``lost_ratios`` are the shares of tables' rewrites (0 to 1) that are expected to be lost to other writers.
    ``requests`` are those that a run is expected to make to object stores, with their price; None leaves them out.
    """

    project: str = "maintainer.yml"
    num_policies: int | None = None
    saved_to: str | None = None
    applied_next: bool = False
    in_brief: bool = False
    verbose: bool = False
    tz: tzinfo | None = UTC
    expected_time: ExpectedTime | None = None
    lost_ratios: Mapping[TableRef, float] = field(default_factory=dict)
    requests: RunRequests | None = None


def render_plan(plan: Plan, options: PlanTextOptions | None = None, style: Style = PLAIN) -> str:
    """Return the plan as text, ending in a newline."""
    options = options or PlanTextOptions()
    quiet = [] if options.verbose else [table for table in plan.user_tables if not is_named(table)]
    document: list[Block] = [_head(plan, options), Line()]
    shown, rest = (subjects_of(plan.tables, options), ()) if options.verbose else top_subjects(plan, options)
    document.append(shown)
    if rest:
        where = f"`-v` names each, {options.saved_to} has all" if options.saved_to else "`-v` names each"
        document.append(Line(("  ", Span(Symbol.CHANGE, Role.DIM), f" {no_more_to_rewrite(rest)}   ({where})")))
    if quiet:
        document.append(Line(("  ", Span(Symbol.SAME, Role.DIM), f" {_quiet_line(quiet)}")))
    if plan.tables:
        document.append(Line())
    return terminal_text([*document, *_end(plan, options)], style)


def _head(plan: Plan, options: PlanTextOptions) -> Line:
    parts = [f" @ {short_commit(plan.git_commit)}" if plan.git_commit else ""]
    parts += [f"env {plan.environment}"] if plan.environment else []
    policies = "" if options.num_policies is None else count_of(options.num_policies, "policy", "policies") + ", "
    parts.append(f"{policies}{count_of(plan.num_tables, 'table')}{' selected' if plan.selection else ''}")
    return Line((Span(options.project, Role.BOLD), "   ".join(parts)))


_SYMBOLS = {
    TableState.PROBLEM: Symbol.PROBLEM,
    TableState.BLOCKED: Symbol.BLOCKED,
    TableState.UNSUPPORTED: Symbol.LEFT,
    TableState.WAITING: Symbol.LEFT,
    TableState.CHANGES: Symbol.CHANGE,
    TableState.UP_TO_DATE: Symbol.SAME,
}
"""The symbol of a state; the worst state comes first."""


def subjects_of(tables: Iterable[TablePlan], options: PlanTextOptions) -> Subjects:
    """Return what is said of tables, the worst first, of a state by bytes to rewrite; those that are alike are one."""
    return _subjects(_groups(tables, options), options)


def _subjects(groups: Iterable[Sequence[TablePlan]], options: PlanTextOptions) -> Subjects:
    return Subjects([_subject(group, options) for group in groups])


def _groups(tables: Iterable[TablePlan], options: PlanTextOptions) -> list[list[TablePlan]]:
    order = list(_SYMBOLS)
    groups = by_cause(list(tables), lambda table: None if options.verbose else _alike(table, options), at_least=FOLD)
    return sorted(groups, key=lambda group: (order.index(group[0].state), -_bytes_to_rewrite(group)))


def _bytes_to_rewrite(tables: Sequence[TablePlan]) -> int:
    return sum(step.size_bytes for table in tables for step in table.rewrites)


_WRONG = (TableState.PROBLEM, TableState.BLOCKED)
MAX_GROUPS = 20
"""So many tables or groups of them stand in a plan, those with most to rewrite; and all in which something is wrong."""


def top_subjects(plan: Plan, options: PlanTextOptions) -> tuple[Subjects, Sequence[Subject]]:
    """Split off what is not said at once, in a plan of so many tables that nobody would read it."""
    groups = _groups(filter(is_named, plan.tables), options)
    wrong = [group for group in groups if group[0].state in _WRONG]
    others = groups[len(wrong) :]
    if len(others) > MAX_GROUPS:
        others.sort(key=lambda group: -_bytes_to_rewrite(group))
    top = _subjects([*wrong, *others[:MAX_GROUPS]], options)
    return top, _subjects(others[MAX_GROUPS:], options).subjects


def no_more_to_rewrite(subjects: Sequence[Subject]) -> str:
    """Count the tables that come after those with most to rewrite."""
    return f"{count_of(sum(len(subject.names) for subject in subjects), 'more table')} with no more to rewrite"


def plan_table(plan: Plan) -> TableBlock:
    """Return what is said of the tables of a plan as rows, for a notebook."""
    return subject_table(subjects_of(filter(is_named, plan.tables), PlanTextOptions(tz=None)).subjects)


def _alike(table: TablePlan, options: PlanTextOptions) -> Hashable:
    """Return what tables must share to be said once; None for a table that stands alone.

    Policy files of one folder are one place: 300 tables with a file each are as equal as 300 tables of a rule.
    """
    if table.is_ledger or _conflict(table, options) is not None:
        return None
    if table.problem is not None:
        what, to_do = (nameless(text, table.ref.identifier) for text in (table.problem.what, table.problem.help))
        return (is_place(table), table.state, table.problem.code, what, to_do)
    left = {entry.reason for entry in table.left_alone if not table.steps}
    reasons = [*table.blocked, *table.notes, *(reason for step in table.steps for reason in step.reasons)]
    said = [*(frozenset({each}) for each in reasons), frozenset(left)]
    place = table.source if table.rule_line is not None else str(PurePosixPath(table.policy_file).parent)
    codes = tuple(frozenset((reason.code, _shared_line(reason, table)) for reason in each) for each in said)
    return (table.state, table.owner, place, table.is_new, tuple(map(alike, table.steps)), codes)


def _shared_line(reason: Reason, table: TablePlan) -> str | None:
    """Return the policy line of a reason, None where it is in the table's own file."""
    is_own = table.rule_line is None and (reason.origin or "").startswith(table.policy_file)
    return None if is_own else reason.origin


def _subject(tables: Sequence[TablePlan], options: PlanTextOptions) -> Subject:
    first, seen = tables[0], [table.observed for table in tables if table.observed is not None]
    figures = ("", "", "")
    if seen:
        version = f"v{seen[0].version}" if len(tables) == 1 and options.tz else ""
        num_files = sum(each.num_files for each in seen)
        figures = (version, format_size(sum(each.size_bytes for each in seen)), count_of(num_files, "file"))
    symbol = Symbol.LEFT if first.state is TableState.UP_TO_DATE and is_named(first) else _SYMBOLS[first.state]
    return Subject(
        symbol,
        tuple(table.ref.identifier for table in tables),
        tuple(_statements(tables, options)),
        figures,
        places(table.source for table in tables) + ("   new" if first.is_new else ""),
        first.owner or "",
        noun_of(first),
    )


def _statements(tables: Sequence[TablePlan], options: PlanTextOptions) -> Iterator[Statement]:
    first = tables[0]
    if first.problem is not None:
        yield problem_statement(first, in_brief=options.in_brief)
    yield from blocked_statements(tables)
    asked_by_step = zip(*map(step_terms, tables), strict=True)
    for steps, asked in zip(zip(*(table.steps for table in tables), strict=True), asked_by_step, strict=True):
        statements = describe(steps, options.tz, verbose=options.verbose)
        num_requests = sum(requests_of(terms).total for terms in asked)
        if num_requests and statements and options.tz is not None:  # it changes with every commit
            fact, *others = statements[-1].facts
            said = (*spans(fact), Span(f", {about_requests(num_requests)}"))
            statements[-1] = replace(statements[-1], facts=(said, *others))
        yield from statements
    yield from note_statements(tables)
    if (lost := _conflict(first, options)) is not None:
        yield Statement(Symbol.BLOCKED, "conflicts", (lost,))
    entries = ([entry for entry in table.left_alone if entry.reason not in table.blocked] for table in tables)
    has_steps, with_times = bool(first.steps), options.tz is not None
    yield from left_alone(*entries, verbose=options.verbose, with_times=with_times, is_aside=has_steps)


def problem_statement(table: TablePlan, *, in_brief: bool = False) -> Statement:
    """Say why a table cannot be planned: code, what, where and help, or in brief the first two."""
    problem = table.problem
    assert problem is not None
    word = problem.code if table.is_passed_over else f"error {problem.code}"
    where, help_text = ("", "") if in_brief else (problem.where or "", problem.help or "")
    return Statement(_SYMBOLS[table.state], word, (problem.what,), where=where, help=help_text)


def blocked_statements(tables: Sequence[TablePlan]) -> Iterator[Statement]:
    """Say what forbids a change of a table."""
    for text, place in said_reasons([table.blocked for table in tables]):
        yield Statement(Symbol.BLOCKED, "blocked", (text,), (("", place),))


def note_statements(tables: Sequence[TablePlan]) -> Iterator[Statement]:
    """Say what is worth knowing of what is rewritten."""
    for notes in zip(*(table.notes for table in tables), strict=True):
        yield Statement(Symbol.SAME, "note", (merged([note.text for note in notes]),))


def _conflict(table: TablePlan, options: PlanTextOptions) -> str | None:
    return conflict_line(table.writers, options.lost_ratios.get(table.ref, 0.0))


WORTH_A_LINE = 0.01
"""A plan says nothing of less than this; `why` does."""


def conflict_line(rhythm: WriterRhythm | None, lost_ratio: float) -> str | None:
    """Say how much of a rewrite other writers will probably make useless; None for less than ``WORTH_A_LINE``."""
    if lost_ratio < WORTH_A_LINE:
        return None
    why = ", as in past runs" if rhythm is None or not rhythm.num_taking else f": {_seen(rhythm)}"
    return f"other writers will probably make {short_share(lost_ratio)} of this useless{why}"


def rhythm_lines(rhythm: WriterRhythm, lost_ratio: float) -> list[str]:
    """Say everything about other writers, for ``why``."""
    lines = [_seen(rhythm)]
    if rhythm.num_taking:
        busiest = max(range(len(rhythm.taking_by_hour)), key=rhythm.taking_by_hour.__getitem__)
        most = rhythm.taking_by_hour[busiest]
        hours = f"{busiest:02d}:00 to {(busiest + 1) % 24:02d}:00 UTC"
        lines.append(f"most from {hours}: {most:,} of {rhythm.num_taking:,}")
    lines.append(f"chance that they make a rewrite useless if it runs now: {short_share(lost_ratio)}")
    return lines


def _seen(rhythm: WriterRhythm) -> str:
    span = format_duration(max(1, round(rhythm.seconds)))
    took = "none of them" if not rhythm.num_taking else f"{rhythm.num_taking:,} of them"
    return f"{count_of(rhythm.num_commits, 'commit')} of others in {span}, {took} took or replaced live files"


def _quiet_line(tables: Sequence[TablePlan]) -> str:
    # Each table counts once, by the reason that most of its files are left alone for.
    most = (max(table.left_alone, key=lambda entry: entry.num_files) for table in tables if table.left_alone)
    codes = Counter(entry.reason.code for entry in most)
    words = {code: reason_words()[code].words or code.value for code in codes}
    why = ", ".join(f"{words[code]} ({count_of(number, 'table')})" for code, number in codes.items())
    return f"{count_of(len(tables), 'table')}   nothing to do{': ' + why if why else ''}"


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


def about_requests(number: int) -> str:
    """Print an estimate of requests, in two figures: ``about 1,200 requests``."""
    return f"about {count_of(int(float(f'{number:.2g}')), 'request')}"


def summary_lines(plan: Plan, options: PlanTextOptions | None = None) -> list[str]:
    """Say how many tables change, what is rewritten and deleted, how long that may take, and how many requests."""
    totals, options = Totals(plan.user_tables), options or PlanTextOptions()
    cost, asked = cost_line(totals), options.requests
    lines = [f"{tables_line(totals)}.", *([cost] if cost else [])]
    if cost and options.expected_time is not None:
        lines.append(expected_line(options.expected_time))
    if plan.has_changes and asked is not None and asked.counted.total:
        lines.append(f"Object stores are sent {about_requests(asked.counted.total)}{price_of(asked)}.")
    return lines


def _end(plan: Plan, options: PlanTextOptions) -> Iterator[Block]:
    if plan.tables:
        first, *rest = summary_lines(plan, options)
        yield Line((Span("Plan: ", Role.BOLD), first))
        for table in plan.tables:
            if table.is_ledger and table.state != "up_to_date":
                steps = ", ".join(step_word(step.kind) for step in table.steps)
                yield Line(f"Also our own ledger: {steps or table.state}.")
        yield from map(Line, rest)
    else:
        yield Line("No table is selected: nothing to plan.")
    yield from map(Line, rule_lines(plan))
    if not plan.has_changes:
        if plan.tables:
            yield from _nothing_to_do(plan, options)
        if options.saved_to is not None and not options.applied_next:
            yield Line(f"Saved {options.saved_to}: it changes nothing.")
    elif not options.applied_next:
        yield Line()
        yield from _next(plan, options)


def _nothing_to_do(plan: Plan, options: PlanTextOptions) -> Iterator[Block]:
    """Say that there is nothing, and name the command that gives each table's reason where it was not given already."""
    why = "" if options.verbose or options.applied_next else "; `maintainer -v plan` says why, for each table"
    states = {table.state for table in plan.user_tables}
    if TableState.WAITING in states:
        yield Line(f"Nothing to do now{why}.")
    elif not states & {TableState.BLOCKED, TableState.PROBLEM}:
        yield Line(f"Nothing to do{why}.")


def _next(plan: Plan, options: PlanTextOptions) -> Iterator[Block]:
    if options.saved_to is None:
        yield Line("This plan was not saved: a later `maintainer apply` plans again and may do something else.")
        yield Line("`--out FILE` saves it, so that `maintainer apply FILE` does exactly this.")
    else:
        until = when(plan.expires_at_ms, options.tz or UTC)
        yield Line(f"Saved {options.saved_to}, valid until {until}. To do exactly this:")
        env = f"--env {shlex.quote(plan.environment)} " if plan.environment else ""  # a plan is for one environment
        yield CodeBlock([f"maintainer {env}apply {shlex.quote(options.saved_to)}"])
