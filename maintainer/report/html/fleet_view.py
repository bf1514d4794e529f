"""What the report of a fleet shows: many runs at a glance, and each table over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo

from maintainer.journal.ledger.ledger_rows import proof_of
from maintainer.model.plan.plan import Plan
from maintainer.model.run.outcome import RunOutcome, TableOutcome, TableStatus
from maintainer.report.html.charts import PastPoint, TableKey, TablePast, past_of, recorded_key
from maintainer.report.html.run_view import BAD, PROOF_WORDS, Prediction, Tile, mood_of, predictions, worst_first
from maintainer.report.run.outcome_text import TABLE_ENDS, WorkDone
from maintainer.report.text_layout import when
from maintainer.units import count_of, format_size

MAX_FLEET_CURVES = 300
"""Tables whose curve is drawn; the others have their figures."""


@dataclass(frozen=True, slots=True)
class NightView:
    """One run: a column of the chart, and a line of the list. ``link`` is where its own report lies, None for none."""

    run_id: str
    label: str
    bytes_rewritten: int
    seconds: float
    failed: int
    when: str = ""
    changed: int = 0
    git_commit: str = ""
    link: str | None = None


@dataclass(frozen=True, slots=True)
class FleetTable:
    """One table over all runs of the report."""

    name: str
    owner: str
    status: str
    mood: str
    last_changed: str
    last_proof: str
    num_files: int | None
    size_bytes: int | None
    bytes_rewritten: int
    growth_bytes: int
    runs_failed: int
    past: TablePast

    @property
    def amplification(self) -> float | None:
        """Bytes rewritten for each byte that others added; None where nobody did."""
        return self.bytes_rewritten / self.growth_bytes if self.growth_bytes > 0 else None


@dataclass(frozen=True, slots=True)
class FleetView:
    """All runs of the report."""

    span: str
    tiles: tuple[Tile, ...]
    nights: tuple[NightView, ...]
    tables: tuple[FleetTable, ...]
    predictions: tuple[Prediction, ...]
    unread: tuple[str, ...]


def fleet_view(
    runs: Sequence[tuple[Plan, RunOutcome]],
    tz: tzinfo,
    *,
    unread: Sequence[str] = (),
    links: Mapping[str, str] | None = None,
    key_of: TableKey = recorded_key,
) -> FleetView:
    """Gather what the report of a fleet shows.

    ``runs`` are oldest first, at least one; ``unread`` names those that could not be read, ``links`` the place of each
    run's own report, relative to the page. ``key_of`` says which tables of two plans are one.
    """
    pasts = past_of(runs, key_of)
    seen: dict[str, list[tuple[RunOutcome, TableOutcome]]] = {}
    for _, outcome in runs:
        for table in outcome.tables:
            seen.setdefault(table.ref.identifier, []).append((outcome, table))
    tables = [_table(name, met, pasts.get(name, TablePast()), tz) for name, met in seen.items()]
    tables.sort(key=lambda view: worst_first(view.mood, view.bytes_rewritten, view.name))
    of_ledger = {name for name, met in seen.items() if met[-1][1].is_ledger}
    counted = [view for view in tables if view.name not in of_ledger]
    first, last = runs[0][1].started_at_ms, runs[-1][1].started_at_ms
    rewritten = sum(view.bytes_rewritten for view in counted)
    proofs = [result for met in seen.values() for _, table in met if not table.is_ledger for result in _proofs(table)]
    failing = sum(view.mood == "bad" for view in counted)
    return FleetView(
        span=f"{count_of(len(runs), 'run')}, {when(first, tz)} to {when(last, tz)}",
        tiles=(
            (f"{len(counted):,}", "tables", "calm"),
            (f"{failing:,}", "failing at their last run", "bad" if failing else "calm"),
            (format_size(rewritten), "rewritten", "calm"),
            (
                f"{proofs.count('pass'):,} of {len(proofs):,}",
                "steps with a proof that held",
                "good" if set(proofs) <= {"pass"} else "bad",
            ),
        ),
        nights=tuple(_night(plan, outcome, tz, (links or {}).get(outcome.run_id)) for plan, outcome in runs),
        tables=tuple(tables),
        predictions=predictions(runs),
        unread=tuple(unread),
    )


def _proofs(table: TableOutcome) -> list[str]:
    return [result for _, result in map(proof_of, table.steps) if result != "none"]


def _night(plan: Plan, outcome: RunOutcome, tz: tzinfo, link: str | None) -> NightView:
    size = WorkDone.of_run(outcome).bytes_removed
    failed = sum(table.status in BAD for table in outcome.user_tables)
    label = f"{when(outcome.started_at_ms, tz)}: {format_size(size)} rewritten, {failed:,} failed"
    return NightView(
        run_id=outcome.run_id,
        label=label,
        bytes_rewritten=size,
        seconds=outcome.duration_seconds,
        failed=failed,
        when=when(outcome.started_at_ms, tz),
        changed=outcome.count(TableStatus.DONE),
        git_commit=plan.git_commit or "",
        link=link,
    )


def _table(name: str, met: Sequence[tuple[RunOutcome, TableOutcome]], past: TablePast, tz: tzinfo) -> FleetTable:
    points = past.points
    last = met[-1][1]
    changed = next((run for run, table in reversed(met) if table.status is TableStatus.DONE), None)
    proofs = [result for _, table in met for result in _proofs(table)]
    return FleetTable(
        name=name,
        owner=last.owner or "",
        status=TABLE_ENDS[last.status].text,
        mood=mood_of(last.status),
        last_changed=when(changed.started_at_ms, tz) if changed else "",
        last_proof=PROOF_WORDS[proofs[-1]] if proofs else "",
        num_files=points[-1].num_files if points else None,
        size_bytes=points[-1].size_bytes if points else None,
        bytes_rewritten=WorkDone.of_tables(table for _, table in met).bytes_removed,
        growth_bytes=_arrived(met, points),
        runs_failed=sum(table.status in BAD for _, table in met),
        past=past,
    )


def _arrived(met: Sequence[tuple[RunOutcome, TableOutcome]], points: Sequence[PastPoint]) -> int:
    """Count bytes that others added between the first look and the last: growth, less that of our own rewrites."""
    if len(points) < 2:
        return 0
    ours = WorkDone.of_tables(table for run, table in met if run.started_at_ms < points[-1].at_ms)
    return points[-1].size_bytes - points[0].size_bytes - (ours.bytes_added - ours.bytes_removed)
