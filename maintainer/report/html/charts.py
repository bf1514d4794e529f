"""Charts as inline SVG: sizes of files before and after, and figures of a table over time.

Figures come from plans and outcomes: files, bytes, small files, and what a query reads. Every chart is an image whose
name says what it shows, so that nothing is told by the picture alone. Colours are classes that the page's
style sheet gives; a chart sets none itself, and so it follows dark, light and paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from maintainer.model.table.storage_facts import FileSizes
from maintainer.model.table.table_facts import FileBox
from maintainer.report.text_layout import printable
from maintainer.units import count_of, format_size

MAX_BARS = 14
"""Buckets of powers of two are joined in pairs until so many bars are enough."""

_WIDTH, _BAR_AREA, _LABELS, _LEFT = 420, 56, 14, 38
_LEAST_BARS = 7
"""A chart of fewer bars has room for so many: one bar is no wall."""

_BOX_SIDE, _LONGEST_AXIS = 180, 28


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
    bars = []
    for low in range(first, last + 1, step):
        sides = (sum(sizes.get(exponent, 0) for exponent in range(low, low + step)) for sizes in counted)
        bars.append(Bar(1 << low, 1 << (low + step), *sides))
    return tuple(bars)


def size_chart(before: FileSizes, after: FileSizes, name: str) -> Markup:
    """Draw files by size: before above the axis, after below it. Empty where there is nothing to draw."""
    bars = size_bars(before, after)
    if not bars:
        return Markup("")
    tallest = max(max(bar.before, bar.after) for bar in bars)
    room = (_WIDTH - _LEFT) / max(len(bars), _LEAST_BARS)
    middle, height = _BAR_AREA, 2 * _BAR_AREA + _LABELS
    shapes = [_text(0, middle - 6, "before", "start"), _text(0, middle + _LABELS + 12, "after", "start")]
    for place, bar in enumerate(bars):
        left, width = _LEFT + place * room + 1, room - 2
        for number, css, down in ((bar.before, "before", False), (bar.after, "after", True)):
            tall = max(1.5, number / tallest * (_BAR_AREA - 14)) if number else 0.0
            if tall:
                top = middle + _LABELS if down else middle - tall
                shapes.append(_rect(left, top, width, tall, css))
                count_at = top + tall + 9 if down else top - 3
                shapes.append(_text(left + width / 2, count_at, f"{number:,}", "middle"))
        if len(bars) <= _LEAST_BARS or place % 2 == 0:
            shapes.append(_text(left, middle + _LABELS - 4, _short(bar.low_bytes), "start"))
    described = f"before: {_in_words(bars, 'before')}; after: {_in_words(bars, 'after')}"
    return _svg(_WIDTH, height, f"files of {name} by size", described, shapes)


def box_chart(boxes: Sequence[FileBox], num_ranks: tuple[int, int], columns: tuple[str, str], when: str) -> Markup:
    """Draw files as boxes over two columns: the less they overlap, the fewer files a query has to read.

    Args:
        boxes: Of each file, from where to where its rows lie.
        num_ranks: How many steps each column has.
        columns: Their names, the first one across.
        when: ``before`` or ``after``.
    """
    side, left = _BOX_SIDE, 14
    across, up = (side / max(1, ranks) for ranks in num_ranks)
    corners = "".join(
        f"M{left + low_x * across:.0f} {side - (high_y + 1) * up:.0f}h{(high_x - low_x + 1) * across:.0f}"
        f"v{(high_y - low_y + 1) * up:.0f}h-{(high_x - low_x + 1) * across:.0f}z"
        for low_x, high_x, low_y, high_y in boxes
    )
    first, second = (f"{printable(column)[:_LONGEST_AXIS]} \u2192" for column in columns)
    upright = Markup('<text transform="translate(9 {}) rotate(-90)" text-anchor="start">{}</text>')
    shapes = [
        _rect(left, 0, side, side, "frame"),
        Markup('<path class="box {}" d="{}"/>').format(when, corners),
        _text(left, side + 12, first, "start"),
        _text(left + side, side + 12, when, "end"),
        upright.format(side, second),
    ]
    wide = sum((high_x - low_x + 1) / num_ranks[0] for low_x, high_x, _, _ in boxes) / max(1, len(boxes))
    high = sum((high_y - low_y + 1) / num_ranks[1] for _, _, low_y, high_y in boxes) / max(1, len(boxes))
    described = (
        f"{count_of(len(boxes), 'file')}; on average a file covers {wide:.0%} of the values of {printable(columns[0])} "
        f"and {high:.0%} of those of {printable(columns[1])}"
    )
    return _svg(side + left + 2, side + 16, f"where the rows of each file lie, {when}", described, shapes)


_LINE_WIDTH = 160


def line_chart(points: Sequence[tuple[float, float]], name: str, described: str) -> Markup:
    """Draw a figure over time as a small line from zero; empty with fewer than two points.

    Args:
        points: (time, figure), ascending by time.
        name: What the figure is of.
        described: What a person who cannot see the line should read.
    """
    if len(points) < 2:
        return Markup("")
    first, last = points[0][0], points[-1][0]
    highest = max(figure for _, figure in points) or 1.0
    span = (last - first) or 1.0
    places = [((at - first) / span * (_LINE_WIDTH - 6) + 3, 29 - figure / highest * 26) for at, figure in points]
    line = " ".join(f"{x:.0f},{y:.0f}" for x, y in places)
    x, y = places[-1]
    shapes = [
        Markup('<polyline class="line" points="{}"/>').format(line),
        Markup('<circle class="dot" cx="{}" cy="{}" r="2.5"/>').format(f"{x:.0f}", f"{y:.0f}"),
    ]
    return _svg(_LINE_WIDTH, 32, name, described, shapes)


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a bar chart: what stands below it, what it says in words, its figure, and whether it went wrong."""

    label: str
    words: str
    figure: float
    bad: bool = False


