from __future__ import annotations

from datetime import date

import pytest

from maintainer.policy.predicate.partition_predicate import PredicateTypeError, parse_predicate
from maintainer.policy.predicate.predicate_grammar import PredicateError

TODAY = date(2026, 11, 21)


def selects(text: str, type_name: str, value: str | None) -> bool:
    return parse_predicate(text).bind({"c": type_name}, TODAY)({"c": value})


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("order_day >= '2026-01-01'", "order_day >= '2026-01-01'"),
        ("'2026' <= d and  d <> 'x'", "d >= '2026' AND d != 'x'"),
        ("(a == 1)", "a = 1"),
        ("a = 1 and (b = 2 and c = 3)", "a = 1 AND b = 2 AND c = 3"),
        ("(a = 1 or b = 2) and not (c in (1, -2))", "(a = 1 OR b = 2) AND NOT c IN (1, -2)"),
        ("NOT (a = 1 AND b = 2)", "NOT (a = 1 AND b = 2)"),
        ("`my col` is not null", "`my col` IS NOT NULL"),
        ("`in` = 'it''s'", "`in` = 'it''s'"),
        ("date >= DATE '2026-01-01'", "date >= DATE '2026-01-01'"),
        ("d > current_date() - interval '7' days", "d > current_date() - 7"),
        ("d > CURRENT_DATE() - 7", "d > current_date() - 7"),
        ("d <= current_date() + 0", "d <= current_date()"),
        ("t < TIMESTAMP '2026-01-01T02:00:00+02:00'", "t < TIMESTAMP '2026-01-01 00:00:00Z'"),
        ("x not between -1.5 and 2", "x NOT BETWEEN -1.5 AND 2"),
    ],
)
def test_a_predicate_has_one_canonical_text(text: str, canonical: str) -> None:
    assert parse_predicate(text).text == canonical


def test_columns_are_listed_once_in_order() -> None:
    assert parse_predicate("b = 1 AND `a b` = 2 OR b IS NULL").columns == ("b", "a b")


@pytest.mark.parametrize(
    ("text", "offset", "length", "message"),
    [
        ("1=1) OR (d = '1'", 2, 1, "a value is compared with a value"),
        ("d = 1) OR (1=1", 5, 1, "this parenthesis closes nothing"),
        ("d = 1; DROP TABLE x", 5, 1, "a predicate is one condition, without semicolons"),
        ("d = 1 -- x", 6, 2, "comments are not part of the grammar"),
        ("d = 1 /* x */", 6, 2, "comments are not part of the grammar"),
        ("reflect('java.lang.System', 'exit') = 1", 0, 7, "`reflect(...)`: functions are not part of the grammar"),
        ("d = java_method('a', 'b')", 4, 11, "`java_method(...)`: functions are not part of the grammar"),
        ("d IN (SELECT d FROM t)", 6, 6, "subqueries are not part of the grammar"),
        ("d = (SELECT 1)", 4, 1, "a value is expected here, not `(`"),
        ("EXISTS (SELECT 1)", 0, 6, "subqueries are not part of the grammar"),
        ("d LIKE 'a%'", 2, 4, "LIKE is not part of the grammar"),
        ("d = NULL", 4, 4, "nothing compares with NULL"),
        ("d IN (NULL)", 6, 4, "nothing compares with NULL"),
        ("d = other", 4, 5, "a value is expected here, not the column other"),
        ('d = "x"', 4, 1, "text must be in single quotes"),
        ("d = 'x", 4, 2, "this quoted text has no end"),
        ("d = DATE '2026-02-30'", 9, 12, "'2026-02-30' is not a date"),
        ("d > current_date - 7", 4, 12, "current_date needs parentheses"),
        ("d > current_date() - INTERVAL 7 MONTHS", 32, 6, "intervals are counted in days"),
        ("d > current_date() - 1.5", 21, 3, "current_date() is moved by whole days"),
        ("d + 1 > 2", 2, 1, "an operator is expected here, not `+`"),
        ("(d = 1", 0, 1, "this parenthesis is not closed"),
        ("d", 1, 1, "a column alone is not a condition"),
        ("", 0, 1, "a column is expected here, not nothing"),
        ("d = 'a\\'b'", 9, 1, "this quoted text has no end"),
        ("d = 'a\\b'", 4, 5, "a backslash in a text means different things to different engines"),
        ("d = 1e5", 4, 3, "`1e5` is not a number"),
        ("d <=> 1", 2, 3, "an operator is expected here, not `<=>`"),
        ("d > current_date() - 7 days", 23, 4, "days are counted without the word"),
        ("d = \u2018x\u2019", 4, 1, "`\u2018` is a typographic quote, U+2018"),
        ("d > current_date() \u2013 7", 19, 1, "`\u2013` is a typographic dash, U+2013"),
        ("größe = 1", 0, 5, "`größe` must be quoted"),
    ],
)
def test_what_is_not_in_the_grammar_is_refused_with_its_place(
    text: str, offset: int, length: int, message: str
) -> None:
    with pytest.raises(PredicateError) as caught:
        parse_predicate(text)
    assert (caught.value.offset, caught.value.length) == (offset, length)
    assert caught.value.message.startswith(message)
    assert caught.value.help


