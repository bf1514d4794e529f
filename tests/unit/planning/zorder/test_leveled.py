"""Leveled compaction as its guide describes it: levels, groups, thresholds, order."""

from __future__ import annotations

import pytest

from maintainer.planning.curve.curve_files import CurveFile
from maintainer.planning.zorder.turn_strategies import Group, leveled_groups, select_leveled
from tests.support.tables.builders import NOW_MS, make_file


def on_curve(
    elements: int, cube: str = "", *, name: str = "", day: str | None = None, size: int | None = None
) -> CurveFile:
    partition = {} if day is None else {"day": day}
    path = name or f"{cube or 'root'}-{elements}"
    file = make_file(path, size=elements if size is None else size, records=elements, partition=partition)
    return CurveFile(file, elements, cube, (0, 0), (1, 1), settled=False)


def take(*files: CurveFile, iteration: int = 1 << 40, written: int = 1) -> Group | None:
    selection = select_leveled(
        leveled_groups(files), bytes_per_iteration=iteration, num_files=lambda group: written, num_bits=4
    )
    assert len(selection) <= 1
    return selection[0] if selection else None


def pairs(*cubes: str, elements: int = 60) -> list[CurveFile]:
    """Two files in each cube."""
    return [on_curve(elements, cube, name=f"{cube}{n}") for cube in cubes for n in range(2)]


@pytest.mark.parametrize(
    ("company", "iteration", "cubes"),
    [
        (0, 1000, ["0"]),
        (239, 1000, ["0"]),
        (240, 1000, ["0", "01"]),
        (1000, 1000, ["0", "01", "010"]),
        (1000, 359, ["0", "01"]),
        (1000, 180, ["0"]),
    ],
)
def test_small_groups_of_one_level_go_together(company: int, iteration: int, cubes: list[str]) -> None:
    selection = select_leveled(
        leveled_groups([*pairs("0", "01", "010"), *pairs("1", elements=600), on_curve(60, "11")]),
        bytes_per_iteration=iteration,
        num_files=lambda group: 1,
        num_bits=4,
        company_bytes=company,
    )
    assert [group.cube for group in selection] == cubes
    assert {group.level for group in selection} == {1}


def test_a_group_without_progress_is_no_company_and_keeps_none_out() -> None:
    def num_files(group: Group) -> int:
        return 2 if group.cube == "0101" else 1

    groups = leveled_groups(pairs("01", "0101", "0110"))
    selection = select_leveled(groups, bytes_per_iteration=1000, num_files=num_files, num_bits=4, company_bytes=1000)
    assert [group.cube for group in selection] == ["01", "0110"]


@pytest.mark.parametrize(
    ("level", "first", "last"), [(0, 1, 9), (1, 10, 99), (2, 100, 999), (3, 1_000, 9_999), (4, 10_000, 99_999)]
)
def test_the_table_of_levels(level: int, first: int, last: int) -> None:
    assert [on_curve(elements).level for elements in (first, last, last + 1)] == [level, level, level + 1]


def test_levels_of_very_many_rows_are_exact() -> None:
    """A logarithm in floating point says 15 for 999,999,999,999,999."""
    assert on_curve(10**15 - 1).level == 14
    assert on_curve(10**15).level == 15
    assert on_curve(0).level == 0


def test_a_group_of_level_one_needs_a_hundred_elements() -> None:
    assert take(on_curve(50, "01", name="a"), on_curve(49, "01", name="b")) is None
    group = take(on_curve(50, "01", name="a"), on_curve(50, "01", name="b"))
    assert group is not None
    assert (group.level, group.cube, group.elements, group.threshold) == (1, "01", 100, 100)


def test_files_of_other_levels_cubes_and_partitions_are_other_groups() -> None:
    files = [
        on_curve(60, "01", name="a"),
        on_curve(60, "10", name="b"),
        on_curve(600, "01", name="c"),
        on_curve(60, "01", name="d", day="1"),
        on_curve(60, "01", name="e", day="2"),
    ]
    assert [len(group.files) for group in leveled_groups(files)] == [1] * 5
    assert take(*files) is None


def test_groups_are_taken_by_level_then_depth_then_number_of_blocks() -> None:
    deep = [on_curve(60, "0110", name=f"deep{n}") for n in range(2)]
    many = [on_curve(40, "01", name=f"many{n}") for n in range(3)]
    few = [on_curve(60, "10", name=f"few{n}") for n in range(2)]
    high = [on_curve(600, "", name=f"high{n}") for n in range(2)]
    low = [on_curve(5, "0111", name=f"low{n}") for n in range(3)]
    everything = [*high, *deep, *many, *few, *low]
    cubes = []
    while (group := take(*everything)) is not None:
        cubes.append((group.level, group.cube))
        everything = [file for file in everything if file not in group.files]
    assert cubes == [(0, "0111"), (1, "10"), (1, "01"), (1, "0110"), (2, "")]


def test_an_iteration_takes_the_oldest_files_that_fit() -> None:
    files = [on_curve(80, "0", name=f"f{n}", size=100) for n in range(5)]
    group = take(*files, iteration=250)
    assert group is not None
    assert [file.file.path for file in group.files] == ["f0", "f1"]
    assert take(*files, iteration=150) is None


def test_without_progress_nothing_is_written() -> None:
    """Two files that would become two files in the same deepest cube again; in a wider cube they can be cut."""
    assert take(on_curve(60, "0101", name="a"), on_curve(60, "0101", name="b"), written=2) is None
    assert take(on_curve(60, "010", name="a"), on_curve(60, "010", name="b"), written=2) is not None
    assert take(on_curve(500, "01", name="a")) is None


def test_age_decides_within_a_group() -> None:
    older = make_file("z", size=60, records=60, modified_at_ms=NOW_MS - 1000)
    newer = make_file("a", size=60, records=60, modified_at_ms=NOW_MS)
    files = [CurveFile(file, 60, "1", (0, 0), (1, 1), settled=False) for file in (newer, older)]
    (group,) = leveled_groups(files)
    assert [file.file.path for file in group.files] == ["z", "a"]
