"""Say in DuckDB's SQL how the values of each type are compared, and decode deletion vectors without Delta's code. Pure.

Values are compared exactly, by bits or by an unambiguous text. Floats are compared by their bits, so that the payload
of a NaN and the sign of a zero count. Nested values become JSON text with all leaves as text: DuckDB's hash of a list
takes an empty one for null, and the text does not.

The lanes read deletion vectors with Delta's own Java classes, so a vector that is read wrong is read wrong by one side
only. The form is that of the protocol ("Deletion Vector Format"): a magic number, then a portable 64-bit bitmap.

Bounds in statistics are compared with the least and the greatest values of a file by Delta's rules: a time may be a
millisecond above its bound, NaN is above all numbers.
"""

from __future__ import annotations

import io
import math
import re
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from maintainer.delta.log.actions import statistics_in, value_at
from maintainer.delta.log.schema_names import PHYSICAL_NAME
from maintainer.delta.log.statistics_columns import StatisticsColumn
from maintainer.delta.proof.statistics_figures import RowFigures, has_bounds
from maintainer.model.table.log_names import z85_decode

_INTEGERS = {"byte": "TINYINT", "short": "SMALLINT", "integer": "INTEGER", "long": "BIGINT"}
_TYPES = {
    **_INTEGERS,
    "boolean": "BOOLEAN",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "binary": "BLOB",
    "date": "DATE",
    "timestamp": "TIMESTAMP WITH TIME ZONE",
    "timestamp_ntz": "TIMESTAMP",
}
_STORED_AS: Mapping[str, tuple[str, ...]] = {
    "byte": ("TINYINT",),
    "short": ("TINYINT", "SMALLINT"),
    "integer": ("TINYINT", "SMALLINT", "INTEGER"),
    "long": ("TINYINT", "SMALLINT", "INTEGER", "BIGINT"),
    "double": ("FLOAT", "DOUBLE"),
    # INT96 has no time zone for DuckDB.
    "timestamp": ("TIMESTAMP WITH TIME ZONE", "TIMESTAMP"),
    "timestamp_ntz": ("TIMESTAMP", "DATE"),
}
"""How DuckDB may name what a file holds, where that is more than the type itself: narrower types of older files."""

_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")


class CannotCompareError(Exception):
    """The second engine cannot compare these files exactly, for the reason in its text."""


class OtherTypeError(CannotCompareError):
    """A new file has a column of another type than its writer was to write."""


@dataclass(frozen=True, slots=True)
class ComparedColumn:
    """A column that is stored in a table's files, for the second engine.

    Attributes:
        stored: Its name in the files.
        kind: Delta's name of a primitive type; ``nested`` for others.
        duckdb_type: The type as DuckDB's SQL spells it.
        value: SQL of what is hashed.
    """

    stored: str
    kind: str
    duckdb_type: str
    value: str

    def check_stored_type(self, name: str, spelled: str) -> None:
        """Refuse a type that DuckDB would have to guess about.

        Args:
            name: The type that the files have, in DuckDB's words.
            spelled: The column's own type in the same words.

        Raises:
            CannotCompareError: The files hold another type than those that are known to become this one.
        """
        if name not in _STORED_AS.get(self.kind, (spelled,)) and not self._is_narrower_decimal(name):
            raise CannotCompareError(f"column {self.stored} is stored as {name}")

    def _is_narrower_decimal(self, name: str) -> bool:
        """Whether the files have decimals that lose no digit after the point when they are read as the column's."""
        stored, wanted = (_DECIMAL.fullmatch(kind.lower()) for kind in (name, self.kind))
        return stored is not None and wanted is not None and int(stored[2]) <= int(wanted[2])


def compared_columns(schema: Mapping[str, Any], partition_columns: Sequence[str]) -> tuple[ComparedColumn, ...]:
    """Return the columns that are in a table's files, in order.

    Raises:
        CannotCompareError: A type that the second engine does not know, or names that differ in case only.
    """
    fields = [field for field in schema["fields"] if field["name"] not in partition_columns]
    columns = tuple(_column(field) for field in fields)
    if len({column.stored.casefold() for column in columns}) < len(columns):
        raise CannotCompareError("two columns differ in case only")
    return columns


