"""Files that a rewrite of ours left: what joins them again, and what does not (bins of 100 bytes)."""

from __future__ import annotations

import pytest

from maintainer.model.plan.layout_tags import PACKED_TAG
from maintainer.model.table.table_facts import DataFile
from tests.support.tables.builders import DAY_MS, HOUR_MS, NOW_MS, make_facts, make_file, make_optimize, make_policy
from tests.unit.planning.operations.compaction_plans import bins_of, left_of, plan


class TestOwnResults:
    """Files that a rewrite wrote are joined again only beside files that came after them."""

    def packed(self, path: str, size: int, days_ago: int = 2, to: str = "100") -> DataFile:
        return make_file(path, size=size, modified_at_ms=NOW_MS - days_ago * DAY_MS, tags={PACKED_TAG: to})

    def test_alone_among_themselves_they_stay(self) -> None:
        planned = plan(make_policy(), make_facts(files=[self.packed("a", 20), self.packed("b", 30)]))
        assert planned.state == "up_to_date"
        assert left_of(planned) == [("at_target", 2, 50)]

    def test_an_older_file_that_was_left_then_is_left_now(self) -> None:
        files = [self.packed("a", 56), make_file("old", size=38)]
        assert left_of(plan(make_policy(), make_facts(files=files))) == [("at_target", 2, 94)]

    def test_one_that_fits_beside_none_of_them_has_no_partner(self) -> None:
        files = [self.packed("a", 56), make_file("old", size=45)]
        assert left_of(plan(make_policy(), make_facts(files=files))) == [("at_target", 1, 56), ("no_partner", 1, 45)]

    def test_a_newer_file_is_joined_with_them(self) -> None:
        files = [self.packed("a", 56), make_file("new", size=38, modified_at_ms=NOW_MS - DAY_MS)]
        assert bins_of(plan(make_policy(), make_facts(files=files))) == [["new", "a"]]

    def test_older_files_of_a_batch_that_failed_are_still_compacted(self) -> None:
        files = [self.packed("a", 56), make_file("old", size=38), make_file("old2", size=60)]
        assert bins_of(plan(make_policy(), make_facts(files=files))) == [["old", "old2"]]

    def test_a_larger_target_makes_them_ordinary_files(self) -> None:
        files = [self.packed("a", 20, to="40"), self.packed("b", 30, to="40")]
        assert bins_of(plan(make_policy(), make_facts(files=files))) == [["a", "b"]]


@pytest.mark.parametrize("size", ["9" * 5000, "\u0663", "-1", "", "1e3"])
def test_a_tag_that_holds_no_size_is_no_tag(size: str) -> None:
    """A tag is written by anybody: it must not stop the table, nor count as ours."""
    files = (make_file("a", size=10, tags={PACKED_TAG: size}), make_file("b", size=10, tags={PACKED_TAG: size}))
    planned = plan(make_policy(), make_facts(files=files))
    assert planned.problem is None
    assert bins_of(planned) == [["a", "b"]]


def test_what_we_packed_stays_where_only_other_bins_have_something_new() -> None:
    """The new file fills a bin of its own; the bin of packed files would be written as it is."""
    done = [
        make_file(f"p{size}", size=size, tags={PACKED_TAG: "130"}, modified_at_ms=NOW_MS - DAY_MS) for size in (40, 50)
    ]
    fresh = [make_file(f"n{n}", size=size, modified_at_ms=NOW_MS) for n, size in enumerate((60, 65))]
    planned = plan(make_policy(optimize=make_optimize(max_size=130)), make_facts(files=(*done, *fresh)))
    assert planned.problem is None
    assert bins_of(planned) == [["n0", "n1"]]
    assert left_of(planned) == [("at_target", 2, 90)]


def test_files_that_came_with_the_last_rewrite_are_not_joined_again() -> None:
    ours = make_file("ours", size=40, tags={PACKED_TAG: "100"}, modified_at_ms=NOW_MS - HOUR_MS)
    older = make_file("older", size=40, tags={PACKED_TAG: "100"}, modified_at_ms=NOW_MS - DAY_MS)
    for after_ms, bins in ((0, []), (1, [["fresh", "older"]])):
        fresh = make_file("fresh", size=30, modified_at_ms=NOW_MS - HOUR_MS + after_ms)
        planned = plan(make_policy(), make_facts(files=(older, ours, fresh)))
        assert [sorted(paths) for paths in bins_of(planned)] == bins
    left_alone = plan(make_policy(), make_facts(files=(older, ours))).left_alone
    assert [left.reason.text for left in left_alone] == [
        "2 files as the last compaction left them, nothing new beside them"
    ]


def test_one_file_that_came_later_is_enough_to_join_all_again() -> None:
    ours = make_file("ours", size=20, tags={PACKED_TAG: "100"}, modified_at_ms=NOW_MS - HOUR_MS)
    before = make_file("before", size=30, modified_at_ms=NOW_MS - DAY_MS)
    after = make_file("after", size=40, modified_at_ms=NOW_MS)
    assert bins_of(plan(make_policy(), make_facts(files=(ours, before, after)))) == [["ours", "before", "after"]]
