"""How long `validate` takes on many files, and how much memory: python benchmarks/validate_files.py [FILES].

Writes FILES policies (10,000) into a temporary folder, three sizes mixed: two lines, a usual file of 15 lines, and
one of 45 that uses every key. Runs the command in a process of its own, three times, and prints the best time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SMALLEST = "version: 1\ntable: {table}\n"
USUAL = """\
# yaml-language-server: $schema=../schemas/policy.schema.json
version: 1
table: {table}
owner: team-{number}
tags: [nightly, tier1]

optimize:
  minFileSize: 64MiB       # files smaller than this are compacted
  maxFileSize: 256MiB
  every: 1d
  where: "order_day >= '2026-01-01'"
vacuum:
  retention: 7d
  every: 7d
autoCompact: true
"""
LARGEST = (Path(__file__).parents[1] / "tests" / "support" / "policies" / "every_key.yml").read_text()

RUN = """
import resource, sys, time
from maintainer.cli.main import run
started = time.perf_counter()
code = run(["--project", sys.argv[1], "validate"])
seconds = time.perf_counter() - started
print(code, round(seconds, 2), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def write_project(root: Path, files: int) -> None:
    (root / "policies").mkdir()
    (root / "maintainer.yml").write_text("version: 1\ndefaults: {limits: {timeout: 2h}}\n")
    for number in range(files):
        table = f"schema_{number % 97}.table_{number}"
        folder = root / "policies" / f"schema_{number % 97}"
        folder.mkdir(exist_ok=True)
        if number % 10 == 0:
            text = LARGEST.replace("table: sales.orders", f"table: {table}")
        else:
            text = (SMALLEST if number % 10 == 1 else USUAL).format(table=table, number=number % 7)
        (folder / f"{number}.yml").write_text(text)


def main() -> None:
    sizes = [int(argument) for argument in sys.argv[1:]] or [1_000, 10_000]
    print(f"Whole process, best of 3; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before")
    print()
    print("| files | seconds | ms a file | MiB |")
    print("|---:|---:|---:|---:|")
    for files in sizes:
        with tempfile.TemporaryDirectory() as folder:
            write_project(Path(folder), files)
            best = None
            for _ in range(3):
                started = time.perf_counter()
                done = subprocess.run(
                    [sys.executable, "-c", RUN, folder], capture_output=True, text=True, check=True, timeout=300
                )
                wall = time.perf_counter() - started
                code, _, rss = done.stdout.splitlines()[-1].split()
                if code != "0":
                    raise SystemExit(f"validate ended in {code}:\n{done.stdout[:2000]}")
                best = min(best or (wall, rss), (wall, rss))
            assert best is not None
            print(f"| {files:,} | {best[0]:.2f} | {best[0] / files * 1000:.2f} | {best[1]} |")


if __name__ == "__main__":
    main()
