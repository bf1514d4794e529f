"""Sixty nights of appends on real rows: what each way of keeping a table in Z-order writes, and what queries then read.

TPC-H ``lineitem`` in random order. Every night 1 % is appended and the table is maintained in one of six ways:

* ``incremental``: ours, by the very functions that plan it (``maintainer.planning``), strategies as by default;
* ``full``: OPTIMIZE ZORDER BY on everything, every night;
* ``liquid``: liquid clustering with its default thresholds, under which a table below 100 GiB is one unsealed cube;
* ``liquid-low``: the same with cubes sealed at an eighth of the first table;
* ``compaction``: small files joined, no order;
* ``leveled``: ours without ``pieces``.

Files are boxes of real smallest and largest values; no Spark runs, so a night takes a second and not an hour. A byte is
a row here: what Parquet makes of sorted rows is left out. Liquid clustering is given a Z-curve where it has Hilbert's.
What is read: rows in the files that none of 200 seeded queries, each a tenth of every column's values, can skip.

    python benchmarks/incremental_zorder.py --scale 0.05 --out benchmarks/results/incremental_zorder.md
"""

from __future__ import annotations

import argparse
import datetime as dt
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.line_plot import line_plot
from examples.demo.lineitem import generator
from maintainer.model.plan.zorder_turn import Strategy, ZOrderSettings
from maintainer.model.table.table_facts import DataFile, FileRange
from maintainer.planning.curve.curve import bit_order, cut_curve
from maintainer.planning.curve.curve_files import max_rows_of, tags_of
from maintainer.planning.curve.revision import Revision, make_column
from maintainer.planning.zorder.turn_choice import choose_turn, sort_candidates

Array = np.ndarray[Any, Any]
COLUMNS = ("l_partkey", "l_shipdate", "l_suppkey")
FILES, QUERIES, SHARE, SEED = 100, 200, 0.1, 20_260_101
TARGETS = {"read": 1.2, "written": 0.125}
WAYS = ("incremental", "full", "liquid", "liquid-low", "compaction", "leveled")


def lineitem(scale: float) -> Array:
    """The three columns as integers (days for dates), in random order."""
    import pyarrow.parquet as pq

    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [generator(), "parquet", "-s", str(scale), "--tables=lineitem", f"--output-dir={folder}"],
            check=True, capture_output=True,
        )  # fmt: skip
        table = pq.read_table(next(Path(folder).rglob("*.parquet")), columns=list(COLUMNS))
    columns = [table[name].to_numpy() for name in COLUMNS]
    numbers = [column.astype("datetime64[D]").astype(np.int64) if column.dtype.kind == "M" or column.dtype == object
               else column.astype(np.int64) for column in columns]  # fmt: skip
    rows = np.column_stack(numbers)
    np.random.default_rng(SEED).shuffle(rows)
    return rows


