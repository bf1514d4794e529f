"""Turn the ``given:`` of a policy test into a table as planning sees it. Reads no file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date, datetime, timezone
from typing import Any

from maintainer.model.table.table_facts import (
    ColumnSample,
    DataFile,
    DeletionVector,
    Protocol,
    RemovedFile,
    TableFacts,
    TableRecord,
    TableRef,
)
from maintainer.planning.selection.schema_columns import FoundColumn
from maintainer.planning.zorder.zorder_options import sample_wanted
from maintainer.policy.resolve.resolved import ResolvedPolicy
from maintainer.units import parse_duration, parse_size

DEFAULT_NOW = "2026-01-15 12:00"
DEFAULT_AGE = "30d"
DEFAULT_ROWS = 1000
MADE_UP_VALUES = 1000


def now_of(test: Mapping[str, Any]) -> datetime:
    """Return the time of planning that a test names, in UTC."""
    return datetime.strptime(test.get("now", DEFAULT_NOW), "%Y-%m-%d %H:%M").replace(tzinfo=timezone.utc)


def facts_of(ref: TableRef, given: Mapping[str, Any], now_ms: int) -> TableFacts:
    """Build the table. Every column that is no partition column has statistics; the protocol is the plain one."""
    partitioned_by = tuple(given.get("partitionedBy", ()))
    columns = dict(given.get("columns") or {"id": "long"})
    for column in partitioned_by:
        columns.setdefault(column, "string")
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in columns.items()]
    return TableFacts(
        ref=ref,
        location=f"test:/{ref.identifier}",
        table_id="00000000-0000-0000-0000-000000000000",
        version=1,
        committed_at_ms=now_ms,
        schema_json=json.dumps({"type": "struct", "fields": fields}),
        columns=tuple(columns),
        partition_columns=partitioned_by,
        properties=tuple(sorted((given.get("properties") or {}).items())),
        protocol=Protocol(1, 2),
        files=tuple(_live_files(given, partitioned_by, now_ms)),
        clustering_columns=tuple(given.get("clusteredBy", ())),
        columns_with_stats=tuple(FoundColumn((name,), "").quoted for name in columns if name not in partitioned_by),
        removed_files=tuple(_removed_files(given, now_ms)),
    )


def record_of(given: Mapping[str, Any], now_ms: int) -> TableRecord:
    """Build what the ledger remembers: when the last rewrite and the last vacuum were."""
    return TableRecord(
        last_optimize_at_ms=_ago(given["lastOptimize"], now_ms) if "lastOptimize" in given else None,
        last_vacuum_at_ms=_ago(given["lastVacuum"], now_ms) if "lastVacuum" in given else None,
    )


def _live_files(given: Mapping[str, Any], partitioned_by: tuple[str, ...], now_ms: int) -> Iterator[DataFile]:
    for group, files in enumerate(given.get("files", ())):
        values = files.get("partition", {})
        partition = tuple((column, _partition_value(values.get(column))) for column in partitioned_by)
        deleted = files.get("deletedRows", 0)
        for number in range(files.get("count", 1)):
            path = f"part-{group:03}-{number:05}.parquet"
            yield DataFile(
                path=path,
                size_bytes=parse_size(files["size"]),
                modification_time_ms=_ago(files.get("age", DEFAULT_AGE), now_ms),
                partition_values=partition,
                physical_records=files.get("rows", DEFAULT_ROWS),
                deletion_vector=DeletionVector(f"u{path}@1", deleted, 40) if deleted else None,
            )


def _removed_files(given: Mapping[str, Any], now_ms: int) -> Iterator[RemovedFile]:
    for group, files in enumerate(given.get("removed", ())):
        for number in range(files.get("count", 1)):
            yield RemovedFile(
                path=f"removed-{group:03}-{number:05}.parquet",
                size_bytes=parse_size(files["size"]),
                removed_at_ms=_ago(files["age"], now_ms),
                removed_in_version=1,
                replaced=True,
            )


def _partition_value(value: object) -> str | None:
    return None if value is None else str(value)


def _ago(duration: str, now_ms: int) -> int:
    return now_ms - parse_duration(duration) * 1000


def with_made_up_sample(policy: ResolvedPolicy, facts: TableFacts) -> TableFacts:
    """Add values for the boundaries of a Z-order: a table that is only described has sizes and no data."""
    columns = sample_wanted(policy, facts)
    types = {field["name"]: field["type"] for field in json.loads(facts.schema_json)["fields"]}
    values = tuple(
        tuple(_made_up(types.get(name.strip("`"), "string"), number) for number in range(MADE_UP_VALUES))
        for name in columns
    )
    return replace(facts, column_sample=ColumnSample(columns, values)) if columns else facts


def _made_up(type_name: object, number: int) -> str:
    if str(type_name).startswith(("date", "timestamp")):
        return date.fromordinal(date(2026, 1, 1).toordinal() + number).isoformat()
    return f"{number:04}"
