"""Rows counted by DuckDB from the footers of files; what it cannot count exactly is left to Spark."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import threading
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from maintainer.delta.log.statistics_columns import StatisticsColumn, statistics_columns
from maintainer.delta.proof.second_engine.column_values import CannotCompareError, compared_columns
from maintainer.delta.proof.second_engine.duckdb_rows import (
    ComparedFile,
    count_rows,
    judged_figures,
    measure_by_duckdb,
)
from maintainer.delta.proof.statistics_verdict import Judgement, Strictness, judge


def parquet_file(path: Path, num_rows: int) -> str:
    pq.write_table(pa.table({"n": list(range(num_rows))}), path, row_group_size=3)
    return str(path)


def test_rows_of_all_files_are_counted(tmp_path: Path) -> None:
    files = [parquet_file(tmp_path / f"{num_rows}.parquet", num_rows) for num_rows in (0, 1, 7)]
    assert (count_rows(files), count_rows(files[:1]), count_rows([])) == (8, 0, 0)


def test_a_file_that_was_changed_in_place_is_read_anew(tmp_path: Path) -> None:
    """Same path, size and time: nothing but the bytes says that it is another."""
    path = tmp_path / "a.parquet"
    field = {"name": "id", "type": "long", "nullable": True, "metadata": {}}
    columns = compared_columns({"type": "struct", "fields": [field]}, ())
    pq.write_table(pa.table({"id": pa.array([1, 2, 3])}), path, use_dictionary=False, compression="none")
    status = path.stat()
    before = measure_by_duckdb(columns, (), [ComparedFile(str(path))], ()).read
    assert measure_by_duckdb(columns, (), [ComparedFile(str(path))], ()).read == before
    pq.write_table(pa.table({"id": pa.array([1, 2, 4])}), path, use_dictionary=False, compression="none")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert path.stat().st_size == status.st_size
    after = measure_by_duckdb(columns, (), [ComparedFile(str(path))], ()).read
    assert after.rows == before.rows
    assert after != before


@pytest.mark.parametrize(
    ("kind", "type_", "code", "infinity", "nan"),
    [
        ("float", pa.float32(), "<I", 0x7F800000, 0x7FC00000),
        ("double", pa.float64(), "<Q", 0x7FF0 << 48, 0x7FF8 << 48),
    ],
)
def test_floats_are_compared_bit_by_bit(
    tmp_path: Path, kind: str, type_: pa.DataType, code: str, infinity: int, nan: int
) -> None:
    """Both zeros, every NaN with its sign and payload, null: DuckDB's own comparison takes some of them for equal."""
    field = {"name": "d", "type": kind, "nullable": True, "metadata": {}}
    columns = compared_columns({"type": "struct", "fields": [field]}, ())

    def of(bits: int | None) -> object:
        path = tmp_path / f"{bits}.parquet"
        values = b"".join(struct.pack(code, value or 0) for value in (bits, 1, bits))
        present = pa.array([bits is not None, True, bits is not None]).buffers()[1]
        pq.write_table(pa.table({"d": pa.Array.from_buffers(type_, 3, [present, pa.py_buffer(values)])}), path)
        return measure_by_duckdb(columns, (), (), [ComparedFile(str(path))]).written

    sign = 1 << (8 * struct.calcsize(code) - 1)
    patterns = [0, 1, 2, infinity, nan, nan + 1]
    patterns += [sign + bits for bits in patterns]
    assert len({of(bits) for bits in (*patterns, None)}) == len(patterns) + 1


