"""What ``zorder_nights.py`` measured, as ratios to a full Z-order of the same nights: tables and charts."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from statistics import fmean

from benchmarks.line_plot import line_plot
from benchmarks.optimize_loop import machine, versions


@dataclass(frozen=True, slots=True)
class Night:
    """One night of one way: what was written, how long it took, and how the table lay afterwards. Sizes in bytes.

    ``bytes_read`` and ``files_read`` are what an average query cannot skip. ``num_files`` and ``size_bytes`` are of
    the whole table.
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


@dataclass(frozen=True, slots=True)
class Ratios:
    """A way beside the full Z-order over the nights that both have; the first table's own are left out."""

    nights: tuple[int, ...]
    written: tuple[float, ...]
    read: tuple[float, ...]
    files_read: tuple[float, ...]
    files: float
    seconds: float
    turns: float


def nights_of(path: Path) -> list[Night]:
    """Read the nights so far; none where there are none."""
    if not path.exists():
        return []
    return [Night(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def ratios(way: Sequence[Night], full: Sequence[Night]) -> Ratios | None:
    """Compare a way with the full Z-order; None where there is no night of both."""
    pairs = list(zip(way, full, strict=False))[1:]
    if not pairs:
        return None
    ours = list(itertools.accumulate(one.bytes_written for one, _ in pairs))
    theirs = list(itertools.accumulate(one.bytes_written for _, one in pairs))
    return Ratios(
        nights=tuple(one.night for one, _ in pairs),
        written=tuple(a / b for a, b in zip(ours, theirs, strict=True)),
        read=tuple(a.bytes_read / b.bytes_read for a, b in pairs),
        files_read=tuple(a.files_read / b.files_read for a, b in pairs),
        files=pairs[-1][0].num_files / pairs[-1][1].num_files,
        seconds=sum(a.seconds for a, _ in pairs) / sum(b.seconds for _, b in pairs),
        turns=fmean(a.turns for a, _ in pairs),
    )


HEAD = (
    "| way | nights | written | read, average | read, worst night | files read | files at the end | seconds | "
    "commits a night |\n|---|---|---|---|---|---|---|---|---|"
)


def report(work: Path, courses: Sequence[tuple[int, str]], columns: Sequence[str], plots: Path | None) -> str:
    """All figures so far as Markdown; with ``plots`` the charts as files, too."""
    end = json.loads((work / "rows" / "done").read_text(encoding="utf-8"))
    lines = [
        "# Nights of appends on Spark: each way beside a full Z-order every night",
        "",
        f"{datetime.now(tz=timezone.utc).date()}. {machine()}. {versions()}. TPC-H lineitem in random order, "
        f"{end['rows']:,} rows in all, 1 % of the first table a night. Figures are ratios to a full Z-order of the "
        "same nights, by `OPTIMIZE ... ZORDER BY` in the same session.",
    ]
    for number in sorted({number for number, _ in courses}):
        found = {way: nights_of(work / f"{way}-{number}.jsonl") for size, way in courses if size == number}
        compared = {way: ratios(nights, found["full"]) for way, nights in found.items()}
        shown = {way: one for way, one in compared.items() if one is not None}
        lines += ["", f"## {', '.join(columns[:number])}", "", HEAD]
        for way, one in shown.items():
            lines.append(
                f"| {way} | {one.nights[-1]} | {one.written[-1]:.3f} | {fmean(one.read):.2f} | {max(one.read):.2f} | "
                f"{fmean(one.files_read):.2f} | {one.files:.2f} | {one.seconds:.2f} | {one.turns:.1f} |"
            )
        if plots is not None and shown:
            draw(plots, number, shown)
    return "\n".join(lines) + "\n"


def draw(folder: Path, number: int, shown: dict[str, Ratios]) -> None:
    """Write the two charts of one number of columns."""
    folder.mkdir(parents=True, exist_ok=True)
    nights = max(one.nights[-1] for one in shown.values())
    read = {way: list(zip(one.nights, one.read, strict=True)) for way, one in shown.items()}
    written = {way: list(zip(one.nights, one.written, strict=True)) for way, one in shown.items()}
    title = f"bytes that queries read, by those after a full Z-order ({number} columns)"
    text = line_plot(title, read, nights=nights, top=4.0, target=1.2)
    (folder / f"zorder-nights-read-{number}.svg").write_text(text, encoding="utf-8")
    title = f"bytes written so far, by those of a full Z-order each night ({number} columns)"
    text = line_plot(title, written, nights=nights, top=1.0, target=0.125)
    (folder / f"zorder-nights-written-{number}.svg").write_text(text, encoding="utf-8")
