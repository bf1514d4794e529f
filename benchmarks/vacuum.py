"""What a vacuum costs beside Delta's own VACUUM, on copies of the same tables, in one session.

* ``default``: Delta's VACUUM in a session with Delta's and Spark's own defaults;
* ``tuned``: the same with the three settings that make small tables cheap, and UTC;
* ``maintainer``: read, plan, delete, as `maintainer apply` does it for one table (without its verification).

Two tables, made by writing their log: a small one (51 files, of which 40 are expired) and one of 10,000 expired files
in 500 partitions. And the decision that there is nothing to do, with the number of Spark jobs it took.

    python benchmarks/vacuum.py --out benchmarks/results/vacuum.md
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from maintainer.app.make_plan import read_for_planning  # noqa: E402
from maintainer.delta.session import SessionOptions, open_session  # noqa: E402
from maintainer.delta.table_engine import DeltaEngine, DeltaTableEngine  # noqa: E402
from maintainer.engine import VacuumQuestion  # noqa: E402
from maintainer.model.outcome import CommitStamp  # noqa: E402
from maintainer.model.steps import VacuumStep  # noqa: E402
from maintainer.model.table import TableRef  # noqa: E402
from maintainer.planning.planner import PlanOptions, plan_table  # noqa: E402
from tests.aged_tables import DAY_MS, TODAY, AgedTable, now_ms, parquet_bytes  # noqa: E402
from tests.builders import make_policy, make_vacuum  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULTS = {
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "10000",
    "spark.sql.shuffle.partitions": "200",
    "spark.databricks.delta.snapshotPartitions": "50",
}
TUNED = {
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "4",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.session.timeZone": "UTC",
}


def make_table(path: Path, live: int, expired: int, partitions: int) -> AgedTable:
    """A table whose expired files were compacted away twenty days ago."""
    table = AgedTable(path, partition_columns=())
    content = parquet_bytes(1)
    folders = [f"p={number}/" if partitions > 1 else "" for number in range(partitions)]
    old = [f"{folders[number % partitions]}old-{number:05}.parquet" for number in range(expired)]
    new = [f"{folders[number % partitions]}new-{number:05}.parquet" for number in range(live)]
    for name in old:
        table.file(name, 60, content)
    table.commit(60, *(table.add_action(name, 60) for name in old))
    for name in new:
        table.file(name, 20, content)
    removes = [table.remove_action(name, 20, rewrite=True) for name in old]
    table.commit(20, *(table.add_action(name, 20) for name in new), *removes, operation="OPTIMIZE")
    return table


def expired_files(path: Path) -> int:
    """Files that a vacuum should take and that are still there."""
    return sum(1 for _ in path.rglob("old-*.parquet"))


def timed(work: Callable[[], object]) -> float:
    """Seconds that something takes."""
    started = time.monotonic()
    work()
    return time.monotonic() - started


def by_delta(spark: SparkSession, path: Path, settings: dict[str, str]) -> float:
    """Delta's VACUUM in a session of its own with the settings."""
    session = spark.newSession()
    for key, value in settings.items():
        session.conf.set(key, value)
    return timed(lambda: session.sql(f"VACUUM delta.`{path}`").collect())


def by_maintainer(worker: DeltaTableEngine, path: Path) -> float:
    """Facts, history, candidates, plan and deletion."""

    def work() -> None:
        policy = replace(make_policy(vacuum=make_vacuum(allow_large_delete=True)), table=TableRef(str(path)))
        moment = now_ms()
        facts, record = read_for_planning(
            worker.reader, policy, {}, now_ms=moment, today=TODAY, options=PlanOptions(), tables=(policy.table,)
        )
        plan = plan_table(policy, facts, record, moment, TODAY)
        (step,) = [one for one in plan.steps if isinstance(one, VacuumStep)]
        fresh = worker.reader.facts(policy.table)
        stamp = CommitStamp("benchmark", "t/vacuum", 0, "digest")
        receipt = worker.writer.vacuum(fresh, step, stamp, lambda version, proof: None)
        assert not receipt.remaining

    return timed(work)