@pytest.mark.parametrize("kind", ["double", "float", "long", "string", "date", "timestamp", "timestamp_ntz"])
def test_a_column_that_came_later_is_null_in_older_files_and_in_no_new_one(tmp_path: Path, kind: str) -> None:
    fields = [
        {"name": name, "type": of, "nullable": True, "metadata": {}} for name, of in (("id", "long"), ("c", kind))
    ]
    columns = compared_columns({"type": "struct", "fields": fields}, ())
    old, new = (ComparedFile(str(tmp_path / f"{name}.parquet")) for name in ("old", "new"))
    rows = pa.table({"id": pa.array([1, 2, 3])})
    types = {"double": pa.float64(), "float": pa.float32(), "long": pa.int64(), "string": pa.string()}
    types |= {"date": pa.date32(), "timestamp": pa.timestamp("us", "UTC"), "timestamp_ntz": pa.timestamp("us")}
    pq.write_table(rows, old.path)
    pq.write_table(rows.append_column("c", pa.nulls(3, types[kind])), new.path)
    statistics = statistics_columns({"fields": fields}, ())
    measured = measure_by_duckdb(columns, statistics, [replace(old, stats='{"numRecords":3}')], [new])
    assert measured.read == measured.written
    assert [of_file.nulls for of_file in measured.sources if of_file] == [(0, 3)]
    with pytest.raises(CannotCompareError, match="lacks the column c"):
        measure_by_duckdb(columns, (), [new], [old])


OLD_CALENDAR = {"org.apache.spark.legacyDateTime": ""}


@pytest.mark.parametrize(
    ("kind", "metadata", "is_compared"),
    [
        ("date", OLD_CALENDAR, False),
        ("timestamp", OLD_CALENDAR, False),
        ("timestamp", {"org.apache.spark.legacyINT96": ""}, False),
        ({"type": "array", "elementType": "date", "containsNull": True}, OLD_CALENDAR, False),
        ("date", {"org.apache.spark.version": "2.4.8"}, False),
        ("date", {"org.apache.spark.version": "3.0.3"}, True),
        ("timestamp", {"org.apache.spark.version": "3.0.3"}, False),
        ("timestamp", {"org.apache.spark.version": "4.1.4"}, True),
        ("timestamp", {}, True),
        ("timestamp_ntz", OLD_CALENDAR, True),
        ("long", OLD_CALENDAR, True),
    ],
)
@pytest.mark.parametrize("is_source", [True, False])
def test_dates_of_the_old_calendar_are_not_compared(
    tmp_path: Path, kind: Any, metadata: dict[str, str], is_compared: bool, is_source: bool
) -> None:
    """Readers shift them, and DuckDB does not: what Spark reads and writes again would count as other rows."""
    day = date(1001, 1, 1)
    values = {
        "date": pa.array([day]),
        "timestamp": pa.array([day]).cast(pa.timestamp("us")).cast(pa.timestamp("us", tz="UTC")),
        "timestamp_ntz": pa.array([day]).cast(pa.timestamp("us")),
        "long": pa.array([1]),
    }
    column = values[kind] if isinstance(kind, str) else pa.array([[day]])
    new, old = ComparedFile(str(tmp_path / "new.parquet")), ComparedFile(str(tmp_path / "old.parquet"))
    pq.write_table(pa.table({"x": column}), new.path)
    pq.write_table(pa.table({"x": column}).replace_schema_metadata(metadata), old.path)
    field = {"name": "x", "type": kind, "nullable": True, "metadata": {}}
    columns = compared_columns({"type": "struct", "fields": [field]}, ())
    sources, written = ([new, old], [new]) if is_source else ([new], [new, old])
    if is_compared:
        assert measure_by_duckdb(columns, (), sources, written).read.rows == len(sources)
    else:
        with pytest.raises(CannotCompareError, match="old calendar"):
            measure_by_duckdb(columns, (), sources, written)


def test_a_file_that_is_not_there_or_not_whole_is_not_counted(tmp_path: Path) -> None:
    whole = parquet_file(tmp_path / "whole.parquet", 7)
    torn = tmp_path / "torn.parquet"
    torn.write_bytes(Path(whole).read_bytes()[:-9])
    for bad in (str(torn), str(tmp_path / "gone.parquet")):
        with pytest.raises(CannotCompareError, match="DuckDB"):
            count_rows([whole, bad])


def test_a_path_that_would_be_a_pattern_is_not_counted(tmp_path: Path) -> None:
    parquet_file(tmp_path / "a1.parquet", 1)
    with pytest.raises(CannotCompareError, match="pattern"):
        count_rows([parquet_file(tmp_path / "a[0-9].parquet", 2)])


