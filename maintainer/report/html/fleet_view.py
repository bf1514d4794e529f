"""What the report of a fleet shows: many runs at a glance, and each table over time."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import tzinfo

from maintainer.journal.ledger.ledger_rows import proof_of
from maintainer.model.plan.plan import Plan, is_place
from maintainer.model.run.outcome import FAILED_TABLES, RunOutcome, TableOutcome
from maintainer.report.document.blocks import Block, Fold, Heading, Line, Row, Span, TableBlock, Tile, Tiles, literal
from maintainer.report.document.folding import FOLD, first_names
from maintainer.report.html.charts import Column, bar_chart
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
)
from maintainer.report.html.run_view import (
    NO_PROJECT,
    ReportProject,
    worst_first,
)
from maintainer.report.html.step_view import mood_of
from maintainer.report.html.table_past import (
    PastPoint,
    TableKey,
    TableRuns,
    TableTimeline,
    files_curve,
    layout_curve,
    past_of,
    recorded_key,
    table_runs,
)
from maintainer.report.run.outcome_text import WorkDone
from maintainer.report.run.run_findings import page_findings
from maintainer.report.style import Role
from maintainer.report.text_layout import PROOF_WORDS, moment, noun_of, unsearched, when
from maintainer.units import by_cause, count_of, format_size

MAX_FLEET_CURVES = 300
"""Tables whose curve is drawn; the others have their figures."""

MAX_RUNS_LISTED = 50
"""Runs that the page lists, the newest; all are columns of its chart."""


class FleetTable:
    """One table over all runs of the report, under its newest name.

    ``growth_bytes`` is what others added between the oldest and the newest known state, less what they took away.
    """

    curves: tuple[Span, ...] = ()

    def __init__(
        self, ends: TableRuns, pasts: Mapping[str, TableTimeline], held: Container[str], twice: Mapping[str, str | None]
    ) -> None:
        self.end = ends[-1][1]
        self.name = self.end.ref.identifier
        self.past = pasts.get(self.name, TableTimeline())
        changed = [run.started_at_ms for run, table in ends if table.changed]
        proofs = [result for _, table in ends for result in _proofs(table)]
        self.last_changed_ms = changed[-1] if changed else 0
        self.last_proof = PROOF_WORDS[proofs[-1]] if proofs else ""
        self.bytes_rewritten = WorkDone.of_tables(table for _, table in ends).bytes_removed
        self.growth_bytes = _growth(ends, self.past.points)
        self.runs_failed = sum(table.status in FAILED_TABLES for _, table in ends)
        self.quarantined = self.name in held
        self.maintained_twice = twice.get(self.name) or ""

    @property
    def mood(self) -> Role | None:
        """Whether it is good or bad."""
        return Role.BAD if self.quarantined else mood_of(self.end.status)


def fleet_view(
    runs: Sequence[tuple[Plan, RunOutcome]],
    tz: tzinfo,
    *,
    unread: Sequence[str] = (),
    links: Mapping[str, str] | None = None,
    key_of: TableKey = recorded_key,
    project: ReportProject = NO_PROJECT,
) -> Page:
    """Say what many runs did, and how each table is after them.

    ``runs`` are oldest first, at least one; ``unread`` names those that could not be read. ``links`` has the place of
    the page of each run (by its id) and of each table (by its name), relative to this page. ``key_of`` says which
    tables of two plans are one, ``quarantined`` why a table is in quarantine now, by identifier. ``verified`` is what
    `verify` found of these tables, newest first.
    """
    tables = [view for view in fleet_tables(runs, tz, key_of, project.quarantined) if not view.end.is_ledger]
    counted = [view for view in tables if not is_place(view.end)]
    outcomes = [outcome for _, outcome in runs]
    places = sum(map(is_place, outcomes[-1].tables))
    steps_of = [table for outcome in outcomes for table in outcome.user_tables]
    newest = replace(outcomes[-1], tables=tuple(ends[-1][1] for ends in table_runs(runs, key_of)))
    findings = page_findings(newest, project.quarantined)
    held = sum(view.quarantined for view in counted)
    failing = sum(view.mood is Role.BAD and not view.quarantined for view in counted)
    waiting = sum(view.mood is Role.WARN for view in counted)
    mood = Role.BAD if failing or held or places else Role.WARN if waiting else Role.GOOD
    span = f"{count_of(len(counted), 'table')}, {count_of(len(runs), 'run')}, {_span(outcomes, tz)}"
    gain, work = layout_gain(steps_of), WorkDone.of_tables(steps_of)
    groups = by_cause(tables, _alike, at_least=FOLD)
    return Page(
        f"{project.name}, all tables",
        page_head(project.name, span, _verdict(held, failing, waiting, len(counted), places), mood, findings),
        (
            Tiles(tuple(_tiles(counted, steps_of))),
            *(Line(Span(f"not read: {line}", Role.WARN)) for line in unread),
            *attention(findings),
            *money(amounts(project.prices, gain, work, outcomes)),
            *proof(steps_of, project.quarantined, project.verified),
            *_runs(runs, tz, links or {}),
            Heading("Tables", anchor="tables"),
            Line(Span(_ABOUT_TABLES, Role.DIM)),
            *folded_tables(_TABLE, groups, lambda group: _row(group, links or {}, tz)),
            *predicted_and_done(runs),
        ),
    )


def fleet_tables(
    runs: Sequence[tuple[Plan, RunOutcome]],
    tz: tzinfo,
    key_of: TableKey = recorded_key,
    quarantined: Container[str] = (),
) -> list[FleetTable]:
    """Return each table over all runs, the worst first; of very many only the first have curves."""
    pasts = past_of(runs, key_of)
    twice = {table.ref.identifier: table.maintained_twice for plan, _ in runs for table in plan.tables}
    tables = [FleetTable(ends, pasts, quarantined, twice) for ends in table_runs(runs, key_of)]
    tables.sort(key=lambda view: worst_first(view.quarantined, view.mood, view.bytes_rewritten, view.name))
    for view in tables[:MAX_FLEET_CURVES]:
        view.curves = (*files_curve(view.past, tz), *layout_curve(view.past, tz))
    return tables


_ABOUT_TABLES = (
    "The worst first, then those with most bytes rewritten. Files and size are the newest that a run saw or left. "
    "Grown: bytes that other writers added since the first run on this page, less those that they removed."
)
_TABLE = TableBlock(
    ("table", "last run", "files", "over time", "size", "grown", "rewritten", "last proof", "last change"),
    (),
    frozenset({2, 4, 5, 6}),
    caption="Each table over all runs of this page",
)


def _row(tables: Sequence[FleetTable], links: Mapping[str, str], tz: tzinfo) -> Row:
    """Return the row of a table, or of several of which the same is said: with sums, and no table's curve."""
    newest = max(tables, key=lambda table: table.last_changed_ms)
    name, curves = Span(newest.name, link=links.get(newest.name, "")), newest.curves
    if len(tables) > 1:
        counted = count_of(len(tables), noun_of(tables[0].end))
        name, curves = Span(f"{counted}: {first_names([table.name for table in tables])}"), ()
    lasts = [table.past.points[-1] for table in tables if table.past.points]
    grown = sum(table.growth_bytes for table in tables if table.growth_bytes > 0)
    rewritten = sum(table.bytes_rewritten for table in tables)
    often = f" {rewritten / grown:.1f} \u00d7 grown" if grown and rewritten else ""
    owner = f" {newest.end.owner}" if newest.end.owner else ""
    twice = [Span(f" {newest.maintained_twice}", Role.WARN)] if newest.maintained_twice else []
    return Row((
        (name, Span(owner, Role.DIM), *twice),
        ended_cell(newest.end.status, in_quarantine=newest.quarantined, failed=newest.runs_failed),
        number_cell(sum(point.num_files for point in lasts) if lasts else None),
        curves,
        format_size(sum(point.size_bytes for point in lasts)) if lasts else "",
        format_size(grown) if grown else "none",
        (Span(format_size(rewritten) if rewritten else "none"), Span(often, Role.DIM)),
        newest.last_proof,
        f"{moment(newest.last_changed_ms, tz):%Y-%m-%d %H:%M}" if newest.last_changed_ms else "",
    ))  # fmt: skip


