"""Rewrites of partitions: how many files, when they are due, once for each request; which columns may be sorted by."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from maintainer.model.plan.layout_tags import REWRITE_TAG, RewriteRequest
from maintainer.model.plan.plan import LeftAlone, TablePlan
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import PartitionRewriteStep
from maintainer.model.table.table_facts import TableFacts
from maintainer.planning.plan_input import TableInput
from maintainer.planning.planner import plan_table
from maintainer.policy.resolve.resolved import RewritePolicy, WorthPolicy
from tests.support.tables.builders import (
    NEVER_TOUCHED,
    NOW_MS,
    make_facts,
    make_file,
    make_files,
    make_optimize,
    make_policy,
)

LINES = {"optimize.rewrite": 7, "optimize.rewrite.sortBy": 8, "optimize.when.minSmallFiles": 9}
FOUR = RewritePolicy(num_files=4)
SORTED = RewritePolicy(file_size_bytes=100, sort_by=("ID",))


def plan(facts: TableFacts, rewrite: RewritePolicy, **optimize: Any) -> TablePlan:
    policy = make_policy(optimize=make_optimize(rewrite=rewrite, **optimize), lines=LINES)
    return plan_table(TableInput(policy, facts, NEVER_TOUCHED, NOW_MS, date(2026, 11, 21)))


def step_of(planned: TablePlan) -> PartitionRewriteStep:
    (step,) = planned.steps
    assert isinstance(step, PartitionRewriteStep)
    return step


def bins_of(planned: TablePlan) -> list[list[list[str]]]:
    batches = step_of(planned).batches
    return [[[file.path for file in bin_.files] for bin_ in batch.bins] for batch in batches]


def test_whole_partitions_whatever_their_sizes_one_commit_for_each_batch() -> None:
    files = (
        *make_files(10, 90, 250, prefix="a", partition={"p": "1"}),
        *make_files(300, prefix="b", partition={"p": "2"}),
    )
    planned = plan(make_facts(files=files, partitioned_by=("p",)), SORTED, batch_size=100)
    assert bins_of(planned) == [[["b0"]], [["a0", "a1", "a2"]]]
    step = step_of(planned)
    assert step.request == RewriteRequest(None, 100, ("id",))
    assert step.num_files_added == 3 + 4  # 300 and 350 bytes, to the nearest file of 100
    assert step.file_tags == ((REWRITE_TAG, step.request.digest),)
    text = "4 files not written as asked, files of about 100 B, sorted by id"
    assert step.reasons == (Reason(ReasonCode.REWRITE_DUE, text, "orders.yml:7"),)
    assert planned.left_alone == ()


@pytest.mark.parametrize(
    ("size_bytes", "num_files"), [(0, 1), (49, 1), (149, 1), (150, 2), (249, 2), (250, 3), (10**12, 10**10)]
)
def test_a_size_gives_the_nearest_number_of_files(size_bytes: int, num_files: int) -> None:
    assert RewriteRequest(None, 100).num_files_of(size_bytes) == num_files
    assert RewriteRequest(7, None).num_files_of(size_bytes) == 7


def test_a_request_has_a_number_or_a_size_and_a_digest_of_its_own() -> None:
    for number, size in ((None, None), (4, 100)):
        with pytest.raises(ValueError, match="either"):
            RewriteRequest(number, size)
    requests = [RewriteRequest(4, None), RewriteRequest(None, 4), RewriteRequest(4, None, ("a",)),
                RewriteRequest(4, None, ("b", "a")), RewriteRequest(4, None, ("a", "b"))]  # fmt: skip
    assert len({request.digest for request in requests}) == len(requests)
    # Files on storage carry it: it must not change with a version of Python or of ours.
    assert RewriteRequest(4, None, ("a", "b")).digest == "ebc057e0aa4e74dc"


def test_files_that_carry_the_digest_are_left_alone_and_a_new_one_makes_the_partition_due() -> None:
    digest = RewriteRequest(None, 100, ("id",)).digest
    done = [make_file(f"f{i}", size=90, tags={REWRITE_TAG: digest}, partition={"p": "1"}) for i in range(3)]
    facts = make_facts(files=done, partitioned_by=("p",))
    planned = plan(facts, SORTED)
    text = "3 files already written as asked, files of about 100 B, sorted by id"
    assert planned.left_alone == (LeftAlone(Reason(ReasonCode.SAME_REWRITE, text, "orders.yml:7"), 3, 270),)
    assert planned.state == "up_to_date"
    other = make_file("g", size=90, tags={REWRITE_TAG: digest}, partition={"p": "2"})
    new = make_file("h", size=5, partition={"p": "2"})
    planned = plan(replace(facts, files=(*done, other, new)), SORTED)
    assert bins_of(planned) == [[["h", "g"]]]
    assert [left.reason.code for left in planned.left_alone] == [ReasonCode.SAME_REWRITE]
    assert step_of(planned).reasons[0].text.startswith("1 file not written as asked")


def test_another_request_makes_everything_due_again() -> None:
    digest = RewriteRequest(None, 100, ("id",)).digest
    facts = make_facts(files=[make_file("f", size=300, tags={REWRITE_TAG: digest})])
    assert plan(facts, SORTED).steps == ()
    assert bins_of(plan(facts, replace(SORTED, file_size_bytes=50))) == [[["f"]]]
    assert bins_of(plan(facts, RewritePolicy(file_size_bytes=100))) == [[["f"]]]


def test_many_deleted_rows_make_a_partition_due_that_is_as_asked() -> None:
    digest = RewriteRequest(None, 100, ("id",)).digest
    facts = make_facts(files=[make_file("f", size=90, deleted=6, tags={REWRITE_TAG: digest})])
    step = step_of(plan(facts, SORTED))
    assert [reason.code for reason in step.reasons] == [ReasonCode.DELETED_ROWS]


@pytest.mark.parametrize(
    ("rewrite", "sizes", "due"),
    [
        (FOUR, (10, 20, 30, 400), False),
        (FOUR, (10, 20, 30), True),
        (FOUR, (10, 20, 30, 40, 50), True),
        (replace(FOUR, sort_by=("id",)), (10, 20, 30, 400), True),
        (RewritePolicy(file_size_bytes=100), (140,), False),
        (RewritePolicy(file_size_bytes=100), (150,), True),
        (RewritePolicy(file_size_bytes=100), (10, 190), True),
        (RewritePolicy(sort_by=("id",)), (90,), True),
    ],
)
def test_a_partition_that_is_as_asked_by_chance_is_left_alone(
    rewrite: RewritePolicy, sizes: tuple[int, ...], due: bool
) -> None:
    planned = plan(make_facts(files=make_files(*sizes)), rewrite)
    assert bool(planned.steps) is due
    if not due:
        assert [(left.reason.code, left.num_files) for left in planned.left_alone] == [
            (ReasonCode.AT_TARGET, len(sizes))
        ]


def test_worth_counts_the_files_that_are_not_as_asked() -> None:
    facts = make_facts(files=make_files(10, 20, 30))
    planned = plan(facts, FOUR, when=WorthPolicy(min_small_files=4))
    text = "not worth it yet: 3 files not as asked, less than 4 (1 more is needed)"
    assert planned.left_alone == (LeftAlone(Reason(ReasonCode.NOT_WORTH_IT, text, "orders.yml:9"), 3, 60),)
    assert plan(facts, FOUR, when=WorthPolicy(min_small_files=3)).steps


@pytest.mark.parametrize(
    ("columns", "code", "text"),
    [
        (("idd",), "T411", "sort column `idd` does not exist"),
        (("p",), "T412", "sort column `p` is a partition column"),
        (("props",), "T414", "sort column `props` has a type without order (found: props map)"),
        (("id", "Id"), "T420", "a sort column is named twice"),
    ],
)
def test_columns_that_cannot_be_sorted_by(columns: tuple[str, ...], code: str, text: str) -> None:
    types = {"id": "long", "props": {"type": "map", "keyType": "string", "valueType": "string"}}
    facts = make_facts(files=make_files(10, 20), columns=types, partitioned_by=("p",))
    problem = plan(facts, RewritePolicy(sort_by=columns)).problem
    assert problem is not None
    assert (problem.code, problem.where) == (code, "orders.yml:8")
    assert problem.what.startswith(text)


def test_a_column_needs_no_statistics_to_sort_by() -> None:
    facts = make_facts(files=make_files(10, 20), columns_with_stats=())
    assert step_of(plan(facts, RewritePolicy(sort_by=("id",)))).request.sort_columns == ("id",)


@pytest.mark.parametrize(
    "kind",
    [{"type": "array", "elementType": "long"}, {"type": "map", "keyType": "long", "valueType": "long"},
     {"type": "struct", "fields": []}, "variant", "geometry", "geography", "void", "interval day"],
    ids=str,
)  # fmt: skip
def test_rows_are_not_ordered_by_a_type_without_order(kind: object) -> None:
    facts = make_facts(columns={"id": "long", "c": kind}, files=make_files(10, 20))
    problem = plan(facts, RewritePolicy(num_files=1, sort_by=("c",))).problem
    assert problem is not None
    assert problem.code == "T414"
