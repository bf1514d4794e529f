"""Translate names in a Delta schema: logical and physical, dotted and quoted. Pure, on the schema's JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from maintainer.model.table.table_features import INDEXED_COLUMNS_NUMBER, NUM_INDEXED_COLUMNS, num_indexed_columns

PHYSICAL_NAME = "delta.columnMapping.physicalName"

_PIECE = re.compile(r"`((?:[^`]|``)*)`?|([^`.]+)|\.")
"""Of a dotted name: what stands in back-ticks, what stands outside of them, or a dot between two parts."""

_LISTED = re.compile(r"(?:`[^`]*`?|[^`,])+")
"""A name of a comma-separated list, still quoted where it is."""


def quote(part: str) -> str:
    """A column name for Spark's parser, always in back-ticks."""
    return "`" + part.replace("`", "``") + "`"


def dotted(parts: tuple[str, ...]) -> str:
    """A column path as people write it: parts joined by dots, back-ticks only where a part needs them."""
    return ".".join(quote(part) if "." in part or "`" in part else part for part in parts)


def physical_name(field: Mapping[str, Any]) -> str:
    """The name under which files and the log keep a field's values."""
    return str((field.get("metadata") or {}).get(PHYSICAL_NAME, field["name"]))


def logical_names(schema: dict[str, Any]) -> dict[str, str]:
    """Top-level physical name to logical name, in the schema's order."""
    return {physical_name(field): field["name"] for field in schema["fields"]}


def physical_path_to_logical(schema: dict[str, Any], path: list[str]) -> str:
    """A path of physical names (as the clustering domain stores it) as a dotted logical name."""
    fields = _fields_along(schema, path, physical_name)
    return dotted(tuple(path) if fields is None else tuple(field["name"] for field in fields))


def physical_path(schema: dict[str, Any], column: str) -> tuple[str, ...]:
    """The path of a column (dotted, in back-ticks where needed) as statistics name it.

    Raises:
        ValueError: The schema has no such column.
    """
    parts = [part.lower() for part in name_parts(column)]
    fields = _fields_along(schema, parts, lambda field: str(field["name"]).lower())
    if fields is None:
        raise ValueError(f"no column {column}")
    return tuple(map(physical_name, fields))


def _fields_along(
    schema: dict[str, Any], names: Iterable[str], name_of: Callable[[dict[str, Any]], str]
) -> list[dict[str, Any]] | None:
    """The fields on a path, each within the one before; None where there is none of such a name."""
    fields, found = schema["fields"], list[dict[str, Any]]()
    for name in names:
        field = next((field for field in fields if name_of(field) == name), None)
        if field is None:
            return None
        found.append(field)
        fields = field["type"]["fields"] if isinstance(field["type"], dict) and "fields" in field["type"] else []
    return found


def indexed_schema(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the logical schema of the columns that statistics are collected for, from a ``metaData`` action.

    Raises:
        ValueError: A number of columns that is no number; Delta does not read such a table.
    """
    properties = metadata["configuration"]
    if not INDEXED_COLUMNS_NUMBER.fullmatch(properties.get(NUM_INDEXED_COLUMNS, "0")):
        raise ValueError(f"{NUM_INDEXED_COLUMNS} is {properties[NUM_INDEXED_COLUMNS]!r}")
    schema, partition_columns = table_schema(metadata)
    return collected_schema(schema, properties, partition_columns)


def table_schema(metadata: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the logical schema and the partition columns in a ``metaData`` action."""
    return json.loads(metadata["schemaString"]), tuple(metadata["partitionColumns"])


def collected_schema(
    schema: dict[str, Any], properties: Mapping[str, str], partition_columns: Sequence[str]
) -> dict[str, Any]:
    """Return the part of a schema that Delta collects statistics for, as Delta works it out.

    The columns that ``delta.dataSkippingStatsColumns`` names, else the first ``delta.dataSkippingNumIndexedCols``
    leaves (32; -1 for all) that are no partition columns; a map or an array is one leaf.
    """
    partitions = {column.lower() for column in partition_columns}
    data = [field for field in schema["fields"] if field["name"].lower() not in partitions]
    named = properties.get("delta.dataSkippingStatsColumns")
    if named is not None:
        listed = (name.strip() for name in _LISTED.findall(named))
        named_paths = {tuple(part.lower() for part in name_parts(name)) for name in listed if name}
        return {"type": "struct", "fields": _named(data, (), named_paths)}
    number = num_indexed_columns(properties)
    return {"type": "struct", "fields": data if number < 0 else _first(data, number)[0]}


def name_parts(name: str) -> list[str]:
    """The parts of a dotted name; a part in back-ticks may hold dots."""
    parts = [""]
    for piece in _PIECE.finditer(name):
        if piece[0] == ".":
            parts.append("")
        else:
            parts[-1] += piece[2] or piece[1].replace("``", "`")
    return parts


def _first(fields: Sequence[dict[str, Any]], number: int) -> tuple[list[dict[str, Any]], int]:
    fields_kept: list[dict[str, Any]] = []
    leaves = number
    for field in fields:
        if leaves <= 0:
            break
        kind = field["type"]
        if isinstance(kind, dict) and kind.get("type") == "struct":
            inner, leaves = _first(kind["fields"], leaves)
            fields_kept.append({**field, "type": {**kind, "fields": inner}})
        else:
            fields_kept.append(field)
            leaves -= 1
    return fields_kept, leaves


def _named(
    fields: Sequence[dict[str, Any]], prefix: tuple[str, ...], paths: set[tuple[str, ...]]
) -> list[dict[str, Any]]:
    fields_kept: list[dict[str, Any]] = []
    for field in fields:
        path = (*prefix, field["name"].lower())
        kind = field["type"]
        if path in paths:
            fields_kept.append(field)
        elif isinstance(kind, dict) and kind.get("type") == "struct":
            inner = _named(kind["fields"], path, paths)
            if inner:
                fields_kept.append({**field, "type": {**kind, "fields": inner}})
    return fields_kept


def fresh_prefix(names: Iterable[str]) -> str:
    """A prefix for our own columns that no column of the table begins with."""
    lower_names = [name.lower() for name in names]
    prefix = "__m"
    while any(name.startswith(prefix) for name in lower_names):
        prefix += "_"
    return prefix