def _runs(runs: Sequence[tuple[Plan, RunOutcome]], tz: tzinfo, links: Mapping[str, str]) -> Iterator[Block]:
    columns, rows = [], []
    for plan, outcome in runs:
        size, at = WorkDone.of_run(outcome).bytes_removed, when(outcome.started_at_ms, tz)
        failed = sum(table.status in FAILED_TABLES for table in outcome.user_tables)
        words = f"{at}: {format_size(size)} rewritten, {failed:,} failed"
        label = f"{moment(outcome.started_at_ms, tz):%-d %b %H:%M}"
        columns.append(Column(label, words, float(size), bad=failed > 0))
        rows.append(Row((
            at,
            Span(outcome.run_id, link=links.get(outcome.run_id, "")),
            f"{outcome.total_seconds:,.0f} s",
            number_cell(sum(table.changed for table in outcome.user_tables)),
            number_cell(failed),
            format_size(size) if size else "",
            literal(plan.git_commit or ""),
        )))  # fmt: skip
    tallest = round(max(column.figure for column in columns))
    most = format_size(tallest)
    said = f"Bytes rewritten by each run, at most {most}. One with a failed table is red and has a mark."
    yield Heading("Run by run", anchor="runs")
    if tallest and len(columns) > 1:
        chart = bar_chart(columns, "bytes rewritten by run", unit_text=most)
        yield Line(Span(said, drawing=chart))
    newest = f"The newest {MAX_RUNS_LISTED} runs" if len(rows) > MAX_RUNS_LISTED else "Runs"
    heading = ("when", "run", "took", "changed", "failed", "rewritten", "policies at")
    table = TableBlock(heading, rows[::-1][:MAX_RUNS_LISTED], frozenset({2, 3, 4, 5}), caption="Runs, the newest first")
    yield Fold(f"{newest}, with the commit of the policies", (table,))


