"""Bins on the executors of a real Spark: several tables, each with a fault of its own, in one run and the next one."""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest

from tests.support.suites.package_path import PACKAGE_PATH
from tests.support.tables.sick_tables import make_table, rows_and_files

# Faults of bins that executors write, by the name of a table: planted in the Python of executors by a `sitecustomize`,
# which in the driver's Python holds bins back until so many of them wait, and writes down how many each job has.
SITECUSTOMIZE = '''
import importlib.abc, importlib.util, os, signal, sys, time

TASKS = "maintainer.delta.rewrite.executors.executor_tasks"
JOBS = "maintainer.delta.rewrite.executors.executor_bins"
FOLDER = os.path.dirname(__file__)


def executor_of(process):
    """The Java process above a Python of an executor."""
    while True:
        with open(f"/proc/{process}/cmdline", "rb") as file:
            if b"CoarseGrainedExecutorBackend" in file.read():
                return process
        with open(f"/proc/{process}/stat") as file:
            process = int(file.read().rpartition(")")[2].split()[1])


def plant(module):
    write, answer = module.write_in_process, module._answer
    from maintainer.delta.rewrite.local import local_lane
    write_local = local_lane.write_local

    def local(rows, target):
        if "/forged/" in target.path:
            rows = (batch.slice(1) for batch in rows)
        return write_local(rows, target)

    def in_process(work, place):
        if work.where.endswith("/full"):
            with open(place.path(work.table.uri(work.path())), "wb") as file:
                file.write(b"half")
            raise OSError(28, "No space left on device")
        return write(work, place)

    def answered(task, work, here, attempt):
        found = answer(task, work, here, attempt)
        if work.where.endswith("/killed") and attempt == 0:
            os.kill(executor_of(os.getpid()), signal.SIGKILL)
            time.sleep(60)
        if work.where.endswith("/again") and attempt == 0 or work.where.endswith("/lost"):
            os._exit(3)
        if work.where.endswith("/slow"):
            time.sleep(500)
        return found

    local_lane.write_local, module.write_in_process, module._answer = local, in_process, answered


def gather(module):
    with open(os.path.join(FOLDER, "together")) as file:
        together = int(file.read())
    send, run = module.SharedJobs._send, module.SharedJobs._run

    def sent(jobs, context):
        if jobs._jobs or jobs._sent or len(jobs._waiting) >= together or gather.done:
            gather.done = True
            send(jobs, context)

    def ran(jobs, context, job):
        with open(os.path.join(FOLDER, "jobs"), "a") as file:
            file.write(f"{len(job.bins)}\\n")
        run(jobs, context, job)

    module.SharedJobs._send, module.SharedJobs._run = sent, ran


gather.done = False
PLANTED = {TASKS: plant} if "pyspark.daemon" in sys.orig_argv else {JOBS: gather}


class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if (planted := PLANTED.pop(name, None)) is None:
            return None
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module

        def executed(module):
            execute(module)
            planted(module)

        spec.loader.exec_module = executed
        return spec


sys.meta_path.insert(0, Finder())
'''


def plant(folder: Path, together: int) -> Path:
    """Write the module that plants the faults and waits for so many bins, and return its folder."""
    folder.mkdir()
    (folder / "together").write_text(str(together), encoding="utf-8")
    (folder / "sitecustomize.py").write_text(SITECUSTOMIZE, encoding="utf-8")
    return folder


def jobs_of(folder: Path) -> list[int]:
    """How many bins each job had."""
    return [int(line) for line in (folder / "jobs").read_text(encoding="utf-8").split()]


pytestmark = [pytest.mark.spark, pytest.mark.nightly, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]
PIP = f"{shlex.quote(sys.executable)} -m pip"
TABLES = ("again", "clean", "forged", "full", "killed", "lost", "slow")


def spark_home(folder: Path) -> Path:
    """Links to Spark: executors of ``local-cluster`` work in folders below it."""
    folder.mkdir()
    for file in Path(pyspark.__file__).parent.iterdir():
        if file.name != "work":
            (folder / file.name).symlink_to(file)
    return folder


def write_project(folder: Path, policies: dict[str, str]) -> None:
    """A project with a policy for each table, by its name."""
    (folder / "policies").mkdir()
    checks = "defaults:\n  verify: {content: 'off'}\n"
    (folder / "maintainer.yml").write_text(f"version: 1\n{checks}", encoding="utf-8")
    for name, more in policies.items():
        policy = f"version: 1\ntable: ./lake/{name}\n{more}"
        (folder / "policies" / f"{name}.yml").write_text(policy, encoding="utf-8")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write_project(tmp_path, {**dict.fromkeys(TABLES, ""), "slow": "limits: {timeout: 90s}\n"})
    for name in TABLES:
        make_table(tmp_path / "lake" / name, 4)
    return tmp_path


