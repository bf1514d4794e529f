"""Files written in this process: as Spark declares them, with the same rows, and proven by a second engine."""

from __future__ import annotations

import json
import os
import struct
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from maintainer.delta.log.statistics_columns import statistics_columns
from maintainer.delta.proof.second_engine.column_values import CannotCompareError, compared_columns
from maintainer.delta.proof.second_engine.duckdb_rows import ComparedFile, measure_by_duckdb
from maintainer.delta.proof.statistics_verdict import Strictness, judge
from maintainer.delta.rewrite.bin_work import LaneUnfit
from maintainer.delta.rewrite.copy_lane import MIN_ROW_GROUP_BYTES, read_footer, why_not_copied
from maintainer.delta.rewrite.local.arrow_rows import SourceFile, file_schema, read_rows
from maintainer.delta.rewrite.local.parquet_writer import LocalTarget, write_local
from tests.support.tables.zoo_rows import ARRAY, SCHEMA, field, table_of, zoo_rows

COLUMNS = statistics_columns(SCHEMA, ())
STRICT = Strictness(complete=True, exact=True, expected=frozenset(column.physical for column in COLUMNS))


def target_in(folder: Path, schema: dict[str, Any] = SCHEMA, **changes: Any) -> LocalTarget:
    columns = statistics_columns(schema, ())
    target = LocalTarget(str(folder / "new.parquet"), file_schema(schema, ()), columns, "snappy", True)
    return replace(target, **changes)


def sources_in(folder: Path, *parts: list[dict[str, Any]], schema: dict[str, Any] = SCHEMA) -> list[str]:
    paths = []
    for number, rows in enumerate(parts):
        paths.append(str(folder / f"old-{number}.parquet"))
        pq.write_table(table_of(rows, file_schema(schema, ())), paths[-1], store_schema=False)
    return paths


def old(sources: list[str]) -> list[ComparedFile]:
    return [ComparedFile(path) for path in sources]


def rewrite(sources: list[str], target: LocalTarget, **options: Any) -> str | None:
    rows = read_rows([SourceFile(path) for path in sources], target.schema, by_id=False, **options)
    return write_local(rows, target)


def verdict(sources: list[str], target: LocalTarget, stats: str, schema: dict[str, Any] = SCHEMA) -> list[str]:
    """What the second engine says about rows and statistics."""
    columns = statistics_columns(schema, ())
    measured = measure_by_duckdb(
        compared_columns(schema, ()), columns, old(sources), [ComparedFile(target.path, stats)]
    )
    strictness = replace(STRICT, expected=frozenset(column.physical for column in columns))
    problems = [*judge({"stats": stats}, columns, measured.files[0], strictness).wrong]
    return problems if measured.read == measured.written else ["other rows", *problems]


def test_every_type_keeps_its_rows_and_gets_true_statistics(tmp_path: Path) -> None:
    rows = zoo_rows()
    sources, target = sources_in(tmp_path, rows[:2], rows[2:]), target_in(tmp_path)
    written = rewrite(sources, target)
    assert written is not None
    assert json.loads(written)["numRecords"] == 5
    assert verdict(sources, target, written) == []
    stats = json.loads(written)
    assert stats["maxValues"]["string"] == "é" * 32 + "\U0010ffff"
    assert (stats["minValues"]["double"], stats["maxValues"]["double"]) == (0.0, "NaN")
    assert stats["minValues"]["timestamp"] == "0001-01-01T00:00:00.000Z"
    assert stats["maxValues"]["timestamp_ntz"] == "9999-12-30T23:59:59.999"
    assert stats["nullCount"]["struct"]["x"] == 3


def test_the_file_is_declared_as_sparks_writer_declares_it(tmp_path: Path) -> None:
    schema = {"type": "struct", "fields": [field("a", "integer", **{"delta.columnMapping.id": 7,
              "delta.columnMapping.physicalName": "col-1"}), field("d", "decimal(9,2)"), field("e", "decimal(38,10)"),
              field("t", "timestamp"), field("n", "timestamp_ntz"), field("l", ARRAY)]}  # fmt: skip
    rows = [{"col-1": 1, "d": None, "e": None, "t": None, "n": None, "l": None}]
    sources, target = sources_in(tmp_path, rows, schema=schema), target_in(tmp_path, schema)
    assert rewrite(sources, target) is not None
    file = pq.ParquetFile(target.path)
    stored = {file.schema.column(place).path: file.schema.column(place) for place in range(len(file.schema))}
    assert {path: (column.physical_type, str(column.logical_type)) for path, column in stored.items()} == {
        "col-1": ("INT32", "None"),
        "d": ("INT32", "Decimal(precision=9, scale=2)"),
        "e": ("FIXED_LEN_BYTE_ARRAY", "Decimal(precision=38, scale=10)"),
        "t": ("INT64", "Timestamp(isAdjustedToUTC=true, timeUnit=microseconds, is_from_converted_type=false, "
                       "force_set_converted_type=false)"),
        "n": ("INT64", "Timestamp(isAdjustedToUTC=false, timeUnit=microseconds, is_from_converted_type=false, "
                       "force_set_converted_type=false)"),
        "l.list.element": ("DOUBLE", "None"),
    }  # fmt: skip
    assert file.schema_arrow.field("col-1").metadata == {b"PARQUET:field_id": b"7"}
    assert set(file.metadata.metadata) == {b"org.apache.spark.version"}
    assert file.metadata.row_group(0).column(0).compression == "SNAPPY"


