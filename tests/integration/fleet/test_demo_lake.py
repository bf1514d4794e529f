"""The demo on real Spark: the lake it builds, its own proof, and the whole walk at a small scale."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.product import (
    append,
    claim_folder,
    compare,
    data_files,
    flights,
    look_up,
    newest_version,
    quoted,
    read_content,
    rows_that_differ,
    run,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.sampled(1), pytest.mark.nightly]

PLANES = 3322


@pytest.fixture
def planes(spark: SparkSession, tmp_path: Path) -> Path:
    table = tmp_path / "planes"
    append(flights.read_csv(spark, "planes", flights.data_folder() / "planes.csv"), table)
    return table


def test_weather_has_exactly_the_files_that_a_vacuum_may_delete(spark: SparkSession, tmp_path: Path) -> None:
    folder = claim_folder(tmp_path / "demo", keep=False)

    flights.build_weather(spark, folder.lake, folder.root / ".building")

    table = folder.table("weather")
    expired = {Path(row[0]).name for row in spark.sql(f"VACUUM {quoted(table)} DRY RUN").collect()}
    live = {Path(file).name for file in spark.read.format("delta").load(str(table)).inputFiles()}
    assert len(live) == 1
    assert expired == {path.name for path in data_files(table)} - live
    assert len(expired) == flights.WEATHER_LOADS
    assert spark.read.format("delta").load(str(table)).count() == 26_115


def test_planes_come_in_small_appends_and_none_is_lost(spark: SparkSession, tmp_path: Path) -> None:
    folder = claim_folder(tmp_path / "demo", keep=False)
    flights.build_planes(spark, folder.lake, folder.root / ".building")
    assert newest_version(folder.table("planes")) == flights.PLANE_LOADS - 1
    assert len(data_files(folder.table("planes"))) == flights.PLANE_LOADS
    assert read_content(spark, folder.table("planes")).rows == PLANES


def test_content_does_not_depend_on_files_and_order(spark: SparkSession, planes: Path) -> None:
    before = read_content(spark, planes)
    rows = spark.read.format("delta").load(str(planes)).orderBy("model", "tailnum").repartition(7)
    rows.write.format("delta").mode("overwrite").option("dataChange", "false").save(str(planes))

    [comparison] = compare(spark, planes.parent, {"planes": before}, ["planes"])

    assert (before.rows, comparison.after.version) == (PLANES, 1)
    assert comparison.rows_that_differ == 0
    assert comparison.holds


@pytest.mark.parametrize(
    ("change", "rows", "differing"),
    [
        ("UPDATE {t} SET seats = seats + 1 WHERE tailnum = 'N10156'", PLANES, 2),
        ("DELETE FROM {t} WHERE tailnum = 'N10156'", PLANES - 1, 1),
        ("INSERT INTO {t} SELECT * FROM {t} WHERE tailnum = 'N10156'", PLANES + 1, 1),
        # A null that moves to another column: a hash that skips nulls would not see it.
        ("UPDATE {t} SET year = NULL, speed = year WHERE tailnum = 'N10156'", PLANES, 2),
    ],
)
def test_one_changed_row_is_seen_by_both_proofs(
    spark: SparkSession, planes: Path, change: str, rows: int, differing: int
) -> None:
    before = read_content(spark, planes)
    spark.sql(change.format(t=quoted(planes))).collect()

    [comparison] = compare(spark, planes.parent, {"planes": before}, [])

    assert comparison.after.rows == rows
    assert comparison.after.digest != before.digest
    assert not comparison.holds
    assert rows_that_differ(spark, planes, before.version) == differing


def test_a_look_up_counts_the_files_left_after_skipping(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    for start in (0, 100, 200):
        append(spark.range(start, start + 100), table)

    rows = look_up(spark, table, "id BETWEEN 150 AND 159", ["count(*)", "sum(id)"])

    assert (rows.files_read, rows.files_total) == (1, 3)
    assert rows.answer == ("10", "1545")
    assert 0 < rows.bytes_read < sum(path.stat().st_size for path in data_files(table))


@pytest.mark.long
def test_the_whole_walk(spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "demo"
    before = Path.cwd()

    exit_code = run(["demo", "--dir", str(root), "--scale", "0.01"])

    shown = capfd.readouterr()
    assert exit_code == 0, shown.out + shown.err
    assert Path.cwd() == before
    assert "FAILED" not in shown.out
    assert shown.out.count("[exit code 0") == 7
    plan = json.loads((root / "plan.json").read_text(encoding="utf-8"))
    assert plan["format_version"]
    results = sorted((root / ".maintainer" / "runs").glob("*/results.json"))
    assert results
    assert (root / ".maintainer" / "ledger" / "_delta_log").is_dir()
    # The lake as anybody else sees it: files gone that had to go, and every row still there.
    assert len(data_files(root / "lake" / "weather")) == 1
    counts = {name: read_content(spark, root / "lake" / name).rows for name in ("flights", "planes", "weather")}
    assert counts == {"flights": 336_776, "planes": PLANES, "weather": 26_115}
    assert not (root / ".building").exists()