def sql_name(name: str) -> str:
    """Quote a name for DuckDB."""
    return '"' + name.replace('"', '""') + '"'


def _column(field: Mapping[str, Any]) -> ComparedColumn:
    metadata = field.get("metadata") or {}
    if "__COLLATIONS" in metadata:
        raise CannotCompareError(f"column {field['name']} has a collation")
    stored, kind = metadata.get(PHYSICAL_NAME, field["name"]), field["type"]
    name = sql_name(stored)
    if not isinstance(kind, str):
        whole, bits, text = (_nested(kind, leaves) for leaves in ("whole", "bits", "text"))
        value = f"to_json(CAST(CAST(CAST({name} AS {whole}) AS {bits}) AS {text}))"
        return ComparedColumn(stored, "nested", whole, value)
    duckdb_type = _primitive(kind)
    return ComparedColumn(stored, kind, duckdb_type, _value(f"CAST({name} AS {duckdb_type})", name, kind))


def _value(cast: str, name: str, kind: str) -> str:
    match kind:
        case "float" | "double":
            # DuckDB hashes both zeros alike, and all NaNs; bits of every value would take eight times as long.
            bits = f"WHEN {cast} = 0 OR isnan({cast}) THEN hash(CAST({cast} AS BIT))"
            return f"CASE {bits} WHEN {cast} IS NOT NULL THEN hash({cast}) END"
        case "timestamp":
            return microseconds(name)
        case "timestamp_ntz":
            return microseconds(cast)
        case _:
            return cast


def microseconds(value: str) -> str:
    """SQL of a time as microseconds since 1970; null for null alone.

    DuckDB takes the last of all times and its negative for infinite, of which it says no number.
    """
    last = (1 << 63) - 1
    return f"ifnull(epoch_us({value}), CASE {value} WHEN 'infinity' THEN {last} WHEN '-infinity' THEN -{last} END)"


def _primitive(kind: str) -> str:
    if kind in _TYPES:
        return _TYPES[kind]
    if match := _DECIMAL.fullmatch(kind):
        return f"DECIMAL({match[1]},{match[2]})"
    raise CannotCompareError(f"a column is of type {kind}")


def _nested(kind: str | Mapping[str, Any], leaves: str) -> str:
    """Spell a type with its leaves as they are (``whole``), with floats as ``bits``, or with all as ``text``."""
    if isinstance(kind, str):
        if leaves == "text":
            return "VARCHAR"
        return "BIT" if leaves == "bits" and kind in ("float", "double") else _primitive(kind)
    match kind["type"]:
        case "struct":
            fields = (f"{sql_name(_stored_name(field))} {_nested(field['type'], leaves)}" for field in kind["fields"])
            return f"STRUCT({', '.join(fields)})"
        case "array":
            return f"{_nested(kind['elementType'], leaves)}[]"
        case "map":
            return f"MAP({_nested(kind['keyType'], leaves)}, {_nested(kind['valueType'], leaves)})"
        case other:
            raise CannotCompareError(f"a column is of type {other}")


def _stored_name(field: Mapping[str, Any]) -> str:
    return str((field.get("metadata") or {}).get(PHYSICAL_NAME, field["name"]))


MAGIC = 1681511377


def deleted_rows(vector: Mapping[str, Any], file: str | bytes | None) -> list[int]:
    """Return the numbers of a file's soft-deleted rows, from 0, in ascending order.

    Args:
        vector: ``deletionVector`` of an ``add`` action.
        file: The local path of the vector's file, or its content; None for one inside the log.

    Raises:
        CannotCompareError: It is damaged or gone, or holds another number of rows than the log says.
    """
    from pyroaring import BitMap64

    try:
        stored = _inline(vector) if file is None else _in_file(vector, file)
        (magic,) = struct.unpack_from("<i", stored)
        if magic != MAGIC:
            raise ValueError(f"it begins with {magic} and not with {MAGIC}")
        rows = list(BitMap64.deserialize(stored[4:]))
    except (OSError, ValueError, OverflowError, struct.error) as error:
        raise CannotCompareError(f"a deletion vector cannot be read: {' '.join(str(error).split())[:200]}") from error
    if len(rows) != int(vector["cardinality"]):
        raise CannotCompareError(f"a deletion vector holds {len(rows)} rows, the log says {vector['cardinality']}")
    return rows


