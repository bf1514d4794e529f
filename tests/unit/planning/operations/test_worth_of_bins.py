"""Which bins are worth a rewrite, and bins with many deleted rows (bins of 100 bytes, small files under 75)."""

from __future__ import annotations

import pytest

from maintainer.model.plan.layout_tags import PACKED_TAG
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.table.table_facts import DataFile
from maintainer.policy.resolve.resolved import WorthPolicy
from tests.support.tables.builders import make_facts, make_file, make_files, make_optimize, make_policy
from tests.unit.planning.operations.compaction_plans import bins_of, left_of, plan


class TestDeletedRows:
    def test_a_lone_file_with_many_deleted_rows_is_purged(self) -> None:
        planned = plan(make_policy(), make_facts(files=[make_file("a", size=90, deleted=6)]))
        assert bins_of(planned) == [["a"]]
        assert planned.steps[0].reasons == (
            Reason(ReasonCode.DELETED_ROWS, "1 file with more than 5% of its rows deleted", "built-in"),
        )

    def test_the_ratio_is_strict(self) -> None:
        assert bins_of(plan(make_policy(), make_facts(files=[make_file("a", size=90, deleted=5)]))) == []

    def test_a_deletion_vector_without_statistics_counts(self) -> None:
        planned = plan(make_policy(), make_facts(files=[make_file("a", size=90, deleted=1, records=None)]))
        assert bins_of(planned) == [["a"]]

    def test_such_files_are_packed_with_small_ones(self) -> None:
        files = [make_file("small", size=10), make_file("deleted", size=80, deleted=50), make_file("big", size=80)]
        assert bins_of(plan(make_policy(), make_facts(files=files))) == [["small", "deleted"]]

    def test_a_file_above_the_bin_size_is_purged_alone(self) -> None:
        files = [make_file("huge", size=500, deleted=50), make_file("small", size=10)]
        assert bins_of(plan(make_policy(), make_facts(files=files))) == [["huge"]]

    def test_a_tag_of_ours_does_not_protect_it(self) -> None:
        files = [make_file("a", size=20, deleted=50, tags={PACKED_TAG: "100"})]
        assert bins_of(plan(make_policy(), make_facts(files=files))) == [["a"]]


class TestWorth:
    @pytest.mark.parametrize(
        ("when", "text"),
        [
            (WorthPolicy(4, None), "not worth it yet: 3 small files, less than 4 (1 more is needed)"),
            (WorthPolicy(None, 81), "not worth it yet: 80 B in them, less than 81 B"),
            (
                WorthPolicy(4, 81),
                "not worth it yet: 3 small files, less than 4 (1 more is needed) and 80 B in them, less than 81 B",
            ),
            (WorthPolicy(3, 80), None),
        ],
    )
    def test_all_that_is_set_must_hold_over_what_would_be_binned(self, when: WorthPolicy, text: str | None) -> None:
        # The 74 is small and would not be binned: it does not count.
        planned = plan(make_policy(optimize=make_optimize(when=when)), make_facts(files=make_files(10, 20, 50, 74)))
        assert bins_of(planned) == ([] if text else [["f0", "f1", "f2"]])
        assert [left.reason.text for left in planned.left_alone if left.reason.code is ReasonCode.NOT_WORTH_IT] == (
            [text] if text else []
        )

    def test_deleted_rows_are_purged_whatever_the_number_of_small_files(self) -> None:
        files = [
            make_file("a", size=90, deleted=50, partition={"p": "1"}),
            *make_files(10, 10, partition={"p": "2"}),
        ]
        policy = make_policy(optimize=make_optimize(when=WorthPolicy(20, None)))
        assert bins_of(plan(policy, make_facts(files=files, partitioned_by=("p",)))) == [["a"]]


def dirty_file(name: str, size: int = 90) -> DataFile:
    return make_file(name, size=size, records=100, deleted=50)


def test_a_bin_with_one_file_of_many_deleted_rows_is_written() -> None:
    planned = plan(make_policy(), make_facts(files=(make_file("a", size=10), dirty_file("b", 20))))
    assert bins_of(planned) == [["a", "b"]]
    assert bins_of(plan(make_policy(), make_facts(files=(dirty_file("b"),)))) == [["b"]]


