"""Tables with a broken log or broken data beside a whole one: nothing is written to them, and the true cause is said.

Each seed makes every kind of damage anew and applies to all tables at once, within a bound of time. Besides: a clock
that is hours away deletes nothing early.
"""

from __future__ import annotations

import hashlib
import json
import random
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow as pa
import pytest

from tests.support.policies.projects import write_project
from tests.support.product import run
from tests.support.tables.broken_tables import BROKEN_DATA, BROKEN_LOGS, make_breakable_table
from tests.support.tables.delta_tables import age_by_hours, files_on_disk, second_engine_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

SEEDS = range(5)
LONGEST_SECONDS = 120.0
POLICY = "table: lake/{}\noptimize: {{}}\nvacuum: {{retention: 7d, allowLargeDelete: true}}\n"
CAUSES = {
    "truncated_json": ("T403", ".json"),
    "gap": ("T403", "not contiguous"),
    "bad_checkpoint": ("T403", ".checkpoint.parquet"),
    "bad_checksum": ("T403", ".crc counts"),
    "empty_commit": ("T403", ".json has no bytes"),
    "commit_is_a_folder": ("T403", ".json"),
    "garbage_utf8": ("T403", ".json"),
    "future_protocol": ("Delta protocol version",),
    "protocol_without_features": ("T403", "minReaderVersion"),
    "no_metadata": ("T403", "metadata"),
    "no_protocol": ("T403", "protocol"),
    "no_object": ("T403", ".json"),
    "missing_data": ("T422", "missing", ".parquet"),
    "truncated_data": ("T434", ".parquet"),
    "garbage_data": ("T434", ".parquet"),
    "hanging_data": ("T422", "a pipe", ".parquet"),
}
"""Code and words of each damage for which a table is refused."""

HARMLESS = ("doubled_version", "bad_last_checkpoint", "remove_of_nothing")
"""Damage that hides nothing: every reader finds the same rows. Such a table may be maintained."""
HOUR_SECONDS = 3600.0


def tree_of(path: Path) -> dict[str, str]:
    """Everything below a folder: names, kinds and content, without checksum files, which a rewrite writes at first."""
    return {
        str(entry.relative_to(path)): hashlib.sha256(entry.read_bytes()).hexdigest() if entry.is_file() else "other"
        for entry in sorted(path.rglob("*"))
        if entry.suffix != ".crc"
    }


def untouched(path: Path, chance: random.Random) -> None:
    """Damage nothing."""


def ended(project: Path) -> dict[str, dict[str, Any]]:
    """How each table ended in the newest run."""
    results = sorted((project / ".maintainer" / "runs").glob("2*/results.json"))[-1]
    tables = json.loads(results.read_text(encoding="utf-8"))["tables"]
    return {Path(table["ref"]["identifier"]).name: table for table in tables}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.contradicts("live_files_are_there", "logs_can_be_read", reason="files and logs are damaged")
@pytest.mark.sampled(1)
def test_nothing_is_written_to_a_broken_table_and_the_cause_is_said(
    seed: int, spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {"maintainer.yml": "version: 1\n"}
    for name, damage in {**BROKEN_LOGS, **BROKEN_DATA, "whole": untouched}.items():
        chance = random.Random(f"{seed}/{name}")
        make_breakable_table(tmp_path / "lake" / name, chance)
        damage(tmp_path / "lake" / name, chance)
        files[f"policies/{name}.yml"] = POLICY.format(name)
    write_project(tmp_path, files)
    rows = {name: second_engine_rows(tmp_path / "lake" / name) for name in ("whole", *HARMLESS)}
    before = {name: tree_of(tmp_path / "lake" / name) for name in CAUSES}

    started = time.monotonic()
    code = run(["--project", str(tmp_path), "apply", "--yes"])
    seconds = time.monotonic() - started
    said = capsys.readouterr()
    assert seconds <= LONGEST_SECONDS
    assert code == 1, said
    assert "Traceback" not in said.out + said.err
    tables = ended(tmp_path)
    for name, words in CAUSES.items():
        assert tree_of(tmp_path / "lake" / name) == before[name], name
        text = json.dumps(tables[name])
        assert all(word in text for word in words), (name, text[:1500])
    for name, rows_before in rows.items():
        assert tables[name]["status"] == "done", name
        assert second_engine_rows(tmp_path / "lake" / name) == rows_before, name
        assert len(deltalake.DeltaTable(str(tmp_path / "lake" / name)).file_uris()) == 1, name


OPTIMIZE = "optimize: {}\n"
VACUUM = "optimize: null\nvacuum: {retention: 7d, allowLargeDelete: true}\n"


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("empty_commit", OPTIMIZE),
        ("empty_commit", VACUUM),
        ("empty_commit", "autoCompact: true\n"),
        ("bad_checksum", OPTIMIZE),
    ],
)
@pytest.mark.every_run
def test_damage_that_readers_pass_over_is_no_reason_to_write(
    name: str, steps: str, spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "lake" / "t"
    make_breakable_table(path, random.Random(1))
    BROKEN_LOGS[name](path, random.Random(1))
    write_project(tmp_path, {"maintainer.yml": "version: 1\n", "policies/t.yml": f"table: lake/t\n{steps}"})
    before = tree_of(path)
    code = run(["--project", str(tmp_path), "apply", "--yes"])
    said = capsys.readouterr()
    assert code == 1, said
    assert "error[T403]" in said.out + said.err, said
    assert tree_of(path) == before


@pytest.mark.parametrize("hours", [-240.0, -3.0, -0.25, 0.0, 0.25, 3.0, 240.0])
@pytest.mark.sampled(1)
def test_a_clock_that_is_away_deletes_nothing_early(
    hours: float,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Two generations were overwritten: one is past the retention by a day, the other short of it by six minutes."""
    path = tmp_path / "lake" / "t"
    policy = "table: lake/t\nvacuum: {retention: 7d, allowLargeDelete: true}\n"
    write_project(tmp_path, {"maintainer.yml": "version: 1\n", "policies/t.yml": policy})
    generations: list[set[str]] = []
    for number in range(3):
        known = files_on_disk(path) if path.exists() else set()
        deltalake.write_deltalake(str(path), pa.table({"id": [number, number]}), mode="overwrite")
        generations.append(files_on_disk(path) - known)
        # All that lies there grows older: by a day, and at last by the retention less six minutes.
        age_by_hours(path, 24 if number < 2 else 7 * 24 - 0.1)
    late, early, live = generations
    rows = second_engine_rows(path)

    away_ns = int(hours * HOUR_SECONDS * 1e9)
    real_ns, real = time.time_ns, time.time
    monkeypatch.setattr(time, "time_ns", lambda: real_ns() + away_ns)
    monkeypatch.setattr(time, "time", lambda: real() + away_ns / 1e9)
    code = run(["--project", str(tmp_path), "apply", "--yes"])
    monkeypatch.undo()

    said = capsys.readouterr()
    there = files_on_disk(path)
    assert live | early <= there, said
    assert second_engine_rows(path) == rows
    if hours == 0.0:
        assert (code, late & there) == (0, set()), said
    else:
        assert late <= there, said
        assert "clock" in said.out + said.err, said
