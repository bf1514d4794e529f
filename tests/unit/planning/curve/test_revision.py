"""Revisions: boundaries from a sample, ranks, the text of the property, and what counts as no revision."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maintainer.planning.curve.curve import days_from_civil, has_min_and_max, key_of, upper_key
from maintainer.planning.curve.revision import (
    MAX_SAMPLED_FILES,
    ColumnBoundaries,
    Revision,
    make_column,
    next_id,
    read_revision,
    revisions_in,
    sampled_files,
)
from tests.support.tables.builders import make_file

IDS = make_column("id", "long", [str(value) for value in range(100)], max_bits=2)
NAMES = make_column("name", "string", ["ada", "bob", "cy", "dee", None], max_bits=2)
REVISION = Revision(3, (IDS, NAMES))


@pytest.mark.parametrize("num_files", [1, 47, 48, 49, 61, 95, 96, 143, 191, 1000])
def test_files_of_a_sample_lie_as_far_apart_as_they_can(num_files: int) -> None:
    """Also behind the first 48 of 95: there a growing column has its newest values."""
    files = [make_file(f"day={number:04}/f") for number in reversed(range(num_files))]
    places = [int(file.path[4:8]) for file in sampled_files(files)]
    assert places == sorted(set(places))
    assert len(places) == min(MAX_SAMPLED_FILES, num_files)
    most = -(-num_files // MAX_SAMPLED_FILES)
    assert all(after - before <= most for before, after in zip(places, [*places[1:], num_files], strict=True))
    assert places[0] == 0
    assert sampled_files([]) == []


def test_boundaries_divide_the_sample_into_equal_parts() -> None:
    assert ColumnBoundaries("id", "long", ("25", "50", "75"), "0", "99") == IDS
    assert [IDS.rank_of(value) for value in (-5, 24, 25, 49, 50, 75, 1000)] == [0, 0, 1, 1, 2, 3, 3]


def test_nulls_have_a_rank_of_their_own() -> None:
    assert NAMES.boundaries == ("a", "b", "c")
    assert [NAMES.rank_of(value) for value in (None, "", "ada", "bz", "zoe")] == [0, 0, 1, 2, 3]
    assert make_column("x", "long", [None, None]).boundaries == ()
    mostly = make_column("x", "long", [None] * 90 + [str(value) for value in range(10)], max_bits=3)
    assert mostly.boundaries[0] == "0"
    assert mostly.rank_of(0) == 1


def test_a_value_that_is_most_of_a_column_gets_one_rank() -> None:
    column = make_column("x", "integer", ["7"] * 95 + ["9", "11", "1", "2", "3"], max_bits=3)
    assert len(set(column.boundaries)) == len(column.boundaries)
    assert column.rank_of(7) != column.rank_of(2)
    assert make_column("x", "integer", ["7"] * 100).boundaries == ()


def test_the_order_of_the_sample_does_not_matter() -> None:
    sample: list[str | None] = [str(value * value % 997) for value in range(500)]
    expected = make_column("x", "long", sample)
    random.Random(1).shuffle(sample)
    assert make_column("x", "long", sample) == expected
    assert 200 < len(expected.boundaries) <= 255


@pytest.mark.parametrize(
    ("type_name", "ascending"),
    [
        ("long", ["-9223372036854775808", "-1", "0", "9223372036854775807"]),
        ("double", ["-Infinity", "-1.5E10", "-0.1", "0.0", "1.0E-300", "2.5", "Infinity"]),
        ("decimal(38,18)", ["-12345678901234567890.000000000000000001", "-1", "0", "0.000000000000000001"]),
        ("date", ["-0044-03-15", "0001-01-01", "1582-10-04", "1582-10-15", "1969-12-31", "1970-01-01", "+12026-01-01"]),
        ("timestamp", ["0999-12-31 23:59:59.999999", "1500-02-28T00:00:00.000Z", "2026-01-01T00:00:00+01:00",
                       "2026-01-01 00:00:00", "2026-01-01T00:00:00.001-01:00"]),
        ("timestamp_ntz", ["2026-01-01", "2026-01-01 00:00:00.000001", "2026-01-01T00:00:01.5"]),
        ("string", ["", "A", "a", "aa", "b", "\u00e9", "\uffff"]),
    ],
)  # fmt: skip
def test_keys_are_in_the_order_of_the_values(type_name: str, ascending: list[str]) -> None:
    keys: list[Any] = [key_of(type_name, text) for text in ascending]
    assert None not in keys
    assert keys == sorted(set(keys))


def test_days_are_those_of_the_proleptic_gregorian_calendar() -> None:
    assert days_from_civil(1970, 1, 1) == 0
    assert days_from_civil(2000, 3, 1) - days_from_civil(2000, 2, 28) == 2
    assert days_from_civil(1900, 3, 1) - days_from_civil(1900, 2, 28) == 1
    # No ten days are left out in 1582, as there are none in Spark and Delta.
    assert days_from_civil(1582, 10, 15) - days_from_civil(1582, 10, 4) == 11
    assert days_from_civil(1, 1, 1) == -719_162


def test_not_a_number_is_above_all_numbers_and_bad_texts_have_no_key() -> None:
    assert key_of("double", "NaN") == key_of("double", "Infinity")
    assert key_of("float", "-0.0") == key_of("float", "0.0")
    assert [key_of(kind, "tomorrow") for kind in ("long", "double", "decimal(4,2)", "date", "timestamp")] == [None] * 5
    assert key_of("date", "2026-13-01") is None
    assert key_of("decimal(4,2)", "NaN") is None


def test_the_largest_timestamp_of_the_log_was_cut_to_milliseconds() -> None:
    assert upper_key("timestamp", "1970-01-01T00:00:00.001Z") == 1999
    assert upper_key("date", "1970-01-02") == 1


@pytest.mark.parametrize("type_name", ["byte", "string", "varchar(10)", "decimal(10,2)", "date", "timestamp_ntz"])
def test_types_with_smallest_and_largest_values(type_name: str) -> None:
    assert has_min_and_max(type_name)


@pytest.mark.parametrize("type_name", ["boolean", "binary", "map", "struct", "variant", "string collate UNICODE"])
def test_types_without(type_name: str) -> None:
    assert not has_min_and_max(type_name)


def test_the_property_is_json_for_people_and_comes_back_equal() -> None:
    text = REVISION.to_json()
    assert json.loads(text) == {
        "version": 1,
        "revision": 3,
        "columns": [
            {"name": "id", "type": "long", "low": "0", "high": "99", "boundaries": ["25", "50", "75"]},
            {"name": "name", "type": "string", "low": "a", "high": "de", "boundaries": ["a", "b", "c"]},
        ],
    }
    assert read_revision("maintainer.zorder.revision.3", text) == REVISION
    assert REVISION.bits == (2, 2)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("maintainer.zorder.revision.4", {}),
        ("maintainer.zorder.revision.x", {}),
        ("some.other.property", {}),
        ("maintainer.zorder.revision.3", {"version": 2}),
        ("maintainer.zorder.revision.3", {"columns": []}),
        ("maintainer.zorder.revision.3", {"columns": None}),
        ("maintainer.zorder.revision.3", {"columns": [{"name": "id"}]}),
        ("maintainer.zorder.revision.3", {"columns": [{"name": "id", "type": "long", "low": 1, "high": None,
                                                       "boundaries": ["1"]}]}),
        ("maintainer.zorder.revision.3", {"columns": [{"name": "id", "type": "long", "low": None, "high": None,
                                                       "boundaries": ["2", "1"]}]}),
        ("maintainer.zorder.revision.3", {"columns": [{"name": "id", "type": "long", "low": None, "high": None,
                                                       "boundaries": "12"}]}),
        ("maintainer.zorder.revision.3", {"columns": [{"name": "id", "type": "long", "low": None, "high": None,
                                                       "boundaries": ["one"]}]}),
    ],
)  # fmt: skip
def test_what_is_damaged_or_foreign_is_no_revision(name: str, change: dict[str, object]) -> None:
    assert read_revision(name, json.dumps({**json.loads(REVISION.to_json()), **change})) is None


@pytest.mark.parametrize("text", ["", "null", "[]", "{", "3", '{"version":1}', "[" * 5000])
def test_what_is_not_the_json_of_a_revision_is_none(text: str) -> None:
    assert read_revision("maintainer.zorder.revision.3", text) is None


def test_revisions_live_side_by_side_and_numbers_are_never_used_again() -> None:
    second = Revision(2, (IDS,))
    properties = [
        (REVISION.property_name, REVISION.to_json()),
        (second.property_name, second.to_json()),
        ("maintainer.zorder.revision.9", "damaged"),
        ("delta.appendOnly", "false"),
    ]
    assert revisions_in(properties) == {2: second, 3: REVISION}
    assert next_id(properties) == 10
    assert next_id([]) == 1


def test_the_tag_names_the_definition_and_not_only_its_number() -> None:
    other = Revision(3, (NAMES, IDS))
    assert REVISION.tag.startswith("3:")
    assert REVISION.tag != other.tag
    assert REVISION.tag == Revision(3, (IDS, NAMES)).tag


def test_a_box_is_wide_where_nobody_knows() -> None:
    assert REVISION.box([("30", "60", False), ("bob", "bob", False)]) == ((1, 2), (2, 2))
    assert REVISION.box([("30", "60", True), (None, None, True)]) == ((0, 0), (2, 0))
    assert REVISION.box([(None, None, False), ("x", "y", False)]) == ((0, 3), (3, 3))
    assert REVISION.box([("thirty", "60", False), ("x", "y", False)]) == ((0, 3), (3, 3))


@pytest.mark.parametrize(
    ("low", "high", "escaped"), [("0", "99", False), ("90", "106", False), ("90", "120", True), ("-9", "-2", True)]
)
def test_numbers_escape_when_the_middle_of_a_file_does(low: str, high: str, escaped: bool) -> None:
    assert IDS.escapes(low, high) is escaped


def test_text_escapes_when_all_of_a_file_does() -> None:
    assert NAMES.escapes("eve", "zoe")
    assert not NAMES.escapes("ada", "zoe")
    assert not make_column("x", "long", []).escapes("1", "2")


def test_text_boundaries_are_no_longer_than_statistics() -> None:
    prefix = "https://example.org/a/very/long/prefix/"
    assert make_column("url", "string", [f"{prefix}{n}" for n in range(50)]).boundaries == ()
    late = make_column("url", "string", [f"{prefix[:25]}{n:02}{prefix}" for n in range(50)], max_bits=2)
    assert {len(text) for text in late.boundaries} == {27}


def test_the_property_has_no_more_of_a_text_than_tells_it_apart() -> None:
    people = [f"{name}@example.org" for name in ("anna", "annabel", "bert", "carl", "cora", "dora", "emil", "eve")]
    column = make_column("email", "string", people, max_bits=2)
    assert (column.boundaries, column.low, column.high) == (("b", "co", "e"), "a", "ev")
    assert [column.rank_of(text) for text in people] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert not column.escapes("eve@example.org", "eve@example.org")
    assert column.escapes("ewa", "zoe")
    assert make_column("constant", "string", ["secret"] * 9).high == "s"


@given(st.lists(st.none() | st.text("ab", max_size=40), min_size=1), st.integers(1, 4))
def test_a_shortened_boundary_divides_the_sample_where_a_value_of_it_would(
    sample: list[str | None], max_bits: int
) -> None:
    column = make_column("x", "string", sample, max_bits=max_bits)
    known = sorted({text[:32] for text in sample if text is not None})
    for boundary in column.boundaries:
        value = next(text for text in known if text >= boundary)
        below = [text for text in known if text < boundary]
        assert value.startswith(boundary)
        assert boundary == value[:1] or any(text.startswith(boundary[:-1]) for text in below)
    assert list(column.keys) == sorted(set(column.keys))
    assert not any(column.escapes(text, text) for text in known)


def test_boundaries_of_timestamps_lie_between_milliseconds_as_statistics_do() -> None:
    texts = [f"1969-12-31 23:59:59.{micros:06}" for micros in range(0, 4000, 250)]
    column = make_column("t", "timestamp", texts, max_bits=8)
    assert column.boundaries == ("1969-12-31 23:59:59.001", "1969-12-31 23:59:59.002", "1969-12-31 23:59:59.003")
    # All rows below a boundary are in a box below it, by what the log says of them.
    least, most = "1969-12-31T23:59:59.001Z", "1969-12-31T23:59:59.001Z"
    assert Revision(1, (column,)).box([(least, most, False)]) == ((1,), (1,))
    within_one = make_column("t", "timestamp", texts[:4], max_bits=8)
    assert within_one.boundaries == ()


def test_a_range_that_cannot_be_read_escapes_nothing() -> None:
    assert IDS.escapes("200", "300")
    assert not IDS.escapes("two hundred", "300")
    assert not IDS.escapes("200", "three hundred")


def test_a_number_of_very_many_digits_is_no_revision() -> None:
    """Python refuses to read it; the table must be planned all the same."""
    name = "maintainer.zorder.revision." + "9" * 5000
    assert read_revision(name, REVISION.to_json()) is None
    assert next_id([(name, "{}"), (REVISION.property_name, "{}")]) == 4
