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
            before = next((one.turn.before for one in table.steps if isinstance(one, ZOrderStep) and one.turn), None)
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
    """The table as a run left it, by its own commits; how much of that is small is seen by the next run."""
    commits = [one for step in table.steps for one in step.commits]
    return PastPoint(
        max(at_ms, met.at_ms + 1),
        met.num_files + sum(one.num_files_added - one.num_files_removed for one in commits),
        met.size_bytes + sum(one.bytes_added - one.bytes_removed for one in commits),
    )


def _layout(at_ms: int, figures: LayoutFigures) -> LayoutPoint:
    return LayoutPoint(at_ms, figures.files_read, figures.overlap_depth, figures.unindexed_ratio)


def files_curve(past: TablePast) -> Curve | None:
    """Draw the files of a table over time; None with fewer than two points."""
    figures = [(one.at_ms, float(one.num_files)) for one in past.points]
    return _curve(figures, "files", lambda value: f"{value:,.0f}")


def table_curves(past: TablePast) -> tuple[Curve, ...]:
    """Return all curves of a table that have two points or more, those of its layout last."""
    known = [one for one in past.points if one.small_bytes is not None]
    drawn = (
        files_curve(past),
        _curve([(one.at_ms, float(one.size_bytes)) for one in past.points], "bytes", _bytes),
        _curve([(one.at_ms, _share(one)) for one in known], "bytes in small files", _percent),
        _curve([(one.at_ms, one.files_read) for one in past.layout], "files that a query reads", _decimal),
        _curve([(one.at_ms, one.overlap_depth) for one in past.layout], "files over one point", _decimal),
        _curve([(one.at_ms, one.unindexed_ratio) for one in past.layout], "bytes not on the curve", _percent),
    )
    return tuple(one for one in drawn if one is not None)


def fleet_curves(tables: Mapping[str, TablePast]) -> dict[str, tuple[Curve | None, Curve | None]]:
    """Return for each table its files over time, and what best tells of its layout: a query's files or small bytes."""
    return {name: (files_curve(past), _layout_curve(past)) for name, past in tables.items()}


def _layout_curve(past: TablePast) -> Curve | None:
    read = [(one.at_ms, one.files_read) for one in past.layout]
    if len(read) > 1:
        return _curve(read, "files that a query reads", _decimal)
    known = [one for one in past.points if one.small_bytes is not None]
    return _curve([(one.at_ms, _share(one)) for one in known], "bytes in small files", _percent)


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
