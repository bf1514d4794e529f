"""`benchmarks/stores.py`: its tables are what it says, and with small sizes it runs on a real S3 server."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from benchmarks.store_arms import tables_at_once
from benchmarks.store_report import Row, further_table
from benchmarks.stores import SCENES, write_large_log, write_short_log
from tests.support.stores.counting_relay import KINDS

ROOT = Path(__file__).parents[3]
EACH_SCENE = {
    ("tables", "maintainer", "compact, vacuum"), ("tables", "delta-rs", "compact, vacuum"),
    ("tables", "delta-rs, as many at once", "compact, vacuum"),
    ("looks", "maintainer", "healthy tables"), ("looks", "maintainer", "looked at twice"),
    ("looks", "maintainer", "short logs"), ("looks", "delta-rs", "healthy tables"), ("looks", "delta-rs", "short logs"),
    ("requests", "maintainer", "plan"), ("requests", "maintainer", "apply"), ("requests", "maintainer", "vacuum"),
    ("requests", "delta-rs", "apply"), ("requests", "delta-rs", "vacuum"),
    ("files", "maintainer", "40 files"), ("files", "delta-rs", "40 files"),
    ("memory", "maintainer", "plan"), ("memory", "maintainer", "plan and apply"),
}  # fmt: skip


def content(table: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (table / "_delta_log").iterdir()}


def test_logs_without_data_are_what_they_say_and_the_same_for_one_seed(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        write_short_log(tmp_path / name, random.Random(seed))
        write_large_log(tmp_path / f"large-{name}", 1000, random.Random(seed))
    short, large = DeltaTable(str(tmp_path / "a")), DeltaTable(str(tmp_path / "large-a"))
    assert (short.version(), len(short.file_uris())) == (9, 1)
    assert len(list((tmp_path / "large-a" / "_delta_log").iterdir())) >= 250
    assert len(set(large.file_uris())) == 1000
    for kind in ("", "large-"):
        assert content(tmp_path / f"{kind}a") == content(tmp_path / f"{kind}b") != content(tmp_path / f"{kind}c")


@pytest.mark.parametrize(
    ("spans", "most"),
    [([(0, 2), (2, 4)], 1), ([(0, 3), (2, 4), (3, 5)], 2), ([(0, 9), (1, 2), (1, 3), (2, 4)], 3), ([], 1)],
)
def test_tables_at_once_are_those_whose_steps_overlap(tmp_path: Path, spans: list[tuple[int, int]], most: int) -> None:
    tables = [
        {"steps": [{"started_at_ms": first * 1000, "duration_seconds": last - first}]} for first, last in spans
    ]  # fmt: skip
    run = tmp_path / ".maintainer" / "runs" / "one"
    run.mkdir(parents=True)
    (run / "results.json").write_text(json.dumps({"tables": [*tables, {"steps": []}]}))
    assert tables_at_once(tmp_path) == most


def test_a_further_table_is_beside_the_faster_run_of_delta_rs() -> None:
    def of(arm: str, tables: int, seconds: float) -> Row:
        return Row("tables", 0, arm, "compact, vacuum", tables, seconds, 0, 0, False, {})

    rows = [of("delta-rs", 10, 5), of("maintainer", 10, 20), of("delta-rs, as many at once", 10, 4)]
    rows += [of("delta-rs", 20, 7), of("maintainer", 20, 23), of("delta-rs, as many at once", 20, 5)]
    assert further_table(rows[1], rows) == f"| 0 ms | maintainer | {3 / 10:.3f} s | {3 / 1:.2f}x |"
    assert further_table(rows[4], rows) == ""


@pytest.mark.long
def test_small_sizes_run_through_every_scene_but_the_night(tmp_path: Path) -> None:
    scenes = [part for scene in SCENES if scene != "night" for part in ("--scene", scene)]
    sizes = ("--tables", "1", "--files", "3", "--rows", "10", "--many", "2", "--partitions", "8", "--large", "40")
    fleets = ("--fleet", "2", "--fleet", "42")
    out = ("--delay-ms", "0", "--delay-ms", "5", "--json", str(tmp_path / "figures.json"))
    script = str(ROOT / "benchmarks" / "stores.py")
    done = subprocess.run(
        (sys.executable, script, *scenes, *sizes, *fleets, *out), capture_output=True, text=True, timeout=900, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert {"date", "machine", "versions", "sizes", "rows"} <= set(figures)
    rows: list[dict[str, Any]] = figures["rows"]
    assert {(row["scene"], row["arm"], row["what"]) for row in rows} == EACH_SCENE
    assert {row["delay_ms"] for row in rows if row["scene"] != "requests"} == {0, 5}
    for row in rows:
        assert set(row["requests"]) <= set(KINDS)
        assert sum(row["requests"].values()) > 0, row
        assert row["seconds"] > 0, row
        assert row["cpu_seconds"] > 0, row
    for row in rows:
        if row["scene"] == "tables":
            more = row["more"]
            assert (more["files_before"], more["files_after"]) == (3 * row["tables"], row["tables"]), row
            assert row["has_jvm"] == (row["arm"] == "maintainer"), row
        if row["scene"] == "memory":
            assert row["has_jvm"] == (row["what"] == "plan and apply"), row
            assert row["more"]["python_bytes"] > 0, row
            assert (row["more"]["java_bytes"] > 0) == row["has_jvm"], row
        if row["what"] == "vacuum":
            assert row["more"]["deleted"] == 5
        if row["what"] == "apply":
            # Each of 22 files of each table is read, and each table gets a new file and a commit.
            assert row["requests"]["GET"] >= 22 * row["tables"], row
            assert row["requests"]["PUT"] >= 2 * row["tables"], row
            if row["arm"] == "maintainer":
                assert sum(row["requests"].values()) <= 80 * row["tables"], row
    assert asdict(Row(**rows[0])) == rows[0]
    for title in ("Tables of 3 files of 10 rows", "`plan` over", "Requests:", "One table of very many", "Memory:"):
        assert f"## {title}" in done.stdout
