"""Charts as inline SVG: sizes of files before and after, and figures of a table over time.

Figures come from plans and outcomes: files, bytes, small files, and what a query reads. Every chart is an image with
a name and a description in words, so that nothing is told by the picture alone. Colours are classes that the page's
style sheet gives; a chart sets none itself, and so it follows dark, light and paper.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from maintainer.model.plan.plan import Plan, TablePlan
from maintainer.model.plan.steps import ZOrderStep
from maintainer.model.plan.zorder_turn import LayoutFigures
from maintainer.model.run.outcome import RunOutcome, TableOutcome
from maintainer.model.table.storage_facts import FileSizes
from maintainer.report.run.outcome_text import WorkDone
from maintainer.report.text_layout import printable
from maintainer.units import count_of, format_size

Spelled = Callable[[float], str]
"""How a figure is written."""

TableKey = Callable[[TablePlan], object | None]
"""What is equal for one table in the plans of several runs; None for a table that a run could not read."""

MAX_BARS = 14
"""Buckets of powers of two are joined in pairs until so many bars are enough."""

_WIDTH, _BAR_AREA, _LABELS = 360, 44, 14


@dataclass(frozen=True, slots=True)
class Bar:
    """Files from ``low_bytes`` up to, but not including, ``high_bytes``."""

    low_bytes: int
    high_bytes: int
    before: int
    after: int


def size_bars(before: FileSizes, after: FileSizes) -> tuple[Bar, ...]:
    """Put two distributions on one axis, without gaps, in at most ``MAX_BARS`` bars."""
    exponents = [bucket.exponent for bucket in (*before, *after)]
    if not exponents:
        return ()
    first, last, step = min(exponents), max(exponents), 1
    while (last - first) // step + 1 > MAX_BARS:
        step *= 2
    counted = [{bucket.exponent: bucket.num_files for bucket in sizes} for sizes in (before, after)]
    return tuple(
        Bar(
            1 << low,
            1 << (low + step),
            *(sum(sizes.get(exponent, 0) for exponent in range(low, low + step)) for sizes in counted),
        )
        for low in range(first, last + 1, step)
    )


def size_chart(before: FileSizes, after: FileSizes, name: str) -> Markup:
    """Draw files by size: before above the axis, after below it. Empty where there is nothing to draw."""
    bars = size_bars(before, after)
    if not bars:
        return Markup("")
    tallest = max(max(bar.before, bar.after) for bar in bars)
    room = _WIDTH / len(bars)
    middle, height = _BAR_AREA, 2 * _BAR_AREA + _LABELS
    shapes = []
    for place, bar in enumerate(bars):
        left, width = place * room + 1, room - 2
        for number, css, down in ((bar.before, "before", False), (bar.after, "after", True)):
            tall = max(1.5, number / tallest * (_BAR_AREA - 2)) if number else 0.0
            if tall:
                top = middle + _LABELS if down else middle - tall
                shapes.append(_rect(left, top, width, tall, css))
        if len(bars) <= 7 or place % 2 == 0:
            shapes.append(_text(left + width / 2, middle + _LABELS - 4, _short(bar.low_bytes), "middle"))
    described = f"before: {_in_words(bars, 'before')}; after: {_in_words(bars, 'after')}"
    return _svg(_WIDTH, height, f"files of {name} by size", described, shapes)


def line_chart(points: Sequence[tuple[float, float]], name: str, described: str, *, width: int = 160) -> Markup:
    """Draw a figure over time as a small line from zero; empty with fewer than two points.

    Args:
        points: (time, figure), ascending by time.
        name: What the figure is of.
        described: What a person who cannot see the line should read.
        width: Pixels; it is 32 high.
    """
    if len(points) < 2:
        return Markup("")
    first, last = points[0][0], points[-1][0]
    highest = max(figure for _, figure in points) or 1.0
    span = (last - first) or 1.0
    places = [((at - first) / span * (width - 6) + 3, 29 - figure / highest * 26) for at, figure in points]
    line = " ".join(f"{x:.0f},{y:.0f}" for x, y in places)
    x, y = places[-1]
    shapes = [
        Markup('<polyline class="line" points="{}"/>').format(line),
        Markup('<circle class="dot" cx="{}" cy="{}" r="2.5"/>').format(f"{x:.0f}", f"{y:.0f}"),
    ]
    return _svg(width, 32, name, described, shapes)


def bar_chart(columns: Sequence[tuple[str, float, str]], name: str, *, unit_text: str) -> Markup:
    """Draw one column for each run or night; empty without columns.

    Args:
        columns: (what it is, figure, css class), in order of time.
        name: What the figure is of.
        unit_text: The tallest column in words.
    """
    if not columns:
        return Markup("")
    room = 720 / max(len(columns), 8)
    tallest = max(figure for _, figure, _ in columns) or 1.0
    shapes = []
    for place, (label, figure, css) in enumerate(columns):
        tall = max(1.5, figure / tallest * 90) if figure else 1.5
        inner = Markup("<title>{}</title>").format(label)
        shapes.append(_rect(place * room + 1, 94 - tall, room - 2, tall, css, inner))
    described = "; ".join(label for label, _, _ in columns[-10:])
    return _svg(720, 96, f"{name}, at most {unit_text}", described, shapes)


def _short(size_bytes: int) -> str:
    return format_size(size_bytes).replace(" ", "\u202f")


def _in_words(bars: Sequence[Bar], side: str) -> str:
    parts = [
        f"{count_of(getattr(bar, side), 'file')} from {format_size(bar.low_bytes)} to {format_size(bar.high_bytes)}"
        for bar in bars
        if getattr(bar, side)
    ]
    return ", ".join(parts) or "none"


def _rect(x: float, y: float, width: float, height: float, css: str, inner: Markup | None = None) -> Markup:
    shape = Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}"').format(
        css, f"{x:.1f}", f"{y:.1f}", f"{width:.1f}", f"{height:.1f}"
    )
    return shape + (Markup("/>") if inner is None else Markup(">{}</rect>").format(inner))


def _text(x: float, y: float, text: str, anchor: str) -> Markup:
    return Markup('<text x="{}" y="{}" text-anchor="{}">{}</text>').format(f"{x:.1f}", f"{y:.1f}", anchor, text)


def _svg(width: int, height: int, name: str, described: str, shapes: Sequence[Markup]) -> Markup:
    return Markup(
        '<svg class="chart" role="img" viewBox="0 0 {} {}" width="{}" height="{}"><title>{}</title>'
        "<desc>{}</desc>{}</svg>"
    ).format(width, height, width, height, escape(printable(name)), escape(described), Markup("").join(shapes))


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
    """How the files of a table with an incremental Z-order lay at a time (``layout_figures`` says what that is)."""

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


def recorded_key(table: TablePlan) -> object | None:
    """Return the table's id and its location as written; None where the run could not read it."""
    return None if table.observed is None else (table.observed.table_id, table.observed.location)


