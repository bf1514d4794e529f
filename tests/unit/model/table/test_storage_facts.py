"""Counting files by size: buckets add up, and what was removed and added gives what is left."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from maintainer.model.table.storage_facts import SizeBucket, combined, file_sizes

SIZES = st.lists(st.integers(0, 2**40), max_size=30)


def test_bounds_of_buckets() -> None:
    assert file_sizes([0, 1, 1023, 1024, 2047, 2048]) == (
        SizeBucket(0, 2, 1),
        SizeBucket(9, 1, 1023),
        SizeBucket(10, 2, 3071),
        SizeBucket(11, 1, 2048),
    )
    assert file_sizes([]) == ()


@given(SIZES, SIZES, SIZES)
def test_sizes_after_follow_from_those_before(unchanged: list[int], removed: list[int], added: list[int]) -> None:
    after = combined(file_sizes(unchanged + removed), [file_sizes(removed)], [file_sizes(added)])
    assert after == file_sizes(unchanged + added)
    assert sum(size_class.num_files for size_class in after) == len(unchanged) + len(added)
    assert sum(size_class.size_bytes for size_class in after) == sum(unchanged) + sum(added)


def test_what_others_removed_leaves_no_negative_bucket() -> None:
    assert combined(file_sizes([5]), [file_sizes([5, 6])], []) == ()
