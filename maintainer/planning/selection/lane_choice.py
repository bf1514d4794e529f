"""Choose the lane of each bin from the plan, the policy and what the log says. Pure.

The first lane that fits takes a bin: ``copy``, then ``local``, then ``spark``. What only a file's footer says is
looked at when the bin is written (``delta.rewrite``), and may send the bin to the next lane.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar
from urllib.parse import urlsplit

from maintainer.model.plan.lanes import BY_SPARK, Lane, LaneChoice
from maintainer.model.plan.steps import Batch, Bin, CompactStep, PartitionRewriteStep, PurgeStep, RewriteStep
from maintainer.model.table.table_facts import TableFacts
from maintainer.planning.plan_input import TableInput
from maintainer.planning.selection.schema_columns import read_schema
from maintainer.units import format_size

COPY_MIN_FILE_BYTES = 8 << 20
"""Mean size of the files of a bin from which their row groups are worth copying.

A copy keeps row groups as they are. Forty files of 160 KiB would become one file of forty tiny row groups, which reads
slower than one with a few large ones, so smaller files are decoded and written anew.
"""

LOCAL_TYPES = frozenset(
    {
        *("boolean", "byte", "short", "integer", "long", "float", "double", "string", "binary"),
        *("date", "timestamp", "timestamp_ntz"),
    }
)
"""Primitive types that the local lane reads, writes and proves exactly; decimals, char and varchar beside them."""

_Step = TypeVar("_Step", bound=RewriteStep)


def with_lanes(table: TableInput, step: _Step) -> _Step:
    """Return the step with a lane for each of its bins; an engine that issues commands has none to choose."""
    if table.options.by_commands:
        return step
    allowed = frozenset(table.options.lanes or table.policy.optimize.lanes)
    no_copy = why_not_copy(table.facts, step) if Lane.COPY in allowed else "lane copy is switched off"
    no_local = why_not_local(table.facts, step) if Lane.LOCAL in allowed else "lane local is switched off"
    bound = table.policy.optimize.local_max_size_bytes

    def with_lane(bin_: Bin) -> Bin:
        return replace(bin_, lane=choose_lane(bin_, no_copy, no_local, bound))

    batches = tuple(Batch(tuple(with_lane(bin_) for bin_ in batch.bins)) for batch in step.batches)
    return replace(step, batches=batches)


def choose_lane(bin_: Bin, no_copy: str | None, no_local: str | None, local_max_size_bytes: int) -> LaneChoice:
    """Choose the lane of one bin.

    Args:
        bin_: The bin.
        no_copy: Why nothing of the table may be copied by row groups; None if it may.
        no_local: Why nothing of it may be rewritten in the driver's process; None if it may.
        local_max_size_bytes: The largest bin of the local lane.
    """
    no_copy = no_copy or _why_not_copy_bin(bin_)
    if no_local is None and bin_.size_bytes > local_max_size_bytes:
        no_local = f"above localMaxSize {format_size(local_max_size_bytes)}"
    no_local = no_local or _why_not_local_bin(bin_)
    if no_copy is None:
        otherwise = Lane.LOCAL if no_local is None else Lane.SPARK
        text = f"row groups are copied: files of {format_size(_mean_bytes(bin_))} on average"
        return LaneChoice(Lane.COPY, text, otherwise)
    if no_local is None:
        return LaneChoice(Lane.LOCAL, f"small enough for the driver: {no_copy}")
    return LaneChoice(Lane.SPARK, no_local if no_copy == no_local else f"{no_local}; {no_copy}")


def lanes_of(bins: tuple[Bin, ...]) -> tuple[tuple[LaneChoice, int], ...]:
    """Return the lanes that were chosen, with the number of bins of each, in the order in which they first come."""
    counts: dict[LaneChoice, int] = {}
    for bin_ in bins:
        if bin_.lane != BY_SPARK:
            counts[bin_.lane] = counts.get(bin_.lane, 0) + 1
    return tuple(counts.items())


def _mean_bytes(bin_: Bin) -> int:
    return bin_.size_bytes // len(bin_.files)


def why_not_copy(facts: TableFacts, step: RewriteStep) -> str | None:
    """Return why no bin of a step may be copied by row groups; None if those with large files may."""
    if not isinstance(step, CompactStep):
        return "only a compaction keeps row groups as they are"
    return _why_not_outside_spark(facts)


def _why_not_copy_bin(bin_: Bin) -> str | None:
    if any(file.deletion_vector is not None for file in bin_.files):
        return "files have soft-deleted rows"
    if len(bin_.files) < 2:
        return "nothing to join"
    if _mean_bytes(bin_) < COPY_MIN_FILE_BYTES:
        return f"files of {format_size(_mean_bytes(bin_))} on average have small row groups"
    return None


def why_not_local(facts: TableFacts, step: RewriteStep) -> str | None:
    """Return why no bin of a step may be rewritten in the driver's process; None if those that are small may."""
    match step:
        case CompactStep() | PurgeStep():
            pass
        case PartitionRewriteStep(request=request):
            if request.sort_columns or request.num_files != 1:
                return "rows are sorted or spread over files"
        case _:
            return "rows are put in an order"
    why_not = _why_not_outside_spark(facts)
    if why_not is not None:
        return why_not
    unknown = next(_unknown_types(read_schema(facts)), None)
    return None if unknown is None else f"column {unknown[0]} is of type {unknown[1]}"


def _why_not_local_bin(bin_: Bin) -> str | None:
    if any(file.deletion_vector is not None for file in bin_.files):
        return "files have soft-deleted rows"
    return None


def _why_not_outside_spark(facts: TableFacts) -> str | None:
    """Return why only Spark may write this table's files; None if others may as well."""
    if urlsplit(facts.location).scheme not in ("", "file"):
        return "not on a local disk"
    if facts.property_map.get("delta.enableRowTracking") == "true":
        return "row ids are kept (row tracking)"
    if "materializePartitionColumns" in facts.protocol.writer_features:
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
