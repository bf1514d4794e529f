"""What a full Z-order did to the layout, measured on grids whose answer is plain arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from maintainer.model.table.table_facts import ColumnRanges, FileRange, TableFacts
from maintainer.planning.operations import full_zorder as measured
from maintainer.planning.operations.full_zorder import order_change
from tests.support.tables.builders import make_facts, make_file

TAG = ("maintainer.zorder", "x,y")
COLUMNS = ("x", "y")
LONGS = dict.fromkeys(COLUMNS, "long")
SIDE = 1000

Ends = tuple[object, object]


def table(
    boxes: Sequence[Sequence[Ends]], *, types: Sequence[str] = ("long", "long"), tagged: bool = False
) -> TableFacts:
    """A table with a file of 100 bytes for each box: from where to where its rows lie in each column."""
    columns = COLUMNS[: len(types)]
    tags = dict([TAG]) if tagged else {}
    files = tuple(make_file(f"f{number:04}", size=100, tags=tags) for number in range(len(boxes)))
    ranges: dict[tuple[str, str], tuple[FileRange, ...]] = {
        file.key: tuple(
            (None if low is None else str(low), None if high is None else str(high), False) for low, high in box
        )
        for file, box in zip(files, boxes, strict=True)
    }
    return replace(
        make_facts(files=files, columns=dict(zip(columns, types, strict=True))),
        column_ranges=ColumnRanges(columns, ranges),
    )


def stripes(num_files: int) -> list[list[Ends]]:
    """Files that each span a stripe of x and all of y, as appends in the order of x leave them."""
    wide = SIDE // num_files
    return [[(place * wide, (place + 1) * wide - 1), (0, SIDE - 1)] for place in range(num_files)]


def tiles(side: int) -> list[list[Ends]]:
    wide = SIDE // side
    return [[(x * wide, (x + 1) * wide - 1), (y * wide, (y + 1) * wide - 1)] for x in range(side) for y in range(side)]


def everywhere(num_files: int) -> list[list[Ends]]:
    return [[(0, SIDE - 1), (0, SIDE - 1)] for _ in range(num_files)]


def test_files_that_were_everywhere_are_read_by_every_query_before_and_by_few_after() -> None:
    change = order_change(LONGS, TAG, table(everywhere(30)), table(tiles(5), tagged=True))
    assert change is not None
    assert (change.layout.before.files_read, change.layout.before.overlap_depth) == (30.0, 30.0)
    # A point lies in one of 25 tiles; a range of a sixteenth of each column meets up to four.
    assert 1.0 <= change.layout.after.files_read < 2.0
    assert change.layout.before.bytes_read == 3000
    assert (change.layout.before.unindexed_ratio, change.layout.after.unindexed_ratio) == (1.0, 0.0)
    assert change.boxes is not None
    assert (change.boxes.columns, change.boxes.num_ranks) == (COLUMNS, (64, 64))
    assert set(change.boxes.before) == {(0, 63, 0, 63)}
    widths = {(high_x - low_x, high_y - low_y) for low_x, high_x, low_y, high_y in change.boxes.after or ()}
    assert widths <= {(width, height) for width in (12, 13, 14) for height in (12, 13, 14)}


def test_a_scale_of_few_files_does_not_make_stripes_worse_than_they_were() -> None:
    """Ends of files alone would be a scale of four steps, by which each query met half of the stripes."""
    change = order_change(LONGS, TAG, table(stripes(20)), table(tiles(2)))
    assert change is not None
    assert 1.0 <= change.layout.before.files_read <= 3.0
    assert 1.0 <= change.layout.after.files_read <= 2.0


@pytest.mark.parametrize(
    ("type_name", "spell"),
    [
        ("long", str),
        ("double", lambda value: repr(float(value))),
        ("decimal(12,2)", lambda value: f"{value}.25"),
        ("date", lambda value: f"{2020 + value // 360}-{value % 360 // 30 + 1:02}-{value % 30 // 2 + 1:02}"),
        ("timestamp", lambda value: f"2026-11-25T{value // 60:02}:{value % 60:02}:00.000Z"),
        ("string", lambda value: f"order-{value:05}"),
    ],
)
def test_every_type_has_a_scale(type_name: str, spell: Callable[[int], str]) -> None:
    def spelled(boxes: list[list[Ends]]) -> list[list[Ends]]:
        return [[(spell(int(str(low))), spell(int(str(high)))) for low, high in box] for box in boxes]

    types = (type_name, type_name)
    change = order_change(
        dict.fromkeys(COLUMNS, type_name),
        TAG,
        table(spelled(everywhere(9)), types=types),
        table(spelled(tiles(4)), types=types),
    )
    assert change is not None
    assert change.layout.before.files_read == 9.0
    assert change.layout.after.files_read < 4.0


def test_one_column_has_figures_and_no_picture() -> None:
    before = table([[(0, SIDE)]] * 8, types=("long",))
    after = table([[(place * 100, place * 100 + 99)] for place in range(10)], types=("long",))
    change = order_change({"x": "long"}, TAG, before, after)
    assert change is not None
    assert change.boxes is None
    assert change.layout.before.files_read == 8.0
    assert change.layout.after.files_read < 3.0


def test_a_file_of_which_the_log_knows_nothing_may_hold_everything() -> None:
    unknown: list[list[Ends]] = [[(None, None), (None, None)], *tiles(3)]
    change = order_change(LONGS, TAG, table(everywhere(2)), table(unknown))
    assert change is not None
    assert change.layout.after.files_read >= 2.0  # it, and one tile
    huge = order_change(LONGS, TAG, table(everywhere(2)), table([[(0, "9" * 400), (0, 5)], *tiles(3)]))
    assert huge is not None


def test_where_nothing_can_be_measured_there_is_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    one_value = table([[(7, 7), (7, 7)]] * 3)
    assert order_change(LONGS, TAG, one_value, one_value) is None
    blind = replace(one_value, column_ranges=None)
    assert order_change(LONGS, TAG, blind, blind) is None
    others = replace(one_value, column_ranges=ColumnRanges(("a", "b"), {}))
    assert order_change(LONGS, TAG, others, others) is None
    endless = table([[("Infinity", "Infinity"), ("NaN", "NaN")]] * 3, types=("double", "double"))
    assert order_change(dict.fromkeys(COLUMNS, "double"), TAG, endless, endless) is None
    monkeypatch.setattr(measured, "MAX_FILES_MEASURED", 2)
    assert order_change(LONGS, TAG, table(everywhere(3)), table(tiles(1))) is None


def test_a_table_that_was_emptied_meanwhile_is_measured_as_empty() -> None:
    change = order_change(LONGS, TAG, table(everywhere(3)), table([]))
    assert change is not None
    assert (change.layout.after.files_read, change.layout.after.unindexed_ratio) == (0.0, 0.0)
