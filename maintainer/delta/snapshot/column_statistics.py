"""Read the ranges of a few columns in each file from the log, and a sample of their values from the data."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from maintainer.delta.jvm import DeltaJvm, JavaObject
from maintainer.delta.log.schema_names import PHYSICAL_NAME, name_parts
from maintainer.delta.log.statistics_text import value_at
from maintainer.delta.transaction.live_files import LiveFilesReader
from maintainer.model.table.table_facts import ColumnRanges, ColumnSample, FileRange, TableFacts

MAX_SAMPLED_FILES = 48
"""Files that a sample is drawn from, spread over the table by the order of their paths."""

SAMPLE_SEED = 7


def physical_path(schema: dict[str, Any], column: str) -> tuple[str, ...]:
    """The path of a column (dotted, in back-ticks where needed) as statistics name it.

    Raises:
        ValueError: The schema has no such column.
    """
    parts: list[str] = []
    fields = schema["fields"]
    for part in name_parts(column):
        field = next((field for field in fields if field["name"].lower() == part.lower()), None)
        if field is None:
            raise ValueError(f"no column {column}")
        parts.append(field["metadata"].get(PHYSICAL_NAME, field["name"]))
        fields = field["type"]["fields"] if isinstance(field["type"], dict) and "fields" in field["type"] else []
    return tuple(parts)


def range_in(stats: dict[str, Any], path: Sequence[str]) -> FileRange:
    """The range of a column in a file's statistics, as texts."""
    least, most, nulls = (value_at(stats.get(part), path) for part in ("minValues", "maxValues", "nullCount"))
    has_nulls = nulls is None or str(nulls) != "0"
    return (None if least is None else str(least), None if most is None else str(most), has_nulls)


def parse_statistics(text: str | None) -> dict[str, Any]:
    """Parse statistics of the log, numbers as texts; empty if they cannot be parsed."""
    try:
        figures = json.loads(text or "{}", parse_float=str, parse_int=str)
    except ValueError:
        return {}
    return figures if isinstance(figures, dict) else {}


def ranges_in(
    schema_json: str, columns: tuple[str, ...], statistics: Iterable[tuple[tuple[str, str], str | None]]
) -> ColumnRanges:
    """Return the columns' ranges by the statistics of each live file, as the log spells them.

    Raises:
        ValueError: A column does not exist.
    """
    schema = json.loads(schema_json)
    paths = [physical_path(schema, column) for column in columns]
    by_file: dict[tuple[str, str], tuple[FileRange, ...]] = {}
    all_null: set[tuple[tuple[str, str], int]] = set()
    for key, text in statistics:
        stats = parse_statistics(text)
        if stats:
            by_file[key] = tuple(range_in(stats, path) for path in paths)
            rows = stats.get("numRecords")
            all_null |= {
                (key, n) for n, path in enumerate(paths) if rows and value_at(stats.get("nullCount"), path) == rows
            }
    return ColumnRanges(columns, by_file, frozenset(all_null))


def read_sample(
    jvm: DeltaJvm,
    log: JavaObject,
    snapshot: JavaObject,
    facts: TableFacts,
    live_files: LiveFilesReader,
    columns: tuple[str, ...],
    max_rows: int,
) -> ColumnSample:
    """Draw rows from files spread over the table; only these columns are read. The same rows every time."""
    from pyspark.sql import functions as F

    files = sorted(facts.files, key=lambda file: file.path)
    chosen = files[:: max(1, len(files) // MAX_SAMPLED_FILES)][:MAX_SAMPLED_FILES]
    live = live_files.of_snapshot(facts, snapshot, [file.key for file in chosen]).adds
    rows = sum(file.live_records or 0 for file in chosen if file.key in live)
    adds = [live[file.key] for file in chosen if file.key in live]
    frame = jvm.read_files(log, snapshot, adds, "Optimize")
    texts = frame.select([F.col(column).cast("string").alias(f"c{place}") for place, column in enumerate(columns)])
    if rows > max_rows:
        texts = texts.sample(fraction=max_rows / rows, seed=SAMPLE_SEED)
    sample = [tuple(row) for row in texts.limit(2 * max_rows).collect()]
    by_column = zip(*sample, strict=True) if sample else [() for _ in columns]
    return ColumnSample(columns, tuple(tuple(values) for values in by_column))
