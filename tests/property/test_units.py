"""Sizes and durations: what is printed is read back, and nothing but UnitError ever comes out."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from maintainer.units import (
    MAX_DURATION_SECONDS,
    MAX_SIZE_BYTES,
    UnitError,
    decimal_size,
    exact_size,
    format_duration,
    format_size,
    parse_duration,
    parse_size,
    read_digits,
    spelled_size,
)
from tests.support.suites.example_counts import examples

SHIFTS = {"B": 0, "KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40, "PiB": 50}
SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "policy.schema.json").read_text())
SIZE_PATTERN = re.compile(SCHEMA["definitions"]["optimize"]["properties"]["maxFileSize"]["pattern"])
DURATION_PATTERN = re.compile(SCHEMA["definitions"]["vacuum"]["properties"]["retention"]["pattern"])

sizes = st.integers(0, MAX_SIZE_BYTES)
durations = st.integers(0, MAX_DURATION_SECONDS)
unit_like = st.text(alphabet="0123456789 .-+kKmMgGtTpPiIbBwdhsDHSWYeEintrval", max_size=25)


@given(sizes)
def test_an_exact_size_is_read_back(size_bytes: int) -> None:
    assert parse_size(exact_size(size_bytes)) == size_bytes
    assert parse_size(size_bytes) == size_bytes


@given(st.integers(0, 8191), st.sampled_from(sorted(SHIFTS)), st.sampled_from(["", " "]))
def test_a_size_is_its_number_shifted(number: int, unit: str, blank: str) -> None:
    assert parse_size(f"{number}{blank}{unit}") == number << SHIFTS[unit]


@given(st.integers(0, 8191), st.sampled_from(["k", "m", "g", "t", "p"]), st.sampled_from(["", "b", "B"]), st.booleans())
def test_decimal_units_are_read_as_spark_reads_them(number: int, letter: str, b: str, upper: bool) -> None:
    text = f"{number}{letter.upper() if upper else letter}{b}"
    spelled = spelled_size(text)
    assert spelled == f"{number}{letter.upper()}iB"
    assert parse_size(text) == parse_size(spelled)
    assert spelled_size(spelled) is None


@given(sizes)
@example(1023)
@example(1024)
@example(1048575)
@example(MAX_SIZE_BYTES)
def test_a_printed_size_is_short_and_near(size_bytes: int) -> None:
    number, unit = format_size(size_bytes).split(" ")
    assert float(number) < 1024 or unit == "PiB"
    assert abs(float(number) * (1 << SHIFTS[unit]) - size_bytes) <= 0.051 * (1 << SHIFTS[unit])


@given(durations)
def test_a_printed_duration_is_read_back(seconds: int) -> None:
    assert parse_duration(format_duration(seconds)) == seconds
    assert parse_duration(f"{seconds}s") == seconds


@given(
    st.tuples(*(st.none() | st.integers(0, 999) for _ in range(4))).filter(
        lambda parts: any(p is not None for p in parts)
    )
)
def test_the_spellings_of_a_duration_agree(parts: tuple[int | None, ...]) -> None:
    named = [(number, unit) for number, unit in zip(parts, "dhms", strict=True) if number is not None]
    expected = sum(number * {"d": 86_400, "h": 3_600, "m": 60, "s": 1}[unit] for number, unit in named)
    words = {"d": "day", "h": "hour", "m": "minute", "s": "second"}
    days = "".join(f"{number}D" for number, unit in named if unit == "d")
    clock = "".join(f"{number}{unit.upper()}" for number, unit in named if unit != "d")
    assert parse_duration(" ".join(f"{number}{unit}" for number, unit in named)) == expected
    assert parse_duration("".join(f"{number}{unit}" for number, unit in named)) == expected
    assert parse_duration(f"P{days}{'T' + clock if clock else ''}") == expected
    assert parse_duration("interval " + " ".join(f"{number} {words[unit]}s" for number, unit in named)) == expected


@settings(max_examples=examples(1000))
@given(unit_like | st.text(max_size=30))
@example("9" * 5000 + "d")
@example("9" * 5000 + "GiB")
@example("1" * 100_000)
@example("٣d")
@example("7d\n")
@example("1MiB\n")
def test_text_is_read_or_refused_with_a_way_out(text: str) -> None:
    for parse, limit, pattern in (
        (parse_size, MAX_SIZE_BYTES, SIZE_PATTERN),
        (parse_duration, MAX_DURATION_SECONDS, DURATION_PATTERN),
    ):
        value = refusal = None
        try:
            value = parse(text)
        except UnitError as error:
            refusal = error
        if refusal is None:
            assert value is not None
            assert 0 <= value <= limit
            # What the program reads, the pattern in the schema lets an editor accept.
            assert pattern.fullmatch(text)
        else:
            assert refusal.help
            assert len(refusal.message) < 120
            assert refusal.message.isprintable()


@pytest.mark.parametrize("value", [True, -1, 2**63, 10**40, "-1", "1.5GiB", "", "MiB", "1 MiB ", "1mib", "1e3"])
def test_refused_sizes(value: str | int) -> None:
    with pytest.raises(UnitError):
        parse_size(value)


@pytest.mark.parametrize(
    "text", ["7", "7 d", "12h 1d", "1d 1d", "-1d", "1.5h", "P", "PT", "P1DT", "P1M", "1mo", "100y", "36600w"]
)
def test_refused_durations(text: str) -> None:
    with pytest.raises(UnitError):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "help"),
    [("1.5GiB", "write `1536MiB`"), ("64mib", "write `64MiB`"), ("0.5KiB", "write `512`")],
)
def test_a_size_written_nearly_right_gets_its_right_spelling(text: str, help: str) -> None:
    with pytest.raises(UnitError) as caught:
        parse_size(text)
    assert caught.value.help == help


def test_a_bare_number_is_no_duration() -> None:
    with pytest.raises(UnitError) as caught:
        parse_duration("7")
    assert caught.value.help == "write `7d` for days or `7h` for hours"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (604_800, "7d"),
        (5_400, "1h 30m"),
        (0.04, "40ms"),
        (3.2, "3.2s"),
        (59.97, "1m"),
        (275.4, "4m 35s"),
        (-60, "-1m"),
    ],
)
def test_printed_durations(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("17", 17), ("9" * 18, 10**18 - 1), ("9" * 19, None), ("", None), (None, None), ("-1", None),
     ("1.0", None), (" 1", None), ("\u0663", None), ("\u00b2", None)],
)  # fmt: skip
def test_digits_are_read_and_nothing_else(text: str | None, number: int | None) -> None:
    assert read_digits(text) == number


@pytest.mark.parametrize(
    ("value", "message", "help"),
    [
        (7, "the duration 7 has no unit", "write `7d` for days or `7h` for hours"),
        (10**6, "`1000000` is not a duration", "write a duration like"),
        (True, "`True` is not a duration", "write a duration like"),
        (-1, "`-1` is not a duration", "write a duration like"),
        (1.5, "`1.5` is not a duration", "write a duration like"),
    ],
)
def test_a_number_without_a_unit_is_no_duration(value: Any, message: str, help: str) -> None:
    with pytest.raises(UnitError) as caught:
        parse_duration(value)
    assert caught.value.message == message
    assert caught.value.help.startswith(help)


@pytest.mark.parametrize(
    ("text", "help"),
    [
        ("1.5GiB", "write `1536MiB`"),
        ("1234567890123.5GiB", "write a whole number and a unit"),
        ("1.1234567890123GiB", "write a whole number and a unit"),
    ],
)
def test_a_fraction_is_answered_with_a_whole_size_where_there_is_one(text: str, help: str) -> None:
    with pytest.raises(UnitError) as caught:
        parse_size(text)
    assert caught.value.help.startswith(help)


@pytest.mark.parametrize(
    ("size_bytes", "exact", "decimal"),
    [
        (10_000_000_000, "10000000000", "10 GB"),
        (5_000_000, "5000000", "5 MB"),
        (1_500_000_000_000, "1500000000000", "1,500 GB"),
        (64 << 20, "64MiB", None),
        (1_000_000 << 20, "1000000MiB", None),
        (1000 << 50, "1000PiB", None),
        (0, "0", None),
        (1_000_001, "1000001", None),
    ],
)
def test_a_round_decimal_size_is_not_printed_in_odd_binary_units(
    size_bytes: int, exact: str, decimal: str | None
) -> None:
    assert (exact_size(size_bytes), decimal_size(size_bytes)) == (exact, decimal)
