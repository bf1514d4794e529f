"""What a report shows, as plain values: made from plans and outcomes, drawn by the templates.

Nothing here is HTML. The templates make texts printable and escape them.
"""

from __future__ import annotations

import re
from collections.abc import Container, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo

from maintainer.errors import ExitCode
from maintainer.journal.ledger.ledger_rows import proof_of
from maintainer.model.plan.plan import HELD_BACK, Plan, TablePlan, is_place
from maintainer.model.run.exit_codes import exit_code, exit_reason
from maintainer.model.run.history_rows import HistoryRow
from maintainer.model.run.outcome import FAILED_TABLES, RunEnd, RunOutcome, TableOutcome
from maintainer.model.table.storage_facts import combined
from maintainer.model.table.table_facts import LayoutBoxes
from maintainer.policy.project.project_sections import Prices
from maintainer.report.document.blocks import (
    Block,
    Bullets,
    Fold,
    Heading,
    Line,
    Row,
    Span,
    TableBlock,
    Text,
    Tile,
    Tiles,
    joined_texts,
    literal,
    spans,
)
from maintainer.report.document.folding import FOLD, first_names, merged, wording
from maintainer.report.document.terminal_writer import plain
from maintainer.report.html.charts import box_chart, size_chart
from maintainer.report.html.page import Page
from maintainer.report.html.page_parts import (
    amounts,
    attention,
    ended_cell,
    folded_tables,
    gain_tiles,
    layout_gain,
    money,
    number_cell,
    page_head,
    predicted_and_done,
    proof,
    proof_tiles,
)
from maintainer.report.html.step_view import (
    did_text,
    mood_of,
    step_blocks,
)
from maintainer.report.html.table_past import TableTimeline, table_curves
from maintainer.report.plan.step_text import left_alone, step_word
from maintainer.report.run.outcome_text import WorkDone, message, time_text
from maintainer.report.run.run_findings import page_findings
from maintainer.report.run.run_text import END_TEXT
from maintainer.report.style import Role
from maintainer.report.text_layout import PROOF_WORDS, moment, noun_of, when
from maintainer.units import by_cause, count_of, format_size

MAX_TABLES_WITH_DETAILS = 100
"""Tables shown whole: those that failed first, then those with most bytes rewritten. All have a line."""

MAX_TABLES_WITH_CURVES = 40
"""Of those, the first have every curve; the others have that of their files."""


@dataclass(frozen=True, slots=True)
class ReportProject:
    """The project that a page is about: its name for the headline, its prices, and what is known beside the runs.

    ``quarantined`` is why a table is in quarantine now, by its identifier; ``verified`` is what `verify` found of the
    page's tables, newest first.
    """

    name: str = "maintainer"
    prices: Prices = field(default_factory=Prices)
    quarantined: Mapping[str, str] = field(default_factory=dict)
    verified: Sequence[HistoryRow] = ()


NO_PROJECT = ReportProject()


class TableView:
    """One table's line, and everything below it where it is shown whole."""

    def __init__(
        self, anchor: str, plan: TablePlan | None, table: TableOutcome, past: TableTimeline, tz: tzinfo, *, held: bool
    ) -> None:
        self.anchor, self.end, self.name, self.quarantined = anchor, table, table.ref.identifier, held
        met, observed = table.files_before or (plan.checked if plan else None), plan.observed if plan else None
        self.sizes_before = met.sizes if met else observed.file_sizes if observed else ()
        self.num_files_before = met.num_files if met else observed.num_files if observed else None
        work, commits = WorkDone(table.steps), [receipt for step in table.steps for receipt in step.commits]
        taken, given = [commit.sizes_removed for commit in commits], [commit.sizes_added for commit in commits]
        self.sizes_after = combined(self.sizes_before, taken, given)
        self.num_files_after = self.num_files_before
        if self.num_files_after is not None:
            self.num_files_after += work.files_added - work.files_removed
        if table.files_after is not None:
            self.sizes_after, self.num_files_after = table.files_after.sizes, table.files_after.num_files
        results = {result for _, result in map(proof_of, table.steps)}
        self.proof = next((word for result, word in PROOF_WORDS.items() if result in results), "")
        self.bytes_rewritten = work.bytes_removed
        self.what = _what(plan, table)
        self.blocks = (*(block for step in table.steps for block in step_blocks(plan, step, tz)), *_left_alone(plan))
        self.curves = table_curves(past, tz)
        self.boxes = next((step.boxes for step in reversed(table.steps) if step.boxes is not None), None)

    @property
    def mood(self) -> Role | None:
        """Whether it is good or bad."""
        return mood_of(self.end.status)


