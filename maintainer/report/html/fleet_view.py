"""What the report of a fleet shows: many runs at a glance, and each table over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo

from maintainer.journal.ledger.ledger_rows import proof_of
from maintainer.model.plan.plan import Plan
from maintainer.model.run.outcome import RunOutcome, TableOutcome, TableStatus
from maintainer.report.html.run_view import BAD, Prediction, mood_of, predictions
from maintainer.report.html.time_series import PastPoint, TablePast, past_of
from maintainer.report.run.outcome_text import TABLE_STATUS_TEXT
from maintainer.report.text.text_layout import count, printable, when
from maintainer.units import format_size

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
    tiles: tuple[tuple[str, str, str], ...]
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
) -> FleetView:
    """Gather what the report of a fleet shows.

    Args:
        runs: Plans and outcomes, oldest first; at least one.
        tz: For times.
        unread: Runs that could not be read, in words.
        links: Where the report of a run lies, by the run; relative to the page.
    """
    pasts = past_of(runs)
    seen: dict[str, list[tuple[RunOutcome, TableOutcome]]] = {}
    for _, outcome in runs:
        for table in outcome.tables:
            seen.setdefault(table.ref.identifier, []).append((outcome, table))
    tables = [_table(name, met, pasts.get(name, TablePast()), tz) for name, met in seen.items()]
    rank = {"bad": 0, "warn": 1, "good": 2, "calm": 3}
    tables.sort(key=lambda one: (rank[one.mood], -one.bytes_rewritten, one.name))
    of_ledger = {printable(name) for name, met in seen.items() if met[-1][1].is_ledger}
    counted = [one for one in tables if one.name not in of_ledger]
    first, last = runs[0][1].started_at_ms, runs[-1][1].started_at_ms
    rewritten = sum(one.bytes_rewritten for one in counted)
    proofs = [result for met in seen.values() for _, table in met if not table.is_ledger for result in _proofs(table)]
    failing = sum(one.mood == "bad" for one in counted)
    return FleetView(
        span=f"{count(len(runs), 'run')}, {when(first, tz)} to {when(last, tz)}",
        tiles=(
            (f"{len(counted):,}", "tables", "calm"),
            (f"{failing:,}", "failing at their last run", "bad" if failing else "calm"),
            (format_size(rewritten), "rewritten", "calm"),
            (f"{proofs.count('pass'):,} of {len(proofs):,}", "steps with a proof that held", _proof_mood(proofs)),
        ),
        nights=tuple(_night(plan, outcome, tz, (links or {}).get(outcome.run_id)) for plan, outcome in runs),
        tables=tuple(tables),
        predictions=predictions(runs),
        unread=tuple(printable(one) for one in unread),
    )


def _proof_mood(proofs: Sequence[str]) -> str:
    return "good" if all(one == "pass" for one in proofs) else "bad"


def _proofs(table: TableOutcome) -> list[str]:
    return [result for _, result in map(proof_of, table.steps) if result != "none"]


def _night(plan: Plan, outcome: RunOutcome, tz: tzinfo, link: str | None) -> NightView:
    size = sum(one.bytes_removed for table in outcome.user_tables for step in table.steps for one in step.commits)
    failed = sum(table.status in BAD for table in outcome.user_tables)
    label = f"{when(outcome.started_at_ms, tz)}: {format_size(size)} rewritten, {failed:,} failed"
    return NightView(
        run_id=printable(outcome.run_id),
        label=label,
        bytes_rewritten=size,
        seconds=outcome.duration_seconds,
        failed=failed,
        when=when(outcome.started_at_ms, tz),
        changed=outcome.count(TableStatus.DONE),
        git_commit=printable(plan.git_commit or ""),
        link=link,
    )


def _table(name: str, met: Sequence[tuple[RunOutcome, TableOutcome]], past: TablePast, tz: tzinfo) -> FleetTable:
    points = past.points
    last = met[-1][1]
    changed = next((run for run, table in reversed(met) if table.status is TableStatus.DONE), None)
    proofs = [result for _, table in met for result in _proofs(table)]
    words = {"pass": "proven", "fail": "failed", "error": "could not check"}
    return FleetTable(
        name=printable(name),
        owner=printable(last.owner or ""),
        status=TABLE_STATUS_TEXT[last.status],
        mood=mood_of(last.status),
        last_changed=when(changed.started_at_ms, tz) if changed else "",
        last_proof=words[proofs[-1]] if proofs else "",
        num_files=points[-1].num_files if points else None,
        size_bytes=points[-1].size_bytes if points else None,
        bytes_rewritten=sum(one.bytes_removed for _, table in met for step in table.steps for one in step.commits),
        growth_bytes=_arrived(met, points),
        runs_failed=sum(table.status in BAD for _, table in met),
        past=past,
    )


def _arrived(met: Sequence[tuple[RunOutcome, TableOutcome]], points: Sequence[PastPoint]) -> int:
    """Bytes that others added between the first look and the last: growth, less what our own rewrites made of it."""
    if len(points) < 2:
        return 0
    ours = sum(
        one.bytes_added - one.bytes_removed
        for run, table in met
        if run.started_at_ms < points[-1].at_ms
        for step in table.steps
        for one in step.commits
    )
    return points[-1].size_bytes - points[0].size_bytes - ours
