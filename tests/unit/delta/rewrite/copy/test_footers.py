"""Which bins may be copied by row groups: a table of cases over real footers; and statistics that are merged."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maintainer.delta.rewrite.copy.footers import (
    MIN_ROW_GROUP_BYTES,
    Footer,
    dropped_columns,
    is_recompressed,
    read_footer,
    why_not_copied,
)
from maintainer.delta.rewrite.copy.merged_statistics import merge_statistics
from maintainer.delta.rewrite.lane_fit import LaneUnfit
from maintainer.delta.rewrite.local.arrow_schema import file_schema
from tests.support.suites.example_counts import examples
from tests.support.tables.zoo_rows import SCHEMA, field, table_of, zoo_rows


@pytest.fixture
def footer(tmp_path: Path) -> Footer:
    pq.write_table(table_of(zoo_rows(), file_schema(SCHEMA, ())), tmp_path / "f.parquet", store_schema=False)
    return replace(read_footer(str(tmp_path / "f.parquet")), row_group_bytes=(MIN_ROW_GROUP_BYTES,))


def test_files_that_agree_are_copied(footer: Footer) -> None:
    assert why_not_copied([footer, footer], file_schema(SCHEMA, ())) is None
    assert why_not_copied([footer, replace(footer, row_group_bytes=(2 * MIN_ROW_GROUP_BYTES, 5))],
                          file_schema(SCHEMA, ())) is None  # fmt: skip


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
    text = why_not_copied([footer, replace(footer, **changes)], file_schema(SCHEMA, ()))
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
    assert "than the table has today" in str(why_not_copied([footer], file_schema(today, ())))


@pytest.mark.parametrize(("kind", "is_copied"), [("timestamp", True), ("timestamp_ntz", False)])
def test_time_stamps_as_spark_writes_them_by_default_are_copied(tmp_path: Path, kind: str, is_copied: bool) -> None:
    schema = file_schema({"type": "struct", "fields": [field("id", "long"), field("at", kind)]}, ())
    rows = pa.table({"id": [1], "at": [0]}, pa.schema([pa.field("id", pa.int64()), pa.field("at", pa.int64())]))
    path = tmp_path / "f.parquet"
    pq.write_table(rows.cast(schema), path, store_schema=False, use_deprecated_int96_timestamps=True)
    footer = replace(read_footer(str(path)), row_group_bytes=(MIN_ROW_GROUP_BYTES,))
    assert "int96" in footer.schema.lower()
    assert (why_not_copied([footer, footer], schema) is None) == is_copied


def test_another_codec_makes_other_bytes(footer: Footer) -> None:
    assert not is_recompressed([footer, footer], "snappy")
    assert is_recompressed([footer, footer], "zstd")
    assert is_recompressed([footer, replace(footer, codecs=frozenset({"snappy", "gzip"}))], "snappy")
    assert not is_recompressed([replace(footer, codecs=frozenset({"uncompressed"}))], "none")


def test_dropped_columns_are_left_out_of_the_copy(footer: Footer) -> None:
    today = file_schema({"type": "struct", "fields": [*SCHEMA["fields"][:2], *SCHEMA["fields"][3:-1]]}, ())
    gone = [SCHEMA["fields"][2]["name"], SCHEMA["fields"][-1]["name"]]
    assert dropped_columns(footer, today) == gone
    assert why_not_copied([footer, footer], today) is None
    assert dropped_columns(footer, today, gone) == []
    dotted = replace(footer, arrow_schema=pa.schema([pa.field("x.y", pa.int32())]))
    assert "has a dot in its name" in str(why_not_copied([dotted], file_schema(SCHEMA, ())))


COLUMNS = ((("a",), "long"), (("s",), "string"), (("n", "x"), "double"), (("b",), "binary"))


def stats_of(rows: int, **changes: Any) -> dict[str, Any]:
    return {
        "numRecords": rows,
        "minValues": {"a": 1, "s": "b", "n": {"x": 0.5}},
        "maxValues": {"a": 9, "s": "y", "n": {"x": 1.5}},
        "nullCount": {"a": 0, "s": 0, "n": {"x": 0}, "b": 0},
        **changes,
    }


def merged(*stats: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(merge_statistics([json.dumps(statistics) for statistics in stats], COLUMNS))
    return result


def test_statistics_are_merged() -> None:
    other = stats_of(
        3,
        minValues={"a": -5, "s": "ä", "n": {"x": "NaN"}},
        maxValues={"a": 5, "s": "z", "n": {"x": "NaN"}},
        nullCount={"a": 1, "s": 0, "n": {"x": 0}, "b": 2},
    )
    assert merged(stats_of(2), other) == {
        "numRecords": 5,
        "minValues": {"a": -5, "s": "b", "n": {"x": 0.5}},
        "maxValues": {"a": 9, "s": "z", "n": {"x": "NaN"}},
        "nullCount": {"a": 1, "s": 0, "n": {"x": 0}, "b": 2},
    }


def test_a_file_of_nulls_has_no_bounds_and_an_upper_bound_may_be_missing() -> None:
    empty = stats_of(4, minValues={}, maxValues={}, nullCount={"a": 4, "s": 4, "n": {"x": 4}, "b": 4})
    assert merged(stats_of(2), empty)["minValues"] == stats_of(2)["minValues"]
    open_ended = stats_of(1, maxValues={"a": 9, "n": {"x": 1.5}})
    assert "s" not in merged(stats_of(2), open_ended)["maxValues"]


@pytest.mark.parametrize(
    "broken",
    [
        None,
        "{",
        "{}",
        json.dumps(stats_of(1, tightBounds=False)),
        json.dumps(stats_of(1, nullCount={})),
        json.dumps(stats_of(1, minValues={"s": "b", "n": {"x": 0.5}})),
        json.dumps(stats_of(1, minValues={"a": "x", "s": "b", "n": {"x": 0.5}})),
    ],
)
def test_a_source_without_sure_statistics_is_not_copied(broken: str | None) -> None:
    with pytest.raises(LaneUnfit):
        merge_statistics([json.dumps(stats_of(1)), broken], COLUMNS)


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(st.lists(st.one_of(st.none(), st.decimals(-99, 99, places=2)), min_size=1), min_size=1))
def test_merged_bounds_are_those_of_all_rows(parts: list[list[Any]]) -> None:
    texts = []
    for values in parts:
        present = [value for value in values if value is not None]
        bounds = {"minValues": {"d": float(min(present))}, "maxValues": {"d": float(max(present))}} if present else {}
        texts.append(json.dumps({"numRecords": len(values), "nullCount": {"d": values.count(None)}, **bounds}))
    result = json.loads(merge_statistics(texts, ((("d",), "decimal(4,2)"),)))
    rows = pa.array([value for values in parts for value in values], pa.decimal128(4, 2)).to_pylist()
    present = [value for value in rows if value is not None]
    assert (result["numRecords"], result["nullCount"]["d"]) == (len(rows), rows.count(None))
    assert result["minValues"].get("d") == (float(min(present)) if present else None)
    assert result["maxValues"].get("d") == (float(max(present)) if present else None)