def bar_chart(columns: Sequence[Column], name: str, *, unit_text: str) -> Markup:
    """Draw one column for each run, in order of time; empty without columns. One that went wrong carries a mark.

    Args:
        columns: The runs.
        name: What the figure is of.
        unit_text: The tallest column in words.
    """
    if not columns:
        return Markup("")
    room = 720 / max(len(columns), 8)
    tallest = max(column.figure for column in columns) or 1.0
    shapes = []
    labelled = 0.0
    for place, column in enumerate(columns):
        tall = max(1.5, column.figure / tallest * 84) if column.figure else 1.5
        inner = Markup("<title>{}</title>").format(column.words)
        css = "bad" if column.bad else "after"
        shapes.append(_rect(place * room + 1, 98 - tall, min(room - 2, 64), tall, css, inner))
        if column.bad:
            shapes.append(_text(place * room + 1 + min(room - 2, 64) / 2, 94 - tall, "!", "middle"))
        ends = place * room + 5.5 * len(column.label)
        if place * room >= labelled and ends <= 720:
            shapes.append(_text(place * room + 1, 110, column.label, "start"))
            labelled = ends + 8
    described = "; ".join(column.words for column in columns[-10:])
    return _svg(round(max(len(columns), 2) * room), 114, f"{name}, at most {unit_text}", described, shapes)


def _short(size_bytes: int) -> str:
    return format_size(size_bytes).replace(" ", "\u202f")


def _in_words(bars: Sequence[Bar], side: str) -> str:
    sizes = ((getattr(bar, side), format_size(bar.low_bytes), format_size(bar.high_bytes)) for bar in bars)
    parts = [f"{count_of(number, 'file')} from {low} to {high}" for number, low, high in sizes if number]
    return ", ".join(parts) or "none"


def _rect(x: float, y: float, width: float, height: float, css: str, inner: Markup | None = None) -> Markup:
    place = map(_short_number, (x, y, width, height))
    shape = Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}"').format(css, *place)
    return shape + (Markup("/>") if inner is None else Markup(">{}</rect>").format(inner))


def _text(x: float, y: float, text: str, anchor: str) -> Markup:
    place = Markup("") if anchor == "start" else Markup(' text-anchor="{}"').format(anchor)
    return Markup('<text x="{}" y="{}"{}>{}</text>').format(_short_number(x), _short_number(y), place, text)


def _short_number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _svg(width: int, height: int, name: str, described: str, shapes: Sequence[Markup]) -> Markup:
    # A screen reader reads a page by the names of its images; a description it gives only when it is asked for one.
    return Markup(
        '<svg class="chart" role="img" aria-label="{}: {}" viewBox="0 0 {} {}" width="{}" height="{}">{}</svg>'
    ).format(escape(printable(name)), escape(described), width, height, width, height, Markup("").join(shapes))