@pytest.mark.parametrize(
    ("when", "sizes", "text", "line"),
    [
        ({"min_small_files": 3}, (10, 20), "2 small files, less than 3 (1 more is needed)", 9),
        ({"min_small_files": 5}, (10, 20), "2 small files, less than 5 (3 more are needed)", 9),
        ({"min_small_bytes": 31}, (10, 20), "30 B in them, less than 31 B", 10),
        ({"min_small_files": 3, "min_small_bytes": 31}, (10, 20),
         "2 small files, less than 3 (1 more is needed) and 30 B in them, less than 31 B", 9),
        ({"min_small_files": 2, "min_small_bytes": 30}, (10, 20), None, 0),
    ],
)  # fmt: skip
def test_what_is_not_worth_it_says_what_is_missing(
    when: dict[str, int], sizes: tuple[int, ...], text: str | None, line: int
) -> None:
    lines = {"optimize.when.minSmallFiles": 9, "optimize.when.minSmallBytes": 10}
    policy = make_policy(optimize=make_optimize(when=WorthPolicy(**when)), lines=lines)
    planned = plan(policy, make_facts(files=make_files(*sizes)))
    reasons = [left.reason for left in planned.left_alone]
    if text is None:
        assert (reasons, bins_of(planned)) == ([], [["f0", "f1"]])
    else:
        assert reasons == [Reason(ReasonCode.NOT_WORTH_IT, f"not worth it yet: {text}", f"orders.yml:{line}")]


def test_bins_with_many_deleted_rows_are_always_worth_it() -> None:
    policy = make_policy(optimize=make_optimize(when=WorthPolicy(min_small_files=3), max_size=100))
    files = (make_file("a", size=10), dirty_file("b", 80), dirty_file("c", 100))
    planned = plan(policy, make_facts(files=files))
    assert planned.left_alone == (), "both bins hold files with many deleted rows"
    assert bins_of(planned) == [["a", "b"], ["c"]]
    assert [reason.text for step in planned.steps for reason in step.reasons] == [
        "1 file under 75 B",
        "2 files with more than 5% of their rows deleted",
    ]


def test_only_bins_without_many_deleted_rows_wait_until_they_are_worth_it() -> None:
    policy = make_policy(
        optimize=make_optimize(when=WorthPolicy(min_small_files=9)), lines={"optimize.maxDeletedRowsRatio": 12}
    )
    files = (make_file("a", size=40), make_file("b", size=50), dirty_file("c", 70), make_file("d", size=30))
    planned = plan(policy, make_facts(files=files))
    assert bins_of(planned) == [["c"]]
    waiting = [left for left in planned.left_alone if left.reason.code is ReasonCode.NOT_WORTH_IT]
    assert [left.num_files for left in waiting] == [2]
    (step,) = planned.steps
    assert step.reasons[-1] == Reason(
        ReasonCode.DELETED_ROWS, "1 file with more than 5% of its rows deleted", "orders.yml:12"
    )


def test_of_a_bin_that_is_written_for_its_deleted_rows_no_file_waits() -> None:
    policy = make_policy(optimize=make_optimize(when=WorthPolicy(min_small_files=9)))
    dirty = make_file("b", size=20, partition={"p": "1"}, records=100, deleted=50)
    clean = [make_file(name, size=10, partition={"p": number}) for name, number in (("a", "1"), ("c", "2"), ("d", "2"))]
    planned = plan(policy, make_facts(files=(dirty, *clean), partitioned_by=("p",)))
    assert bins_of(planned) == [["a", "b"]]
    assert left_of(planned) == [("not_worth_it", 2, 20)]


def test_files_of_which_nobody_knows_how_many_rows_are_deleted_are_counted_apart() -> None:
    files = [make_file("a", records=None, deleted=1), make_file("b", records=None, deleted=1)]
    (step,) = plan(make_policy(), make_facts(files=files)).steps
    unknown = "2 files with deleted rows, and no statistics say how many"
    assert [reason.text for reason in step.reasons if reason.code is ReasonCode.DELETED_ROWS] == [unknown]
    (step,) = plan(make_policy(), make_facts(files=[*files, make_file("c", records=100, deleted=20)])).steps
    assert [reason.text for reason in step.reasons if reason.code is ReasonCode.DELETED_ROWS] == [
        f"1 file with more than 5% of its rows deleted, {unknown}"
    ]
