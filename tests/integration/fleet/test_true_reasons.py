"""What is said of sound tables that other engines left: a log that was cleaned, a type that Spark does not read."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.policies.projects import write_project
from tests.support.product import run
from tests.support.tables.aged_tables import tree
from tests.support.tables.delta_tables import age, files_on_disk

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

NUM_VERSIONS = 10


def test_a_log_that_delta_rs_cleaned_hides_no_file_and_promises_none(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "lake" / "t"
    for number in range(NUM_VERSIONS):
        deltalake.write_deltalake(
            path,
            pa.table({"id": [number]}),
            mode="overwrite",
            configuration={"delta.logRetentionDuration": "interval 0 seconds"},
        )
    table = deltalake.DeltaTable(path)
    removed_last = json.loads(next(line for line in last_commit(path) if '"remove"' in line))["remove"]["path"]
    table.create_checkpoint()
    age(path, 10)
    table.cleanup_metadata()
    first = min(int(commit.stem) for commit in (path / "_delta_log").glob("*[0-9].json"))
    assert first == NUM_VERSIONS - 1, "the log was not cleaned"
    live = {Path(file).name for file in table.file_uris()}
    lost = files_on_disk(path) - live - {removed_last}
    policy = "table: lake/t\noptimize: null\nvacuum: {retention: 7d, allowLargeDelete: true}\n"
    write_project(tmp_path, {"maintainer.yml": "version: 1\n", "policies/t.yml": policy})
    assert run(["--project", str(tmp_path), "why", "lake/t"]) == 0
    said = capsys.readouterr().out
    assert f"untracked: {len(lost)} files (" in said
    assert f"it begins at version {first}" in said
    assert "is left on storage" not in said
    assert run(["--project", str(tmp_path), "apply", "--yes"]) == 0
    assert files_on_disk(path) == live | lost


def last_commit(path: Path) -> list[str]:
    """The lines of the newest commit."""
    return max((path / "_delta_log").glob("*.json")).read_text(encoding="utf-8").splitlines()


def test_a_sound_file_of_nanoseconds_sends_nobody_to_a_backup(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "lake" / "t"
    moments = pa.array([datetime(2024, 1, 1, tzinfo=UTC)], pa.timestamp("us", tz="UTC"))
    for number in range(3):
        deltalake.write_deltalake(path, pa.table({"id": [number], "ts": moments}), mode="append")
    for commit in (path / "_delta_log").glob("*.json"):
        actions = [json.loads(line) for line in commit.read_text(encoding="utf-8").splitlines()]
        for add in (action["add"] for action in actions if "add" in action):
            rows = pq.read_table(path / add["path"])
            # Not whole microseconds: the libraries of the lane local read those that are, or do not, by their release.
            nanoseconds = pa.array([1_704_067_200_000_000_001], pa.timestamp("ns", tz="UTC"))
            rows = rows.set_column(1, "ts", nanoseconds)
            pq.write_table(rows, path / add["path"], version="2.6", coerce_timestamps=None)
            add["size"] = (path / add["path"]).stat().st_size
        commit.write_text("".join(json.dumps(action) + "\n" for action in actions), encoding="utf-8")
    assert sum(pq.read_table(file).num_rows for file in path.glob("*.parquet")) == 3, "the files are sound"
    write_project(tmp_path, {"maintainer.yml": "version: 1\n", "policies/t.yml": "table: lake/t\noptimize: {}\n"})
    before = tree(path)
    assert run(["--project", str(tmp_path), "apply", "--yes"]) == 1
    captured = capsys.readouterr()
    said = " ".join((captured.out + captured.err).split())
    assert "error[T434]: lake/t, compact: Spark cannot read the type of a column in a data file of the table" in said
    assert "restore nothing; write its rows again" in said
    assert "backup" not in said
    assert {name: content for name, content in tree(path).items() if not name.endswith(".crc")} == before
