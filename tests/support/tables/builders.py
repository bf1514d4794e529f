"""Small makers of facts and policies: keyword-only, every default harmless, so that a test names only what matters."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from maintainer.model.plan.plan import ContentCheck, RowCountCheck
from maintainer.model.table.table_facts import (
    DataFile,
    DeletionVector,
    PartitionValues,
    Protocol,
    RemovedFile,
    TableFacts,
    TableRecord,
    TableRef,
)
from maintainer.policy.resolve.resolved import (
    LimitsPolicy,
    OptimizePolicy,
    Origin,
    ResolvedPolicy,
    VacuumMode,
    VacuumPolicy,
    VerifyPolicy,
    WorthPolicy,
)

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000
DAY_SECONDS = 86_400

NOW_MS = 1_795_298_400_000
"""2026-11-21 22:00 UTC, a Saturday."""


LEGACY_PROTOCOL = Protocol(1, 2)


def make_file(
    path: str = "part-0.parquet",
    *,
    size: int = MIB,
    partition: Mapping[str, str | None] | None = None,
    records: int | None = 100,
    deleted: int = 0,
    modified_at_ms: int = NOW_MS - 10 * DAY_MS,
    tags: Mapping[str, str] | None = None,
) -> DataFile:
    """A live file of ``size`` bytes; with ``deleted`` rows it carries a deletion vector."""
    vector = DeletionVector(f"u{path}@1", deleted, 40) if deleted else None
    return DataFile(
        path=path,
        size_bytes=size,
        modification_time_ms=modified_at_ms,
        partition_values=tuple((partition or {}).items()),
        physical_records=records,
        deletion_vector=vector,
        tags=tuple(sorted((tags or {}).items())),
    )


def make_files(
    *sizes: int, prefix: str = "f", partition: Mapping[str, str | None] | None = None
) -> tuple[DataFile, ...]:
    """Files of the sizes given, named ``f0``, ``f1``, ... in that order."""
    return tuple(make_file(f"{prefix}{i}", size=size, partition=partition) for i, size in enumerate(sizes))


def make_schema(columns: Mapping[str, Any]) -> str:
    """A schema as Delta's log holds it; a type is a name, or a dict for a nested one."""
    fields = [{"name": name, "type": type_, "nullable": True, "metadata": {}} for name, type_ in columns.items()]
    return json.dumps({"type": "struct", "fields": fields})


def make_facts(
    *,
    files: Iterable[DataFile] = (),
    columns: Mapping[str, Any] | None = None,
    partitioned_by: tuple[str, ...] = (),
    properties: Mapping[str, str] | None = None,
    protocol: Protocol = LEGACY_PROTOCOL,
    name: str = "sales.orders",
    version: int = 7,
    table_id: str = "11111111-2222-3333-4444-555555555555",
    location: str = "file:/lake/orders",
    clustering_columns: tuple[str, ...] = (),
    columns_with_stats: tuple[str, ...] | None = None,
    removed_files: tuple[RemovedFile, ...] | None = None,
) -> TableFacts:
    """A table with the columns ``id: long`` and, for each partition column not given a type, a string."""
    schema = dict(columns or {"id": "long"})
    for column in partitioned_by:
        schema.setdefault(column, "string")
    data_columns = tuple(column for column in schema if column not in partitioned_by)
    return TableFacts(
        ref=TableRef(name),
        location=location,
        table_id=table_id,
        version=version,
        committed_at_ms=NOW_MS - DAY_MS,
        schema_json=make_schema(schema),
        columns=tuple(schema),
        partition_columns=partitioned_by,
        properties=tuple(sorted((properties or {}).items())),
        protocol=protocol,
        files=tuple(files),
        clustering_columns=clustering_columns,
        columns_with_stats=data_columns if columns_with_stats is None else columns_with_stats,
        removed_files=removed_files,
    )


def make_optimize(
    *,
    min_size: int = 75,
    max_size: int = 100,
    max_threads: int = 4,
    max_deleted_rows_ratio: float = 0.05,
    batch_size: int = 1 << 40,
    **others: Any,
) -> OptimizePolicy:
    """Bins of 100 bytes and small files under 75, so that a test's sizes can be read at a glance; no table rests."""
    others.setdefault("quiet_after_updates_seconds", 0)
    return OptimizePolicy(min_size, max_size, max_threads, max_deleted_rows_ratio, batch_size, **others)


def make_vacuum(
    *,
    retention_seconds: int = 7 * DAY_SECONDS,
    allow_short_retention: bool = False,
    every_seconds: int = 0,
    delete_untracked: bool = False,
    mode: VacuumMode = VacuumMode.AUTO,
    untracked_every_seconds: int = 0,
    allow_large_delete: bool = True,
    trash_seconds: int = 0,
) -> VacuumPolicy:
    """A vacuum of seven days, always due, that may delete however much."""
    return VacuumPolicy(
        retention_seconds,
        allow_short_retention,
        every_seconds,
        mode,
        delete_untracked,
        30 * DAY_SECONDS,
        untracked_every_seconds,
        allow_large_delete,
        trash_seconds,
    )


def make_policy(
    *,
    name: str = "sales.orders",
    optimize: OptimizePolicy | None = None,
    lines: Mapping[str, int] | None = None,
    max_bytes: int | None = None,
    max_files: int | None = None,
    max_deletes: int | None = None,
    digest: str = "sha256:aa",
    **others: Any,
) -> ResolvedPolicy:
    """A policy from ``orders.yml``; ``lines`` says on which line each dotted key stands."""
    return ResolvedPolicy(
        table=TableRef(name),
        file="orders.yml",
        digest=digest,
        optimize=optimize or make_optimize(),
        verify=VerifyPolicy(RowCountCheck.SCAN, ContentCheck.FINGERPRINT, True),
        limits=LimitsPolicy(max_bytes, max_files, max_deletes, 3 * 3600),
        origins={key: Origin("orders.yml", line) for key, line in (lines or {}).items()},
        **others,
    )


NEVER_TOUCHED = TableRecord()

__all__ = [
    "DAY_MS",
    "DAY_SECONDS",
    "GIB",
    "HOUR_MS",
    "KIB",
    "MIB",
    "MINUTE_MS",
    "NEVER_TOUCHED",
    "NOW_MS",
    "PartitionValues",
    "WorthPolicy",
    "make_facts",
    "make_file",
    "make_files",
    "make_optimize",
    "make_policy",
    "make_schema",
    "make_vacuum",
]
