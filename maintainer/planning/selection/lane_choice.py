"""Choose the lane of each bin from the plan, the policy and what the log says. Pure.

The first lane that fits takes a bin: ``copy``, then ``local``, then ``spark``. What only a file's footer says is
looked at when the bin is written (``delta.rewrite``), and may send the bin to the next lane.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from maintainer.model.plan.lanes import BY_SPARK, MAX_DELETED_ROWS, Codec, Lane, LaneChoice
from maintainer.model.plan.steps import (
    Batch,
    Bin,
    ClusterStep,
    OneFileABin,
    PartitionRewriteStep,
    PurgeStep,
    RewriteStep,
)
from maintainer.model.table.store_kinds import store_kind
from maintainer.model.table.table_facts import TableFacts
from maintainer.model.table.table_features import keeps_row_ids
from maintainer.planning.plan_input import TableInput
from maintainer.planning.selection.schema_columns import read_schema
from maintainer.units import format_size

COPY_MIN_FILE_BYTES = 8 << 20
"""Mean size of the files of a bin from which their row groups are worth copying.

A copy keeps row groups as they are. Forty files of 160 KiB would become one file of forty tiny row groups, which reads
slower than one with a few large ones, so smaller files are decoded and written anew.
"""

ORDERED_SHARE = 4
"""The part of ``localMaxSize`` that holds where all rows of a bin are in memory at once."""

_ENDINGS = {Codec.SNAPPY: ".snappy.parquet", Codec.ZSTD: ".zstd.parquet", Codec.GZIP: ".gz.parquet"}
"""How writers end the names of files with a codec, so that none is fetched for a lane that then refuses it."""

LOCAL_TYPES = frozenset(
    {
        *("boolean", "byte", "short", "integer", "long", "float", "double", "string", "binary"),
        *("date", "timestamp", "timestamp_ntz"),
    }
)
"""Primitive types that the local lane reads, writes and proves exactly; decimals, char and varchar beside them."""

_Step = TypeVar("_Step", bound=RewriteStep)


def with_lanes(table: TableInput, step: _Step) -> _Step:
    """Return the step with the policy's codec, and a lane for each bin; an engine that issues commands has no lanes."""
    step = replace(step, codec=table.policy.optimize.codec)
    if table.options.by_commands:
        return step
    allowed = frozenset(table.options.lanes or table.policy.optimize.lanes)
    no_copy = why_not_copy(table.facts, step) if Lane.COPY in allowed else "lane copy is switched off"
    no_local = why_not_local(table.facts, step) if Lane.LOCAL in allowed else "lane local is switched off"
    bound, limit = table.policy.optimize.local_max_size_bytes, "localMaxSize"
    if _is_whole_in_memory(step):
        bound, limit = bound // ORDERED_SHARE, f"a quarter of {limit}, for rows that are all in memory at once:"

    def with_lane(bin_: Bin) -> Bin:
        no_local_bin = no_local
        if no_local is None and bin_.size_bytes > bound:
            no_local_bin = f"above {limit} {format_size(bound)}"
        return replace(bin_, lane=choose_lane(step, bin_, no_copy, no_local_bin))

    batches = tuple(Batch(tuple(with_lane(bin_) for bin_ in batch.bins)) for batch in step.batches)
    return replace(step, batches=batches)


def choose_lane(step: RewriteStep, bin_: Bin, no_copy: str | None, no_local: str | None) -> LaneChoice:
    """Choose the lane of one bin.

    Args:
        step: What is done.
        bin_: One of its bins.
        no_copy: Why nothing of the table may be copied by row groups; None if it may.
        no_local: Why it may not be rewritten in the driver's process; None if it may.
    """
    no_copy = no_copy or _why_not_copy_bin(bin_, step)
    no_local = no_local or _why_not_local_bin(bin_)
    if no_copy is None:
        otherwise = Lane.LOCAL if no_local is None else Lane.SPARK
        text = f"row groups are copied: files of {format_size(_mean_bytes(bin_))} on average"
        return LaneChoice(Lane.COPY, text, otherwise)
    if no_local is None:
        return LaneChoice(Lane.LOCAL, f"small enough for one process, without Spark; not copied: {no_copy}")
    return LaneChoice(Lane.SPARK, no_local if no_copy == no_local else f"{no_local}; {no_copy}")