@pytest.mark.parametrize(
    ("text", "help"),
    [
        ("d > current_date() - 7 days", "write `current_date() - 7`"),
        ("d < current_date() + 1 DAY", "write `current_date() + 1`"),
        ("d = \u2018x\u2019", "use straight quotes: 'text'"),
        ("\u201cd = 3\u201d", "use straight quotes: 'text'"),
        ("d > current_date() \u2212 7", "use the minus sign of the keyboard: -"),
    ],
)
def test_the_help_says_what_to_write(text: str, help: str) -> None:
    with pytest.raises(PredicateError) as caught:
        parse_predicate(text)
    assert caught.value.help == help


def test_depth_and_length_are_bounded() -> None:
    assert parse_predicate("(" * 32 + "a = 1" + ")" * 32).text == "a = 1"
    for text in ("(" * 33 + "a = 1" + ")" * 33, "NOT " * 2000 + "a = 1", "(" * 8000):
        with pytest.raises(PredicateError, match="nested too deeply"):
            parse_predicate(text)
    with pytest.raises(PredicateError, match="has 8193 characters"):
        parse_predicate("a = '" + "x" * 8187 + "'")


@pytest.mark.parametrize(
    ("text", "type_name", "value", "selected"),
    [
        ("c >= '2026-01-01'", "date", "2026-01-01", True),
        ("c >= '2026-01-01'", "string", "2025-12-31", False),
        ("c > 9", "integer", "10", True),  # as text, "10" would be smaller
        ("c > 9.5", "long", "10", True),
        ("c = 1.50", "decimal(10,2)", "1.5", True),
        ("c = TRUE", "boolean", "true", True),
        ("c > 5", "double", "NaN", True),
        ("c < 5", "double", "-Infinity", True),
        ("c >= current_date() - 7", "date", "2026-11-14", True),
        ("c >= current_date() - 7", "date", "2026-11-13", False),
        ("c >= current_date() - 7", "string", "2026-11-14", True),
        ("c < '2026-01-01 12:00:00'", "timestamp", "2026-01-01 11:59:59.999999", True),
        ("c = TIMESTAMP '2026-01-01 00:00:00'", "timestamp", "2026-01-01T00:00:00.000000Z", True),
        ("c >= DATE '2026-01-01'", "timestamp", "2025-12-31 23:59:59", False),
        ("c = 'a'", "string", "", False),
        ("NOT c = 'a'", "string", None, False),
        ("c NOT IN ('a')", "string", None, False),
        ("c IS NULL", "string", "", False),  # Spark and delta-rs read an empty text of these as it is
        ("c IS NULL", "binary", "", False),
        ("c IS NOT NULL", "binary", "", True),
        ("c IS NULL", "integer", "", True),
        ("c IS NULL", "date", "", True),
        ("c = ''", "string", "", True),
        ("c < 'a'", "string", "", True),
        ("c >= current_date() - 7", "string", "", False),
        ("NOT c >= current_date() - 7", "string", "", False),
        ("c IS NULL", "string", None, True),
        ("c IS NULL OR c = 'a'", "string", None, True),
        ("C = 1", "integer", "1", True),  # names are found without regard to case, as Spark does
    ],
)
def test_comparison_follows_the_type_of_the_column(
    text: str, type_name: str, value: str | None, selected: bool
) -> None:
    assert selects(text, type_name, value) is selected


