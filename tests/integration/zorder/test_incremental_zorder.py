"""Incremental Z-order through the commands, on real Spark: turn after turn until nothing is left, and no row lost."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pytest

from tests.support.product import Leases, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.long]

POLICY = """\
version: 1
table: lake/t
optimize:
  maxFileSize: 64KiB
  zorder: {columns: [a, b], tableProperties: honour}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "policies").mkdir(parents=True)
    (folder / "maintainer.yml").write_text("version: 1\n", encoding="utf-8")
    (folder / "policies" / "t.yml").write_text(POLICY, encoding="utf-8")
    return folder


def append(spark: SparkSession, path: Path, first: int, rows: int) -> None:
    frame = spark.range(first, first + rows, 1, 1).selectExpr(
        "id", "(id * 7919) % 100003 AS a", "(id * 104729) % 65537 AS b", "sha2(cast(id as string), 256) AS pad"
    )
    frame.write.format("delta").mode("append").save(str(path))


def rows_of(path: Path) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in deltalake.DeltaTable(str(path)).to_pyarrow_table().to_pylist())


def command(project: Path, *args: str) -> int:
    return run(["--project", str(project), *args])


def ledger(project: Path) -> list[dict[str, Any]]:
    rows = deltalake.DeltaTable(str(project / ".maintainer" / "ledger")).to_pyarrow_table().to_pylist()
    return sorted((row for row in rows if row["kind"] == "zorder"), key=lambda row: row["version_after"])


def test_turns_until_nothing_is_left(spark: SparkSession, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = project / "lake" / "t"
    for part in range(4):
        append(spark, path, part * 4000, 4000)
    before = rows_of(path)
    saved = str(project / "plan.json")  # sets the revision's property, which no key of the policy names
    assert command(project, "plan", "--out", saved) == 0, capsys.readouterr()
    assert command(project, "apply", saved, "-o", "json") == 0, capsys.readouterr()
    capsys.readouterr()
    assert rows_of(path) == before
    table = deltalake.DeltaTable(str(path))
    definition = json.loads(table.metadata().configuration["maintainer.zorder.revision.1"])
    assert [column["name"] for column in definition["columns"]] == ["a", "b"]
    first = ledger(project)
    assert [row["strategy"] for row in first][:1] == ["unindexed"]
    assert first[0]["elements"] == 16000
    assert first[-1]["files_read_after"] < first[0]["files_read_before"] * len(table.file_uris()) / 4

    version = table.version()
    assert command(project, "apply", "--yes", "-o", "json") == 0
    assert deltalake.DeltaTable(str(path)).version() == version, "a second run commits nothing"

    append(spark, path, 16000, 500)
    append(spark, path, 16500, 500)
    before = rows_of(path)
    capsys.readouterr()
    assert command(project, "apply", "--yes", "-o", "json") == 0, capsys.readouterr()
    assert rows_of(path) == before
    second = ledger(project)[len(first) :]
    assert second[0]["strategy"] == "unindexed"
    assert second[0]["num_files_removed"] == 2
    # What was there is not written again for what is new.
    assert sum(row["elements"] for row in second) < 8000

    spark.sql(
        f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('use.optimization.type'='LeveledCompaction', "
        "'use.optimization.bytes-per-iter'='5000000')"
    )
    # It stays until there are files for a leveled turn.
    asked: list[str] = []
    for part in range(10):
        done = len(ledger(project))
        append(spark, path, 17000 + part * 500, 500)
        capsys.readouterr()
        assert command(project, "apply", "--yes", "-o", "json") == 0, capsys.readouterr()
        strategies = {row["strategy"] for row in ledger(project)[done:]}
        configuration = deltalake.DeltaTable(str(path)).metadata().configuration
        asked = [key for key in configuration if key.startswith("use.optimization.")]
        assert bool(asked) is ("leveled" not in strategies)
        if not asked:
            break
    assert not asked


def test_what_is_being_optimized_is_a_query_and_a_status(
    spark: SparkSession, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    append(spark, project / "lake" / "t", 0, 100)
    state, run_id = project / ".maintainer", "20261121T220000Z-7f3a"
    (state / "runs").mkdir(parents=True)
    leases = Leases(state / "runs", run_id, lambda: time.time_ns() // 1_000_000)
    lease = leases.acquire("one", "lake/t")
    query = (
        f"SELECT table, run_id FROM json.`{state}/leases/*.json` WHERE expires_at_ms > unix_millis(current_timestamp())"
    )
    assert [tuple(row) for row in spark.sql(query).collect()] == [("lake/t", run_id)]
    assert command(project, "status", "--scheduled", "-o", "json") == 0
    (row,) = json.loads(capsys.readouterr().out)["tables"]
    assert (row["table"], row["running"], row["scheduled"]) == ("lake/t", run_id, False)
    leases.release(lease)
    leases.close()
    assert spark.sql(query).collect() == []
    assert command(project, "status", "--scheduled", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["tables"] == []
