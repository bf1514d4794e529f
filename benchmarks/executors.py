"""Bins on executors: small tables on a store, written by one driver alone and by executors, and what that costs it.

The server is versitygw on loopback (`make stores` builds it). Before it, each machine of a cluster has a way of its
own: 20 ms for each request and 10 MB/s (``process_relay``). All of them share the processors of the one real machine:
where these are the bound, and not the ways, seconds say nothing of a cluster, and the driver's own figures do.

The driver's CPU is that of its Python and of its JVM, start and commits included. What of it goes into reading, writing
and proving bins follows from two controls on a master of the same kind with two executors, which start, plan and commit
alike:

* processes beside the driver, which are not counted, write and prove the bins. Less the time of the tables' threads
  while they ask for bins and judge the answers, this is a run without bins;
* ``--no-spread``: the driver writes and proves them.

What the second takes beyond the first is what bins cost one driver. With executors, bins cost its Python the time of
the tables' threads while they ask and judge, of those of the jobs, and of the one that takes answers; and its JVM what
the jobs take, and what all threads take beyond the first control but those that serve the calls of tables: what these
do is the same in each arm, and differs more from run to run than bins cost.

    python benchmarks/executors.py --tables 40 --out benchmarks/results/executors.md
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import small_tables
from benchmarks.facts import peak_bytes
from benchmarks.optimize_loop import machine, progress, versions
from benchmarks.process_relay import Passed, process_relay
from benchmarks.store_arms import BUCKET, SETTINGS, StoreBench, store_bench
from tests.support.policies.projects import write_project

if TYPE_CHECKING:
    from multiprocessing.pool import Pool

    from maintainer.delta.rewrite.executors.executor_bins import AskedBin
    from maintainer.delta.rewrite.executors.executor_tasks import BinTask

POLICY = "vacuum: {retention: 7d}"
LIMIT_SECONDS = 1800
POLL_SECONDS = 0.5
TICKS = os.sysconf("SC_CLK_TCK")
STANDALONE = "standalone"
DRIVER_MEMORY, EXECUTOR_MEMORY = "1g", "700m"
ALONE = "one driver alone"
NO_BINS, NO_SPREAD = ", bins beside the driver", ", `--no-spread`"
"""What the names of the controls end with."""
MASTERS = {
    ALONE: "local[2]",
    "1 executor": "local-cluster[1,1,1024]",
    "2 executors": "local-cluster[2,1,1024]",
    f"2 executors{NO_BINS}": "local-cluster[2,1,1024]",
    f"2 executors{NO_SPREAD}": "local-cluster[2,1,1024]",
    "4 executors": "local-cluster[4,1,1024]",
    "standalone master, 1 worker": STANDALONE,
    "standalone master, 2 workers": STANDALONE,
    f"standalone master, 2 workers{NO_BINS}": STANDALONE,
    f"standalone master, 2 workers{NO_SPREAD}": STANDALONE,
    "standalone master, 4 workers": STANDALONE,
}
PYTHON, JVM, EXECUTORS = "driver's Python", "driver's JVM", "executors"
BY_BINS = ("write_bins", "prove_rewrite")
"""What of the driver reads, writes and proves bins, or lets executors do it."""
BESIDE = 2
"""Processes that write bins beside the driver."""


@dataclass(slots=True)
class Ran:
    """What one run took: CPU in seconds and peaks in bytes, of the driver's Python and JVM and of all executors."""

    master: str
    tables: int
    seconds: float = 0.0
    cpu_seconds: dict[str, float] = field(default_factory=dict)
    peak_bytes: dict[str, int] = field(default_factory=dict)
    of_threads: dict[int, tuple[str, float]] = field(default_factory=dict)
    """Of the driver's JVM: name and CPU."""
    spent: dict[str, float] = field(default_factory=dict)
    """What ``run_arm`` wrote down."""
    jobs: int = 0
    passed: Passed = field(default_factory=lambda: Passed(0))

    @property
    def driver_cpu(self) -> float:
        """Of the driver in all."""
        return sum(seconds for kind, seconds in self.cpu_seconds.items() if kind.startswith("driver"))

    @property
    def of_spark(self) -> float:
        """Seconds of the JVM's threads but its first one and those that serve Python's calls, of which jobs are."""
        own = (seconds for name, seconds in self.of_threads.values() if not name.startswith(("Thread-", "java")))
        return sum(own) + self.spent.get("jvm's jobs", 0.0)

    def of_bins(self, without: Ran) -> tuple[float, float]:
        """Seconds of the driver's CPU for bins, a table: of Python and JVM. ``without`` is the control without bins."""
        python = self.spent["python"]
        if self.master.endswith(NO_SPREAD):  # its libraries have threads of their own
            python = self.cpu_seconds[PYTHON] - without.cpu_seconds[PYTHON] + without.spent["python"]
        return python / self.tables, (self.of_spark - without.of_spark) / self.tables


