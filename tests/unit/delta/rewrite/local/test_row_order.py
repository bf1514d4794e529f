"""Rows put in an order in memory: the same order, ranks and cuts as Spark's lane has."""

from __future__ import annotations

import math
import random
import statistics
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from maintainer.delta.rewrite.local.local_lane import (
    _addresses,
    _ranks,
    along_own_curve,
    along_revision,
    by_columns,
    ordered_column,
)
from maintainer.planning.curve.curve import bit_order, cut_curve, key_of
from maintainer.planning.curve.curve_files import files_of_pieces, max_rows_of
from maintainer.planning.curve.revision import ColumnBoundaries, Revision

NAN = math.nan
COLUMNS: dict[str, tuple[pa.DataType, list[Any], tuple[str, ...]]] = {
    "integer": (pa.int32(), [5, None, -3, 7, 5, 0], ("-2", "5", "6")),
    "double": (pa.float64(), [0.5, NAN, None, -math.inf, 2.0, -0.0], ("-1.0", "0.0", "2.0")),
    "decimal(9,2)": (pa.decimal128(9, 2), [Decimal("1.10"), None, Decimal("-3.00"), Decimal("9.99")], ("0.00", "1.10")),
    "string": (pa.string(), ["b", None, "", "ba", "\U0001f600", "\uffee", "a"], ("a", "b", "\uffee")),
    "date": (pa.date32(), [date(2026, 1, 1), None, date(1, 1, 1)], ("1582-10-01", "2026-01-01")),
    "timestamp": (pa.timestamp("us", "UTC"), [datetime(2026, 1, 1, 0, 0, 0, 5, UTC), None,
                  datetime(2025, 12, 31, 23, 59, 59, 999_999, UTC)], ("2026-01-01 00:00:00",)),
    "boolean": (pa.bool_(), [True, None, False], ()),
}  # fmt: skip


def texts(values: list[Any]) -> list[str | None]:
    return [None if value is None else str(value) for value in values]


@pytest.mark.parametrize("kind", COLUMNS)
def test_a_rank_is_the_number_of_boundaries_at_or_below_a_value(kind: str) -> None:
    type_, values, boundaries = COLUMNS[kind]
    column = ColumnBoundaries("c", kind, boundaries)
    expected = [column.rank_of(None if text is None else key_of(kind, text)) for text in texts(values)]
    ranks = _ranks(ordered_column(pa.chunked_array([pa.array(values, type_)])), column.keys)
    assert ranks.tolist() == expected


@pytest.mark.parametrize(
    ("kind", "in_order"),
    [("integer", [None, -3, 0, 5, 5, 7]), ("string", [None, "", "a", "b", "ba", "\uffee", "\U0001f600"]),
     ("boolean", [None, False, True])],
)  # fmt: skip
def test_nulls_come_first(kind: str, in_order: list[Any]) -> None:
    type_, values, _ = COLUMNS[kind]
    (rows,) = by_columns([ordered_column(pa.chunked_array([pa.array(values, type_)]))], len(values), 1)
    assert [values[row] for row in rows] == in_order


def test_nan_comes_last_and_files_are_ranges_of_the_order() -> None:
    values = COLUMNS["double"][1]
    files = by_columns([ordered_column(pa.chunked_array([pa.array(values, pa.float64())]))], len(values), 4)
    assert [[values[row] for row in rows] for rows in files][:3] == [[None, -math.inf], [-0.0, 0.5], [2.0]]
    assert math.isnan(values[files[3][0]])
    assert [rows.tolist() for rows in by_columns([], 5, 2)] == [[0, 1, 2], [3, 4]]


REVISION = Revision(
    1, (ColumnBoundaries("a", "integer", tuple(str(n) for n in range(10, 160, 10))),
        ColumnBoundaries("b", "string", ("d", "h", "m", "t"))),
)  # fmt: skip


def rows_of(num_rows: int, seed: int = 7) -> list[tuple[int | None, str | None]]:
    rng = random.Random(seed)
    return [(rng.choice([None, rng.randrange(170)]), rng.choice([None, rng.choice("abcdefghijklmnopqrstuvwxyz")]))
            for _ in range(num_rows)]  # fmt: skip


def address(row: tuple[int | None, str | None]) -> int:
    """The address by the pure model, bit by bit as text."""
    keys = [None if value is None else key_of(column.type_name, str(value))
            for column, value in zip(REVISION.columns, row, strict=True)]  # fmt: skip
    ranks = [column.rank_of(key) for column, key in zip(REVISION.columns, keys, strict=True)]
    return int("".join(str(ranks[place] >> bit & 1) for place, bit in bit_order(REVISION.bits)), 2)


@pytest.mark.parametrize("num_files", [1, 2, 5, 40])
def test_files_along_a_revision_keep_to_the_cuts_of_the_model(num_files: int) -> None:
    rows = rows_of(2_000)
    columns = [ordered_column(pa.chunked_array([pa.array([row[n] for row in rows], type_)]))
               for n, type_ in enumerate((pa.int32(), pa.string()))]  # fmt: skip
    files = [[rows[number] for number in file] for file in along_revision(columns, REVISION, num_files)]
    whole = [row for file in files for row in file]
    by_model = sorted(rows, key=lambda row: (address(row), row[0] is not None, row[0] or 0, row[1] or ""))
    assert whole == by_model
    if num_files == 1:
        assert len(files) == 1
        return
    counts: dict[int, int] = {}
    for row in by_model:
        counts[address(row)] = counts.get(address(row), 0) + 1
    listed, max_rows = sorted(counts.items()), max_rows_of(len(rows), num_files)
    starts = cut_curve(listed, num_bits=REVISION.num_bits, max_rows=max_rows)
    parts = files_of_pieces(listed, starts, max_rows)
    assert len(files) == sum(parts)
    firsts = {address(file[0]) for file in files}
    assert len(firsts) <= len(starts)
    for file in files:
        (piece,) = {sum(start <= address(row) for start in starts) for row in file}
        assert len(file) <= 2 * max_rows or parts[piece - 1] == 1


def test_a_curve_over_own_values_makes_even_files_that_skip() -> None:
    rng = random.Random(3)
    rows = [(rng.randrange(1_000), rng.randrange(1_000)) for _ in range(4_096)]
    columns = [ordered_column(pa.chunked_array([pa.array([row[n] for row in rows])])) for n in range(2)]
    files = [[rows[number] for number in file] for file in along_own_curve(columns, 16)]
    assert [len(file) for file in files] == [256] * 16
    assert sorted(row for file in files for row in file) == sorted(rows)
    for n in range(2):
        spans = [max(row[n] for row in file) - min(row[n] for row in file) for file in files]
        # A file whose end is just beyond the border of a cube has a wide span; most have not.
        assert statistics.median(spans) < 400, "most files hold a third of each column's values at most"


def test_addresses_are_interleaved_from_the_first_column_on() -> None:
    import numpy as np

    ranks = [np.array([0b10, 0b01]), np.array([0b1, 0b0])]
    assert _addresses(ranks, (2, 1)).tolist() == [0b110, 0b001]
