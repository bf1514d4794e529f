"""What is said of columns that are not as they were planned: each by its name, with what it was and what it is."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from maintainer.model.plan.plan import PlannedColumn
from maintainer.planning.recheck.staleness import MAX_CHANGES, column_changes
from maintainer.planning.selection.schema_columns import planned_columns
from tests.support.tables.builders import make_facts


def field(name: str, type_: Any, *, nullable: bool = True, **metadata: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, "nullable": nullable, "metadata": metadata}


def mapped(name: str, column_id: int) -> dict[str, Any]:
    return {**field(name, "long"), "metadata": {"delta.columnMapping.id": column_id}}


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


def columns(*fields: dict[str, Any]) -> tuple[PlannedColumn, ...]:
    return planned_columns(replace(make_facts(), schema_json=json.dumps(struct(*fields))))


def array(element: Any, *, nulls: bool = True) -> dict[str, Any]:
    return {"type": "array", "elementType": element, "containsNull": nulls}


ID = field("id", "long", nullable=False)
PRICE = field("price", "decimal(10,2)")


def test_the_schema_is_listed_with_everything_in_it() -> None:
    nested = struct(field("city", "string", comment="where"), field("tags", array("string", nulls=False)))
    mapping = {"type": "map", "keyType": "string", "valueType": nested, "valueContainsNull": True}
    assert columns(ID, field("a.b", mapping)) == (
        PlannedColumn("id", "long", nullable=False),
        PlannedColumn("`a.b`", "map"),
        PlannedColumn("`a.b`.key", "string", nullable=False),
        PlannedColumn("`a.b`.value", "struct"),
        PlannedColumn("`a.b`.value.city", "string", metadata=(("comment", '"where"'),)),
        PlannedColumn("`a.b`.value.tags", "array"),
        PlannedColumn("`a.b`.value.tags.element", "string", nullable=False),
    )


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ([ID], [ID], []),
        ([ID], [ID, PRICE], ["column price (decimal(10,2)) was added"]),
        ([ID, PRICE], [ID], ["column price (decimal(10,2)) was removed"]),
        ([field("a", "integer")], [field("a", "long")], ["column a was of type integer, now long"]),
        ([ID], [field("id", "long")], ["column id may be null now"]),
        ([field("id", "long")], [ID], ["column id must not be null any more"]),
        ([field("a", "long")], [field("a", "long", comment="x")], ["the comment of column a was not set, now 'x'"]),
        (
            [field("a", "long", comment="x" * 70)],
            [field("a", "long", comment="y")],
            [f"the comment of column a was '{'x' * 60}...', now 'y'"],
        ),
        (
            [field("a", "long", CURRENT_DEFAULT="1")],
            [field("a", "long")],
            ["the metadata CURRENT_DEFAULT of column a was '1', now not set"],
        ),
        (
            [mapped("a", 3)],
            [mapped("b", 3)],
            ["column a was renamed to b"],
        ),
        (
            [mapped("a", 3)],
            [mapped("b", 4)],
            ["column a (long) was removed", "column b (long) was added"],
        ),
        ([ID, PRICE], [PRICE, ID], ["the order of the columns was changed"]),
        (
            [field("s", struct(field("x", "long")))],
            [field("s", struct(field("x", "string"), field("y", array("long"))))],
            [
                "column s.x was of type long, now string",
                "column s.y (array) was added",
                "column s.y.element (long) was added",
            ],
        ),
        (
            [field("s", array("long"))],
            [field("s", array("long", nulls=False))],
            ["column s.element must not be null any more"],
        ),
    ],
)
def test_each_change_names_its_column(before: list[Any], after: list[Any], says: list[str]) -> None:
    assert list(column_changes(columns(*before), columns(*after))) == says


def test_many_changes_are_counted() -> None:
    many = [field(f"c{number}", "long") for number in range(MAX_CHANGES + 3)]
    says = column_changes(columns(ID), columns(ID, *many))
    assert len(says) == MAX_CHANGES + 1
    assert says[-1] == "3 more changes of columns"