def test_a_process_can_be_started_afterwards_from_another_thread(tmp_path: Path) -> None:
    """Python clears what belongs to other threads in a forked child. A DuckDB that is cleared there ends the child."""
    assert count_rows([parquet_file(tmp_path / "a.parquet", 4)]) == 4
    codes: list[int] = []

    def start() -> None:
        child = subprocess.Popen([sys.executable, "-c", ""], preexec_fn=lambda: None)
        codes.append(child.wait(60))

    thread = threading.Thread(target=start)
    thread.start()
    thread.join(60)
    assert codes == [0]


EXACT = Strictness(exact=True)
at = datetime.fromisoformat


def judged(file: Path, kinds: dict[str, str], **stats: Any) -> Judgement:
    """What the one rule says about statistics of a file, by figures of its rows."""
    columns = tuple(
        StatisticsColumn(tuple(name.split(".")), tuple(name.split(".")), kind) for name, kind in kinds.items()
    )
    text = json.dumps(stats)
    (figures,) = judged_figures(columns, [ComparedFile(str(file), text)])
    assert figures is not None
    return judge({"stats": text}, columns, figures, EXACT)


def forge_footer(path: Path, old: bytes, new: bytes) -> None:
    """Replace bytes in a file's footer, wherever they are; its pages stay as they are."""
    data = path.read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    assert old in data[start:]
    path.write_bytes(data[:start] + data[start:].replace(old, new))


def test_figures_are_of_rows_and_not_of_footers(tmp_path: Path) -> None:
    """Alone in its file and its query, so that DuckDB may answer from the footer if it is let."""
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"i": pa.array([1234567, 2, 3] * 50)}), path, use_dictionary=False)
    forge_footer(path, struct.pack("<q", 1234567), struct.pack("<q", 99))
    assert pq.read_metadata(path).row_group(0).column(0).statistics.max == 99
    assert judged(path, {"i": "long"}, numRecords=150, minValues={"i": 2}, maxValues={"i": 99}).wrong
    assert judged(path, {"i": "long"}, numRecords=150, minValues={"i": 2}, maxValues={"i": 1234567}) == Judgement()
    # A footer that counts no nulls where there are a hundred, as a number of two bytes.
    pq.write_table(pa.table({"i": pa.array([None, 2, 3] * 100, pa.int64())}), path, use_dictionary=False)
    forge_footer(path, b"\x16\xc8\x01", b"\x16\x80\x00")
    assert pq.read_metadata(path).row_group(0).column(0).statistics.null_count == 0
    assert judged(path, {"i": "long"}, numRecords=300, nullCount={"i": 0}).wrong
    assert judged(path, {"i": "long"}, numRecords=300, nullCount={"i": 100}) == Judgement()


@pytest.mark.parametrize("kind", ["float", "double"])
def test_nan_is_the_greatest_number_though_footers_leave_it_out(tmp_path: Path, kind: str) -> None:
    path, type_ = tmp_path / "f.parquet", pa.float32() if kind == "float" else pa.float64()
    values = pa.array([1.5, float("nan"), 2.5], type_)
    nested = pa.StructArray.from_arrays([values], ["x"])
    pq.write_table(pa.table({"d": values, "s": nested}), path)
    assert pq.read_metadata(path).row_group(0).column(0).statistics.max == 2.5
    for column, put in (("d", lambda bound: {"d": bound}), ("s.x", lambda bound: {"s": {"x": bound}})):
        for bound, is_wrong in ((2.5, True), ("Infinity", True), ("NaN", False)):
            stats = {"numRecords": 3, "minValues": put(1.5), "maxValues": put(bound)}
            assert bool(judged(path, {column: kind}, **stats).wrong) == is_wrong, (column, bound)


