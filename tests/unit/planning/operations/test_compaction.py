"""Compaction: exact plans on small tables (bins of 100 bytes, small files under 75)."""

from __future__ import annotations

from datetime import date

import pytest

from maintainer.model.plan.lanes import Lane, LaneChoice
from maintainer.model.plan.layout_tags import PACKED_TAG
from maintainer.model.plan.plan import (
    Checks,
    ContentCheck,
    LeftAlone,
    Observed,
    PlannedColumn,
    RowCountCheck,
    TablePlan,
)
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import Batch, Bin, CompactStep
from maintainer.model.table.storage_facts import SizeBucket
from maintainer.model.table.table_facts import DataFile, TableFacts, TableRecord, TableRef
from maintainer.planning.plan_input import PlanOptions, TableInput
from maintainer.planning.planner import plan_table
from maintainer.policy.predicate.partition_predicate import parse_predicate
from maintainer.policy.resolve.policy_values import policy_values
from maintainer.policy.resolve.resolved import ResolvedPolicy, WorthPolicy
from tests.support.tables.builders import (
    DAY_MS,
    DAY_SECONDS,
    HOUR_MS,
    LEGACY_PROTOCOL,
    NEVER_TOUCHED,
    NOW_MS,
    make_facts,
    make_file,
    make_files,
    make_optimize,
    make_policy,
)

TODAY = date(2026, 11, 21)


def plan(policy: ResolvedPolicy, facts: TableFacts, record: TableRecord = NEVER_TOUCHED) -> TablePlan:
    return plan_table(TableInput(policy, facts, record, NOW_MS, TODAY))


def bins_of(planned: TablePlan) -> list[list[str]]:
    return [
        [file.path for file in one.files]
        for step in planned.steps
        if isinstance(step, CompactStep)
        for batch in step.batches
        for one in batch.bins
    ]


def left_of(planned: TablePlan) -> list[tuple[str, int, int]]:
    return [(left.reason.code.value, left.num_files, left.size_bytes) for left in planned.left_alone]


def test_whole_plan_of_a_small_table() -> None:
    policy = make_policy(lines={"optimize.minFileSize": 5, "optimize.maxFileSize": 6}, owner="team-sales")
    files = make_files(10, 20, 60, 90, 50, 74)
    planned = plan(policy, make_facts(files=files))
    lane = LaneChoice(Lane.LOCAL, "small enough for the driver: files of 26 B on average have small row groups")
    assert planned == TablePlan(
        ref=TableRef("sales.orders"),
        policy_file="orders.yml",
        policy_digest="sha256:aa",
        observed=Observed(
            location="file:/lake/orders",
            table_id="11111111-2222-3333-4444-555555555555",
            version=7,
            columns=(PlannedColumn("id", "long"),),
            partition_columns=(),
            protocol=LEGACY_PROTOCOL,
            num_files=6,
            size_bytes=304,
            file_sizes=(SizeBucket(3, 1, 10), SizeBucket(4, 1, 20), SizeBucket(5, 2, 110), SizeBucket(6, 2, 164)),
            small_files=5,
        ),
        steps=(
            CompactStep(
                batches=(Batch((Bin((files[0], files[1], files[4]), lane),)),),
                max_file_size_bytes=100,
                max_threads=4,
                reasons=(Reason(ReasonCode.SMALL_FILES, "3 files under 75 B", "orders.yml:5"),),
            ),
        ),
        left_alone=(
            LeftAlone(Reason(ReasonCode.AT_TARGET, "1 file of 75 B or more", "orders.yml:5"), 1, 90),
            LeftAlone(
                Reason(
                    ReasonCode.NO_PARTNER,
                    "2 small files without another that fits beside it within 100 B",
                    "orders.yml:6",
                ),
                2,
                134,
            ),
        ),
        checks=Checks(RowCountCheck.SCAN, ContentCheck.FINGERPRINT, True, ()),
        timeout_seconds=10800,
        owner="team-sales",
        policy_values=policy_values(policy),
    )
    assert planned.state == "changes"


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((10, 20, 900, 950), [["f0", "f1", "f2"]]),  # 930 in one bin, 950 alone and dropped
        ((500, 500), [["f0", "f1"]]),  # exactly the bound stays in
        ((500, 501), []),
        ((1000,), []),
        ((0, 0), [["f0", "f1"]]),
    ],
)
def test_bins_are_those_of_optimize(sizes: tuple[int, ...], expected: list[list[str]]) -> None:
    policy = make_policy(optimize=make_optimize(min_size=1000, max_size=1000))
    assert bins_of(plan(policy, make_facts(files=make_files(*sizes)))) == expected


