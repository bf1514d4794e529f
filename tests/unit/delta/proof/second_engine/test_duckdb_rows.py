"""Rows counted by DuckDB from the footers of files; what it cannot count exactly is left to Spark."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from maintainer.delta.proof.second_engine.column_values import CannotCompareError, compared_columns
from maintainer.delta.proof.second_engine.duckdb_rows import OldFile, count_rows, measure_by_duckdb


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
    before = measure_by_duckdb(columns, (), [OldFile(str(path))], ()).read
    assert measure_by_duckdb(columns, (), [OldFile(str(path))], ()).read == before
    pq.write_table(pa.table({"id": pa.array([1, 2, 4])}), path, use_dictionary=False, compression="none")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert path.stat().st_size == status.st_size
    after = measure_by_duckdb(columns, (), [OldFile(str(path))], ()).read
    assert after.rows == before.rows
    assert after != before


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
