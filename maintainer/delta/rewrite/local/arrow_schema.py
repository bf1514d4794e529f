"""Translate a table's schema into the Arrow schema of its data files: physical types, field ids and names as Spark's.

Spark declares every column of a rewritten file as optional, for it reads files as if all of them were; only the keys
of maps are required. Lists and maps have Parquet's standard names, which pyarrow writes by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from maintainer.delta.log.schema_names import PHYSICAL_NAME
from maintainer.delta.rewrite.bin_work import LaneUnfit

if TYPE_CHECKING:
    import pyarrow as pa

FIELD_ID = b"PARQUET:field_id"
"""The key under which pyarrow reads and writes a column's field id."""

_MAPPED_ID = "delta.columnMapping.id"
_DECIMAL = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")


def file_schema(schema: Mapping[str, Any], partition_columns: Sequence[str]) -> pa.Schema:
    """Build the Arrow schema of a table's data files.

    Args:
        schema: The log's schema.
        partition_columns: Logical names of the columns that are not in the files.

    Raises:
        LaneUnfit: A type that is not known here.
    """
    import pyarrow as pa

    stored = [field for field in schema["fields"] if field["name"] not in partition_columns]
    return pa.schema([_field(field) for field in stored])


def leaves_of(fields: Iterable[pa.Field], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], pa.DataType]]:
    """Yield the path and the type of each column; structs are gone into, arrays and maps count as columns."""
    import pyarrow as pa

    for field in fields:
        path = (*above, field.name)
        if pa.types.is_struct(field.type):
            yield from leaves_of(field.type, path)
        else:
            yield path, field.type


def _field(field: Mapping[str, Any]) -> pa.Field:
    import pyarrow as pa

    metadata = field.get("metadata") or {}
    field_id = metadata.get(_MAPPED_ID)
    return pa.field(
        metadata.get(PHYSICAL_NAME, field["name"]),
        _arrow_type(field["type"]),
        nullable=True,
        metadata=None if field_id is None else {FIELD_ID: str(field_id).encode()},
    )


def _arrow_type(kind: str | Mapping[str, Any]) -> pa.DataType:
    import pyarrow as pa

    if isinstance(kind, str):
        return _primitive(kind)
    match kind["type"]:
        case "struct":
            return pa.struct([_field(field) for field in kind["fields"]])
        case "array":
            return pa.list_(pa.field("element", _arrow_type(kind["elementType"]), nullable=True))
        case "map":
            key = pa.field("key", _arrow_type(kind["keyType"]), nullable=False)
            return pa.map_(key, pa.field("value", _arrow_type(kind["valueType"]), nullable=True))
        case other:
            raise LaneUnfit(f"a column is of type {other}")


def _primitive(kind: str) -> pa.DataType:
    import pyarrow as pa

    simple: dict[str, pa.DataType] = {
        "boolean": pa.bool_(),
        "byte": pa.int8(),
        "short": pa.int16(),
        "integer": pa.int32(),
        "long": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "string": pa.string(),
        "binary": pa.binary(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "timestamp_ntz": pa.timestamp("us"),
    }
    if kind in simple:
        return simple[kind]
    if match := _DECIMAL.fullmatch(kind):
        return pa.decimal128(int(match[1]), int(match[2]))
    if kind.startswith(("char", "varchar")):
        return pa.string()
    raise LaneUnfit(f"a column is of type {kind}")
