"""Compaction: exact plans on small tables (bins of 100 bytes, small files under 75), batches, days and limits."""

from __future__ import annotations

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
from maintainer.model.table.table_facts import TableRecord, TableRef
from maintainer.planning.plan_input import PlanOptions, TableInput
from maintainer.planning.planner import plan_table
from maintainer.policy.resolve.resolved import base_settings, policy_values
from tests.support.tables.builders import (
    DAY_SECONDS,
    HOUR_MS,
    LEGACY_PROTOCOL,
    NOW_MS,
    make_facts,
    make_files,
    make_optimize,
    make_policy,
)
from tests.unit.planning.operations.compaction_plans import TODAY, bins_of, left_of, plan

SMALL = "small enough for one process, without Spark; not copied: "


def test_whole_plan_of_a_small_table() -> None:
    policy = make_policy(lines={"optimize.minFileSize": 5, "optimize.maxFileSize": 6}, owner="team-sales")
    files = make_files(10, 20, 60, 90, 50, 74)
    planned = plan(policy, make_facts(files=files))
    lane = LaneChoice(
        Lane.LOCAL,
        f"{SMALL}files of 26 B on average have small row groups",
    )
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
                    "2 small files with no other left that fits beside it within 100 B",
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
        policy=dict(base_settings(policy)),
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
    assert [[bin_.size_bytes for bin_ in batch.bins] for batch in step.batches] == [[10, 20], [30], [40]]
    assert step.num_files_added == 4
    assert step.file_tags == ((PACKED_TAG, "100"),)


def test_a_shuffle_before_the_writing_task_is_asked_for_in_the_step() -> None:
    policy = make_policy(optimize=make_optimize(repartition=True))
    (step,) = plan(policy, make_facts(files=make_files(10, 20))).steps
    assert isinstance(step, CompactStep)
    assert step.repartition


class TestEvery:
    @pytest.mark.parametrize(("hours_ago", "due"), [(22, False), (23, True), (24, True)])
    def test_a_day_is_due_after_23_hours(self, hours_ago: int, due: bool) -> None:
        """A nightly job that starts a minute earlier than yesterday must still find its work due."""
        policy = make_policy(optimize=make_optimize(every_seconds=DAY_SECONDS), lines={"optimize.every": 8})
        record = TableRecord(last_optimize_at_ms=NOW_MS - hours_ago * HOUR_MS)
        planned = plan(policy, make_facts(files=make_files(10, 20)), record)
        assert bins_of(planned) == ([["f0", "f1"]] if due else [])
        if not due:
            reason = Reason(
                ReasonCode.NOT_DUE, "a run with a rewrite began 22h ago, at most every 1d: due in 1h", "orders.yml:8"
            )
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
