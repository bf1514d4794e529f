"""One table of every type that the local lane takes, with its values at the edges: schema as in the log, and rows."""

from __future__ import annotations

import math
import struct
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

OTHER_NAN: float = struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000001))[0]
"""A NaN with another payload than Python's."""

MICROSECOND = timedelta(microseconds=1)
EPOCH = datetime.fromisoformat("1970-01-01")
MIDNIGHT = datetime.fromisoformat("9999-12-31")

PRIMITIVES = (
    *("boolean", "byte", "short", "integer", "long", "float", "double", "string", "binary", "date"),
    *("timestamp", "timestamp_ntz", "decimal(9,2)", "decimal(18,0)", "decimal(38,10)"),
)
ARRAY = {"type": "array", "elementType": "double", "containsNull": True}
MAP = {"type": "map", "keyType": "string", "valueType": "double", "valueContainsNull": True}


def field(name: str, kind: object, **metadata: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


STRUCT = {"type": "struct", "fields": [field("x", "integer"), field("y", "decimal(30,2)"), field("z", ARRAY)]}
SCHEMA: dict[str, Any] = {
    "type": "struct",
    "fields": [
        *(field(kind.replace("(", "").replace(",", "_").replace(")", ""), kind) for kind in PRIMITIVES),
        field("list", ARRAY),
        field("map", MAP),
        field("struct", STRUCT),
        field("structs", {"type": "array", "elementType": STRUCT, "containsNull": True}),
    ],
}


def zoo_rows() -> list[dict[str, Any]]:
    """Rows with the least, greatest, odd and missing values of each type."""
    first = {
        "boolean": True, "byte": -128, "short": -32768, "integer": -(2**31), "long": -(2**63),
        "float": math.inf, "double": OTHER_NAN, "string": "é" * 40, "binary": b"\x00\xff\\",
        "date": date(1, 1, 1), "timestamp": datetime(1, 1, 1, tzinfo=UTC),
        "timestamp_ntz": MIDNIGHT - MICROSECOND, "decimal9_2": Decimal("-9999999.99"),
        "decimal18_0": Decimal(10**18 - 1), "decimal38_10": Decimal("9" * 28 + "." + "9" * 10),
        "list": [1.0, None], "map": [("a", 1.5), ("b", None)],
        "struct": {"x": 1, "y": Decimal("1.10"), "z": [None]}, "structs": [{"x": None, "y": None, "z": None}, None],
    }  # fmt: skip
    second = {
        **first, "boolean": False, "byte": 127, "short": 32767, "integer": 2**31 - 1, "long": 2**63 - 1,
        "float": -0.0, "double": -0.0, "string": "", "binary": b"", "date": date(9999, 12, 31),
        "timestamp": datetime(2026, 11, 23, 1, 2, 3, 456_789, tzinfo=UTC),
        "timestamp_ntz": EPOCH - MICROSECOND, "list": [None, 1.0], "map": [("a", -0.0)],
        "struct": {"x": None, "y": None, "z": []}, "structs": [],
    }  # fmt: skip
    nothing = dict.fromkeys(first)
    third = {**second, "float": math.nan, "double": math.nan, "list": [], "map": [], "struct": None, "string": "null"}
    return [first, second, nothing, third, first]


def table_of(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    """Rows as an Arrow table; the payload of a NaN survives."""
    return pa.table({name: pa.array([row[name] for row in rows], schema.field(name).type) for name in schema.names},
                    schema=schema)  # fmt: skip
