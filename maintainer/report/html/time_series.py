"""Figures of a table over time, from plans and outcomes: files, bytes, small files, and what a query reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from maintainer.model.plan.plan import Plan
from maintainer.model.plan.steps import ZOrderStep
from maintainer.model.plan.zorder_turn import LayoutFigures
from maintainer.model.run.outcome import RunOutcome, TableOutcome
from maintainer.report.html import svg_charts as charts
from maintainer.report.run.work_done import WorkDone
from maintainer.units import format_size

MAX_FIGURES_IN_WORDS = 8
"""A curve's description names its newest figures."""

MAX_POINTS = 20
"""A longer curve is drawn from every n-th figure, the newest always among them."""


@dataclass(frozen=True, slots=True)
class PastPoint:
    """A table as one run met it, or left it.

    ``small_bytes`` are in files under the policy's ``minFileSize``; None where nobody counted.
    """

    at_ms: int
    num_files: int
    size_bytes: int
    small_files: int | None = None
    small_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class LayoutPoint:
    """How the files of a table with an incremental Z-order lay at a time (``planning.layout`` says what that is)."""

    at_ms: int
    files_read: float
    overlap_depth: float
    unindexed_ratio: float


@dataclass(frozen=True, slots=True)
class TablePast:
    """All that is known of a table over time, oldest first."""

    points: tuple[PastPoint, ...] = ()
    layout: tuple[LayoutPoint, ...] = ()


@dataclass(frozen=True, slots=True)
class Curve:
    """A line with what stands below it; the caption says what the line does, first and last, in words."""

    chart: Markup
    caption: str


def past_of(runs: Sequence[tuple[Plan, RunOutcome]]) -> dict[str, TablePast]:
    """Return each table as every run met it, by identifier; runs are oldest first."""
    points: dict[str, list[PastPoint]] = {}
    layout: dict[str, list[LayoutPoint]] = {}
    for plan, outcome in runs:
        for table in plan.tables:
            seen = table.observed
            if seen is not None:
                point = PastPoint(
                    plan.created_at_ms, seen.num_files, seen.size_bytes, seen.small_files, seen.small_bytes
                )
                points.setdefault(table.ref.identifier, []).append(point)
            before = next(
                (step.turn.before for step in table.steps if isinstance(step, ZOrderStep) and step.turn), None
            )
            if before is not None:
                layout.setdefault(table.ref.identifier, []).append(_layout(plan.created_at_ms, before))
        for ended in outcome.tables:
            name, at_ms = ended.ref.identifier, outcome.started_at_ms + round(outcome.duration_seconds * 1000)
            if any(step.commits for step in ended.steps) and name in points:
                points[name].append(_left_by(ended, points[name][-1], at_ms))
            after = next((turn.after for step in ended.steps for turn in reversed(step.turns) if turn.after), None)
            if after is not None:
                layout.setdefault(name, []).append(_layout(at_ms, after))
    return {name: TablePast(tuple(points.get(name, ())), tuple(layout.get(name, ()))) for name in {*points, *layout}}


def _left_by(table: TableOutcome, met: PastPoint, at_ms: int) -> PastPoint:
    """Return the table as a run left it, by its own commits; the next run counts what of it is small."""
    work = WorkDone.of(table.steps)
    return PastPoint(
        max(at_ms, met.at_ms + 1),
        met.num_files + work.files_added - work.files_removed,
        met.size_bytes + work.bytes_added - work.bytes_removed,
    )


def _layout(at_ms: int, figures: LayoutFigures) -> LayoutPoint:
    return LayoutPoint(at_ms, figures.files_read, figures.overlap_depth, figures.unindexed_ratio)


def table_curves(past: TablePast) -> tuple[Curve, ...]:
    """Return all curves of a table that have two points or more, those of its layout last."""
    depth = [(point.at_ms, point.overlap_depth) for point in past.layout]
    unindexed = [(point.at_ms, point.unindexed_ratio) for point in past.layout]
    curves = (
        _files(past),
        _curve([(point.at_ms, float(point.size_bytes)) for point in past.points], "bytes", _bytes),
        _small_bytes(past),
        _files_read(past),
        _curve(depth, "files over one point", _decimal),
        _curve(unindexed, "bytes not on the curve", _percent),
    )
    return tuple(curve for curve in curves if curve is not None)


def fleet_curves(tables: Mapping[str, TablePast]) -> dict[str, tuple[Curve | None, Curve | None]]:
    """Return for each table its files over time, and what a query reads or, without that, small bytes."""
    return {name: (_files(past), _files_read(past) or _small_bytes(past)) for name, past in tables.items()}


def _files(past: TablePast) -> Curve | None:
    return _curve([(point.at_ms, float(point.num_files)) for point in past.points], "files", lambda n: f"{n:,.0f}")


def _files_read(past: TablePast) -> Curve | None:
    return _curve([(point.at_ms, point.files_read) for point in past.layout], "files that a query reads", _decimal)


def _small_bytes(past: TablePast) -> Curve | None:
    known = [point for point in past.points if point.small_bytes is not None]
    return _curve([(point.at_ms, _share(point)) for point in known], "bytes in small files", _percent)


def _share(point: PastPoint) -> float:
    return (point.small_bytes or 0) / point.size_bytes if point.size_bytes else 0.0


def _percent(value: float) -> str:
    return f"{value:.0%}"


def _decimal(value: float) -> str:
    return f"{value:,.1f}"


def _bytes(value: float) -> str:
    return format_size(round(value))


def _curve(figures: Sequence[tuple[int, float]], what: str, spelled: charts.Spelled) -> Curve | None:
    if len(figures) < 2:
        return None
    every = -(-(len(figures) - 1) // (MAX_POINTS - 1))
    points = [(float(at_ms), value) for at_ms, value in reversed(figures[::-every][:MAX_POINTS])]
    words = ", ".join(spelled(value) for _, value in figures[-MAX_FIGURES_IN_WORDS:])
    chart = charts.line_chart(points, f"{what} over time", f"oldest first: {words}")
    return Curve(chart, f"{what}: {spelled(figures[0][1])} to {spelled(figures[-1][1])}")