def _alike(table: FleetTable) -> Hashable:
    """Return what tables must share to be one row; None for one that a person has to look at by itself."""
    if table.quarantined or table.runs_failed:
        return None
    return (is_place(table.end), table.end.status, table.end.owner, table.last_proof, table.maintained_twice)


def _span(outcomes: Sequence[RunOutcome], tz: tzinfo) -> str:
    first, last = moment(outcomes[0].started_at_ms, tz), moment(outcomes[-1].started_at_ms, tz)
    if first.date() == last.date():
        return f"{last:%A %-d %B %Y}"
    return f"{first:%-d %B %Y} to {last:%-d %B %Y}"


def _verdict(held: int, failing: int, waiting: int, num_tables: int, num_places: int) -> str:
    if not held and not failing and not waiting:
        return f"All tables ended well in their last run{unsearched(num_places)}."
    parts = [f"{count_of(held, 'table')} {'is' if held == 1 else 'are'} in quarantine"] if held else []
    parts += [f"{count_of(failing, 'table')} failed"] if failing else []
    if waiting:
        parts.append(f"{count_of(waiting, 'table')} {'was' if waiting == 1 else 'were'} not finished or not touched")
    return f"In their last run, of {num_tables:,}: {', '.join(parts)}{unsearched(num_places)}."


def _tiles(tables: Sequence[FleetTable], outcomes: Sequence[TableOutcome]) -> Iterator[Tile]:
    """Yield the figures of all tables together, each from a state that a run saw or left."""
    if known := [(view.past.points[0], view.past.points[-1]) for view in tables if view.past.points]:
        files = [sum(points[side].num_files for points in known) for side in (0, 1)]
        sizes = [sum(points[side].size_bytes for points in known) for side in (0, 1)]
        yield _change(*map("{:,}".format, files)), "files", Role.GOOD if files[1] < files[0] else None
        means = [size // number if number else 0 for size, number in zip(sizes, files, strict=True)]
        yield _change(*map(format_size, means)), "average file", Role.GOOD if means[1] > means[0] else None
        yield format_size(sizes[1]), "in all tables now", None
    work = WorkDone.of_tables(outcomes)
    yield from gain_tiles(layout_gain(outcomes), work)
    grown = sum(view.growth_bytes for view in tables if view.growth_bytes > 0)
    rewritten = sum(view.bytes_rewritten for view in tables)
    per_byte = f", {rewritten / grown:.1f} for each byte of growth" if grown and rewritten else ""
    yield format_size(work.bytes_removed), f"rewritten{per_byte}", None
    if proofs := [result for table in outcomes for result in _proofs(table)]:
        held = f"{proofs.count('pass'):,} of {len(proofs):,}"
        yield held, "steps with a proof that held", Role.GOOD if set(proofs) <= {"pass"} else Role.BAD


def _change(before: str, after: str) -> str:
    return after if before == after else f"{before} \u2192 {after}"


def _proofs(table: TableOutcome) -> list[str]:
    return [result for _, result in map(proof_of, table.steps) if result != "none"]


def _growth(ends: Sequence[tuple[RunOutcome, TableOutcome]], points: Sequence[PastPoint]) -> int:
    """Count bytes by which others let the table grow between the first look and the last: growth, less our rewrites'.

    Negative where they took more away than they added.
    """
    if len(points) < 2:
        return 0
    ours = WorkDone.of_tables(table for run, table in ends if run.started_at_ms < points[-1].at_ms)
    return points[-1].size_bytes - points[0].size_bytes - (ours.bytes_added - ours.bytes_removed)
