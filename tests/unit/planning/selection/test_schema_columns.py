"""The schema in the log: what it may hold, ids of columns that were dropped, and which files may still hold them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from maintainer.errors import TableError
from maintainer.model.plan.layout_tags import DROPPED_COLUMNS_TAG
from maintainer.model.plan.plan import PlannedColumn
from maintainer.model.table.table_facts import TableFacts
from maintainer.planning.selection import schema_columns
from maintainer.planning.selection.schema_columns import (
    MAX_COLUMN_ID,
    dropped_columns_digest,
    files_to_open,
    find_column,
    nearest_column,
    partition_types,
    planned_columns,
    read_schema,
)
from tests.support.tables.builders import DAY_MS, HOUR_MS, NOW_MS, make_facts, make_file


def mapped(*ids: int, largest: str, mode: str = "name", nested: dict[str, Any] | None = None) -> TableFacts:
    """A table of longs with these ids; ``nested`` are ids within the type of the first column."""
    metadata = [{"delta.columnMapping.id": number} for number in ids]
    if nested is not None:
        metadata[0]["delta.columnMapping.nested.ids"] = nested  # type: ignore[assignment]
    fields = [
        {"name": f"c{number}", "type": "long", "nullable": True, "metadata": column_metadata}
        for number, column_metadata in zip(ids, metadata, strict=True)
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


def test_the_largest_id_that_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a small bound: a million ids take so long on a slow machine that mutation testing leaves the test out."""
    monkeypatch.setattr(schema_columns, "MAX_COLUMN_ID", 5)
    assert dropped_columns_digest(mapped(1, largest="5")) is not None
    assert dropped_columns_digest(mapped(1, largest="6")) is None


def test_names_are_found_without_regard_to_case_and_written_so_that_they_can_be_read() -> None:
    struct = {"type": "struct", "fields": [{"name": "City.Code", "type": "long"}, {"name": "x`y", "type": "date"}]}
    facts = with_schema({"fields": [{"name": "Address", "type": struct}, {"name": "a.b", "type": "long"},
                                    {"name": "l", "type": {"type": "array", "elementType": struct}}]})  # fmt: skip
    code, day = find_column(facts, "address.`city.code`"), find_column(facts, "ADDRESS.`x``y`")
    assert code is not None
    assert day is not None
    assert (code.parts, code.type_name, code.dotted) == (("Address", "City.Code"), "long", "Address.City.Code")
    assert (code.quoted, day.quoted) == ("Address.`City.Code`", "Address.`x``y`")
    assert find_column(facts, day.quoted) == day
    plain = find_column(facts, "A.B")
    assert plain is not None
    assert plain.quoted == "`a.b`"
    for name in ("l.City.Code", "a.b.c", "nothing", "", "Address.x"):
        assert find_column(facts, name) is None
    assert nearest_column(facts, "adress.x`y") == "Address.`x``y`"


def test_types_that_are_not_said_are_unknown() -> None:
    facts = replace(make_facts(partitioned_by=("Day",)), partition_columns=("DAY", "gone"))
    assert partition_types(facts) == {"DAY": "string", "gone": "unknown"}
    assert planned_columns(with_schema({"fields": [{"name": "a", "type": {}}]}))[0].type == "unknown"


def test_a_partition_of_the_schema_that_is_wrong_is_not_read() -> None:
    mixed = {"fields": [{"name": "a", "type": "long"}, {"name": "b"}]}
    with pytest.raises(TableError):
        read_schema(with_schema(mixed))


def test_files_are_opened_unless_we_wrote_them_or_they_came_later() -> None:
    facts = mapped(1, 3, largest="3")
    digest = dropped_columns_digest(facts)
    assert digest is not None
    ours = [make_file(f"o{n}", tags={DROPPED_COLUMNS_TAG: digest}, modified_at_ms=NOW_MS + n * DAY_MS) for n in (0, 5)]
    others = [
        make_file(name, modified_at_ms=NOW_MS + after_ms, tags={DROPPED_COLUMNS_TAG: "other"})
        for name, after_ms in (("late", HOUR_MS + 1), ("same", HOUR_MS), ("b", -5), ("a", -5), ("old", -DAY_MS))
    ]
    opened = files_to_open(replace(facts, files=(*ours, *others)))
    assert [file.path for file in opened] == ["old", "a", "b", "same"]
    assert [file.path for file in files_to_open(replace(facts, files=tuple(others)))] == [
        "old",
        "a",
        "b",
        "same",
        "late",
    ]
    assert files_to_open(replace(mapped(1, 2, largest="2"), files=tuple(others))) == ()


def test_a_column_without_a_number_uses_none() -> None:
    facts = mapped(1, 2, largest="3")
    schema = json.loads(facts.schema_json)
    schema["fields"][1]["metadata"] = {"delta.columnMapping.id": "2"}
    assert dropped_columns_digest(replace(facts, schema_json=json.dumps(schema))) == dropped_columns_digest(
        mapped(1, largest="3")
    )
