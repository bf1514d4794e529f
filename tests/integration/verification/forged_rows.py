"""Faults in the rows of files that a rewrite wrote, planted by pyarrow. Shares nothing with the prover."""

from __future__ import annotations

import copy
import json
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal, localcontext
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.product import WrittenFile

UTC = UTC
RowChange = Callable[[pa.Table, random.Random], "pa.Table | None"]
StatsChange = Callable[[dict[str, Any], random.Random], bool]
Plant = Callable[["Forgery"], bool]
"""Plants one fault; False where it does not apply to the files."""


@dataclass
class Forgery:
    """Written files of one rewrite, copied under new names, to be changed by one fault."""

    root: Path
    written: list[WrittenFile]
    rng: random.Random

    def victim(self) -> WrittenFile:
        """A file to change, the one with most rows."""
        return max(
            self.written, key=lambda file: json.loads(file.add["stats"])["numRecords"] if file.add.get("stats") else 0
        )

    def path(self, file: WrittenFile) -> Path:
        """Where it lies."""
        return self.root / unquote(file.path)

    def change_rows(self, change: RowChange) -> bool:
        """Rewrite one file's rows; False where the change does not apply to it.

        Delta 4.4 writes partition columns into the files, too, and readers take them from the log: they are left out.
        """
        file = self.victim()
        table = read(self.path(file))
        copies = [name for name in table.column_names if name in file.add["partitionValues"]]
        changed = change(table.drop_columns(copies), self.rng)
        if changed is None:
            return False
        write(changed, self.path(file))
        # The reader takes the file's size from the log.
        file.add["size"] = self.path(file).stat().st_size
        return True

    def change_stats(self, change: StatsChange) -> bool:
        """Change the statistics of one file; False where the change does not apply."""
        file = self.victim()
        stats = json.loads(file.add["stats"])
        if not change(stats, self.rng):
            return False
        file.add["stats"] = json.dumps(stats, ensure_ascii=False)
        return True


def read(path: Path) -> pa.Table:
    """A data file's rows. Spark's INT96 become timestamps with a zone, so that Spark reads them again as they were."""
    file = pq.ParquetFile(path, coerce_int96_timestamp_unit="us")
    columns = [file.schema.column(number) for number in range(len(file.schema))]
    old = {column.path for column in columns if column.physical_type == "INT96"}
    table = file.read()
    schema = pa.schema([_zoned(column, column.name, old) for column in table.schema], metadata=table.schema.metadata)
    return table.cast(schema)


def _zoned(field: pa.Field, path: str, old: set[str]) -> pa.Field:
    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([_zoned(kind.field(number), f"{path}.{kind.field(number).name}", old)
                          for number in range(kind.num_fields)])  # fmt: skip
    elif path in old:
        kind = pa.timestamp("us", tz="UTC")
    return field.with_type(kind)


def write(table: pa.Table, path: Path, **options: Any) -> None:
    """Write a data file in the place of another one."""
    pq.write_table(table, path, **options)
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def forge(root: Path, written: list[WrittenFile], seed: str) -> Forgery:
    """Copy the files of a rewrite under new names."""
    rng = random.Random(seed)
    copies = []
    for file in written:
        source = root / unquote(file.path)
        name = f"{source.stem.split('.')[0]}-f{rng.getrandbits(48):x}.parquet"
        shutil.copyfile(source, source.with_name(name))
        add = copy.deepcopy(file.add)
        add["path"] = "/".join([*file.path.split("/")[:-1], name])
        copies.append(WrittenFile(add, file.tags, file.bin_number))
    return Forgery(root, copies, rng)


