"""What the statistics in the log say about dropped columns, before any file is opened. No Spark."""

from __future__ import annotations

from typing import Any

import pytest

from maintainer.delta.snapshot.column_statistics import (
    all_columns_have_stats,
    holds_dropped_columns,
    physical_leaves,
)
from tests.support.tables.builders import make_facts

PRESENT = frozenset({"col-a", "col-s.col-b"})


@pytest.mark.parametrize(
    ("counts", "decisive", "verdict"),
    [
        ({"col-a": 0, "col-s": {"col-b": 1}}, True, False),
        ({"col-a": 0, "col-s": {"col-b": 1}}, False, None),
        ({"col-a": 0, "col-s": {"col-b": 1}, "col-gone": 0}, False, True),
        ({"col-a": 0, "col-s": {"col-b": 1, "col-gone": 0}}, True, True),
        ({"col-a": 0}, True, None),
        ({}, True, None),
        (None, True, None),
    ],
)
def test_statistics_settle_it_or_say_nothing(
    counts: dict[str, Any] | None, decisive: bool, verdict: bool | None
) -> None:
    assert holds_dropped_columns(counts, PRESENT, decisive=decisive) is verdict


def test_leaves_have_physical_names_and_partition_columns_lie_in_no_file() -> None:
    def field(name: str, kind: object) -> dict[str, object]:
        return {"name": name, "type": kind, "metadata": {"delta.columnMapping.physicalName": f"col-{name}"}}

    inner = {"type": "struct", "fields": [field("b", "long")]}
    listed = {"type": "array", "elementType": inner}
    schema = {"fields": [field("a", "long"), field("s", inner), field("l", listed), field("p", "date")]}
    assert physical_leaves(schema, ("p",)) == {"col-a", "col-s.col-b", "col-l"}


@pytest.mark.parametrize(
    ("properties", "all_of_them"),
    [
        ({"delta.columnMapping.maxColumnId": "32"}, True),
        ({"delta.columnMapping.maxColumnId": "33"}, False),
        ({"delta.columnMapping.maxColumnId": "33", "delta.dataSkippingNumIndexedCols": "-1"}, True),
        ({"delta.columnMapping.maxColumnId": "3", "delta.dataSkippingNumIndexedCols": "2"}, False),
        ({"delta.columnMapping.maxColumnId": "3", "delta.dataSkippingStatsColumns": "a"}, False),
    ],
)
def test_statistics_are_decisive_only_where_they_name_every_column(
    properties: dict[str, str], all_of_them: bool
) -> None:
    assert all_columns_have_stats(make_facts(properties=properties)) is all_of_them