def decision(spark: SparkSession, worker: DeltaTableEngine, path: Path) -> tuple[float, int]:
    """Milliseconds and Spark jobs of learning that nothing is to be deleted, facts in hand."""
    facts = worker.reader.facts(TableRef(str(path)))
    tracker = spark.sparkContext.statusTracker()
    times, before = [], len(tracker.getJobIdsForGroup("benchmark"))
    for _ in range(20):
        moment = now_ms()

        def work(moment: int = moment) -> None:
            worker.reader.vacuum_history(facts, (), removed_before_ms=moment - 30 * DAY_MS)
            worker.reader.vacuum_look(facts, VacuumQuestion(moment - 30 * DAY_MS, moment))

        times.append(timed(work) * 1000)
    return statistics.median(times), len(tracker.getJobIdsForGroup("benchmark")) - before


def arm(copies: Path, source: Path, name: str, repeats: int, run: Callable[[Path], float]) -> tuple[float, bool]:
    """Median seconds of an arm over copies of a table, and whether each took exactly the expired files."""
    found, good = [], True
    live = sum(1 for _ in source.rglob("new-*.parquet"))
    for number in range(repeats):
        path = copies / f"{name}-{number}"
        shutil.copytree(source, path)  # copy2 keeps the times
        found.append(run(path))
        good = good and expired_files(path) == 0 and sum(1 for _ in path.rglob("new-*.parquet")) == live
        shutil.rmtree(path)
    sys.stderr.write(f"{source.name}, {name}: {', '.join(f'{one:.2f}' for one in found)} s\n")
    return statistics.median(found), good


def main() -> None:
    """Run all arms and print Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--big", type=int, default=10_000, help="expired files of the large table")
    parser.add_argument("--skip-default", action="store_true")
    args = parser.parse_args()
    lines: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small = make_table(folder / "small", 11, 40, 1)
        big = make_table(folder / "big", 500, args.big, 500)
        options = SessionOptions(
            master="local[2]", conf=(("spark.driver.memory", "2g"),), log_path=folder / "spark.log", app_name="vacuum"
        )
        with open_session(options) as lease, DeltaEngine(lease).worker("benchmark") as worker:
            spark = lease.spark
            by_delta(spark, shutil.copytree(small.path, folder / "warm-1"), TUNED)
            by_maintainer(worker, shutil.copytree(small.path, folder / "warm-2"))
            lines += rows_of(folder, spark, worker, small, big, args)
    text = "\n".join([*heading(), *lines]) + "\n"
    if args.out:
        args.out.write_text(text)
    sys.stdout.write(text)


def rows_of(
    folder: Path,
    spark: SparkSession,
    worker: DeltaTableEngine,
    small: AgedTable,
    big: AgedTable,
    args: argparse.Namespace,
) -> list[str]:
    """The table of results; the arm that takes longest comes last."""
    milliseconds, jobs = decision(spark, worker, small.path)
    said = f"Deciding that there is nothing to do: {milliseconds:.1f} ms (median of 20), {jobs} Spark jobs."
    sys.stderr.write(said + "\n")

    def ours(path: Path) -> float:
        return by_maintainer(worker, path)

    def tuned(path: Path) -> float:
        return by_delta(spark, path, TUNED)

    def default(path: Path) -> float:
        return by_delta(spark, path, DEFAULTS)

    few, many = "51 files, 40 expired", f"{args.big:,} expired in 500 partitions"
    arms: list[tuple[str, AgedTable, str, int, Callable[[Path], float]]] = [
        (few, small, "maintainer", args.repeats, ours),
        (few, small, "VACUUM, tuned", args.repeats, tuned),
        (many, big, "maintainer", 1, ours),
        (many, big, "VACUUM, tuned", 1, tuned),
    ]
    if not args.skip_default:
        arms.append((few, small, "VACUUM, default", 1, default))
    lines = ["| table | arm | seconds (median) | beside maintainer | just the expired files |", "|---|---|---|---|---|"]
    base: dict[str, float] = {}
    for title, table, name, repeats, run in arms:
        seconds, good = arm(folder, table.path, name.replace(" ", "-"), repeats, run)
        ratio = seconds / base.setdefault(title, seconds)
        lines.append(f"| {title} | {name} | {seconds:.2f} | {ratio:.1f} times | {'yes' if good else 'NO'} |")
    return [*lines, "", said]


def heading() -> list[str]:
    """Machine, date and versions."""
    versions = ", ".join(f"{one} {metadata.version(one)}" for one in ("pyspark", "delta-spark"))
    return [
        "# Vacuum",
        "",
        f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC, {platform.machine()}, {os.cpu_count()} cores, local disk, "
        f"Python {platform.python_version()}, {versions}. Made by `python benchmarks/vacuum.py`, beside other work.",
        "",
    ]


if __name__ == "__main__":
    main()