def apply(project: Path, home: Path, *options: str, **environment: str) -> tuple[int, dict[str, Any], str]:
    """``maintainer apply`` on two executors; returns the exit code, the results by table, and what was said."""
    sizes = ("--conf", "spark.executor.memory=600m", "--conf", "spark.driver.memory=1g")
    command = (sys.executable, "-m", "maintainer", "apply", "--yes", "-j", "7", "-o", "json", *sizes, *options)
    variables = {**os.environ, "PYTHONPATH": PACKAGE_PATH, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
    ran = subprocess.run(
        command, cwd=project, capture_output=True, text=True, timeout=580, env={**variables, **environment}, check=False
    )
    tables = {Path(table["policy_file"]).stem: table for table in json.loads(ran.stdout)["tables"]}
    return ran.returncode, tables, ran.stderr


def lanes(table: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [
        (use["lane"], use["prover"], use["reason"])
        for step in table["steps"]
        for commit in step["commits"]
        for use in commit["proof"]["lanes"]
    ]


def strays(table: Path) -> set[str]:
    """Data files on the disk that no version of the table has."""
    log = "".join(path.read_text(encoding="utf-8") for path in (table / "_delta_log").glob("*.json"))
    return {path.name for path in table.rglob("*.parquet") if path.parent.name != "_delta_log" and path.name not in log}


def test_each_fault_costs_its_bin_and_no_row_and_leaves_no_file(project: Path, tmp_path: Path) -> None:
    """All bins in one job: one kills its executor, one its worker each time, one never ends, one finds a full disk."""
    home, faults = spark_home(tmp_path / "spark"), plant(tmp_path / "faults", len(TABLES))
    path = os.pathsep.join([str(faults), str(ROOT)])
    lake = project / "lake"
    code, tables, said = apply(project, home, "--master", "local-cluster[2,1,1024]", PYTHONPATH=path)
    assert code == 5, said
    assert {name: table["status"] for name, table in tables.items()} == {
        **dict.fromkeys(TABLES, "done"), "forged": "verify_failed", "slow": "failed",
    }, said  # fmt: skip
    assert jobs_of(faults) == [len(TABLES)], "what two attempts were lost of is not tried again"
    assert tables["slow"]["steps"][-1]["error"]["code"] == "C711"
    assert tables["forged"]["steps"][-1]["error"]["code"] == "V501"
    assert {name: rows_and_files(lake / name) for name in TABLES} == {
        **dict.fromkeys(TABLES, (list(range(40)), 1)), **dict.fromkeys(("forged", "slow"), (list(range(40)), 4)),
    }  # fmt: skip
    used = {name: lanes(tables[name]) for name in TABLES if name not in ("forged", "slow")}
    for name in ("again", "clean", "killed"):
        ((lane, prover, reason),) = used[name]
        assert (lane, prover, reason.endswith("; on an executor")) == ("local", "DuckDB", True), name
    assert [(lane, reason) for lane, _, reason in used["lost"]] == [
        ("spark", "its task was lost: 2 attempts ended without an answer")
    ]
    (full,) = used["full"]
    assert full[::2] == ("spark", "an executor could not write it: [Errno 28] No space left on device")
    for name in ("again", "killed"):
        (live,) = deltalake.DeltaTable(str(lake / name)).file_uris()
        assert "-a0-" not in live, "a later attempt counts, under a name of its own"
    left = {name: strays(lake / name) for name in TABLES}
    assert {name for name in TABLES if left[name]} <= {"slow"}, "its attempt may end after it was given up"

    # An attempt that nobody waits for any more writes after all: the next run finds it by its recorded name alone.
    (commit,) = tables["lost"]["steps"][0]["commits"]
    assert tables["clean"]["steps"][0]["commits"][0]["proof"]["late_paths"] == []
    late = lake / "lost" / commit["proof"]["late_paths"][0]
    for path in (late, bystander := late.with_name(f"{late.name}.of-somebody-else.parquet")):
        path.write_bytes(b"late")
    code, tables, said = apply(
        project, Path(pyspark.__file__).parent, "--master", "local[2]", "-s", "lake/lost", "-s", "lake/slow"
    )
    assert (code, tables["lost"]["status"], strays(lake / "lost")) == (0, "up_to_date", {bystander.name}), said
    assert (tables["slow"]["status"], strays(lake / "slow")) == ("done", set())
    events = "".join(path.read_text(encoding="utf-8") for path in project.glob(".maintainer/runs/*/events.jsonl"))
    assert f"wrote is gone: 1 file, such as {late.name}" in events
    bystander.unlink()


def archive(folder: Path) -> Path:
    """The archive of clusters.md, made by its command, of this package."""
    page = (ROOT / "docs" / "clusters.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^\$ (pip install --target lib .* && tar -czf maintainer\.tgz .*)$", page, re.MULTILINE)
    command = re.sub(r"^pip|'maintainer(?=\[)", lambda of: PIP if of[0] == "pip" else f"'{ROOT}", command)
    made = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True, timeout=500, check=False)
    assert made.returncode == 0, made.stderr[-3000:]
    return folder / "maintainer.tgz"


@pytest.mark.timeout(900)
def test_the_archive_brings_the_package_and_without_it_the_run_says_so_once(project: Path, tmp_path: Path) -> None:
    """Executors have a Python that does not know the package, and a search path of their own."""
    bare = str(Path(sys.base_prefix) / "bin" / "python3")
    assert subprocess.run(
        [bare, "-E", "-c", "import maintainer"], cwd=tmp_path, capture_output=True, check=False
    ).returncode
    home, master = spark_home(tmp_path / "spark"), ("--master", "local-cluster[2,1,1024]")
    brought = ("--conf", f"spark.archives={archive(tmp_path)}#maintainer")
    found = ("--conf", "spark.executorEnv.PYTHONPATH=maintainer")
    code, tables, said = apply(project, home, *master, *brought, *found, "-s", "lake/clean", PYSPARK_PYTHON=bare)
    assert code == 0, said
    assert [(lane, prover) for lane, prover, _ in lanes(tables["clean"])] == [("local", "DuckDB")]
    assert lanes(tables["clean"])[0][2].endswith("; on an executor"), said
    code, tables, said = apply(
        project, home, *master, *found, "-s", "lake/again", "-s", "lake/full", PYSPARK_PYTHON=bare
    )
    assert code == 0, said
    assert said.count("none on executors: ModuleNotFoundError: No module named 'maintainer'") == 1, said
    for name in ("again", "full"):
        assert [reason for _, _, reason in lanes(tables[name]) if "on an executor" in reason] == []
        assert rows_and_files(project / "lake" / name) == (list(range(40)), 1)


def test_row_groups_are_copied_there_and_rows_put_in_an_order(tmp_path: Path) -> None:
    write_project(tmp_path, {"copied": "", "ordered": "optimize: {zorder: {columns: [k], mode: full}}\n"})
    lake, noise = tmp_path / "lake", random.Random(7)
    for first in (0, 9_000):
        ids = list(range(first, first + 9_000))  # 9 MB, which no codec makes less
        rows = pa.table({"id": ids, "noise": [noise.randbytes(1_024) for _ in ids]})
        deltalake.write_deltalake(str(lake / "copied"), rows, mode="append")
    make_table(lake / "ordered", 4)
    code, tables, said = apply(tmp_path, spark_home(tmp_path / "spark"), "--master", "local-cluster[2,1,1024]")
    assert code == 0, said
    used = {name: lanes(tables[name]) for name in ("copied", "ordered")}
    assert {name: [use[:2] for use in uses] for name, uses in used.items()} == {
        "copied": [("copy", "column chunks")], "ordered": [("local", "DuckDB")],
    }, said  # fmt: skip
    assert all(reason.endswith("; on an executor") for uses in used.values() for *_, reason in uses)
    assert rows_and_files(lake / "copied") == (list(range(18_000)), 1)
    assert rows_and_files(lake / "ordered") == (list(range(40)), 1)
    (live,) = deltalake.DeltaTable(str(lake / "ordered")).file_uris()
    assert pq.ParquetFile(live).read()["k"].to_pylist() == sorted(number % 3 for number in range(40))
    assert strays(lake / "copied") | strays(lake / "ordered") == set()


def test_on_request_the_tasks_of_this_machine_do_it(project: Path, tmp_path: Path) -> None:
    """A local master tries a task once: one that is lost fails its job, whose other bins then go alone."""
    chosen = ("again", "clean", "lost")
    faults = plant(tmp_path / "faults", len(chosen))
    options = [option for name in chosen for option in ("-s", f"lake/{name}")]
    home, path = Path(pyspark.__file__).parent, os.pathsep.join([str(faults), str(ROOT)])
    code, tables, said = apply(project, home, "--master", "local[2]", "--spread", *options, PYTHONPATH=path)
    assert code == 0, said
    assert jobs_of(faults)[0] == len(chosen)
    assert set(jobs_of(faults)[1:]) == {1}
    used = {name: lanes(tables[name])[0] for name in chosen}
    assert all(used[name][2].endswith("; on an executor") for name in ("again", "clean")), used
    assert (used["lost"][0], used["lost"][2][:18]) == ("spark", "its task was lost:")
    assert all(rows_and_files(project / "lake" / name) == (list(range(40)), 1) for name in chosen)
    assert set().union(*(strays(project / "lake" / name) for name in chosen)) == set()
