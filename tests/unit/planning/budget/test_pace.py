"""The pace of rewrites: what each commit takes, and each byte, fitted to past steps."""

from __future__ import annotations

from functools import reduce
from operator import add

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maintainer.planning.budget.ranking import DEFAULT_BYTES_PER_SECOND, FASTEST_BYTES_PER_SECOND, Pace, Timed, pace_of
from maintainer.planning.budget.run_budget import Learned

MIB = 2**20


def timed(*steps: tuple[int, int, float]) -> Timed:
    return reduce(add, (Timed.of_step(*step) for step in steps), Timed())


def test_what_a_commit_takes_is_told_from_what_a_byte_takes() -> None:
    # Three seconds a commit and 10 MiB a second.
    pace = pace_of(timed((1, MIB, 3.1), (1, 50 * MIB, 8.0), (2, 200 * MIB, 26.0)))
    assert pace.commit_seconds == pytest.approx(3.0)
    assert pace.bytes_per_second == pytest.approx(10 * MIB)


def test_small_tables_alone_do_not_make_a_large_one_last_all_night() -> None:
    pace = pace_of(timed(*[(1, MIB, 16.0)] * 7))
    learned = Learned({"compact": pace.bytes_per_second}, commit_seconds={"compact": pace.commit_seconds})
    assert pace.bytes_per_second == DEFAULT_BYTES_PER_SECOND
    assert learned.seconds_of("compact", MIB) == pytest.approx(16.0)
    assert learned.seconds_of("compact", 1024 * MIB) == pytest.approx(16.0 + 1023 / 20)
    assert learned.seconds_of("compact", 1024 * MIB, num_commits=0) == pytest.approx(51.2)


def test_one_large_table_is_a_rate() -> None:
    assert pace_of(timed((1, 1024 * MIB, 32.0))) == Pace(0.0, 32 * MIB)


def test_a_larger_step_that_was_quicker_makes_no_byte_free() -> None:
    pace = pace_of(timed((1, MIB, 20.0), (1, 100 * MIB, 10.0)))
    assert pace.bytes_per_second == FASTEST_BYTES_PER_SECOND
    assert pace.commit_seconds == pytest.approx(15.0, rel=0.01)


STEPS = st.lists(st.tuples(st.integers(1, 50), st.integers(1, 2**44), st.floats(0.001, 1e5)), min_size=1, max_size=30)


@given(STEPS)
def test_past_steps_together_take_what_they_took(steps: list[tuple[int, int, float]]) -> None:
    found = timed(*steps)
    pace = pace_of(found)
    assert pace.commit_seconds >= 0
    assert pace.bytes_per_second > 0
    again = pace.commit_seconds * found.num_commits + found.size_bytes / pace.bytes_per_second
    assert again == pytest.approx(found.seconds, rel=1e-6)


@given(STEPS, STEPS)
def test_runs_add_up(some: list[tuple[int, int, float]], others: list[tuple[int, int, float]]) -> None:
    both, apart = timed(*some, *others), timed(*some) + timed(*others)
    assert (both.num_commits, both.size_bytes) == (apart.num_commits, apart.size_bytes)
    assert both.seconds == pytest.approx(apart.seconds)
    assert both.products == pytest.approx(apart.products)