@pytest.mark.parametrize(
    ("kind", "values", "type_", "good", "wide", "narrow"),
    [
        ("long", [-3, 8], pa.int64(), (-3, 8), (-4, 9), (-2, 7)),
        ("integer", [-3, 8], pa.int16(), (-3, 8), (-4, 9), (-2, 7)),
        ("double", [-0.0, 8.25], pa.float64(), (0.0, 8.25), (-0.5, 8.5), (0.5, 8.125)),
        ("float", [0.1, 0.25], pa.float32(), (0.1, 0.25), (0.0, 0.5), (0.125, 0.2)),
        ("date", [date(1500, 3, 1), date(2024, 2, 29)], pa.date32(), ("1500-03-01", "2024-02-29"),
         ("1500-02-28", "2024-03-01"), ("1500-03-02", "2024-02-28")),
        ("decimal(12,2)", [Decimal("-1.50"), Decimal("9999999999.99")], pa.decimal128(12, 2), (-1.5, 9999999999.99),
         (-1.51, 10000000000), (-1.49, 9999999999.98)),
        ("string", ["b" * 40, "y" * 40], pa.string(), ("b" * 32, "y" * 32 + "\x7f"), ("a", "z"), ("b" * 41, "y" * 32)),
        ("timestamp", [at("1850-01-01T00:07:13.000999"), at("2024-01-01T00:00:00.000999")],
         pa.timestamp("us", "UTC"), ("1850-01-01T01:00:41.000+00:53:28", "2024-01-01T00:00:00.000Z"),
         ("1850-01-01T00:00:00Z", "2024-01-02T00:00:00Z"),
         ("1850-01-01T01:01:00.000+00:53", "2023-12-31T23:59:59.999Z")),
        ("timestamp_ntz", [at("2020-01-01T00:00:00"), at("2024-01-01T00:00:00.000999")], pa.timestamp("us"),
         ("2020-01-01", "2024-01-01T00:00:00.000"), ("2019-12-31", "2024-01-01T00:00:00.001"),
         ("2020-01-01T00:00:00.001", "2023-12-31T23:59:59.999")),
        # A date that became a time stamp: older files hold dates, their bounds are spelled as dates.
        ("timestamp_ntz", [date(2020, 1, 1), date(2024, 1, 1)], pa.date32(), ("2020-01-01", "2024-01-01"),
         ("2019-12-31", "2024-01-02T00:00:00"), ("2020-01-02", "2023-12-31T00:00:00")),
    ],
)  # fmt: skip
def test_each_type_by_its_rule(
    tmp_path: Path, kind: str, values: list[Any], type_: pa.DataType, good: Any, wide: Any, narrow: Any
) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"c": pa.array([*values, None], type_)}), path)

    def with_bounds(low: Any, high: Any) -> Judgement:
        return judged(path, {"c": kind}, numRecords=3, minValues={"c": low}, maxValues={"c": high}, nullCount={"c": 1})

    assert with_bounds(*good) == Judgement()
    reached = kind not in ("string", "timestamp", "timestamp_ntz")
    for low, high in ((wide[0], good[1]), (good[0], wide[1])):
        assert [text.rpartition(", ")[2] for text in with_bounds(low, high).wrong] == ["which no row reaches"] * reached
    for low, high in ((narrow[0], good[1]), (good[0], narrow[1])):
        assert [text[:16] for text in with_bounds(low, high).wrong] == ["rows lie outside"]


def test_nulls_of_nested_columns_and_of_columns_that_came_later(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    lists = pa.array([[None, None], [], None], pa.list_(pa.int64()))
    structs = pa.array([{"x": None}, {"x": 1}, None], pa.struct([("x", pa.int64())]))
    pq.write_table(pa.table({"l": lists, "s": structs}), path)
    kinds = {"l": "array", "s.x": "long", "later": "long"}
    right = {"l": 1, "s": {"x": 2}, "later": 3}
    assert judged(path, kinds, numRecords=3, nullCount=right) == Judgement()
    for name, wrong in (("l", 3), ("s", {"x": 1}), ("later", 0)):
        assert len(judged(path, kinds, numRecords=3, nullCount={**right, name: wrong}).wrong) == 1


def test_statistics_that_cannot_be_compared_are_nobodys_fault(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"c": pa.array([at("2024-01-01T00:00:00")], pa.timestamp("us", "UTC"))}), tmp_path / "f.parquet"
    )
    columns = (StatisticsColumn(("c",), ("c",), "timestamp"),)
    for text in ("2024-01-01 00:00:00", 5, "soon"):
        file = ComparedFile(str(tmp_path / "f.parquet"), json.dumps({"numRecords": 1, "maxValues": {"c": text}}))
        assert judged_figures(columns, [file]) == [None]
    for stats in ("[]", "{", "", None):
        assert judged_figures(columns, [ComparedFile(str(tmp_path / "f.parquet"), stats)]) != [None]


