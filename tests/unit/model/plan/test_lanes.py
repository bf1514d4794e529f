"""What is said of bins that went to another lane than planned."""

from __future__ import annotations

import pytest

from maintainer.model.plan.lanes import Lane, LaneUse


@pytest.mark.parametrize(
    ("lane", "num_bins", "note"),
    [
        (Lane.COPY, 3, None),
        (Lane.LOCAL, 1, "1 bin went to lane local: two schemas"),
        (Lane.SPARK, 1_200, "1,200 bins went to lane spark: two schemas"),
    ],
)
def test_only_another_lane_than_planned_is_noted(lane: Lane, num_bins: int, note: str | None) -> None:
    assert LaneUse(lane, Lane.COPY, num_bins, "two schemas", "duckdb").note == note
