"""Read the ranges of a few columns in each file from the log, and a sample of their values from the data.

Files that still hold dropped columns are found by their statistics first, by their footers if need be.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from maintainer.delta.jvm import DeltaJvm, JavaObject
from maintainer.delta.log.actions import named_in, statistics_in, value_at
from maintainer.delta.log.schema_names import physical_path
from maintainer.delta.log.statistics_columns import statistics_columns
from maintainer.delta.transaction.live_files import LiveFilesReader
from maintainer.model.table.table_facts import ColumnRanges, ColumnSample, DataFile, FileRange, TableFacts
from maintainer.model.table.table_features import num_indexed_columns
from maintainer.planning.curve.revision import sampled_files

SAMPLE_SEED = 7


def range_in(stats: Mapping[str, Any], path: Sequence[str]) -> FileRange:
    """The range of a column in a file's statistics, as texts."""
    least, most, nulls = (value_at(stats.get(part), path) for part in ("minValues", "maxValues", "nullCount"))
    has_nulls = nulls is None or str(nulls) != "0"
    return (None if least is None else str(least), None if most is None else str(most), has_nulls)


def parse_statistics(text: str | None) -> Mapping[str, Any]:
    """Parse statistics of the log, numbers as texts; empty if they cannot be parsed."""
    return statistics_in(text, parse_float=str, parse_int=str) or {}


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

    chosen = sampled_files(facts.files)
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


def find_dropped_columns(
    jvm: DeltaJvm,
    facts: TableFacts,
    files: Sequence[DataFile],
    statistics: Iterable[tuple[tuple[str, str], str | None]],
) -> frozenset[tuple[str, str]]:
    """Return the keys of those files that hold columns which the schema no longer has.

    Where the statistics of the log do not settle it, a Spark job reads footers with the code of Delta's own REORG.
    """
    keys = {file.path: file.key for file in files}
    if not keys:
        return frozenset()
    present = physical_leaves(json.loads(facts.schema_json), facts.partition_columns)
    decisive = all_columns_have_stats(facts)
    dropped: set[tuple[str, str]] = set()
    unsettled: set[str] = set()
    for path, text in ((path, text) for (path, _), text in statistics if path in keys):
        verdict = holds_dropped_columns(parse_statistics(text).get("nullCount"), present, decisive=decisive)
        if verdict is None:
            unsettled.add(path)
        elif verdict:
            dropped.add(keys[path])
    if unsettled:
        actions = jvm.add_files(_as_action(file) for file in files if file.path in unsettled)
        snapshot = jvm.update(jvm.log_at(facts.location))
        dropped |= {keys[path] for path in jvm.files_with_extra_columns(snapshot, actions)}
    return frozenset(dropped)


def holds_dropped_columns(counts: dict[str, Any] | None, present: frozenset[str], *, decisive: bool) -> bool | None:
    """Judge a file by the null counts of its statistics; None where they do not settle it.

    Args:
        counts: ``nullCount``, by physical names.
        present: Physical paths of the leaf columns of the schema.
        decisive: Whether statistics name every column a file has, so that one they do not name is not there.
    """
    names = frozenset(map(".".join, named_in(counts)))
    if not names <= present:
        return True
    return False if decisive and names == present else None


def all_columns_have_stats(facts: TableFacts) -> bool:
    """Whether the table's settings collect statistics for every column that it has or ever had."""
    properties = facts.property_map
    if "delta.dataSkippingStatsColumns" in properties:
        return False
    limit = num_indexed_columns(properties)
    return limit < 0 or int(properties.get("delta.columnMapping.maxColumnId", "0")) <= limit


def physical_leaves(schema: dict[str, Any], partition_columns: tuple[str, ...]) -> frozenset[str]:
    """Dotted physical paths of the leaf columns that lie in files; partition columns do not."""
    return frozenset(".".join(column.physical) for column in statistics_columns(schema, partition_columns))


def _as_action(file: DataFile) -> dict[str, Any]:
    """An ``add`` that names the file; without its deletion vector, for which REORG would return it as well."""
    action = {"path": file.path, "partitionValues": {}, "size": file.size_bytes}
    return {**action, "modificationTime": file.modification_time_ms, "dataChange": False}
