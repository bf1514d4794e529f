"""Full Z-order: whole partitions, left alone once they are in order; columns checked against the table."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from maintainer.model.plan.layout_tags import PACKED_TAG, ZORDER_TAG
from maintainer.model.plan.plan import LeftAlone, TablePlan
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import CompactStep, ZOrderStep
from maintainer.model.table.table_facts import ColumnRanges, FileRange, TableFacts
from maintainer.planning.operations.full_zorder import history_wanted
from maintainer.planning.plan_input import PlanOptions, TableInput
from maintainer.planning.planner import plan_table
from maintainer.policy.resolve.resolved import WorthPolicy, ZOrderMode, ZOrderPolicy
from tests.support.tables.builders import (
    NEVER_TOUCHED,
    NOW_MS,
    make_facts,
    make_file,
    make_files,
    make_optimize,
    make_policy,
)

ORDERED = {PACKED_TAG: "100", ZORDER_TAG: '["id"]'}
FOR_TRANSACTIONS = PlanOptions()
LINES = {"optimize.zorder": 7, "optimize.zorder.columns": 8, "optimize.zorder.mode": 9}


def plan(
    facts: TableFacts,
    *columns: str,
    mode: ZOrderMode = ZOrderMode.FULL,
    options: PlanOptions = FOR_TRANSACTIONS,
    **optimize: Any,
) -> TablePlan:
    zorder = ZOrderPolicy(columns or ("id",), mode)
    policy = make_policy(optimize=make_optimize(zorder=zorder, **optimize), lines=LINES)
    return plan_table(TableInput(policy, facts, NEVER_TOUCHED, NOW_MS, date(2026, 11, 21), options))


def measured(*ranges: FileRange | None, all_null: tuple[int, ...] = ()) -> TableFacts:
    """Two small files, with what the log says of ``id`` in each; None where it says nothing."""
    facts = make_facts(files=make_files(10, 20))
    keys = [file.key for file in facts.files]
    by_file = {key: (of_file,) for key, of_file in zip(keys, ranges, strict=True) if of_file is not None}
    only_nulls = frozenset((keys[place], 0) for place in all_null)
    return replace(facts, zordered_paths=frozenset(), column_ranges=ColumnRanges(("id",), by_file, only_nulls))


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        (measured(("5", "5", False), ("5", "5", False)), "`id` is always 5"),
        (measured((None, None, True), (None, None, True), all_null=(0, 1)), "`id` is all null"),
        (measured(("5", "5", False), ("6", "6", False)), None),
        (measured(("5", "6", False), ("5", "6", False)), None),
        (measured(("5", "5", True), ("5", "5", False)), None),
        (measured(("5", "5", False), (None, None, True), all_null=(1,)), None),
        (measured((None, None, True), (None, None, True), all_null=(0,)), None),
        (measured(("5", "5", False), None), None),
        (measured(None, None), None),
    ],
)
def test_columns_of_one_value_by_the_log_are_compacted_and_one_line_says_why(
    facts: TableFacts, says: str | None
) -> None:
    for options in (FOR_TRANSACTIONS, PlanOptions(deletes=False)):
        planned = plan(facts, options=options, max_size=1000, min_size=1000)
        (step,) = planned.steps
        assert isinstance(step, ZOrderStep if says is None else CompactStep)
        lines = [left for left in planned.left_alone if left.reason.code is ReasonCode.NOTHING_TO_ORDER]
        texts = [(line.reason.text, line.reason.origin, line.num_files) for line in lines]
        assert texts == ([] if says is None else [(f"nothing to order by, so compaction: {says}", "orders.yml:8", 0)])


def test_an_engine_of_commands_leaves_an_incremental_zorder_alone_and_says_why() -> None:
    facts = make_facts(files=make_files(10, 20))
    planned = plan(facts, mode=ZOrderMode.INCREMENTAL, options=PlanOptions(deletes=False))
    assert (planned.problem, planned.steps) == (None, ())
    (left,) = planned.left_alone
    assert (left.reason.code, left.num_files, left.reason.origin) == (ReasonCode.NOT_BY_ENGINE, 2, "orders.yml:7")
    assert "`mode: full`" in left.reason.text
    wrong = plan(facts, "nope", mode=ZOrderMode.INCREMENTAL, options=PlanOptions(deletes=False)).problem
    assert wrong is not None
    assert wrong.code == "T411"


def step_of(planned: TablePlan) -> ZOrderStep:
    (step,) = planned.steps
    assert isinstance(step, ZOrderStep)
    return step


def test_all_files_of_a_partition_are_one_bin_whatever_their_size() -> None:
    files = (
        *make_files(10, 90, 250, prefix="a", partition={"p": "1"}),
        *make_files(40, 40, prefix="b", partition={"p": "2"}),
    )
    step = step_of(plan(make_facts(files=files, partitioned_by=("p",)), batch_size=100))
    assert [[[file.path for file in bin_.files] for bin_ in batch.bins] for batch in step.batches] == [
        [["b0", "b1"]],
        [["a0", "a1", "a2"]],
    ]
    assert step.num_files_added == 1 + 3  # floor(350 / 100) and at least one
    assert step.columns == ("id",)
    assert step.file_tags == ((PACKED_TAG, "100"), (ZORDER_TAG, '["id"]'))
    assert step.reasons == (Reason(ReasonCode.ZORDER_DUE, "5 files not in Z-order of id", "orders.yml:7"),)


def test_a_partition_whose_files_all_carry_the_tag_is_left_alone() -> None:
    files = [make_file(f"f{i}", size=150, tags=ORDERED) for i in range(2)]
    planned = plan(make_facts(files=files))
    reason = Reason(ReasonCode.SAME_ZORDER, "2 files already in Z-order of id", "orders.yml:7")
    assert planned.left_alone == (LeftAlone(reason, 2, 300),)
    assert planned.state == "up_to_date"


@pytest.mark.parametrize(
    "change",
    [
        {"tags": {}},
        {"tags": {PACKED_TAG: "100", ZORDER_TAG: '["value"]'}},
        {"tags": {PACKED_TAG: "100", ZORDER_TAG: '["id","value"]'}},
        {"tags": {PACKED_TAG: "49", ZORDER_TAG: '["id"]'}},
        {"tags": {PACKED_TAG: "201", ZORDER_TAG: '["id"]'}},
        {"tags": ORDERED, "deleted": 6},
    ],
)
def test_one_file_out_of_order_brings_the_whole_partition(change: dict[str, Any]) -> None:
    files = [make_file("a", size=150, tags=ORDERED), make_file("b", size=10, **change)]
    step = step_of(plan(make_facts(files=files)))
    assert [file.path for file in step.batches[0].files] == ["b", "a"]


@pytest.mark.parametrize(("size", "rewritten"), [(199, False), (200, True)])
def test_a_lone_file_is_rewritten_only_if_it_becomes_several(size: int, rewritten: bool) -> None:
    planned = plan(make_facts(files=[make_file("a", size=size)]))
    assert bool(planned.steps) is rewritten
    assert [left.reason.code for left in planned.left_alone] == ([] if rewritten else [ReasonCode.NO_PARTNER])


def test_a_lone_file_with_many_deleted_rows_is_rewritten() -> None:
    step = step_of(plan(make_facts(files=[make_file("a", size=10, deleted=50)])))
    assert [reason.code for reason in step.reasons] == [ReasonCode.ZORDER_DUE, ReasonCode.DELETED_ROWS]


@pytest.mark.parametrize(("least", "worth"), [(2, True), (3, False)])
def test_when_counts_the_files_that_are_not_in_order(least: int, worth: bool) -> None:
    files = [make_file("a", size=150, tags=ORDERED), make_file("b", size=300), make_file("c", size=300)]
    planned = plan(make_facts(files=files), when=WorthPolicy(least, None))
    assert bool(planned.steps) is worth
    if not worth:
        assert [left.reason.text for left in planned.left_alone] == [
            "not worth it yet: 2 files not in order, less than 3 (1 more is needed)"
        ]


TABLE = make_facts(
    files=make_files(10, 20),
    columns={
        "customer_id": "long",
        "Amount": "double",
        "day": "date",
        "address": {
            "type": "struct",
            "fields": [{"name": "city", "type": "string", "nullable": True, "metadata": {}}],
        },
        "flat.name": "string",
        "props": {"type": "map", "keyType": "string", "valueType": "string", "valueContainsNull": True},
        "late": "long",
    },
    partitioned_by=("day",),
    columns_with_stats=("customer_id", "Amount", "address.city", "`flat.name`"),
)
TABLE = replace(TABLE, files=make_files(10, 20, partition={"day": "2026-11-01"}))


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (("CUSTOMER_ID", "amount"), ("customer_id", "Amount")),
        (("address.city",), ("address.city",)),
        (("flat.name",), ("`flat.name`",)),
        (("`flat.name`", "customer_id"), ("`flat.name`", "customer_id")),
    ],
)
def test_columns_are_found_as_spark_finds_them(written: tuple[str, ...], expected: tuple[str, ...]) -> None:
    assert step_of(plan(TABLE, *written)).columns == expected


@pytest.mark.parametrize(
    ("columns", "code", "what", "help"),
    [
        (
            ("custmer_id",),
            "T411",
            "Z-order column `custmer_id` does not exist (found: custmer_id)",
            "did you mean `customer_id`?",
        ),
        (
            ("address.town", "zzzzzz"),
            "T411",
            "Z-order column `address.town`, `zzzzzz` does not exist (found: address.town, zzzzzz)",
            "did you mean `address.city`?",
        ),
        (
            ("day",),
            "T412",
            "Z-order column `day` is a partition column: all of a file has one value of it (found: day)",
            "leave it out of optimize.zorder.columns",
        ),
        (
            ("props",),
            "T414",
            "Z-order column `props` has a type without order (found: props map)",
            "leave it out of optimize.zorder.columns",
        ),
        (
            ("address",),
            "T414",
            "Z-order column `address` has a type without order (found: address struct)",
            "leave it out of optimize.zorder.columns",
        ),
        (
            ("customer_id", "late"),
            "T413",
            "Z-order column `late` has no statistics, so no file could be skipped by it (found: late)",
            "add it to delta.dataSkippingStatsColumns if the table has that property, else raise "
            "delta.dataSkippingNumIndexedCols; a new list would end the statistics of all columns that it does not "
            "name",
        ),
        (
            ("amount", "AMOUNT"),
            "T420",
            "a Z-order column is named twice (found: amount, AMOUNT)",
            "remove one of the two",
        ),
    ],
)
def test_wrong_columns_are_a_problem_at_the_policy_line(
    columns: tuple[str, ...], code: str, what: str, help: str | None
) -> None:
    planned = plan(TABLE, *columns)
    assert planned.problem is not None
    assert (planned.problem.code, planned.problem.what) == (code, what)
    assert (planned.problem.where, planned.problem.help) == ("orders.yml:8", help)


def test_partitions_that_somebody_else_put_in_order_are_left_alone() -> None:
    files = make_files(500, 500)
    facts = make_facts(files=files, columns={"id": "long"})
    assert history_wanted(make_policy(optimize=make_optimize(zorder=ZOrderPolicy(("id",), ZOrderMode.FULL))), facts)
    known = replace(facts, zordered_paths=frozenset(file.path for file in files))
    assert plan(known, "id").state == "up_to_date"
    one_new = replace(facts, zordered_paths=frozenset({files[0].path}))
    assert plan(one_new, "id").state == "changes"
    ours = [make_file(f"o{n}", size=500, tags={PACKED_TAG: "100"}) for n in range(2)]
    packed = replace(make_facts(files=ours), zordered_paths=frozenset({"o0", "o1"}))
    assert plan(packed, "id").state == "changes", "a compaction of ours came after"


def test_the_history_is_asked_only_where_tags_do_not_say_it() -> None:
    full = make_policy(optimize=make_optimize(zorder=ZOrderPolicy(("id",), ZOrderMode.FULL)))
    assert history_wanted(full, make_facts(files=[make_file("a", tags=ORDERED)])) == ()
    assert history_wanted(full, make_facts(files=make_files(1))) == ("id",)
    assert history_wanted(make_policy(), make_facts(files=make_files(1))) == ()
    wrong = make_policy(optimize=make_optimize(zorder=ZOrderPolicy(("nope",), ZOrderMode.FULL)))
    assert history_wanted(wrong, make_facts(files=make_files(1))) == ()
