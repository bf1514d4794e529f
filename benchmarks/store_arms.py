"""What `stores.py` runs: tables on an S3 server behind relays, `maintainer` on them, and delta-rs on the same.

Each arm is one whole process, started cold. All of its requests go through a relay on loopback, also with no delay, so
that they can be counted.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.optimize_loop import progress
from benchmarks.small_tables import watched
from tests.support.policies.projects import write_project
from tests.support.stores.connector_jars import folder_with_connector
from tests.support.stores.counting_relay import CountingRelay, Request, counting_relay
from tests.support.stores.store_servers import NotInstalled, versitygw

if TYPE_CHECKING:
    from deltalake import DeltaTable

ROOT = Path(__file__).resolve().parents[1]
BUCKET, KEY, SECRET = "lake", "key", "secret"
ARM_TIMEOUT_SECONDS = 2 * 3600
UPLOADS_ABREAST = 16
AGE_SECONDS = 3600
"""So old are the objects of a table when an arm meets it: it was not written to a moment ago."""

SETTINGS = """\
spark:
  conf:
    spark.hadoop.fs.s3a.endpoint: {url}
    spark.hadoop.fs.s3a.endpoint.region: us-east-1
    spark.hadoop.fs.s3a.path.style.access: true
    spark.hadoop.fs.s3a.access.key: ${{env:S3_ACCESS_KEY}}
    spark.hadoop.fs.s3a.secret.key: ${{env:S3_SECRET_KEY}}
