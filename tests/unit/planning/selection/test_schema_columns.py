"""The schema in the log: what it may hold, ids of columns that were dropped, and which files may still hold them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from maintainer.errors import TableError
from maintainer.model.plan.plan import PlannedColumn
from maintainer.model.table.table_facts import TableFacts
from maintainer.planning.selection.schema_columns import (
    MAX_COLUMN_ID,
    dropped_columns_digest,
    planned_columns,
    read_schema,
)
from tests.support.tables.builders import make_facts


def mapped(*ids: int, largest: str, mode: str = "name", nested: dict[str, Any] | None = None) -> TableFacts:
    """A table of longs with these ids; ``nested`` are ids within the type of the first column."""
    metadata = [{"delta.columnMapping.id": number} for number in ids]
    if nested is not None:
        metadata[0]["delta.columnMapping.nested.ids"] = nested  # type: ignore[assignment]
    fields = [
        {"name": f"c{number}", "type": "long", "nullable": True, "metadata": one}
        for number, one in zip(ids, metadata, strict=True)
    ]
    properties = {"delta.columnMapping.mode": mode, "delta.columnMapping.maxColumnId": largest}
    return with_schema({"type": "struct", "fields": fields}, properties)


def with_schema(schema: object, properties: dict[str, str] | None = None) -> TableFacts:
    return replace(make_facts(properties=properties), schema_json=json.dumps(schema))


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"fields": None},
        {"fields": [{"name": 7, "type": "long"}]},
        {"fields": [{"name": "a"}]},
        {"fields": [{"name": "a", "type": "long"}, {"type": "long"}]},
        "fields",
    ],
)
def test_a_schema_that_is_none_is_refused_with_the_place(schema: object) -> None:
    with pytest.raises(TableError) as caught:
        read_schema(with_schema(schema))
    assert (caught.value.code, caught.value.where) == ("T403", "sales.orders@7")


def test_a_plan_lists_types_that_it_does_not_know_whole() -> None:
    type_ = {"type": "udt", "sqlType": "binary", "class": "Point"}
    facts = with_schema({"fields": [{"name": "p", "type": type_, "nullable": False, "metadata": {"k": "ö"}}]})
    assert planned_columns(facts) == (
        PlannedColumn("p", "udt", False, (("k", '"ö"'),)),
        PlannedColumn("p.type", json.dumps(type_, sort_keys=True)),
    )


def test_a_plan_lists_what_is_in_lists_and_maps() -> None:
    inner = {"type": "struct", "fields": [{"name": "x", "type": "long", "nullable": False}]}
    fields = [
        {"name": "a", "type": {"type": "array", "elementType": inner, "containsNull": False}},
        {"name": "m", "type": {"type": "map", "keyType": "string", "valueType": "date", "valueContainsNull": False}},
        {"name": "n", "type": {"type": "map", "keyType": "string", "valueType": "date"}},
        {"name": "o", "type": {"type": "array", "elementType": "long"}},
    ]
    columns = planned_columns(with_schema({"fields": fields}))
    assert [(column.name, column.type, column.nullable) for column in columns] == [
        ("a", "array", True), ("a.element", "struct", False), ("a.element.x", "long", False),
        ("m", "map", True), ("m.key", "string", False), ("m.value", "date", False),
        ("n", "map", True), ("n.key", "string", False), ("n.value", "date", True),
        ("o", "array", True), ("o.element", "long", True),
    ]  # fmt: skip


def test_ids_that_the_schema_lacks_were_dropped() -> None:
    assert dropped_columns_digest(mapped(1, 2, 3, largest="3")) is None
    dropped = dropped_columns_digest(mapped(1, 3, largest="3"))
    assert dropped is not None
    assert len(dropped) == 16
    assert dropped_columns_digest(mapped(1, 3, largest="4")) != dropped
    assert dropped_columns_digest(mapped(3, 1, largest="3")) == dropped


def test_ids_within_a_type_are_used() -> None:
    ids = {"c1.element": 2, "c1.key": "3"}
    assert dropped_columns_digest(mapped(1, largest="2", nested=ids)) is None
    assert dropped_columns_digest(mapped(1, largest="3", nested=ids)) is not None
    assert dropped_columns_digest(mapped(1, largest="1", nested={"c1.element": 1})) is None


@pytest.mark.parametrize("mode", ["name", "NAME", "id", "Id"])
def test_a_mode_counts_in_any_case_as_in_delta(mode: str) -> None:
    assert dropped_columns_digest(mapped(1, largest="2", mode=mode)) is not None


@pytest.mark.parametrize(
    ("largest", "mode"),
    [("2", "none"), ("0", "name"), ("", "name"), ("two", "name"), ("-2", "name"), (str(MAX_COLUMN_ID + 1), "name"),
     ("9" * 5000, "name")],
    ids=["off", "none-yet", "empty", "no-number", "negative", "beyond", "very-long"],
)  # fmt: skip
def test_without_ids_that_count_nothing_was_dropped(largest: str, mode: str) -> None:
    assert dropped_columns_digest(mapped(1, largest=largest, mode=mode)) is None


def test_the_largest_id_that_counts() -> None:
    assert dropped_columns_digest(mapped(1, largest=str(MAX_COLUMN_ID))) is not None
