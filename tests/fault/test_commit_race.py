"""Another process commits the very version that we are about to write: it stays, and ours comes after it.

A small library holds our JVM in the system call that would give the version its name. Meanwhile a second engine, in
this process, commits that version; then the JVM goes on. No sleeps, no luck.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from tests.support.faults.preloaded import compiled
from tests.support.policies.projects import write_project
from tests.support.product import LEDGER_SCHEMA
from tests.support.tables.delta_tables import age

pytestmark = [pytest.mark.spark, pytest.mark.nightly, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_SECONDS = 300.0
COMMITS = frozenset(
    {
        ("orders", "SET TBLPROPERTIES"),
        ("orders", "OPTIMIZE"),
        ("orders", "VACUUM START"),
        ("orders", "VACUUM END"),
        ("ledger", "WRITE"),
    }
)
"""Every kind of commit that one apply makes here: table and operation."""

_ARROW = {"string": pa.string(), "bigint": pa.int64(), "double": pa.float64(), "timestamp": pa.timestamp("us", "UTC")}
LEDGER = pa.schema(
    [
        pa.field(name, _ARROW[kind])
        for name, kind in (column.split() for column in LEDGER_SCHEMA.replace("`", "").split(", "))
    ]
)


@pytest.fixture(scope="module")
def holding_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled("hold_commits", tmp_path_factory.mktemp("hold"))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """One table that needs every kind of step, and a ledger that is there already."""
    policy = "version: 1\ntable: lake/orders\nautoCompact: true\noptimize: {}\nvacuum: {retention: 7d}\n"
    root = write_project(tmp_path, {"maintainer.yml": "version: 1\n", "policies/orders.yml": policy})
    orders = root / "lake" / "orders"
    for first, mode in ((0, "error"), (10, "overwrite"), (20, "append"), (30, "append")):
        rows = pa.table({"id": pa.array(range(first, first + 10), pa.int64())})
        deltalake.write_deltalake(str(orders), rows, mode=mode)  # type: ignore[call-overload]
    age(orders, days=30)
    deltalake.DeltaTable.create(str(root / ".maintainer" / "ledger"), schema=LEDGER)
    return root


def apply(project: Path, holding_library: Path, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "maintainer", "--project", str(project), "apply", "--yes", "-o", "json"],
        cwd=ROOT, env={**os.environ, "LD_PRELOAD": str(holding_library), **environment},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def operation_of(commit: Path) -> str:
    actions = [json.loads(line) for line in commit.read_text(encoding="utf-8").splitlines()]
    return next(str(action["commitInfo"]["operation"]) for action in actions if "commitInfo" in action)


def append(table: Path, number: int) -> None:
    """One row by the second engine, acknowledged."""
    if table.name == "orders":
        row = pa.table({"id": pa.array([number], pa.int64())})
    else:
        row = pa.Table.from_pylist([{"run_id": f"theirs-{number}"}], LEDGER)
    deltalake.write_deltalake(str(table), row, mode="append")


def rows_of(table: Path, column: str) -> list[Any]:
    return sorted(deltalake.DeltaTable(str(table)).to_pyarrow_table()[column].to_pylist())


def test_an_acknowledged_commit_of_another_process_is_never_overwritten(
    project: Path, holding_library: Path, tmp_path: Path
) -> None:
    held = tmp_path / "held"
    held.mkdir()
    raced: dict[tuple[str, str], int] = {}
    running = apply(project, holding_library, HOLD_COMMITS=str(held))
    deadline = time.monotonic() + DEADLINE_SECONDS
    seen: set[Path] = set()
    while running.poll() is None and time.monotonic() < deadline:
        for marker in sorted(set(held.glob("*.held")) - seen):
            seen.add(marker)
            whole, version = (Path(line) for line in marker.read_text(encoding="utf-8").splitlines())
            table = version.parent.parent
            commit = (table.name, operation_of(whole))
            if commit not in raced:
                raced[commit] = 1000 + len(raced)
                assert not version.exists()
                append(table, raced[commit])
                assert version.exists()
            marker.with_suffix(".go").touch()
        time.sleep(0.005)
    if running.poll() is None:
        running.kill()
    out, err = running.communicate()

    assert set(raced) == COMMITS, err[-3000:]
    orders, ledger = project / "lake" / "orders", project / ".maintainer" / "ledger"
    theirs = [number for (table, _), number in raced.items() if table == "orders"]
    assert rows_of(orders, "id") == sorted([*range(10, 40), *theirs])
    runs = rows_of(ledger, "run_id")
    assert f"theirs-{raced['ledger', 'WRITE']}" in runs
    assert running.returncode == 0, (out + err)[-3000:]
    # Ours came after theirs: each kind once, and the run's record in the ledger.
    log = [operation_of(commit_file) for commit_file in sorted((orders / "_delta_log").glob("*[0-9].json"))]
    assert [operation for operation in log if operation != "WRITE"] == [
        "SET TBLPROPERTIES",
        "OPTIMIZE",
        "VACUUM START",
        "VACUUM END",
    ]
    assert len([run for run in runs if not run.startswith("theirs")]) == 3
    assert not list(orders.rglob(".*.tmp"))


@pytest.mark.long
def test_a_disk_without_hard_links_is_refused_and_a_single_writer_is_not(project: Path, holding_library: Path) -> None:
    before = deltalake.DeltaTable(str(project / "lake" / "orders")).version()
    running = apply(project, holding_library, NO_HARD_LINKS="1")
    out, err = running.communicate(timeout=DEADLINE_SECONDS)
    assert running.returncode == 1, (out + err)[-3000:]
    assert "A433" in out + err
    assert deltalake.DeltaTable(str(project / "lake" / "orders")).version() == before

    (project / "maintainer.yml").write_text("version: 1\nsingleWriter: true\n", encoding="utf-8")
    running = apply(project, holding_library, NO_HARD_LINKS="1")
    out, err = running.communicate(timeout=DEADLINE_SECONDS)
    assert running.returncode == 0, (out + err)[-3000:]
    assert deltalake.DeltaTable(str(project / "lake" / "orders")).version() == before + 4