def test_footers_have_no_bounds_of_floats_as_they_would_leave_nan_out(tmp_path: Path) -> None:
    """Spark skips row groups by footers: `d > 1e300` found no row with NaN any more."""
    kinds = {"id": "long", "d": "double", "f": "float"}
    inner = {"type": "struct", "fields": [
        {"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in kinds.items()
    ]}  # fmt: skip
    fields = [*inner["fields"], {"name": "s", "type": inner, "nullable": True, "metadata": {}}]
    schema = {"type": "struct", "fields": fields}
    target = target_in(tmp_path, schema)
    row = {"id": 1, "d": float("nan"), "f": float("nan")}
    rows = pa.Table.from_pylist([{**row, "s": row}, {"id": 2, "d": 0.5, "f": 0.5}], target.schema)
    write_local(rows.to_batches(), target)
    group = pq.read_metadata(target.path).row_group(0)
    columns = [group.column(place) for place in range(group.num_columns)]
    bounded = {column.path_in_schema for column in columns if column.statistics and column.statistics.has_min_max}
    assert bounded == {"id", "s.id"}
    assert {column.path_in_schema for column in columns if column.has_column_index} == bounded


def test_older_files_get_the_columns_of_today(tmp_path: Path) -> None:
    pq.write_table(pa.table({"gone": [1, 2], "b": pa.array([1, 2], pa.int32())}), tmp_path / "old-0.parquet")
    schema = {"type": "struct", "fields": [field("a", "string"), field("b", "long")]}
    sources, target = [str(tmp_path / "old-0.parquet")], target_in(tmp_path, schema)
    written = rewrite(sources, target)
    assert written is not None
    assert pq.read_table(target.path).to_pylist() == [{"a": None, "b": 1}, {"a": None, "b": 2}]
    assert verdict(sources, target, written, schema) == []


def struct_with_ids(**numbers: int) -> pa.StructType:
    """A struct as a file has it: names, and other ids than the names say."""
    names = {name.replace("_", "-"): number for name, number in numbers.items()}
    return pa.struct([pa.field(name, "int64", metadata={"PARQUET:field_id": str(of)}) for name, of in names.items()])


def rows_by_id(path: Path, stored: pa.DataType, value: Any, kind: Any) -> list[Any]:
    """What is read of a column whose log says ``kind`` and whose file has another name, and the same id."""
    column = pa.field("old", stored, metadata={"PARQUET:field_id": "2"})
    pq.write_table(pa.table([pa.array([value], stored)], pa.schema([column])), path, store_schema=False)
    schema = file_schema({"type": "struct", "fields": [mapped("new", kind, 2)]}, ())
    batches = read_rows([SourceFile(str(path))], schema, by_id=True)
    return [row["col-2"] for row in pa.Table.from_batches(batches, schema).to_pylist()]


def mapped(name: str, kind: Any, number: int) -> dict[str, Any]:
    return field(name, kind, **{"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"})


FIELDS_BY_ID = {"type": "struct", "fields": [mapped("x", "long", 3), mapped("y", "long", 4)]}


@pytest.mark.parametrize(
    ("ids", "value", "read"),
    [
        ({"x": 3, "y": 4}, {"x": 1, "y": 2}, {"col-3": 1, "col-4": 2}),
        ({"y": 4}, {"y": 2}, {"col-3": None, "col-4": 2}),
        ({"col_3": 4, "col_4": 3}, {"col-3": 1, "col-4": 2}, {"col-3": 2, "col-4": 1}),
    ],
)
def test_where_columns_are_found_by_id_their_fields_are_too(
    tmp_path: Path, ids: dict[str, int], value: Any, read: Any
) -> None:
    """They were found by name: null, or the values of another one."""
    path, stored = tmp_path / "old.parquet", struct_with_ids(**ids)
    assert rows_by_id(path, stored, value, FIELDS_BY_ID) == [read]
    above = {"type": "struct", "fields": [mapped("s", FIELDS_BY_ID, 5)]}
    stored = pa.struct([pa.field("old", stored, metadata={"PARQUET:field_id": "5"})])
    assert rows_by_id(path, stored, {"old": value}, above) == [{"col-5": read}]


@pytest.mark.parametrize("ids", [{"x": 3, "y": 4}, {"col_3": 4, "col_4": 3}, {"col_3": 3, "col_4": 4}])
@pytest.mark.parametrize("within", ["array", "map"])
def test_within_arrays_and_maps_names_and_ids_must_agree(tmp_path: Path, ids: dict[str, int], within: str) -> None:
    stored, value = struct_with_ids(**ids), dict.fromkeys((name.replace("_", "-") for name in ids), 1)
    kind: dict[str, Any] = {"type": "array", "elementType": FIELDS_BY_ID, "containsNull": True}
    values: list[Any] = [value]
    stored = pa.list_(stored)
    if within == "map":
        kind = {"type": "map", "keyType": "string", "valueType": FIELDS_BY_ID, "valueContainsNull": True}
        stored, values = pa.map_(pa.string(), stored.value_type), [("a", value)]
    if ids == {"col_3": 3, "col_4": 4}:
        assert rows_by_id(tmp_path / "old.parquet", stored, values, kind) == [values]
        return
    with pytest.raises(LaneUnfit, match="as list" if within == "array" else "as map"):
        rows_by_id(tmp_path / "old.parquet", stored, values, kind)


def test_int96_and_dictionaries_are_read(tmp_path: Path) -> None:
    schema = {"type": "struct", "fields": [field("timestamp", "timestamp"), field("string", "string")]}
    rows = [{"timestamp": row["timestamp"], "string": row["string"]} for row in zoo_rows()[1:]]
    path = str(tmp_path / "old-0.parquet")
    table = table_of(rows, file_schema(schema, ()))
    pq.write_table(table, path, store_schema=False, use_deprecated_int96_timestamps=True, use_dictionary=["string"])
    target = target_in(tmp_path, schema)
    written = rewrite([path], target)
    assert written is not None
    assert pq.read_table(target.path).to_pylist() == table.to_pylist()
    assert verdict([path], target, written, schema) == []


@pytest.mark.parametrize(
    ("stored", "reason"),
    [
        (pa.table({"A": [1]}), "another case"),
        (pa.table({"a": pa.array(["x"])}), "as string"),
        (pa.table({"a": pa.array([1.5])}), "as double"),
        (pa.table({"a": [1]}).replace_schema_metadata({"org.apache.spark.legacyDateTime": ""}), "old calendar"),
        (pa.table({"a": [1]}).replace_schema_metadata({"org.apache.spark.version": "2.4.5"}), "old calendar"),
    ],
)
def test_what_spark_might_read_otherwise_is_left_to_spark(tmp_path: Path, stored: pa.Table, reason: str) -> None:
    pq.write_table(stored, tmp_path / "old.parquet")
    target = target_in(tmp_path, {"type": "struct", "fields": [field("a", "integer")]})
    with pytest.raises(LaneUnfit, match=reason):
        rewrite([str(tmp_path / "old.parquet")], target)
    assert sorted(os.listdir(tmp_path)) == ["old.parquet"]


@pytest.mark.parametrize(
    ("version", "is_old"), [("3.0.3", True), ("3.1.0", False), ("3.10.0", False), ("4.1.4", False)]
)
def test_int96_of_spark_before_3_1_is_of_the_old_calendar(tmp_path: Path, version: str, is_old: bool) -> None:
    """Spark 3.0 had no mark for it: time stamps as INT96 were always of the hybrid calendar, and readers shift them."""
    schema = {"type": "struct", "fields": [field("t", "timestamp")]}
    moment = datetime(1001, 1, 1, tzinfo=UTC)
    table = pa.table({"t": pa.array([moment], pa.timestamp("us", tz="UTC"))})
    plain, int96 = str(tmp_path / "plain.parquet"), str(tmp_path / "int96.parquet")
    for path in (plain, int96):
        options: dict[str, Any] = {"store_schema": False, "use_deprecated_int96_timestamps": path == int96}
        with pq.ParquetWriter(path, table.schema, **options) as writer:
            writer.write_table(table)
            writer.add_key_value_metadata({"org.apache.spark.version": version})
    footer = replace(read_footer(int96), row_group_bytes=(MIN_ROW_GROUP_BYTES,))
    reason = why_not_copied([footer], file_schema(schema, ()), "snappy")
    assert (reason == "a file has dates of the old calendar") is is_old
    assert rewrite([plain], target_in(tmp_path, schema)) is not None
    other = target_in(tmp_path, schema, path=str(tmp_path / "other.parquet"))
    if is_old:
        with pytest.raises(LaneUnfit, match="old calendar"):
            rewrite([int96], other)
    else:
        assert rewrite([int96], other) is not None


def test_nothing_is_left_of_a_failure_and_nothing_is_overwritten(tmp_path: Path) -> None:
    sources, target = sources_in(tmp_path, zoo_rows()), target_in(tmp_path)
    Path(sources[0]).write_bytes(Path(sources[0]).read_bytes()[:200])
    with pytest.raises(LaneUnfit, match="cannot be read here"):
        rewrite(sources, target)
    assert not os.path.exists(target.path)
    Path(target.path).write_bytes(b"somebody's")
    with pytest.raises(FileExistsError):
        rewrite(sources, target)
    assert Path(target.path).read_bytes() == b"somebody's"


def test_soft_deleted_rows_are_left_out_by_both_libraries(tmp_path: Path) -> None:
    rows = [{"n": number} for number in range(200_000)]
    schema = {"type": "struct", "fields": [field("n", "long")]}
    (path,) = sources_in(tmp_path, rows, schema=schema)
    deleted = (0, 1, 65_535, 65_536, 131_072, 199_999)
    target, columns = target_in(tmp_path, schema), compared_columns(schema, ())
    written = write_local(read_rows([SourceFile(path, deleted)], target.schema, by_id=False), target)
    assert written is not None
    live = [number for number in range(200_000) if number not in deleted]
    assert pq.read_table(target.path)["n"].to_pylist() == live
    new = [ComparedFile(target.path, written)]
    measured = measure_by_duckdb(columns, (), [ComparedFile(path, deleted_rows=deleted)], new)
    assert (measured.read, measured.read.rows) == (measured.written, len(live))
    for wrong in ((), deleted[1:], (2, *deleted[1:]), (*deleted, 5)):
        measured = measure_by_duckdb(columns, (), [ComparedFile(path, deleted_rows=wrong)], new)
        assert measured.read != measured.written


def test_no_rows_no_file(tmp_path: Path) -> None:
    target = target_in(tmp_path)
    assert rewrite(sources_in(tmp_path, []), target) is None
    assert not os.path.exists(target.path)


def test_a_stopped_run_writes_nothing_more(tmp_path: Path) -> None:
    class Stopped(Exception):
        pass

    def stop() -> None:
        raise Stopped

    target = target_in(tmp_path)
    with pytest.raises(Stopped):
        rewrite(sources_in(tmp_path, zoo_rows()), target, check_stop=stop)
    assert not os.path.exists(target.path)


def bits(pattern: int) -> float:
    value: float = struct.unpack("<d", struct.pack("<Q", pattern))[0]
    return value


FORGERIES: dict[str, Any] = {
    "a row is lost": lambda rows: rows[:-1],
    "a row is doubled": lambda rows: [*rows, rows[0]],
    "a row stands for another": lambda rows: [rows[1], *rows[1:]],
    "the payload of a NaN": lambda rows: [{**rows[0], "double": bits(0x7FF8000000000002)}, *rows[1:]],
    "the sign of a zero": lambda rows: [rows[0], {**rows[1], "double": 0.0}, *rows[2:]],
    "a zero in a map": lambda rows: [rows[0], {**rows[1], "map": [("a", 0.0)]}, *rows[2:]],
    "a null moves in a list": lambda rows: [{**rows[0], "list": [None, 1.0]}, *rows[1:]],
    "an empty list is null": lambda rows: [*rows[:3], {**rows[3], "list": None}, rows[4]],
    "a null struct has null fields": lambda rows: [
        *rows[:3], {**rows[3], "struct": {"x": None, "y": None, "z": None}}, rows[4]],
    "a null text is the word": lambda rows: [*rows[:2], {**rows[2], "string": "null"}, *rows[3:]],
    "values change places between rows": lambda rows: [
        {**rows[0], "long": rows[1]["long"]}, {**rows[1], "long": rows[0]["long"]}, *rows[2:]],
    "the last values change places": lambda rows: [
        {**rows[0], "structs": rows[1]["structs"]}, {**rows[1], "structs": rows[0]["structs"]}, *rows[2:]],
    "a last digit": lambda rows: [{**rows[0], "decimal38_10": rows[0]["decimal38_10"] - rows[0]["decimal38_10"] % 1},
                                  *rows[1:]],
    "a microsecond": lambda rows: [rows[0], {**rows[1], "timestamp": rows[1]["timestamp"].replace(microsecond=456_788)},
                                   *rows[2:]],
    "a string is cut": lambda rows: [{**rows[0], "string": rows[0]["string"][:-1]}, *rows[1:]],
}  # fmt: skip


@pytest.mark.parametrize("name", FORGERIES)
def test_the_second_engine_sees_every_forged_row(tmp_path: Path, name: str) -> None:
    rows = zoo_rows()
    sources = sources_in(tmp_path, rows)
    forged = tmp_path / "new.parquet"
    pq.write_table(table_of(FORGERIES[name](rows), file_schema(SCHEMA, ())), forged, store_schema=False)
    measured = measure_by_duckdb(compared_columns(SCHEMA, ()), COLUMNS, old(sources), [ComparedFile(str(forged), None)])
    assert measured.read != measured.written
    shuffled = tmp_path / "shuffled.parquet"
    pq.write_table(table_of(rows[::-1], file_schema(SCHEMA, ())), shuffled, store_schema=False)
    measured = measure_by_duckdb(compared_columns(SCHEMA, ()), COLUMNS, old(sources), [ComparedFile(str(shuffled))])
    assert measured.read == measured.written, "the order of rows means nothing"


LIES: dict[str, Any] = {
    "rows": lambda stats: stats.update(numRecords=4),
    "a lower bound too high": lambda stats: stats["minValues"].update(long=0),
    "a lower bound too low": lambda stats: stats["minValues"].update(byte=-129),
    "an upper bound too low": lambda stats: stats["maxValues"].update(string="a"),
    "an upper bound of NaN hidden": lambda stats: stats["maxValues"].update(double=1.0),
    "a date": lambda stats: stats["maxValues"].update(date="9999-12-30"),
    "a time": lambda stats: stats["maxValues"].update(timestamp="2026-11-23T01:02:03.455Z"),
    "a time beyond": lambda stats: stats["maxValues"].update(timestamp="2026-11-23T01:02:03.457Z"),
    "a decimal": lambda stats: stats["maxValues"].update(decimal9_2=-9999999),
    "a nested one": lambda stats: stats["maxValues"]["struct"].update(x=0),
    "nulls": lambda stats: stats["nullCount"].update(float=0),
    "a bound is missing": lambda stats: stats["minValues"].pop("integer"),
}


@pytest.mark.parametrize("name", LIES)
def test_the_second_engine_sees_statistics_that_lie(tmp_path: Path, name: str) -> None:
    sources, target = sources_in(tmp_path, zoo_rows()), target_in(tmp_path)
    written = rewrite(sources, target)
    assert written is not None
    stats = json.loads(written)
    LIES[name](stats)
    assert verdict(sources, target, json.dumps(stats)) != []


def test_a_path_that_duckdb_takes_for_a_pattern_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(CannotCompareError, match="pattern"):
        measure_by_duckdb(compared_columns(SCHEMA, ()), COLUMNS, old([str(tmp_path / "a*.parquet")]), [])


@pytest.mark.parametrize("name", ["it's a 'name'.parquet", "a b%20c.parquet", "ü\n.parquet", "$1;drop.parquet"])
def test_any_other_path_is_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    pq.write_table(table_of(zoo_rows(), file_schema(SCHEMA, ())), path, store_schema=False)
    measured = measure_by_duckdb(compared_columns(SCHEMA, ()), COLUMNS, old([str(path)]), [ComparedFile(str(path))])
    assert (measured.read, measured.read.rows) == (measured.written, 5)


def test_a_damaged_file_is_no_equal_file(tmp_path: Path) -> None:
    (path,) = sources_in(tmp_path, zoo_rows())
    (tmp_path / "new.parquet").write_bytes(Path(path).read_bytes()[:-20])
    with pytest.raises(CannotCompareError, match="DuckDB"):
        measure_by_duckdb(
            compared_columns(SCHEMA, ()), COLUMNS, old([path]), [ComparedFile(str(tmp_path / "new.parquet"), None)]
        )


@pytest.mark.parametrize("kind", ["variant", "interval day to second", "void", {"type": "udt"}])
def test_a_type_that_is_not_known_is_not_compared(kind: object) -> None:
    with pytest.raises(CannotCompareError, match="of type"):
        compared_columns({"type": "struct", "fields": [field("v", kind)]}, ())
