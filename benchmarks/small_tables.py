"""Many small tables: `maintainer apply` with all its proofs, the same by Spark alone, and delta-rs.

20 tables by default, each of 39 files of 5,000 rows and 6 columns, written by delta-rs with a commit a file. Each arm
is one whole process on a copy of its own, started cold: seconds, CPU seconds and peak memory of all its processes
(Python and JVM). With ``--files 40`` the commit of each table finds a checkpoint due.

    python benchmarks/small_tables.py --files 39 --files 40 --out benchmarks/results/small_tables.md
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.optimize_loop import machine, progress, versions

ROWS_A_FILE = 5_000
THREADS = 2
ARM_TIMEOUT_SECONDS = 1800
REST_SECONDS = 15
"""Between the writers and the first arm: a table that is maintained at night is not being written to."""
POLL_SECONDS = 0.1
POLICY = "version: 1\ntable: lake/{name}\nvacuum: {{retention: 7d}}\n"
ARMS = {
    "delta-rs": f"delta-rs, compact and vacuum, {THREADS} threads",
    "lanes": f"`maintainer apply --yes -j {THREADS}`, with proofs, checks and ledger",
    "again": "the same again, with nothing to do",
    "spark": f"`maintainer apply --yes -j {THREADS} --lane spark`",
}
"""In the order in which they run; ``again`` works on what ``lanes`` left."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What one arm took, as a whole process and for a table in the warm middle of it."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    warm_seconds: float


def build(lake: Path, tables: int, files: int, seed: int, rows_a_file: int = ROWS_A_FILE) -> None:
    """Write the tables with delta-rs, a commit a file."""
    import deltalake
    import numpy as np
    import pyarrow as pa

    chance = np.random.default_rng(seed)
    for table in range(tables):
        for number in range(files):
            ids = np.arange(number * rows_a_file, (number + 1) * rows_a_file)
            digits = pa.array(chance.integers(0, 1 << 62, rows_a_file)).cast(pa.string())
            rows = pa.table(
                {
                    "id": ids,
                    "customer": chance.integers(0, 1_000, rows_a_file),
                    "price": chance.random(rows_a_file),
                    "sold_at": pa.array(1_700_000_000_000_000 + ids * 1_000_000, pa.timestamp("us", tz="UTC")),
                    "city": pa.array([f"city {city}" for city in chance.integers(0, 50, rows_a_file)]),
                    "note": digits,
                }
            )
            deltalake.write_deltalake(str(lake / name_of(table)), rows, mode="append")


def name_of(table: int) -> str:
    """Return the name of a table by its number."""
    return f"table_{table:03d}"


def compact_by_delta_rs(lake: Path) -> None:
    """Compact and vacuum each table in threads; print the seconds of each. Runs in a process of its own."""
    from concurrent.futures import ThreadPoolExecutor

    import deltalake

    def compact(path: Path) -> float:
        started = time.monotonic()
        table = deltalake.DeltaTable(str(path))
        table.optimize.compact(target_size=256 << 20)
        table.vacuum(retention_hours=168, dry_run=False)
        return time.monotonic() - started

    with ThreadPoolExecutor(THREADS) as pool:
        print(json.dumps(list(pool.map(compact, sorted(lake.iterdir())))))


