"""What a look-up reads by smallest and largest values, and where files lie in two columns."""

from __future__ import annotations

from maintainer.model.run.table_look import BOX_PLACES, MAX_BOXES
from maintainer.planning.curve.lookup_cost import RangedFile, compare_lookups, files_read

WIDE = [RangedFile(10, (("0", "100", False), ("a", "z", False))) for _ in range(4)]
SORTED = [
    RangedFile(20, ((str(25 * place), str(25 * place + 24), False), (low, high, False)))
    for place, (low, high) in enumerate((("a", "f"), ("g", "l"), ("m", "s"), ("t", "z")))
]


def test_files_that_all_cover_a_value_are_all_read_and_sorted_ones_are_skipped() -> None:
    before, after = compare_lookups(["integer", "string"], WIDE, SORTED)
    assert before.lookups == (4.0, 4.0)
    assert after.lookups == (1.0, 1.0)
    assert before.boxes == ((0, BOX_PLACES, 0, BOX_PLACES),) * 4
    assert after.boxes[0][:2] == (0, 125)
    assert after.boxes[0][1] < after.boxes[1][0]


def test_a_file_of_which_nothing_is_known_is_read_by_every_look_up() -> None:
    silent = [
        RangedFile(10, None),
        RangedFile(10, ((None, None, True),)),
        RangedFile(10, (("not a number", "9", False),)),
        RangedFile(10, (("9", "x", False),)),
        RangedFile(10, (("9", "3", False),)),
    ]
    before, after = compare_lookups(["integer"], silent, [*silent, RangedFile(10, (("1", "2", False),))])
    assert (before.lookups, after.lookups) == ((5.0,), (6.0,))
    assert before.boxes == after.boxes == ()
    (unknown, _) = compare_lookups(["integer", "integer"], [RangedFile(1, None)], [])
    assert unknown.boxes == ((0, BOX_PLACES, 0, BOX_PLACES),)


def test_large_files_ask_more_often_and_an_empty_one_asks_too() -> None:
    spans = [(0, 9), (0, 3), (8, 9)]
    # The middle of the first is 4 (itself alone), of the second 1 (two files), of the third 8 (two files).
    assert files_read(spans, [98, 1, 1]) == (98 + 2 + 2) / 100
    assert files_read([(0, 0)], [0]) == 1.0
    assert files_read([], []) == 0.0


def test_the_boxes_of_a_large_table_are_bounded_and_no_files_make_none() -> None:
    many = [RangedFile(1, ((str(n), str(n), False), ("a", "b", False))) for n in range(10 * MAX_BOXES + 1)]
    before, after = compare_lookups(["long", "string"], many, [])
    assert MAX_BOXES // 2 < len(before.boxes) <= MAX_BOXES
    assert (after.lookups, after.boxes) == ((0.0, 0.0), ())
