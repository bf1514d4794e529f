"""`maintainer plan` as a whole, as a process: seconds and memory over few and many tables, and over one large one.

The small tables are written by delta-rs, each fourth with three files of three commits and the others with one; the
large one is a log by hand without data files. Memory is the most that the process and its JVM held (``VmHWM``), read
each half second, and is on Linux only. The heap of a JVM grows with what it is given before it is cleaned, so it is
bounded (``--heap``): memory that grew with the tables would end the run.

    python benchmarks/plan_fleet.py --out results.md
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.facts import peak_bytes, write_log
from benchmarks.optimize_loop import machine, progress, versions

FEW = 100
LARGE = (20, 5000)
"""Commits of the large table, and files of each."""
LIMIT_SECONDS = 600


@dataclass(frozen=True, slots=True)
class Planned:
    """What one `maintainer plan` took: seconds, the part between the first and the last table, and peaks of memory."""

    name: str
    seconds: float
    planning_seconds: float
    python_bytes: int
    jvm_bytes: int
    last_line: str


def build(project: Path, names: list[str]) -> None:
    """A project of small tables."""
    import deltalake
    import pyarrow as pa

    (project / "policies").mkdir(parents=True)
    (project / "maintainer.yml").write_text("version: 1\n", encoding="utf-8")
    for number, name in enumerate(names):
        for commit in range(1 if number % 4 else 3):
            rows = pa.table({"id": list(range(10 * commit, 10 * commit + 10)), "k": [name] * 10})
            deltalake.write_deltalake(str(project / "lake" / name), rows, mode="append")
        text = f"version: 1\ntable: lake/{name}\nvacuum: {{retention: 7d}}\n"
        (project / "policies" / f"{name}.yml").write_text(text, encoding="utf-8")


def build_large(project: Path, seed: int) -> None:
    """A project of one table of 100,000 files."""
    (project / "policies").mkdir(parents=True)
    (project / "maintainer.yml").write_text("version: 1\n", encoding="utf-8")
    (project / "policies" / "large.yml").write_text("version: 1\ntable: lake/large\n", encoding="utf-8")
    write_log(project / "lake" / "large", *LARGE, random.Random(seed))


def planned(name: str, project: Path, selection: tuple[str, ...], heap: str) -> Planned:
    """Run the command and watch its memory and that of its JVM."""
    command = [sys.executable, "-m", "maintainer", "plan", "--conf", f"spark.driver.memory={heap}"]
    command += [part for selector in selection for part in ("-s", selector)]
    started = time.monotonic()
    peaks = {"python": 0, "java": 0}
    first = last = 0.0
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as out,
        (project / "progress.txt").open("w", encoding="utf-8") as err,
        subprocess.Popen(command, cwd=project, stdout=out, stderr=err) as process,
    ):
        size = 0
        while process.poll() is None and time.monotonic() - started < LIMIT_SECONDS:
            peaks["python"] = max(peaks["python"], peak_bytes(process.pid))
            for pid in _below(process.pid):
                peaks["java"] = max(peaks["java"], peak_bytes(pid))
            grown = (project / "progress.txt").stat().st_size
            if grown > size:
                first = first or time.monotonic()
                last, size = time.monotonic(), grown
            time.sleep(0.5)
        process.kill()
        out.seek(0)
        lines = [line for line in out.read().splitlines() if line.startswith("Plan:")]
    seconds = time.monotonic() - started
    progress(f"{name}: {seconds:.1f} s, {peaks}")
    return Planned(name, seconds, last - first, peaks["python"], peaks["java"], (lines or ["no plan"])[-1])


def _below(pid: int) -> Iterator[int]:
    """The processes that a process started, and theirs."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return
    for child in map(int, children):
        yield child
        yield from _below(child)


def render(rows: list[Planned], heap: str, seed: int) -> str:
    """The report as Markdown."""
    lines = [
        "# `maintainer plan` as a whole",
        "",
        f"{datetime.now(UTC):%Y-%m-%d}, {machine()}. Seed {seed}. Heap of the JVM at most {heap}.",
        versions() + ".",
        "",
        "| | the command | from the first table to the last | Python at most | its JVM at most | it says |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row.name} | {row.seconds:.1f} s | {row.planning_seconds:.1f} s | {row.python_bytes >> 20} MiB "
        f"| {row.jvm_bytes >> 20} MiB | {row.last_line} |"
        for row in rows
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Build, plan, print the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--dir", type=Path, help="build here and keep it; what is there is used again")
    parser.add_argument("--out", type=Path, help="write the report here as well")
    parser.add_argument("--tables", type=int, default=2000)
    parser.add_argument("--heap", default="1g")
    parser.add_argument("--build-only", action="store_true")
    parser.add_argument("--seed", type=int, default=20261121)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="maintainer-bench-") as folder:
        work = options.dir.resolve() if options.dir else Path(folder)
        many, large = work / f"{options.tables}", work / "large"
        names = [f"t{number:05d}" for number in range(options.tables)]
        if not many.exists():
            build(many, names)
        if not large.exists():
            build_large(large, options.seed)
        if options.build_only:
            return
        few = tuple(f"lake/{name}" for name in names[:FEW])
        rows = [
            planned(f"{FEW} tables", many, few, options.heap),
            planned(f"{options.tables:,} tables", many, (), options.heap),
            planned(f"one table of {LARGE[0] * LARGE[1]:,} files", large, (), options.heap),
        ]
    report = render(rows, options.heap, options.seed)
    print(report)
    if options.out:
        options.out.write_text(report, encoding="utf-8")


if __name__ == "__main__":
    main()
