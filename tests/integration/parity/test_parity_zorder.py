"""Z-order beside OPTIMIZE ZORDER BY: the behaviours C of Delta's own suites, through policies and one apply.

Named and marked as in test_parity_a_compaction.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support.product import DeltaEngine, ReasonCode, SessionLease, ZOrderFileStats
from tests.support.runs.app_runs import applied, planned
from tests.support.tables.parity_lake import Applied, Case, live_files, run_cases, table_of

pytestmark = [pytest.mark.spark, pytest.mark.long]

Row = Mapping[str, Any]


def zorder(*columns: str, more: str = "") -> str:
    listed = ", ".join(f'"{column}"' for column in columns)
    return f"optimize: {{zorder: {{columns: [{listed}], mode: full}}{more}}}\n"


def ten_partitions(path: Path) -> None:
    """100 rows in ten partitions of two files each."""
    rows = [{"p": i % 10, "col1": i, "col2": 99 - i} for i in range(100)]
    table_of(rows[:50], rows[50:], by=["p"])(path)


def five_by_two(path: Path) -> None:
    rows = [{"part": part, "id": part} for part in range(5)]
    table_of(rows, rows, by=["part"])(path)


def hundred_rows(num_files: int) -> Callable[[Path], None]:
    rows: list[Row] = [{"a": i, "b": 99 - i, "c": (i + 50) % 100} for i in range(100)]
    size = 100 // num_files
    return table_of(*[rows[start : start + size] for start in range(0, 100, size)])


NESTED: list[Row] = [{"a": 1, "b": {"c": 1, "d": 2}, "flat.a": 3}]
OTHER_NESTED: list[Row] = [{"a": 2, "b": {"c": 2, "d": 3}, "flat.a": 4}]
TEXT = pa.schema({"k": pa.string(), "v": pa.int64()})
NULLS: list[Row] = [{"k": "a", "v": 1}, {"k": "b", "v": 2}, {"k": None, "v": 3}]

CASES = {
    "c1": Case(ten_partitions, zorder("col3")),
    "c1_partition": Case(ten_partitions, zorder("p")),
    "c1_partition_where": Case(ten_partitions, zorder("p", more=', where: "p = 1"')),
    "c2": Case(
        table_of(NESTED, NESTED, properties={"delta.dataSkippingNumIndexedCols": "1"}), zorder("a", "b.c", "b.d")
    ),
    "c3_nested": Case(table_of(NESTED, OTHER_NESTED), zorder("a", "b.c")),
    "c3_dotted": Case(table_of(NESTED, OTHER_NESTED), zorder("`flat.a`")),
    "c4": Case(ten_partitions, zorder("col1", "col2")),
    "c4_where": Case(ten_partitions, zorder("col1", "col2", more=', where: "p = 2"')),
    "c6_one_byte": Case(five_by_two, zorder("id", more=", batchSize: 1")),
    "c6_gib": Case(five_by_two, zorder("id", more=", batchSize: 1GiB")),
    "c6_where_one_byte": Case(five_by_two, zorder("id", more=', batchSize: 1, where: "part <= 1"')),
    "c6_where_gib": Case(five_by_two, zorder("id", more=', batchSize: 1GiB, where: "part <= 1"')),
    "c7": Case(table_of([], by=["k"], schema=TEXT), zorder("v")),
    "c8": Case(table_of(*[NULLS] * 5, by=["k"], schema=TEXT), zorder("v")),
}


@pytest.fixture(scope="module")
def lake(lease: SessionLease, tmp_path_factory: pytest.TempPathFactory) -> Applied:
    return run_cases(DeltaEngine(lease), tmp_path_factory.mktemp("parity_c"), CASES)


def test_c1_columns_that_do_not_exist_or_partition_the_table(lake: Applied) -> None:
    problem = lake.planned("c1").problem
    assert problem is not None
    assert (problem.code, "col3" in problem.what) == ("T411", True)
    for case in ("c1_partition", "c1_partition_where"):
        problem = lake.planned(case).problem
        assert problem is not None
        assert (problem.code, "`p` is a partition column" in problem.what) == ("T412", True)
        assert lake.commits(case) == []


def test_c2_all_columns_without_statistics_are_named(lake: Applied) -> None:
    problem = lake.planned("c2").problem
    assert problem is not None
    assert (problem.code, "b.c" in problem.what, "b.d" in problem.what) == ("T413", True, True)


@pytest.mark.parametrize(("case", "columns"), [("c3_nested", '["a","b.c"]'), ("c3_dotted", '["`flat.a`"]')])
def test_c3_nested_and_dotted_columns(lake: Applied, case: str, columns: str) -> None:
    metrics = lake.metrics(case)
    assert (metrics.num_files_removed, metrics.num_files_added) == (2, 1)
    (info,) = lake.commits(case)
    assert info["operationParameters"]["zOrderBy"].replace(" ", "") == columns
    lake.check_only_layout_changed(case)


def test_c4_figures_of_a_zorder(lake: Applied) -> None:
    metrics = lake.metrics("c4")
    size = sum(int(file["size"]) for file in lake.before["c4"].files)
    every = ZOrderFileStats(20, size)
    stats = metrics.z_order_stats
    assert (metrics.num_files_added, metrics.num_files_removed, metrics.total_considered_files) == (10, 20, 20)
    assert metrics.total_files_skipped == 0
    assert stats is not None
    assert (stats.strategy_name, stats.num_output_cubes) == ("all", 10)
    assert (stats.input_cube_files, stats.input_other_files, stats.merged_files) == (
        ZOrderFileStats(0, 0),
        every,
        every,
    )
    (info,) = lake.commits("c4")
    assert info["operationParameters"]["zOrderBy"] == '["col1","col2"]'
    lake.check_only_layout_changed("c4")
    metrics = lake.metrics("c4_where")
    assert (metrics.num_files_added, metrics.total_considered_files) == (1, 2)
    assert metrics.z_order_stats is not None
    assert metrics.z_order_stats.num_output_cubes == 1


def test_c5_one_file_is_cut_along_the_curve(lease: SessionLease, tmp_path: Path) -> None:
    path, engine = tmp_path / "t", DeltaEngine(lease)
    hundred_rows(4)(path)
    first = applied(engine, tmp_path, f"table: {path}\n" + zorder("a", "b", "c", more=", maxFileSize: 1000000"))
    assert first.step.metrics is not None
    assert (first.step.metrics.num_files_removed, first.step.metrics.num_files_added) == (4, 1)
    (add,) = live_files(path)
    size = int(add["size"]) // 4
    second = applied(engine, tmp_path, f"table: {path}\n" + zorder("a", "b", "c", more=f", maxFileSize: {size}"))
    assert second.step.metrics is not None
    assert second.step.metrics.z_order_stats is not None
    assert second.step.metrics.z_order_stats.merged_files.num == 1
    rows = [int(json.loads(file["stats"])["numRecords"]) for file in live_files(path)]
    # Of equal size but for the noise that Delta adds to the curve.
    assert (len(rows), sum(rows)) == (4, 100)
    assert 15 <= min(rows) <= max(rows) <= 35


@pytest.mark.parametrize(("case", "commits"), [("one_byte", 5), ("gib", 1), ("where_one_byte", 2), ("where_gib", 1)])
def test_c6_one_commit_a_batch(lake: Applied, case: str, commits: int) -> None:
    infos = lake.commits(f"c6_{case}")
    assert [info["operationParameters"]["zOrderBy"] for info in infos] == ['["id"]'] * commits
    lake.check_only_layout_changed(f"c6_{case}")


def test_c7_an_empty_table(lake: Applied) -> None:
    assert (lake.planned("c7").state, lake.commits("c7")) == ("up_to_date", [])


def test_c8_null_partitions(lake: Applied) -> None:
    assert lake.files("c8") == {("a",): 1, ("b",): 1, (None,): 1}
    lake.check_only_layout_changed("c8")


def test_c9_a_second_time_there_is_nothing_to_do(lake: Applied) -> None:
    """On purpose: OPTIMIZE rewrites every file each time; ours sees by their tags that files are in order."""
    for case in ("c4", "c6_gib", "c8"):
        lake.check_nothing_is_left(case)
    codes = {left.reason.code for left in lake.planned("c4", lake.second).left_alone}
    assert codes == {ReasonCode.SAME_ZORDER}


def test_c9_a_lone_file_is_left_where_order_would_skip_nothing(lease: SessionLease, tmp_path: Path) -> None:
    """On purpose: OPTIMIZE rewrites it; with one file of a partition there is nothing for a reader to skip."""
    hundred_rows(1)(tmp_path / "t")
    _, plan = planned(DeltaEngine(lease), tmp_path, f"table: {tmp_path / 't'}\n" + zorder("a"))
    (table,) = plan.tables
    assert [left.reason.code for left in table.left_alone] == [ReasonCode.NO_PARTNER]