"""
MARK = "mark-between-two-looks"


@dataclass(frozen=True, slots=True)
class Measured:
    """What one process took, and what it asked the store for. ``output`` is what it printed.

    ``programs`` are those that it ran, itself among them, each with the largest resident bytes of one process.
    """

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    programs: Mapping[str, int]
    requests: tuple[Request, ...]
    output: str

    @property
    def has_jvm(self) -> bool:
        """Whether a JVM was started."""
        return "java" in self.programs

    @property
    def counted(self) -> Counter[str]:
        """How many requests of each kind."""
        return Counter(request.kind for request in self.requests)

    @property
    def most_reads_of_a_commit(self) -> int:
        """How often the commit file that was read most was read."""
        commits = Counter(
            request.name
            for request in self.requests
            if request.kind == "GET" and "/_delta_log/" in request.name and request.name.endswith(".json")
        )
        return max(commits.values(), default=0)


@dataclass(frozen=True)
class StoreBench:
    """A server with one bucket, a relay before it for each delay, and a folder to work in.

    Attributes:
        folder: Where the server keeps the bucket's objects, as files.
        jobs: The number of tables at once that `maintainer` is given; None leaves it to its own default.
    """

    work: Path
    folder: Path
    port: int
    relays: Mapping[float, CountingRelay]
    jobs: int | None

    @property
    def delays(self) -> tuple[float, ...]:
        """The delays in milliseconds, in the order in which they were asked for."""
        return tuple(self.relays)

    def upload(self, lake: Path, prefix: str) -> list[str]:
        """Put the tables of a folder below a prefix, data before the log, and return their names."""
        import obstore
        from obstore.store import S3Store

        client = S3Store(
            BUCKET, endpoint=f"http://127.0.0.1:{self.port}", region="us-east-1", access_key_id=KEY,
            secret_access_key=SECRET, client_options={"allow_http": True},
        )  # fmt: skip

        def put(path: Path) -> None:
            name = f"{prefix}/{path.relative_to(lake).as_posix()}"
            obstore.put(client, name, path.read_bytes())
            moment_ns = path.stat().st_mtime_ns - AGE_SECONDS * 10**9
            os.utime(self.folder / name, ns=(moment_ns, moment_ns))

        files = sorted(path for path in lake.rglob("*") if path.is_file())
        logs = [path for path in files if path.parent.name == "_delta_log"]
        with ThreadPoolExecutor(UPLOADS_ABREAST) as pool:
            for part in ([path for path in files if path.parent.name != "_delta_log"], logs):
                list(pool.map(put, part))
        return sorted(path.name for path in lake.iterdir())

    def remove(self, prefix: str) -> None:
        """Forget all that lies below a prefix."""
        shutil.rmtree(self.folder / prefix)

    def project(self, prefix: str, names: Sequence[str], policy: str, delay_ms: float) -> Path:
        """Write a project with a policy for each table; its state lies on this machine's disk."""
        files = {f"policies/{name}.yml": f"table: s3://{BUCKET}/{prefix}/{name}\n{policy}\n" for name in names}
        settings = SETTINGS.format(url=self.relays[delay_ms].url)
        return write_project(self.work / "projects" / prefix, {"maintainer.yml": settings, **files})

    def ruled_project(self, prefix: str, policy: str, delay_ms: float) -> Path:
        """Write a project whose one rule manages all tables below a prefix."""
        settings = SETTINGS.format(url=self.relays[delay_ms].url) + f"roots: [s3://{BUCKET}/{prefix}]\n"
        rule = f"match: {{tables: ['*']}}\nmanage: true\n{policy}\n"
        return write_project(
            self.work / "projects" / f"{prefix}-{delay_ms:g}", {"maintainer.yml": settings, "policies/lake.yml": rule}
        )

    def maintainer(self, project: Path, delay_ms: float, *arguments: str) -> Measured:
        """Run a command of `maintainer`."""
        jobs = () if self.jobs is None else ("-j", str(self.jobs))
        command = ("-m", "maintainer", "--project", str(project), *arguments, *jobs)
        return self._measured(command, delay_ms, f"maintainer {' '.join(arguments[:2])}")

    def look_twice(self, project: Path, delay_ms: float) -> Measured:
        """Run `maintainer status` twice in one process; the requests are those of the second.

        `plan` alone forgets what it read, as nothing follows it.
        """
        mark = f"{self.relays[delay_ms].url}/{BUCKET}/{MARK}"
        done = self._measured(
            _own({"work": "look twice", "project": str(project), "mark": mark}), delay_ms, "maintainer status, twice"
        )
        marks = [number for number, request in enumerate(done.requests) if request.name.endswith(MARK)]
        if len(marks) != 1:
            raise SystemExit(f"the mark between two looks was asked for {len(marks)} times")
        second = done.requests[marks[0] + 1 :]
        return Measured(done.seconds, done.cpu_seconds, done.peak_bytes, done.programs, second, done.output)

    def delta_rs(self, work: str, prefix: str, names: Sequence[str], delay_ms: float, threads: int) -> Measured:
        """Let delta-rs do one of ``WORKS`` to tables, in threads of one process."""
        asked = {
            "work": work, "threads": threads, "tables": [f"s3://{BUCKET}/{prefix}/{name}" for name in names],
            "options": storage_options(self.relays[delay_ms].url),
        }  # fmt: skip
        return self._measured(_own(asked), delay_ms, f"delta-rs {work}, {threads} threads")

    def num_files(self, prefix: str, names: Sequence[str]) -> int:
        """Return how many live files the tables have together, as delta-rs reads them."""
        from deltalake import DeltaTable

        options = storage_options(f"http://127.0.0.1:{self.port}")
        uris = [f"s3://{BUCKET}/{prefix}/{name}" for name in names]
        return sum(len(DeltaTable(uri, storage_options=options).file_uris()) for uri in uris)

    def warm_up(self) -> None:
        """Let a first run on this machine fetch and keep what later ones find, as `doctor --warm` does in an image."""
        from benchmarks.small_tables import build

        build(self.work / "warm", 1, 2, 0, rows_a_file=10)
        names = self.upload(self.work / "warm", "warm")
        project = self.project("warm", names, "optimize: {}", self.delays[0])
        self.maintainer(project, self.delays[0], "doctor", "--warm")
        self.maintainer(project, self.delays[0], "apply", "--yes")

    def _measured(self, command: Sequence[str], delay_ms: float, what: str) -> Measured:
        os.sync()
        relay = self.relays[delay_ms]
        relay.clear()
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        process = subprocess.Popen(
            (sys.executable, *command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
            env=self.environment(),
        )  # fmt: skip
        with watched(process.pid) as family:
            output, errors = process.communicate(timeout=ARM_TIMEOUT_SECONDS)
        seconds, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
        if process.returncode != 0:
            raise SystemExit(f"{what} ended with exit code {process.returncode}:\n{output}\n{errors}")
        cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        requests = tuple(relay.requests())
        progress(f"{what}, {delay_ms:g} ms: {seconds:.1f} s, {cpu:.1f} s of CPU, {len(requests)} requests")
        return Measured(seconds, cpu, family.peak_bytes, family.programs, requests, output)

    def environment(self) -> dict[str, str]:
        """What a process needs to reach the server, and to find the connector.

        Modules are compiled once, as in an installed package: a variable that forbids it costs each run two seconds.
        """
        left_out = ("AWS_", "PYTHONDONTWRITEBYTECODE")
        own = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
        home = {"MAINTAINER_HOME": str(self.work / "machine"), "MAINTAINER_JARS": folder_with_connector("s3")}
        return {**own, **home, "S3_ACCESS_KEY": KEY, "S3_SECRET_KEY": SECRET}


@contextmanager
def store_bench(work: Path, delays_ms: Sequence[float], jobs: int | None) -> Iterator[StoreBench]:
    """Start the server and the relays for the time of a block."""
    with ExitStack() as stack:
        try:
            port = stack.enter_context(versitygw(work / "server", BUCKET, KEY, SECRET))
        except NotInstalled as error:
            raise SystemExit(f"versitygw is needed, and no other server takes its place: {error}") from error
        relays = {
            delay_ms: stack.enter_context(counting_relay(port, work / f"{delay_ms:g}.requests", delay_ms=delay_ms))
            for delay_ms in delays_ms
        }
        yield StoreBench(work, work / "server" / BUCKET, port, relays, jobs)


def storage_options(url: str) -> dict[str, str]:
    """Return what delta-rs needs to reach the server."""
    return {
        "AWS_ENDPOINT_URL": url, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
    }  # fmt: skip


def tables_at_once(project: Path) -> int:
    """Return how many tables the newest run of a project worked on at once, at most."""
    newest = max((project / ".maintainer" / "runs").glob("*/results.json"), key=lambda path: path.stat().st_mtime)
    moments: list[tuple[float, int]] = []
    for table in json.loads(newest.read_text(encoding="utf-8"))["tables"]:
        steps = [step for step in table["steps"] if step["duration_seconds"]]
        if steps:
            moments.append((steps[0]["started_at_ms"], 1))
            moments.append((steps[-1]["started_at_ms"] + steps[-1]["duration_seconds"] * 1000, -1))
    at_once = most = 0
    for _, change in sorted(moments):  # at one moment an end comes before a start
        at_once += change
        most = max(most, at_once)
    return max(most, 1)


def _own(asked: Mapping[str, Any]) -> tuple[str, ...]:
    return (str(ROOT / "benchmarks" / "stores.py"), "--arm", json.dumps(asked))


def run_own(asked: Mapping[str, Any]) -> None:
    """Do in this process what an arm asks for."""
    if asked["work"] == "look twice":
        _look_twice(asked["project"], asked["mark"])
        return
    from deltalake import DeltaTable

    work = WORKS[asked["work"]]
    with ThreadPoolExecutor(asked["threads"]) as pool:
        list(pool.map(lambda uri: work(DeltaTable(uri, storage_options=asked["options"])), asked["tables"]))


def _look_twice(project: str, mark: str) -> None:
    from maintainer.cli.main import run

    for turn in ("first", "second"):
        if code := run(["--project", project, "status"]):
            raise SystemExit(f"the {turn} look ended with exit code {code}")
        if turn == "first":
            with suppress(OSError):  # it is not there, and nobody may read it: the relay has it in its list
                urllib.request.urlopen(mark, timeout=60).close()


def _compact_and_vacuum(table: DeltaTable) -> None:
    table.optimize.compact(target_size=256 << 20)
    table.vacuum(retention_hours=168, dry_run=False)


WORKS: dict[str, Callable[[DeltaTable], object]] = {
    "compact, vacuum": _compact_and_vacuum,
    "vacuum": lambda table: table.vacuum(retention_hours=168, dry_run=False),
    "look": lambda table: table.get_add_actions(),
}
"""What delta-rs does to a table."""
