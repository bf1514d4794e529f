"""A night over a hundred tables, seven of them sick: the others end well, the seven are explained, in bounded time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.tables.sick_tables import SICK, make_table, rows_and_files

pytestmark = [pytest.mark.spark, pytest.mark.long]

NUM_HEALTHY = 93
NUM_WITH_WORK = 15
"""Healthy tables that have something to do; the others have one file, as most tables of a fleet do."""
CODES = {
    "corrupt_checkpoint": "T403",
    "dropped": "T401",
    "fifo": "T422",
    "log_gap": "T403",
    "truncated_json": "T403",
    "unknown_feature": "T404",
    "unreadable": "T403",
}


@pytest.mark.timeout(400)
def test_93_end_well_and_7_are_explained(tmp_path: Path) -> None:
    (tmp_path / "policies").mkdir()
    # The rewrites are proven before they commit; what is checked afterwards is tested elsewhere, and takes longest.
    checks = "defaults:\n  verify: {rowCount: log, content: 'off', files: false}\n"
    (tmp_path / "maintainer.yml").write_text(f"version: 1\n{checks}", encoding="utf-8")
    healthy = [f"t{number:03d}" for number in range(NUM_HEALTHY)]
    with_work = set(healthy[::6][:NUM_WITH_WORK])
    for name in healthy:
        make_table(tmp_path / "lake" / name, 2 if name in with_work else 1)
    for name, make in SICK.items():
        make(tmp_path / "lake" / name)
    for name in (*healthy, *SICK):
        text = f"version: 1\ntable: ./lake/{name}\nlimits: {{timeout: 5m}}\n"
        (tmp_path / "policies" / f"{name}.yml").write_text(text, encoding="utf-8")

    command = [sys.executable, "-m", "maintainer", "apply", "--yes", "-j", "4", "-o", "json", "--master", "local[4]"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=385, check=False)
    assert ran.returncode == 1, ran.stderr[-3000:]
    result = json.loads(ran.stdout)
    tables = {table["ref"]["identifier"].rpartition("/")[2]: table for table in result["tables"]}
    assert len(tables) == len(result["tables"]) == 100
    ended = {name: table["status"] for name, table in tables.items()}
    assert {name for name, status in ended.items() if status == "done"} == with_work
    assert {name for name, status in ended.items() if status == "up_to_date"} == set(healthy) - with_work
    explained = {}
    for name in SICK:
        table = tables[name]
        problems = [table["problem"], *(step["error"] for step in table["steps"])]
        explained[name] = next(problem["code"] for problem in problems if problem is not None)
    assert explained == CODES
    # Also the one with an unknown feature: it has a policy of its own.
    assert {ended[name] for name in SICK} == {"failed"}
    for name in healthy:
        assert rows_and_files(tmp_path / "lake" / name) == (list(range(20 if name in with_work else 10)), 1)
    (run,) = (tmp_path / ".maintainer" / "runs").glob("*Z-*")
    assert json.loads((run / "results.json").read_text()) == result
