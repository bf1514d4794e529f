"""Turns: which files are unindexed, the order of the strategies, what bounds a turn; the figures of the layout."""

from __future__ import annotations

import itertools

import pytest

from maintainer.model.plan.layout_tags import CURVE_CUBE_TAG, ELEMENTS_TAG, REVISION_TAG, STRATEGY_TAG
from maintainer.model.plan.zorder_turn import Strategy
from maintainer.model.table.table_facts import DataFile
from maintainer.planning.curve.curve_files import (
    divided_share,
    layout_figures,
    queries,
    read_share,
    sides_of,
    unindexed_bytes,
)
from maintainer.planning.curve.revision import Revision
from maintainer.planning.zorder.turn_choice import choose_turn, even_parts, forecast, num_files_of, sort_candidates
from tests.support.tables.builders import NOW_MS, make_file
from tests.support.tables.curve_lake import CurveLake, revision_of, settings_of

GRID = [(x, y) for x in range(16) for y in range(16)]
REVISION = revision_of(GRID, max_bits=4)


def tagged(
    path: str, cube: str, elements: int = 500, *, revision: Revision = REVISION, changes: dict[str, str] | None = None
) -> DataFile:
    tags = {
        REVISION_TAG: revision.tag,
        CURVE_CUBE_TAG: cube,
        ELEMENTS_TAG: str(elements),
        STRATEGY_TAG: "unindexed",
        **(changes or {}),
    }
    return make_file(path, size=elements, records=elements, tags={name: value for name, value in tags.items() if value})


def unindexed_of(files: list[DataFile], **changes: object) -> list[str]:
    settings = settings_of(REVISION, **changes)
    return [file.path for file in sort_candidates(files, settings, REVISION, REVISION, {}).unindexed]


@pytest.mark.parametrize(
    "tags",
    [
        {REVISION_TAG: ""},
        {REVISION_TAG: "1:000000000000"},
        {REVISION_TAG: "someone else's"},
        {CURVE_CUBE_TAG: "2"},
        {CURVE_CUBE_TAG: "0" * 9},
        {CURVE_CUBE_TAG: "", ELEMENTS_TAG: "many"},
        {ELEMENTS_TAG: "-1"},
    ],
)
def test_foreign_and_damaged_tags_count_as_unindexed(tags: dict[str, str]) -> None:
    assert unindexed_of([tagged("good", "01"), tagged("bad", "01", changes=tags)]) == ["bad"]


def test_files_of_another_revision_are_unindexed_unless_it_is_the_one_worked_on() -> None:
    old = revision_of(GRID, number=7, max_bits=3)
    files = [tagged("new", "01"), tagged("old", "01", revision=old)]
    assert unindexed_of(files) == ["old"]
    both = sort_candidates(files, settings_of(REVISION), REVISION, old, {})
    assert both.unindexed == ()
    assert [entry.file.path for entry in both.on_curve] == ["old"]


def test_unindexed_files_are_taken_oldest_first_up_to_the_batch() -> None:
    files = [make_file(f"f{n}", size=400, modified_at_ms=NOW_MS - n) for n in range(5)]
    settings = settings_of(REVISION, batch_bytes=1000)
    candidates = sort_candidates(files, settings, REVISION, REVISION, {})
    chosen = choose_turn(settings, candidates, REVISION, REVISION)
    assert chosen is not None
    assert chosen.planned_turn.strategy is Strategy.UNINDEXED
    assert [file.path for file in chosen.batch.files] == ["f4", "f3"]


def test_a_file_larger_than_the_batch_is_taken_alone_but_never_beyond_the_budget() -> None:
    files = [make_file("large", size=5000, modified_at_ms=1), make_file("small", size=10, modified_at_ms=2)]
    for budget, expected in ((None, ["large"]), (4000, None)):
        settings = settings_of(REVISION, batch_bytes=1000, budget_bytes=budget)
        chosen = choose_turn(settings, sort_candidates(files, settings, REVISION, REVISION, {}), REVISION, REVISION)
        assert (None if chosen is None else [file.path for file in chosen.batch.files]) == expected


def test_files_from_before_the_timestamp_are_left() -> None:
    files = [make_file("old", modified_at_ms=99), make_file("new", modified_at_ms=100)]
    assert unindexed_of(files, from_timestamp_ms=100) == ["new"]


def test_a_lone_file_is_left_but_not_one_with_many_deleted_rows() -> None:
    assert unindexed_of([make_file("a", size=1999)]) == []
    assert unindexed_of([make_file("a", size=2000)]) == ["a"]
    assert unindexed_of([make_file("a", size=100, deleted=50)]) == ["a"]
    assert unindexed_of([tagged("b", "0"), make_file("a", size=100)]) == ["a"]


def test_only_the_partitions_of_the_plan_are_looked_at() -> None:
    files = [make_file(f"{day}{n}", partition={"day": day}) for day in "ab" for n in range(2)]
    assert unindexed_of(files, partitions=((("day", "a"),),)) == ["a0", "a1"]


