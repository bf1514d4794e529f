"""`maintainer apply` beside a plain loop of OPTIMIZE and VACUUM, on copies of the same tables.

Three arms, each in a process of its own with a Spark session of its own:

* ``default``: for each table OPTIMIZE, then VACUUM, in a session with Delta and no other setting;
* ``tuned``: the same loop with the three settings that make small tables cheap, and UTC;
* ``maintainer``: `maintainer apply`, with its proofs, its checks after the fact and its ledger.

Each arm runs twice (``--passes``): the second pass, with nothing left to do, is what most nights look like.
The start of the session is timed apart. Files and bytes come from the tables' logs, content from pyarrow. CPU
seconds (Python and JVM, on Linux) stand beside the seconds: they say more on a machine that does other work too.

    python benchmarks/optimize_loop.py --out benchmarks/results/optimize_loop.md
    python benchmarks/optimize_loop.py --dir /tmp/bench --arms tuned,maintainer    # go on with a folder
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.lake import FleetSize, build_fleet, content, copy_fleet, read_state

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ARMS = ("default", "tuned", "maintainer")
TITLES = {
    "default": "loop of OPTIMIZE + VACUUM, default session",
    "tuned": "the same loop, tuned session",
    "maintainer": "`maintainer apply`",
}
ARM_TIMEOUT_SECONDS = 3 * 3600
TUNED = {
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "4",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.session.timeZone": "UTC",
}
POLICY = "version: 1\ntable: lake/{name}\n"
RULE = 'version: 1\nmatch: {tables: ["lake/*"]}\npriority: 1\nvacuum: {retention: 7d, allowLargeDelete: rewritten}\n'


@dataclass(frozen=True, slots=True)
class ArmResult:
    """What one arm took and did."""

    arm: str
    session_seconds: float
    passes: list[tuple[float, float]]
    files_before: int
    files_after: int
    rewritten_bytes: int
    deleted_files: int
    same_content: bool
    commits: list[int]


class Stopwatch:
    """Seconds, and CPU seconds of this process and of the session's JVM."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm
        self._jvm_pid = int(jvm.java.lang.ProcessHandle.current().pid())
        self._started = self._now()

    def _now(self) -> tuple[float, float]:
        stat = Path(f"/proc/{self._jvm_pid}/stat")
        if not stat.exists():
            return time.monotonic(), 0.0
        # Fields 14 and 15, counted after the command's name in brackets: ticks in user and in system mode.
        user, system = stat.read_text().rpartition(")")[2].split()[11:13]
        return time.monotonic(), time.process_time() + (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def lap(self) -> tuple[float, float]:
        """Seconds and CPU seconds since the start or the last lap."""
        before, self._started = self._started, self._now()
        return self._started[0] - before[0], self._started[1] - before[1]


def start_spark(settings: dict[str, str]) -> tuple[SparkSession, float]:
    """Start a session with Delta on the class path, and time it. Every arm uses the same JARs."""
    from maintainer.delta.spark.installed_versions import check_versions
    from maintainer.delta.spark.jars import ensure_jars
    from maintainer.delta.spark.java_home import inspect_java

    jars = ensure_jars(inspect_java(), check_versions(os.environ), os.environ)
    started = time.monotonic()
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master("local[*]")
        .config("spark.driver.extraClassPath", os.pathsep.join(str(jar) for jar in jars))
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
    )
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark, time.monotonic() - started


def run_loop(lake: Path, settings: dict[str, str], passes: int) -> tuple[float, list[tuple[float, float]]]:
    """The plain loop, as a nightly job has it."""
    spark, session_seconds = start_spark(settings)
    watch, laps = Stopwatch(spark), []
    for number in range(passes):
        started = time.monotonic()
        for table in tables_of(lake):
            for statement in ("OPTIMIZE", "VACUUM"):
                spark.sql(f"{statement} delta.`{table}`").collect()
            progress(f"pass {number + 1}: {table.name} after {time.monotonic() - started:.1f} s")
        laps.append(watch.lap())
    spark.stop()
    return session_seconds, laps