def run_view(
    plan: Plan,
    outcome: RunOutcome,
    past: Mapping[str, TableTimeline],
    tz: tzinfo,
    *,
    run_folder: str,
    project: ReportProject = NO_PROJECT,
) -> Page:
    """Say what a run did. ``past`` is what earlier runs knew of each table, by its identifier."""
    views = table_views(plan, outcome, past, tz, project.quarantined)
    tables = [view for view in views if not view.end.is_ledger or view.mood in (Role.BAD, Role.WARN)]
    code, held = exit_code(outcome), sum(view.quarantined for view in tables)
    gain, work = layout_gain(outcome.user_tables), WorkDone.of_run(outcome)
    groups = by_cause(tables, _alike, at_least=FOLD)
    with_steps = {table.ref.identifier for table in outcome.tables if table.steps}
    whole = [view for view in tables if view.name in with_steps or view.mood is not None][:MAX_TABLES_WITH_DETAILS]
    started = f"{moment(outcome.started_at_ms, tz):%A %-d %B %Y, %H:%M %Z}".rstrip()
    facts = (
        ("run", outcome.run_id),
        ("started", when(outcome.started_at_ms, tz)),
        ("took", time_text(outcome)),
        ("selection", " ".join(plan.selection) or "all tables with a policy"),
        ("environment", plan.environment or "none"),
        ("policies at", plan.git_commit or "no Git commit"),
        ("run folder", run_folder),
    )
    shown, findings = frozenset(view.anchor for view in whole), page_findings(outcome, project.quarantined)
    failed = any(table.status in FAILED_TABLES for table in outcome.user_tables)
    went_well = not code and outcome.end is RunEnd.FINISHED
    mood = Role.BAD if held or failed else Role.GOOD if went_well else Role.WARN
    return Page(
        f"{project.name}, {started}",
        page_head(project.name, started, _verdict(outcome, code, held), mood, findings),
        (
            Tiles((*_tiles(outcome, tables), *gain_tiles(gain, work), *proof_tiles(work))),
            *attention(findings),
            *money(amounts(project.prices, gain, work, (outcome,))),
            *proof(outcome.user_tables, project.quarantined, project.verified),
            Heading("Tables", anchor="tables"),
            *folded_tables(_TABLE, groups, lambda group: _row(group, shown)),
            *_details(whole, frozenset(view.anchor for group in groups for view in group[1:])),
            *predicted_and_done([(plan, outcome)]),
            Heading("About this run", anchor="about"),
            TableBlock((), [Row((Span(label, Role.DIM), literal(text))) for label, text in facts]),
        ),
    )


_TABLE = TableBlock(
    ("table", "ended", "files before", "after", "rewritten", "proof", "what"),
    (),
    frozenset({2, 3, 4}),
    caption="Each table: how it ended, its files before and after, and what was done",
)


