"""Bins on the executors of a real Spark: several tables, each with a fault of its own, in one run and the next one."""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.fs
import pyspark
import pytest

from tests.support.faults.executor_faults import jobs_of, plant
from tests.support.stores.connector_jars import folder_with_connector
from tests.support.stores.s3_projects import ENVIRONMENT, SETTINGS, store_of
from tests.support.stores.s3_server import S3Server, s3_server
from tests.support.stores.sick_store import ALWAYS, Fault, FaultRule
from tests.support.suites.package_path import PACKAGE_PATH
from tests.support.tables.sick_tables import make_table, rows_and_files

pytestmark = [pytest.mark.spark, pytest.mark.nightly, pytest.mark.timeout(1_500)]

ROOT = Path(__file__).resolve().parents[2]
PIP = f"{shlex.quote(sys.executable)} -m pip"
TABLES = ("again", "clean", "forged", "full", "killed", "lost", "slow")
OF_A_STORE = ("late", "refused", "unanswered", "unfetched")
"""More tables there: three whose first attempt meets a sick store, and one whose copies find a full disk."""


@dataclass(frozen=True)
class Project:
    """A folder with policies, whose tables lie in it or on an S3 server; they are read by engines that are not ours."""

    root: Path
    server: S3Server | None

    @property
    def tables(self) -> tuple[str, ...]:
        return TABLES if self.server is None else TABLES + OF_A_STORE

    @property
    def options(self) -> dict[str, str] | None:
        return None if self.server is None else self.server.options

    def address(self, name: str) -> str:
        """As its policy names it."""
        return f"./lake/{name}" if self.server is None else f"s3://lake/{name}"

    def uri(self, name: str) -> str:
        return str(self.root / "lake" / name) if self.server is None else self.address(name)

    def write(self, policies: dict[str, str]) -> None:
        """A policy for each table, by its name."""
        (self.root / "policies").mkdir()
        settings = "" if self.server is None else SETTINGS.partition("\n")[2].format(url=self.server.url)
        checks = "defaults:\n  verify: {content: 'off'}\n"
        (self.root / "maintainer.yml").write_text(f"version: 1\n{checks}{settings}", encoding="utf-8")
        for name, more in policies.items():
            policy = f"version: 1\ntable: {self.address(name)}\n{more}"
            (self.root / "policies" / f"{name}.yml").write_text(policy, encoding="utf-8")

    def rows_and_files(self, name: str) -> tuple[list[int], int]:
        return rows_and_files(self.uri(name), self.options)

    def live(self, name: str) -> str:
        """The address of its only file."""
        (live,) = deltalake.DeltaTable(self.uri(name), storage_options=self.options).file_uris()
        return live

    def strays(self, *names: str) -> set[str]:
        """What lies below tables and is in no version of theirs."""
        found = set()
        for name in names:
            files, folder = pyarrow.fs.LocalFileSystem(), str(self.root / "lake")
            if self.server is not None:
                files, folder = store_of(self.server), "lake"
            below = files.get_file_info(pyarrow.fs.FileSelector(f"{folder}/{name}", recursive=True))
            log = b"".join(files.open_input_stream(one.path).read() for one in below if one.path.endswith(".json"))
            data = [one for one in below if one.is_file and f"/{name}/_delta_log/" not in one.path]
            # Spark writes a checksum beside a file of a disk.
            found |= {
                one.base_name for one in data
                if one.base_name.removeprefix(".").removesuffix(".crc").encode() not in log
            }  # fmt: skip
        return found

    def put(self, name: str, file: str) -> None:
        """What somebody wrote below a table."""
        if self.server is not None:
            self.server.put(f"/lake/{name}/{file}", b"late")
        else:
            (self.root / "lake" / name / file).write_bytes(b"late")

    def written_first(self, name: str) -> set[str]:
        """What the first attempt at a table asked the server to write."""
        assert self.server is not None
        asked = (path for method, path, _ in self.server.faults.requests if method == "PUT")
        return {path.rpartition("/")[2] for path in asked if path.startswith(f"/lake/{name}/part-") and "-a0-" in path}


