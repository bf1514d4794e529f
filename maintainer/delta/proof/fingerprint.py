"""An order-free, null-safe fingerprint of rows, as SQL over a schema. Pure: builds expressions, runs nothing.

Every row gets two 64-bit hashes (``xxhash64`` with two prefixes) over, for each column, its index, whether it is
null, and an encoding of its value. The fingerprint is the number of rows and the two exact sums of hashes. Sums and
not XOR, because equal rows cancel under XOR; sums of 22-bit parts, because a 64-bit sum overflows under ANSI rules
(parts are good for 2^41 rows).

Why the encodings: ``xxhash64`` skips nulls at any depth, so that ``[null, 1]`` and ``[1, null]`` hash alike; takes
-0.0 for 0.0; refuses maps and variants; and hashes a collated string by its collation key, so that "a" may equal
"A". NaNs are all one value: no reader of Delta on Spark can tell their bits apart.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from maintainer.delta.log.schema_names import quote
from maintainer.model.run.receipts import Fingerprint

PREFIXES = ("maintainer-a", "maintainer-b")
_LOW_BITS = 22
_MASK = (1 << _LOW_BITS) - 1
_PLAIN = frozenset({"boolean", "byte", "short", "integer", "long", "date", "timestamp", "timestamp_ntz", "binary"})
_FLOATS = frozenset({"float", "double"})


@dataclass(frozen=True, slots=True)
class HashedColumns:
    """Expressions of the two row hashes, and the columns whose values they cannot cover (their nulls they do)."""

    hashes: tuple[str, ...]
    uncovered: tuple[str, ...]


def hashed_columns(schema: dict[str, Any], extra: tuple[str, ...] = ()) -> HashedColumns:
    """Build both row hashes for a schema's columns; ``extra`` are expressions of plain types hashed too."""
    collated = "__COLLATIONS" in json.dumps(schema)
    encoders = [_Encoder(prefix, collated=collated) for prefix in PREFIXES]
    return HashedColumns(tuple(encoder.row(schema, extra) for encoder in encoders), tuple(encoders[0].uncovered))


def sum_expressions(hash_columns: tuple[str, ...]) -> tuple[str, ...]:
    """Aggregates over hash columns: three partial sums for each, low bits first."""
    expressions = []
    for number, name in enumerate(hash_columns):
        for part in range(3):
            shifted = f"shiftrightunsigned({name}, {part * _LOW_BITS})" if part else name
            expressions.append(f"coalesce(sum({shifted} & {_MASK}L), 0L) AS s{number}_{part}")
    return tuple(expressions)


def combine(rows: int, parts: tuple[int, ...]) -> Fingerprint:
    """Put a fingerprint together from the partial sums, in the order of ``sum_expressions``."""
    sums = tuple(
        sum(part << (_LOW_BITS * place) for place, part in enumerate(parts[start : start + 3]))
        for start in range(0, len(parts), 3)
    )
    return Fingerprint(rows, sums)


def _marker(expression: str, index: int) -> str:
    return f"if(isnull({expression}), {-1 - index}, {index})"


class _Encoder:
    """Walks a type and lists the arguments that tell any two different values apart."""

    def __init__(self, prefix: str, *, collated: bool) -> None:
        self._prefix = prefix
        self._collated = collated
        self._column = ""
        self.uncovered: list[str] = []

    def row(self, schema: dict[str, Any], extra: tuple[str, ...]) -> str:
        """The hash of a whole row."""
        parts: list[str] = []
        for index, field in enumerate(schema["fields"]):
            self._column = field["name"]
            parts.extend(self._arguments(quote(field["name"]), field["type"], index, 0))
        for index, expression in enumerate(extra, start=len(schema["fields"])):
            parts.extend([_marker(expression, index), expression])
        return self._digest(parts)

    def _arguments(self, value: str, kind: str | dict[str, Any], index: int, depth: int) -> list[str]:
        return [_marker(value, index), *self._encoding(value, kind, depth)]

    def _encoding(self, value: str, kind: str | dict[str, Any], depth: int) -> list[str]:
        if isinstance(kind, dict):
            return self._nested(value, kind, depth)
        if kind in _PLAIN or kind.startswith(("decimal", "interval")):
            return [value]
        if kind in _FLOATS:
            # The hash takes -0.0 for 0.0; its text does not. Text is made for zeros only.
            return [value, f"if({value} = 0, cast({value} AS STRING), '')"]
        if kind.startswith(("string", "char", "varchar")):
            return [f"cast({value} AS BINARY)" if self._collated else value]
        if kind == "variant":
            return [f"to_json({value})", f"schema_of_variant({value})"]
        if kind not in ("void", "null"):
            self._uncover()
        return []

    def _uncover(self) -> None:
        if self._column not in self.uncovered:
            self.uncovered.append(self._column)

    def _nested(self, value: str, kind: dict[str, Any], depth: int) -> list[str]:
        if kind["type"] == "struct":
            expressions: list[str] = []
            for index, field in enumerate(kind["fields"]):
                expressions.extend(self._arguments(f"{value}.{quote(field['name'])}", field["type"], index, depth))
            return expressions
        variable = f"e{depth}"
        if kind["type"] == "array":
            element = self._digest(self._arguments(variable, kind["elementType"], 0, depth + 1))
            return [f"size({value})", f"transform({value}, {variable} -> {element})"]
        if kind["type"] == "map":
            # Entries as hashes in sorted order: the order of a map's entries means nothing, and hashes can
            # always be sorted, whatever the type of the values.
            key = self._arguments(f"{variable}.key", kind["keyType"], 0, depth + 1)
            entry = self._digest([*key, *self._arguments(f"{variable}.value", kind["valueType"], 1, depth + 1)])
            return [f"size({value})", f"array_sort(transform(map_entries({value}), {variable} -> {entry}))"]
        if kind["type"] == "udt":
            return self._encoding(value, kind["sqlType"], depth)
        self._uncover()
        return []

    def _digest(self, arguments: list[str]) -> str:
        listed = ", ".join([f"'{self._prefix}'", *arguments])
        return f"xxhash64({listed})"