def _row(views: Sequence[TableView], shown: Container[str]) -> Row:
    """Return the row of a table, or of several of which the same is said, with sums."""
    first, rewritten = views[0], sum(view.bytes_rewritten for view in views)
    before, after = ([getattr(view, name) for view in views] for name in ("num_files_before", "num_files_after"))
    name, what = Span(first.name, link=f"#{first.anchor}" if first.anchor in shown else ""), first.what
    if len(views) > 1:
        name = Span(f"{count_of(len(views), noun_of(first.end))}: {first_names([view.name for view in views])}")
        what = f"each: {merged([_VERSIONS.sub('', view.what) for view in views])}"
    return Row((
        name,
        ended_cell(first.end.status, in_quarantine=first.quarantined),
        number_cell(None if None in before else sum(before)),
        number_cell(None if None in after else sum(after)),
        format_size(rewritten) if rewritten else "",
        first.proof,
        what,
    ))  # fmt: skip


def table_views(
    plan: Plan, outcome: RunOutcome, past: Mapping[str, TableTimeline], tz: tzinfo, quarantined: Container[str] = ()
) -> list[TableView]:
    """Return what is shown of each table of a run, the worst first."""
    plans = {table.ref: table for table in plan.tables}
    tables = []
    for number, table in enumerate(outcome.tables):
        name = table.ref.identifier
        known, held = past.get(name, TableTimeline()), name in quarantined
        tables.append(TableView(f"t{number}", plans.get(table.ref), table, known, tz, held=held))
    return sorted(tables, key=lambda view: worst_first(view.quarantined, view.mood, view.bytes_rewritten, view.name))


def _details(whole: Sequence[TableView], alike: Container[str]) -> Iterator[Block]:
    """Show tables whole; the first picture of a layout is in sight, and what is like a table above is folded."""
    if not whole:
        return
    yield Heading("Table by table", anchor="details")
    if len(whole) == MAX_TABLES_WITH_DETAILS:
        most = f"The {len(whole)} tables that matter most; the rest has its line above and is whole in results.json."
        yield Line(Span(most, Role.DIM))
    pictured = next((view.anchor for view in whole if view.boxes), "")
    more = []
    for number, view in enumerate(whole):
        curves = view.curves if number < MAX_TABLES_WITH_CURVES else view.curves[:1]
        box = _box(view, curves, is_open=view.mood is Role.BAD or view.anchor == pictured)
        if view.anchor in alike and view.anchor != pictured:
            more.append(box)
        else:
            yield box
    if more:
        yield Fold(f"{count_of(len(more), 'more table')}, each like one above", more, repeats=True)


def _box(view: TableView, curves: tuple[Span, ...], *, is_open: bool) -> Fold:
    files = ""
    if view.num_files_before is not None and view.num_files_after is not None and view.bytes_rewritten:
        files = f" {view.num_files_before:,} \u2192 {count_of(view.num_files_after, 'file')}"
    owner: Text = f"owner {view.end.owner}" if view.end.owner else ""
    policy: Text = ("policy ", literal(view.end.policy_file)) if view.end.policy_file else ""
    blocks: list[Block] = [Line(joined_texts((owner, policy), ", "))]
    if view.end.problem is not None and not view.end.steps:
        blocks.append(Line(view.what))
    if view.sizes_before and view.bytes_rewritten:
        chart = size_chart(view.sizes_before, view.sizes_after, view.name)
        blocks.append(Line(Span("Files by size: before above the axis, after below it", drawing=chart)))
    if view.boxes:
        blocks += _layout(view.boxes)
    if curves:
        blocks.append(Line(curves))
    ended = spans(ended_cell(view.end.status, in_quarantine=view.quarantined))
    summary = (Span(view.name, Role.BOLD), " ", ended[0], Span(files, Role.DIM))
    return Fold(summary, (*blocks, *view.blocks), view.anchor, is_open)


def _layout(boxes: LayoutBoxes) -> Iterator[Line]:
    after = "nobody looked afterwards" if boxes.after is None else f"{boxes.num_after:,} after"
    drawn = "; every n-th is drawn" if boxes.num_before > len(boxes.before) else ""
    sides = [("before", boxes.before), *([] if boxes.after is None else [("after", boxes.after)])]
    pictures = [Span("", drawing=box_chart(files, boxes.num_ranks, boxes.columns, side)) for side, files in sides]
    yield Line(tuple(pictures))
    spanned = "Z-order: each box is a file and spans the values of its rows"
    reads = "The less boxes overlap, the fewer files a query reads"
    yield Line(Span(f"{spanned}. {reads}. {boxes.num_before:,} files before, {after}{drawn}.", Role.DIM))


