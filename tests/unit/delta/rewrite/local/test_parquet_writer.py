"""Which columns of a new file have a dictionary: those for which it pays."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest

from maintainer.delta.rewrite.local.arrow_rows import file_schema
from maintainer.delta.rewrite.local.parquet_writer import RUN_ROWS, SAMPLED_RUNS, LocalTarget, write_local
from tests.support.tables.zoo_rows import field, table_of

CHANCE = Random(7)
SAMPLED_ROWS = SAMPLED_RUNS * RUN_ROWS
NUM_ROWS = 3 * SAMPLED_ROWS
LONGS = {"type": "array", "elementType": "long", "containsNull": True}
NAMED = {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True}
SCHEMA: dict[str, Any] = {
    "type": "struct",
    "fields": [
        field("id", "long"),
        field("text", "string"),
        field("mostly_null", "long"),
        field("city", "string"),
        field("again", "double"),
        field("sorted_pairs", "long"),
        field("all_null", "long"),
        field("inner", {"type": "struct", "fields": [field("key", "long"), field("more", LONGS)]}),
        field("items", {"type": "array", "elementType": {"type": "map", **NAMED}, "containsNull": True}),
    ],
}
AGAIN = [CHANCE.random() for _ in range(5_000)]


def row(number: int) -> dict[str, Any]:
    """``again`` has each of its values several times, far apart, ``sorted_pairs`` twice in a row."""
    return {
        "id": number,
        "text": f"{CHANCE.getrandbits(60)}",
        "mostly_null": number if number % 5 == 0 else None,
        "city": f"city {number % 50}",
        "again": AGAIN[number % len(AGAIN)],
        "sorted_pairs": number // 2,
        "all_null": None,
        "inner": {"key": number, "more": [number, 1]},
        "items": [[(f"k{number % 3}", number)]],
    }


def with_dictionary(folder: Path, rows: list[dict[str, Any]]) -> set[str]:
    target = LocalTarget(str(folder / "new.parquet"), file_schema(SCHEMA, ()), (), "snappy", True)
    table = table_of(rows, target.schema)
    assert write_local(table.to_batches(max_chunksize=4_000), target) is not None
    assert pq.read_table(target.path).equals(table)
    group = pq.read_metadata(target.path).row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    return {column.path_in_schema for column in columns if column.has_dictionary_page}


NESTED = {
    "inner.key",
    "inner.more.list.element",
    "items.list.element.key_value.key",
    "items.list.element.key_value.value",
}


def test_a_column_without_a_value_twice_has_none(tmp_path: Path) -> None:
    rows = [row(number) for number in range(NUM_ROWS)]
    assert with_dictionary(tmp_path, rows) - {"all_null"} == NESTED | {"mostly_null", "city", "again", "sorted_pairs"}


@pytest.mark.parametrize("num_rows", [1, SAMPLED_ROWS - 1])
def test_of_few_rows_every_column_has_one(tmp_path: Path, num_rows: int) -> None:
    rows = [row(number) for number in range(num_rows)]
    assert with_dictionary(tmp_path, rows) >= NESTED | {"id", "text", "mostly_null", "city", "again", "sorted_pairs"}
