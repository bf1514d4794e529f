"""What the page of one run and that of many have alike: the head, what needs a person, money, proof, folded tables.

What a run, or many, gained and cost is files, what a typical query reads, bytes deleted, and money by given prices.
Every amount stands with its formula. What nobody measured is left out, not guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from maintainer.journal.ledger.ledger_rows import predicted
from maintainer.model.plan.plan import Plan
from maintainer.model.plan.steps import Step, StepKind
from maintainer.model.plan.zorder_turn import LayoutFigures
from maintainer.model.run.history_rows import HistoryRow
from maintainer.model.run.outcome import RunOutcome, StepOutcome, StepStatus, TableOutcome, TableStatus
from maintainer.model.run.receipts import Amounts
from maintainer.policy.project.project_sections import Prices
from maintainer.report.document.blocks import (
    Block,
    Document,
    Findings,
    Fold,
    Heading,
    Line,
    Row,
    Span,
    TableBlock,
    Text,
    Tile,
)
from maintainer.report.findings import Finding
from maintainer.report.html.step_view import is_praised, mood_of, proof_words, verified_words
from maintainer.report.plan.step_text import step_word
from maintainer.report.run.outcome_text import TABLE_ENDS, WorkDone
from maintainer.report.style import Role
from maintainer.units import count_of, format_size

_View = TypeVar("_View")

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
        yield TableBlock((), rows)
        yield Line(Span("By the prices in maintainer.yml.", Role.DIM))


def proof(
    tables: Sequence[TableOutcome], quarantined: Mapping[str, str], verified: Sequence[HistoryRow]
) -> Iterator[Block]:
    """Say how it is known that no row was lost; nothing where nothing was rewritten or verified."""
    if sentences := (*proof_words(tables), *verified_words(verified)):
        is_good = is_praised(tables, quarantined, verified)
        title = "No rewrite lost a row: how we know" if is_good else "What was proven, and by whom"
        yield Heading(title, anchor="proof")
        yield from map(Line, sentences)


def predicted_and_done(runs: Sequence[tuple[Plan, RunOutcome]]) -> Iterator[Block]:
    """Compare plan and outcome by kind of step; nothing where no step succeeded."""
    if (table := predictions(runs)).rows:
        about = Line(Span("Steps that succeeded: what the plan said, then what the commits say.", Role.DIM))
        yield Fold("Plan and outcome", (about, table))


def predictions(runs: Sequence[tuple[Plan, RunOutcome]]) -> TableBlock:
    """Add up plan and outcome by kind of step; only steps that succeeded say something about the prediction."""
    pairs: dict[str, list[tuple[Step, StepOutcome]]] = {}
    for plan, outcome in runs:
        plans = {table.ref: table for table in plan.tables}
        for table in outcome.tables:
            for step in table.steps:
                planned = plans[table.ref].step_of(step.step_id) if table.ref in plans else None
                if planned and step.status is StepStatus.SUCCEEDED and step.kind != StepKind.SET_PROPERTIES:
                    pairs.setdefault(step.kind, []).append((planned, step))
    heading = ("step", "how many", "files removed", "files added", "bytes removed")
    rows = [_row(kind, steps) for kind, steps in sorted(pairs.items())]
    return TableBlock(heading, rows, frozenset({1, 2, 3, 4}), caption="What was planned and done, by kind of step")


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


def folded_tables(
    table: TableBlock, groups: Sequence[Sequence[_View]], row: Callable[[Sequence[_View]], Row]
) -> Iterator[Block]:
    """Show a row for each group of tables of which the same is said, and each table below where that is more."""
    each = [view for group in groups for view in group]
    yield replace(table, rows=list(map(row, groups)))
    if len(groups) < len(each):
        yield Fold(f"Each of the {len(each):,}", (replace(table, rows=[row([view]) for view in each]),), repeats=True)


def ended_cell(status: TableStatus, *, in_quarantine: bool, failed: int = 0) -> Text:
    """Return how a table ended, and below it what else a person should know."""
    word, _, detail = TABLE_ENDS[status].text.partition(": ")
    often = f"{failed:,} of its runs failed" if failed else ""
    notes = ((detail, Role.DIM), ("in quarantine" * in_quarantine, Role.BAD), (often, Role.DIM))
    return (Span(word, mood_of(status)), *(Span(f" {note}", role) for note, role in notes if note))


def number_cell(number: int | None) -> str:
    """Return a figure; nothing where it is not known."""
    return "" if number is None else f"{number:,}"


TIB, GIB = 1 << 40, 1 << 30


QUERIES_PRICED = 1_000
"""What a query saves is too little to print; what so many save is not."""


@dataclass(frozen=True, slots=True)
class LayoutGain:
    """What a query on the Z-order columns reads, before and after, added up over tables: files and bytes."""

    num_tables: int
    files: tuple[float, float]
    size_bytes: tuple[int, int]


def layout_gain(tables: Iterable[TableOutcome]) -> LayoutGain | None:
    """Add up what queries read of tables whose layout was measured before and after; None where none was.

    Args:
        tables: Outcomes in the order of time. Of a table with several the newest counts: between two runs others write,
            and what their rows cost queries is no gain or loss of a rewrite.
    """
    newest: dict[str, tuple[LayoutFigures, LayoutFigures]] = {}
    for table in tables:
        if changes := [step.layout_change for step in table.steps if step.layout_change is not None]:
            newest[table.ref.identifier] = (changes[0].before, changes[-1].after)
    if not newest:
        return None
    first, last = zip(*newest.values(), strict=True)
    files = (sum(each.files_read for each in first), sum(each.files_read for each in last))
    size_bytes = (sum(each.bytes_read for each in first), sum(each.bytes_read for each in last))
    return LayoutGain(len(newest), files, size_bytes)


def gain_tiles(gain: LayoutGain | None, work: WorkDone) -> Iterator[Tile]:
    """Yield tiles of what queries and storage gained; none where nothing was measured."""
    if gain is not None:
        before, after = (f"{files:,.1f}".removesuffix(".0") for files in gain.files)
        what = "files that a sample query reads on average, before and after the newest Z-order"
        of_tables = f" of {gain.num_tables:,} tables" if gain.num_tables > 1 else ""
        yield f"{before} \u2192 {after}", f"{what}{of_tables}", Role.GOOD if gain.files[1] < gain.files[0] else None
    if work.bytes_deleted:
        yield format_size(work.bytes_deleted), f"deleted in {count_of(work.files_deleted, 'file')}", None
    if work.bytes_moved:
        yield format_size(work.bytes_moved), f"moved to the trash in {count_of(work.files_moved, 'file')}", None


def proof_tiles(work: WorkDone) -> Iterator[Tile]:
    """Yield tiles of what was rewritten and how it was checked."""
    if work.bytes_removed:
        yield format_size(work.bytes_removed), "read and written again", None
    if work.commits_with_proof:
        figure = f"{work.commits_proven:,} of {work.commits_with_proof:,}"
        when = "" if work.proofs_after_commit else " before commit"
        yield figure, f"rewrites proven{when}", Role.BAD if work.steps_wrong else Role.GOOD
    if work.checks:
        mood = Role.BAD if work.checks_failed else Role.GOOD if work.checks_passed == work.checks else Role.WARN
        yield f"{work.checks_passed:,} of {work.checks:,}", "checks passed", mood
    if not_made := work.checks - work.checks_passed - work.checks_failed:
        yield f"{not_made:,}", "checks that could not be made", Role.WARN


def amounts(
    prices: Prices, gain: LayoutGain | None, work: WorkDone, runs: Sequence[RunOutcome]
) -> Iterator[tuple[Text, ...]]:
    """Yield what was gained and spent in money, what it is, and its formula; none without prices.

    Args:
        prices: From maintainer.yml.
        gain: What queries read before and after.
        work: What the runs did.
        runs: The runs.
    """
    if prices.scanned_tib is not None and gain is not None:
        before, after = gain.size_bytes
        amount = QUERIES_PRICED * abs(before - after) / TIB * prices.scanned_tib
        what = f"{'spared' if before >= after else 'more'} for {QUERIES_PRICED:,} typical queries"
        read = f"{QUERIES_PRICED:,} queries \u00d7 ({format_size(before)} \u2212 {format_size(after)})"
        yield _money(amount, prices), what, f"{read} \u00d7 {_price(prices.scanned_tib, prices)} a TiB scanned"
    if prices.stored_gib_month is not None and work.bytes_deleted:
        amount, what = work.bytes_deleted / GIB * prices.stored_gib_month, "spared for storage, each month"
        deleted, of_month = format_size(work.bytes_deleted), _price(prices.stored_gib_month, prices)
        yield _money(amount, prices), what, f"{deleted} deleted \u00d7 {of_month} a GiB and month"
    counted = (run.requests for run in runs if run.requests is not None and run.requests.cost is not None)
    if asked := [requests for requests in counted if requests.currency == prices.currency]:
        amount, what = sum(requests.cost or 0.0 for requests in asked), "for requests to stores, spent"
        number = count_of(sum(requests.counted.total for requests in asked), "request")
        yield _money(amount, prices), what, f"{number} until the records were closed, each run at its prices"
    if prices.compute_hour is not None:
        hours, of_hour = sum(run.total_seconds for run in runs) / 3600, _price(prices.compute_hour, prices)
        took = f"{hours:,.2f} hours of {count_of(len(runs), 'run')} \u00d7 {of_hour} an hour"
        yield _money(hours * prices.compute_hour, prices), "for computing, spent", took


def _money(amount: float, prices: Prices) -> Span:
    text = "less than 0.01" if 0 < amount < 0.01 else f"{amount:,.2f}"
    return Span(f"{text} {prices.currency}".strip(), Role.BOLD)


def _price(price: float, prices: Prices) -> str:
    return f"{price:,.10g} {prices.currency}".strip()