def test_a_file_of_exactly_min_file_size_is_not_small() -> None:
    planned = plan(make_policy(), make_facts(files=make_files(10, 10, 75)))
    assert bins_of(planned) == [["f0", "f1"]]
    assert left_of(planned) == [("at_target", 1, 75)]


def test_partitions_are_never_mixed() -> None:
    files = (
        *make_files(10, 20, prefix="a", partition={"day": "1"}),
        *make_files(10, prefix="b", partition={"day": "2"}),
        *make_files(30, 30, prefix="n", partition={"day": None}),
    )
    planned = plan(make_policy(), make_facts(files=files, partitioned_by=("day",)))
    assert bins_of(planned) == [["a0", "a1"], ["n0", "n1"]]
    assert planned.left_alone[0].partition_values == (("day", "2"),)


def test_batches_go_from_small_bins_to_large_ones_up_to_the_batch_size() -> None:
    files = [
        file for day in range(4) for file in make_files(10 * day, 10, prefix=f"d{day}-", partition={"day": str(day)})
    ]
    policy = make_policy(optimize=make_optimize(batch_size=50))
    step = plan(policy, make_facts(files=files, partitioned_by=("day",))).steps[0]
    assert isinstance(step, CompactStep)
    assert [[one.size_bytes for one in batch.bins] for batch in step.batches] == [[10, 20], [30], [40]]
    assert step.num_files_added == 4
    assert step.file_tags == ((PACKED_TAG, "100"),)


def test_a_shuffle_before_the_writing_task_is_asked_for_in_the_step() -> None:
    policy = make_policy(optimize=make_optimize(repartition=True))
    (step,) = plan(policy, make_facts(files=make_files(10, 20))).steps
    assert isinstance(step, CompactStep)
    assert step.repartition


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
        assert left_of(plan(make_policy(), make_facts(files=files))) == [("at_target", 1, 56), ("no_partner", 1, 38)]

    def test_a_newer_file_is_joined_with_them(self) -> None:
        files = [self.packed("a", 56), make_file("new", size=38, modified_at_ms=NOW_MS - DAY_MS)]
        assert bins_of(plan(make_policy(), make_facts(files=files))) == [["new", "a"]]

    def test_older_files_of_a_batch_that_failed_are_still_compacted(self) -> None:
        files = [self.packed("a", 56), make_file("old", size=38), make_file("old2", size=60)]
        assert bins_of(plan(make_policy(), make_facts(files=files))) == [["old", "old2"]]

    def test_a_larger_target_makes_them_ordinary_files(self) -> None:
        files = [self.packed("a", 20, to="40"), self.packed("b", 30, to="40")]
        assert bins_of(plan(make_policy(), make_facts(files=files))) == [["a", "b"]]


