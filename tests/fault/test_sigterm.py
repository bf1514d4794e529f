"""A scheduler ends a run in the middle of a rewrite: the process is gone well before it is killed, and nothing is lost.

Kubernetes sends SIGTERM, and SIGKILL 30 seconds later. The run is a process of its own, on a table whose rewrite takes
longer than that.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import deltalake
import numpy
import pyarrow
import pytest

from tests.support.policies.projects import write_project
from tests.support.product import PENDING_FILE
from tests.support.suites.package_path import PACKAGE_PATH

pytestmark = [pytest.mark.spark, pytest.mark.long]

LONGEST_SECONDS = 15.0
ROWS_A_FILE = 1_500_000
NUM_FILES = 8


def write_lake(root: Path) -> None:
    random = numpy.random.default_rng(1)
    for _ in range(NUM_FILES):
        numbers = random.integers(0, 1 << 60, ROWS_A_FILE)
        columns = {"id": numbers, "x": random.random(ROWS_A_FILE), "s": [f"{number:x}" for number in numbers]}
        deltalake.write_deltalake(str(root / "lake" / "big"), pyarrow.table(columns), mode="append")
    for number in range(2):
        deltalake.write_deltalake(str(root / "lake" / "small"), pyarrow.table({"id": [number]}), mode="append")
    policy = "version: 1\ntable: lake/{}\noptimize: {{maxFileSize: 4GiB}}\n"
    files = {f"policies/{name}.yml": policy.format(name) for name in ("big", "small")}
    write_project(root, {"maintainer.yml": "version: 1\n", **files})


def command(root: Path, *args: str) -> list[str]:
    return [sys.executable, "-m", "maintainer", "--project", str(root), *args, "--yes", "--master", "local[1]"]


def test_a_run_that_is_terminated_in_a_rewrite_is_gone_in_time_and_complete(tmp_path: Path) -> None:
    write_lake(tmp_path)
    big = deltalake.DeltaTable(str(tmp_path / "lake" / "big"))
    before = big.version(), sorted(big.file_uris())
    env = {**os.environ, "PYTHONPATH": PACKAGE_PATH}
    with (tmp_path / "err.txt").open("wb") as err:
        process = subprocess.Popen(
            command(tmp_path, "apply", "--yes", "-s", "lake/big", "--lane", "spark"),
            stdout=subprocess.PIPE,
            stderr=err,
            env=env,
            text=True,
        )
        try:
            deadline = time.monotonic() + 240
            while "START" not in (tmp_path / "err.txt").read_text():
                assert process.poll() is None, (tmp_path / "err.txt").read_text()
                assert time.monotonic() < deadline, "the step did not start"
                time.sleep(0.1)
            while len(list((tmp_path / "lake" / "big").glob("*.parquet"))) == NUM_FILES:
                assert process.poll() is None, (tmp_path / "err.txt").read_text()
                assert time.monotonic() < deadline, "no file was begun"
                time.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            sent = time.monotonic()
            out, _ = process.communicate(timeout=60)
            seconds = time.monotonic() - sent
        finally:
            process.kill()
    said = out + (tmp_path / "err.txt").read_text()
    assert process.returncode == 143, said
    assert seconds <= LONGEST_SECONDS, f"{seconds:.1f} s\n{said}"
    assert re.search(r"^Interrupted by SIGTERM after .+ \(start .+, planning .+, run .+\): ", out, re.MULTILINE), out
    assert "Traceback" not in said

    big.update_incremental()
    assert (big.version(), sorted(big.file_uris())) == before
    assert len(list((tmp_path / "lake" / "big").glob("*.parquet"))) == NUM_FILES
    (folder,) = (tmp_path / ".maintainer" / "runs").glob("2*")
    results = json.loads((folder / "results.json").read_text())
    assert results["interrupted_by"] == "SIGTERM"
    assert [(table["status"], table["steps"][0]["status"]) for table in results["tables"]] == [("interrupted",) * 2]
    assert {"events.jsonl", "plan.json", "junit.xml", "report.html", PENDING_FILE} <= {
        file.name for file in folder.iterdir()
    }

    # The next run brings the rows of the terminated one into the ledger.
    done = subprocess.run(
        command(tmp_path, "apply", "--yes", "-s", "lake/small"),
        capture_output=True,
        env=env,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (folder / PENDING_FILE).exists()
    ledger = deltalake.DeltaTable(str(tmp_path / ".maintainer" / "ledger")).to_pyarrow_table().to_pylist()
    assert {(row["run_id"] == folder.name, row["table"], row["status"]) for row in ledger} == {
        (True, "lake/big", "interrupted"),
        (False, "lake/small", "succeeded"),
    }
