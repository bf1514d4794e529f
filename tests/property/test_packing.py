"""Laws of packing: nothing is lost, nothing overflows, partitions stay apart, order does not matter."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from maintainer.model.plan.steps import Batch, Bin
from maintainer.planning.selection.file_selection import pack_batches, pack_bins
from tests.support.tables.builders import make_files

sizes = st.lists(st.integers(0, 130), max_size=60)


@given(sizes, st.integers(1, 120))
def test_pack_bins_keeps_every_file_exactly_once(sizes: list[int], bound: int) -> None:
    files = make_files(*sizes)
    packed = [file.key for bin_ in pack_bins(files, max_bin_bytes=bound) for file in bin_.files]
    assert sorted(packed) == sorted(file.key for file in files)


@given(sizes, st.integers(1, 120))
def test_pack_bins_holds_the_bound_except_for_a_file_above_it(sizes: list[int], bound: int) -> None:
    for bin_ in pack_bins(make_files(*sizes), max_bin_bytes=bound):
        assert bin_.size_bytes <= bound or len(bin_.files) == 1


@given(sizes, st.integers(1, 120))
def test_no_two_bins_fit_into_one(sizes: list[int], bound: int) -> None:
    """The reason that a rewrite is a fixed point: its results cannot be joined further."""
    totals = sorted(bin_.size_bytes for bin_ in pack_bins(make_files(*sizes), max_bin_bytes=bound))
    assert len(totals) < 2 or totals[0] + totals[1] > bound


@given(sizes, st.integers(1, 120), st.randoms(use_true_random=False))
def test_pack_bins_does_not_depend_on_order(sizes: list[int], bound: int, shuffler: random.Random) -> None:
    files = list(make_files(*sizes))
    expected = pack_bins(files, max_bin_bytes=bound)
    shuffler.shuffle(files)
    assert pack_bins(files, max_bin_bytes=bound) == expected


@given(sizes, st.integers(1, 120))
def test_pack_bins_gives_the_bins_of_the_rule_as_delta_writes_it(sizes: list[int], bound: int) -> None:
    """A second, independent reading of the rule: close when the next file does not fit, keep no empty bin."""
    expected: list[list[int]] = []
    current: list[int] = []
    for size in sorted(sizes):
        if size + sum(current) > bound:
            expected.append(current)
            current = [size]
        else:
            current = [*current, size]
    expected.append(current)
    actual = [[file.size_bytes for file in bin_.files] for bin_ in pack_bins(make_files(*sizes), max_bin_bytes=bound)]
    assert actual == [group for group in expected if group]


@given(sizes, st.integers(1, 120), st.integers(1, 400), st.randoms(use_true_random=False))
def test_pack_batches_keeps_every_bin_within_the_bound_whatever_the_order(
    sizes: list[int], bound: int, batch_bound: int, shuffler: random.Random
) -> None:
    bins = list(pack_bins(make_files(*sizes), max_bin_bytes=bound))
    batches = pack_batches(bins, batch_size_bytes=batch_bound)
    assert sorted(_names(bin_) for batch in batches for bin_ in batch.bins) == sorted(_names(bin_) for bin_ in bins)
    assert all(_fits(batch, batch_bound) for batch in batches)
    shuffler.shuffle(bins)
    assert pack_batches(bins, batch_size_bytes=batch_bound) == batches


def _names(bin_: Bin) -> list[str]:
    return [file.path for file in bin_.files]


def _fits(batch: Batch, bound: int) -> bool:
    return batch.size_bytes <= bound or len([bin_ for bin_ in batch.bins if bin_.size_bytes]) == 1
