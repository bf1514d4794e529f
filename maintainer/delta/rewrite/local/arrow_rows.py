"""Read the rows of data files as batches of a table's schema of today.

Files may be older than the schema: columns that came later are null, dropped ones are left out, and types that were
widened since are widened here. Whatever Spark might read in another way sends the bin to Spark's lane.

The Arrow schema of data files has physical types, field ids and names as Spark's. Spark declares every column of a
rewritten file as optional, for it reads files as if all of them were; only the keys of maps are required. Lists and
maps have Parquet's standard names, which pyarrow writes by itself.
"""

from __future__ import annotations

import bisect
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from maintainer.delta.log.schema_names import physical_name
from maintainer.delta.rewrite.bin_work import LaneUnfit
from maintainer.delta.rewrite.local.batch_size import fitting_batches

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

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
        physical_name(field),
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


_OLD_CALENDARS = ("org.apache.spark.legacyDateTime", "org.apache.spark.legacyINT96")
"""Spark's marks of a file whose oldest dates are in the Julian calendar."""
SPARK_VERSION = "org.apache.spark.version"


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A data file to read: its local path, and the numbers of its soft-deleted rows in ascending order."""

    path: str
    deleted_rows: Sequence[int] = ()


def read_rows(
    sources: Iterable[SourceFile],
    schema: pa.Schema,
    *,
    by_id: bool,
    check_stop: Callable[[], None] = lambda: None,
    on_read: Callable[[int], None] = lambda size_bytes: None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of Parquet files, in order and without soft-deleted ones, as batches of ``schema``.

    Args:
        sources: The files.
        schema: From ``file_schema``.
        by_id: Whether columns are found by field id, and not by name.
        check_stop: Raises when the run is to end; called for each batch.
        on_read: Called after each batch with how many bytes of the files are read so far.

    Raises:
        LaneUnfit: A file is of a form that only Spark reads as Spark does, or it is missing or damaged: Spark then
            says what is wrong with it.
    """
    import pyarrow as pa

    before_bytes = 0
    for source in sources:
        try:
            size_bytes = os.stat(source.path).st_size
            for batch, share in _rows_of(source, schema, by_id=by_id):
                check_stop()
                on_read(before_bytes + int(size_bytes * share))
                yield batch
            before_bytes += size_bytes
        except (pa.ArrowException, OSError) as error:
            raise LaneUnfit(f"a file cannot be read here: {' '.join(str(error).split())[:200]}") from error