def cpu_of(process: int) -> tuple[float, int]:
    """Return the CPU of a process in seconds, and its parent.

    Raises:
        OSError: It has ended.
    """
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS, int(fields[1])


def family_of(process: int) -> dict[int, float]:
    """Return a process and all below it, with the CPU of each."""
    everything: dict[int, tuple[float, int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                everything[int(entry.name)] = cpu_of(int(entry.name))
            except OSError:
                continue
    family, grown = {process}, True
    while grown:
        below = {one for one, (_, parent) in everything.items() if parent in family} - family
        family |= below
        grown = bool(below)
    return {one: everything[one][0] for one in family if one in everything}


def kind_of(process: int, driver: int) -> str:
    """Say what a process is: the driver's Python or JVM, or of an executor."""
    if process == driver:
        return PYTHON
    try:
        command = Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return ""
    if not command.split(b"\0")[0].endswith(b"java"):
        return EXECUTORS if b"pyspark.daemon" in command or b"pyspark/daemon" in command else ""
    return JVM if b"SparkSubmit" in command else EXECUTORS


def threads_of(process: int) -> Iterator[tuple[int, tuple[str, float]]]:
    """Yield the threads of a process, with name and CPU."""
    for folder in Path(f"/proc/{process}/task").iterdir():
        with suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            name = (folder / "comm").read_text().rstrip("\n")
            yield int(folder.name), (name, (int(fields[11]) + int(fields[12])) / TICKS)


@contextmanager
def watched(ran: Ran, driver: int, others: Sequence[int]) -> Iterator[None]:
    """Take the CPU and the peaks of a driver and of executors for the time of a block."""
    end, cpu, peaks, kinds = threading.Event(), dict[int, float](), dict[int, int](), dict[int, str]()

    def watch() -> None:
        while not end.wait(POLL_SECONDS):
            for root in (driver, *others):
                for process, seconds in family_of(root).items():
                    kinds[process] = kind_of(process, driver) or kinds.get(process, "")  # a script becomes its JVM
                    cpu[process] = seconds
                    peaks[process] = max(peaks.get(process, 0), peak_bytes(process))
                    if kinds[process] == JVM:
                        with suppress(OSError):
                            ran.of_threads.update(threads_of(process))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()
        for process, kind in kinds.items():
            if kind:
                ran.cpu_seconds[kind] = ran.cpu_seconds.get(kind, 0.0) + cpu[process]
                ran.peak_bytes[kind] = max(ran.peak_bytes.get(kind, 0), peaks[process])


@contextmanager
def spark_home(folder: Path) -> Iterator[Path]:
    """Links to Spark: executors of ``local-cluster`` work in folders below it."""
    import pyspark

    folder.mkdir(parents=True, exist_ok=True)
    for file in Path(pyspark.__file__).parent.iterdir():
        if file.name != "work" and not (folder / file.name).exists():
            (folder / file.name).symlink_to(file)
    yield folder


@contextmanager
def standalone(home: Path, env: dict[str, str], workers: int) -> Iterator[tuple[str, list[int]]]:
    """A master and workers of one core each; the master's address, and the workers' processes."""
    with ExitStack() as stack:

        def start(*arguments: str) -> subprocess.Popen[bytes]:
            with (home / f"{len(list(home.glob('*.out')))}.out").open("wb") as out:
                process = subprocess.Popen(
                    [str(home / "bin" / "spark-class"), *arguments], stdout=out, stderr=out, env=env
                )
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        deploy, port = "org.apache.spark.deploy", "17077"
        url = f"spark://127.0.0.1:{port}"
        start(f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", port, "--webui-port", "0")
        time.sleep(5)
        shape = ("--cores", "1", "--memory", "1g", "--webui-port", "0", "--host", "127.0.0.1")
        processes = [
            start(f"{deploy}.worker.Worker", *shape, "--work-dir", str(home / f"worker{number}"), url)
            for number in range(workers)
        ]
        time.sleep(5)
        yield url, [process.pid for process in processes]


def run(bench: StoreBench, lake: Path, name: str, ways: tuple[float, float], jobs: int) -> Ran:
    """Rewrite a copy of the tables with one master, and take what it costs."""
    prefix = "".join(letter if letter.isalnum() else "-" for letter in name)
    names = bench.upload(lake, prefix)
    ran = Ran(name, len(names), jobs=jobs)
    with ExitStack() as stack:
        home = stack.enter_context(spark_home(bench.work / "spark"))
        env = bench.environment() | {
            "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(ROOT),
        }  # fmt: skip
        master, workers = MASTERS[name], list[int]()
        if master == STANDALONE:
            master, workers = stack.enter_context(standalone(home, env, int(name.split()[2])))
        ran.passed = stack.enter_context(process_relay(bench.port, *ways))
        files = {f"policies/{one}.yml": f"table: s3://{BUCKET}/{prefix}/{one}\n{POLICY}\n" for one in names}
        settings = SETTINGS.format(url=f"http://127.0.0.1:{ran.passed.port}")
        project = write_project(bench.work / "projects" / prefix, {"maintainer.yml": settings, **files})
        taken = project / "cpu.json"
        arguments = ["--project", str(project), "apply", "--yes", "-o", "json", "-j", str(jobs), "--master", master]
        arguments += ["--conf", f"spark.executor.memory={EXECUTOR_MEMORY}"]
        arguments += ["--conf", f"spark.driver.memory={DRIVER_MEMORY}"]
        arguments += ["--no-spread"] * name.endswith(NO_SPREAD)
        arm = json.dumps([str(taken), name.endswith(NO_BINS), *arguments])
        command = [sys.executable, str(Path(__file__).resolve()), "--arm", arm]
        started = time.monotonic()
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=env
        )
        with watched(ran, process.pid, workers):
            output, errors = process.communicate(timeout=LIMIT_SECONDS)
        ran.seconds = time.monotonic() - started
        if process.returncode:
            failed = {json.dumps(table["error"]) for table in json.loads(output or '{"tables": []}')["tables"]}
            raise SystemExit(f"{name} ended with exit code {process.returncode}: {failed}\n{errors[-3000:]}")
        _check_spread(name, json.loads(output))
        ran.spent = json.loads(taken.read_text())
    bench.remove(prefix)
    progress(f"{name}, {ran.tables} tables, -j {jobs}: {ran.seconds:.1f} s, {ran.cpu_seconds}, {ran.peak_bytes}")
    progress(f"{ran.passed.ways}, {ran.spent}")
    by_name = defaultdict[str, float](float)
    for thread, seconds in ran.of_threads.values():
        by_name[thread.rstrip("0123456789-")] += seconds
    progress(
        ", ".join(
            f"{thread}: {seconds:.1f}" for thread, seconds in sorted(by_name.items(), key=lambda named: -named[1])[:24]
        )
    )
    return ran


def _check_spread(name: str, results: dict[str, Any]) -> None:
    """Stop where the bins were not written where this arm says."""
    uses = [
        use["reason"].endswith("; on an executor")
        for table in results["tables"] for step in table["steps"] for commit in step["commits"]
        for use in (commit["proof"] or {}).get("lanes", [])
    ]  # fmt: skip
    if not uses or any(use is (name == ALONE or name.endswith(NO_SPREAD)) for use in uses):
        raise SystemExit(f"{name}: {sum(uses)} of {len(uses)} kinds of bins were written on executors")


def run_arm(taken: Path, beside: bool, arguments: list[str]) -> int:
    """Run ``maintainer`` in this process, and write down the CPU of its threads for bins.

    Args:
        taken: Where.
        beside: Executors do no bins: processes of this script do.
        arguments: Of ``maintainer``.
    """
    from maintainer.cli.main import run
    from maintainer.delta.engine import table_engine
    from maintainer.delta.rewrite.executors import executor_bins
    from maintainer.delta.rewrite.executors.executor_bins import SharedJobs

    adding, spent = threading.Lock(), defaultdict[str, float](float)

    def measured(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def called(*of_job: Any) -> Any:  # noqa: ANN401
            own = time.thread_time()
            try:
                return function(*of_job)
            finally:
                with adding:
                    spent[name] += time.thread_time() - own

        return called

    for name in BY_BINS:
        setattr(table_engine, name, measured("python", getattr(table_engine, name)))
    run_job = SharedJobs._run

    def job_run(jobs: SharedJobs, context: Any, job: Any) -> None:  # noqa: ANN401
        threads = context._jvm.java.lang.management.ManagementFactory.getThreadMXBean()
        before, own = threads.getCurrentThreadCpuTime(), time.thread_time()
        run_job(jobs, context, job)
        with adding:
            spent["python"] += time.thread_time() - own
            spent["jvm's jobs"] += (threads.getCurrentThreadCpuTime() - before) / 1e9
            spent["jobs"] += 1
            spent["tasks"] += len(job.bins)

    SharedJobs._run = job_run  # type: ignore[method-assign, assignment]
    with ExitStack() as stack:
        if beside:
            pool = stack.enter_context(get_context("spawn").Pool(BESIDE))
            executor_bins._lack = lambda context: None
            SharedJobs.ask = partial(_asked_beside, pool)  # type: ignore[method-assign]
        code = run(arguments)
        for thread in threading.enumerate():
            # Those of the pool and of Spark's accumulators, which send and take.
            if any(name in thread.name for name in ("_handle_", "serve_forever")) and thread.native_id is not None:
                spent["python"] += dict(threads_of(os.getpid()))[thread.native_id][1]
    taken.write_text(json.dumps(spent), encoding="utf-8")
    return code


def _asked_beside(pool: Pool, context: object, task: BinTask, check: object) -> AskedBin:
    """Have a process beside this one write and prove a bin."""
    from maintainer.delta.rewrite.executors.executor_bins import AskedBin
    from maintainer.delta.rewrite.executors.executor_tasks import _attempt

    return AskedBin(task, pool.apply(_attempt, (task,)))


def render(rows: Sequence[Ran], lake_bytes: int, options: argparse.Namespace) -> str:
    """Return the report as Markdown."""
    base = rows[0]
    lines = [
        "# Bins on executors", "",
        f"{datetime.now(UTC):%Y-%m-%d}, {machine()}, shared by all processes. Seed {options.seed}.",
        f"{versions()}. {options.tables} tables of {options.files} files of {options.rows:,} rows, "
        f"{lake_bytes / 2**20:.0f} MiB; {options.delay_ms:g} ms a request and {options.rate:g} MB/s for each machine; "
        f"`-j {options.jobs}`.", "",
        "| | seconds | driver's CPU: Python, JVM | executors' CPU | driver's peak: Python, JVM "
        "| driver's bytes of data files a table | of those of one driver | requests: driver, executors |",
        "|" + "---|" * 8,
    ]  # fmt: skip
    whole = base.passed.total("data_bytes", of_driver=True)
    for ran in rows:
        own = ran.passed.total("data_bytes", of_driver=True)
        cpu, peak = ran.cpu_seconds, ran.peak_bytes
        lines.append(
            f"| {ran.master} | {ran.seconds:.0f} s "
            f"| {cpu.get(PYTHON, 0):.1f} s, {cpu.get(JVM, 0):.1f} s | {cpu.get(EXECUTORS, 0):.1f} s "
            f"| {peak.get(PYTHON, 0) >> 20} MiB, {peak.get(JVM, 0) >> 20} MiB | {own / ran.tables / 2**10:,.0f} KiB "
            f"| {own / whole:.1%} | {ran.passed.total('requests', of_driver=True):,}, "
            f"{ran.passed.total('requests', of_driver=False):,} |"
        )
    by_name = {ran.master: ran for ran in rows}
    for kind in ("2 executors", "standalone master, 2 workers"):
        if {kind + NO_BINS, kind + NO_SPREAD} <= by_name.keys():
            alike = [
                ran for ran in rows if ran.master != ALONE and (MASTERS[ran.master] == STANDALONE) is ("," in kind)
            ]
            lines += _of_bins(alike, by_name[kind + NO_BINS], by_name[kind + NO_SPREAD])
    return "\n".join(lines) + "\n"


def _of_bins(rows: Sequence[Ran], without: Ran, by_driver: Ran) -> list[str]:
    """Return what bins cost the driver on masters of one kind."""
    whole_bins = sum(by_driver.of_bins(without))
    lines = ["", "| | driver's CPU for bins, a table: Python, JVM | of one driver's | bins a job |", "|" + "---|" * 4]
    for ran in rows:
        if ran is without:
            continue
        of_python, of_jvm = ran.of_bins(without)
        jobs, tasks = ran.spent.get("jobs", 0), ran.spent.get("tasks", 0)
        lines.append(
            f"| {ran.master} | {1000 * (of_python + of_jvm):.0f} ms: {1000 * of_python:.0f}, {1000 * of_jvm:.0f} "
            f"| {(of_python + of_jvm) / whole_bins:.1%} | {tasks / jobs if jobs else 0:.1f} |"
        )
    return lines


def main() -> None:
    """Build the tables, run each master, print the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--rows", type=int, default=small_tables.ROWS_A_FILE)
    parser.add_argument("--delay-ms", type=float, default=20.0)
    parser.add_argument("--rate", type=float, default=10.0, help="MB/s of each machine")
    parser.add_argument("--jobs", type=int, default=16)
    parser.add_argument("--master", action="append", choices=MASTERS, help="beside the driver alone; more than once")
    parser.add_argument("--out", type=Path, help="write the report here as well")
    parser.add_argument("--seed", type=int, default=20261129)
    parser.add_argument("--arm", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.arm:
        taken, beside, *arguments = options.arm
        sys.exit(run_arm(Path(taken), beside, arguments))
    first, *others = MASTERS
    chosen = [first, *(name for name in others if name in (options.master or others))]
    ways = (options.delay_ms, options.rate)
    with (
        tempfile.TemporaryDirectory(prefix="maintainer-bench-") as folder,
        store_bench(Path(folder), [0.0], None) as bench,
    ):
        lake = bench.work / "lake"
        small_tables.build(lake, options.tables, options.files, options.seed, options.rows)
        lake_bytes = sum(path.stat().st_size for path in lake.rglob("*.parquet"))
        bench.warm_up()
        rows = [run(bench, lake, name, ways, options.jobs) for name in chosen]
    report = render(rows, lake_bytes, options)
    print(report)
    if options.out:
        options.out.write_text(report, encoding="utf-8")


if __name__ == "__main__":
    main()
