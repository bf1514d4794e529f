"""Rows of a file are decoded in batches that fit into memory, whatever a footer says of their size."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from maintainer.delta.rewrite.local import batch_size, parquet_writer
from maintainer.delta.rewrite.local.arrow_rows import SourceFile, file_schema, read_rows
from maintainer.delta.rewrite.local.parquet_writer import LocalTarget, write_local
from tests.support.tables.zoo_rows import field

TEXT_BYTES, NUM_TEXTS, MIB = 100_000, 10, 1 << 20
STRUCT = {"type": "struct", "fields": [field("text", "string")]}
LIST = {"type": "array", "elementType": "string", "containsNull": True}
MAP = {"type": "map", "keyType": "integer", "valueType": "string", "valueContainsNull": True}


@pytest.fixture
def pool() -> Iterator[pa.MemoryPool]:
    """Counts what this test takes alone."""
    before = pa.default_memory_pool()
    counting = pa.proxy_memory_pool(before)
    pa.set_memory_pool(counting)
    yield counting
    pa.set_memory_pool(before)


def repeated(kind: object, num_texts: int) -> pa.Array:
    """Few long texts, each in many rows."""
    texts = [chr(ord("a") + number) * TEXT_BYTES for number in range(NUM_TEXTS)]
    numbers = pa.array([number % NUM_TEXTS for number in range(num_texts)], pa.int32())
    values = pa.DictionaryArray.from_arrays(numbers, pa.array(texts, pa.binary() if kind == "binary" else pa.string()))
    if kind == STRUCT:
        return pa.StructArray.from_arrays([values], ["text"])
    offsets = pa.array(range(num_texts + 1), pa.int32())
    if kind == LIST:
        return pa.ListArray.from_arrays(offsets, values)
    return pa.MapArray.from_arrays(offsets, numbers, values) if kind == MAP else values


def file_of(path: Path, *columns: pa.Array) -> SourceFile:
    pq.write_table(pa.table(dict(zip("ab", columns, strict=False))), path, store_schema=False)
    return SourceFile(str(path))


def schema_of(*kinds: Any) -> pa.Schema:
    return file_schema({"type": "struct", "fields": [field(*of) for of in zip("ab", kinds, strict=False)]}, ())


@pytest.mark.parametrize(
    "kind", ["string", "binary", STRUCT, LIST, MAP], ids=["text", "binary", "struct", "list", "map"]
)
def test_long_texts_that_many_rows_repeat_are_decoded_in_parts(
    tmp_path: Path, pool: pa.MemoryPool, kind: object
) -> None:
    source = file_of(tmp_path / "old.parquet", repeated(kind, 3_000))
    assert os.stat(source.path).st_size < 3_000 * TEXT_BYTES / 200
    num_rows = sum(batch.num_rows for batch in read_rows([source], schema_of(kind), by_id=False))
    assert num_rows == 3_000
    assert pool.max_memory() < 4 * batch_size.BYTES_AT_ONCE


def test_batches_have_as_many_rows_as_fit_by_the_largest_before_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_size, "LARGEST_GROWTH", 4)
    long = repeated("string", 256).cast("string")
    rows = [pa.array(["short"] * 64), long, pa.array(["short"] * 1_000), long, long]
    source = file_of(tmp_path / "old.parquet", pa.concat_arrays(rows))
    batches = read_rows([source], schema_of("string"), by_id=False)
    at_once = batch_size.BYTES_AT_ONCE // (TEXT_BYTES + 4)
    assert [batch.num_rows for batch in batches] == [64, 256, at_once, at_once, 1_512 - 2 * at_once]


def test_a_file_of_long_texts_is_written_in_bounded_memory(
    tmp_path: Path, pool: pa.MemoryPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_size, "BYTES_AT_ONCE", 8 * MIB)
    monkeypatch.setattr(parquet_writer, "ROW_GROUP_BYTES", 16 * MIB)
    source = file_of(tmp_path / "old.parquet", repeated("string", 2_000))
    schema = schema_of("string")
    write_local(
        read_rows([source, source], schema, by_id=False),
        LocalTarget(str(tmp_path / "new.parquet"), schema, (), "snappy", False),
    )
    assert pq.read_metadata(tmp_path / "new.parquet").num_rows == 4_000
    assert pool.max_memory() < 80 * MIB


def test_short_rows_are_decoded_many_at_once(tmp_path: Path) -> None:
    numbers = pa.array(range(100_000), pa.int32())
    of_numbers = file_of(tmp_path / "numbers.parquet", numbers)
    assert [batch.num_rows for batch in read_rows([of_numbers], schema_of("integer"), by_id=False)][:2] == [32_768] * 2
    of_texts = file_of(tmp_path / "texts.parquet", numbers, pa.array(["short", "shorter"] * 50_000))
    batches = read_rows([of_texts], schema_of("integer", "string"), by_id=False)
    assert [batch.num_rows for batch in itertools.islice(batches, 4)] == [64, 16_384, 32_768, 32_768]
    # Nothing is decoded of a file that is older than all columns.
    later = schema_of("integer").field(0).with_name("later")
    assert next(read_rows([of_texts], pa.schema([later]), by_id=False)).num_rows == 32_768
