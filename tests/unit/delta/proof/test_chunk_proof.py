"""A copy by row groups is proven byte for byte: whatever is lost, doubled, moved or changed is seen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from maintainer.delta.proof.rows_here import compare_chunks

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
