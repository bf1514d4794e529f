"""Boxes of a table's files for a picture: at most so many, the first look before a step and the newest after it."""

from __future__ import annotations

from dataclasses import replace

from maintainer.model.table.table_facts import MAX_BOXES, ColumnRanges, LayoutBoxes, TableFacts
from maintainer.planning.curve.curve_files import layout_boxes
from maintainer.planning.curve.revision import Revision
from tests.support.tables.builders import make_facts
from tests.support.tables.curve_lake import CurveLake, revision_of

GRID = [(x, y) for x in range(16) for y in range(16)]
REVISION = revision_of(GRID, max_bits=4)


def facts_of(lake: CurveLake, columns: tuple[str, ...] | None = None) -> TableFacts:
    by_file = {key: tuple(ranges) for key, ranges in lake.ranges.items()}
    ranges = ColumnRanges(REVISION.names() if columns is None else columns, by_file)
    return replace(make_facts(files=tuple(lake.files.values())), column_ranges=ranges)


def lake_of(*files: list[tuple[int, int]]) -> CurveLake:
    lake = CurveLake(REVISION)
    for rows in files:
        lake.add(rows)
    return lake


def test_the_first_look_is_before_and_each_later_one_after() -> None:
    wide = facts_of(lake_of(GRID))
    narrow = facts_of(lake_of([(0, 0), (0, 15)], [(15, 3), (15, 3)]))
    first = layout_boxes(REVISION, wide, None)
    last_rank = REVISION.columns[0].num_ranks - 1
    assert first is not None
    assert (first.columns, first.before) == (REVISION.names(), ((0, last_rank, 0, last_rank),))
    assert (first.num_before, first.after) == (1, None)
    second = layout_boxes(REVISION, narrow, layout_boxes(REVISION, wide, first))
    assert second is not None
    assert (second.before, second.num_after) == (first.before, 2)
    low, high = REVISION.columns[0].rank_of(0), REVISION.columns[0].rank_of(15)
    assert second.after is not None
    assert {box[:2] for box in second.after} == {(low, low), (high, high)}


def test_of_very_many_files_every_nth_is_kept() -> None:
    boxes = layout_boxes(REVISION, facts_of(lake_of(*([(1, 1)] for _ in range(MAX_BOXES * 2 + 1)))), None)
    assert boxes is not None
    assert (len(boxes.before), boxes.num_before) == (81, MAX_BOXES * 2 + 1)
    nothing = layout_boxes(REVISION, facts_of(lake_of()), None)
    assert nothing is not None
    assert (nothing.before, nothing.num_before) == ((), 0)


def test_what_cannot_be_drawn_leaves_what_was_there() -> None:
    facts = facts_of(lake_of(GRID))
    earlier = LayoutBoxes(("a", "b"), (1, 1), (), 0)
    single = Revision(1, REVISION.columns[:1])
    assert layout_boxes(None, facts, earlier) is earlier
    assert layout_boxes(REVISION, replace(facts, column_ranges=None), earlier) is earlier
    assert layout_boxes(REVISION, facts_of(lake_of(GRID), ("x", "y")), None) is None
    assert layout_boxes(single, facts_of(lake_of(GRID), single.names()), earlier) is earlier
