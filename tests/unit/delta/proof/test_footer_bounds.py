"""Bounds in the footer of a new file are judged by its rows: readers skip row groups by them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from maintainer.delta.log.statistics_columns import statistics_columns
from maintainer.delta.proof.footers import row_groups
from maintainer.delta.proof.second_engine.column_values import CannotCompareError, OtherTypeError, compared_columns
from maintainer.delta.proof.second_engine.duckdb_rows import ComparedFile, judged_figures, measure_by_duckdb
from maintainer.delta.rewrite.local.arrow_rows import file_schema
from maintainer.delta.rewrite.local.local_statistics import FileStatistics
from tests.support.tables.forged_footers import spliced
from tests.support.tables.zoo_rows import SCHEMA, field, table_of, zoo_rows

ZONE = pa.timestamp("us", tz="UTC")


def moment(day: int) -> datetime:
    return datetime(2024, 1, day, 1, 2, 3, 456_789, tzinfo=UTC)


def table(kind: Any, type_: pa.DataType, values: Sequence[Any]) -> tuple[dict[str, Any], pa.Table]:
    """A schema of the log with one column, and its rows."""
    return {"type": "struct", "fields": [field("c", kind)]}, pa.table({"c": pa.array(values, type_)})


def hidden(path: str, schema: dict[str, Any], deleted: tuple[int, ...] = ()) -> tuple[str, ...]:
    """What the production code says of a new file."""
    file = ComparedFile(path, None, deleted, row_groups(path))
    measured = measure_by_duckdb(compared_columns(schema, ()), statistics_columns(schema, ()), [], [file])
    (figures,) = judged_figures(statistics_columns(schema, ()), [file])
    assert figures is not None
    assert figures.hidden == measured.files[0].hidden
    return figures.hidden


TRIPLES: dict[str, tuple[pa.DataType, Any, Any, Any]] = {
    "byte": (pa.int8(), -5, 0, 5),
    "short": (pa.int16(), -500, 0, 500),
    "integer": (pa.int32(), -(2**31), 0, 2**31 - 1),
    "long": (pa.int64(), -(2**63), 0, 2**63 - 1),
    "float": (pa.float32(), -1.5, 0.25, 1.5),
    "double": (pa.float64(), -math.inf, 0.1, math.inf),
    "decimal(9,2)": (pa.decimal128(9, 2), Decimal("-1.25"), Decimal("0.01"), Decimal("1.25")),
    "decimal(38,10)": (pa.decimal128(38, 10), Decimal("-9" * 1 + "9" * 27), Decimal("1e-10"), Decimal("9" * 28)),
    "string": (pa.string(), "aa", "bb", "é"),
    "binary": (pa.binary(), b"\x00a", b"bb", b"\xff\xfe"),
    "date": (pa.date32(), date(1, 1, 1), date(1969, 12, 31), date(9999, 12, 31)),
    "timestamp": (ZONE, moment(1), moment(2), moment(3)),
    "timestamp_ntz": (pa.timestamp("us"), *(moment(day).replace(tzinfo=None) for day in (1, 2, 3))),
    "boolean": (pa.bool_(), False, False, True),
}


@pytest.mark.parametrize("decimals_as_integers", [True, False])
@pytest.mark.parametrize("kind", TRIPLES)
def test_a_bound_that_leaves_a_row_out_is_found(tmp_path: Path, kind: str, decimals_as_integers: bool) -> None:
    type_, low, middle, high = TRIPLES[kind]
    options = {"store_decimal_as_integer": decimals_as_integers}
    schema, rows = table(kind, type_, [low, high, None, middle])
    pq.write_table(rows, tmp_path / "true", **options)
    assert hidden(str(tmp_path / "true"), schema) == ()
    for side, said in (("upper", [low, middle, None, low]), ("lower", [high, high, None, high])):
        path = spliced(tmp_path / side, rows, table(kind, type_, said)[1], **options)
        (problem,) = hidden(path, schema)
        assert f"the footer's {side} bound of c in row group 0, " in problem
        # A row that is deleted is not left out; the count of nulls is of all rows.
        assert hidden(path, schema, deleted=(1,) if side == "upper" else (0, 3)) == ()


def test_each_row_group_is_judged_by_its_own_rows(tmp_path: Path) -> None:
    schema, rows = table("long", pa.int64(), range(100))
    _, said = table("long", pa.int64(), [*range(50, 60), *range(10, 100)])
    path = spliced(tmp_path / "f", rows, said, row_group_size=10)
    assert hidden(path, schema) == ("the footer's lower bound of c in row group 0, 50, leaves rows out",)
    _, said = table("long", pa.int64(), [*range(90), *range(-10, 0)])
    path = spliced(tmp_path / "g", rows, said, row_group_size=10)
    assert hidden(path, schema) == ("the footer's upper bound of c in row group 9, -1, leaves rows out",)


def test_a_wrong_count_of_nulls_is_found(tmp_path: Path) -> None:
    schema, rows = table("string", pa.string(), ["aaaa", "bbbb", None, None, "abbbbbbb"])
    _, said = table("string", pa.string(), ["aaaa", "bbbb", None, "ab", "ab"])
    (problem,) = hidden(spliced(tmp_path / "f", rows, said), schema)
    assert problem == "the footer's count of nulls of c in row group 0, 1, is wrong: it holds 2"


def test_columns_within_structs_are_judged_too(tmp_path: Path) -> None:
    inner = pa.struct([("x", pa.int64()), ("y.z", pa.string())])
    schema, rows = table(
        {"type": "struct", "fields": [field("x", "long"), field("y.z", "string")]},
        inner,
        [{"x": 1, "y.z": "a"}, None, {"x": None, "y.z": "b"}],
    )
    pq.write_table(rows, tmp_path / "f")
    assert hidden(str(tmp_path / "f"), schema) == ()
    said = pa.table({"c": pa.array([{"x": 1, "y.z": "a"}, None, {"x": None, "y.z": "a"}], inner)})
    (problem,) = hidden(spliced(tmp_path / "g", rows, said), schema)
    assert "upper bound of c.y.z" in problem


def test_what_cannot_be_judged_is_left_out(tmp_path: Path) -> None:
    """NaN, both zeros, cut texts, unsigned and other numbers, columns without bounds or that no table has."""
    nan = math.nan
    cases: list[tuple[Any, pa.DataType, list[Any], dict[str, Any]]] = [
        ("double", pa.float64(), [1.0, nan, None], {}),
        ("double", pa.float64(), [nan, nan], {}),
        ("double", pa.float64(), [0.0, -0.0], {}),
        ("float", pa.float32(), [-0.0, 0.1, -nan], {}),
        ("string", pa.string(), ["", "é" * 5000, None], {}),
        ("long", pa.int64(), [None, None], {}),
        ("long", pa.int64(), [], {}),
        ("long", pa.int64(), [1, 2], {"write_statistics": False}),
        ("timestamp", ZONE, [moment(1), None], {"use_deprecated_int96_timestamps": True}),
        ("timestamp", pa.timestamp("ms", tz="UTC"), [-1, 1, None], {}),
        ("long", pa.int64(), list(range(100)), {"row_group_size": 1}),
        ("binary", pa.binary(), [b"", b"\xff" * 10_000], {"row_group_size": 1}),
    ]
    for number, (kind, type_, values, options) in enumerate(cases):
        schema, rows = table(kind, type_, values)
        path = str(tmp_path / f"{number}")
        pq.write_table(rows.append_column("other", rows["c"]), path, **options)
        assert hidden(path, schema) == (), (kind, values)
    for number, (type_, values) in enumerate([(pa.uint32(), [0, 2**32 - 1]), (pa.timestamp("ns"), [-1, 1, 999])]):
        path = str(tmp_path / f"judged {number}")
        kind = "long" if number == 0 else "timestamp_ntz"
        schema, rows = table(kind, type_, values)
        pq.write_table(rows, path)
        (figures,) = judged_figures(statistics_columns(schema, ()), [ComparedFile(path, None, (), row_groups(path))])
        assert figures is not None
        assert figures.hidden == ()


@pytest.mark.parametrize("group_rows", [1, 2, 100])
@pytest.mark.parametrize("writer", ["pyarrow", "duckdb"])
def test_sound_files_of_every_type_pass(tmp_path: Path, writer: str, group_rows: int) -> None:
    rows = table_of(zoo_rows(), file_schema(SCHEMA, ()))
    path = str(tmp_path / "f")
    if writer == "pyarrow":
        pq.write_table(rows, path, row_group_size=group_rows, store_schema=False)
    else:
        with duckdb.connect() as connection:
            connection.register("rows_", rows)
            connection.execute("SET TimeZone = 'UTC'")
            connection.execute(f"COPY rows_ TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 2048)")
    columns = statistics_columns(SCHEMA, ())
    said = FileStatistics(columns)
    for batch in rows.to_batches():
        said.add(batch)
    text = said.to_json(tight_bounds=True)
    (figures,) = judged_figures(columns, [ComparedFile(path, text, (), row_groups(path))])
    (of_file,) = judged_figures(columns, [ComparedFile(path, text)])
    assert figures is not None
    assert (figures.rows, figures.hidden) == (rows.num_rows, ())
    assert figures == of_file
    assert figures.reached
    assert any(bounds.order for group in row_groups(path) for bounds in group.columns.values())


OTHER_TYPES: list[tuple[Any, pa.DataType, pa.DataType]] = [
    ("decimal(10,2)", pa.decimal128(10, 2), pa.decimal128(10, 3)),
    ("decimal(10,2)", pa.decimal128(10, 2), pa.decimal128(10, 1)),
    ("decimal(10,2)", pa.decimal128(10, 2), pa.decimal128(12, 2)),
    ("string", pa.string(), pa.binary()),
    ("binary", pa.binary(), pa.string()),
    ("timestamp", ZONE, pa.timestamp("us")),
    ("timestamp_ntz", pa.timestamp("us"), ZONE),
    ("timestamp_ntz", pa.timestamp("us"), pa.timestamp("ns")),
    ("date", pa.date32(), pa.timestamp("us")),
    ("long", pa.int64(), pa.int32()),
    ("integer", pa.int32(), pa.int16()),
    ("integer", pa.int32(), pa.uint32()),
    ("double", pa.float64(), pa.float32()),
    ("boolean", pa.bool_(), pa.int32()),
    (
        {"type": "struct", "fields": [field("x", "decimal(10,2)")]},
        pa.struct([("x", pa.decimal128(10, 2))]),
        pa.struct([("x", pa.decimal128(10, 3))]),
    ),
    (
        {"type": "array", "elementType": "timestamp", "containsNull": True},
        pa.list_(ZONE),
        pa.list_(pa.timestamp("us")),
    ),
]


@pytest.mark.parametrize(("kind", "right", "other"), OTHER_TYPES)
def test_a_new_file_has_the_types_of_the_table(
    tmp_path: Path, kind: Any, right: pa.DataType, other: pa.DataType
) -> None:
    schema, rows = table(kind, right, [None, None])
    columns = compared_columns(schema, ())
    for name, type_ in (("right", right), ("other", other)):
        pq.write_table(pa.table({"c": pa.nulls(2, type_)}), tmp_path / name, store_schema=False)
    assert rows.num_rows == 2
    sources = [ComparedFile(str(tmp_path / "right"))]
    measured = measure_by_duckdb(columns, (), sources, sources)
    assert measured.read == measured.written
    with pytest.raises(OtherTypeError):
        measure_by_duckdb(columns, (), sources, [ComparedFile(str(tmp_path / "other"))])


@pytest.mark.parametrize(("digits", "scale", "is_read"), [(10, 2, True), (9, 1, True), (12, 2, True), (10, 3, False)])
def test_decimals_of_old_files_are_never_cut(tmp_path: Path, digits: int, scale: int, is_read: bool) -> None:
    """0.074 is not 0.07: Spark is asked what it is for readers."""
    path = str(tmp_path / "f")
    pq.write_table(table("", pa.decimal128(digits, scale), [Decimal("0.1"), None])[1], path)
    schema, _ = table("decimal(10,2)", pa.decimal128(10, 2), [])
    with nullcontext() if is_read else pytest.raises(CannotCompareError, match="is stored as DECIMAL"):
        assert measure_by_duckdb(compared_columns(schema, ()), (), [ComparedFile(path)], []).read.rows == 2