def lanes_of(bins: tuple[Bin, ...]) -> tuple[tuple[LaneChoice, int], ...]:
    """Return the lanes that were chosen, with the number of bins of each, in the order in which they first come."""
    return tuple(Counter(bin_.lane for bin_ in bins if bin_.lane != BY_SPARK).items())


def _mean_bytes(bin_: Bin) -> int:
    return bin_.size_bytes // len(bin_.files)


def why_not_copy(facts: TableFacts, step: RewriteStep) -> str | None:
    """Return why no bin of a step may be copied by row groups; None if those with large files may."""
    if not isinstance(step, OneFileABin):
        return "only compactions and purges keep row groups as they are"
    return _why_not_outside_spark(facts)


def _why_not_copy_bin(bin_: Bin, step: RewriteStep) -> str | None:
    if any(file.deletion_vector is not None for file in bin_.files):
        return "files have soft-deleted rows"
    if len(bin_.files) < 2 and not isinstance(step, PurgeStep):
        return "nothing to join"
    if _mean_bytes(bin_) < COPY_MIN_FILE_BYTES:
        return f"files of {format_size(_mean_bytes(bin_))} on average have small row groups"
    others = [ending for codec, ending in _ENDINGS.items() if step.codec is not None and codec is not step.codec]
    if any(file.path.endswith(tuple(others)) for file in bin_.files):
        return f"files have another codec than {step.codec}"
    return None


def why_not_local(facts: TableFacts, step: RewriteStep) -> str | None:
    """Return why no bin of a step may be rewritten in the driver's process; None if those that are small may."""
    if isinstance(step, ClusterStep):
        return "Delta's own curve of liquid clustering"
    why_not = _why_not_outside_spark(facts)
    if why_not is not None:
        return why_not
    fields = read_schema(facts)
    unknown = next(_unknown_types(fields), None)
    if unknown is not None:
        return f"column {unknown[0]} is of type {unknown[1]}"
    stored = {field["name"].lower(): field["type"] for field in fields if field["name"] not in facts.partition_columns}
    for column in step.order_columns:
        if not isinstance(stored.get(column.strip("`").lower()), str):
            return f"rows are put in the order of {column}, which is no plain column of the files"
    return None


def _is_whole_in_memory(step: RewriteStep) -> bool:
    """Whether all rows of a bin are in memory at once: they are put in an order, or spread over files."""
    spread = isinstance(step, PartitionRewriteStep) and step.request.num_files != 1
    return spread or bool(step.order_columns)


def _why_not_local_bin(bin_: Bin) -> str | None:
    if sum(file.deleted_records for file in bin_.files) > MAX_DELETED_ROWS:
        return f"files have more than {MAX_DELETED_ROWS:,} soft-deleted rows"
    return None


def _why_not_outside_spark(facts: TableFacts) -> str | None:
    """Return why only Spark may write this table's files; None if others may as well."""
    kind = store_kind(facts.location)
    if kind.asks_by_request and not kind.is_served:
        return "neither on a local disk nor on S3, ADLS or GCS"
    if keeps_row_ids(facts.property_map):
        return "row ids are kept (row tracking)"
    asked_for = facts.property_map.get("delta.writePartitionColumnsToParquet", "").lower() == "true"
    if asked_for or "materializePartitionColumns" in facts.protocol.writer_features:
        return "partition columns are in the files"
    return None


def _unknown_types(fields: Iterable[Mapping[str, Any]], above: str = "") -> Iterator[tuple[str, str]]:
    """Yield columns of types that the local lane does not know, with the type."""
    for field in fields:
        name = f"{above}{field['name']}"
        if "__COLLATIONS" in (field.get("metadata") or {}):
            yield name, "string with a collation"
        yield from _unknown_in(field["type"], name)


def _unknown_in(kind: str | Mapping[str, Any], name: str) -> Iterator[tuple[str, str]]:
    if isinstance(kind, str):
        if kind not in LOCAL_TYPES and not kind.startswith(("decimal", "char", "varchar")):
            yield name, kind
        return
    match kind["type"]:
        case "struct":
            yield from _unknown_types(kind["fields"], f"{name}.")
        case "array":
            yield from _unknown_in(kind.get("elementType", "array"), name)
        case "map":
            yield from _unknown_in(kind.get("keyType", "map"), name)
            yield from _unknown_in(kind.get("valueType", "map"), name)
        case other:
            yield name, str(other)
