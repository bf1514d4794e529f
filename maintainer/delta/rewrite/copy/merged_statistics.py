"""Merge the statistics of files that are joined: the least of the least, the greatest of the greatest, sums of nulls.

Bounds stay as wide as they were. A string that Delta cut stays cut; its bound still holds all rows. Pure.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from maintainer.delta.rewrite.lane_fit import LaneUnfit

Tree = dict[str, Any]
_BOUNDED = ("byte", "short", "integer", "long", "float", "double", "date", "timestamp", "timestamp_ntz", "string")


def merge_statistics(texts: Sequence[str | None], columns: Sequence[tuple[tuple[str, ...], str]]) -> str:
    """Return the statistics of a file with the rows of some files.

    Args:
        texts: The statistics of each of them, as the log has them.
        columns: The columns that the table's settings collect statistics for: physical path and Delta's type.

    Raises:
        LaneUnfit: A file has no statistics, not of each of these columns, or spells them in an unknown way.
    """
    sources = [_read(text) for text in texts]
    merged: Tree = {"numRecords": sum(source["numRecords"] for source in sources)}
    sides: dict[str, Tree] = {"minValues": {}, "maxValues": {}, "nullCount": {}}
    for path, kind in columns:
        nulls = [_at(source.get("nullCount"), path) for source in sources]
        if any(not isinstance(count, int) for count in nulls):
            raise LaneUnfit(f"a file has no count of nulls for {'.'.join(path)}")
        _put(sides["nullCount"], path, sum(nulls))
        if kind not in _BOUNDED and not kind.startswith("decimal"):
            continue
        with_values = [source for source, count in zip(sources, nulls, strict=True) if count < source["numRecords"]]
        for side, choose in (("minValues", min), ("maxValues", max)):
            bounds = [_at(source.get(side), path) for source in with_values]
            if any(bound is None for bound in bounds):
                # Delta leaves the upper bound of some strings out; of other columns a reader would skip too little.
                if kind != "string" or side == "minValues":
                    raise LaneUnfit(f"a file has no bounds for {'.'.join(path)}")
                continue
            if bounds:
                _put(sides[side], path, choose(bounds, key=lambda bound: _ordered(bound, kind)))
    merged |= sides
    if all(source.get("tightBounds") is True for source in sources):
        merged["tightBounds"] = True
    return _json(merged)


def _read(text: str | None) -> Tree:
    try:
        stats: Tree = json.loads(text or "", parse_float=Decimal)
        if isinstance(stats["numRecords"], int) and stats.get("tightBounds") is not False:
            return stats
    except (ValueError, KeyError, TypeError):
        pass
    raise LaneUnfit("a file has no statistics in the log, or none that are sure to be narrow")


def _ordered(bound: Any, kind: str) -> Any:  # noqa: ANN401
    """A bound as a value that orders as Delta orders it."""
    try:
        match kind:
            case "string":
                return bound.encode()
            case "date":
                return date.fromisoformat(bound)
            case "timestamp":
                moment = datetime.fromisoformat(bound.replace("Z", "+00:00"))
                if moment.tzinfo is None:
                    raise ValueError(bound)
                return moment
            case "timestamp_ntz":
                return datetime.fromisoformat(bound)
            case "float" | "double":
                number = float(bound)
                return (1, 0.0) if math.isnan(number) else (0, number)
            case _:
                return Decimal(bound)
    except (ValueError, TypeError, AttributeError, ArithmeticError) as error:
        raise LaneUnfit(f"a file has the bound {bound!r} of a {kind}") from error


def _at(tree: Any, path: tuple[str, ...]) -> Any:  # noqa: ANN401
    for name in path:
        tree = tree.get(name) if isinstance(tree, dict) else None
    return tree


def _put(tree: Tree, path: tuple[str, ...], value: object) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = value


def _json(value: object) -> str:
    """Write JSON; a decimal keeps every digit."""
    if isinstance(value, dict):
        return (
            "{"
            + ",".join(f"{json.dumps(key, ensure_ascii=False)}:{_json(element)}" for key, element in value.items())
            + "}"
        )
    return str(value) if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False)
