"""Bins on executors: small tables on a store, written by one driver alone and by executors, and what that costs it.

The server is versitygw on loopback (`make stores` builds it). Before it, each machine of a cluster has a way of its
own: 20 ms for each request and 10 MB/s (``process_relay``). All of them share the processors of the one real machine:
where these are the bound, and not the ways, seconds say nothing of a cluster, and the driver's own figures do.

The driver's CPU is that of its Python and of its JVM, start and commits included. What of it goes into reading, writing
and proving bins is, with executors, that of the run's own threads:

* of Python, the threads of tables while they ask for bins and judge the answers, those of the jobs, and the one that
  takes answers;
* of the JVM, the threads of the jobs and all of Spark's own: scheduler, messages, results, files for executors;
* of Java's compilers and collector, the part that these are of the JVM's other CPU.

Of one driver alone it is the CPU of both processes while bins are written and proven in a run of one table at a time
(``--alone-tables``): its libraries have threads of their own. The first table, in which the JVM starts, is left out.

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
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import small_tables
from benchmarks.facts import peak_bytes
from benchmarks.optimize_loop import machine, progress, versions
from benchmarks.process_relay import Passed, process_relay
from benchmarks.store_arms import BUCKET, SETTINGS, StoreBench, store_bench
from tests.support.policies.projects import write_project

POLICY = "vacuum: {retention: 7d}"
LIMIT_SECONDS = 1800
POLL_SECONDS = 0.25
TICKS = os.sysconf("SC_CLK_TCK")
STANDALONE = "standalone"
DRIVER_MEMORY, EXECUTOR_MEMORY = "1g", "700m"
MASTERS = {
    "one driver alone": "local[2]",
    "1 executor": "local-cluster[1,1,1024]",
    "2 executors": "local-cluster[2,1,1024]",
    "4 executors": "local-cluster[4,1,1024]",
    "standalone master, 1 worker": STANDALONE,
    "standalone master, 2 workers": STANDALONE,
    "standalone master, 4 workers": STANDALONE,
}
PYTHON, JVM, EXECUTORS = "driver's Python", "driver's JVM", "executors"
BY_BINS = ("write_bins", "prove_rewrite")
"""What of the driver reads, writes and proves bins, or lets executors do it."""
COMPILERS = ("C1 CompilerThre", "C2 CompilerThre", "GC Thread", "G1 ", "VM Thread", "Sweeper thread", "VM Periodic")
SPARKS = (
    "dag-scheduler", "dispatcher", "task-result", "rpc-", "netty", "shuffle", "block-manager", "driver-heartb",
    "heartbeat", "context-cleaner", "Spark", "spark", "broadcast", "files-", "map-output", "element-track", "serve",
    "appclient", "executor-", "kill-executor", "task-scheduler", "Timer-", "task-starvation",
)  # fmt: skip
"""How the names of the JVM's threads begin, as far as Linux keeps them."""


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
    def of_bins(self) -> dict[str, float]:
        """Seconds of the driver's CPU for bins, a table, and what they are of."""
        if self.master == "one driver alone":
            return {"both processes": self.spent["windows"] / max(1, self.spent["measured"])}
        compilers, sparks, others = 0.0, 0.0, 0.0
        for name, seconds in self.of_threads.values():
            if name.startswith(COMPILERS):
                compilers += seconds
            elif name.startswith(SPARKS):
                sparks += seconds
            else:
                others += seconds
        own = sparks + self.spent["jvm's jobs"]
        parts = {"Python": self.spent["python"], "jobs": self.spent["jvm's jobs"], "Spark": sparks}
        parts["compilers"] = compilers * own / max(sparks + others, 0.01)
        return {name: seconds / self.tables for name, seconds in parts.items()}


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


def run(bench: StoreBench, lake: Path, name: str, ways: tuple[float, float], tables: int | None, jobs: int) -> Ran:
    """Rewrite a copy of the tables with one master, and take what it costs."""
    prefix = f"{name}-{tables}-{jobs}".replace(" ", "-").replace(",", "")
    names = bench.upload(lake, prefix)[:tables]
    ran = Ran(name, len(names), jobs=jobs)
    with ExitStack() as stack:
        home = stack.enter_context(spark_home(bench.work / "spark"))
        env = bench.environment() | {
            "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(ROOT),
        }  # fmt: skip
        master, workers = MASTERS[name], list[int]()
        if master == STANDALONE:
            master, workers = stack.enter_context(standalone(home, env, int(name.split()[-2])))
        ran.passed = stack.enter_context(process_relay(bench.port, *ways))
        files = {f"policies/{one}.yml": f"table: s3://{BUCKET}/{prefix}/{one}\n{POLICY}\n" for one in names}
        settings = SETTINGS.format(url=f"http://127.0.0.1:{ran.passed.port}")
        project = write_project(bench.work / "projects" / prefix, {"maintainer.yml": settings, **files})
        taken = project / "cpu.json"
        arguments = ["--project", str(project), "apply", "--yes", "-o", "json", "-j", str(jobs), "--master", master]
        arguments += ["--conf", f"spark.executor.memory={EXECUTOR_MEMORY}"]
        arguments += ["--conf", f"spark.driver.memory={DRIVER_MEMORY}"]
        command = [sys.executable, str(Path(__file__).resolve()), "--arm", json.dumps([str(taken), *arguments])]
        started = time.monotonic()
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=env
        )
        with watched(ran, process.pid, workers):
            output, errors = process.communicate(timeout=LIMIT_SECONDS)
        ran.seconds = time.monotonic() - started
        if process.returncode:
            raise SystemExit(f"{name} ended with exit code {process.returncode}:\n{output[-2000:]}\n{errors[-3000:]}")
        _check_spread(name, json.loads(output))
        ran.spent = json.loads(taken.read_text())
    bench.remove(prefix)
    progress(f"{name}, {ran.tables} tables, -j {jobs}: {ran.seconds:.1f} s, {ran.cpu_seconds}, {ran.peak_bytes}")
    progress(f"{ran.passed.ways}, {ran.spent}, {ran.of_bins}")
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
    if not uses or any(use is (MASTERS[name] == MASTERS["one driver alone"]) for use in uses):
        raise SystemExit(f"{name}: {sum(uses)} of {len(uses)} kinds of bins were written on executors")


