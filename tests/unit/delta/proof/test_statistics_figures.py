"""Statistics against figures of rows: what is judged wrong, without an engine."""

from __future__ import annotations

import json
from typing import Any

import pytest

from maintainer.delta.proof.statistics_figures import (
    FileFigures,
    bounds_schema,
    figure_aggregates,
    figures_of_file,
    joined,
    no_figures,
    read_figures,
    statistics_columns,
)
from maintainer.delta.proof.statistics_verdict import Strictness, judge, unknown_names

SCHEMA: dict[str, Any] = {
    "type": "struct",
    "fields": [
        {"name": "p", "type": "string", "metadata": {}},
        {"name": "a", "type": "integer", "metadata": {"delta.columnMapping.physicalName": "col-1"}},
        {
            "name": "s",
            "type": {"type": "struct", "fields": [{"name": "x.y", "type": "string", "metadata": {}}]},
            "metadata": {},
        },
        {"name": "l", "type": {"type": "array", "elementType": "integer"}, "metadata": {}},
    ],
}
COLUMNS = statistics_columns(SCHEMA, ("P",))
STRICT = Strictness(complete=True, exact=True, expected=frozenset(column.physical for column in COLUMNS))
LENIENT = Strictness(complete=False, exact=False)
GOOD = {
    "numRecords": 3,
    "minValues": {"col-1": 1, "s": {"x.y": "a"}},
    "maxValues": {"col-1": 9, "s": {"x.y": "b"}},
    "nullCount": {"col-1": 0, "s": {"x.y": 1}, "l": 2},
}
FIGURES = FileFigures(rows=3, nulls=(0, 1, 2), outside=0, reached=0b1111)


def _add(**changes: Any) -> dict[str, Any]:
    return {"path": "f", "stats": json.dumps({**GOOD, **changes})}


def test_leaves_have_names_as_written_and_as_stored_and_no_partition_columns() -> None:
    assert [(column.name, column.physical, column.has_bounds) for column in COLUMNS] == [
        ("a", ("col-1",), True),
        ("s.x.y", ("s", "x.y"), True),
        ("l", ("l",), False),
    ]


def test_bounds_are_read_by_the_names_and_types_that_are_stored() -> None:
    bounds = [{"name": "col-1", "type": "integer", "nullable": True, "metadata": {}}]
    low, high = bounds_schema(COLUMNS)["fields"]
    assert (low["name"], high["name"]) == ("minValues", "maxValues")
    assert low["type"]["fields"][:1] == bounds
    assert low["type"]["fields"][1]["type"]["fields"][0]["type"] == "string"


def test_two_null_counts_share_a_number_and_come_apart_again() -> None:
    assert figure_aggregates(COLUMNS, "b")[:2] == [
        "coalesce(sum(if(isnull(`a`), 1L, 0L) + if(isnull(`s`.`x.y`), 4294967296L, 0L)), 0L) AS n0",
        "coalesce(sum(if(isnull(`l`), 1L, 0L)), 0L) AS n1",
    ]
    names = [text.rpartition(" AS ")[2] for text in no_figures(COLUMNS)]
    assert names == ["n0", "n1", "o", "r0"]
    assert [text.rpartition(" AS ")[2] for text in figures_of_file(COLUMNS, "b")] == names
    assert read_figures(COLUMNS, 10, (7 + (5 << 32), 3, 0b10, 0b1001)) == FileFigures(10, (7, 5, 3), 0b10, 0b1001)


def test_strings_are_compared_row_by_row_and_other_values_by_their_extremes() -> None:
    assert figure_aggregates(COLUMNS, "b")[2:] == [
        "min(`a`) AS least0",
        "max(`a`) AS most0",
        "coalesce(bool_or(`s`.`x.y` < b.lo1 OR `s`.`x.y` > b.hi1), false) AS beyond1",
        "coalesce(bool_or(`s`.`x.y` = b.lo1 OR b.shortened1 AND startswith(`s`.`x.y`, b.lo1)), false) AS lowest1",
        "coalesce(bool_or(`s`.`x.y` = b.hi1 OR startswith(`s`.`x.y`, b.cut1)), false) AS highest1",
    ]
    assert figures_of_file(COLUMNS, "b")[2:] == [
        "0L | if(least0 < b.lo0 OR most0 > b.hi0, 1L, 0L) | if(beyond1, 2L, 0L) AS o",
        "0L | if(least0 = b.lo0, 1L, 0L) | if(most0 = b.hi0, 2L, 0L) "
        "| if(lowest1, 4L, 0L) | if(highest1, 8L, 0L) AS r0",
    ]