def _inline(vector: Mapping[str, Any]) -> bytes:
    return z85_decode(vector["pathOrInlineDv"])[: int(vector["sizeInBytes"])]


def _in_file(vector: Mapping[str, Any], source: str | bytes) -> bytes:
    """The vector in a file that may hold many: its size, itself, and a checksum, numbers in big-endian order."""
    expected = int(vector["sizeInBytes"])
    with open(source, "rb") if isinstance(source, str) else io.BytesIO(source) as file:
        file.seek(int(vector.get("offset") or 0))
        head, stored, tail = file.read(4), file.read(expected), file.read(4)
    if struct.unpack(">i", head) != (expected,) or struct.unpack(">I", tail) != (zlib.crc32(stored),):
        raise ValueError("its size or its checksum is not the one that was written")
    return stored


_MILLISECOND = 1000


def figures_of(
    rows: int,
    nulls: tuple[int, ...],
    extremes: Sequence[tuple[Any, Any]],
    columns: tuple[StatisticsColumn, ...],
    stats: str | None,
) -> RowFigures:
    """Put the figures of one file together, as ``statistics_verdict.judge`` takes them.

    Args:
        rows: Its rows.
        nulls: Nulls of each column.
        extremes: Least and greatest value of each column, None without any: times in microseconds, dates in days.
        columns: The columns.
        stats: The statistics as the log will have them.
    """
    bounds = statistics_in(stats, parse_float=Decimal) or {}
    outside = reached = 0
    for number, (column, (least, most)) in enumerate(zip(columns, extremes, strict=True)):
        low, high = (value_at(bounds.get(side), column.physical) for side in ("minValues", "maxValues"))
        if not has_bounds(column) or least is None:
            continue
        is_outside, at_low, at_high = _compared(column, least, most, low, high)
        outside |= is_outside << number
        reached |= at_low << (2 * number) | at_high << (2 * number + 1)
    return RowFigures(rows, nulls, outside, reached)


def _compared(
    column: StatisticsColumn, least: object, most: object, low: object, high: object
) -> tuple[bool, bool, bool]:
    """Whether a value is outside the bounds, at the lower one, at the upper one."""
    first, last = _ordered(least, column.kind), _ordered(most, column.kind)
    lower = None if low is None else _ordered(_bound(low, column.kind), column.kind)
    upper = None if high is None else _ordered(_bound(high, column.kind), column.kind)
    below, above = lower is not None and first < lower, upper is not None and last > upper
    if column.kind in ("timestamp", "timestamp_ntz"):
        above = upper is not None and last[1] >= upper[1] + _MILLISECOND
    return below or above, first == lower, last == upper


def _ordered(value: Any, kind: str) -> tuple[bool, Any]:  # noqa: ANN401
    """A value that orders as Delta orders: NaN above all numbers."""
    if kind in ("float", "double"):
        number = float(value)
        return (True, 0.0) if math.isnan(number) else (False, number)
    return False, value.encode() if isinstance(value, str) else value


def _bound(value: Any, kind: str) -> Any:  # noqa: ANN401
    """A bound of the log as a value like those of the file.

    Raises:
        CannotCompareError: It is spelled in a way that is not known here.
    """
    try:
        match kind:
            case "date":
                return (date.fromisoformat(value) - date(1970, 1, 1)).days
            case "timestamp" | "timestamp_ntz":
                return _microseconds(value, kind)
            case "float":
                number = float(value)
                return number if not math.isfinite(number) else struct.unpack("f", struct.pack("f", number))[0]
            case "double":
                return float(value)
            case "string":
                return value.encode()
            case _:
                return Decimal(value) if kind.startswith("decimal") else int(value)
    except (ValueError, TypeError, AttributeError, ArithmeticError) as error:
        raise CannotCompareError(f"a bound is spelled {value!r}") from error


def _microseconds(text: str, kind: str) -> int:
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    if moment.tzinfo is None:
        if kind == "timestamp":
            raise ValueError("a time without a zone")
        moment = moment.replace(tzinfo=UTC)
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
