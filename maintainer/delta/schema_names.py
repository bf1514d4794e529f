"""Names in a Delta schema: logical and physical, dotted and quoted. Pure, on the schema's JSON."""

from __future__ import annotations

from typing import Any

PHYSICAL_NAME = "delta.columnMapping.physicalName"

_WITH_STATS = frozenset(
    {"byte", "short", "integer", "long", "float", "double", "date", "timestamp", "timestamp_ntz", "string"}
)
"""Types with minimum and maximum in the log, besides decimals. Not boolean, binary, arrays, maps, variants."""


def quote(part: str) -> str:
    """A column name for Spark's parser, always in back-ticks."""
    return "`" + part.replace("`", "``") + "`"


def dotted(parts: tuple[str, ...]) -> str:
    """A column path as people write it: parts joined by dots, back-ticks only where a part needs them."""
    return ".".join(quote(part) if "." in part or "`" in part else part for part in parts)


def logical_names(schema: dict[str, Any]) -> dict[str, str]:
    """Top-level physical name to logical name, in the schema's order."""
    return {field["metadata"].get(PHYSICAL_NAME, field["name"]): field["name"] for field in schema["fields"]}


def physical_path_to_logical(schema: dict[str, Any], path: list[str]) -> str:
    """A path of physical names (as the clustering domain stores it) as a dotted logical name."""
    parts: list[str] = []
    fields = schema["fields"]
    for name in path:
        field = next(
            (one for one in fields if one["metadata"].get(PHYSICAL_NAME, one["name"]) == name),
            None,
        )
        if field is None:
            return dotted(tuple(path))
        parts.append(field["name"])
        fields = field["type"]["fields"] if isinstance(field["type"], dict) and "fields" in field["type"] else []
    return dotted(tuple(parts))


def stats_columns(stats_schema: dict[str, Any]) -> tuple[str, ...]:
    """Dotted logical names of the leaf columns that carry minimum and maximum, in the schema's order.

    ``stats_schema`` is what Delta collects for (``dataSkippingNumIndexedCols`` and ``dataSkippingStatsColumns``
    applied); of those, leaves of other types have a null count only.
    """
    return tuple(dotted(path) for path in _leaves(stats_schema, ()))


def _leaves(schema: dict[str, Any], prefix: tuple[str, ...]) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for field in schema["fields"]:
        path = (*prefix, field["name"])
        kind = field["type"]
        if isinstance(kind, dict):
            if kind.get("type") == "struct":
                found.extend(_leaves(kind, path))
        elif kind in _WITH_STATS or kind.startswith(("decimal", "string")):
            found.append(path)
    return found
