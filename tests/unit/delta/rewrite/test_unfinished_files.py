"""Names of data files tell which run wrote them, and for which batch of which step."""

from __future__ import annotations

import itertools

import pytest

from maintainer.delta.rewrite.unfinished_files import prefix_of_attempt, prefix_of_batch
from maintainer.model.table.commit_records import CommitStamp

RUN = "20261122T220000Z-c609"


def test_no_batch_has_the_prefix_of_another() -> None:
    batches = [
        (RUN, "t/zorder", 0),
        (RUN, "t/zorder", 1),
        (RUN, "t/zorder", 11),
        (RUN, "t/compact", 1),
        (RUN + "0", "t/zorder", 1),
    ]
    prefixes = [prefix_of_batch(*batch) for batch in batches]
    assert not [pair for pair in itertools.permutations(prefixes, 2) if pair[0].startswith(pair[1])]
    assert all(prefix.startswith(f"part-{run_id}-") for prefix, (run_id, _, _) in zip(prefixes, batches, strict=True))


def test_each_attempt_of_a_batch_has_a_name_of_its_own() -> None:
    stamp = CommitStamp(RUN, "t/zorder", 1, "digest")
    first, second = prefix_of_attempt(stamp), prefix_of_attempt(stamp)
    assert first != second
    assert {
        first.startswith(prefix_of_batch(RUN, "t/zorder", 1)),
        second.startswith(prefix_of_batch(RUN, "t/zorder", 1)),
    } == {True}


@pytest.mark.parametrize("run_id", ["", "a/b", "..", "x*", "-a"])
def test_what_is_no_run_id_names_no_files(run_id: str) -> None:
    with pytest.raises(ValueError, match="is not the id of a run"):
        prefix_of_batch(run_id, "t/zorder", 0)