@pytest.fixture(params=["disk", "s3"])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Project]:
    with nullcontext() if request.param == "disk" else s3_server("lake") as server:
        yield Project(tmp_path, server)


@pytest.fixture
def sick(project: Project) -> Project:
    """With a table for each fault. The limit is longer than two executors take to start, with the JARs of a store."""
    limit = "90s" if project.server is None else "200s"
    project.write({**dict.fromkeys(project.tables, ""), "slow": f"limits: {{timeout: {limit}}}\n"})
    for name in project.tables:
        make_table(project.uri(name), 4, options=project.options)
    return project


def spark_home(folder: Path) -> Path:
    """Links to Spark: executors of ``local-cluster`` work in folders below it."""
    folder.mkdir()
    for file in Path(pyspark.__file__).parent.iterdir():
        if file.name != "work":
            (folder / file.name).symlink_to(file)
    return folder


def apply(project: Project, home: Path, *options: str, **environment: str) -> tuple[int, dict[str, Any], str]:
    """``maintainer apply`` on two executors; returns the exit code, the results by table, and what was said."""
    sizes = ("--conf", "spark.executor.memory=600m", "--conf", "spark.driver.memory=1g")
    command = (sys.executable, "-m", "maintainer", "apply", "--yes", "-j", "11", "-o", "json", *sizes, *options)
    variables = {**os.environ, "PYTHONPATH": PACKAGE_PATH, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
    if project.server is not None:
        variables |= {**ENVIRONMENT, "MAINTAINER_JARS": folder_with_connector("s3")}
    ran = subprocess.run(
        command, cwd=project.root, capture_output=True, text=True, timeout=1_000, env={**variables, **environment},
        check=False,
    )  # fmt: skip
    tables = {Path(table["policy_file"]).stem: table for table in json.loads(ran.stdout)["tables"]}
    return ran.returncode, tables, ran.stderr


def lanes(table: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [
        (use["lane"], use["prover"], use["reason"])
        for step in table["steps"]
        for commit in step["commits"]
        for use in commit["proof"]["lanes"]
    ]


def late_paths(table: dict[str, Any]) -> list[str]:
    """What its commit says that attempts may yet write."""
    (commit,) = table["steps"][0]["commits"]
    return list(commit["proof"]["late_paths"])


def make_store_sick(server: S3Server) -> FaultRule:
    """Faults of what first attempts write; returns the one whose object lands when it is released."""
    first = "-a0-c000.snappy.parquet"
    full = ("507 Insufficient Storage", "InsufficientStorage", "There is no room.")
    late = server.faults.add(FaultRule(Fault.LATE, "PUT", "/late/", first, seconds=900))
    server.faults.add(FaultRule(Fault.LOST_REQUEST, "PUT", "/late/", first, times=ALWAYS))
    server.faults.add(FaultRule(Fault.LOST_ANSWER, "PUT", "/refused/", first))
    server.faults.add(FaultRule(Fault.REFUSES, "PUT", "/refused/", first, times=ALWAYS, answer=full))
    server.faults.add(FaultRule(Fault.LOST_ANSWER, "PUT", "/unanswered/", first, times=ALWAYS))
    return late


def check_first_attempts_on_the_store(project: Project, tables: dict[str, Any]) -> None:
    """What the store took of attempts that do not count was there once; why they do not count, each says."""
    for name in ("again", "killed", "lost", "refused", "unanswered"):
        assert len(project.written_first(name)) == 1, name
    reasons = {name: [(lane, reason) for lane, _, reason in lanes(tables[name])] for name in OF_A_STORE}
    for name, begins, says in (
        ("late", "an executor could not write it: s3://lake: ", "PUT"),
        ("unanswered", "an executor could not write it: s3://lake: ", "PUT"),
        ("refused", "its new file cannot be stored: s3://lake: ", "507 Insufficient Storage"),
        ("unfetched", "its files cannot be fetched: ", ": No space left on device"),
    ):
        ((lane, reason),) = reasons[name]
        assert (lane, reason.startswith(begins), says in reason) == ("spark", True, True), (name, reason)


@pytest.mark.timeout(1_500)
def test_each_fault_costs_its_bin_and_no_row_and_leaves_no_file(sick: Project, tmp_path: Path) -> None:
    """All bins in one job: one kills its executor, one its worker each time, one never ends, one finds a full disk."""
    names, all_rows = sick.tables, list(range(40))
    home, faults = spark_home(tmp_path / "spark"), plant(tmp_path / "faults", len(names))
    path = os.pathsep.join([str(faults), str(ROOT)])
    late = None if sick.server is None else make_store_sick(sick.server)
    code, tables, said = apply(sick, home, "--master", "local-cluster[2,1,1024]", PYTHONPATH=path)
    assert code == 5, said
    assert {name: table["status"] for name, table in tables.items()} == {
        **dict.fromkeys(names, "done"), "forged": "verify_failed", "slow": "failed",
    }, said  # fmt: skip
    assert jobs_of(faults) == [len(names)], "what two attempts were lost of is not tried again"
    assert tables["slow"]["steps"][-1]["error"]["code"] == "C711"
    assert tables["forged"]["steps"][-1]["error"]["code"] == "V501"
    assert {name: sick.rows_and_files(name) for name in names} == {
        **dict.fromkeys(names, (all_rows, 1)), **dict.fromkeys(("forged", "slow"), (all_rows, 4)),
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
        assert "-a0-" not in sick.live(name), "a later attempt counts, under a name of its own"
    # The attempt at this one may end after it was given up.
    assert sick.strays(*(name for name in names if name != "slow")) == set()

    assert late_paths(tables["clean"]) == []
    if late is not None:
        check_first_attempts_on_the_store(sick, tables)
    check_the_next_run(sick, tables, late)


def check_the_next_run(sick: Project, tables: dict[str, Any], late: FaultRule | None) -> None:
    """Attempts that nobody waits for any more write after all: the next run finds that by recorded names alone."""
    come_late = {"lost": late_paths(tables["lost"])[0]}
    sick.put("lost", come_late["lost"])
    if late is not None:
        late.released.set()
        assert late.done.wait(30)
        (come_late["late"],) = sick.written_first("late")
        assert come_late["late"] in late_paths(tables["late"])
    bystanders = {name: f"{file}.of-somebody-else.parquet" for name, file in come_late.items()}
    for name, file in bystanders.items():
        sick.put(name, file)
        assert sick.strays(name) == {file, come_late[name]}
    chosen = [option for name in (*come_late, "slow") for option in ("-s", sick.address(name))]
    code, tables, said = apply(sick, Path(pyspark.__file__).parent, "--master", "local[2]", *chosen)
    assert {name: table["status"] for name, table in tables.items()} == {
        **dict.fromkeys(come_late, "up_to_date"), "slow": "done"
    }, said  # fmt: skip
    assert (code, sick.strays(*sick.tables)) == (0, set(bystanders.values())), said
    events = "".join(path.read_text(encoding="utf-8") for path in sick.root.glob(".maintainer/runs/*/events.jsonl"))
    assert all(f"wrote is gone: 1 file, such as {file}" in events for file in come_late.values())
    assert [sick.rows_and_files(name) for name in tables] == [(list(range(40)), 1)] * len(tables)
    if sick.server is None:
        (sick.root / "lake" / "lost" / bystanders["lost"]).unlink()


def archive(folder: Path) -> Path:
    """The archive of clusters.md, made by its command, of this package."""
    page = (ROOT / "docs" / "clusters.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^\$ (pip install --target lib .* && tar -czf maintainer\.tgz .*)$", page, re.MULTILINE)
    command = re.sub(r"^pip|'maintainer(?=\[)", lambda of: PIP if of[0] == "pip" else f"'{ROOT}", command)
    made = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True, timeout=500, check=False)
    assert made.returncode == 0, made.stderr[-3000:]
    return folder / "maintainer.tgz"


@pytest.mark.timeout(1_500)
@pytest.mark.parametrize("project", ["disk"], indirect=True)
def test_the_archive_brings_the_package_and_without_it_the_run_says_so_once(sick: Project, tmp_path: Path) -> None:
    """Executors have a Python that does not know the package, and a search path of their own."""
    bare = str(Path(sys.base_prefix) / "bin" / "python3")
    assert subprocess.run(
        [bare, "-E", "-c", "import maintainer"], cwd=tmp_path, capture_output=True, check=False
    ).returncode
    home, master = spark_home(tmp_path / "spark"), ("--master", "local-cluster[2,1,1024]")
    brought = ("--conf", f"spark.archives={archive(tmp_path)}#maintainer")
    found = ("--conf", "spark.executorEnv.PYTHONPATH=maintainer")
    code, tables, said = apply(sick, home, *master, *brought, *found, "-s", "lake/clean", PYSPARK_PYTHON=bare)
    assert code == 0, said
    assert [(lane, prover) for lane, prover, _ in lanes(tables["clean"])] == [("local", "DuckDB")]
    assert lanes(tables["clean"])[0][2].endswith("; on an executor"), said
    code, tables, said = apply(sick, home, *master, *found, "-s", "lake/again", "-s", "lake/full", PYSPARK_PYTHON=bare)
    assert code == 0, said
    assert said.count("none on executors: ModuleNotFoundError: No module named 'maintainer'") == 1, said
    for name in ("again", "full"):
        assert [reason for _, _, reason in lanes(tables[name]) if "on an executor" in reason] == []
        assert sick.rows_and_files(name) == (list(range(40)), 1)


def test_row_groups_are_copied_there_and_rows_put_in_an_order(project: Project, tmp_path: Path) -> None:
    project.write({"copied": "", "ordered": "optimize: {zorder: {columns: [k], mode: full}}\n"})
    options, noise = project.options, random.Random(7)
    for first in (0, 9_000):
        ids = list(range(first, first + 9_000))  # 9 MB, which no codec makes less
        rows = pa.table({"id": ids, "noise": [noise.randbytes(1_024) for _ in ids]})
        deltalake.write_deltalake(project.uri("copied"), rows, mode="append", storage_options=options)
    make_table(project.uri("ordered"), 4, options=options)
    code, tables, said = apply(project, spark_home(tmp_path / "spark"), "--master", "local-cluster[2,1,1024]")
    assert code == 0, said
    used = {name: lanes(tables[name]) for name in ("copied", "ordered")}
    assert {name: [use[:2] for use in uses] for name, uses in used.items()} == {
        "copied": [("copy", "column chunks")], "ordered": [("local", "DuckDB")],
    }, said  # fmt: skip
    assert all(reason.endswith("; on an executor") for uses in used.values() for *_, reason in uses)
    assert project.rows_and_files("copied") == (list(range(18_000)), 1)
    assert project.rows_and_files("ordered") == (list(range(40)), 1)
    in_order = deltalake.DeltaTable(project.uri("ordered"), storage_options=options).to_pyarrow_table()
    assert in_order["k"].to_pylist() == sorted(number % 3 for number in range(40))
    assert project.strays("copied", "ordered") == set()


def test_on_request_the_tasks_of_this_machine_do_it(sick: Project, tmp_path: Path) -> None:
    """A local master tries a task once: one that is lost fails its job, whose other bins then go alone."""
    chosen = ("again", "clean", "lost")
    faults = plant(tmp_path / "faults", len(chosen))
    options = [option for name in chosen for option in ("-s", sick.address(name))]
    home, path = Path(pyspark.__file__).parent, os.pathsep.join([str(faults), str(ROOT)])
    code, tables, said = apply(sick, home, "--master", "local[2]", "--spread", *options, PYTHONPATH=path)
    assert code == 0, said
    assert jobs_of(faults)[0] == len(chosen)
    assert set(jobs_of(faults)[1:]) == {1}
    used = {name: lanes(tables[name])[0] for name in chosen}
    assert all(used[name][2].endswith("; on an executor") for name in ("again", "clean")), used
    assert (used["lost"][0], used["lost"][2][:18]) == ("spark", "its task was lost:")
    assert all(sick.rows_and_files(name) == (list(range(40)), 1) for name in chosen)
    assert sick.strays(*chosen) == set()