def run_maintainer(project: Path, passes: int) -> tuple[float, list[tuple[float, float]]]:
    """`maintainer apply` through the command line's own entry, in a session that was started before."""
    from maintainer.cli.main import run
    from maintainer.delta.spark.spark_session import open_session
    from maintainer.engine.session_options import SessionOptions

    with open_session(SessionOptions()) as lease:
        watch, laps = Stopwatch(lease.spark), []
        for _ in range(passes):
            exit_code = run(["--project", str(project), "apply", "--yes"])
            laps.append(watch.lap())
            if exit_code != 0:
                raise SystemExit(f"maintainer apply ended with exit code {exit_code}")
        return lease.start_seconds, laps


def run_arm(arm: str, work: Path, passes: int) -> ArmResult:
    """Run one arm on a fresh copy of the lake, in this process, and measure what became of the tables."""
    project = work / arm
    lake = project / "lake"
    if project.exists():
        raise SystemExit(f"{project} is there already: name another --dir, or other --arms")
    copy_fleet(work / "base", lake)
    write_project(project, [table.name for table in tables_of(lake)])
    before = {table: read_state(table) for table in tables_of(lake)}
    rows = {table: content(table) for table in before}
    if arm == "maintainer":
        session_seconds, laps = run_maintainer(project, passes)
    else:
        session_seconds, laps = run_loop(lake, TUNED if arm == "tuned" else {}, passes)
    after = {table: read_state(table, since_version=state.version) for table, state in before.items()}
    written = {table: len(set(after[table].live) - set(before[table].live)) for table in before}
    return ArmResult(
        arm=arm,
        session_seconds=session_seconds,
        passes=laps,
        files_before=sum(len(state.live) for state in before.values()),
        files_after=sum(len(state.live) for state in after.values()),
        rewritten_bytes=sum(state.rewritten_bytes for state in after.values()),
        deleted_files=sum(before[table].on_disk + written[table] - after[table].on_disk for table in before),
        same_content=all(content(table) == rows[table] for table in before),
        commits=[after[table].version - before[table].version for table in before],
    )


def write_project(project: Path, names: list[str]) -> None:
    """A project with the smallest policy for each table; the loop arms ignore it."""
    (project / "policies").mkdir(parents=True)
    (project / "maintainer.yml").write_text("version: 1\n", encoding="utf-8")
    (project / "policies" / "_all.yml").write_text(RULE, encoding="utf-8")
    for name in names:
        (project / "policies" / f"{name}.yml").write_text(POLICY.format(name=name), encoding="utf-8")


def tables_of(lake: Path) -> list[Path]:
    """The tables of a lake, by name."""
    return sorted(path for path in lake.iterdir() if (path / "_delta_log").is_dir())