class TestPartitionRules:
    DAYS = ("2026-11-01", "2026-11-20", "2026-11-21")

    def facts(self, *, newest_ms: int = NOW_MS - 10 * DAY_MS, type_: str = "date") -> TableFacts:
        files = [
            make_file(
                f"{day}-{i}", size=10, partition={"day": day}, modified_at_ms=newest_ms if day[-2:] == "21" else 0
            )
            for day in self.DAYS
            for i in range(2)
        ]
        return make_facts(files=files, columns={"id": "long", "day": type_}, partitioned_by=("day",))

    def test_where_selects_by_typed_value(self) -> None:
        optimize = make_optimize(where=parse_predicate("day >= current_date() - 1"))
        planned = plan(make_policy(optimize=optimize, lines={"optimize.where": 9}), self.facts())
        assert bins_of(planned) == [["2026-11-20-0", "2026-11-20-1"], ["2026-11-21-0", "2026-11-21-1"]]
        assert planned.left_alone == (
            LeftAlone(
                Reason(ReasonCode.OUTSIDE_WHERE, "2 files outside where: day >= current_date() - 1", "orders.yml:9"),
                2,
                20,
                (("day", "2026-11-01"),),
            ),
        )

    def test_where_on_a_data_column_is_a_problem_at_the_policy_line(self) -> None:
        optimize = make_optimize(where=parse_predicate("id > 4"))
        planned = plan(make_policy(optimize=optimize, lines={"optimize.where": 9}), self.facts())
        assert planned.problem is not None
        assert (planned.problem.code, planned.problem.where) == ("T410", "orders.yml:9")
        assert planned.state == "problem"

    @pytest.mark.parametrize("type_", ["date", "string"])
    def test_newest_partitions_are_left(self, type_: str) -> None:
        policy = make_policy(optimize=make_optimize(skip_newest_partitions=2))
        planned = plan(policy, self.facts(type_=type_))
        assert bins_of(planned) == [["2026-11-01-0", "2026-11-01-1"]]
        assert left_of(planned) == [("newest_partition", 2, 20), ("newest_partition", 2, 20)]

    def test_newest_is_by_number_not_by_text(self) -> None:
        files = [make_file(f"{n}-{i}", size=10, partition={"n": n}) for n in ("9", "10", None) for i in range(2)]
        facts = make_facts(files=files, columns={"id": "long", "n": "integer"}, partitioned_by=("n",))
        policy = make_policy(optimize=make_optimize(skip_newest_partitions=1))
        assert bins_of(plan(policy, facts)) == [["9-0", "9-1"], ["None-0", "None-1"]]

    def test_of_several_columns_the_date_decides_and_takes_all_its_partitions(self) -> None:
        files = [
            make_file(f"{country}{day}{i}", size=10, partition={"country": country, "day": f"2026-11-0{day}"})
            for country in ("de", "us")
            for day in (1, 2)
            for i in range(2)
        ]
        facts = make_facts(
            files=files, columns={"id": "long", "country": "string", "day": "date"}, partitioned_by=("country", "day")
        )
        policy = make_policy(optimize=make_optimize(skip_newest_partitions=1))
        assert bins_of(plan(policy, facts)) == [["de10", "de11"], ["us10", "us11"]]

    def test_without_a_date_all_columns_decide_left_to_right(self) -> None:
        files = [
            make_file(f"{year}-{month}-{i}", size=10, partition={"year": str(year), "month": str(month)})
            for year, month in ((2025, 12), (2026, 2), (2026, 10))
            for i in range(2)
        ]
        facts = make_facts(
            files=files,
            columns={"id": "long", "year": "integer", "month": "integer"},
            partitioned_by=("year", "month"),
        )
        policy = make_policy(optimize=make_optimize(skip_newest_partitions=1))
        assert bins_of(plan(policy, facts)) == [["2025-12-0", "2025-12-1"], ["2026-2-0", "2026-2-1"]]

    def test_an_unpartitioned_table_has_no_newest_partition(self) -> None:
        policy = make_policy(optimize=make_optimize(skip_newest_partitions=3))
        assert bins_of(plan(policy, make_facts(files=make_files(10, 20)))) == [["f0", "f1"]]

    @pytest.mark.parametrize(("age_ms", "hot"), [(1_799_999, True), (1_800_000, False)])
    def test_quiet_for_counts_from_the_newest_file_of_the_partition(self, age_ms: int, hot: bool) -> None:
        policy = make_policy(optimize=make_optimize(quiet_for_seconds=1800))
        planned = plan(policy, self.facts(newest_ms=NOW_MS - age_ms))
        assert len(bins_of(planned)) == (2 if hot else 3)
        assert [left.reason.text for left in planned.left_alone] == (
            ["2 files written less than 30m ago (quietFor)"] if hot else []
        )

    def test_many_partitions_of_one_reason_are_counted_together(self) -> None:
        files = [make_file(f"f{day}", size=10, partition={"n": str(day)}) for day in range(21)]
        planned = plan(make_policy(), make_facts(files=files, partitioned_by=("n",)))
        assert left_of(planned) == [("no_partner", 21, 210)]
        planned = plan(make_policy(), make_facts(files=files[:20], partitioned_by=("n",)))
        assert left_of(planned) == [("no_partner", 1, 10)] * 20


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


