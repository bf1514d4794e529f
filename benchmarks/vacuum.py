"""What a vacuum costs beside Delta's own VACUUM, on copies of the same tables, in one session.

* ``maintainer``: read, plan, delete, as `maintainer apply` does it for one table (without its verification);
* ``tuned``: Delta's VACUUM with the three settings that make small tables cheap, and UTC;
* ``default``: the same in a session with Delta's and Spark's own defaults.

Two tables, made by writing their log, with one commit by Delta on top: a small one (51 files, of which 40 are expired)
and one of 10,000 expired files in 500 partitions. And the decision that there is nothing to do, with the number of
Spark jobs it took: on the small table, and on the large one after all of its 10,000 removed files have gone. Every part
is a run of its own and takes two to five minutes; `--out` replaces its section of the file and leaves the others.

    python benchmarks/vacuum.py --part small --out benchmarks/results/vacuum.md
    python benchmarks/vacuum.py --part big --out benchmarks/results/vacuum.md
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from maintainer.app.planning.read_table import read_for_planning
from maintainer.delta.engine.table_engine import DeltaEngine, DeltaTableEngine
from maintainer.delta.log.table_place import StoragePlaces
from maintainer.delta.spark.spark_session import open_session
from maintainer.engine.protocols import VacuumQuestion
from maintainer.engine.session_options import SessionOptions
from maintainer.journal.memory.table_records import Remembered
from maintainer.model.plan.steps import VacuumStep
from maintainer.model.table.commit_records import CommitStamp
from maintainer.model.table.table_facts import TableRef
from maintainer.planning.plan_input import PlanMoment, PlanOptions
from maintainer.planning.planner import plan_table
from tests.support.tables.aged_tables import DAY_MS, TODAY, AgedTable, now_ms, parquet_bytes
from tests.support.tables.builders import make_policy, make_vacuum

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


def with_checksum(spark: SparkSession, table: AgedTable) -> AgedTable:
    """Let Delta make one commit, so that the newest version has its checksum file, as it has in every real table."""
    spark.sql(f"ALTER TABLE delta.`{table.path}` SET TBLPROPERTIES ('benchmark' = 'vacuum')")
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
        table = read_for_planning(
            worker.reader,
            policy,
            Remembered(),
            StoragePlaces(),
            when=PlanMoment(moment, TODAY),
            options=PlanOptions(),
            tables=(policy.table,),
        )
        plan = plan_table(table)
        (step,) = [step for step in plan.steps if isinstance(step, VacuumStep)]
        fresh = worker.reader.facts(policy.table)
        stamp = CommitStamp("benchmark", "t/vacuum", 0, "digest")
        receipt = worker.writer.vacuum(fresh, step, stamp, lambda version, proof: None)
        assert not receipt.remaining

    return timed(work)


def decision(spark: SparkSession, worker: DeltaTableEngine, path: Path, title: str) -> str:
    """What learning that nothing is to be deleted costs, facts in hand, as a sentence."""
    facts = worker.reader.facts(TableRef(str(path)))
    tracker = spark.sparkContext.statusTracker()
    walls, processor, before = [], [], len(tracker.getJobIdsForGroup("benchmark"))
    for _ in range(20):
        moment = now_ms()
        wall, busy = time.monotonic(), time.process_time()
        history = worker.reader.vacuum_history(facts, (), removed_before_ms=moment - 7 * DAY_MS)
        looked = worker.reader.vacuum_look(replace(facts, history=history), VacuumQuestion(moment - 7 * DAY_MS, moment))
        walls.append((time.monotonic() - wall) * 1000)
        processor.append((time.process_time() - busy) * 1000)
        assert looked.removed_files == ()
    jobs = len(tracker.getJobIdsForGroup("benchmark")) - before
    said = (
        f"Deciding that there is nothing to do, {title}: median {statistics.median(walls):.1f} ms, best "
        f"{min(walls):.1f} ms, of which Python worked {statistics.median(processor):.1f} ms; {jobs} Spark jobs."
    )
    sys.stderr.write(said + "\n")
    return said


def main() -> None:
    """Run the arms of one part and print Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=["small", "big"], required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--big", type=int, default=10_000, help="expired files of the large table")
    parser.add_argument("--skip-default", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        options = SessionOptions(
            master="local[2]", conf=(("spark.driver.memory", "2g"),), log_path=folder / "spark.log", app_name="vacuum"
        )
        warm = make_table(folder / "warm", 11, 40, 1)
        with open_session(options) as lease, DeltaEngine(lease).worker("benchmark") as worker:
            spark = lease.spark
            for number in range(2):
                by_delta(spark, shutil.copytree(warm.path, folder / f"warm-d{number}"), TUNED)
                by_maintainer(worker, shutil.copytree(warm.path, folder / f"warm-m{number}"))
            run = small_part if args.part == "small" else big_part
            lines = run(folder, spark, worker, args)
    section = "\n".join([*heading(args.part), *lines]) + "\n"
    if args.out:
        args.out.write_text(with_section(args.out.read_text() if args.out.exists() else "", args.part, section))
    sys.stdout.write(section)


def with_section(text: str, part: str, section: str) -> str:
    """The file's text with one part's section replaced, or put at its end."""
    sections = re.split(r"(?m)^(?=## )", text or "# Vacuum\n\n")
    others = [written for written in sections if not written.startswith(heading(part)[0])]
    return "\n".join(
        written.rstrip("\n") + "\n" for written in (others[0], *sorted([*others[1:], section], reverse=True))
    )


def small_part(folder: Path, spark: SparkSession, worker: DeltaTableEngine, args: argparse.Namespace) -> list[str]:
    """The small table by all three; what takes longest comes last."""
    small = with_checksum(spark, make_table(folder / "small", 11, 40, 1))
    young = with_checksum(spark, make_table(folder / "young", 11, 40, 1))
    for path in young.path.glob("old-*.parquet"):
        path.unlink()
    said = decision(spark, worker, young.path, "40 removals whose files have gone")
    arms: list[Arm] = [
        ("maintainer", args.repeats, lambda path: by_maintainer(worker, path)),
        ("VACUUM, tuned", args.repeats, lambda path: by_delta(spark, path, TUNED)),
    ]
    if not args.skip_default:
        arms.append(("VACUUM, default", 1, lambda path: by_delta(spark, path, DEFAULTS)))
    return [*compared(folder, small, arms), "", said]


def big_part(folder: Path, spark: SparkSession, worker: DeltaTableEngine, args: argparse.Namespace) -> list[str]:
    """The large table by ours and by Delta's tuned VACUUM, in turns."""
    big = with_checksum(spark, make_table(folder / "big", 500, args.big, 500))
    arms: list[Arm] = [
        ("maintainer", args.repeats, lambda path: by_maintainer(worker, path)),
        ("VACUUM, tuned", args.repeats, lambda path: by_delta(spark, path, TUNED)),
    ]
    lines = compared(folder, big, arms)
    for path in big.path.rglob("old-*.parquet"):
        path.unlink()
    said = decision(spark, worker, big.path, f"{args.big:,} removals in 500 partitions whose files have gone")
    return [*lines, "", said]


Arm = tuple[str, int, Callable[[Path], float]]
"""Its name, how often, and what it does to a copy of the table."""


def compared(folder: Path, table: AgedTable, arms: list[Arm]) -> list[str]:
    """Run the arms in turns, each on copies of its own."""
    live = sum(1 for _ in table.path.rglob("new-*.parquet"))
    times: dict[str, list[float]] = {name: [] for name, _, _ in arms}
    good = dict.fromkeys(times, True)
    for number in range(max(repeats for _, repeats, _ in arms)):
        for name, repeats, run in arms:
            if number >= repeats:
                continue
            path = Path(shutil.copytree(table.path, folder / f"{name.replace(' ', '-')}-{number}"))  # keeps the times
            times[name].append(run(path))
            good[name] &= expired_files(path) == 0 and sum(1 for _ in path.rglob("new-*.parquet")) == live
            sys.stderr.write(f"{table.path.name}, {name}: {times[name][-1]:.2f} s (load {os.getloadavg()[0]:.1f})\n")
            shutil.rmtree(path)
    base = statistics.median(times[arms[0][0]])
    lines = ["| arm | seconds (median) | all | beside maintainer | just the expired files |", "|---|---|---|---|---|"]
    for name, laps in times.items():
        listed = ", ".join(f"{seconds:.2f}" for seconds in laps)
        middle = statistics.median(laps)
        lines.append(
            f"| {name} | {middle:.2f} | {listed} | {middle / base:.1f} times | {'yes' if good[name] else 'NO'} |"
        )
    return lines


TITLES = {"small": "51 files, 40 of them expired", "big": "10,500 files in 500 partitions, 10,000 of them expired"}


def heading(part: str) -> list[str]:
    """Title, machine, date and versions."""
    versions = ", ".join(f"{package} {metadata.version(package)}" for package in ("pyspark", "delta-spark"))
    return [
        f"## {TITLES[part]}",
        "",
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {platform.machine()}, {os.cpu_count()} cores (shared), "
        f"local disk, Python {platform.python_version()}, {versions}. Made by "
        f"`python benchmarks/vacuum.py --part {part}`; "
        f"load of the machine at its end: {os.getloadavg()[1]:.1f}.",
        "",
    ]


if __name__ == "__main__":
    main()
