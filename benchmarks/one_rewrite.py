"""One rewrite with its proof beside Delta's OPTIMIZE without one, on copies of one table, in one tuned session.

Two shapes: ``small`` (tables of 40 files of 0.1 MB: overhead is everything) and ``large`` (one table in files of
32 MB: reading and writing are everything). Both arms run in the same warm session on copies of the same table, in
turns, and who goes first alternates. Ours is what `apply` does with a table: read the facts, write the bins, prove
them, commit. Not in it are the checks after the commit and the ledger, see ``after_commit.py``.

    python benchmarks/one_rewrite.py --out benchmarks/results/one_rewrite.md
    python benchmarks/one_rewrite.py --shapes small --rounds 10
    python benchmarks/one_rewrite.py --shapes large --lane copy
    python benchmarks/one_rewrite.py --shapes large --kind zorder --lane spark
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.lake import content, make_rows
from benchmarks.optimize_loop import Stopwatch, machine, progress, versions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from maintainer.delta.engine.table_engine import DeltaTableEngine
    from maintainer.model.plan.steps import Batch, RewriteStep
    from maintainer.model.table.table_facts import TableFacts

MIB = 2**20
ZORDER_BY = ("k", "t")
ROW_BYTES = 53  # of the rows that `make_rows` makes, compressed, measured
MAX_FILE_BYTES = 128 * MIB
THREADS = 2


@dataclass(frozen=True, slots=True)
class Shape:
    """A kind of table: how many files of how many bytes, and how often it is measured."""

    name: str
    files: int
    file_bytes: int
    rounds: int

    def describe(self) -> str:
        """One sentence for the report."""
        return f"{self.files} files of {self.file_bytes / MIB:.1f} MiB, {self.rounds} rounds"


@dataclass(frozen=True, slots=True)
class Lap:
    """What one rewrite took: seconds, CPU seconds, and for ours the parts."""

    seconds: float
    cpu_seconds: float
    files_after: int
    parts: dict[str, float]


WARM_UP = Shape("warm-up", 8, MIB, 3)
"""Run before anything counts: a session is compiled while it works."""


def build(spark: SparkSession, path: Path, shape: Shape, seed: int) -> None:
    """The table that both arms get a copy of."""
    rows = make_rows(spark, shape.files * (shape.file_bytes // ROW_BYTES), shape.files, seed)
    rows.write.format("delta").save(str(path))


def plan(facts: TableFacts, kind: str = "compact", lane: str = "spark") -> tuple[RewriteStep, Batch]:
    """Bins as the planner packs them: files in order up to the largest size; for a Z-order all files in one."""
    from maintainer.model.plan.lanes import Lane, LaneChoice
    from maintainer.model.plan.steps import Batch, Bin, CompactStep, ZOrderStep
    from maintainer.model.table.table_facts import DataFile

    choice = LaneChoice(Lane(lane), "asked for")
    if kind == "zorder":
        batch = Batch((Bin(facts.files, choice),))
        return ZOrderStep((batch,), ZORDER_BY, MAX_FILE_BYTES, THREADS, ()), batch
    bins: list[list[DataFile]] = [[]]
    for file in facts.files:
        if bins[-1] and sum(packed.size_bytes for packed in bins[-1]) + file.size_bytes > MAX_FILE_BYTES:
            bins.append([])
        bins[-1].append(file)
    batch = Batch(tuple(Bin(tuple(group), choice) for group in bins))
    return CompactStep((batch,), MAX_FILE_BYTES, THREADS, ()), batch


def ours(engine: DeltaTableEngine, path: Path, kind: str, lane: str) -> Lap:
    """Facts, then one batch: write, prove, commit."""
    from maintainer.model.table.commit_records import CommitStamp
    from maintainer.model.table.table_facts import TableRef

    watch = Stopwatch(engine.jvm.spark)
    started = time.monotonic()
    facts = engine.reader.facts(TableRef(str(path)))
    read = time.monotonic() - started
    step, batch = plan(facts, kind, lane)
    receipt = engine.writer.rewrite(facts, step, batch, CommitStamp("bench", f"t/{kind}", 0, "d"), lambda *_: None)
    seconds, cpu = watch.lap()
    uses = receipt.proof.lanes if receipt.proof is not None else ()
    if any(use.lane != lane for use in uses):
        raise SystemExit(f"{path} was not rewritten in lane {lane}: {uses}")
    return Lap(seconds, cpu, receipt.num_files_added, {"facts": read, **asdict(engine.writer.last_timings)})


def optimize(engine: DeltaTableEngine, path: Path, kind: str) -> Lap:
    """Delta's command in the same session, with the same sizes and threads."""
    spark = engine.jvm.spark
    spark.conf.set("spark.databricks.delta.optimize.maxFileSize", str(MAX_FILE_BYTES))
    spark.conf.set("spark.databricks.delta.optimize.minFileSize", str(MAX_FILE_BYTES * 3 // 4))
    spark.conf.set("spark.databricks.delta.optimize.maxThreads", str(THREADS))
    watch = Stopwatch(spark)
    order = f" ZORDER BY ({', '.join(ZORDER_BY)})" if kind == "zorder" else ""
    row = spark.sql(f"OPTIMIZE delta.`{path}`{order}").collect()[0]
    seconds, cpu = watch.lap()
    return Lap(seconds, cpu, int(row["metrics"]["numFilesAdded"]), {})


def measure(
    engine: DeltaTableEngine, work: Path, shape: Shape, seed: int, kind: str = "compact", lane: str = "spark"
) -> tuple[list[Lap], list[Lap]]:
    """Rounds of both arms in turns, on copies of one table."""
    base = work / f"base-{shape.name}"
    build(engine.jvm.spark, base, shape, seed)
    wanted = content(base)
    laps: dict[str, list[Lap]] = {"ours": [], "optimize": []}
    for number in range(shape.rounds):
        for arm in ("ours", "optimize") if number % 2 else ("optimize", "ours"):
            path = work / f"{shape.name}-{number}-{arm}"
            shutil.copytree(base, path, copy_function=shutil.copy2)
            lap = ours(engine, path, kind, lane) if arm == "ours" else optimize(engine, path, kind)
            if content(path) != wanted:
                raise SystemExit(f"{path} does not hold what it held")
            shutil.rmtree(path)
            progress(f"{shape.name} round {number} {arm}: {lap.seconds:.2f} s {lap.parts}")
            laps[arm].append(lap)
    return laps["ours"], laps["optimize"]


def render(
    laps: dict[Shape, tuple[list[Lap], list[Lap]]], seed: int, kind: str = "compact", lane: str = "spark"
) -> str:
    """The report as Markdown: medians, their ratio, and where ours went."""
    lines = [
        "# One proven rewrite against OPTIMIZE, in one warm session",
        "",
        f"{datetime.now(UTC):%Y-%m-%d}, {machine()}. Seed {seed}.",
        versions() + ".",
        "",
        f"{'Z-order' if kind == 'zorder' else 'Compaction'}, ours in lane {lane}.",
        "Medians; the ratio is the median of each round's. Only ours proves what it wrote before it commits.",
        "",
        "| tables | OPTIMIZE | its CPU | ours, with proof | its CPU | ours / OPTIMIZE | same by CPU | files after |",
        "|" + "---|" * 8,
    ]
    for shape, (mine, theirs) in laps.items():
        pairs = list(zip(mine, theirs, strict=True))
        seconds = median(sample.seconds / other.seconds for sample, other in pairs)
        cpu = median(sample.cpu_seconds / max(other.cpu_seconds, 0.01) for sample, other in pairs)
        lines.append(
            f"| {shape.describe()} | {median(sample.seconds for sample in theirs):.2f} s "
            f"| {median(sample.cpu_seconds for sample in theirs):.2f} s "
            f"| {median(sample.seconds for sample in mine):.2f} s "
            f"| {median(sample.cpu_seconds for sample in mine):.2f} s | {seconds:.2f} | {cpu:.2f} "
            f"| {theirs[0].files_after} and {mine[0].files_after} |"
        )
    names = list(next(iter(laps.values()))[0][0].parts)
    lines += ["", "Where the time of ours goes, seconds (medians):", "", f"| tables | {' | '.join(names)} |"]
    lines.append("|" + "---|" * (len(names) + 1))
    for shape, (mine, _) in laps.items():
        cells = [f"{median(sample.parts[name] for sample in mine):.2f}" for name in names]
        lines.append(f"| {shape.name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure the shapes one after the other and print the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, help="write the report here as well")
    parser.add_argument("--shapes", default="small,large")
    parser.add_argument("--rounds", type=int, default=8, help="of small tables")
    parser.add_argument("--large-rounds", type=int, default=2)
    parser.add_argument("--large-files", type=int, default=32)
    parser.add_argument("--kind", choices=("compact", "zorder"), default="compact")
    parser.add_argument("--lane", choices=("copy", "local", "spark"), default="spark")
    parser.add_argument("--seed", type=int, default=20261121)
    options = parser.parse_args()
    shapes = [
        Shape("small", 40, MIB // 10, options.rounds),
        Shape("large", options.large_files, 32 * MIB, options.large_rounds),
    ]
    from maintainer.delta.engine.table_engine import DeltaEngine
    from maintainer.delta.spark.spark_session import open_session
    from maintainer.engine.session_options import SessionOptions

    work = Path(tempfile.mkdtemp(prefix="maintainer-bench-"))
    laps: dict[Shape, tuple[list[Lap], list[Lap]]] = {}
    try:
        with (
            open_session(SessionOptions(conf=(("spark.driver.memory", "3g"),), log_path=work / "spark.log")) as lease,
            DeltaEngine(lease).worker("bench") as engine,
        ):
            measure(engine, work, WARM_UP, options.seed, options.kind, "spark")
            for shape in shapes:
                if shape.name in options.shapes.split(","):
                    laps[shape] = measure(engine, work, shape, options.seed, options.kind, options.lane)
            report = render(laps, options.seed, options.kind, options.lane)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(report)
    if options.out:
        options.out.write_text(report, encoding="utf-8")


if __name__ == "__main__":
    main()