class TestEvery:
    @pytest.mark.parametrize(("hours_ago", "due"), [(22, False), (23, True), (24, True)])
    def test_a_day_is_due_after_23_hours(self, hours_ago: int, due: bool) -> None:
        """A nightly job that starts a minute earlier than yesterday must still find its work due."""
        policy = make_policy(optimize=make_optimize(every_seconds=DAY_SECONDS), lines={"optimize.every": 8})
        record = TableRecord(last_optimize_at_ms=NOW_MS - hours_ago * HOUR_MS)
        planned = plan(policy, make_facts(files=make_files(10, 20)), record)
        assert bins_of(planned) == ([["f0", "f1"]] if due else [])
        if not due:
            reason = Reason(ReasonCode.NOT_DUE, "compaction ran 22h ago, at most every 1d: due in 1h", "orders.yml:8")
            assert planned.left_alone == (LeftAlone(reason, 2, 30),)

    def test_it_can_be_set_aside(self) -> None:
        policy = make_policy(optimize=make_optimize(every_seconds=DAY_SECONDS))
        record = TableRecord(last_optimize_at_ms=NOW_MS)
        facts = make_facts(files=make_files(10, 20))
        planned = plan_table(TableInput(policy, facts, record, NOW_MS, TODAY, PlanOptions(ignore_every=True)))
        assert bins_of(planned) == [["f0", "f1"]]


class TestLimits:
    def test_a_limit_blocks_the_table_with_figures_and_never_trims(self) -> None:
        policy = make_policy(max_bytes=29, max_files=1, lines={"limits.maxBytes": 21, "limits.maxFiles": 22})
        planned = plan(policy, make_facts(files=make_files(10, 20, 90)))
        assert planned.state == "blocked"
        assert planned.blocked == (
            Reason(ReasonCode.OVER_LIMIT, "would rewrite 30 B, limits.maxBytes is 29 B", "orders.yml:21"),
            Reason(ReasonCode.OVER_LIMIT, "would rewrite 2 files, limits.maxFiles is 1", "orders.yml:22"),
        )
        assert left_of(planned) == [("at_target", 1, 90), ("over_limit", 2, 30)]

    def test_exactly_the_limit_is_allowed(self) -> None:
        policy = make_policy(max_bytes=30, max_files=2)
        assert plan(policy, make_facts(files=make_files(10, 20))).state == "changes"


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


def test_files_that_came_with_the_last_rewrite_are_not_joined_again() -> None:
    ours = make_file("ours", size=40, tags={PACKED_TAG: "100"}, modified_at_ms=NOW_MS - HOUR_MS)
    older = make_file("older", size=40, tags={PACKED_TAG: "100"}, modified_at_ms=NOW_MS - DAY_MS)
    for after_ms, bins in ((0, []), (1, [["fresh", "older"]])):
        fresh = make_file("fresh", size=30, modified_at_ms=NOW_MS - HOUR_MS + after_ms)
        planned = plan(make_policy(), make_facts(files=(older, ours, fresh)))
        assert [sorted(paths) for paths in bins_of(planned)] == bins
    told = plan(make_policy(), make_facts(files=(older, ours))).left_alone
    assert [left.reason.text for left in told] == ["2 files as the last compaction wrote them, nothing new beside them"]


def test_one_file_that_came_later_is_enough_to_join_all_again() -> None:
    ours = make_file("ours", size=20, tags={PACKED_TAG: "100"}, modified_at_ms=NOW_MS - HOUR_MS)
    before = make_file("before", size=30, modified_at_ms=NOW_MS - DAY_MS)
    after = make_file("after", size=40, modified_at_ms=NOW_MS)
    assert bins_of(plan(make_policy(), make_facts(files=(ours, before, after)))) == [["ours", "before", "after"]]


def test_of_a_bin_that_is_written_for_its_deleted_rows_no_file_waits() -> None:
    policy = make_policy(optimize=make_optimize(when=WorthPolicy(min_small_files=9)))
    dirty = make_file("b", size=20, partition={"p": "1"}, records=100, deleted=50)
    clean = [make_file(name, size=10, partition={"p": number}) for name, number in (("a", "1"), ("c", "2"), ("d", "2"))]
    planned = plan(policy, make_facts(files=(dirty, *clean), partitioned_by=("p",)))
    assert bins_of(planned) == [["a", "b"]]
    assert left_of(planned) == [("not_worth_it", 2, 20)]
