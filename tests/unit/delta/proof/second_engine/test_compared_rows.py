"""Rows that DuckDB must tell apart, or take for the same: times of both forms, and rows of another partition."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from maintainer.delta.log.statistics_columns import StatisticsColumn
from maintainer.delta.proof.rows_here import rows_here
from maintainer.delta.proof.second_engine.column_values import compared_columns
from maintainer.delta.proof.second_engine.duckdb_rows import (
    ComparedFile,
    judged_figures,
    measure_by_duckdb,
)


@pytest.mark.parametrize(("kind", "zone"), [("timestamp", "UTC"), ("timestamp_ntz", None)])
def test_the_last_of_all_times_and_the_first_are_no_nulls(tmp_path: Path, kind: str, zone: str | None) -> None:
    """DuckDB takes them for infinite, and then says no number of them. Bounds are judged by them, too."""
    field = {"name": "c", "type": kind, "nullable": True, "metadata": {}}
    columns, last = compared_columns({"type": "struct", "fields": [field]}, ()), 2**63 - 1
    statistics = (StatisticsColumn(("c",), ("c",), kind),)
    zone_text, found = "Z" if zone else "", set()
    for time in (last, last - 1, -last, -last - 1, 1, None):
        path = tmp_path / f"{time}.parquet"
        pq.write_table(pa.table({"c": pa.array([time], pa.int64()).cast(pa.timestamp("us", zone))}), path)
        found.add(measure_by_duckdb(columns, (), (), [ComparedFile(str(path))]).written)
        for side, bound in (("minValues", "9998-01-01"), ("maxValues", "0001-01-01")):
            stats = json.dumps({"numRecords": 1, side: {"c": f"{bound}T00:00:00{zone_text}"}})
            (figures,) = judged_figures(statistics, [ComparedFile(str(path), stats)])
            is_outside = time is not None and (time < 2 if side == "minValues" else time > 0)
            assert figures is not None
            assert bool(figures.outside) == is_outside, (time, side)
    assert len(found) == 6


def test_times_of_both_forms_are_the_same_wherever_the_machine_is(tmp_path: Path) -> None:
    """Spark writes INT96 unless it is told otherwise, a rewrite of ours microseconds: the next one reads both."""
    rows = pa.table({"t": pa.array([0, 1_593_561_600_000_000, None], pa.int64()).cast(pa.timestamp("us", "UTC"))})
    for form in ("int96", "int64"):
        pq.write_table(rows, tmp_path / form, use_deprecated_int96_timestamps=form == "int96")
    code = """if True:
        import sys
        from maintainer.delta.proof.second_engine.column_values import compared_columns
        from maintainer.delta.proof.second_engine.duckdb_rows import ComparedFile, measure_by_duckdb

        columns = compared_columns({"fields": [{"name": "t", "type": "timestamp"}]}, ())
        old = [ComparedFile(path) for path in sys.argv[1:]]
        measured = measure_by_duckdb(columns, (), old, [old[1], old[1]])
        print(measured.read == measured.written)
    """
    command = [sys.executable, "-c", code, str(tmp_path / "int96"), str(tmp_path / "int64")]
    for zone in ("UTC", "Europe/Berlin"):
        asked = subprocess.run(
            command, env={**os.environ, "TZ": zone}, capture_output=True, text=True, timeout=60, check=True
        )
        assert asked.stdout == "True\n", zone


@pytest.mark.parametrize("has_statistics", [True, False])
def test_rows_that_changed_places_between_partitions_are_other_rows(tmp_path: Path, has_statistics: bool) -> None:
    """The log alone says of which partition they are: over all partitions of a batch they are the same."""
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in (("id", "long"), ("p", "string"))
    ]
    metadata = {"schemaString": json.dumps({"type": "struct", "fields": fields}), "partitionColumns": ["p"]}
    rows = {"a": [1, 2], "b": [3, 4], None: [5]}
    table, here = (
        cast("Any", SimpleNamespace(uri=lambda path: path, path=lambda uri: str(tmp_path / uri))) for _ in "12"
    )

    def file(name: str, value: str | None, ids: list[int]) -> dict[str, Any]:
        pq.write_table(pa.table({"id": pa.array(ids, pa.int64())}), tmp_path / name)
        stats = {"stats": json.dumps({"numRecords": len(ids)})} if has_statistics else {}
        return {"path": name, "partitionValues": {"p": value}, **stats}

    old = [file(f"{value}-{id_}", value, [id_]) for value, ids in rows.items() for id_ in ids]
    new = [file(str(value), value, ids) for value, ids in rows.items()]
    measured = rows_here(table, here, metadata, old, new)
    assert (measured.read, measured.read.rows) == (measured.written, 5)
    for one, other in (("a", "b"), ("b", "a")):
        new[0 if one == "a" else 1] = file(f"{one}2", one, rows[other])
    swapped = rows_here(table, here, metadata, old, new)
    assert swapped.read.rows == swapped.written.rows
    assert swapped.read != swapped.written
