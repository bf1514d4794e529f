"""Statistics of a copy: of rows, whatever the log and the footers say; and what the log had wrong."""

from __future__ import annotations

import json
import math
import struct
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from maintainer.delta.log.statistics_columns import statistics_columns
from maintainer.delta.proof.second_engine.duckdb_rows import ComparedFile, judged_figures
from maintainer.delta.proof.statistics_verdict import Judgement, Strictness, judge
from maintainer.delta.rewrite.bin_work import LaneUnfit
from maintainer.delta.rewrite.copy_lane import Footer, compute_statistics, read_footer
from maintainer.delta.rewrite.local.arrow_rows import file_schema
from maintainer.model.plan.lanes import MAX_SOURCE_FINDINGS, NOTHING_JUDGED, SourceStatistics
from tests.support.tables.forged_footers import spliced
from tests.support.tables.zoo_rows import SCHEMA, field, table_of, zoo_rows

OLD = datetime(1850, 1, 1, 0, 7, 33, tzinfo=UTC)
DAYS = [date(1500, 3, 1), date(1582, 1, 4)]


def schema_of(**kinds: Any) -> dict[str, Any]:
    return {"type": "struct", "fields": [field(name, kind) for name, kind in kinds.items()]}


def copied(
    name: str, path: Path, text: str | None = None, bounded_floats: frozenset[str] = frozenset()
) -> tuple[dict[str, Any], str, Footer]:
    footer = replace(read_footer(str(path)), bounded_floats=bounded_floats)
    return {"path": name, "stats": text}, str(path), footer


def computed(schema: dict[str, Any], *sources: tuple[Path, str | None]) -> tuple[dict[str, Any], SourceStatistics]:
    listed = [copied(path.name, path, text, read_footer(str(path)).bounded_floats) for path, text in sources]
    statistics, found = compute_statistics(listed, file_schema(schema, ()), statistics_columns(schema, ()))
    return json.loads(statistics.to_json(tight_bounds=False)), found


def stats(rows: int, **sides: Any) -> str:
    return json.dumps({"numRecords": rows, **sides})


