"""Which bins may be copied by row groups: a table of cases over real footers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from maintainer.delta.rewrite.copy_lane import (
    MIN_ROW_GROUP_BYTES,
    Footer,
    dropped_columns,
    read_footer,
    why_not_copied,
)
from maintainer.delta.rewrite.local.arrow_rows import file_schema
from tests.support.tables.zoo_rows import SCHEMA, field, table_of, zoo_rows


@pytest.fixture
def footer(tmp_path: Path) -> Footer:
    pq.write_table(table_of(zoo_rows(), file_schema(SCHEMA, ())), tmp_path / "f.parquet", store_schema=False)
    return replace(read_footer(str(tmp_path / "f.parquet")), row_group_bytes=(MIN_ROW_GROUP_BYTES,))


def test_files_that_agree_are_copied(footer: Footer) -> None:
    assert why_not_copied([footer, footer], file_schema(SCHEMA, ()), "snappy") is None
    assert why_not_copied([footer, replace(footer, row_group_bytes=(2 * MIN_ROW_GROUP_BYTES, 5))],
                          file_schema(SCHEMA, ()), "snappy") is None  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"schema": "required group field_id=-1 {}"}, "different schemas"),
        ({"metadata": {"org.apache.spark.legacyINT96": ""}}, "old calendar"),
        ({"metadata": {"org.apache.spark.version": "2.4.0"}}, "old calendar"),
        ({"metadata": {"ARROW:schema": "other"}}, "different things in their metadata"),
        ({"metadata": {"org.apache.spark.version": "3.5.0"}}, "different things in their metadata"),
        ({"created_by": "parquet-mr version 1.8.1 (build x)"}, "treat in a special way"),
        ({"created_by": "impala version 2.0"}, "treat in a special way"),
        ({"row_group_bytes": (1000,) * 50}, "too small to be kept"),
    ],
)
def test_files_that_do_not_agree_are_not(footer: Footer, changes: dict[str, Any], reason: str) -> None:
    text = why_not_copied([footer, replace(footer, **changes)], file_schema(SCHEMA, ()), "snappy")
    assert text is not None
    assert reason in text


@pytest.mark.parametrize(
    "today",
    [
        {"type": "struct", "fields": [*SCHEMA["fields"], field("new", "long")]},
        {"type": "struct", "fields": [field("boolean", "string"), *SCHEMA["fields"][1:]]},
        {"type": "struct", "fields": [field("boolean", "boolean", **{"delta.columnMapping.id": 4}),
                                      *SCHEMA["fields"][1:]]},
        {"type": "struct", "fields": SCHEMA["fields"][::-1]},
    ],
    ids=["added", "another type", "a field id", "another order"],
)  # fmt: skip
def test_files_of_an_older_schema_are_not(footer: Footer, today: dict[str, Any]) -> None:
    assert "than the table has today" in str(why_not_copied([footer], file_schema(today, ()), "snappy"))


@pytest.mark.parametrize(("kind", "is_copied"), [("timestamp", True), ("timestamp_ntz", False)])
def test_time_stamps_as_spark_writes_them_by_default_are_copied(tmp_path: Path, kind: str, is_copied: bool) -> None:
    schema = file_schema({"type": "struct", "fields": [field("id", "long"), field("at", kind)]}, ())
    rows = pa.table({"id": [1], "at": [0]}, pa.schema([pa.field("id", pa.int64()), pa.field("at", pa.int64())]))
    path = tmp_path / "f.parquet"
    pq.write_table(rows.cast(schema), path, store_schema=False, use_deprecated_int96_timestamps=True)
    footer = replace(read_footer(str(path)), row_group_bytes=(MIN_ROW_GROUP_BYTES,))
    assert "int96" in footer.schema.lower()
    assert (why_not_copied([footer, footer], schema, "snappy") is None) == is_copied


@pytest.mark.parametrize(
    ("codec", "codecs", "is_copied"),
    [
        ("snappy", "snappy", True),
        ("zstd", "snappy", False),
        ("snappy", "snappy gzip", False),
        ("none", "uncompressed", True),
    ],
)
def test_files_of_another_codec_are_not(footer: Footer, codec: str, codecs: str, is_copied: bool) -> None:
    """parquet-hadoop would put bounds of pages together for them, and leave out pages without: it hid rows."""
    footers = [replace(footer, codecs=frozenset({one})) for one in codecs.split()]
    text = why_not_copied(footers, file_schema(SCHEMA, ()), codec)
    assert (text is None) == is_copied, text


def test_columns_that_files_of_today_do_not_have_are_left_out_of_the_copy(footer: Footer) -> None:
    today = file_schema({"type": "struct", "fields": [*SCHEMA["fields"][:2], *SCHEMA["fields"][3:-1]]}, ())
    gone = [SCHEMA["fields"][2]["name"], SCHEMA["fields"][-1]["name"]]
    assert dropped_columns(footer, today) == gone
    assert why_not_copied([footer, footer], today, "snappy") is None
    dotted = replace(footer, arrow_schema=pa.schema([pa.field("x.y", pa.int32())]))
    assert "has a dot in its name" in str(why_not_copied([dotted], file_schema(SCHEMA, ()), "snappy"))
