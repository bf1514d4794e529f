"""Where rows that were read lie in new files, compared with the rows themselves carried through the same rewrite."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maintainer.delta.log.staged_file import WrittenFile
from maintainer.delta.rewrite.commit.carried_deletes import (
    CannotCarryError,
    RowsRead,
    _places_of_deleted,
    places_in_bin,
    places_in_files,
)
from maintainer.model.plan.lanes import Lane, LaneChoice


@given(st.data())
def test_the_rows_that_stay_are_those_that_nobody_deleted(data: st.DataObject) -> None:
    read, now, written, gone = [], [], [], set()
    for number in range(data.draw(st.integers(1, 4))):
        num_rows = data.draw(st.integers(0, 12))
        rows = range(num_rows)
        before = sorted(data.draw(st.sets(st.sampled_from(rows)))) if num_rows else []
        is_live = data.draw(st.booleans()) or not num_rows
        more = data.draw(st.sets(st.sampled_from(rows))) if num_rows else set()
        read.append(RowsRead(num_rows, before))
        now.append(sorted(more | set(before)) if is_live else None)
        written += [(number, row) for row in rows if row not in before]
        gone |= {(number, row) for row in rows if not is_live or row in more}
    order = data.draw(st.permutations(range(len(written))))
    cut = data.draw(st.integers(0, len(written)))
    files = [np.array(order[:cut], dtype=np.int64), np.array(order[cut:], dtype=np.int64)]

    places, num_rows = places_in_bin(list(zip(read, now, strict=True)))
    assert num_rows == len(written)
    assert {written[place] for place in places} == gone & set(written)
    (in_one_file,) = places_in_files(places, None)
    assert in_one_file == sorted(places)
    deleted = places_in_files(places, files)
    stay = [written[order] for file, hidden in zip(files, deleted, strict=True)
            for place, order in enumerate(file.tolist()) if place not in set(hidden)]  # fmt: skip
    assert sorted(stay) == sorted(set(written) - gone)


def test_rows_that_came_back_are_not_carried_over() -> None:
    with pytest.raises(CannotCarryError, match="back"):
        RowsRead(5, (1, 3)).since_then([1, 4])


def test_a_vector_of_another_file_is_not_carried_over() -> None:
    assert RowsRead(5, (1,)).since_then([1, 4]) == [3]
    with pytest.raises(CannotCarryError, match="does not have"):
        RowsRead(5, (1,)).since_then([1, 5])


@pytest.mark.parametrize(("columns", "is_carried"), [(("a",), False), ((), True)])
def test_a_bin_in_an_order_of_which_nothing_is_kept_is_not_carried_over(
    columns: tuple[str, ...], is_carried: bool
) -> None:
    """Also where it is one file: its rows are not where they were read."""
    lanes = {0: LaneChoice(Lane.LOCAL, "small")}
    job: Any = SimpleNamespace(lanes=lanes, row_orders={}, step=SimpleNamespace(order_columns=columns))
    files = [WrittenFile({"path": "new", "stats": '{"numRecords": 0}'})]
    if is_carried:
        assert _places_of_deleted(job, 0, [], [], files) == [[]]
    else:
        with pytest.raises(CannotCarryError, match="without keeping the place"):
            _places_of_deleted(job, 0, [], [], files)