def test_statistics_of_every_type_are_those_of_all_rows_by_another_library(tmp_path: Path) -> None:
    rows, paths = zoo_rows(), [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for path, part in zip(paths, (rows[:2], rows[2:]), strict=True):
        pq.write_table(table_of(part, file_schema(SCHEMA, ())), path, store_schema=False)
    whole = tmp_path / "whole.parquet"
    pq.write_table(table_of(rows, file_schema(SCHEMA, ())), whole, store_schema=False)
    columns = statistics_columns(SCHEMA, ())
    listed = [copied("f", path) for path in paths]
    statistics, found = compute_statistics(listed, file_schema(SCHEMA, ()), columns)
    text = statistics.to_json(tight_bounds=True)
    strict = Strictness(exact=True, complete=True, expected=frozenset(column.physical for column in columns))
    (figures,) = judged_figures(columns, [ComparedFile(str(whole), text)])
    assert figures is not None
    assert judge({"stats": text}, columns, figures, strict) == Judgement()
    assert found == SourceStatistics(2 * len(columns))


def test_a_nan_behind_a_finite_maximum_comes_to_light_at_any_depth(tmp_path: Path) -> None:
    schema = schema_of(d="double", s=schema_of(f="float"))
    path = tmp_path / "f.parquet"
    rows: list[dict[str, Any]] = [
        {"d": 1.5, "s": {"f": math.nan}},
        {"d": math.nan, "s": {"f": 2.5}},
        {"d": 4.0, "s": None},
    ]
    pq.write_table(table_of(rows, file_schema(schema, ())), path, write_statistics=False)
    log = stats(3, minValues={"d": 1.5, "s": {"f": 2.5}}, maxValues={"d": 4.0, "s": {"f": 2.5}})
    text, found = computed(schema, (path, log))
    assert (text["minValues"], text["maxValues"]) == ({"d": 1.5, "s": {"f": 2.5}}, {"d": "NaN", "s": {"f": "NaN"}})
    assert (found.num_computed, found.num_wrong) == (2, 2)
    assert found.wrong[0] == "f.parquet: rows lie outside the bounds of d (minValues says 1.5, maxValues 4.0)"
    assert "f.parquet" in str(found.note)


@pytest.mark.parametrize("group_rows", [1, 2, 4])
def test_a_file_whose_footer_leaves_a_row_out_of_its_bounds_is_not_copied(tmp_path: Path, group_rows: int) -> None:
    path, schema = tmp_path / "f.parquet", schema_of(i="long")
    rows, said = ([1234567, 2, None, None], [99, 2, None, None])
    tables = [pa.table({"i": pa.array(values, pa.int64())}) for values in (rows, said)]
    spliced(path, *tables, row_group_size=group_rows)
    with pytest.raises(LaneUnfit, match="a footer's bounds leave rows out"):
        computed(schema, (path, None))
    spliced(path, tables[0], tables[0], row_group_size=group_rows)
    assert computed(schema, (path, None))[0]["maxValues"] == {"i": 1234567}


@pytest.mark.parametrize(
    ("kind", "values", "bounds", "log", "is_wrong"),
    [
        # The offset of Stockholm had seconds until 1879; statistics that leave them out are beside the rows.
        ("timestamp", [OLD], ("1850-01-01T00:07:33.000Z",) * 2,
         ("1850-01-01T01:01:01.000+00:53",) * 2, True),
        ("timestamp", [OLD], ("1850-01-01T00:07:33.000Z",) * 2,
         ("1850-01-01T01:01:01.000+00:53:28",) * 2, False),
        ("timestamp", [datetime(2020, 1, 1, 0, 0, 0, 1999, tzinfo=UTC)], ("2020-01-01T00:00:00.001Z",) * 2,
         ("2020-01-01T00:00:00.001Z",) * 2, False),
        ("timestamp_ntz", [datetime.fromisoformat("2020-01-01T00:00:00.001999")], ("2020-01-01T00:00:00.001",) * 2,
         ("2020-01-01T00:00:00.000",) * 2, True),
        ("date", DAYS, ("1500-03-01", "1582-01-04"), ("1500-02-20", "1582-10-14"), False),
        ("date", DAYS, ("1500-03-01", "1582-01-04"), ("1500-03-10", "1582-10-14"), True),
        ("decimal(38,1)", [Decimal("1" * 37 + ".5")], (Decimal("1" * 37 + ".5"),) * 2, (1.1e36, 1.2e36), False),
        ("decimal(38,1)", [Decimal("1" * 37 + ".5")], (Decimal("1" * 37 + ".5"),) * 2, (1.1e36, 1.11e36), True),
        # Cut by characters, and by bytes with the last one raised.
        ("string", ["z" * 40], ("z" * 32, "z" * 32 + "\x7f"), ("z" * 32, "z" * 31 + "{"), False),
        ("string", ["é" * 40], ("é" * 32, "é" * 32 + "\U0010ffff"), ("é" * 16, "é" * 15 + "ê"), False),
        ("string", ["z" * 40], ("z" * 32, "z" * 32 + "\x7f"), ("z" * 32, "z" * 32), True),
        ("long", [5], (5, 5), (4, 6), False),
        ("long", [5], (5, 5), (6, 7), True),
    ],
)  # fmt: skip
def test_each_type_is_computed_and_the_log_judged(
    tmp_path: Path, kind: str, values: list[Any], bounds: Any, log: Any, is_wrong: bool
) -> None:
    schema, path = schema_of(c=kind), tmp_path / "f.parquet"
    pq.write_table(table_of([{"c": value} for value in [*values, None]], file_schema(schema, ())), path)
    text = stats(len(values) + 1, minValues={"c": log[0]}, maxValues={"c": log[1]}, nullCount={"c": 1})
    statistics, found = compute_statistics(
        [copied("f", path, text)], file_schema(schema, ()), statistics_columns(schema, ())
    )
    result = json.loads(statistics.to_json(tight_bounds=False), parse_float=Decimal)
    assert (result["minValues"]["c"], result["maxValues"]["c"], result["nullCount"]["c"]) == (*bounds, 1)
    assert found.num_wrong == is_wrong


def test_int96_is_read_in_microseconds_of_utc(tmp_path: Path) -> None:
    moment, path = datetime(1500, 1, 1, tzinfo=UTC), tmp_path / "f.parquet"
    rows = pa.table({"c": pa.array([moment, datetime(2500, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC"))})
    pq.write_table(rows, path, use_deprecated_int96_timestamps=True)
    text, _ = computed(schema_of(c="timestamp"), (path, None))
    assert (text["minValues"]["c"], text["maxValues"]["c"]) == ("1500-01-01T00:00:00.000Z", "2500-01-01T00:00:00.000Z")


def test_null_counts_of_nested_columns_are_of_rows_and_not_of_leaves(tmp_path: Path) -> None:
    schema = schema_of(a={"type": "array", "elementType": "long", "containsNull": True}, s=schema_of(x="long"))
    path = tmp_path / "f.parquet"
    rows: list[dict[str, Any]] = [
        {"a": [None, None, 1], "s": {"x": None}},
        {"a": [], "s": None},
        {"a": None, "s": {"x": 3}},
    ]
    pq.write_table(table_of(rows, file_schema(schema, ())), path)
    assert pq.read_metadata(path).row_group(0).column(0).statistics.null_count == 4
    text, found = computed(schema, (path, stats(3, nullCount={"a": 4, "s": {"x": 2}})))
    assert text["nullCount"] == {"a": 1, "s": {"x": 2}}
    assert found.wrong == ("f.parquet: nullCount of a says 4, it holds 1 null",)


@pytest.mark.parametrize("text", [None, "", "{", "[]", "{}", '{"stats_json": "{}"}', '{"numRecords": "2"}',
                                  stats(2, maxValues={"c": "2020-01-01 00:00:00"})])  # fmt: skip
def test_statistics_that_are_missing_or_strange_are_computed_all_the_same(tmp_path: Path, text: str | None) -> None:
    schema, path = schema_of(c="timestamp"), tmp_path / "f.parquet"
    rows: list[dict[str, Any]] = [{"c": datetime(2020, 1, 1, tzinfo=UTC)}, {"c": None}]
    pq.write_table(table_of(rows, file_schema(schema, ())), path)
    result, found = computed(schema, (path, text))
    assert (result["numRecords"], result["nullCount"]) == (2, {"c": 1})
    assert found == SourceStatistics(1)


def test_without_columns_rows_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"i": [1, 2, 3]}), path)
    statistics, found = compute_statistics([copied("f", path)], file_schema(schema_of(i="long"), ()), ())
    assert (json.loads(statistics.to_json(tight_bounds=False))["numRecords"], found) == (3, NOTHING_JUDGED)


def test_a_year_beyond_9999_goes_to_another_lane(tmp_path: Path) -> None:
    schema, path = schema_of(c="timestamp"), tmp_path / "f.parquet"
    far = pa.array([2**62], pa.int64()).cast(pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"c": far}), path)
    with pytest.raises(LaneUnfit, match="beyond the year 9999"):
        computed(schema, (path, None))


def test_many_findings_are_counted_and_some_are_kept() -> None:
    many = SourceStatistics.of(90, [f"f{number}: x" for number in range(30)])
    both = many + SourceStatistics.of(10, ["last: x"])
    assert (both.num_computed, both.num_wrong, len(both.wrong)) == (100, 31, MAX_SOURCE_FINDINGS)
    assert str(both.note).endswith("f0: x; f1: x; and 29 more")
    assert "in 31 places" in str(both.note)
    assert NOTHING_JUDGED.note is None


@pytest.mark.parametrize("where", ["d", "s.f", "of no statistics"])
def test_a_file_whose_footer_leaves_nan_out_of_its_bounds_is_not_copied(tmp_path: Path, where: str) -> None:
    """Footers are copied, and Spark skips row groups by them."""
    array = {"type": "array", "elementType": "double", "containsNull": True}
    schema, path = schema_of(d="double", s=schema_of(f="float"), a=array), tmp_path / "f.parquet"
    nan, values = float("nan"), {"d": 0.5, "s": {"f": 0.5}, "a": [float("nan"), 1.0]}
    with_nan = {**values, "s": {"f": nan}} if where == "s.f" else {**values, "d": nan}
    arrow = file_schema(schema, ())
    columns = () if where == "of no statistics" else statistics_columns(schema, ())

    def compute(rows: list[dict[str, Any]], **options: Any) -> None:
        pq.write_table(table_of(rows, arrow), path, **options)
        compute_statistics([copied("f", path, None, read_footer(str(path)).bounded_floats)], arrow, columns)

    with pytest.raises(LaneUnfit, match=f"leaves NaN out of the bounds of {'s.f' if where == 's.f' else 'd'}, by"):
        compute([values, with_nan])
    compute([values, values])  # the NaN of an array has no bound that a reader would use
    compute([values, with_nan], write_statistics=["a.list.element"])
    compute([values, with_nan], write_statistics=False)


def test_bounds_that_are_nan_skip_no_rows(tmp_path: Path) -> None:
    """Spark writes NaN as a bound, and no reader goes by it: such a file is copied."""
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"d": [1.5]}), path, use_dictionary=False)
    assert read_footer(str(path)).bounded_floats == {"d"}
    data = path.read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    nan = data[start:].replace(struct.pack("<d", 1.5), struct.pack("<d", math.nan))
    path.write_bytes(data[:start] + nan)
    assert math.isnan(pq.read_metadata(path).row_group(0).column(0).statistics.max)
    assert read_footer(str(path)).bounded_floats == frozenset()
