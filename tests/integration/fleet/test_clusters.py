"""The same command beyond one process: on a standalone cluster, by itself and by ``spark-submit``, on a local one."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.product import check_versions, jar_folder, needed_jars
from tests.support.suites.package_path import PACKAGE_PATH
from tests.support.tables.sick_tables import make_table, rows_and_files

pytestmark = [pytest.mark.spark, pytest.mark.long]

TABLES = ("a",)
SMALL = ["--conf", "spark.executor.memory=700m", "--conf", "spark.driver.memory=1g"]


def free_port() -> int:
    """A port that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True)
class Cluster:
    """A running master, where it tells of itself, and the folder below which its two workers work."""

    url: str
    ui_port: int
    folder: Path

    def state(self) -> dict[str, Any]:
        """What the master knows of its workers and applications."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ui_port}/json/", timeout=5) as answer:
            document: dict[str, Any] = json.load(answer)
            return document

    def workers_of(self, name: str) -> set[str]:
        """The workers that ran executors of applications of a name; waits until the master knows of their end."""
        until = time.monotonic() + 30
        while time.monotonic() < until and not any(
            finished["name"] == name for finished in self.state()["completedapps"]
        ):
            time.sleep(0.3)
        ids = {str(finished["id"]) for finished in self.state()["completedapps"] if finished["name"] == name}
        return {path.parent.name for path in self.folder.glob("work*/app-*") if path.name in ids}

    def wait_for_workers(self, number: int, seconds: float = 60) -> None:
        """Wait until so many workers are there."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                if self.state()["aliveworkers"] == number:
                    return
            except OSError:
                pass
            time.sleep(0.3)
        raise AssertionError(f"no {number} workers within {seconds} s")


def spark_home() -> Path:
    """Spark as pyspark brings it."""
    import pyspark

    return Path(pyspark.__file__).parent


@contextmanager
def process(log: Path, *command: str) -> Iterator[None]:
    """A process that runs meanwhile, in a group of its own, so that what it starts ends with it."""
    environment = {**os.environ, "SPARK_HOME": str(spark_home()), "SPARK_LOCAL_IP": "127.0.0.1"}
    with (
        log.open("wb") as out,
        subprocess.Popen(command, stdout=out, stderr=out, env=environment, start_new_session=True) as child,
    ):
        try:
            yield
        finally:
            os.killpg(child.pid, 15)
            try:
                child.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, 9)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A real master and two workers of one core each."""
    folder = tmp_path_factory.mktemp("cluster")
    port, ui_port = free_port(), free_port()
    start = str(spark_home() / "bin" / "spark-class")
    deploy = "org.apache.spark.deploy"
    started = Cluster(f"spark://127.0.0.1:{port}", ui_port, folder)
    with ExitStack() as running:
        master = ("--host", "127.0.0.1", "--port", str(port), "--webui-port", str(ui_port))
        running.enter_context(process(folder / "master.log", start, f"{deploy}.master.Master", *master))
        started.wait_for_workers(0)
        for number in (1, 2):
            size = ("--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", str(folder / f"work{number}"))
            worker = (start, f"{deploy}.worker.Worker", *size, started.url)
            running.enter_context(process(folder / f"worker{number}.log", *worker))
        started.wait_for_workers(2)
        yield started


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Tables of small files with a policy each."""
    (tmp_path / "policies").mkdir()
    # What is checked after a commit takes longest, and is tested elsewhere; the proof before it is made.
    checks = "defaults:\n  verify: {rowCount: log, content: 'off', files: false}\n  optimize: {lanes: [spark]}\n"
    (tmp_path / "maintainer.yml").write_text(f"version: 1\n{checks}", encoding="utf-8")
    for name in TABLES:
        make_table(tmp_path / "lake" / name, 4)
        (tmp_path / "policies" / f"{name}.yml").write_text(f"version: 1\ntable: ./lake/{name}\n", encoding="utf-8")
    return tmp_path


def run_command(project: Path, *command: str, **environment: str) -> dict[str, Any]:
    """Run a command that applies, and return its result; it must end well and leave the rows as they were."""
    variables = {**os.environ, "PYTHONPATH": PACKAGE_PATH, "PYSPARK_PYTHON": sys.executable, **environment}
    ran = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=420, env=variables, check=False)
    assert ran.returncode == 0, (ran.stdout[-1000:], ran.stderr[-4000:])
    for name in TABLES:
        assert rows_and_files(project / "lake" / name) == (list(range(40)), 1)
    result: dict[str, Any] = json.loads(ran.stdout)
    assert [table["status"] for table in result["tables"]] == ["done"] * len(TABLES)
    return result


def apply(project: Path, *options: str, **environment: str) -> dict[str, Any]:
    """``maintainer apply`` in a process of its own."""
    command = (sys.executable, "-m", "maintainer", "apply", "--yes", "-j", "2", "-o", "json", *SMALL, *options)
    return run_command(project, *command, **environment)


@pytest.mark.timeout(450)
def test_a_standalone_cluster_of_two_workers(project: Path, cluster: Cluster) -> None:
    apply(project, "--master", cluster.url)
    assert cluster.workers_of("maintainer") == {"work1", "work2"}


@pytest.mark.timeout(450)
def test_spark_submit(project: Path, cluster: Cluster) -> None:
    job = project / "job.py"
    job.write_text(
        "import sys\n"
        "from pyspark.sql import SparkSession\n"
        "from maintainer.cli.main import run\n"
        "spark = SparkSession.builder.getOrCreate()\n"
        "code = run(['apply', '--yes', '-o', 'json'])\n"
        "spark.stop()\n"
        "sys.exit(code)\n",
        encoding="utf-8",
    )
    jars = ",".join(str(jar_folder() / jar.file_name) for jar in needed_jars(check_versions()))
    settings = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.app.name": "submitted",
        "spark.executor.memory": "700m",
        "spark.driver.extraClassPath": jars.replace(",", os.pathsep),
    }
    conf = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    submit = str(spark_home() / "bin" / "spark-submit")
    run_command(project, submit, "--master", cluster.url, "--jars", jars, *conf, str(job))
    assert cluster.workers_of("submitted") == {"work1", "work2"}


@pytest.mark.timeout(450)
def test_a_local_cluster_of_two_executors(project: Path, tmp_path: Path) -> None:
    # Its executors work in folders below SPARK_HOME, so that is one of our own, of links to the real one.
    home = tmp_path / "spark"
    home.mkdir()
    for file in spark_home().iterdir():
        if file.name != "work":
            (home / file.name).symlink_to(file)
    apply(project, "--master", "local-cluster[2,1,1024]", SPARK_HOME=str(home), SPARK_LOCAL_IP="127.0.0.1")
    (application,) = (home / "work").glob("app-*")
    logs = [(application / attempt / "stderr").read_text(encoding="utf-8", errors="replace") for attempt in ("0", "1")]
    # One bin is one task, and its proof reads the files in the driver: which executor gets it is chance.
    assert any("Finished task" in log for log in logs)
