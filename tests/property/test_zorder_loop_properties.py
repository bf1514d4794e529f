"""Laws of the loop: it ends, no turn is without progress, nothing is lost, and order does not matter."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from maintainer.model.plan.zorder_turn import Strategy
from maintainer.planning.curve.curve_files import CurveFile, curve_files
from maintainer.planning.zorder.turn_strategies import leveled_groups
from tests.support.tables.curve_lake import CurveLake, Row, revision_of, settings_of

values = st.integers(-50, 50)
rows = st.lists(st.tuples(values, values), min_size=1, max_size=60)
appends = st.lists(rows, min_size=1, max_size=12)
strategies = st.permutations(list(Strategy)).flatmap(
    lambda order: st.integers(1, 3).map(lambda number: tuple(order[:number]))
)


def lake_of(batches: list[list[Row]], bits: int = 3, overhead: int = 0) -> CurveLake:
    lake = CurveLake(revision_of([row for batch in batches for row in batch], max_bits=bits), overhead=overhead)
    for batch in batches:
        lake.append(batch, partition=(("day", str(len(batch) % 2)),))
    return lake


@settings(deadline=None)
@given(appends, strategies, st.sampled_from([5, 40, 1000]), st.sampled_from([30, 1 << 40]))
def test_the_loop_ends_and_a_second_run_finds_nothing(
    batches: list[list[Row]], order: tuple[Strategy, ...], file_size: int, batch_bytes: int
) -> None:
    lake = lake_of(batches)
    if lake.revision.num_bits == 0:
        return
    before = sorted(row for rows_of_file in lake.rows.values() for row in rows_of_file)
    options = settings_of(
        lake.revision, strategies=order, max_file_size_bytes=file_size,
        batch_bytes=batch_bytes, bytes_per_iteration=batch_bytes,
    )  # fmt: skip
    lake.run(options, max_turns=600)
    assert sorted(row for rows_of_file in lake.rows.values() for row in rows_of_file) == before
    assert lake.choose(options) is None


@settings(deadline=None)
@given(appends, strategies, st.sampled_from([20, 100, 1000]), st.sampled_from([1, 10, 60]))
def test_the_loop_ends_when_files_are_larger_or_smaller_than_their_rows(
    batches: list[list[Row]], order: tuple[Strategy, ...], file_size: int, overhead: int
) -> None:
    """Footers and compression: what was planned by bytes comes out as other files than were foreseen."""
    lake = lake_of(batches, overhead=overhead)
    if lake.revision.num_bits == 0:
        return
    before = sorted(row for rows_of_file in lake.rows.values() for row in rows_of_file)
    options = settings_of(lake.revision, strategies=order, max_file_size_bytes=file_size)
    lake.run(options, max_turns=600)
    assert sorted(row for rows_of_file in lake.rows.values() for row in rows_of_file) == before
    assert lake.choose(options) is None


@settings(deadline=None)
@given(appends, st.sampled_from([5, 40, 1000]))
def test_no_turn_is_without_progress(batches: list[list[Row]], file_size: int) -> None:
    """Each turn indexes files, settles files, makes fewer files, or moves rows into deeper cubes."""
    lake = lake_of(batches)
    if lake.revision.num_bits == 0:
        return
    options = settings_of(lake.revision, max_file_size_bytes=file_size)
    while (chosen := lake.choose(options)) is not None:
        before = measure(lake)
        lake.carry_out(chosen)
        after = measure(lake)
        match chosen.planned_turn.strategy:
            case Strategy.UNINDEXED:
                assert after[0] < before[0]
            case Strategy.LEVELED:
                assert after[0] == before[0]
                assert (after[2], after[3]) < (before[2], before[3])
            case Strategy.PIECES:
                assert after[0] == before[0]
                assert after[1] < before[1]


def measure(lake: CurveLake) -> tuple[int, int, int, int]:
    """(unindexed files, unsettled files, rows by the depth that their cubes lack, files)."""
    indexed = curve_files(lake.files.values(), lake.revision, lake.ranges)
    lacking = sum(file.elements * (lake.revision.num_bits - len(file.cube)) for file in indexed)
    unsettled = sum(not file.settled for file in indexed)
    return (len(lake.files) - len(indexed), unsettled, lacking, len(indexed))


@settings(deadline=None)
@given(appends, st.randoms(use_true_random=False))
def test_groups_do_not_depend_on_the_order_of_files(batches: list[list[Row]], shuffler: random.Random) -> None:
    lake = lake_of(batches)
    if lake.revision.num_bits == 0:
        return
    lake.run(settings_of(lake.revision, strategies=(Strategy.UNINDEXED,), max_file_size_bytes=20))
    files: list[CurveFile] = curve_files(lake.files.values(), lake.revision, lake.ranges)
    expected = leveled_groups(files)
    shuffler.shuffle(files)
    assert leveled_groups(files) == expected
