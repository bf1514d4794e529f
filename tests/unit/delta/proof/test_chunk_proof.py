"""A copy by row groups is proven byte for byte: whatever is lost, doubled, moved or changed is seen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from maintainer.delta.proof.rows_here import compare_chunks
from tests.support.tables.forged_footers import PLAIN, spliced

ROWS = 400
COLUMNS = frozenset({"a", "b"})


def groups() -> list[pa.Table]:
    """Four row groups with two columns of one type."""
    return [pa.table({"a": range(n * ROWS, (n + 1) * ROWS), "b": range(-n, ROWS - n)}) for n in range(4)]


def stored(path: Path, tables: list[pa.Table]) -> str:
    """A file with one row group for each table. Dictionaries are off, so that equal tables are equal bytes."""
    with pq.ParquetWriter(path, tables[0].schema, use_dictionary=False, store_schema=False) as writer:
        for table in tables:
            writer.write_table(table)
    return str(path)


def swapped(first: pa.Table, second: pa.Table) -> list[pa.Table]:
    """Two row groups that have changed one column between them: other rows of the same values."""
    return [pa.table({"a": first["a"], "b": second["b"]}), pa.table({"a": second["a"], "b": first["b"]})]


FORGERIES: dict[str, Callable[[list[pa.Table]], list[pa.Table]]] = {
    "a row group is lost": lambda tables: tables[:-1],
    "a row group is doubled": lambda tables: [*tables, tables[0]],
    "a row group stands for another": lambda tables: [tables[1], *tables[1:]],
    "columns change places between row groups": lambda tables: [*swapped(tables[0], tables[1]), *tables[2:]],
    "columns change places": lambda tables: [
        tables[0],
        tables[1].rename_columns(["b", "a"]).select(["a", "b"]),
        *tables[2:],
    ],
    "a row group is cut": lambda tables: [tables[0].slice(0, ROWS - 1), *tables[1:]],
}


def test_a_copy_in_any_order_is_equal(tmp_path: Path) -> None:
    tables = groups()
    sources = [stored(tmp_path / "s0", tables[:2]), stored(tmp_path / "s1", tables[2:])]
    before, after, problems = compare_chunks(sources, [stored(tmp_path / "t", tables[::-1])], COLUMNS)
    assert (before, before.rows, problems) == (after, 4 * ROWS, [])


@pytest.mark.parametrize("name", FORGERIES)
def test_every_forgery_is_seen(tmp_path: Path, name: str) -> None:
    tables = groups()
    before, after, problems = compare_chunks(
        [stored(tmp_path / "s", tables)], [stored(tmp_path / "t", FORGERIES[name](tables))], COLUMNS
    )
    assert before != after
    assert problems != []


def test_a_dropped_column_does_not_count_and_must_not_come_back(tmp_path: Path) -> None:
    tables = groups()
    source = stored(tmp_path / "s", [table.append_column("gone.by", table["a"]) for table in tables])
    pruned, whole = stored(tmp_path / "t", tables), stored(tmp_path / "u", [table.select(["a"]) for table in tables])
    before, after, problems = compare_chunks([source], [pruned], COLUMNS)
    assert (before, problems) == (after, [])
    for forged, columns in ((source, COLUMNS), (whole, COLUMNS), (pruned, {"a", "b", "gone.by"})):
        before, after, problems = compare_chunks([source], [forged], columns)
        assert before != after
        assert problems != []


def test_every_byte_of_the_data_counts(tmp_path: Path) -> None:
    source = stored(tmp_path / "s", groups())
    data = Path(source).read_bytes()
    column = pq.read_metadata(source).row_group(0).column(0)
    start = column.data_page_offset
    for place in (start, start + column.total_compressed_size // 2, start + column.total_compressed_size - 1):
        forged = tmp_path / f"t{place}"
        forged.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        before, after, problems = compare_chunks([source], [str(forged)], COLUMNS)
        assert before != after, place
        assert problems != []


def test_a_file_that_is_cut_off_is_no_copy(tmp_path: Path) -> None:
    source = stored(tmp_path / "s", groups())
    (tmp_path / "t").write_bytes(Path(source).read_bytes()[:-30])
    with pytest.raises((pa.ArrowInvalid, OSError, ValueError)):
        compare_chunks([source], [str(tmp_path / "t")], COLUMNS)


UTC_MICROSECONDS = pa.timestamp("us", tz="UTC")
OTHER_MEANINGS: list[tuple[pa.DataType, pa.DataType]] = [
    (pa.decimal128(10, 2), pa.decimal128(10, 3)),
    (pa.decimal128(10, 2), pa.decimal128(12, 2)),
    (UTC_MICROSECONDS, pa.timestamp("ms", tz="UTC")),
    (UTC_MICROSECONDS, pa.timestamp("us")),
    (pa.string(), pa.binary()),
    (pa.int32(), pa.uint32()),
    (pa.int32(), pa.date32()),
    (pa.struct([("x", pa.int64())]), pa.struct([pa.field("x", pa.int64(), metadata={"PARQUET:field_id": "7"})])),
]


def column_of(type_: pa.DataType) -> pa.Table:
    return pa.table([pa.array(range(8)), pa.nulls(8, type_)], schema=pa.schema([("a", pa.int64()), ("b", type_)]))


@pytest.mark.parametrize(("type_", "other"), OTHER_MEANINGS)
def test_the_same_bytes_with_another_meaning_are_no_copy(
    tmp_path: Path, type_: pa.DataType, other: pa.DataType
) -> None:
    options = {"store_decimal_as_integer": True}
    source = str(tmp_path / "s")
    pq.write_table(column_of(type_), source, **PLAIN, **options)
    same = spliced(tmp_path / "t", column_of(type_), column_of(type_), **options)
    forged = spliced(tmp_path / "u", column_of(type_), column_of(other), **options)
    assert compare_chunks([source], [same], COLUMNS)[2] == []
    before, after, problems = compare_chunks([source], [forged], COLUMNS)
    assert before != after
    assert problems != []


def test_field_ids_and_nullability_count(tmp_path: Path) -> None:
    def fields(field_id: str, *, nullable: bool = True) -> pa.Table:
        of_b = pa.field("b", pa.int64(), nullable, metadata={"PARQUET:field_id": field_id})
        return pa.table([[1, 2], [3, 4]], schema=pa.schema([pa.field("a", pa.int64()), of_b]))

    source = str(tmp_path / "s")
    pq.write_table(fields("5"), source, **PLAIN)
    assert compare_chunks([source], [spliced(tmp_path / "t", fields("5"), fields("5"))], COLUMNS)[2] == []
    assert compare_chunks([source], [spliced(tmp_path / "u", fields("5"), fields("6"))], COLUMNS)[2] != []
    pq.write_table(fields("5", nullable=False), tmp_path / "v", **PLAIN)
    assert compare_chunks([source], [str(tmp_path / "v")], COLUMNS)[2] != []


BOUNDS, NOTHING = [(1, 9, 0)] * 2, [(None, None, None)] * 2


def test_bounds_of_a_copy_are_those_of_its_source(tmp_path: Path) -> None:
    rows, other = pa.table({"a": [1, 5, 9], "b": [1.0, 0.0, 2.0]}), pa.table({"a": [1, 5, 5], "b": [1.0, 0.0, 2.0]})
    zeros = pa.table({"a": [1, 5, 9], "b": [1.0, -0.0, 2.0]})
    pq.write_table(rows, tmp_path / "s", **PLAIN)
    source = str(tmp_path / "s")

    def problems(said: pa.Table) -> list[str]:
        return compare_chunks([source], [spliced(tmp_path / "t", rows, said)], COLUMNS)[2]

    assert problems(rows) == []
    assert problems(zeros) == []  # both zeros have one place in the order, and readers take them so
    assert problems(other) == ["1 bounds in footers of the new files are none of the sources'"]


@pytest.mark.parametrize(("said", "copied", "num_wrong"), [(BOUNDS, NOTHING, 0), (NOTHING, BOUNDS, 6)])
def test_a_copy_may_leave_bounds_out_and_may_not_add_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: list[Any], copied: list[Any], num_wrong: int
) -> None:
    """parquet-hadoop leaves out what is longer than 4 KB."""
    path = stored(tmp_path / "s", groups()[:1])
    answers = iter([*said, *copied])
    monkeypatch.setattr("maintainer.delta.proof.rows_here.stored_bounds", lambda column: next(answers))
    expected = [f"{num_wrong} bounds in footers of the new files are none of the sources'"] if num_wrong else []
    assert compare_chunks([path], [path], COLUMNS)[2] == expected