def test_files_that_are_read_have_figures_of_their_own(tmp_path: Path) -> None:
    """Also one with deleted rows, one without rows, one whose struct is older, and a column called as DuckDB's own."""
    of_struct = [{"name": "d", "type": "double"}, {"name": "t", "type": "string"}]
    fields = [{"name": "filename", "type": "long"}, {"name": "s", "type": {"type": "struct", "fields": of_struct}}]
    schema = {"type": "struct", "fields": fields}
    columns, statistics = compared_columns(schema, ()), statistics_columns(schema, ())
    struct = pa.struct([("d", pa.float64()), ("t", pa.string())])
    nan = float("nan")
    rows: dict[str, tuple[list[int | None], list[dict[str, Any]], pa.DataType]] = {
        "right": ([1, 2, None], [{"d": 0.5, "t": "a"}, {"d": 1.5, "t": None}, {"d": None, "t": "c"}], struct),
        "nan": ([3, 4], [{"d": nan, "t": "x"}, {"d": 2.5, "t": "y"}], struct),
        "older": ([5, 6], [{"d": 7.5}, {"d": 8.5}], pa.struct([("d", pa.float64())])),
        "deleted": ([7, 8, 9], [{"d": 1.0, "t": "k"}] * 3, struct),
        "strange": ([1, 1], [{"d": 1.0, "t": "k"}] * 2, struct),
        "empty": ([], [], struct),
    }
    bounds = {
        "right": ({"filename": 1, "s": {"d": 0.5, "t": "a"}}, {"filename": 2, "s": {"d": 1.5, "t": "c"}}),
        "nan": ({"filename": 3, "s": {"d": 2.5}}, {"filename": 4, "s": {"d": 2.5}}),
        "older": ({"filename": 5, "s": {"d": 7.5}}, {"filename": 5, "s": {"d": 8.5}}),
        "deleted": ({"filename": 8}, {"filename": 9}),
        "strange": ({"filename": "one"}, {"filename": 1}),
        "empty": ({}, {}),
    }
    files = []
    for name, (numbers, structs, type_) in rows.items():
        path = tmp_path / f"{name} file.parquet"
        pq.write_table(pa.table({"filename": pa.array(numbers, pa.int64()), "s": pa.array(structs, type_)}), path)
        least, most = bounds[name]
        stats = {"numRecords": len(numbers), "minValues": least, "maxValues": most}
        files.append(ComparedFile(str(path), json.dumps(stats), (1,) if name == "deleted" else ()))

    measured = measure_by_duckdb(columns, statistics, files, ())
    without = measure_by_duckdb(
        columns, statistics, [ComparedFile(file.path, None, file.deleted_rows) for file in files], ()
    )
    assert measured.read == without.read
    assert without.sources == ()
    assert measured.read.rows == sum(len(numbers) for numbers, *_ in rows.values()) - 1

    by_name = dict(zip(rows, measured.sources, strict=True))
    assert by_name.pop("strange") is None
    figures = {name: of_file for name, of_file in by_name.items() if of_file is not None}
    assert figures.keys() == by_name.keys()
    assert {name: of_file.rows for name, of_file in figures.items()} == {
        "right": 3, "nan": 2, "older": 2, "deleted": 2, "empty": 0,
    }  # fmt: skip
    assert {name: of_file.nulls for name, of_file in figures.items()} == {
        "right": (1, 1, 1), "nan": (0, 0, 0), "older": (0, 0, 2), "deleted": (0, 0, 0), "empty": (0, 0, 0),
    }  # fmt: skip
    # Bit 0 is the number, bit 1 the double: NaN is above 2.5, 6 above 5, and 7 below 8.
    assert {name: of_file.outside for name, of_file in figures.items()} == {
        "right": 0, "nan": 2, "older": 1, "deleted": 1, "empty": 0,
    }  # fmt: skip