@dataclass
class Lake:
    """The table's files with their rows, and the curve they are laid along."""

    revision: Revision
    file_rows: int
    rows: dict[str, Array] = field(default_factory=dict)
    files: dict[str, DataFile] = field(default_factory=dict)
    ranges: dict[tuple[str, str], tuple[FileRange, ...]] = field(default_factory=dict)
    cubes: dict[str, int] = field(default_factory=dict)
    written: int = 0
    clock: int = 0

    def addresses(self, rows: Array) -> Array:
        """Z-addresses by the revision's boundaries."""
        keys = [np.array(column.keys, dtype=np.int64) for column in self.revision.columns]
        ranks = [np.searchsorted(boundaries, rows[:, place], side="right") for place, boundaries in enumerate(keys)]
        address = np.zeros(len(rows), dtype=np.int64)
        for column, bit in bit_order(self.revision.bits):
            address = address << 1 | ranks[column] >> bit & 1
        return address

    def add(self, rows: Array, strategy: Strategy | None = None, cube: int = -1) -> None:
        """One file."""
        self.clock += 1
        path = f"f{self.clock:07}"
        pairs = zip(rows.min(0), rows.max(0), strict=True)
        ranges: tuple[FileRange, ...] = tuple((str(low), str(high), False) for low, high in pairs)
        tags = () if strategy is None else tuple(sorted(tags_of(self.revision, strategy, ranges, len(rows))))
        file = DataFile(path, len(rows), self.clock, (), len(rows), tags=tags)
        self.rows[path], self.files[path], self.ranges[file.key], self.cubes[path] = rows, file, ranges, cube

    def take(self, paths: Sequence[str]) -> Array:
        """Remove files and return their rows; they are to be written again."""
        rows = np.vstack([self.rows.pop(path) for path in paths])
        for path in paths:
            file = self.files.pop(path)
            del self.ranges[file.key], self.cubes[path]
        self.written += len(rows)
        return rows

    def along_curve(self, rows: Array, num_files: int, strategy: Strategy) -> None:
        """Write rows as the engine does: cut at the borders of cubes."""
        address = self.addresses(rows)
        order = np.lexsort((rows[:, 0], address))
        rows, address = rows[order], address[order]
        values, counts = np.unique(address, return_counts=True)
        cells = list(zip(values.tolist(), counts.tolist(), strict=True))
        bound = max_rows_of(len(rows), num_files)
        starts = cut_curve(cells, num_bits=self.revision.num_bits, max_rows=bound)
        piece = np.searchsorted(np.array(starts), address, side="right")
        for number in np.unique(piece):
            part = rows[piece == number]
            for share in np.array_split(part, max(1, -(-len(part) // (2 * bound)))):
                self.add(share, strategy)

    def by_count(self, rows: Array, cube: int = -1) -> None:
        """Write rows as OPTIMIZE does: floor(bytes / maxFileSize) files of equal size along the curve."""
        orders = [np.argsort(np.argsort(rows[:, place], kind="stable")) for place in range(rows.shape[1])]
        ranks = [order * 1000 // len(rows) for order in orders]
        address = np.zeros(len(rows), dtype=np.int64)
        for bit in range(9, -1, -1):
            for rank in ranks:
                address = address << 1 | rank >> bit & 1
        for part in np.array_split(rows[np.argsort(address, kind="stable")], max(1, len(rows) // self.file_rows)):
            self.add(part, cube=cube)

    def read(self, corners: Array, width: Array) -> tuple[float, float]:
        """Rows and files that an average query cannot skip."""
        low = np.array([points.min(0) for points in self.rows.values()])
        high = np.array([points.max(0) for points in self.rows.values()])
        size = np.array([len(points) for points in self.rows.values()])
        hits = [((high >= corner) & (low <= corner + width)).all(1) for corner in corners]
        return float(np.mean([size[hit].sum() for hit in hits])), float(np.mean([hit.sum() for hit in hits]))


def turns(lake: Lake, strategies: tuple[Strategy, ...]) -> None:
    """Our loop."""
    settings = ZOrderSettings(
        revision=lake.revision.tag, optimized=lake.revision.tag, strategies=strategies, batch_bytes=1 << 60,
        bytes_per_iteration=1 << 60, max_file_size_bytes=lake.file_rows, max_deleted_rows_ratio=0.05,
    )  # fmt: skip
    while True:
        candidates = sort_candidates(lake.files.values(), settings, lake.revision, lake.revision, lake.ranges)
        chosen = choose_turn(settings, candidates, lake.revision, lake.revision)
        if chosen is None:
            return
        for bin_, num_files in zip(chosen.batch.bins, chosen.planned_turn.num_files, strict=True):
            rows = lake.take([file.path for file in bin_.files])
            lake.along_curve(rows, num_files, chosen.planned_turn.strategy)


def liquid(lake: Lake, sealed_rows: int, night: int) -> None:
    """Cubes below the threshold are rewritten together with what no cube has; larger ones are sealed."""
    sizes: dict[int, int] = {}
    for path, cube in lake.cubes.items():
        sizes[cube] = sizes.get(cube, 0) + lake.files[path].size_bytes
    open_ = [path for path, cube in lake.cubes.items() if cube < 0 or sizes[cube] < sealed_rows]
    if any(lake.cubes[path] < 0 for path in open_):
        lake.by_count(lake.take(open_), cube=night)


def compact(lake: Lake) -> None:
    """Small files joined, next-fit from the smallest on."""
    small = [file for file in lake.files.values() if 4 * file.size_bytes < 3 * lake.file_rows]
    small.sort(key=lambda file: file.size_bytes)
    bins: list[list[DataFile]] = []
    for file in small:
        if bins and sum(bin_.size_bytes for bin_ in bins[-1]) + file.size_bytes <= lake.file_rows:
            bins[-1].append(file)
        else:
            bins.append([file])
    for group in bins:
        if len(group) > 1:
            lake.add(lake.take([file.path for file in group]))


def maintain(way: str, lake: Lake, first: int, night: int) -> None:
    """One night's work."""
    match way:
        case "incremental":
            turns(lake, (Strategy.UNINDEXED, Strategy.LEVELED, Strategy.PIECES))
        case "leveled":
            turns(lake, (Strategy.UNINDEXED, Strategy.LEVELED))
        case "full":
            lake.by_count(lake.take(list(lake.files)))
        case "liquid":
            liquid(lake, 1 << 60, night)
        case "liquid-low":
            liquid(lake, first // 8, night)
        case _:
            compact(lake)


@dataclass
class Course:
    """One way's nights: rows written so far, and rows and files read, each by those of ``full``."""

    written: list[float] = field(default_factory=list)
    read: list[float] = field(default_factory=list)
    files_read: list[float] = field(default_factory=list)
    num_files: int = 0
    seconds: float = 0.0


def run(rows: Array, nights: int, every: int) -> dict[str, Course]:
    """All ways, night by night beside one another."""
    first = int(len(rows) / (1 + nights / 100))
    chance = np.random.default_rng(SEED)
    sample = rows[chance.choice(first, min(first, 20_000), replace=False)]
    kinds = tuple(f"c{place}" for place in range(rows.shape[1]))
    revision = Revision(
        1, tuple(make_column(name, "long", [str(v) for v in sample[:, place]]) for place, name in enumerate(kinds))
    )
    low, high = rows.min(0), rows.max(0)
    width = (high - low) * SHARE
    corners = low + chance.random((QUERIES, rows.shape[1])) * (high - low - width)
    lakes = {way: Lake(revision, first // FILES) for way in WAYS}
    for way, lake in lakes.items():
        if way in ("incremental", "leveled"):
            lake.along_curve(rows[:first], FILES, Strategy.UNINDEXED)
        else:
            lake.by_count(rows[:first], cube=0)
    courses = {way: Course() for way in WAYS}
    for night in range(1, nights + 1):
        start = first + (night - 1) * (first // 100)
        for way, lake in lakes.items():
            lake.add(rows[start : start + first // 100])
            began = time.monotonic()
            maintain(way, lake, first, night)
            courses[way].seconds += time.monotonic() - began
        figures = {way: lake.read(corners, width) for way, lake in lakes.items()} if night % every == 0 else {}
        for way, course in courses.items():
            course.written.append(lakes[way].written / lakes["full"].written)
            course.num_files = len(lakes[way].files)
            if figures:
                course.read.append(figures[way][0] / figures["full"][0])
                course.files_read.append(figures[way][1] / figures["full"][1])
        print(f"{rows.shape[1]} columns, night {night}", flush=True)
    return courses


def table(courses: dict[str, Course]) -> list[str]:
    """The figures as Markdown."""
    lines = [
        "| way | written | read, average | read, worst night | files read | files at the end |",
        "|---|---|---|---|---|---|",
    ]
    for way, course in courses.items():
        lines.append(
            f"| {way} | {course.written[-1]:.3f} | {np.mean(course.read):.2f} | {max(course.read):.2f} | "
            f"{np.mean(course.files_read):.2f} | {course.num_files} |"
        )
    return lines


def _points(values: Sequence[float], nights: int) -> list[tuple[int, float]]:
    return [(round((place + 1) * nights / len(values)), value) for place, value in enumerate(values)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=0.05)
    parser.add_argument("--nights", type=int, default=60)
    parser.add_argument("--every", type=int, default=3, help="measure what is read every so many nights")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--plots", type=Path, help="folder for the charts")
    options = parser.parse_args()
    rows = lineitem(options.scale)
    lines = [
        "# Incremental Z-order beside other ways, without an engine",
        "",
        f"{dt.datetime.now(tz=dt.UTC).date()}, {platform.machine()}, Python {platform.python_version()}, "
        f"numpy {np.__version__}, seed {SEED}: `lineitem` at scale {options.scale}, {len(rows):,} rows, "
        f"{options.nights} nights. Figures are ratios to a full Z-order every night.",
        "",
    ]
    for number in (2, 3):
        courses = run(rows[:, :number], options.nights, options.every)
        lines += [f"## {', '.join(COLUMNS[:number])}", "", *table(courses), ""]
        if options.plots:
            options.plots.mkdir(parents=True, exist_ok=True)
            charts: list[tuple[str, str, Callable[[Course], list[float]], float]] = [
                ("read", "rows that queries read, by those after a full Z-order", lambda course: course.read, 4.0),
                (
                    "written",
                    "rows written so far, by those of a full Z-order each night",
                    lambda course: course.written,
                    1.0,
                ),
            ]
            for name, title, value, top in charts:
                lines_of = {way: _points(value(course), options.nights) for way, course in courses.items()}
                text = line_plot(
                    f"{title} ({number} columns)", lines_of, nights=options.nights, top=top, target=TARGETS[name]
                )
                (options.plots / f"zorder-{name}-{number}.svg").write_text(text, encoding="utf-8")
    text = "\n".join(lines)
    print(text)
    if options.out:
        options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