def _rows_of(source: SourceFile, schema: pa.Schema, *, by_id: bool) -> Iterator[tuple[pa.RecordBatch, float]]:
    """Yield batches, each with the share of the file's rows that are read with it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with open(source.path, "rb") as stored:
        file = pq.ParquetFile(stored, coerce_int96_timestamp_unit="us", arrow_extensions_enabled=False)
        _check_calendar(file)
        names = [
            None if place is None else file.schema_arrow.field(place).name
            for place in _places(file.schema_arrow, schema, by_id=by_id)
        ]
        int96 = _int96_columns(file)
        first = 0
        # Other columns are not decoded.
        listed = [name for name in names if name is not None]
        for batch in fitting_batches(file, listed):
            rows = _without(batch, source.deleted_rows, first)
            first += batch.num_rows
            columns = [
                pa.nulls(rows.num_rows, field.type)
                if name is None
                else conform(rows.column(rows.schema.get_field_index(name)), field, by_id=by_id, is_int96=name in int96)
                for field, name in zip(schema, names, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema), first / file.metadata.num_rows


def _without(batch: pa.RecordBatch, deleted_rows: Sequence[int], first: int) -> pa.RecordBatch:
    """Leave out the deleted rows of a batch whose first row has the number ``first`` in its file."""
    import pyarrow as pa

    start, end = (bisect.bisect_left(deleted_rows, number) for number in (first, first + batch.num_rows))
    if start == end:
        return batch
    live = bytearray(b"\x01") * batch.num_rows
    for number in deleted_rows[start:end]:
        live[number - first] = 0
    mask = pa.Array.from_buffers(pa.uint8(), batch.num_rows, [None, pa.py_buffer(bytes(live))])
    return batch.filter(mask.cast(pa.bool_()))


def is_of_old_calendar(metadata: Mapping[str, str], *, has_int96: bool) -> bool:
    """Return whether Spark shifts old dates of a file: marked so, or of a version that wrote no marks.

    Versions are compared as texts, as Spark does. INT96 got its mark in 3.1, a release after all others.
    """
    version = metadata.get(SPARK_VERSION)
    is_unmarked = version is not None and version < ("3.1.0" if has_int96 else "3.0.0")
    return is_unmarked or any(key in metadata for key in _OLD_CALENDARS)


def _check_calendar(file: pq.ParquetFile) -> None:
    stored = (file.schema.column(number).physical_type for number in range(len(file.schema)))
    if is_of_old_calendar(key_values(file.metadata), has_int96="INT96" in stored):
        raise LaneUnfit("a file has dates of the old calendar")


def key_values(metadata: pq.FileMetaData) -> dict[str, str]:
    """Return the key-value metadata of a footer as texts."""
    stored = (metadata.metadata or {}).items()
    return {key.decode(errors="replace"): value.decode(errors="replace") for key, value in stored}


def _places(stored: Iterable[pa.Field], schema: Iterable[pa.Field], *, by_id: bool) -> list[int | None]:
    """Find each column or field in the file: its place, or None where the file is older than it."""
    if by_id:
        numbers = [_id_of(field) for field in stored]
        return [_place(numbers, _id_of(field)) for field in schema]
    names = [field.name for field in stored]
    folded = {name.casefold() for name in names}
    for field in schema:
        if field.name not in names and field.name.casefold() in folded:
            raise LaneUnfit(f"a file spells the column {field.name} in another case")
    return [_place(names, field.name) for field in schema]


def _id_of(field: pa.Field) -> bytes | None:
    return (field.metadata or {}).get(FIELD_ID)


def _place(names: Sequence[object], name: object) -> int | None:
    if name is None or names.count(name) > 1:
        raise LaneUnfit("a file has two columns of one name or id")
    return names.index(name) if name in names else None


def _int96_columns(file: pq.ParquetFile) -> frozenset[str]:
    """The top-level columns that are stored as INT96."""
    roots = [field.name for field in file.schema_arrow]
    return frozenset(
        column.path.split(".")[0]
        for column in (file.schema.column(number) for number in range(len(file.schema)))
        if column.physical_type == "INT96" and column.path.split(".")[0] in roots
    )


def conform(array: pa.Array, field: pa.Field, *, by_id: bool, is_int96: bool = False) -> pa.Array:
    """Turn an array as a file has it into the field's type, without changing a value; ``by_id``: as in ``read_rows``.

    Raises:
        LaneUnfit: No conversion that Spark would do alike is known.
    """
    import pyarrow as pa

    stored, wanted = array.type, field.type
    if stored.equals(wanted, check_metadata=by_id):
        return array
    if pa.types.is_dictionary(stored):
        return conform(array.dictionary_decode(), field, by_id=by_id, is_int96=is_int96)
    if pa.types.is_struct(wanted) and pa.types.is_struct(stored):
        return _conform_struct(array, wanted, by_id=by_id)
    if not _is_alike(stored, wanted, by_id=by_id, is_int96=is_int96):
        raise LaneUnfit(f"a file has the column {field.name} as {stored}, the table as {wanted}")
    try:
        return array.cast(wanted, safe=True)
    except pa.ArrowInvalid as error:
        raise LaneUnfit(f"values of the column {field.name} do not fit {wanted}") from error


def _conform_struct(array: pa.StructArray, wanted: pa.StructType, *, by_id: bool) -> pa.Array:
    import pyarrow as pa

    children = [
        pa.nulls(len(array), field.type) if place is None else conform(array.field(place), field, by_id=by_id)
        for field, place in zip(wanted, _places(array.type, wanted, by_id=by_id), strict=True)
    ]
    return pa.StructArray.from_arrays(children, fields=list(wanted), mask=array.is_null())


_WIDER_INTEGERS = ("int8", "int16", "int32", "int64")


def _is_alike(stored: pa.DataType, wanted: pa.DataType, *, by_id: bool, is_int96: bool) -> bool:
    """Whether a value of one type is the same value as one of the other, for Spark and for Arrow."""
    import pyarrow as pa

    types = pa.types
    text, either = str(stored), str(wanted)
    if text in _WIDER_INTEGERS and either in _WIDER_INTEGERS:
        return _WIDER_INTEGERS.index(text) <= _WIDER_INTEGERS.index(either)
    if types.is_float32(stored) and types.is_float64(wanted):
        return True
    if types.is_decimal(stored) and types.is_decimal(wanted):
        return bool(wanted.scale >= stored.scale and wanted.precision - wanted.scale >= stored.precision - stored.scale)
    if types.is_timestamp(stored) and types.is_timestamp(wanted):
        return (stored.tz is not None) == (wanted.tz is not None) or (is_int96 and wanted.tz is not None)
    if types.is_string(wanted):
        return bool(types.is_large_string(stored) or types.is_string_view(stored) or types.is_binary(stored))
    if types.is_binary(wanted):
        return bool(types.is_large_binary(stored) or types.is_binary_view(stored) or types.is_fixed_size_binary(stored))
    if types.is_map(stored) and types.is_map(wanted):
        return _is_same(stored, wanted, by_id=by_id)
    if (types.is_list(stored) or types.is_large_list(stored)) and types.is_list(wanted):
        return _is_same(stored.value_type, wanted.value_type, by_id=by_id)
    return False


def _is_same(stored: pa.DataType, wanted: pa.DataType, *, by_id: bool) -> bool:
    """Whether two nested types differ in names of lists and maps and in nullability alone, which touch no values."""
    import pyarrow as pa

    types = pa.types
    if stored.equals(wanted, check_metadata=by_id):
        return True
    if types.is_struct(stored) and types.is_struct(wanted):
        return stored.num_fields == wanted.num_fields and all(
            old.name == new.name
            and (not by_id or _id_of(old) == _id_of(new))
            and _is_same(old.type, new.type, by_id=by_id)
            for old, new in zip(stored, wanted, strict=True)
        )
    if types.is_list(stored) and types.is_list(wanted):
        return _is_same(stored.value_type, wanted.value_type, by_id=by_id)
    if types.is_map(stored) and types.is_map(wanted):
        pairs = (stored.key_type, wanted.key_type), (stored.item_type, wanted.item_type)
        return all(_is_same(old, new, by_id=by_id) for old, new in pairs)
    return bool(types.is_large_string(stored) and types.is_string(wanted))
