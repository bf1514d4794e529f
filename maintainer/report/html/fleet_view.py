"""What the report of a fleet shows: many runs at a glance, and each table over time."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo

from maintainer.journal.ledger.ledger_rows import proof_of
from maintainer.model.plan.plan import Plan
from maintainer.model.run.history_rows import HistoryRow
from maintainer.model.run.outcome import RunOutcome, TableOutcome
from maintainer.report.document.blocks import Findings
from maintainer.report.document.folding import FOLD, first_names
from maintainer.report.html.charts import Column
from maintainer.report.html.gains import Tile, amounts, gain_tiles, layout_gain
from maintainer.report.html.predictions import predictions
from maintainer.report.html.run_view import (
    BAD,
    MAX_FINDINGS_SHOWN,
    NO_PROJECT,
    NO_QUARANTINE,
    PROOF_WORDS,
    PageView,
    ReportProject,
    worst_first,
)
from maintainer.report.html.step_view import mood_of, proof_mood, proof_words, verified_words
from maintainer.report.html.table_past import (
    Curve,
    PastPoint,
    TableKey,
    TablePast,
    files_curve,
    layout_curve,
    past_of,
    recorded_key,
)
from maintainer.report.html.table_runs import TableRuns, table_runs
from maintainer.report.run.outcome_text import TABLE_ENDS, WorkDone
from maintainer.report.run.run_findings import page_findings
from maintainer.report.text_layout import moment, when
from maintainer.units import by_cause, count_of, format_size

MAX_FLEET_CURVES = 300
"""Tables whose curve is drawn; the others have their figures."""


@dataclass(frozen=True, slots=True)
class NightView:
    """One run: a column of the chart, and a line of the list. ``link`` is where its own report lies, None for none."""

    run_id: str
    column: Column
    bytes_rewritten: int
    seconds: float
    failed: int
    when: str = ""
    changed: int = 0
    git_commit: str = ""
    link: str | None = None


@dataclass(frozen=True, slots=True)
class FleetTable:
    """One table over all runs of the report, under its newest name.

    ``first`` and ``last`` are the oldest and the newest known state. ``growth_bytes`` is what others added in between,
    less what they took away.
    """

    name: str
    owner: str
    status: str
    detail: str
    mood: str
    last_changed: str
    last_changed_ms: int
    last_proof: str
    first: PastPoint | None
    last: PastPoint | None
    bytes_rewritten: int
    growth_bytes: int
    runs_failed: int
    past: TablePast
    files_over_time: Curve | None = None
    layout_over_time: Curve | None = None
    quarantined: bool = False

    @property
    def num_files(self) -> int | None:
        """Files in the newest known state."""
        return None if self.last is None else self.last.num_files

    @property
    def size_bytes(self) -> int | None:
        """Bytes in the newest known state."""
        return None if self.last is None else self.last.size_bytes

    @property
    def amplification(self) -> float | None:
        """Bytes rewritten for each byte of growth; None where the table did not grow."""
        return self.bytes_rewritten / self.growth_bytes if self.growth_bytes > 0 else None


@dataclass(frozen=True, slots=True)
class FleetView(PageView):
    """All runs of the report."""

    span: str
    nights: tuple[NightView, ...]
    tables: tuple[FleetTable, ...]
    folded: tuple[FleetTable, ...]
    unread: tuple[str, ...]


def fleet_view(
    runs: Sequence[tuple[Plan, RunOutcome]],
    tz: tzinfo,
    *,
    unread: Sequence[str] = (),
    links: Mapping[str, str] | None = None,
    key_of: TableKey = recorded_key,
    project: ReportProject = NO_PROJECT,
    quarantined: Mapping[str, str] = NO_QUARANTINE,
    verified: Sequence[HistoryRow] = (),
) -> FleetView:
    """Gather what the report of a fleet shows.

    ``runs`` are oldest first, at least one; ``unread`` names those that could not be read, ``links`` the place of each
    run's own report, relative to the page. ``key_of`` says which tables of two plans are one, ``quarantined`` why a
    table is in quarantine now, by identifier. ``verified`` is what `verify` found of these tables, newest first.
    """
    pasts, histories = past_of(runs, key_of), table_runs(runs, key_of)
    tables = [_held(_table(each, pasts.get(each.name, TablePast()), tz), quarantined) for each in histories]
    tables.sort(key=lambda view: worst_first(view.mood, view.bytes_rewritten, view.name))
    of_ledger = {each.name for each in histories if each.newest.is_ledger}
    counted = [view for view in tables if view.name not in of_ledger]
    outcomes = [outcome for _, outcome in runs]
    steps_of = [table for outcome in outcomes for table in outcome.user_tables]
    newest = replace(outcomes[-1], tables=tuple(each.newest for each in histories))
    held = sum(view.quarantined for view in counted)
    failing = sum(view.mood == "bad" and not view.quarantined for view in counted)
    waiting = sum(view.mood == "warn" for view in counted)
    return FleetView(
        project=project.name,
        span=f"{count_of(len(counted), 'table')}, {count_of(len(runs), 'run')}, {_span(outcomes, tz)}",
        verdict=_verdict(held, failing, waiting, len(counted)),
        mood="bad" if failing or held else "warn" if waiting else "good",
        tiles=_tiles(counted, steps_of),
        amounts=amounts(project.prices, layout_gain(steps_of), WorkDone.of_tables(steps_of), outcomes),
        proof=(*proof_words(steps_of), *verified_words(verified)),
        proof_mood=proof_mood(steps_of, quarantined, verified),
        findings=Findings(page_findings(newest, quarantined), MAX_FINDINGS_SHOWN),
        nights=tuple(_night(plan, outcome, tz, (links or {}).get(outcome.run_id)) for plan, outcome in runs),
        tables=tuple(
            replace(view, files_over_time=files_curve(view.past, tz), layout_over_time=layout_curve(view.past, tz))
            if number < MAX_FLEET_CURVES
            else view
            for number, view in enumerate(tables)
        ),
        folded=tuple(map(_joined, by_cause(tables, _alike, at_least=FOLD))),
        predictions=predictions(runs),
        unread=tuple(unread),
    )


def _alike(table: FleetTable) -> Hashable:
    """Return what tables must share to be one row; None for one that a person has to look at by itself."""
    if table.quarantined or table.runs_failed:
        return None
    return (table.mood, table.status, table.detail, table.owner, table.last_proof)


def _joined(tables: Sequence[FleetTable]) -> FleetTable:
    """Return one row for tables of which the same is said, with sums and the newest change."""
    newest = max(tables, key=lambda table: table.last_changed_ms)
    if len(tables) == 1:
        return newest
    lasts = [table.last for table in tables if table.last is not None]
    return replace(
        newest,
        name=f"{count_of(len(tables), 'table')}: {first_names([table.name for table in tables])}",
        last=PastPoint(0, sum(p.num_files for p in lasts), sum(p.size_bytes for p in lasts)) if lasts else None,
        bytes_rewritten=sum(table.bytes_rewritten for table in tables),
        growth_bytes=sum(table.growth_bytes for table in tables if table.growth_bytes > 0),
    )


def _span(outcomes: Sequence[RunOutcome], tz: tzinfo) -> str:
    first, last = moment(outcomes[0].started_at_ms, tz), moment(outcomes[-1].started_at_ms, tz)
    if first.date() == last.date():
        return f"{last:%A %-d %B %Y}"
    return f"{first:%-d %B %Y} to {last:%-d %B %Y}"


def _held(table: FleetTable, quarantined: Mapping[str, str]) -> FleetTable:
    return replace(table, mood="bad", quarantined=True) if table.name in quarantined else table


def _verdict(held: int, failing: int, waiting: int, num_tables: int) -> str:
    if not held and not failing and not waiting:
        return "All tables ended well in their last run."
    parts = [f"{count_of(held, 'table')} {'is' if held == 1 else 'are'} in quarantine"] if held else []
    parts += [f"{count_of(failing, 'table')} failed"] if failing else []
    if waiting:
        parts.append(f"{count_of(waiting, 'table')} {'was' if waiting == 1 else 'were'} not finished or not touched")
    return f"In their last run, of {num_tables:,}: {', '.join(parts)}."


def _tiles(tables: Sequence[FleetTable], outcomes: Sequence[TableOutcome]) -> tuple[Tile, ...]:
    """Return the figures of all tables together, each from a state that a run saw or left."""
    known = [(view.first, view.last) for view in tables if view.first is not None and view.last is not None]
    tiles: list[Tile] = []
    if known:
        files = [sum(points[side].num_files for points in known) for side in (0, 1)]
        sizes = [sum(points[side].size_bytes for points in known) for side in (0, 1)]
        tiles.append((_change(*map("{:,}".format, files)), "files", "good" if files[1] < files[0] else "calm"))
        means = [size // number if number else 0 for size, number in zip(sizes, files, strict=True)]
        tiles.append((_change(*map(format_size, means)), "average file", "good" if means[1] > means[0] else "calm"))
        tiles.append((format_size(sizes[1]), "in all tables now", "calm"))
    work = WorkDone.of_tables(outcomes)
    tiles += gain_tiles(layout_gain(outcomes), work)
    grown = sum(view.growth_bytes for view in tables if view.growth_bytes > 0)
    rewritten = sum(view.bytes_rewritten for view in tables)
    per_byte = f", {rewritten / grown:.1f} for each byte of growth" if grown and rewritten else ""
    tiles.append((format_size(work.bytes_removed), f"rewritten{per_byte}", "calm"))
    proofs = [result for table in outcomes for result in _proofs(table)]
    if proofs:
        held = f"{proofs.count('pass'):,} of {len(proofs):,}"
        tiles.append((held, "steps with a proof that held", "good" if set(proofs) <= {"pass"} else "bad"))
    return tuple(tiles)


def _change(before: str, after: str) -> str:
    return after if before == after else f"{before} \u2192 {after}"


def _proofs(table: TableOutcome) -> list[str]:
    return [result for _, result in map(proof_of, table.steps) if result != "none"]


def _night(plan: Plan, outcome: RunOutcome, tz: tzinfo, link: str | None) -> NightView:
    size = WorkDone.of_run(outcome).bytes_removed
    failed = sum(table.status in BAD for table in outcome.user_tables)
    at = moment(outcome.started_at_ms, tz)
    words = f"{when(outcome.started_at_ms, tz)}: {format_size(size)} rewritten, {failed:,} failed"
    return NightView(
        run_id=outcome.run_id,
        column=Column(f"{at:%-d %b %H:%M}", words, float(size), bad=failed > 0),
        bytes_rewritten=size,
        seconds=outcome.total_seconds,
        failed=failed,
        when=when(outcome.started_at_ms, tz),
        changed=sum(table.changed for table in outcome.user_tables),
        git_commit=plan.git_commit or "",
        link=link,
    )


def _table(history: TableRuns, past: TablePast, tz: tzinfo) -> FleetTable:
    points, ends, last = past.points, history.ends, history.newest
    changed = next((run for run, table in reversed(ends) if table.changed), None)
    proofs = [result for _, table in ends for result in _proofs(table)]
    status, _, detail = TABLE_ENDS[last.status].text.partition(": ")
    return FleetTable(
        name=history.name,
        owner=last.owner or "",
        status=status,
        detail=detail,
        mood=mood_of(last.status),
        last_changed=f"{moment(changed.started_at_ms, tz):%-d %b %Y, %H:%M}" if changed else "",
        last_changed_ms=changed.started_at_ms if changed else 0,
        last_proof=PROOF_WORDS[proofs[-1]] if proofs else "",
        first=points[0] if points else None,
        last=points[-1] if points else None,
        bytes_rewritten=WorkDone.of_tables(table for _, table in ends).bytes_removed,
        growth_bytes=_growth(ends, points),
        runs_failed=sum(table.status in BAD for _, table in ends),
        past=past,
    )


def _growth(ends: Sequence[tuple[RunOutcome, TableOutcome]], points: Sequence[PastPoint]) -> int:
    """Count bytes by which others let the table grow between the first look and the last: growth, less our rewrites'.

    Negative where they took more away than they added.
    """
    if len(points) < 2:
        return 0
    ours = WorkDone.of_tables(table for run, table in ends if run.started_at_ms < points[-1].at_ms)
    return points[-1].size_bytes - points[0].size_bytes - (ours.bytes_added - ours.bytes_removed)
