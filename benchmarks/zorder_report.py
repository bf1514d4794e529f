"""What ``zorder_nights.py`` measured, as ratios to a full Z-order of the same nights: tables and charts."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean

from benchmarks.line_plot import line_plot
from benchmarks.optimize_loop import machine, versions


@dataclass(frozen=True, slots=True)
class Night:
    """One night of one way: what was written, how long it took, and how the table lay afterwards. Sizes in bytes.

    ``bytes_read`` and ``files_read`` are what an average query cannot skip. ``num_files`` and ``size_bytes`` are of
    the whole table. ``cold`` is the first night after a start of the benchmark: its seconds count for nothing.
    """

    night: int
    version: int
    bytes_written: int
    turns: int
    seconds: float
    bytes_read: float
    files_read: float
    num_files: int
    size_bytes: int
    cold: bool = False


WHOLE, EVERY = ("full", "liquid"), 3
"""Ways that write the whole table whenever they run, and every how many nights they do."""


MOST_DRAWN = 4.0
"""The top of the chart of bytes read."""


@dataclass(frozen=True, slots=True)
class Ratios:
    """A way beside the full Z-order, up to the last night that both have; the first table's own are left out.

    ``written`` has a figure for each night, ``read`` and ``files_read`` for each that the way itself was looked at:
    beside the full Z-order of that night or the last before it.
    ``seconds`` and ``turns`` are of a run.
    """

    written: tuple[tuple[int, float], ...]
    read: tuple[tuple[int, float], ...]
    files_read: tuple[float, ...]
    files: float
    seconds: float
    turns: float


def nights_of(path: Path) -> list[Night]:
    """Read the nights so far; none where there are none."""
    if not path.exists():
        return []
    return [Night(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def ratios(way: Sequence[Night], whole: Sequence[Night]) -> Ratios | None:
    """Compare a way with the full Z-order; None where there is no night of both."""
    ours, theirs = {result.night: result for result in way}, {result.night: result for result in whole}
    both = sorted(night for night in ours.keys() & theirs.keys() if night)
    if not both:
        return None
    last = both[-1]
    written = (_written(ours, last), _written(theirs, last))
    beside = {night: theirs[max(number for number in theirs if number <= night)] for night in ours if 0 < night <= last}
    return Ratios(
        written=tuple((night + 1, a / b) for night, (a, b) in enumerate(zip(*written, strict=True))),
        read=tuple((night, ours[night].bytes_read / full.bytes_read) for night, full in beside.items()),
        files_read=tuple(ours[night].files_read / full.files_read for night, full in beside.items()),
        files=ours[last].num_files / theirs[last].num_files,
        seconds=_seconds(ours, last) / _seconds(theirs, last),
        turns=fmean(result.turns for night, result in ours.items() if 0 < night <= last),
    )


def _written(nights: Mapping[int, Night], last: int) -> list[int]:
    """Bytes written up to each night from the first on; a night without a run as the one before it that has one."""
    points, latest = [], nights[0].bytes_written
    for night in range(1, last + 1):
        latest = nights[night].bytes_written if night in nights else latest
        points.append(latest)
    return list(itertools.accumulate(points))


def _seconds(nights: Mapping[int, Night], last: int) -> float:
    """Mean of a run, without those of a session that had just begun where there are others."""
    counted = [result for night, result in nights.items() if 0 < night <= last]
    return fmean(night.seconds for night in [result for result in counted if not result.cold] or counted)


HEAD = (
    "| way | nights | written | read, average | read, worst night | files read | files at the end | seconds | "
    "commits |\n|---|---|---|---|---|---|---|---|---|"
)


def report(work: Path, courses: Sequence[tuple[int, str]], columns: Sequence[str], plots: Path | None) -> str:
    """All figures so far as Markdown; with ``plots`` the charts as files, too."""
    end = json.loads((work / "rows" / "done").read_text(encoding="utf-8"))
    lines = [
        "# Nights of appends on Spark: each way beside a full Z-order every night",
        "",
        f"{datetime.now(tz=UTC).date()}. {machine()}. {versions()}. TPC-H lineitem in random order, "
        f"{end['rows']:,} rows in all, 1 % of the first table a night. Figures are ratios to a full Z-order of the "
        "same nights, by `OPTIMIZE ... ZORDER BY` in the same session; seconds and commits are of a run.",
    ]
    for number in sorted({number for number, _ in courses}):
        nights_by_way = {way: nights_of(work / f"{way}-{number}.jsonl") for size, way in courses if size == number}
        compared = {way: ratios(nights, nights_by_way["full"]) for way, nights in nights_by_way.items()}
        shown = {way: course for way, course in compared.items() if course is not None}
        lines += ["", f"## {', '.join(columns[:number])}", "", HEAD]
        for way, course in shown.items():
            lines.append(
                f"| {way} | {course.read[-1][0]} | {course.written[-1][1]:.3f} "
                f"| {fmean(v for _, v in course.read):.2f} | "
                f"{max(v for _, v in course.read):.2f} | "
                f"{fmean(course.files_read):.2f} | {course.files:.2f} | {course.seconds:.2f} | {course.turns:.1f} |"
            )
        if plots is not None and shown:
            draw(plots, number, shown)
    return "\n".join(lines) + "\n"


def draw(folder: Path, number: int, shown: dict[str, Ratios]) -> None:
    """Write the two charts of one number of columns."""
    folder.mkdir(parents=True, exist_ok=True)
    nights = max(course.read[-1][0] for course in shown.values())
    # A way that is above the chart all the time would squeeze the others; the table has it.
    read = {way: course.read for way, course in shown.items() if min(value for _, value in course.read) < MOST_DRAWN}
    written = {way: course.written for way, course in shown.items()}
    title = f"bytes that queries read, by those after a full Z-order ({number} columns)"
    highest = max(value for points in read.values() for _, value in points)
    text = line_plot(title, read, nights=nights, top=1.6 if highest < 1.6 else MOST_DRAWN, target=1.2)
    (folder / f"zorder-nights-read-{number}.svg").write_text(text, encoding="utf-8")
    title = f"bytes written so far, by those of a full Z-order each night ({number} columns)"
    text = line_plot(title, written, nights=nights, top=1.0, target=0.125)
    (folder / f"zorder-nights-written-{number}.svg").write_text(text, encoding="utf-8")
