"""Values and columns that a Z-order could trip over, on real tables: put in order rightly, or refused by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.product import (
    REVISION_TAG,
    DeltaEngine,
    DeltaTableEngine,
    OptimizePolicy,
    PlanOptions,
    SessionLease,
    TableStatus,
    ZOrderMode,
    ZOrderPolicy,
)
from tests.support.runs.delta_runs import Maintenance
from tests.support.tables.builders import make_optimize
from tests.support.tables.delta_tables import second_engine_rows, spark_rows
from tests.support.writers.writers import engine_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.long]

ROWS = 6000
ODD = {
    "f": "CASE id % 5 WHEN 0 THEN double('NaN') WHEN 1 THEN double('Infinity') WHEN 2 THEN double('-Infinity') "
    "WHEN 3 THEN -0.0D ELSE (id * 7919) % 1009 / 8 END",
    "d": "date_add(date'1400-01-01', cast((id * 104729) % 300000 AS int))",
    "n": "IF(id % 100 = 0, id * 31 % 977, NULL)",
    "c": "'always'",
    "p": "concat(repeat('p', 40), id % 13)",
    "q": "concat(repeat('q', 30), lpad(id % 89, 2, '0'))",
}
"""Not a number and infinities; days on both sides of 1582; mostly null; constant; differing behind what statistics
keep; differing at their end."""


@pytest.fixture(scope="module")
def engine(lease: SessionLease) -> Iterator[DeltaTableEngine]:
    with DeltaEngine(lease).worker("odd") as worker:
        yield worker


def ordered_by(*columns: str) -> OptimizePolicy:
    return make_optimize(min_size=1 << 13, max_size=1 << 14, zorder=ZOrderPolicy(columns, batch_bytes=1 << 16))


def append(spark: SparkSession, path: Path, first: int, rows: int) -> None:
    columns = [f"{text} AS {name}" for name, text in ODD.items()]
    frame = spark.range(first, first + rows, 1, 1).selectExpr("id", "(id * 65537) % 40009 AS k", *columns)
    frame.write.format("delta").mode("append").save(str(path))


@pytest.mark.parametrize("columns", [("f", "k"), ("d", "k"), ("n", "k"), ("c", "k"), ("q", "d"), ("p",)])
def test_odd_values_are_put_in_order_or_refused(
    columns: tuple[str, ...], spark: SparkSession, engine: DeltaTableEngine, lake: Path, tmp_path: Path
) -> None:
    path = lake / "t"
    for part in range(3):
        append(spark, path, part * ROWS, ROWS)
    maintenance = Maintenance(engine, tmp_path / "runs")
    plan = maintenance.plan(path, ordered_by(*columns))
    if "p" in columns:
        large = replace(ordered_by(*columns), min_file_size_bytes=1 << 30, max_file_size_bytes=1 << 30)
        plan = maintenance.plan(path, large)
        assert "`p` differs only behind the first 32 characters" in plan.left_alone[0].reason.text
        before = spark_rows(spark, path, None)
        assert maintenance.apply(plan).status is TableStatus.DONE
        assert len(maintenance.facts(path).files) == 1
        assert spark_rows(spark, path, None) == before
        assert maintenance.plan(path, large).steps == ()
        return
    rows, second = spark_rows(spark, path, None), second_engine_rows(path)
    assert plan.problem is None, plan.problem
    assert maintenance.apply(plan).status is TableStatus.DONE
    facts = maintenance.facts(path)
    assert len(facts.files) > 4
    assert all(file.tag(REVISION_TAG) for file in facts.files)
    assert maintenance.plan(path, ordered_by(*columns)).steps == ()
    assert spark_rows(spark, path, None) == rows
    assert second_engine_rows(path) == second

    # A query on the second column, of which every value is an ordinary one, skips files by the log alone.
    column = columns[-1]
    ranges = engine.reader.column_ranges(facts, (column,))
    lows, highs = zip(*((low, high) for ((low, high, _),) in ranges.by_file.values()), strict=True)
    assert len(set(lows)) > 2, lows
    assert len(set(highs)) > 2, highs


@pytest.mark.parametrize(("kind", "stats"), [("transaction", "Json"), ("command", "Json"), ("command", "Struct")])
def test_files_whose_columns_hold_one_value_are_compacted_in_mode_full(
    kind: str, stats: str, spark: SparkSession, lease: SessionLease, lake: Path, tmp_path: Path
) -> None:
    path = lake / "t"
    kept = {"Json": stats == "Json", "Struct": stats == "Struct"}
    written = ", ".join(f"'delta.checkpoint.writeStatsAs{name}'='{str(on).lower()}'" for name, on in kept.items())
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT, c STRING, n INT) USING delta "
        f"TBLPROPERTIES ('delta.checkpointInterval'='2', {written})"
    )
    for part in range(3):
        spark.sql(f"INSERT INTO delta.`{path}` SELECT id, 'always', NULL FROM range({part * 10}, {part * 10 + 10})")
    before = spark_rows(spark, path, None)
    with engine_of(kind, lease, "") as engine:
        maintenance = Maintenance(engine, tmp_path / "runs", options=PlanOptions(deletes=kind == "transaction"))

        def full(*columns: str) -> OptimizePolicy:
            zorder = ZOrderPolicy(columns, ZOrderMode.FULL)
            return make_optimize(min_size=1 << 30, max_size=1 << 30, zorder=zorder)

        assert [step.kind for step in maintenance.plan(path, full("c", "id")).steps] == ["zorder"]
        plan = maintenance.plan(path, full("c", "n"))
        assert [step.kind for step in plan.steps] == ["compact"]
        assert "`c` is always always, `n` is all null" in plan.left_alone[0].reason.text
        assert maintenance.apply(plan).status is TableStatus.DONE
        assert (len(maintenance.facts(path).files), maintenance.plan(path, full("c", "n")).steps) == (1, ())
    assert spark_rows(spark, path, None) == before


def test_a_renamed_column_moves_over_and_a_dropped_one_is_refused(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path, tmp_path: Path
) -> None:
    path = lake / "t"
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT, a BIGINT, b BIGINT) USING delta "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    for part in range(3):
        frame = spark.range(part * ROWS, (part + 1) * ROWS, 1, 1)
        frame.selectExpr("id", "(id * 7919) % 1009 AS a", "(id * 104729) % 997 AS b").write.format("delta").mode(
            "append"
        ).save(str(path))
    maintenance = Maintenance(engine, tmp_path / "runs")
    assert maintenance.apply(maintenance.plan(path, ordered_by("a", "b"))).status is TableStatus.DONE
    spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN a TO renamed")
    rows = spark_rows(spark, path, None)

    old = maintenance.plan(path, ordered_by("a", "b")).problem
    assert old is not None
    assert (old.code, old.what.startswith("Z-order column `a` does not exist")) == ("T411", True)
    assert maintenance.apply(maintenance.plan(path, ordered_by("renamed", "b"))).status is TableStatus.DONE
    assert {(file.tag(REVISION_TAG) or "").partition(":")[0] for file in maintenance.facts(path).files} == {"2"}
    assert maintenance.plan(path, ordered_by("renamed", "b")).steps == ()
    assert spark_rows(spark, path, None) == rows

    spark.sql(f"ALTER TABLE delta.`{path}` DROP COLUMN renamed")
    gone = maintenance.plan(path, ordered_by("renamed", "b")).problem
    assert gone is not None
    assert (gone.code, gone.what.startswith("Z-order column `renamed` does not exist")) == ("T411", True)
    assert maintenance.apply(maintenance.plan(path, ordered_by("b", "id"))).status is TableStatus.DONE
    assert {(file.tag(REVISION_TAG) or "").partition(":")[0] for file in maintenance.facts(path).files} == {"3"}


REFUSED = {
    "nope": "T411",
    "day": "T412",
    "late": "T413",
    "labels": "T414",
    "items": "T414",
    "payload": "T414",
    "place": "T414",
    "flag": "T427",
    "raw": "T427",
}


def test_columns_without_order_are_refused_by_name_when_planning(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path, tmp_path: Path
) -> None:
    path, between = lake / "t", ", ".join(f"n{number} INT" for number in range(8))
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT, day STRING, labels MAP<STRING, STRING>, items ARRAY<BIGINT>, "
        f"payload VARIANT, place STRUCT<street: STRING>, flag BOOLEAN, raw BINARY, {between}, late STRING) USING delta "
        "PARTITIONED BY (day) TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '9')"
    )
    for first in (0, 100):
        spark.sql(
            f"INSERT INTO delta.`{path}` SELECT id, '2026-01-01', map('k', 'v'), array(id), parse_json('1'), "
            "named_struct('street', 's'), id % 2 = 0, cast('b' AS binary), 0, 0, 0, 0, 0, 0, 0, 0, 'x' "
            f"FROM range({first}, {first + 100})"
        )
    maintenance = Maintenance(engine, tmp_path / "runs")
    version = maintenance.facts(path).version
    for column, code in REFUSED.items():
        problem = maintenance.plan(path, ordered_by("id", column)).problem
        assert problem is not None, column
        assert (problem.code, f"`{column}`" in problem.what) == (code, True), problem
    assert maintenance.facts(path).version == version
