"""A run in words: what failed, why and what to do about it, the totals, and how each table ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import fields

from maintainer.errors import ExitCode
from maintainer.model.plan.plan import is_place
from maintainer.model.run.exit_codes import exit_code, exit_reason
from maintainer.model.run.outcome import NOT_AGAIN, RunEnd, RunOutcome, StepStatus, TableOutcome, TableStatus
from maintainer.model.table.store_requests import RunRequests, StoreRequests
from maintainer.report.document.blocks import (
    Block,
    Findings,
    Heading,
    Line,
    Span,
    Statement,
    Subject,
    Subjects,
    Text,
    joined_texts,
    literal,
    spans,
)
from maintainer.report.document.folding import FOLD, nameless
from maintainer.report.document.markdown_writer import markdown_text
from maintainer.report.document.terminal_writer import terminal_text
from maintainer.report.plan.plan_text import about_requests
from maintainer.report.plan.step_text import price_of, step_word
from maintainer.report.run.outcome_text import STEP_ENDS, TABLE_ENDS, WorkDone, details, figures, said_of, time_text
from maintainer.report.run.run_findings import joined, run_findings
from maintainer.report.style import PLAIN, Role, Style, Symbol
from maintainer.report.text_layout import noun_of, unsearched
from maintainer.units import by_cause, count_of, format_duration, format_size, named

MAX_BLOCKS = 50
"""Error blocks printed in full; the rest is counted by code, and whole in the run folder."""

END_TEXT = {
    RunEnd.DIED: "The run was killed, or its machine went down: its exit code is not known.",
    RunEnd.RUNNING: "The run is still going on.",
}
"""What stands in the place of the exit code of a run that did not come to its end."""

_NOT_NOW = NOT_AGAIN | {TableStatus.VERIFY_FAILED}
"""Tables without a rest that ``retry`` takes up; after a failed verification a person looks first."""

_FOR_A_WHILE = frozenset({"A403", "A406", "A407"})
"""Why a table was blocked where a new plan may do it: another run or writer was there. What else blocks it stays."""


def _may_go_on(table: TableOutcome) -> bool:
    is_blocked, code = table.status is TableStatus.BLOCKED, table.problem and table.problem.code
    return table.status not in _NOT_NOW and (not is_blocked or code in _FOR_A_WHILE)


def render_run(
    outcome: RunOutcome,
    style: Style = PLAIN,
    *,
    run_folder: str | None = None,
    next_command: str | None = "maintainer retry",
) -> str:
    """Return the end of a run as text, ending in a newline: error blocks, totals, what to do next, the exit code.

    ``run_folder`` is where plan, results and events are, ``next_command`` takes up an unfinished rest; None leaves
    either line out.
    """
    document = [*_findings(outcome), *_totals(outcome)]
    code = exit_code(outcome)
    if outcome.end is not RunEnd.FINISHED:
        document.append(Line(Span(END_TEXT[outcome.end], Role.WARN)))
    elif code is not ExitCode.OK:
        document.append(Line(Span(f"Exit code {code.value}: {exit_reason(code)}.", Role.BAD)))
    if next_command and any(map(_may_go_on, outcome.user_tables)):
        document.append(Line(f"To continue with the rest:    {next_command}"))
    if run_folder:
        document.append(Line(f"Everything about this run:    {run_folder}"))
    return terminal_text(document, style)


def render_steps(outcome: RunOutcome, style: Style = PLAIN, *, verbose: bool = False) -> str:
    """Return how each table of a run ended, step by step; tables that ended alike are said once, if not ``verbose``."""
    worked_on = [table for table in outcome.tables if table.steps]
    return terminal_text([ended_tables(worked_on, verbose=verbose), Line()] if worked_on else [], style)


def run_markdown(outcome: RunOutcome) -> str:
    """Return a run as Markdown for the step summary: the totals, the findings, and every step."""
    code = exit_code(outcome)
    title = f"maintainer apply: {exit_reason(code)} (exit code {code.value})"
    head: list[Block] = [Heading(title, 1), Line(("Run ", literal(outcome.run_id)))]
    worked_on = ended_tables(table for table in outcome.tables if table.steps)
    return markdown_text([*head, *_totals(outcome), *_findings(outcome), worked_on])


def ended_tables(tables: Iterable[TableOutcome], *, verbose: bool = False) -> Subjects:
    """Return how tables ended, the worst first; those that ended alike are one, if not ``verbose``."""
    order = list(TABLE_ENDS)[::-1]
    ordered = sorted(tables, key=lambda table: order.index(table.status))
    groups = by_cause(ordered, lambda table: None if verbose or table.is_ledger else _alike(table), at_least=FOLD)
    return Subjects([
        Subject(
            symbol_of(TABLE_ENDS[group[0].status].role),
            tuple(table.ref.identifier for table in group),
            tuple(_statements(group, verbose)),
            place=named(list(dict.fromkeys(table.policy_file for table in group)), 1),
            owner=group[0].owner or "",
            noun=noun_of(group[0]),
        )
        for group in groups
    ])  # fmt: skip


_SYMBOLS = {Role.BAD: Symbol.PROBLEM, Role.WARN: Symbol.BLOCKED, Role.GOOD: Symbol.WRITE}


def symbol_of(role: Role | None) -> str:
    """Return the symbol of an end."""
    return _SYMBOLS.get(role or Role.DIM, Symbol.SAME)


def _alike(table: TableOutcome) -> Hashable:
    name = table.ref.identifier
    problem = table.problem and (table.problem.code, nameless(table.problem.what, name))
    steps = tuple((step.kind, step.status, nameless(said_of(step), name)) for step in table.steps)
    return (is_place(table), table.status, table.owner, problem, steps)


def _statements(tables: Sequence[TableOutcome], verbose: bool) -> Iterator[Statement]:
    first = tables[0]
    if not first.steps:
        problem = first.problem
        text = f"{problem.code}: {problem.what}" if problem else TABLE_ENDS[first.status].text
        yield Statement(symbol_of(TABLE_ENDS[first.status].role), first.status.replace("_", " "), (text,))
    for steps in zip(*(table.steps for table in tables), strict=True):
        end = STEP_ENDS[steps[0].status]
        seconds = sum(step.duration_seconds for step in steps)
        facts = "  ".join(part for part in (format_duration(seconds) if seconds else "", figures(*steps)) if part)
        below = tuple(details(steps[0])) if verbose else ()
        fact: Text = (Span(end.word, end.role), f"  {facts}")
        yield Statement(symbol_of(end.role), step_word(steps[0].kind), (fact,), ((said_of(steps[0]), ""),), below=below)


def _findings(outcome: RunOutcome) -> list[Block]:
    findings = joined(run_findings(outcome))
    return [Findings(findings, MAX_BLOCKS), Line()] if findings else []


def _totals(outcome: RunOutcome) -> list[Block]:
    lines = [_work_line(outcome), _requests_line(outcome.requests), _ledger_line(outcome)]
    return [Line(_steps_line(outcome)), Line(_tables_line(outcome)), *map(Line, filter(None, lines))]


def _steps_line(outcome: RunOutcome) -> Text:
    numbers = Counter(step.status for table in outcome.user_tables for step in table.steps)
    failed = numbers.pop(StepStatus.FAILED, 0) + numbers.pop(StepStatus.VERIFY_FAILED, 0)
    parts = [f"{count_of(numbers.pop(StepStatus.SUCCEEDED, 0), 'step')} succeeded", f"{failed:,} failed"]
    parts += [f"{numbers[status]:,} {end.counted}" for status, end in STEP_ENDS.items() if numbers[status]]
    verb = f"Interrupted by {outcome.interrupted_by} after" if outcome.interrupted_by else "Done in"
    if outcome.end is not RunEnd.FINISHED:
        verb = "Killed after" if outcome.end is RunEnd.DIED else "Since"
    # Proofs stand behind the steps: a failed step must not read as a failed check.
    work = WorkDone.of_run(outcome)
    proofs = [f"{count_of(work.commits_proven, 'commit')} proven"] if work.commits_proven else []
    proofs += [f"{work.checks_passed:,} of {count_of(work.checks, 'check')} passed"] if work.checks else []
    return f"{verb} {time_text(outcome)}: {'; '.join(', '.join(part) for part in (parts, proofs) if part)}."


def _tables_line(outcome: RunOutcome) -> Text:
    numbers = {end: outcome.count(status) for status, end in TABLE_ENDS.items()}
    counted = [Span(f"{number:,} {end.counted}", end.role) for end, number in numbers.items() if number]
    places = sum(map(is_place, outcome.tables))
    by_end = joined_texts(counted, ", ") or ("none found" if places else "none selected")
    tables = count_of(len(outcome.user_tables) - places, "table")
    return (f"{tables}: ", *spans(by_end), f"{unsearched(places)}.")


def _work_line(outcome: RunOutcome) -> str:
    work, parts = WorkDone.of_run(outcome), []
    if work.files_removed:
        metrics = [step.metrics for table in outcome.user_tables for step in table.steps if step.metrics]
        num_bins, num_commits = sum(each.num_bins for each in metrics), sum(each.num_batches for each in metrics)
        bins = f" in {count_of(num_bins, 'bin')} and {count_of(num_commits, 'commit')}" if num_bins else ""
        size = format_size(work.bytes_removed)
        parts.append(f"rewrote {work.files_removed:,} -> {count_of(work.files_added, 'file')}, {size}{bins}")
    if work.files_deleted:
        parts.append(f"deleted {count_of(work.files_deleted, 'file')}, {format_size(work.bytes_deleted)}")
    if work.files_moved:
        parts.append(f"moved {count_of(work.files_moved, 'file')}, {format_size(work.bytes_moved)} to the trash")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def render_requests(requests: Iterable[RunRequests]) -> str:
    """Return what some runs asked of object stores together and what it cost; empty where nothing was counted."""
    each = list(requests)
    if not each:
        return ""
    hadoops = [one.hadoops for one in each if one.hadoops is not None]
    costs = [one.cost for one in each if one.cost is not None]
    currencies = {one.currency for one in each}
    together = RunRequests(
        sum((one.ours for one in each), StoreRequests()),
        sum(hadoops, StoreRequests()) if len(hadoops) == len(each) else None,
        sum(costs) if len(costs) == len(each) and len(currencies) == 1 else None,
        min(currencies),
    )
    return f"{count_of(len(each), 'run')}. {_requests_line(together)}\n"


def _requests_line(requests: RunRequests | None) -> str:
    if requests is None:
        return ""
    counted = requests.counted
    kinds = (count_of(number, field.name[:-1]) for field, number in zip(fields(counted), counted.by_kind, strict=True))
    of_hadoop = requests.hadoops
    whose = "; Spark's own are not counted" if of_hadoop is None else ""
    if of_hadoop is not None and of_hadoop.total:
        whose = f"; {of_hadoop.total:,} of them by Hadoop's client"
    plans = "" if requests.expected is None else f"; the plan said {about_requests(requests.expected)}"
    asked = f"{count_of(counted.total, 'request')} ({', '.join(kinds)}){whose}{price_of(requests)}{plans}"
    return f"Asked of object stores until the record was closed: {asked}."


def _ledger_line(outcome: RunOutcome) -> str:
    """Return what was done to our own ledger, which is no table of the user's; empty where nothing was."""
    for table in outcome.tables:
        if table.is_ledger and (table.steps or table.problem):
            steps = [f"{step_word(step.kind)} {step.status.value.replace('_', ' ')}" for step in table.steps]
            ended = ", ".join(steps) or table.status.value.replace("_", " ")
            return f"The ledger ({table.ref.identifier}): {ended}."
    return ""
