"""Find files that still hold dropped columns: by their statistics first, by their footers if need be."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from maintainer.delta.jvm import DeltaJvm
from maintainer.delta.log.schema_names import DEFAULT_INDEXED_COLUMNS
from maintainer.delta.log.statistics_text import named_in
from maintainer.delta.proof.statistics_figures import statistics_columns
from maintainer.delta.snapshot.column_statistics import parse_statistics
from maintainer.model.table.table_facts import DataFile, TableFacts


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
    limit = int(properties.get("delta.dataSkippingNumIndexedCols", DEFAULT_INDEXED_COLUMNS))
    return limit < 0 or int(properties.get("delta.columnMapping.maxColumnId", "0")) <= limit


def physical_leaves(schema: dict[str, Any], partition_columns: tuple[str, ...]) -> frozenset[str]:
    """Dotted physical paths of the leaf columns that lie in files; partition columns do not."""
    return frozenset(".".join(column.physical) for column in statistics_columns(schema, partition_columns))


def _as_action(file: DataFile) -> dict[str, Any]:
    """An ``add`` that names the file; without its deletion vector, for which REORG would return it as well."""
    action = {"path": file.path, "partitionValues": {}, "size": file.size_bytes}
    return {**action, "modificationTime": file.modification_time_ms, "dataChange": False}
