"""Run the tests of the transaction engine on each pair of Spark and Delta, and write what came of it into a page.

One environment for each line of Spark: pyspark lies in a folder of its own that comes before the installed one, and
each release of Delta in another, whose JARs the product fetches as it does for users. A row of a pair that is not run
stays as it was.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from maintainer.delta.jvm import LAST_PATCH, TESTED_DELTA
from maintainer.delta.spark.installed_versions import hadoop_version
from maintainer.delta.spark.jars import CONNECTORS

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "features.md"
PLACE = ROOT / ".matrix"
BEGIN, END = "<!-- versions -->", "<!-- /versions -->"

SEED = "MAINTAINER_TEST_SEED"
ALL_CELLS = "not long or nightly or sampled"
SUITES = {
    "contract": (["tests/contract"], "not long"),
    "hook": (["tests/integration/rewrite/test_auto_compact.py"], ALL_CELLS),
    "first policy, demo": (
        [
            "tests/integration/fleet/test_first_policy.py",
            "tests/integration/fleet/test_demo_lake.py::test_the_whole_walk",
        ],
        "long",
    ),
    "parity, forged": (
        ["tests/integration/parity", "tests/integration/verification/test_forged_rewrites.py"],
        "not long or not sampled",
    ),
    "on S3": ([f"tests/integration/object_stores/test_{what}_on_s3.py" for what in ("tables", "vacuum")], ""),
    "the rest": (
        ["tests/integration", "tests/fault"],
        "spark and (every_run or not (long or nightly or sampled))",
    ),
}
"""Tests by column, and their marks. Of what is sampled some cells are drawn, other ones for each pair.

The rest is what `make test` runs on Spark.
"""

OF_THE_NEWEST = ("on S3", "the rest")
"""What is run with the newest Delta of each Spark alone, unless it is asked for."""

COLUMNS = ("Spark", "Delta", *SUITES, "run on", "weaker there")
LIMIT_SECONDS = 7200


def main(arguments: list[str]) -> int:
    """Run the named pairs, or all, and write the table."""
    every = [f"{line}/{delta}" for line, versions in TESTED_DELTA.items() for delta in versions]
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("pairs", nargs="*", metavar="PAIR", help="such as 4.0/4.0.1; all without one")
    parser.add_argument("--suite", action="append", choices=SUITES, help="this one alone; more than once")
    options = parser.parse_args(arguments)
    if unknown := set(options.pairs) - set(every):
        parser.error(f"not a pair that is tested: {', '.join(sorted(unknown))}; allowed: {', '.join(every)}")
    failed = 0
    for line, delta in (text.split("/") for text in options.pairs or every):
        today = datetime.now(UTC).date().isoformat()
        env = {**os.environ, "PYTHONPATH": _environment(line, delta), SEED: f"{today} {line}/{delta}"}
        spark, home = _installed(env)
        weaker = _weaker(home)
        names = options.suite or _suites(line, delta, weaker)
        stores = ["--ignore=tests/integration/object_stores"] if weaker else []
        came = {name: _run(env, [*SUITES[name][0], *stores], SUITES[name][1]) for name in names}
        failed += sum(not text.endswith("passed") for text in came.values())
        _write(line, delta, {"Spark": spark, **came, "run on": today, "weaker there": weaker})
        print(f"Spark {spark} with Delta {delta}: {came}", flush=True)
    return 1 if failed else 0


def _suites(line: str, delta: str, weaker: str) -> list[str]:
    """What is run with a pair where nobody asks for less."""
    is_newest = delta == TESTED_DELTA[line][-1]
    return [name for name in SUITES if name not in OF_THE_NEWEST or (is_newest and not (name == "on S3" and weaker))]


def _environment(line: str, delta: str) -> str:
    """Install a line of Spark and a release of Delta beside the environment, and return the ``PYTHONPATH`` of both."""
    last = LAST_PATCH.get((line, delta))
    spark = line if last is None else f"{line}.{last}"
    wanted = f"pyspark=={line}.*" if last is None else f"pyspark=={spark}"
    folders = {PLACE / f"spark-{spark}": wanted, PLACE / f"delta-{delta}": f"delta-spark=={delta}"}
    for folder, package in folders.items():
        if not folder.is_dir():
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), package]
            subprocess.run(command, check=True)
    return os.pathsep.join(map(str, (ROOT, *folders)))


def _installed(env: Mapping[str, str]) -> tuple[str, Path]:
    """The version of Spark that such an environment has, and its folder."""
    text = "import pyspark; print(pyspark.__version__, pyspark.__path__[0])"
    said = subprocess.run([sys.executable, "-c", text], env=env, check=True, capture_output=True, text=True)
    version, _, home = said.stdout.strip().partition(" ")
    return version, Path(home)


def _run(env: Mapping[str, str], paths: list[str], marks: str) -> str:
    """Run tests, and return their number, or which failed."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", marks, *paths]
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"not done in {LIMIT_SECONDS} s"
    failures = re.findall(r"^(?:FAILED|ERROR) \S+::(\S+)", done.stdout, flags=re.MULTILINE)
    passed = re.search(r"(\d+) passed", done.stdout)
    number = passed[1] if passed else "0"
    return f"{number} passed" if done.returncode == 0 else f"{number} passed, failed: {', '.join(failures) or 'all'}"


def _weaker(home: Path) -> str:
    hadoop = hadoop_version(home)
    if ("s3", hadoop) not in CONNECTORS:
        return f"no pinned connector for its Hadoop {hadoop}: stores need `spark.packages` (E671)"
    if hadoop == "3.4.1":
        return (
            f"S3: its Hadoop {hadoop} writes nothing if absent: `singleWriter` or a log store of DynamoDB (A432); "
            "checkpoints: Kernel needs Parquet 1.16, so Delta writes each, with Spark jobs"
        )
    return ""


def _write(line: str, delta: str, cells: dict[str, str]) -> None:
    """Put one row into the page's table; what this run did not ask stays as it stood."""
    page = PAGE.read_text(encoding="utf-8")
    head, table, tail = re.split(f"{BEGIN}\n|{END}", page)
    rows = {}
    for text in table.splitlines()[2:]:
        row = dict(zip(COLUMNS, (cell.strip() for cell in text.strip("|").split("|")), strict=True))
        rows[".".join(row["Spark"].split(".")[:2]), row["Delta"]] = row
    rows[line, delta] = {**dict.fromkeys(COLUMNS, ""), **rows.get((line, delta), {}), "Delta": delta, **cells}
    lines = [
        list(COLUMNS),
        ["---"] * len(COLUMNS),
        *([row[name] for name in COLUMNS] for _, row in sorted(rows.items())),
    ]
    written = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
    PAGE.write_text(f"{head}{BEGIN}\n{written}{END}{tail}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
