"""Rows counted by DuckDB from the footers of files; what it cannot count exactly is left to Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from maintainer.delta.proof.second_engine.column_values import CannotCompareError
from maintainer.delta.proof.second_engine.duckdb_rows import count_rows


def parquet_file(path: Path, num_rows: int) -> str:
    pq.write_table(pa.table({"n": list(range(num_rows))}), path, row_group_size=3)
    return str(path)


def test_rows_of_all_files_are_counted(tmp_path: Path) -> None:
    files = [parquet_file(tmp_path / f"{num_rows}.parquet", num_rows) for num_rows in (0, 1, 7)]
    assert (count_rows(files), count_rows(files[:1]), count_rows([])) == (8, 0, 0)


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