def _alike(view: TableView) -> Hashable:
    """Return what tables must share to be one row; None for one that a person has to look at by itself."""
    if view.quarantined:
        return None
    return (is_place(view.end), view.end.status, view.end.owner, view.proof, wording(_VERSIONS.sub("", view.what)))


_VERSIONS = re.compile(r",? *\bv[0-9]+(?:\.\.v[0-9]+)?\b")


def _left_alone(plan: TablePlan | None) -> list[Block]:
    said = left_alone([entry for entry in plan.left_alone if entry.reason not in plan.blocked]) if plan else []
    lines: list[Text] = []
    for statement in said:
        ((text, origin),) = statement.reasons
        amount = f" ({plain(statement.facts[0])})" if statement.facts else ""
        lines.append((f"{text}{amount} ", literal(origin)))
    return [Heading("Left alone", 3), Bullets(lines)] if lines else []


def worst_first(held: bool, mood: Role | None, bytes_rewritten: int, name: str) -> tuple[bool, int, int, str]:
    """Return a sort key: tables in quarantine, then the worst, then those with most bytes rewritten."""
    return (not held, (Role.BAD, Role.WARN, Role.GOOD, None).index(mood), -bytes_rewritten, name)


def _verdict(outcome: RunOutcome, code: ExitCode, held: int) -> str:
    """Say how the run ended, and how many of its tables are in quarantine now."""
    if outcome.end is not RunEnd.FINISHED:
        return END_TEXT[outcome.end]
    failed = sum(map(outcome.count, FAILED_TABLES)) if code is ExitCode.FINDINGS else 0
    reason = f"{count_of(failed, 'table')} failed" if failed else exit_reason(code)
    said = f"{reason} (exit code {code.value})" if code else "nothing failed in this run"
    if held:
        tables = f"{count_of(held, 'table')} {'is' if held == 1 else 'are'} in quarantine now"
        said += f", {'and' if code else 'but'} {tables}"
    return f"{said[0].upper()}{said[1:]}."


def _tiles(outcome: RunOutcome, tables: Sequence[TableView]) -> Iterator[Tile]:
    """Yield how many tables were changed, and what became of their files; the ledger is not counted."""
    users = {table.ref.identifier for table in outcome.user_tables}
    places = sum(map(is_place, outcome.tables))
    num_changed = sum(table.changed for table in outcome.user_tables)
    yield f"{num_changed:,} of {len(outcome.user_tables) - places:,}", "tables changed", None
    if failed := sum(map(outcome.count, FAILED_TABLES)):
        yield f"{failed:,}", "failed", Role.BAD
    if places:
        yield f"{places:,}", f"{'place' if places == 1 else 'places'} that could not be searched", Role.BAD
    changed = [
        (view.num_files_before, view.num_files_after or 0)
        for view in tables
        if view.name in users and view.num_files_before is not None and view.bytes_rewritten
    ]
    if changed:
        before, after = map(sum, zip(*changed, strict=True))
        whose = "the table" if len(changed) == 1 else f"the {len(changed):,} tables"
        yield f"{before:,} \u2192 {after:,}", f"files in {whose} rewritten", Role.GOOD


def _what(plan: TablePlan | None, table: TableOutcome) -> str:
    """Return the last cell of a table's line: what was done, or why nothing was."""
    if table.problem is not None:
        return f"{table.problem.code}: {table.problem.what}"
    done = "; ".join(f"{step_word(step.kind)}: {did_text(step) or message(step) or 'done'}" for step in table.steps)
    if done or plan is None:
        return done
    held = sorted(plan.left_alone, key=lambda entry: entry.reason.code not in HELD_BACK)
    return held[0].reason.text if held else "nothing to do"
