"""Statistics against figures of rows: what is judged wrong, without an engine."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from maintainer.delta.log.statistics_columns import statistics_columns
from maintainer.delta.proof.statistics_figures import (
    RowFigures,
    bounds_schema,
    figure_aggregates,
    figures_of_file,
    has_bounds,
    joined,
    no_figures,
    read_figures,
)
from maintainer.delta.proof.statistics_verdict import Judgement, Strictness, judge, strictness_of, unknown_names

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
FIGURES = RowFigures(rows=3, nulls=(0, 1, 2), outside=0, reached=0b1111)


def wrong(*judged: Any) -> list[str]:
    return list(judge(*judged).wrong)


def _add(**changes: Any) -> dict[str, Any]:
    return {"path": "f", "stats": json.dumps({**GOOD, **changes})}


def test_leaves_have_names_as_written_and_as_stored_and_no_partition_columns() -> None:
    assert [(column.name, column.physical, has_bounds(column)) for column in COLUMNS] == [
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
    assert read_figures(COLUMNS, 10, (7 + (5 << 32), 3, 0b10, 0b1001)) == RowFigures(10, (7, 5, 3), 0b10, 0b1001)


def test_strings_are_compared_row_by_row_and_other_values_by_their_extremes() -> None:
    assert figure_aggregates(COLUMNS, "b")[2:] == [
        "min(`a`) AS least0",
        "max(`a`) AS most0",
        "coalesce(bool_or(`s`.`x.y` < b.lo1 OR `s`.`x.y` > b.hi1), false) AS beyond1",
    ]
    assert figures_of_file(COLUMNS, "b")[2:] == [
        "0L | if(least0 < b.lo0 OR most0 > b.hi0, 1L, 0L) | if(beyond1, 2L, 0L) AS o",
        "0L | if(least0 = b.lo0, 1L, 0L) | if(most0 = b.hi0, 2L, 0L) AS r0",
    ]


def test_figures_of_groups_of_columns_come_together_in_order() -> None:
    first, second = COLUMNS[:1], COLUMNS[1:]
    whole = joined([(first, RowFigures(3, (0,), 1, 0b10)), (second, RowFigures(3, (1, 2), 0b10, 0b01))])
    assert whole == RowFigures(3, (0, 1, 2), 0b101, 0b0110)


def test_good_statistics_pass_and_missing_ones_only_where_nobody_expects_them() -> None:
    assert wrong(_add(), COLUMNS, FIGURES, STRICT) == []
    assert wrong({"path": "f", "stats": None}, COLUMNS, FIGURES, LENIENT) == []
    assert wrong({"path": "f", "stats": None}, COLUMNS, FIGURES, STRICT) == ["it has no statistics"]
    assert wrong({"path": "f", "stats": "{"}, COLUMNS, FIGURES, STRICT) == ["its statistics are not JSON"]


@pytest.mark.parametrize(
    ("changes", "figures", "expected"),
    [
        ({"numRecords": 4}, FIGURES, ["numRecords says 4, it holds 3 rows"]),
        ({"nullCount": {**GOOD["nullCount"], "l": 0}}, FIGURES, ["nullCount of l says 0, it holds 2 nulls"]),  # type: ignore[dict-item]
        ({"tightBounds": False}, FIGURES, ["tightBounds is false, and no rows are deleted"]),
        (
            {},
            RowFigures(3, (0, 1, 2), 0b01, 0b1111),
            ["rows lie outside the bounds of a (minValues says 1, maxValues 9)"],
        ),
        ({}, RowFigures(3, (0, 1, 2), 0, 0b1101), ["maxValues of a says 9, which no row reaches"]),
        ({}, RowFigures(3, (0, 1, 2), 0, 0b1110), ["minValues of a says 1, which no row reaches"]),
    ],
)
def test_wrong_statistics_are_named(changes: dict[str, Any], figures: RowFigures, expected: list[str]) -> None:
    assert wrong(_add(**changes), COLUMNS, figures, STRICT) == expected


def test_bounds_that_no_row_reaches_are_wrong_for_numbers_of_exact_writers_and_a_note_for_others() -> None:
    wide = RowFigures(3, (0, 1, 2), 0, 0)
    sentences = ("minValues of a says 1, which no row reaches", "maxValues of a says 9, which no row reaches")
    assert judge(_add(), COLUMNS, wide, STRICT) == Judgement(wrong=sentences)
    assert judge(_add(), COLUMNS, wide, LENIENT) == Judgement(notes=sentences)
    assert judge(_add(tightBounds=False), COLUMNS, wide, LENIENT) == Judgement()


@pytest.mark.parametrize(
    ("kind", "bound", "is_reached"),
    [
        *((kind, 7, True) for kind in ("byte", "short", "integer", "long", "float", "double", "decimal(10,2)")),
        ("date", "2024-01-10", True),
        ("timestamp", "2024-01-10T04:00:54.775Z", False),
        ("timestamp_ntz", "2024-01-10T04:00:54.775", False),
        ("string", "a", False),
    ],
)
def test_readers_answer_min_and_max_from_bounds_of_numbers_and_dates(kind: str, bound: Any, is_reached: bool) -> None:
    columns = statistics_columns({"fields": [{"name": "c", "type": kind, "metadata": {}}]}, ())
    add = {"path": "f", "stats": json.dumps({"numRecords": 1, "maxValues": {"c": bound}})}
    exact = Strictness(exact=True)
    assert len(wrong(add, columns, RowFigures(1, (0,), 0, 0), exact)) == is_reached
    # Narrower than the rows is wrong for every type and everybody.
    assert len(wrong(add, columns, RowFigures(1, (0,), 1, 0b11), LENIENT)) == 1


@pytest.mark.parametrize(
    ("said", "nulls", "is_wrong"),
    [
        (0, 1, True),
        (3, 2, True),
        (5, 2, True),
        (1, 2, False),
        (2, 0, False),
        (2, 1, False),
        (3, 3, None),
        (2.0, 2, None),
        (0.0, 2, True),
        (1.0, 2, False),
        (0.5, 2, None),
        (True, 2, None),
        ("0", 2, None),
    ],
)
def test_a_null_count_of_others_is_wrong_only_where_it_hides_rows(said: Any, nulls: int, is_wrong: bool | None) -> None:
    columns = COLUMNS[:1]
    add = {"path": "f", "stats": json.dumps({"numRecords": 3, "nullCount": {"col-1": said}})}
    figures = RowFigures(3, (nulls,), 0, 0)
    judgement = judge(add, columns, figures, LENIENT)
    assert (len(judgement.wrong), len(judgement.notes)) == (is_wrong is True, is_wrong is False)
    assert len(wrong(add, columns, figures, Strictness(exact=True))) == (is_wrong is not None)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "5", '{"stats_json": "{\\"numRecords\\": 7}"}', '{"numRecords": "7"}', "{}"]
)
def test_what_no_reader_can_read_is_unknown(text: str) -> None:
    judgement = judge({"path": "f", "stats": text}, COLUMNS, FIGURES, LENIENT)
    assert (judgement.wrong, len(judgement.notes)) == ((), text in ("{", "[]", "5"))
    assert judge({"path": "f", "stats": text}, COLUMNS, FIGURES, Strictness(exact=True)).wrong == ()
    assert judge({"path": "f", "stats": text}, COLUMNS, FIGURES, STRICT).wrong


@pytest.mark.parametrize(
    ("said", "is_right"),
    [(3.0, True), (4.0, False), (2.5, None), (1e300, None), (math.nan, None), (True, None), ("4", None), (None, None)],
)
def test_a_count_of_rows_may_be_written_with_a_point_and_no_fraction(said: Any, is_right: bool | None) -> None:
    """Readers take 3.0 for 3; what they take for no count is unknown, and missing where it must be there."""
    add = _add(numRecords=said)
    assert judge(add, COLUMNS, FIGURES, LENIENT).wrong == (
        ("numRecords says 4, it holds 3 rows",) if is_right is False else ()
    )
    assert ("numRecords is missing" in wrong(add, COLUMNS, FIGURES, STRICT)) == (is_right is None)


def test_writers_of_exact_bounds_are_a_closed_list() -> None:
    engines = {
        "Apache-Spark/4.1.0 Delta-Lake/4.4.0": True,
        "Apache-Spark/3.5.0 Delta-Lake/3.2.0": False,
        "delta-rs:py-1.6.2": False,
        "Trino-455": False,
        None: False,
    }
    assert {engine: strictness_of({"engineInfo": engine}).exact for engine in engines} == engines
    assert not strictness_of({}).complete


def test_a_deletion_vector_leaves_wide_bounds_and_no_exact_null_counts() -> None:
    add = {**_add(numRecords=5), "deletionVector": {"cardinality": 2}}
    assert wrong(add, COLUMNS, RowFigures(3, (0, 0, 0), 0, 0), STRICT) == []
    assert wrong(add, COLUMNS, RowFigures(4, (0, 0, 0), 0, 0), STRICT) == [
        "numRecords says 5 less 2 deleted, it holds 4 rows"
    ]
    assert wrong(add, COLUMNS, RowFigures(3, (0, 0, 0), 0b1, 0), STRICT) != []


def test_a_missing_bound_is_wrong_unless_the_column_holds_nulls_only() -> None:
    add = _add(minValues={"s": {"x.y": "a"}}, maxValues={"s": {"x.y": "b"}})
    assert wrong(add, COLUMNS, FIGURES, STRICT) == ["minValues of a is missing", "maxValues of a is missing"]
    nulls = _add(
        minValues={"s": {"x.y": "a"}},
        maxValues={"s": {"x.y": "b"}},
        nullCount={**GOOD["nullCount"], "col-1": 3},  # type: ignore[dict-item]
    )
    assert wrong(nulls, COLUMNS, RowFigures(3, (3, 1, 2), 0, 0b1111), STRICT) == []


def test_names_that_no_column_has() -> None:
    assert unknown_names({**GOOD, "nullCount": {"col-1": 0, "gone": {"x": 1}}}, COLUMNS) == ["gone.x"]


def test_a_year_that_has_no_one_spelling_is_not_called_wrong() -> None:
    columns = statistics_columns({"fields": [{"name": "t", "type": "date", "metadata": {}}]}, ())
    far = {"path": "f", "stats": json.dumps({"numRecords": 1, "maxValues": {"t": "+294247-01-10"}})}
    near = {"path": "f", "stats": json.dumps({"numRecords": 1, "maxValues": {"t": "2024-01-10"}})}
    exact = Strictness(exact=True)
    assert wrong(far, columns, RowFigures(1, (0,), 0, 0), exact) == []
    assert len(wrong(near, columns, RowFigures(1, (0,), 0, 0), exact)) == 1
