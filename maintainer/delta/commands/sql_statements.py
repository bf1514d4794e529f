"""Build the text of Delta's commands; names, paths and values are quoted, so no text of a policy becomes SQL. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from maintainer.delta.log.schema_names import name_parts, quote
from maintainer.model.table.table_facts import PartitionValues, TableRef

_CASTS = frozenset(
    {"boolean", "byte", "short", "integer", "long", "float", "double", "date", "timestamp", "timestamp_ntz"}
)


def text_literal(text: str) -> str:
    """A string literal: both characters that Spark's parser reads specially are escaped."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def table_of_path(path: str) -> str:
    """A table by its path, as Spark writes paths (not percent-encoded)."""
    return f"delta.{quote(path)}"


def table_name(ref: TableRef) -> str:
    """A table as a statement names it: by path, or by the parts of its catalog name."""
    if ref.is_path:
        return table_of_path(ref.location)
    return ".".join(quote(part) for part in name_parts(ref.identifier))


def partition_types(schema_json: str, columns: Sequence[str]) -> dict[str, str]:
    """The type of each partition column as the schema names it."""
    by_name = {field["name"].lower(): field["type"] for field in json.loads(schema_json)["fields"]}
    return {column: str(by_name.get(column.lower(), "string")) for column in columns}


def in_partitions(partitions: Iterable[PartitionValues], types: Mapping[str, str]) -> str:
    """A condition that holds for the rows of exactly these partitions; ``true`` for a table without partitions.

    Values are given as the log spells them and cast to the column's type. The empty text of a text column is a value,
    and apart from null.
    """
    conditions = []
    for values in partitions:
        terms = [_is(column, value, types.get(column, "string")) for column, value in values]
        conditions.append("(" + " AND ".join(terms) + ")" if terms else "true")
    listed = sorted(set(conditions))
    return "true" if "true" in listed else " OR ".join(listed)


def _is(column: str, value: str | None, kind: str) -> str:
    if value is None:
        return f"{quote(column)} IS NULL"
    literal = text_literal(value)
    if kind in _CASTS or kind.startswith("decimal"):
        literal = f"CAST({literal} AS {kind})"
    return f"{quote(column)} = {literal}"


def optimize(table: str, where: str, zorder_by: Sequence[str] = (), *, full: bool = False) -> str:
    """``OPTIMIZE``; Z-order columns are already quoted. ``full`` is for clustered tables."""
    condition = "" if where == "true" else f" WHERE {where}"
    order = f" ZORDER BY ({', '.join(zorder_by)})" if zorder_by else ""
    return f"OPTIMIZE {table}{' FULL' if full else ''}{condition}{order}"


def reorg_purge(table: str, where: str) -> str:
    """``REORG TABLE ... APPLY (PURGE)``."""
    condition = "" if where == "true" else f" WHERE {where}"
    return f"REORG TABLE {table}{condition} APPLY (PURGE)"


def set_properties(table: str, properties: Mapping[str, str]) -> str:
    """``ALTER TABLE ... SET TBLPROPERTIES``."""
    listed = ", ".join(f"{text_literal(key)} = {text_literal(value)}" for key, value in properties.items())
    return f"ALTER TABLE {table} SET TBLPROPERTIES ({listed})"
