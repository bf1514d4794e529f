"""Addresses on the curve: what cannot be is refused, and times are read with their zone."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from maintainer.planning.curve.curve import bits_of, box_of, cut_curve, key_of


@pytest.mark.parametrize(("num_ranks", "bits"), [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (256, 8), (257, 9)])
def test_bits_hold_every_rank(num_ranks: int, bits: int) -> None:
    assert bits_of(num_ranks) == bits


def test_a_column_without_ranks_has_no_bits() -> None:
    with pytest.raises(ValueError, match="at least one rank"):
        bits_of(0)


def test_a_cube_is_no_deeper_than_addresses() -> None:
    assert box_of("10", (1, 1)) == ((1, 0), (1, 0))
    with pytest.raises(ValueError, match="a cube of 3 bits in addresses of 2"):
        box_of("101", (1, 1))


def test_a_piece_holds_rows() -> None:
    assert cut_curve([(0, 1), (1, 1)], num_bits=1, max_rows=1) == (0, 1)
    with pytest.raises(ValueError, match="at least one row, not 0"):
        cut_curve([(0, 1)], num_bits=1, max_rows=0)


@pytest.mark.parametrize("type_name", ["long", "double", "decimal(5,2)", "date", "timestamp"])
def test_only_digits_that_spark_reads_make_a_key(type_name: str) -> None:
    text = "2026-01-02" if type_name in ("date", "timestamp") else "10"
    assert key_of(type_name, text) is not None
    assert key_of(type_name, text.replace("0", "\u0660")) is None
    assert key_of(type_name, text.replace("0", "_0")) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-02 03:04:05.5", datetime(2026, 1, 2, 3, 4, 5, 500_000, tzinfo=UTC)),
        ("2026-01-02T03:04:05+02:00", datetime(2026, 1, 2, 1, 4, 5, tzinfo=UTC)),
        ("2026-01-02 around noon", None),
    ],
)
def test_times_are_microseconds_since_1970(text: str, expected: datetime | None) -> None:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    microseconds = None if expected is None else round((expected - epoch).total_seconds() * 1_000_000)
    assert key_of("timestamp", text) == microseconds