def run_arm(taken: Path, arguments: list[str]) -> int:
    """Run ``maintainer`` in this process, and write down the CPU of the driver for bins."""
    from maintainer.cli.main import run
    from maintainer.delta.engine import table_engine
    from maintainer.delta.rewrite.executors.shared_jobs import SharedJobs

    adding, spent = threading.Lock(), defaultdict[str, float](float)
    windows: dict[str, list[float]] = {name: [] for name in BY_BINS}

    def add(name: str, seconds: float) -> None:
        with adding:
            spent[name] += seconds

    def measured(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def called(*of_job: Any) -> Any:  # noqa: ANN401
            before, own = _driver_cpu(), time.thread_time()
            try:
                return function(*of_job)
            finally:
                windows[name].append(_driver_cpu() - before)
                add("python", time.thread_time() - own)

        return called

    run_job = SharedJobs._run

    def job_run(jobs: SharedJobs, context: Any, job: Any) -> None:  # noqa: ANN401
        own = time.thread_time()
        threads = context._jvm.java.lang.management.ManagementFactory.getThreadMXBean()
        before = threads.getCurrentThreadCpuTime()
        run_job(jobs, context, job)
        add("jvm's jobs", (threads.getCurrentThreadCpuTime() - before) / 1e9)
        add("python", time.thread_time() - own)
        add("jobs", 1)
        add("tasks", len(job.bins))
        for thread in threading.enumerate():
            if "serve_forever" in thread.name and thread.native_id is not None:
                spent["answers"] = dict(threads_of(os.getpid()))[thread.native_id][1]

    for name in BY_BINS:
        setattr(table_engine, name, measured(name, getattr(table_engine, name)))
    SharedJobs._run = job_run  # type: ignore[method-assign, assignment]
    code = run(arguments)
    spent["python"] += spent["answers"]
    # Within the first table the JVM and the executors start.
    spent["windows"] = sum(sum(each[1:]) for each in windows.values())
    spent["measured"] = len(windows[BY_BINS[0]]) - 1
    taken.write_text(json.dumps(spent), encoding="utf-8")
    return code


def _driver_cpu(jvms: list[int] = []) -> float:  # noqa: B006 (found once: a look at all processes is not free)
    own = os.getpid()
    jvms.extend([] if jvms else [one for one in family_of(own) if kind_of(one, own) == JVM])
    return time.process_time() + sum(cpu_of(one)[0] for one in jvms)


def render(rows: Sequence[Ran], alone: Ran, lake_bytes: int, options: argparse.Namespace) -> str:
    """Return the report as Markdown."""
    base = rows[0]
    lines = [
        "# Bins on executors", "",
        f"{datetime.now(timezone.utc):%Y-%m-%d}, {machine()}, shared by all processes. Seed {options.seed}.",
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
    whole_bins = sum(alone.of_bins.values())
    lines += ["", "| | driver's CPU for bins, a table | of one driver's | of it | bins a job |", "|" + "---|" * 5]
    for ran in (alone, *rows[1:]):
        parts, spent = ran.of_bins, ran.spent
        lines.append(
            f"| {ran.master}{', one table at a time' * (ran is alone)} | {1000 * sum(parts.values()):.0f} ms "
            f"| {sum(parts.values()) / whole_bins:.1%} "
            f"| {', '.join(f'{name} {1000 * seconds:.1f}' for name, seconds in parts.items())} ms "
            f"| {spent.get('tasks', 0) / max(1, spent.get('jobs', 0)):.1f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Build the tables, run each master, print the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--alone-tables", type=int, default=10, help="tables that are rewritten one at a time")
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
        taken, *arguments = options.arm
        sys.exit(run_arm(Path(taken), arguments))
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
        rows = [run(bench, lake, name, ways, None, options.jobs) for name in chosen]
        alone = run(bench, lake, first, ways, options.alone_tables, 1)
    report = render(rows, alone, lake_bytes, options)
    print(report)
    if options.out:
        options.out.write_text(report, encoding="utf-8")


if __name__ == "__main__":
    main()