@pytest.mark.parametrize(
    ("text", "type_name", "message"),
    [
        ("c = '5'", "integer", "`c` is integer and cannot be compared with '5'"),
        ("c = 5", "string", "`c` is string and cannot be compared with 5"),
        ("c = 5", "date", "`c` is date and cannot be compared with 5"),
        ("c = 'soon'", "date", "`c` is date and cannot be compared with 'soon'"),
        ("c = 'true'", "boolean", "`c` is boolean and cannot be compared with 'true'"),
        ("c = 1 OR d = 1", "integer", "`d` is not a partition column"),
        ("c = 1", "binary", "`c` has the type binary"),
    ],
)
def test_a_literal_of_another_type_is_an_error_and_never_an_empty_selection(
    text: str, type_name: str, message: str
) -> None:
    with pytest.raises(PredicateTypeError, match="T410") as caught:
        selects(text, type_name, "1")
    assert message in caught.value.what


def test_a_value_in_the_log_that_is_not_of_its_type_is_an_error() -> None:
    with pytest.raises(PredicateTypeError, match="'soon' in partition column `c`, which is not a date"):
        selects("c > current_date()", "string", "soon")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("c NOT = 1", "NOT here must be followed by IN or BETWEEN"),
        ("c > TIMESTAMP '2026-13-01 00:00:00'", "TIMESTAMP '2026-13-01 00:00:00'"),
        ("c > TIMESTAMP '2026-01-01 25:00:00'", "'2026-01-01 25:00:00' is not a time"),
        ("c > TIMESTAMP '2026-01-01 00:00:00+19:00'", "is not a time"),
        ("c > TIMESTAMP '2026-01-01 00:00:00+01:60'", "is not a time"),
        ("c > TIMESTAMP '2026-01-01 00:00:00.1234567'", "is not a time"),
        ("c > TIMESTAMP '0001-01-01 00:00:00+01:00'", "is not a time"),
        (f"c > {'9' * 39}", "this number is too long"),
        ("d > current_date() - 999999", "999999 days are too many"),
        ("c > SELECT", ""),
    ],
)
def test_what_cannot_be_read_is_said_at_its_place(text: str, message: str) -> None:
    with pytest.raises(PredicateError) as caught:
        parse_predicate(text)
    assert message.removeprefix("TIMESTAMP ") in str(caught.value)


@pytest.mark.parametrize(
    ("text", "zone"), [("2026-01-01 00:00:00.1234560", ""), ("2026-01-01 18:00:00.123456+18:00", "Z")]
)
def test_digits_beyond_microseconds_may_be_zero(text: str, zone: str) -> None:
    assert parse_predicate(f"c = TIMESTAMP '{text}'").text == f"c = TIMESTAMP '2026-01-01 00:00:00.123456{zone}'"


@pytest.mark.parametrize(
    ("type_name", "literal"),
    [
        ("double", "'1'"),
        ("timestamp", "1"),
        ("timestamp_ntz", "'noon'"),
        ("long", "'1'"),
        ("date", "1"),
        ("boolean", "1"),
    ],
)
def test_a_literal_of_another_type_than_its_column_is_refused(type_name: str, literal: str) -> None:
    with pytest.raises(PredicateTypeError) as caught:
        selects(f"c = {literal}", type_name, "x")
    assert type_name in f"{caught.value.what} {caught.value.found} {caught.value.allowed}"


@pytest.mark.parametrize("type_name", ["long", "decimal(5,2)", "double", "float"])
@pytest.mark.parametrize("value", ["ten", "--1", "1_0", "\u0661\u0660", "1\u06600"])
def test_a_partition_value_that_is_no_number_is_an_error_and_not_a_miss(type_name: str, value: str) -> None:
    with pytest.raises(PredicateTypeError) as caught:
        selects("c > 1", type_name, value)
    assert value in str(caught.value.found)
    assert selects("c > 1", type_name, "1.5") is True


def test_columns_within_a_negation_count() -> None:
    assert parse_predicate("NOT (a = 1 OR NOT b IN (2))").columns == ("a", "b")