def other_value(value: Any, kind: pa.DataType, rng: random.Random) -> Any:
    """A value of the type that is not the one given, and near it where the type allows."""
    if pa.types.is_struct(kind):
        inner = kind.field(rng.randrange(kind.num_fields))
        old = value or {}
        return {**old, inner.name: other_value(old.get(inner.name), inner.type, rng)}
    if pa.types.is_map(kind):
        return [*value[:-1], (value[-1][0], 7)] if value else [("zz", 1)]
    if pa.types.is_list(kind):
        return [None, *value] if value is not None else []
    if pa.types.is_boolean(kind):
        return not value
    if pa.types.is_integer(kind):
        return (value or 0) + (1 if (value or 0) < 0 else -1)
    if pa.types.is_floating(kind):
        if value == 0:
            return -value if rng.random() < 0.5 else float("nan")
        return 0.0 if value is None or value != value or value in (float("inf"), float("-inf")) else value * 2
    if pa.types.is_decimal(kind):
        step = Decimal(1).scaleb(-kind.scale)
        # Python rounds to 28 digits unless it is told: a value of 38 would stay what it is.
        with localcontext(Context(prec=kind.precision + 2)):
            return step if value is None else value - step if value > 0 else value + step
    if pa.types.is_date(kind):
        return (value or date(2000, 1, 1)) + timedelta(days=1)
    if pa.types.is_timestamp(kind):
        return (value or datetime(2000, 1, 1, tzinfo=UTC if kind.tz else None)) + timedelta(microseconds=1)
    if pa.types.is_binary(kind):
        return bytes([*(value or b""), 1])
    # A text of spaces only differs from an empty one.
    return None if value == "" else " " if value is None else ("Q" if value[0] != "Q" else "R") + value[1:]


def put(table: pa.Table, column: int, row: int, value: Any) -> pa.Table:
    """The table with one value changed."""
    field = table.schema.field(column)
    values = table.column(column).to_pylist()
    values[row] = value
    return table.set_column(column, field, pa.array(values, field.type))


def change_value(place: int) -> RowChange:
    """Another value in one row of the file's column number ``place``."""

    def change(table: pa.Table, rng: random.Random) -> pa.Table | None:
        if place >= table.num_columns:
            return None
        row = rng.randrange(table.num_rows)
        old = table.column(place).to_pylist()[row]
        return put(table, place, row, other_value(old, table.schema.field(place).type, rng))

    return change


def null_for_value(table: pa.Table, rng: random.Random) -> pa.Table | None:
    """A value that is there becomes null."""
    places = [(c, r) for c in range(table.num_columns) for r, v in enumerate(table.column(c).to_pylist())
              if v is not None and not table.schema.field(c).name.startswith("_row-")]  # fmt: skip
    column, row = rng.choice(places)
    return put(table, column, row, None)


def null_for_empty(table: pa.Table, rng: random.Random) -> pa.Table | None:
    """An empty text, array or map becomes null."""
    places = [(c, r) for c in range(table.num_columns) for r, v in enumerate(table.column(c).to_pylist())
              if v in ("", [])]  # fmt: skip
    if not places:
        return None
    column, row = rng.choice(places)
    return put(table, column, row, None)


def _twins(table: pa.Table) -> list[tuple[int, int]]:
    kinds = [column.type for column in table.schema]
    return [(a, b) for a in range(1, len(kinds)) for b in range(a + 1, len(kinds)) if kinds[a] == kinds[b]]


def shift_null(table: pa.Table, rng: random.Random) -> pa.Table | None:
    """A value and the null in a column of the same type beside it change places."""
    places = []
    for a, b in _twins(table):
        pairs = zip(table.column(a).to_pylist(), table.column(b).to_pylist(), strict=True)
        places += [(a, b, row) for row, (x, y) in enumerate(pairs) if (x is None) != (y is None)]
    if not places:
        return None
    a, b, row = rng.choice(places)
    x, y = table.column(a).to_pylist()[row], table.column(b).to_pylist()[row]
    return put(put(table, a, row, y), b, row, x)