def render(results: list[ArmResult], size: FleetSize, seed: int) -> str:
    """The report as Markdown. Ratios are against `maintainer apply`: above 1 it was faster, or did less."""
    base = next((result for result in results if result.arm == "maintainer"), None)
    lines = [
        "# A plain loop of OPTIMIZE and VACUUM against `maintainer apply`",
        "",
        f"{size.describe()}. Seed {seed}.",
        f"{datetime.now(UTC):%Y-%m-%d}, {machine()}.",
        versions() + ".",
        "",
        "Ratios in brackets are against `maintainer apply`. The start of the session is not part of the passes; in the",
        "second pass nothing is left to do. Only `maintainer apply` proves what it wrote before it commits.",
        "",
        "| | session start | first pass | its CPU | second pass | its CPU | files before -> after | MiB rewritten "
        "| files deleted | commits | same content |",
        "|" + "---|" * 11,
    ]
    for result in results:
        cells = [TITLES[result.arm], f"{result.session_seconds:.1f} s"]
        for number in range(2):
            for which in range(2):
                cells.append(_seconds(result, base, number, which))
        rewritten, reference = result.rewritten_bytes / 2**20, base.rewritten_bytes / 2**20 if base else 0.0
        cells += [
            f"{result.files_before} -> {result.files_after}",
            f"{rewritten:.1f}{_ratio(rewritten, reference)}",
            str(result.deleted_files),
            str(sum(result.commits)),
            "yes" if result.same_content else "NO",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _seconds(result: ArmResult, base: ArmResult | None, number: int, which: int) -> str:
    """One figure of one pass: seconds (0) or CPU seconds (1), with its ratio."""
    if number >= len(result.passes) or not result.passes[number][which]:
        return "-"
    value = result.passes[number][which]
    known = base is not None and number < len(base.passes)
    return f"{value:.1f} s{_ratio(value, base.passes[number][which] if base and known else 0.0)}"


def _ratio(value: float, reference: float) -> str:
    return f" ({value / reference:.1f}x)" if reference else ""


def machine() -> str:
    """The machine in a few words."""
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 0
    return (
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, {memory_bytes / 2**30:.0f} GiB, "
        f"load average at the end {os.getloadavg()[0]:.1f}"
    )


def versions() -> str:
    """Versions of what matters."""
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, timeout=20, check=False).stderr
    packages = ", ".join(f"{name} {metadata.version(name)}" for name in ("pyspark", "delta-spark"))
    return f"Python {platform.python_version()}, {packages}, Java {java.split(chr(34))[1] if chr(34) in java else '?'}"


def progress(text: str) -> None:
    """Say how far we are, on stderr: stdout is the report."""
    print(text, file=sys.stderr, flush=True)


def child(arguments: list[str]) -> None:
    """Run a part of the benchmark in a process of its own; its output is progress."""
    done = subprocess.run(
        [sys.executable, __file__, *arguments], stdout=sys.stderr, timeout=ARM_TIMEOUT_SECONDS, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(arguments)} ended with exit code {done.returncode}")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--dir", type=Path, help="work here and keep it; an existing base lake and results are used")
    parser.add_argument("--out", type=Path, help="write the report here as well")
    parser.add_argument("--arms", default=",".join(ARMS), help="which to run; results of the others are kept")
    parser.add_argument("--passes", type=int, default=2, choices=(1, 2))
    parser.add_argument("--seed", type=int, default=20261121)
    parser.add_argument("--fragmented", type=int, default=6)
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--healthy", type=int, default=2)
    parser.add_argument("--medium", type=int, default=1)
    parser.add_argument("--build", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--arm", choices=ARMS, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    """Build the lake, run the arms one after the other, print the report."""
    options = parse_arguments()
    size = FleetSize(options.fragmented, options.files, healthy=options.healthy, medium=options.medium)
    work = (options.dir or Path(tempfile.mkdtemp(prefix="maintainer-bench-"))).resolve()
    if options.build:
        spark, _ = start_spark(TUNED)
        build_fleet(spark, work / "building", size, options.seed)
        (work / "building").rename(work / "base")
        return
    if options.arm:
        result: Any = asdict(run_arm(options.arm, work, options.passes))
        (work / f"{options.arm}.json").write_text(json.dumps(result), encoding="utf-8")
        return

    work.mkdir(parents=True, exist_ok=True)
    common = ["--dir", str(work), "--passes", str(options.passes), "--seed", str(options.seed)]
    fleet = [f"--{name}={getattr(options, name)}" for name in ("fragmented", "files", "healthy", "medium")]
    if not (work / "base").exists():
        progress(f"building the tables in {work}")
        child(["--build", *common, *fleet])
    for arm in [arm for arm in options.arms.split(",") if arm]:
        progress(f"arm {arm}")
        child(["--arm", arm, *common])
    result_files = [work / f"{arm}.json" for arm in ARMS]
    results = [ArmResult(**json.loads(path.read_text(encoding="utf-8"))) for path in result_files if path.exists()]
    report = render(results, size, options.seed)
    print(report)
    if options.out:
        options.out.write_text(report, encoding="utf-8")


if __name__ == "__main__":
    main()