def past_of(runs: Sequence[tuple[Plan, RunOutcome]], key_of: TableKey = recorded_key) -> dict[str, TablePast]:
    """Return each table as every run met it, by each identifier that a policy had for it, in the order of time.

    A saved plan shows a table as it was when the plan was made, which may be before a run that was applied earlier.

    Args:
        runs: The oldest first.
        key_of: Which tables of two plans are one.
    """
    points: dict[object, list[PastPoint]] = {}
    layout: dict[object, list[LayoutPoint]] = {}
    keys: dict[str, object] = {}
    for plan, outcome in runs:
        drawn: set[object] = set()
        met: dict[object, PastPoint] = {}
        for table in plan.tables:
            seen, key = table.observed, key_of(table)
            if seen is None or key is None:
                continue
            keys[table.ref.identifier] = key
            if key in drawn:  # two policies of one table: a run touches it for neither
                continue
            drawn.add(key)
            met[key] = PastPoint(
                plan.created_at_ms, seen.num_files, seen.size_bytes, seen.small_files, seen.small_bytes
            )
            points.setdefault(key, []).append(met[key])
            before = next(
                (step.turn.before for step in table.steps if isinstance(step, ZOrderStep) and step.turn), None
            )
            if before is not None:
                layout.setdefault(key, []).append(_layout(plan.created_at_ms, before))
        for ended in outcome.tables:
            key, at_ms = keys.get(ended.ref.identifier), outcome.started_at_ms + round(outcome.duration_seconds * 1000)
            if key is None or key not in met:
                continue
            if any(step.commits for step in ended.steps):
                points[key].append(_left_by(ended, met[key], at_ms))
            after = next((turn.after for step in ended.steps for turn in reversed(step.turns) if turn.after), None)
            if after is not None:
                layout.setdefault(key, []).append(_layout(at_ms, after))
    for states in points.values():
        states.sort(key=lambda point: point.at_ms)
    for layouts in layout.values():
        layouts.sort(key=lambda point: point.at_ms)
    return {name: TablePast(tuple(points[key]), tuple(layout.get(key, ()))) for name, key in keys.items()}


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
    shares = [
        (point.at_ms, point.small_bytes / point.size_bytes if point.size_bytes else 0.0)
        for point in past.points
        if point.small_bytes is not None
    ]
    return _curve(shares, "bytes in small files", _percent)


def _percent(value: float) -> str:
    return f"{value:.0%}"


def _decimal(value: float) -> str:
    return f"{value:,.1f}"


def _bytes(value: float) -> str:
    return format_size(round(value))


def _curve(figures: Sequence[tuple[int, float]], what: str, spelled: Spelled) -> Curve | None:
    if len(figures) < 2:
        return None
    every = -(-(len(figures) - 1) // (MAX_POINTS - 1))
    points = [(float(at_ms), value) for at_ms, value in reversed(figures[::-every][:MAX_POINTS])]
    words = ", ".join(spelled(value) for _, value in figures[-MAX_FIGURES_IN_WORDS:])
    chart = line_chart(points, f"{what} over time", f"oldest first: {words}")
    return Curve(chart, f"{what}: {spelled(figures[0][1])} to {spelled(figures[-1][1])}")