def swap_columns(table: pa.Table, rng: random.Random) -> pa.Table | None:
    """Two columns of the same type change places."""
    places = [(a, b) for a, b in _twins(table) if not table.column(a).equals(table.column(b))]
    if not places:
        return None
    a, b = rng.choice(places)
    first, second = table.schema.field(a), table.schema.field(b)
    return table.set_column(a, first, table.column(b)).set_column(b, second, table.column(a))


def swap_rows_values(table: pa.Table, rng: random.Random) -> pa.Table | None:
    """Two rows exchange their values of one column."""
    for column in rng.sample(range(1, table.num_columns), table.num_columns - 1):
        values = table.column(column).to_pylist()
        pairs = [(r, q) for r in range(len(values)) for q in range(r) if repr(values[r]) != repr(values[q])]
        if pairs:
            r, q = rng.choice(pairs)
            return put(put(table, column, r, values[q]), column, q, values[r])
    return None


def _some_row(table: pa.Table, rng: random.Random) -> int:
    return rng.randrange(table.num_rows)


def drop_row(table: pa.Table, rng: random.Random) -> pa.Table:
    """A row is missing."""
    row = _some_row(table, rng)
    return pa.concat_tables([table.slice(0, row), table.slice(row + 1)])


def double_row(table: pa.Table, rng: random.Random) -> pa.Table:
    """A row is there twice."""
    return pa.concat_tables([table, table.slice(_some_row(table, rng), 1)])


def row_for_row(table: pa.Table, rng: random.Random) -> pa.Table | None:
    """A row is missing and another one is there twice."""
    if table.num_rows < 2:
        return None
    return pa.concat_tables([table.slice(1), table.slice(1, 1)])


def _retyped(is_of: Callable[[pa.DataType], bool], to: Callable[[pa.DataType], pa.DataType]) -> RowChange:
    """The first column of a kind is stored as another type that says the same, or nearly so."""

    def change(table: pa.Table, rng: random.Random) -> pa.Table | None:
        places = [place for place, field in enumerate(table.schema) if is_of(field.type)]
        if not places:
            return None
        column = table.schema.field(places[0])
        column = column.with_type(to(column.type))
        return table.set_column(places[0], column, table.column(places[0]).cast(column.type))

    return change


def finer_decimal(table: pa.Table, rng: random.Random) -> pa.Table | None:
    """0.074 for 0.07: what is the same for a reader that rounds to the table's type."""
    finer = _retyped(
        lambda kind: pa.types.is_decimal(kind) and kind.precision < 38,
        lambda kind: pa.decimal128(kind.precision + 1, kind.scale + 1),
    )(table, rng)
    if finer is None:
        return None
    (column,) = [place for place in range(table.num_columns) if finer.column(place).type != table.column(place).type]
    values = finer.column(column).to_pylist()
    row = rng.choice([row for row, value in enumerate(values) if value is not None])
    return put(finer, column, row, values[row] + Decimal(4).scaleb(-finer.column(column).type.scale))


TYPE_FAULTS: dict[str, RowChange] = {
    "a decimal has one more digit": finer_decimal,
    "a text is stored as bytes": _retyped(pa.types.is_string, lambda kind: pa.binary()),
    "a moment has no zone": _retyped(
        lambda kind: pa.types.is_timestamp(kind) and kind.tz is not None, lambda kind: pa.timestamp(kind.unit)
    ),
    "a number is stored wider": _retyped(pa.types.is_int32, lambda kind: pa.int64()),
}

ROW_FAULTS: dict[str, RowChange] = {
    "a row is missing": drop_row,
    "a row is there twice": double_row,
    "one row for another": row_for_row,
    "null for a value": null_for_value,
    "null for an empty value": null_for_empty,
    "a null moves to another column": shift_null,
    "two columns are swapped": swap_columns,
    "two rows exchange a value": swap_rows_values,
    **TYPE_FAULTS,
    **{f"another value in column {place}": change_value(place) for place in range(6)},
}


def in_rows(change: RowChange) -> Plant:
    """The fault as one of the files."""
    return lambda forgery: forgery.change_rows(change)