def test_figures_of_groups_of_columns_come_together_in_order() -> None:
    first, second = COLUMNS[:1], COLUMNS[1:]
    whole = joined([(first, FileFigures(3, (0,), 1, 0b10)), (second, FileFigures(3, (1, 2), 0b10, 0b01))])
    assert whole == FileFigures(3, (0, 1, 2), 0b101, 0b0110)


def test_good_statistics_pass_and_missing_ones_only_where_nobody_expects_them() -> None:
    assert judge(_add(), COLUMNS, FIGURES, STRICT) == []
    assert judge({"path": "f", "stats": None}, COLUMNS, FIGURES, LENIENT) == []
    assert judge({"path": "f", "stats": None}, COLUMNS, FIGURES, STRICT) == ["it has no statistics"]
    assert judge({"path": "f", "stats": "{"}, COLUMNS, FIGURES, LENIENT) == ["its statistics are not JSON"]


@pytest.mark.parametrize(
    ("changes", "figures", "expected"),
    [
        ({"numRecords": 4}, FIGURES, ["numRecords says 4, it holds 3 rows"]),
        ({"nullCount": {**GOOD["nullCount"], "l": 0}}, FIGURES, ["nullCount of l says 0, it holds 2 nulls"]),  # type: ignore[dict-item]
        ({"tightBounds": False}, FIGURES, ["tightBounds is false, and no rows are deleted"]),
        (
            {},
            FileFigures(3, (0, 1, 2), 0b01, 0b1111),
            ["rows lie outside the bounds of a (minValues says 1, maxValues 9)"],
        ),
        ({}, FileFigures(3, (0, 1, 2), 0, 0b1101), ["maxValues of a says 9, which no row reaches"]),
        ({}, FileFigures(3, (0, 1, 2), 0, 0b1011), ["minValues of s.x.y says 'a', which no row reaches"]),
    ],
)
def test_wrong_statistics_are_named(changes: dict[str, Any], figures: FileFigures, expected: list[str]) -> None:
    assert judge(_add(**changes), COLUMNS, figures, STRICT) == expected


def test_bounds_wider_than_the_rows_are_wrong_only_where_they_must_be_exact() -> None:
    wide = FileFigures(3, (0, 1, 2), 0, 0)
    assert len(judge(_add(), COLUMNS, wide, STRICT)) == 4
    assert judge(_add(), COLUMNS, wide, LENIENT) == []


def test_a_deletion_vector_leaves_wide_bounds_and_no_exact_null_counts() -> None:
    add = {**_add(numRecords=5), "deletionVector": {"cardinality": 2}}
    assert judge(add, COLUMNS, FileFigures(3, (0, 0, 0), 0, 0), STRICT) == []
    assert judge(add, COLUMNS, FileFigures(4, (0, 0, 0), 0, 0), STRICT) == [
        "numRecords says 5 less 2 deleted, it holds 4 rows"
    ]
    assert judge(add, COLUMNS, FileFigures(3, (0, 0, 0), 0b1, 0), STRICT) != []


def test_a_missing_bound_is_wrong_unless_the_column_holds_nulls_only() -> None:
    add = _add(minValues={"s": {"x.y": "a"}}, maxValues={"s": {"x.y": "b"}})
    assert judge(add, COLUMNS, FIGURES, STRICT) == ["minValues of a is missing", "maxValues of a is missing"]
    nulls = _add(
        minValues={"s": {"x.y": "a"}},
        maxValues={"s": {"x.y": "b"}},
        nullCount={**GOOD["nullCount"], "col-1": 3},  # type: ignore[dict-item]
    )
    assert judge(nulls, COLUMNS, FileFigures(3, (3, 1, 2), 0, 0b1111), STRICT) == []


def test_names_that_no_column_has() -> None:
    assert unknown_names({**GOOD, "nullCount": {"col-1": 0, "gone": {"x": 1}}}, COLUMNS) == ["gone.x"]


def test_a_year_that_has_no_one_spelling_is_not_called_wrong() -> None:
    columns = statistics_columns({"fields": [{"name": "t", "type": "timestamp", "metadata": {}}]}, ())
    far = {"path": "f", "stats": json.dumps({"numRecords": 1, "maxValues": {"t": "+294247-01-10T04:00:54.775Z"}})}
    near = {"path": "f", "stats": json.dumps({"numRecords": 1, "maxValues": {"t": "2024-01-10T04:00:54.775Z"}})}
    exact = Strictness(complete=False, exact=True)
    assert judge(far, columns, FileFigures(1, (0,), 0, 0), exact) == []
    assert len(judge(near, columns, FileFigures(1, (0,), 0, 0), exact)) == 1
