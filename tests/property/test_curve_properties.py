"""Laws of the curve: cubes hold what they should, cuts lose nothing and keep to the borders of cubes."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from maintainer.planning.curve.curve import bit_order, box_of, cube_of, cut_curve
from tests.support.tables.curve_lake import address_of

bits_lists = st.lists(st.integers(0, 6), min_size=1, max_size=4)


@st.composite
def boxes(draw: st.DrawFn) -> tuple[list[int], list[int], list[int]]:
    bits = draw(bits_lists)
    ends = [sorted(draw(st.tuples(*[st.integers(0, (1 << count) - 1)] * 2))) for count in bits]
    return [a for a, _ in ends], [b for _, b in ends], bits


@given(boxes())
def test_the_cube_of_a_box_is_the_common_prefix_of_its_addresses(box: tuple[list[int], list[int], list[int]]) -> None:
    low, high, bits = box
    length = sum(bits)
    texts = [format(address_of(corner, bits), f"0{length}b") if length else "" for corner in (low, high)]
    prefix = 0
    while prefix < length and texts[0][prefix] == texts[1][prefix]:
        prefix += 1
    assert cube_of(low, high, bits) == texts[0][:prefix]


@given(boxes(), st.data())
def test_every_point_of_a_box_is_in_its_cube(box: tuple[list[int], list[int], list[int]], data: st.DataObject) -> None:
    low, high, bits = box
    point = [data.draw(st.integers(a, b)) for a, b in zip(low, high, strict=True)]
    cube = cube_of(low, high, bits)
    address = format(address_of(point, bits), f"0{sum(bits)}b") if sum(bits) else ""
    assert address.startswith(cube)
    cube_low, cube_high = box_of(cube, bits)
    assert all(a <= b <= c for a, b, c in zip(cube_low, point, cube_high, strict=True))


@given(bits_lists)
def test_every_bit_has_its_place_once(bits: list[int]) -> None:
    order = bit_order(bits)
    assert len(order) == len(set(order)) == sum(bits)


@given(st.lists(st.integers(0, 255), min_size=1, max_size=300), st.integers(1, 50))
def test_cuts_are_within_the_bound_and_on_the_borders_of_cubes(addresses: list[int], max_rows: int) -> None:
    counts = sorted(Counter(addresses).items())
    starts = cut_curve(counts, num_bits=8, max_rows=max_rows)
    assert starts[0] == 0
    assert list(starts) == sorted(set(starts))
    ends = [*starts[1:], 256]
    for start, end in zip(starts, ends, strict=True):
        inside = [(address, rows) for address, rows in counts if start <= address < end]
        total = sum(rows for _, rows in inside)
        assert inside
        assert total <= max_rows * 5 / 4 or len(inside) == 1
        first, last = format(inside[0][0], "08b"), format(inside[-1][0], "08b")
        common = next((n for n in range(8) if first[n] != last[n]), 8)
        border = int(first[:common].ljust(8, "0"), 2), int(first[:common].ljust(8, "1"), 2)
        others = [address for address, _ in counts if border[0] <= address <= border[1] and not start <= address < end]
        assert not others
