"""`apply` with its state on an S3 server: any machine settles a killed run, and a wiped checkout forgets nothing.

The table lies on a disk that all machines share, each of which has a home and a checkout of its own. What the runs
left on the store is copied and compared by the checker of truth.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.support.checker.contradictions import assert_truth
from tests.support.policies.projects import write_project
from tests.support.product import LEASE_SECONDS, jar_folder
from tests.support.stores.s3_projects import ENVIRONMENT, SETTINGS, fetch_state, store_of
from tests.support.stores.s3_server import S3Server, s3_server

pytestmark = [pytest.mark.spark, pytest.mark.nightly, pytest.mark.timeout(1800)]

SECONDS = 500
EVERY_DAY = "optimize: {every: 1d, when: {minSmallFiles: 2}}"


@dataclass(frozen=True)
class Machines:
    """A lake on a shared disk, a server with the state, and any number of machines."""

    root: Path
    server: S3Server
    state: str
    """``BUCKET/FOLDER``; the objects of a server outlive it, so each test has one of its own."""

    @property
    def table(self) -> Path:
        """The table's folder."""
        return self.root / "lake" / "t"

    def append(self, num_files: int) -> None:
        """Write commits of ten rows each."""
        first = 10 * len(DeltaTable(self.table).file_uris()) if self.table.exists() else 0
        for number in range(num_files):
            ids = range(first + number * 10, first + number * 10 + 10)
            write_deltalake(self.table, pa.table({"id": pa.array(ids)}), mode="append")

    def rows(self) -> Counter[int]:
        """The rows as another engine reads them."""
        return Counter(DeltaTable(self.table).to_pyarrow_table()["id"].to_pylist())

    def checkout(self, name: str, policy: str = EVERY_DAY, table: str = "lake/t") -> Path:
        """Make a project in a folder of its own, as a job checks it out."""
        settings = SETTINGS.replace("lake/_maintainer", self.state).format(url=self.server.url)
        policies = {"policies/t.yml": f"table: {self.root / table}\n{policy}\n"}
        return write_project(self.root / name, {"maintainer.yml": settings, **policies})

    def start(self, machine: str, *command: str) -> subprocess.Popen[str]:
        """Start a command on a machine that has the JARs; what it remembers lies in its home."""
        home = {"MAINTAINER_HOME": str(self.root / machine), "MAINTAINER_JARS": str(jar_folder())}
        return subprocess.Popen(
            (sys.executable, "-m", *command), env={**os.environ, **ENVIRONMENT, **home},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(self, machine: str, project: Path, *arguments: str) -> Done:
        """Run a command of maintainer on a machine."""
        return ended(self.start(machine, "maintainer", "--project", str(project), *arguments))

    def kill(self, machine: str, project: Path, point: str) -> str:
        """Apply on a machine that dies at a point, lose its disk, and return the run's id."""
        victim = ended(self.start(machine, "tests.support.faults.killed_apply", str(project), point))
        assert victim.code == -signal.SIGKILL, victim.err[-3000:]
        shutil.rmtree(self.root / machine)
        shutil.rmtree(project)
        (run,) = {
            state_object.path.split("/")[3] for state_object in self.objects(".jsonl") if "/runs/" in state_object.path
        }
        return str(run)

    def objects(self, part: str) -> list[Any]:
        """The objects of the state whose names have a part in them."""
        from pyarrow.fs import FileSelector

        listed = store_of(self.server).get_file_info(FileSelector(self.state, recursive=True))
        return [file for file in listed if file.is_file and part in file.path]

    def document(self, path: str) -> Any:
        """A document of the state."""
        with store_of(self.server).open_input_stream(path) as stream:
            return json.loads(stream.read())

    def assert_truth(self) -> Path:
        """Copy the state, and compare everything in it with the table and with what `history` says."""
        copy = self.root / "copy"
        fetch_state(self.server, self.state, copy / ".maintainer")
        assert_truth(copy, below=self.root)
        return copy / ".maintainer"


@dataclass(frozen=True)
class Done:
    """What a command ended with and printed."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Its output as JSON."""
        assert self.out, self.err
        return json.loads(self.out)

    @property
    def steps(self) -> list[tuple[str, str]]:
        """Kind and status of each step on the table."""
        return [(step["kind"], step["status"]) for step in self._steps]

    @property
    def planned_kinds(self) -> list[str]:
        """Kind of each step that a plan has for the table."""
        return [step["kind"] for step in self._steps]

    @property
    def _steps(self) -> list[Any]:
        tables = [table for table in self.document["tables"] if table["ref"]["identifier"].endswith("lake/t")]
        return [step for table in tables for step in table["steps"]]


def ended(process: subprocess.Popen[str]) -> Done:
    out, err = process.communicate(timeout=SECONDS)
    return Done(process.returncode, out, err)


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    with s3_server("lake") as server:
        yield Machines(tmp_path, server, f"lake/{tmp_path.name}")


@pytest.mark.parametrize("point", ["compact landed", "first intent"])
def test_an_empty_machine_settles_what_a_killed_one_left(machines: Machines, point: str) -> None:
    machines.append(6)
    rows, before = machines.rows(), DeltaTable(machines.table).version()
    dead = machines.kill("machine-a", machines.checkout("checkout-a"), point)
    has_landed = point == "compact landed"
    assert DeltaTable(machines.table).version() - before == has_landed
    # Nobody takes the lease of a dead machine before it ends, and nobody waits longer than that.
    (lease,) = machines.objects("/leases/")
    ends_seconds = machines.document(lease.path)["expires_at_ms"] / 1000
    assert ends_seconds - time.time() < LEASE_SECONDS
    time.sleep(max(0, ends_seconds - time.time()))
    done = machines.run("machine-b", machines.checkout("elsewhere/checkout-b"), "apply", "--yes", "-o", "json")
    assert (done.code, done.steps) == (0, [] if has_landed else [("compact", "succeeded")]), done.err
    assert (len(DeltaTable(machines.table).file_uris()), machines.rows()) == (1, rows)
    assert DeltaTable(machines.table).version() == before + 1
    history = machines.run("machine-c", machines.checkout("checkout-c"), "history", "--ours", "-o", "json").document
    by_dead = [
        (row["step"], row["status"], row["version_after"]) for row in history["history"] if row["run_id"] == dead
    ]
    interrupted = ("compact", "interrupted", before + 1 if has_landed else None)
    assert by_dead == [interrupted], history
    state = machines.assert_truth()
    ledger = DeltaTable(state / "ledger").to_pyarrow_table().to_pylist()
    of_dead = [(row["kind"], row["status"], row["version_after"]) for row in ledger if row["run_id"] == dead]
    assert of_dead == [interrupted], ledger


def test_every_counts_after_the_checkout_and_its_machine_are_gone(machines: Machines) -> None:
    machines.append(4)
    project = machines.checkout("checkout-a")
    first = machines.run("machine-a", project, "apply", "--yes", "-o", "json")
    assert (first.code, first.steps) == (0, [("compact", "succeeded")]), first.err
    shutil.rmtree(project)
    shutil.rmtree(machines.root / "machine-a")
    machines.append(4)
    again = machines.checkout("another/checkout")
    assert machines.run("machine-b", again, "plan", "-o", "json").planned_kinds == []
    text = (again / "maintainer.yml").read_text(encoding="utf-8")
    (again / "maintainer.yml").write_text(text.replace(machines.state, "lake/elsewhere"), encoding="utf-8")
    assert machines.run("machine-c", again, "plan", "-o", "json").planned_kinds == ["compact"]


def test_two_machines_at_once_do_the_work_once(machines: Machines) -> None:
    machines.append(6)
    rows, before = machines.rows(), DeltaTable(machines.table).version()
    projects = {name: machines.checkout(f"{name}-checkout") for name in ("machine-a", "machine-b")}
    running = [
        machines.start(name, "maintainer", "--project", str(project), "apply", "--yes", "-o", "json")
        for name, project in projects.items()
    ]
    ends = [ended(process) for process in running]
    assert DeltaTable(machines.table).version() == before + 1
    assert (len(DeltaTable(machines.table).file_uris()), machines.rows()) == (1, rows)
    assert sorted(step for end in ends for step in end.steps if step[1] == "succeeded") == [("compact", "succeeded")]
    state = machines.assert_truth()
    ledger = DeltaTable(state / "ledger").to_pyarrow_table().to_pylist()
    assert [row["kind"] for row in ledger if row["status"] == "succeeded" and row["kind"] == "compact"] == ["compact"]
