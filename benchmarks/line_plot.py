"""Line charts as SVG: a line for each way, marked nights below, a dashed line for a target, and all of it as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

COLOURS = {
    "incremental": "#087f5b",
    "full": "#343a40",
    "liquid": "#d9480f",
    "liquid-low": "#1864ab",
    "compaction": "#862e9c",
    "leveled": "#868e96",
}
_DASHES = {"liquid": "6 3", "liquid-low": "2 3", "leveled": "8 3 2 3", "compaction": "4 4"}
_WIDE, _TALL, _LEFT, _TOP, _BOTTOM, _LEGEND = 640, 300, 50, 34, 256, 108


def line_plot(
    title: str,
    lines: Mapping[str, Sequence[tuple[int, float]]],
    *,
    nights: int,
    top: float,
    target: float | None = None,
) -> str:
    """Draw a chart.

    Args:
        title: What the vertical axis is, for the eye and for readers of the text.
        lines: For each way its points: night and value.
        nights: Length of the horizontal axis.
        top: Largest value that is drawn; what lies above runs along the upper edge.
        target: A value to compare with.
    """
    right = _WIDE - _LEGEND

    def place(night: float, value: float) -> str:
        x = _LEFT + (right - _LEFT) * night / nights
        return f"{x:.1f},{_BOTTOM - (_BOTTOM - _TOP) * min(value, top) / top:.1f}"

    ends = [f"{way} {points[-1][1]:.2f} after night {points[-1][0]}" for way, points in lines.items() if points]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDE} {_TALL}" role="img" aria-labelledby="t d" '
        'font-family="sans-serif" font-size="12">',
        f'<title id="t">{escape(title)}</title>',
        f'<desc id="d">{escape("; ".join(ends))}</desc>',
        f'<rect width="{_WIDE}" height="{_TALL}" fill="#fff"/>',
        f'<text x="{_LEFT}" y="18" font-size="14">{escape(title)}</text>',
    ]
    for step in range(5):
        value = top * step / 4
        y = place(0, value).split(",")[1]
        parts.append(f'<line x1="{_LEFT}" y1="{y}" x2="{right}" y2="{y}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{float(y) + 4:.1f}" text-anchor="end">{value:.2f}</text>')
        night = round(nights * step / 4)
        parts.append(
            f'<text x="{place(night, 0).split(",")[0]}" y="{_BOTTOM + 16}" text-anchor="middle">{night}</text>'
        )
    if target is not None:
        y = place(0, target).split(",")[1]
        parts.append(f'<line x1="{_LEFT}" y1="{y}" x2="{right}" y2="{y}" stroke="#c92a2a" stroke-dasharray="3 5"/>')
        parts.append(f'<text x="{right + 8}" y="{float(y) + 4:.1f}" fill="#c92a2a">target {target:g}</text>')
    for number, (way, points) in enumerate(lines.items()):
        drawn = " ".join(place(night, value) for night, value in points)
        colour, row = COLOURS.get(way, "#000"), _TOP + 10 + 18 * number
        dashes = f' stroke-dasharray="{_DASHES[way]}"' if way in _DASHES else ""
        parts.append(f'<polyline points="{drawn}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>')
        parts.append(f'<line x1="{right + 8}" y1="{row - 4}" x2="{right + 28}" y2="{row - 4}" stroke="{colour}" '
                     f'stroke-width="2"{dashes}/>')  # fmt: skip
        parts.append(f'<text x="{right + 32}" y="{row}" fill="{colour}">{way}</text>')
    parts.append(f'<text x="{(_LEFT + right) / 2}" y="{_TALL - 10}" text-anchor="middle">nights</text></svg>')
    return "\n".join(parts) + "\n"