def run_arm(work: Path, arm: str, tables: int) -> Measured:
    """Run one arm as a process of its own on its copy of the tables."""
    project = work / ("lanes" if arm == "again" else arm)
    if arm != "again":
        shutil.copytree(work / "base", project / "lake")
        (project / "policies").mkdir()
        (project / "maintainer.yml").write_text("version: 1\n", encoding="utf-8")
        for table in range(tables):
            name = name_of(table)
            (project / "policies" / f"{name}.yml").write_text(POLICY.format(name=name), encoding="utf-8")
    lane = ["--lane", "spark"] if arm == "spark" else []
    apply = ["-m", "maintainer", "--project", str(project), "apply", "--yes", "-j", str(THREADS), *lane]
    call = [str(Path(__file__).resolve()), "--delta-rs", str(project / "lake")] if arm == "delta-rs" else apply
    os.sync()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.monotonic()
    process = subprocess.Popen([sys.executable, *call], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    with watched(process.pid) as family:
        output, _ = process.communicate(timeout=ARM_TIMEOUT_SECONDS)
    seconds = time.monotonic() - started
    if process.returncode != 0:
        raise SystemExit(f"{arm} ended with exit code {process.returncode}:\n{output}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    progress(f"{arm}: {seconds:.1f} s, {cpu:.1f} s of CPU")
    each = json.loads(output) if arm == "delta-rs" else seconds_of_tables(project)
    return Measured(seconds, cpu, family.peak_bytes, median(each[len(each) // 4 : -len(each) // 4] or each))


def seconds_of_tables(project: Path) -> list[float]:
    """Return the seconds of each table in the newest run, in the order in which they began."""
    newest = max((project / ".maintainer" / "runs").glob("*/results.json"), key=lambda path: path.stat().st_mtime)
    tables = json.loads(newest.read_text(encoding="utf-8"))["tables"]
    steps = [[step for step in table["steps"] if step["duration_seconds"]] for table in tables]
    spans = [(own[0]["started_at_ms"], sum(step["duration_seconds"] for step in own)) for own in steps if own]
    return [seconds for _, seconds in sorted(spans)] or [0.0]


@dataclass(slots=True)
class Family:
    """A process and its descendants: their largest resident memory together, and that of one process by program."""

    peak_bytes: int = 0
    programs: dict[str, int] = field(default_factory=dict)


@contextmanager
def watched(pid: int) -> Iterator[Family]:
    """Watch a process and its descendants for the time of a block."""
    family, end = Family(), threading.Event()

    def watch() -> None:
        while not end.wait(POLL_SECONDS):
            seen = list(processes_of(pid))
            family.peak_bytes = max(family.peak_bytes, sum(resident_bytes for _, resident_bytes in seen))
            for program, resident_bytes in seen:
                family.programs[program] = max(family.programs.get(program, 0), resident_bytes)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield family
    finally:
        end.set()
        thread.join()


def processes_of(pid: int) -> Iterator[tuple[str, int]]:
    """Yield the program and the resident bytes of a process and its descendants; none where there is no ``/proc``."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
        program = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        children = [child for thread in threads for child in (thread / "children").read_text(encoding="ascii").split()]
    except (OSError, IndexError, ValueError):
        return
    yield program, pages * resource.getpagesize()
    for child in children:
        yield from processes_of(int(child))


def render(tables: int, files: int, measured: dict[str, Measured]) -> list[str]:
    """Return the report of one number of files as lines of Markdown."""
    base = measured["delta-rs"]
    due = "every commit finds a checkpoint due" if files % 10 == 0 else "no commit finds a checkpoint due"
    lines = [
        f"## {tables} tables of {files} files of {ROWS_A_FILE:,} rows: {due}",
        "",
        "| whole process | seconds | times delta-rs | CPU | times delta-rs | a table, warm | peak memory |",
        "|" + "---|" * 7,
    ]
    for arm, arm_measured in measured.items():
        lines.append(
            f"| {ARMS[arm]} | {arm_measured.seconds:.1f} s | {arm_measured.seconds / base.seconds:.1f}x "
            f"| {arm_measured.cpu_seconds:.1f} s | {arm_measured.cpu_seconds / base.cpu_seconds:.1f}x "
            f"| {arm_measured.warm_seconds:.2f} s | {arm_measured.peak_bytes / 2**20:,.0f} MiB |"
        )
    return [*lines, ""]


def main() -> None:
    """Build the tables, run each arm and print the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--files", type=int, action="append", help="files a table; may be given more than once")
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--arms", default=",".join(ARMS), help="some of " + ", ".join(ARMS))
    parser.add_argument("--out", type=Path, help="write the report here as well")
    parser.add_argument("--seed", type=int, default=20261122)
    parser.add_argument("--delta-rs", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.delta_rs:
        compact_by_delta_rs(options.delta_rs)
        return
    # Java's class archive, which an image of a machine has: no run writes it.
    subprocess.run([sys.executable, "-m", "maintainer", "doctor", "--warm"], cwd=ROOT, check=True, capture_output=True)
    report = ["# Small tables", "", f"{datetime.now(UTC):%Y-%m-%d}, {machine()}. Seed {options.seed}."]
    report += [versions() + ".", ""]
    for files in options.files or [39, 40]:
        with tempfile.TemporaryDirectory(prefix="maintainer-bench-") as folder:
            build(Path(folder) / "base", options.tables, files, options.seed)
            time.sleep(REST_SECONDS)
            chosen = [arm for arm in ARMS if arm in ("delta-rs", *options.arms.split(","))]
            measured = {arm: run_arm(Path(folder), arm, options.tables) for arm in chosen}
        report += render(options.tables, files, measured)
    print("\n".join(report))
    if options.out:
        options.out.write_text("\n".join(report), encoding="utf-8")


if __name__ == "__main__":
    main()
