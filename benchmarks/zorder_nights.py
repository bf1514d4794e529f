"""Nights of appends on real Spark and Delta: what each way of keeping a table in Z-order writes, reads and takes.

TPC-H ``lineitem``, six of its columns, in random order. Every night 1 % is appended and the table is maintained:

* ``incremental``: ours as by default, every turn proven before its commit;
* ``full``: ``OPTIMIZE ... ZORDER BY``;
* ``liquid``: ``OPTIMIZE`` of a table with ``CLUSTER BY``, default thresholds;
* ``liquid-low``: the same with cubes of an eighth of the first table;
* ``compaction``: ``OPTIMIZE`` without order;
* ``leveled``: ours without ``pieces``.

``full`` and ``liquid`` write the whole table whenever they run, so they run every third night only, with the rows of
three; the nights between count as if they had written once more what they wrote last.

Every way has a table of its own in one warm session. Written: bytes of the files that commits without new data added,
from the first night on; putting the first table in order counts for none. Read: bytes of files that none of 200 seeded
queries, a tenth of each column's values each, can skip by smallest and largest values in the log, which a second
engine reads. Seconds: planning, turns and commits, or the command.

A run stops after ``--seconds`` and goes on from the last whole night when it is started again with the same folder:

    python benchmarks/zorder_nights.py --work /tmp/nights --seconds 360
    python benchmarks/zorder_nights.py --work /tmp/nights --report --out benchmarks/results/zorder_nights.md
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.zorder_report import EVERY, WHOLE, Night, nights_of, report
from examples.demo.lineitem import generate
from maintainer.delta.log.table_place import StoragePlaces
from maintainer.journal.memory.table_records import Remembered
from maintainer.model.plan.zorder_turn import Strategy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from maintainer.delta.engine.table_engine import DeltaTableEngine
    from maintainer.delta.spark.spark_session import SessionLease

Array = np.ndarray[Any, Any]
COLUMNS = ("l_partkey", "l_shipdate", "l_suppkey")
OTHERS = ("l_orderkey", "l_quantity", "l_extendedprice")
NIGHTS, FILES, QUERIES, SHARE, SEED = 60, 24, 200, 0.1, 20_260_101
COURSES = (
    (2, "incremental"), (2, "full"), (3, "incremental"), (3, "full"),
    (2, "liquid-low"), (2, "leveled"), (2, "compaction"), (2, "liquid"),
)  # fmt: skip
"""Number of columns and way, the most wanted first."""


@dataclass(frozen=True)
class Lineitem:
    """The rows as files, one for each night; the first is the table before the first night."""

    folder: Path
    file_bytes: int
    corners: Array
    width: Array

    def part(self, night: int) -> Path:
        """The rows of a night."""
        return self.folder / f"{night:03}.parquet"


def lineitem(work: Path, scale: float) -> Lineitem:
    """Generate and shuffle the rows once; the same rows for the same scale."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = work / "rows"
    if not (folder / "done").exists():
        folder.mkdir(parents=True, exist_ok=True)
        generate(folder, scale)
        table = pq.read_table(folder / "lineitem.parquet", columns=[*COLUMNS, *OTHERS])
        table = table.take(pa.array(np.random.default_rng(SEED).permutation(table.num_rows)))
        first = int(table.num_rows / (1 + NIGHTS / 100))
        for night in range(NIGHTS + 1):
            start = 0 if night == 0 else first + (night - 1) * (first // 100)
            pq.write_table(table.slice(start, first if night == 0 else first // 100), folder / f"{night:03}.parquet")
        numbers = as_numbers({name: table[name] for name in COLUMNS})
        ends = {"low": numbers.min(0).tolist(), "high": numbers.max(0).tolist(), "rows": table.num_rows}
        (folder / "done").write_text(json.dumps(ends), encoding="utf-8")
    ends = json.loads((folder / "done").read_text(encoding="utf-8"))
    low, high = np.array(ends["low"]), np.array(ends["high"])
    width = (high - low) * SHARE
    corners = low + np.random.default_rng(SEED).random((QUERIES, len(COLUMNS))) * (high - low - width)
    return Lineitem(folder, (folder / "000.parquet").stat().st_size // FILES, corners, width)


def as_numbers(columns: dict[str, Any]) -> Array:
    """Columns of an Arrow table as integers, one below another; days for dates."""
    numbers = []
    for values in columns.values():
        array = values.to_numpy(zero_copy_only=False) if hasattr(values, "combine_chunks") else np.asarray(values)
        numbers.append(
            array.astype("datetime64[D]").astype(np.int64) if array.dtype.kind in "MO" else array.astype(np.int64)
        )
    return np.column_stack(numbers)


@dataclass
class Course:
    """One way on its table. ``columns`` are the Z-order's; ``states`` the nights so far, from 0 on."""

    way: str
    columns: tuple[str, ...]
    work: Path
    rows: Lineitem

    @property
    def name(self) -> str:
        """Of the table's folder and of the file with its nights."""
        return f"{self.way}-{len(self.columns)}"

    @property
    def every(self) -> int:
        """Nights from one run to the next."""
        return EVERY if self.way in WHOLE else 1

    @property
    def table(self) -> Path:
        """The table."""
        return self.work / self.name

    def run(self, engine: DeltaTableEngine, ends_at: float) -> None:
        """Go on from the last whole night until the nights or the time are used up."""
        spark = engine.jvm.spark
        done = nights_of(self.work / f"{self.name}.jsonl")
        if done and (version := self._version()) > done[-1].version:
            # The last run was ended in the middle of a night.
            print(f"{self.name}: back from version {version} to {done[-1].version}", flush=True)
            spark.sql(f"RESTORE TABLE delta.`{self.table}` TO VERSION AS OF {done[-1].version}").collect()
            done[-1] = replace(done[-1], version=self._version())
        longest, first = 0.0, done[-1].night + self.every if done else 0
        for night in range(first, NIGHTS + 1, self.every):
            if time.monotonic() + 1.5 * longest > ends_at:
                return
            began = time.monotonic()
            result = replace(self._night(engine, night), cold=night == first)
            # The first table takes long, and with a session that has just begun.
            longest = max(longest, time.monotonic() - began) if night else 0.0
            with (self.work / f"{self.name}.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(result)) + "\n")
            print(f"{self.name}: night {night}, {result.seconds:.1f} s, {result.turns} commits", flush=True)

    def _night(self, engine: DeltaTableEngine, night: int) -> Night:
        spark = engine.jvm.spark
        if night == 0:
            shutil.rmtree(self.table, ignore_errors=True)
            self._create(spark)
        for number in range(max(0, night - self.every + 1), night + 1):
            frame = spark.read.parquet(str(self.rows.part(number)))
            frame.coalesce(1 if night else 4).write.format("delta").mode("append").save(str(self.table))
        before = self._version()
        began = time.monotonic()
        if self.way in ("incremental", "leveled"):
            maintain(engine, self)
        else:
            spark.sql(f"OPTIMIZE delta.`{self.table}`" + self._zorder_by()).collect()
        seconds = time.monotonic() - began
        commits = [self._rewritten(version) for version in range(before + 1, self._version() + 1)]
        bytes_read, files_read, num_files, size = self._read()
        written = [commit for commit in commits if commit]
        return Night(
            night, self._version(), sum(written), len(written), seconds, bytes_read, files_read, num_files, size
        )

    def _zorder_by(self) -> str:
        return f" ZORDER BY ({', '.join(self.columns)})" if self.way == "full" else ""

    def _create(self, spark: SparkSession) -> None:
        """An empty table with the rows' columns, so that liquid clustering can be declared."""
        spark.read.parquet(str(self.rows.part(0))).createOrReplaceTempView(f"v_{self.name.replace('-', '_')}")
        fields = spark.read.parquet(str(self.rows.part(0))).schema.fields
        listed = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in fields)
        clause = f" CLUSTER BY ({', '.join(self.columns)})" if self.way.startswith("liquid") else ""
        spark.sql(f"CREATE TABLE delta.`{self.table}` ({listed}) USING delta{clause}")

    def _version(self) -> int:
        return max(int(file.stem) for file in (self.table / "_delta_log").glob("*.json") if file.stem.isdecimal())

    def _rewritten(self, version: int) -> int:
        """Bytes that a commit added without new data."""
        lines = (self.table / "_delta_log" / f"{version:020}.json").read_text(encoding="utf-8").splitlines()
        added = [action["add"] for action in map(json.loads, lines) if "add" in action]
        return sum(int(add["size"]) for add in added if not add["dataChange"])

    def _read(self) -> tuple[float, float, int, int]:
        """Bytes and files that an average query cannot skip; number of files and bytes of all."""
        import deltalake
        import pyarrow as pa

        adds = pa.table(deltalake.DeltaTable(str(self.table)).get_add_actions(flatten=True))
        low, high = (as_numbers({name: adds[f"{end}.{name}"] for name in self.columns}) for end in ("min", "max"))
        size = adds["size_bytes"].to_numpy()
        number = len(self.columns)
        corners, width = self.rows.corners[:, :number], self.rows.width[:number]
        hits = [((high >= corner) & (low <= corner + width)).all(1) for corner in corners]
        bytes_read = float(np.mean([size[hit].sum() for hit in hits]))
        return bytes_read, float(np.mean([hit.sum() for hit in hits])), len(size), int(size.sum())


def maintain(engine: DeltaTableEngine, course: Course) -> None:
    """What ``apply`` does with the table until it ends: plan, property, turns; without its ledger and later checks."""
    from maintainer.app.planning.read_table import read_for_planning
    from maintainer.app.project_folders import Project
    from maintainer.model.plan.steps import SetPropertiesStep, ZOrderStep
    from maintainer.model.table.commit_records import CommitStamp
    from maintainer.planning.plan_input import PlanMoment, PlanOptions
    from maintainer.planning.planner import plan_table
    from maintainer.planning.zorder.incremental_zorder import loop_columns, next_turn

    root = course.work / "projects" / course.name
    if not root.exists():
        root.mkdir(parents=True)
        (root / "maintainer.yml").write_text("version: 1\n", encoding="utf-8")
        (root / "policies").mkdir()
        strategies = list(Strategy)[:2] if course.way == "leveled" else list(Strategy)
        order = {"columns": list(course.columns), "strategies": [strategy.value for strategy in strategies]}
        settings = {"maxFileSize": course.rows.file_bytes, "zorder": order}
        text = json.dumps({"version": 1, "table": str(course.table), "optimize": settings})
        (root / "policies" / "t.yml").write_text(text, encoding="utf-8")
    project = Project.load(root, None)
    (policy,) = project.loaded.resolved()
    now_ms, today = int(time.time() * 1000), datetime.now(tz=UTC).date()
    reader, writer = engine.reader, engine.writer
    table = read_for_planning(
        reader, policy, Remembered(), StoragePlaces(), when=PlanMoment(now_ms, today), options=PlanOptions()
    )
    facts, planned = table.facts, plan_table(table)
    if planned.problem is not None:
        raise SystemExit(f"{course.name}: {planned.problem}")
    number = 0
    for step in planned.steps:
        stamp = CommitStamp("bench", f"t/{step.kind}", number, "d")
        if isinstance(step, SetPropertiesStep):
            writer.set_properties(facts, step, stamp, lambda *_: None)
        elif isinstance(step, ZOrderStep):
            turn: ZOrderStep | None = step
            while turn is not None:
                facts = reader.facts(policy.table)
                writer.rewrite(facts, turn, turn.batches[0], replace(stamp, batch=number), lambda *_: None)
                facts = reader.facts(policy.table)
                facts = replace(facts, column_ranges=reader.column_ranges(facts, loop_columns(step, facts)))
                turn, number = next_turn(step, facts, spent_bytes=0), number + 1


def run_course(lease: SessionLease, course: Course, ends_at: float) -> None:
    """One way in a session of its own, with the sizes that it needs."""
    from maintainer.delta.engine.table_engine import DeltaEngine

    with DeltaEngine(lease).worker(course.name) as engine:
        spark, size = engine.jvm.spark, course.rows.file_bytes
        spark.conf.set("spark.databricks.delta.optimize.maxFileSize", str(size))
        spark.conf.set("spark.databricks.delta.optimize.minFileSize", str(size * 3 // 4))
        spark.conf.set("spark.databricks.delta.optimize.maxThreads", "2")
        if course.way == "liquid-low":
            cubes = "spark.databricks.delta.optimize.clustering.mergeStrategy.minCubeSize."
            spark.conf.set(cubes + "threshold", str(size * FILES // 8))
            spark.conf.set(cubes + "targetCubeSize", str(size * FILES // 8))
        course.run(engine, ends_at)


def run(work: Path, rows: Lineitem, wanted: Sequence[tuple[int, str]], seconds: float, jobs: int) -> None:
    """All ways, ``jobs`` at once, in the order of ``COURSES``."""
    from maintainer.delta.spark.spark_session import open_session
    from maintainer.engine.session_options import SessionOptions

    ends_at = time.monotonic() + seconds
    courses = [Course(way, COLUMNS[:number], work, rows) for number, way in wanted]
    options = SessionOptions(
        master="local[2]",
        conf=(("spark.driver.memory", "3g"),),
        log_path=work / "spark.log",
        app_name="nights",
    )
    with open_session(options) as lease, ThreadPoolExecutor(jobs) as pool:
        for done in [pool.submit(run_course, lease, course, ends_at) for course in courses]:
            done.result()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="tables and figures; a run goes on from what is there")
    parser.add_argument("--scale", type=float, default=0.04)
    parser.add_argument("--seconds", type=float, default=360.0, help="stop after so long, at the end of a night")
    parser.add_argument("--jobs", type=int, default=2, help="ways at once")
    parser.add_argument("--only", nargs="*", default=[], help="ways like incremental-2")
    parser.add_argument("--report", action="store_true", help="no Spark: the figures so far")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--plots", type=Path, help="folder for the charts")
    options = parser.parse_args()
    if not options.report:
        wanted = [course for course in COURSES if not options.only or f"{course[1]}-{course[0]}" in options.only]
        run(options.work, lineitem(options.work, options.scale), wanted, options.seconds, options.jobs)
    text = report(options.work, COURSES, COLUMNS, options.plots)
    print(text)
    if options.out:
        options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
