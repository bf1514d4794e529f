"""Read with pyarrow what a footer says of the columns of a file: how bytes are read, and by what they are skipped.

Two forms: as it is, where a copy must say the same as its source; and as values, which are judged by the rows.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from maintainer.delta.proof.second_engine.hidden_rows import FooterBounds, Order, RowGroup

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_SPELLING_ALONE = ("is_from_converted_type", "force_set_converted_type")
"""Whether a type is said in the old words, the new ones or both. It is the same type."""

_NODE = re.compile(r"^( +)(required|optional|repeated) .*?\bfield_id=(-?\d+) ", re.MULTILINE)


def stored_type(column: pq.ColumnSchema) -> tuple[Any, ...]:
    """Return what decides how the bytes of a column are read."""
    meaning = json.loads(column.logical_type.to_json())
    return (
        column.physical_type,
        column.length,
        sorted((name, value) for name, value in meaning.items() if name not in _SPELLING_ALONE),
        column.max_definition_level,
        column.max_repetition_level,
    )


def field_ids(metadata: pq.FileMetaData) -> dict[str, list[tuple[str, ...]]]:
    """Return depth, repetition and field id of every node below each top-level column.

    Empty where a name has line breaks: pyarrow says it in a text.
    """
    names = metadata.schema.to_arrow_schema().names
    nodes: list[list[tuple[str, ...]]] = []
    for found in _NODE.finditer(str(metadata.schema)):
        if len(found[1]) == 2:
            nodes.append([])
        if nodes:
            nodes[-1].append(found.groups())
    return dict(zip(names, nodes, strict=True)) if len(names) == len(nodes) else {}


Bounds = tuple[Any, Any, int | None]
"""Least and greatest value and the count of nulls; None for each that a footer does not have."""


def stored_bounds(column: pq.ColumnChunkMetaData) -> Bounds:
    """Return the bounds of a column chunk as they are stored; both zeros are one."""
    said = column.statistics
    if said is None:
        return None, None, None
    bounds: list[Any] = [said.min_raw, said.max_raw] if said.has_min_max else [None, None]
    if said.has_min_max and column.physical_type in ("FLOAT", "DOUBLE"):
        # Readers take no notice of bounds that are NaN.
        bounds = [None if math.isnan(bound) else bound + 0.0 for bound in bounds]
    return bounds[0], bounds[1], said.null_count if said.has_null_count else None


def row_groups(path: str) -> tuple[RowGroup, ...]:
    """Return what the footer of a local file says of its row groups, as values that are judged by rows.

    Raises:
        OSError, pyarrow.ArrowException: The file is missing or damaged.
    """
    import pyarrow.parquet as pq

    with open(path, "rb") as stored:
        metadata = pq.read_metadata(stored)
    schema = metadata.schema
    meanings = [json.loads(schema.column(place).logical_type.to_json()) for place in range(len(schema))]
    groups = []
    for group in (metadata.row_group(number) for number in range(metadata.num_row_groups)):
        chunks = [group.column(place) for place in range(group.num_columns)]
        groups.append(RowGroup(int(group.num_rows), dict(map(_bounds_of, chunks, meanings))))
    return tuple(groups)


def _bounds_of(column: pq.ColumnChunkMetaData, meaning: Mapping[str, Any]) -> tuple[str, FooterBounds]:
    low, high, nulls = stored_bounds(column)
    order = None if low is None and high is None else _order_of(column.physical_type, meaning)
    if order is not None:
        low, high = (None if bound is None else _value(bound, order, meaning) for bound in (low, high))
    return column.path_in_schema, FooterBounds(order, low, high, nulls)


_MICROSECONDS = {"milliseconds": 1000, "microseconds": 1}


def _order_of(physical_type: str, meaning: Mapping[str, Any]) -> Order | None:
    """Return the order of a column's values; None for types that no table has: unsigned numbers, nanoseconds."""
    match physical_type, meaning["Type"]:
        case _, "Decimal":
            return Order.DECIMAL
        case (("INT32" | "INT64"), "None"):
            return Order.NUMBER
        case (("INT32" | "INT64"), "Int"):
            return Order.NUMBER if meaning.get("isSigned") else None
        case "INT32", "Date":
            return Order.DAYS
        case "INT64", "Timestamp":
            return Order.MICROSECONDS if meaning["timeUnit"] in _MICROSECONDS else None
        case (("FLOAT" | "DOUBLE"), "None"):
            return Order.FLOAT
        case "BYTE_ARRAY", ("String" | "None"):
            return Order.BYTES
        case "BOOLEAN", "None":
            return Order.BOOLEAN
    return None


def _value(bound: Any, order: Order, meaning: Mapping[str, Any]) -> Any:  # noqa: ANN401
    if order is Order.DECIMAL:
        number = int.from_bytes(bound, "big", signed=True) if isinstance(bound, bytes) else bound
        digits = tuple(map(int, str(abs(number))))
        return Decimal((int(number < 0), digits, -int(meaning["scale"])))  # all digits, whatever the context
    if order is Order.MICROSECONDS:
        return bound * _MICROSECONDS[meaning["timeUnit"]]
    return bound
