"""What the page of one run and that of many have alike: the head, what needs a person, money, proof, folded tables.

What a run, or many, gained and cost is files, what a typical query reads, bytes deleted, and money by given prices.
Every amount stands with its formula. What nobody measured is left out, not guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from maintainer.journal.ledger.ledger_rows import predicted
from maintainer.model.plan.plan import Plan
from maintainer.model.plan.steps import Step, StepKind
from maintainer.model.run.history_rows import HistoryRow
from maintainer.model.run.outcome import RunOutcome, StepOutcome, StepStatus, TableOutcome, TableStatus
from maintainer.model.run.receipts import Amounts
from maintainer.report.document.blocks import (
    Block,
    Document,
    Findings,
    Fold,
    Heading,
    Line,
    Row,
    Span,
    Table,
    Text,
)
from maintainer.report.findings import Finding
from maintainer.report.html.step_view import is_praised, mood_of, planned_step, proof_words, verified_words
from maintainer.report.plan.step_text import step_word
from maintainer.report.run.outcome_text import TABLE_ENDS
from maintainer.report.style import Role
from maintainer.units import format_size

MAX_FINDINGS_SHOWN = 25
"""Findings that a page spells out; the rest is counted."""


def page_head(project: str, about: str, verdict: str, mood: Role, findings: Sequence[Finding] = ()) -> Document:
    """Return the first lines of a page: whose it is, what it is about, and whether anything is wrong."""
    if mood is Role.GOOD and not findings:
        verdict += " Nothing needs a person."
    return (Heading(project, 1), Line(Span(about, Role.DIM)), Line(Span(verdict, mood)))


def attention(findings: Sequence[Finding]) -> Iterator[Block]:
    """Say what needs a person, the worst first; nothing where nothing does."""
    if findings:
        yield Heading("What needs attention", anchor="attention")
        yield Findings(findings, MAX_FINDINGS_SHOWN)


def money(amounts: Iterable[tuple[Text, ...]]) -> Iterator[Block]:
    """Say what was gained and spent in money; nothing without prices."""
    if rows := list(map(Row, amounts)):
        yield Heading("In money", anchor="money")
        yield Table((), rows)
        yield Line(Span("By the prices in maintainer.yml.", Role.DIM))


def proof(
    tables: Sequence[TableOutcome], quarantined: Mapping[str, str], verified: Sequence[HistoryRow]
) -> Iterator[Block]:
    """Say how it is known that no row was lost; nothing where nothing was rewritten or verified."""
    sentences = (*proof_words(tables), *verified_words(verified))
    if sentences:
        is_good = is_praised(tables, quarantined, verified)
        title = "No rewrite lost a row: how we know" if is_good else "What was proven, and by whom"
        yield Heading(title, anchor="proof")
        yield from map(Line, sentences)


def predicted_and_done(runs: Sequence[tuple[Plan, RunOutcome]]) -> Iterator[Block]:
    """Compare plan and outcome by kind of step; nothing where no step succeeded."""
    table = predictions(runs)
    if table.rows:
        about = Line(Span("Steps that succeeded: what the plan said, then what the commits say.", Role.DIM))
        yield Fold("Plan and outcome", (about, table))


def predictions(runs: Sequence[tuple[Plan, RunOutcome]]) -> Table:
    """Add up plan and outcome by kind of step; only steps that succeeded say something about the prediction."""
    pairs: dict[str, list[tuple[Step, StepOutcome]]] = {}
    for plan, outcome in runs:
        plans = {table.ref: table for table in plan.tables}
        for table in outcome.tables:
            for step in table.steps:
                planned = planned_step(plans.get(table.ref), step)
                if planned and step.status is StepStatus.SUCCEEDED and step.kind != StepKind.SET_PROPERTIES:
                    pairs.setdefault(step.kind, []).append((planned, step))
    heading = ("step", "how many", "files removed", "files added", "bytes removed")
    rows = [_row(kind, steps) for kind, steps in sorted(pairs.items())]
    return Table(heading, rows, frozenset({1, 2, 3, 4}), caption="What was planned and done, by kind of step")


def _row(kind: str, steps: Sequence[tuple[Step, StepOutcome]]) -> Row:
    guess = sum((predicted(planned) for planned, _ in steps), Amounts())
    # From the table's folder, also into the trash; what the trash is emptied of was predicted by an earlier plan.
    done = sum((step.amounts for _, step in steps), Amounts())
    return Row((
        step_word(kind),
        f"{len(steps):,}",
        f"{guess.num_files_removed:,}, {done.num_files_removed:,}",
        f"{guess.num_files_added:,}, {done.num_files_added:,}",
        f"{format_size(guess.bytes_removed)}, {format_size(done.bytes_removed)}",
    ))  # fmt: skip


def folded_tables(table: Table, groups: Sequence[Sequence[Row]], joined: Sequence[Row]) -> Iterator[Block]:
    """Show a row for each group of tables of which the same is said, and each table below where that is more."""
    rows = [row for group in groups for row in group]
    yield replace(table, rows=joined)
    if len(joined) < len(rows):
        yield Fold(f"Each of the {len(rows):,}", (replace(table, rows=rows),), repeats=True)


def ended_cell(status: TableStatus, *, in_quarantine: bool, failed: int = 0) -> Text:
    """Return how a table ended, and below it what else a person should know."""
    word, _, detail = TABLE_ENDS[status].text.partition(": ")
    often = f"{failed:,} of its runs failed" if failed else ""
    notes = ((detail, Role.DIM), ("in quarantine" * in_quarantine, Role.BAD), (often, Role.DIM))
    return (Span(word, mood_of(status)), *(Span(f" {note}", role) for note, role in notes if note))


def number_cell(number: int | None) -> str:
    """Return a figure; nothing where it is not known."""
    return "" if number is None else f"{number:,}"
