"""Files on the curve by the real engine: ranks as Python counts them, cuts at the borders of cubes, tags, rows kept."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.product import (
    ADDRESS,
    CURVE_CUBE_TAG,
    ELEMENTS_TAG,
    STRATEGY_TAG,
    Batch,
    Bin,
    DeltaEngine,
    DeltaTableEngine,
    Revision,
    SessionLease,
    SetPropertiesStep,
    Strategy,
    TableFacts,
    TableRef,
    ZOrderStep,
    ZOrderTurn,
    curve_files,
    key_of,
    make_column,
    with_address,
)
from tests.support.tables.curve_lake import address_of
from tests.support.tables.delta_tables import no_intent, second_engine_rows, spark_rows, stamp

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.long]


@pytest.fixture
def engine(lease: SessionLease) -> Iterator[DeltaTableEngine]:
    with DeltaEngine(lease).worker("tests") as worker:
        yield worker


UTC = dt.UTC
VALUES: dict[str, list[Any]] = {
    "long": [None, -(2**63), -1, 0, 5, 5, 2**63 - 1, 17],
    "double": [None, float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 1e300, -2.5],
    "decimal(20,5)": [None, Decimal("-1.00001"), Decimal("0"), Decimal("999999999999999.99999"), Decimal("2"),
                      Decimal("3"), Decimal("4"), Decimal("5")],
    "date": [None, dt.date(1, 1, 1), dt.date(1582, 10, 4), dt.date(1582, 10, 15), dt.date(1970, 1, 1),
             dt.date(2026, 2, 28), dt.date(9999, 12, 31), dt.date(1969, 12, 31)],
    "timestamp": [None, dt.datetime(1500, 1, 1, tzinfo=UTC), dt.datetime(1970, 1, 1, tzinfo=UTC),
                  dt.datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC), dt.datetime(2026, 1, 1, tzinfo=UTC),
                  dt.datetime(2026, 1, 1, 0, 0, 0, 999, tzinfo=UTC), dt.datetime(2038, 1, 19, tzinfo=UTC),
                  dt.datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)],
    "string": [None, "", "a", "A", "é", "zz", "it's; --", "x"],
}  # fmt: skip


def text_of(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, dt.datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S.%f").zfill(26)
    return value.isoformat() if isinstance(value, dt.date) else str(value)


@pytest.mark.parametrize("type_name", list(VALUES))
def test_addresses_are_those_that_python_computes(spark: SparkSession, type_name: str) -> None:
    values = VALUES[type_name]
    column = make_column("`a.b c`", type_name, [text_of(value) for value in values], max_bits=3)
    revision = Revision(1, (column,))
    frame = spark.createDataFrame([(value,) for value in values], f"`a.b c` {type_name}")
    rows = [row[0] for row in with_address(frame, revision).select(ADDRESS).collect()]
    keys = [None if value is None else key_of(type_name, str(text_of(value))) for value in values]
    assert rows == [column.rank_of(key) for key in keys]


def test_two_columns_are_interleaved(spark: SparkSession) -> None:
    rows = [(x, y) for x in range(16) for y in range(16)]
    columns = tuple(make_column(n, "integer", [str(r[p]) for r in rows], max_bits=3) for p, n in enumerate("xy"))
    revision = Revision(1, columns)
    frame = with_address(spark.createDataFrame(rows, "x int, y int"), revision)
    for x, y, address in frame.collect():
        assert address == address_of([columns[0].rank_of(x), columns[1].rank_of(y)], revision.bits)


def make_table(spark: SparkSession, path: Path, *, properties: str = "", rows: int = 4000) -> None:
    # Without column mapping Delta allows no space in a name.
    name = "`the name`" if properties else "the_name"
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT, s STRUCT<`x.y`: INT, t: TIMESTAMP>, {name} STRING) USING delta "
        f"{properties}"
    )
    for part in range(3):
        spark.range(part * rows, (part + 1) * rows, 1, 1).selectExpr(
            "(id * 7919) % 12000 AS id",
            "named_struct('x.y', cast(if(id % 50 = 0, null, id * 104729 % 1000) as int), "
            "'t', timestamp_micros(id * 1000003)) AS s",
            f"concat('name ', id % 77) AS {name}",
        ).write.format("delta").mode("append").save(str(path))


def revise(engine: DeltaTableEngine, facts: TableFacts, columns: dict[str, str]) -> Revision:
    sample = engine.reader.column_sample(facts, tuple(columns), max_rows=2000)
    assert all(1000 < len(values) < 3000 for values in sample.values)
    revision = Revision(
        1,
        tuple(
            make_column(name, kind, values) for (name, kind), values in zip(columns.items(), sample.values, strict=True)
        ),
    )
    step = SetPropertiesStep(((revision.property_name, None),), ((revision.property_name, revision.to_json()),), ())
    engine.writer.set_properties(facts, step, stamp("t/set_properties"), no_intent)
    return revision


@pytest.mark.parametrize(
    "properties",
    ["", "TBLPROPERTIES ('delta.columnMapping.mode'='name', 'delta.enableRowTracking'='true', "
         "'delta.enableDeletionVectors'='true')"],
    ids=["plain", "mapped"],
)  # fmt: skip
def test_a_turn_writes_files_along_the_curve(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path, properties: str
) -> None:
    path = lake / "t"
    make_table(spark, path, properties=properties)
    if properties:
        spark.sql(f"DELETE FROM delta.`{path}` WHERE id % 10 = 3")
    before = spark_rows(spark, path)
    facts = engine.reader.facts(TableRef(str(path)))
    columns = {"id": "long", "s.`x.y`": "integer"}
    revision = revise(engine, facts, columns)
    facts = engine.reader.facts(TableRef(str(path)))
    batch = Batch((Bin(facts.files),))
    turn = ZOrderTurn(Strategy.UNINDEXED, revision.tag, 12000, (10,))
    step = ZOrderStep((batch,), tuple(columns), 1 << 20, 2, (), turn)
    receipt = engine.writer.rewrite(facts, step, batch, stamp("t/zorder"), no_intent)
    assert receipt.proof is not None
    assert receipt.proof.holds
    assert spark_rows(spark, path) == before
    if not properties:
        assert second_engine_rows(path) == second_engine_rows(path, version=facts.version)
    after = engine.reader.facts(TableRef(str(path)))
    ranges = engine.reader.column_ranges(after, tuple(columns)).by_file
    files = curve_files(after.files, revision, ranges)
    assert len(files) == len(after.files)
    assert 8 <= len(files) <= 16
    assert sum(file.elements for file in files) == sum(before.values())
    cubes = [file.cube for file in files]
    assert all(not a.startswith(b) for a in cubes for b in cubes if a is not b)
    for file in files:
        assert file.file.tag(STRATEGY_TAG) == "unindexed"
        assert file.file.tag(ELEMENTS_TAG) == str(file.file.physical_records)
        assert file.file.tag(CURVE_CUBE_TAG) == file.cube
        # The ranges that the log has are inside of the cube.
        assert all(a >= 0 and b <= 255 for a, b in zip(file.low, file.high, strict=True))


def test_turns_within_a_cube_stay_in_it(spark: SparkSession, engine: DeltaTableEngine, lake: Path) -> None:
    """``pieces`` and ``leveled`` write what lies in a cube into deeper ones, and touch no file outside of it."""
    path = lake / "t"
    make_table(spark, path, rows=1500)
    before, second = spark_rows(spark, path), second_engine_rows(path)
    facts = engine.reader.facts(TableRef(str(path)))
    columns = {"id": "long", "s.`x.y`": "integer"}
    revision = revise(engine, facts, columns)
    first = ZOrderTurn(Strategy.UNINDEXED, revision.tag, 4500, (8,))
    within = [(Strategy.PIECES, "0"), (Strategy.LEVELED, "1")]
    turns = [(ZOrderTurn(strategy, revision.tag, 2000, (6,), cube=cube), cube) for strategy, cube in within]
    for number, (turn, cube) in enumerate([(first, ""), *turns]):
        facts = engine.reader.facts(TableRef(str(path)))
        inside = [file for file in facts.files if (file.tag(CURVE_CUBE_TAG) or "").startswith(cube)]
        outside = {file.key for file in facts.files} - {file.key for file in inside}
        batch = Batch((Bin(tuple(inside)),))
        step = ZOrderStep((batch,), tuple(columns), 1 << 20, 2, (), turn)
        receipt = engine.writer.rewrite(facts, step, batch, stamp("t/zorder", number), no_intent)
        assert receipt.proof is not None
        assert receipt.proof.holds
        after = {file.key: file for file in engine.reader.facts(TableRef(str(path))).files}
        assert outside <= after.keys()
        new = [file for key, file in after.items() if key not in outside]
        assert len(new) >= 4
        assert all((file.tag(CURVE_CUBE_TAG) or "").startswith(cube) for file in new)
        assert {file.tag(STRATEGY_TAG) for file in new} == {turn.strategy.value}
        assert sum(file.physical_records or 0 for file in new) == sum(file.physical_records or 0 for file in inside)
        if cube:
            assert max(len(file.tag(CURVE_CUBE_TAG) or "") for file in new) > 3
    assert spark_rows(spark, path) == before
    assert second_engine_rows(path) == second


def test_a_cell_with_too_many_rows_is_divided(spark: SparkSession, engine: DeltaTableEngine, lake: Path) -> None:
    path = lake / "t"
    spark.range(0, 6000, 1, 2).selectExpr("id", "cast(1 as int) AS k").write.format("delta").save(str(path))
    facts = engine.reader.facts(TableRef(str(path)))
    column = make_column("k", "integer", ["0", "1", "2", "3"], max_bits=2)
    revision = Revision(1, (column,))
    step = SetPropertiesStep(((revision.property_name, None),), ((revision.property_name, revision.to_json()),), ())
    engine.writer.set_properties(facts, step, stamp("t/set_properties"), no_intent)
    facts = engine.reader.facts(TableRef(str(path)))
    batch = Batch((Bin(facts.files),))
    turn = ZOrderTurn(Strategy.UNINDEXED, revision.tag, 6000, (6,))
    engine.writer.rewrite(
        facts, ZOrderStep((batch,), ("k",), 1 << 20, 2, (), turn), batch, stamp("t/zorder"), no_intent
    )
    after = engine.reader.facts(TableRef(str(path)))
    assert len(after.files) == 3
    assert {file.tag(CURVE_CUBE_TAG) for file in after.files} == {"01"}
    assert sum(file.physical_records or 0 for file in after.files) == 6000
    assert all((file.physical_records or 0) > 1500 for file in after.files)


def test_a_revision_that_is_gone_is_a_conflict(spark: SparkSession, engine: DeltaTableEngine, lake: Path) -> None:
    from tests.support.product import CommitConflict

    path = lake / "t"
    spark.range(0, 100, 1, 2).write.format("delta").save(str(path))
    facts = engine.reader.facts(TableRef(str(path)))
    batch = Batch((Bin(facts.files),))
    turn = ZOrderTurn(Strategy.UNINDEXED, "1:0123456789ab", 100, (2,))
    with pytest.raises(CommitConflict, match=r"maintainer\.zorder\.revision\.1 was removed or changed"):
        engine.writer.rewrite(
            facts, ZOrderStep((batch,), ("id",), 1 << 20, 2, (), turn), batch, stamp("t/zorder"), no_intent
        )
    assert engine.reader.facts(TableRef(str(path))).version == facts.version