def test_the_first_strategy_that_yields_files_wins() -> None:
    files = [
        make_file("raw", size=300),
        *[tagged(f"l{n}", "01", 500) for n in range(2)],
    ]
    for order in itertools.permutations([Strategy.UNINDEXED, Strategy.LEVELED]):
        settings = settings_of(REVISION, strategies=order)
        chosen = choose_turn(settings, sort_candidates(files, settings, REVISION, REVISION, {}), REVISION, REVISION)
        assert chosen is not None
        assert chosen.planned_turn.strategy is order[0]
        if chosen.planned_turn.strategy is Strategy.LEVELED:
            assert (chosen.planned_turn.level, chosen.planned_turn.cube, chosen.planned_turn.elements) == (
                2,
                "01",
                1000,
            )
    settings = settings_of(REVISION, strategies=())
    assert choose_turn(settings, sort_candidates(files, settings, REVISION, REVISION, {}), REVISION, REVISION) is None


def test_each_partition_is_a_bin_of_its_own() -> None:
    files = [make_file(f"{day}{n}", size=600, partition={"day": day}) for day in "ab" for n in range(4)]
    settings = settings_of(REVISION)
    chosen = choose_turn(settings, sort_candidates(files, settings, REVISION, REVISION, {}), REVISION, REVISION)
    assert chosen is not None
    assert [bin_.partition_values for bin_ in chosen.batch.bins] == [(("day", "a"),), (("day", "b"),)]
    assert chosen.planned_turn.num_files == (3, 3)


@pytest.mark.parametrize(
    ("size", "partition", "expected"),
    [(10, 100_000, 1), (100, 100_000, 1), (1000, 100_000, 16), (3000, 10_000, 10), (10_000, 10_000, 10), (500, 600, 1)],
)
def test_new_rows_are_written_as_narrow_files(size: int, partition: int, expected: int) -> None:
    assert num_files_of(size, partition, 1000) == expected


def test_pieces_are_taken_where_the_gain_is() -> None:
    """One half of the table lies in full files, in the other small files of the whole half pile up."""
    lake = CurveLake(REVISION)
    lake.append(GRID * 40)
    settings = settings_of(REVISION, strategies=(Strategy.UNINDEXED, Strategy.PIECES))
    lake.run(settings)
    turns = []
    for _ in range(8):
        lake.append([row for row in GRID if row[0] < 8] * 4)
        turns += lake.run(settings)
    pieces = [turn for turn in turns if turn.piece is not None]
    assert pieces
    for turn in pieces:
        assert turn.piece is not None
        assert turn.planned_turn.cube is not None
        assert turn.planned_turn.cube.startswith("0")
        assert turn.piece.excess >= 0.4


def test_the_cost_model() -> None:
    assert read_share([1.0, 1.0]) == 1.0
    assert read_share([0.15, 0.4]) == pytest.approx(0.25 * 0.5)
    assert sides_of((0, 4), (7, 4), (16, 5)) == (0.5, 0.2)
    assert divided_share([1.0, 1.0], [4, 4], 0, 1) == 1.0
    assert divided_share([1.0, 1.0], [4, 4], 0, 4) == pytest.approx(0.6 * 0.6)
    assert divided_share([1.0, 1.0], [4, 4], 0, 3) == pytest.approx(2 / 3 * 0.36 + 1 / 3 * 0.6)
    assert divided_share([1.0, 1.0], [1, 1], 2, 64) == 1.0


def test_figures_of_the_layout() -> None:
    lake = CurveLake(REVISION)
    for _ in range(4):
        lake.append(GRID * 10)
    before = layout_figures(list(lake.files.values()), REVISION, lake.ranges)
    assert (before.files_read, before.bytes_read, before.overlap_depth, before.unindexed_ratio) == (4, 10_240, 4, 1)
    lake.run(settings_of(REVISION))
    after = layout_figures(list(lake.files.values()), REVISION, lake.ranges)
    assert after.unindexed_ratio == 0
    assert after.overlap_depth == 1
    assert after.bytes_read < 0.4 * before.bytes_read


def test_a_file_without_statistics_is_read_by_every_query() -> None:
    files = [make_file("a", size=100), make_file("b", size=300)]
    figures = layout_figures(files, REVISION, {})
    assert (figures.files_read, figures.bytes_read, figures.overlap_depth) == (2, 400, 2)
    assert layout_figures([], REVISION, {}).files_read == 0


def test_sample_queries_are_always_the_same() -> None:
    assert queries(REVISION) == queries(REVISION)
    assert all(0 <= a <= b < 16 for low, high in queries(REVISION) for a, b in zip(low, high, strict=True))


def test_the_forecast_of_a_turn_is_near_what_comes() -> None:
    lake = CurveLake(REVISION)
    for _ in range(8):
        lake.append(GRID * 10)
    chosen = lake.choose(settings_of(REVISION))
    assert chosen is not None
    files = tuple(lake.files.values())
    now, then = forecast(files, chosen, REVISION, lake.ranges, unindexed_bytes(files, REVISION))
    assert now == layout_figures(files, REVISION, lake.ranges)
    lake.carry_out(chosen)
    came = layout_figures(list(lake.files.values()), REVISION, lake.ranges)
    assert then.unindexed_ratio == came.unindexed_ratio == 0
    assert then.overlap_depth == came.overlap_depth == 1
    assert came.files_read / 2 < then.files_read < came.files_read * 2
    assert then.bytes_read < now.bytes_read / 3


def test_even_parts_are_cubes_that_cover_everything_once() -> None:
    parts = even_parts(REVISION, "", 5, 500)
    assert sum((b - a + 1) * (d - c + 1) for (a, c), (b, d) in ((part.low, part.high) for part in parts)) == 256
    assert [part.size_bytes for part in parts] == [100] * 5
    assert len(even_parts(REVISION, "0" * REVISION.num_bits, 9, 500)) == 1
