"""Laws of planning, over tables and policies with every rule in play."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import assert_never

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from maintainer.model.plan.layout_tags import LIQUID, ZCUBE_ID_TAG
from maintainer.model.plan.plan import TablePlan
from maintainer.model.plan.reasons import ReasonCode
from maintainer.model.plan.steps import (
    Bin,
    ClusterStep,
    CompactStep,
    PartitionRewriteStep,
    PurgeStep,
    RewriteStep,
    ZOrderStep,
)
from maintainer.model.table.table_facts import DataFile, TableFacts, TableRecord
from maintainer.planning.plan_input import TableInput
from maintainer.planning.planner import assemble, plan_table
from maintainer.planning.recheck.policy_bounds import beyond_policy
from maintainer.planning.recheck.staleness import StaleReasons, recheck
from maintainer.policy.resolve.resolved import OptimizePolicy, ResolvedPolicy, WorthPolicy
from tests.support.policies.strategies import TODAY, data_files, planning_inputs
from tests.support.tables.builders import NEVER_TOUCHED, NOW_MS, make_facts, make_optimize, make_policy

Inputs = tuple[ResolvedPolicy, TableFacts, TableRecord]


def _plan(policy: ResolvedPolicy, facts: TableFacts, record: TableRecord = NEVER_TOUCHED) -> TablePlan:
    planned = plan_table(TableInput(policy, facts, record, NOW_MS, TODAY))
    assert planned.problem is None
    return planned


def _rewrite(planned: TablePlan) -> RewriteStep | None:
    return next((step for step in planned.steps if isinstance(step, RewriteStep)), None)


def _bins(planned: TablePlan) -> list[Bin]:
    steps = [step for step in planned.steps if isinstance(step, RewriteStep)]
    return [bin_ for step in steps for batch in step.batches for bin_ in batch.bins]


def _rewritten(planned: TablePlan) -> list[DataFile]:
    steps = [step for step in planned.steps if isinstance(step, RewriteStep)]
    return [file for step in steps for batch in step.batches for file in batch.files]


@given(planning_inputs())
def test_every_live_file_is_in_one_bin_or_one_left_alone(inputs: Inputs) -> None:
    policy, facts, record = inputs
    planned = _plan(policy, facts, record)
    rewritten = _rewritten(planned)
    assert max(Counter(file.key for file in rewritten).values(), default=1) == 1
    assert {file.key for file in rewritten} <= facts.file_keys
    assert len(rewritten) + sum(left.num_files for left in planned.left_alone) == len(facts.files)
    bytes_left = sum(left.size_bytes for left in planned.left_alone)
    assert sum(file.size_bytes for file in rewritten) + bytes_left == facts.size_bytes


@given(planning_inputs(), st.randoms(use_true_random=False))
def test_the_order_of_what_was_read_does_not_matter(inputs: Inputs, shuffler: random.Random) -> None:
    policy, facts, record = inputs
    files, removed = list(facts.files), list(facts.removed_files or ())
    shuffler.shuffle(files)
    shuffler.shuffle(removed)
    shuffled = replace(facts, files=tuple(files), removed_files=tuple(removed))
    assert _plan(policy, shuffled, record) == _plan(policy, facts, record)


@given(planning_inputs())
def test_no_plan_exceeds_a_limit(inputs: Inputs) -> None:
    policy, facts, record = inputs
    planned = _plan(policy, facts, record)
    files = _rewritten(planned)
    assert policy.limits.max_files is None or len(files) <= policy.limits.max_files
    assert policy.limits.max_bytes is None or sum(file.size_bytes for file in files) <= policy.limits.max_bytes


@given(planning_inputs())
def test_a_compaction_bin_holds_its_bound_and_gains_something(inputs: Inputs) -> None:
    policy, facts, record = inputs
    step = _rewrite(_plan(policy, facts, record))
    if isinstance(step, CompactStep):
        for bin_ in (bin_ for batch in step.batches for bin_ in batch.bins):
            assert bin_.size_bytes <= step.max_file_size_bytes or len(bin_.files) == 1
            assert len(bin_.files) > 1 or bin_.files[0].deletion_vector is not None


@given(planning_inputs())
def test_a_table_held_back_or_quarantined_has_no_steps(inputs: Inputs) -> None:
    policy, facts, record = inputs
    planned = _plan(policy, facts, replace(record, quarantined="a proof failed"))
    assert planned.steps == ()
    assert [reason.code for reason in planned.blocked] == [ReasonCode.QUARANTINED]


def _pieces(step: RewriteStep, bin_: Bin) -> int:
    match step:
        case CompactStep() | PurgeStep():
            return 1
        case ZOrderStep() | ClusterStep():
            return max(1, bin_.size_bytes // step.max_file_size_bytes)
        case PartitionRewriteStep():
            return step.request.num_files_of(bin_.size_bytes)
        case _:
            assert_never(step)


def _tags(step: RewriteStep, bin_: Bin, cube: str) -> tuple[tuple[str, str], ...]:
    tags = dict(step.file_tags)
    if isinstance(step, ClusterStep):
        tags[ZCUBE_ID_TAG] = cube
    if isinstance(step, PurgeStep):
        tags.update(step.row_order_tags(bin_))
    return tuple(sorted(tags.items()))


def _after(planned: TablePlan, facts: TableFacts, share: float) -> TableFacts:
    """The table after the plan ran, each bin's output being ``share`` of what the log said of its input."""
    steps = [step for step in planned.steps if isinstance(step, RewriteStep)]
    if not steps:
        return facts
    gone = {file.key for file in _rewritten(planned)}
    files = [file for file in facts.files if file.key not in gone]
    bins = [(step, bin_) for step in steps for batch in step.batches for bin_ in batch.bins]
    for number, (step, bin_) in enumerate(bins):
        pieces = _pieces(step, bin_)
        files += [
            DataFile(
                path=f"new-{facts.version}-{number}-{piece}",
                size_bytes=int(bin_.size_bytes * share) // pieces,
                modification_time_ms=NOW_MS,
                partition_values=bin_.partition_values,
                physical_records=bin_.live_records,
                tags=_tags(step, bin_, f"cube-{facts.version}-{number}"),
                clustering_provider=LIQUID if isinstance(step, ClusterStep) else bin_.files[0].clustering_provider,
            )
            for piece in range(pieces)
        ]
    return replace(facts, files=tuple(files), version=facts.version + 1)


@given(planning_inputs(), st.sampled_from([1.0, 0.9, 0.3, 0.0]))
def test_a_second_plan_on_the_result_rewrites_nothing(inputs: Inputs, share: float) -> None:
    """Promise 6, also where what was written came out smaller than its input said."""
    policy, facts, record = inputs
    first = _plan(policy, facts, record)
    assert _rewritten(_plan(policy, _after(first, facts, share), record)) == []


@given(st.lists(data_files(partitioned=False), max_size=40), st.sampled_from([40, 75, 100]))
def test_compaction_is_a_fixed_point_even_without_tags(files: list[DataFile], min_size: int) -> None:
    """By packing alone: results as large as their input never join again, with or without our tags."""
    plain = tuple(replace(file, path=f"f{number}", tags=()) for number, file in enumerate(files))
    policy = make_policy(optimize=make_optimize(min_size=min_size))
    facts = make_facts(files=plain)
    after = _after(_plan(policy, facts), facts, 1.0)
    untagged = replace(after, files=tuple(replace(file, tags=()) for file in after.files))
    assert _rewritten(_plan(policy, untagged)) == []


def _smaller(optimize: OptimizePolicy) -> OptimizePolicy:
    return replace(optimize, when=WorthPolicy(), every_seconds=0)


@given(planning_inputs(), st.integers(0, 600))
def test_a_smaller_limit_never_selects_more(inputs: Inputs, limit: int) -> None:
    policy, facts, record = inputs
    policy = replace(policy, optimize=_smaller(policy.optimize))
    unbounded = replace(policy, limits=replace(policy.limits, max_bytes=None, max_files=None))
    bounded = replace(policy, limits=replace(policy.limits, max_bytes=limit, max_files=None))
    few, many = _rewritten(_plan(bounded, facts, record)), _rewritten(_plan(unbounded, facts, record))
    assert few in ([], many)


@given(planning_inputs())
def test_a_plan_holds_against_the_table_it_was_made_from(inputs: Inputs) -> None:
    policy, facts, record = inputs
    planned = _plan(policy, facts, record)
    assert recheck(planned, facts, policy.digest) == planned
    assert beyond_policy(planned, policy, facts) == ()


@given(planning_inputs(), st.data())
def test_what_is_rechecked_runs_only_bins_whose_files_are_all_live(inputs: Inputs, data: st.DataObject) -> None:
    policy, facts, record = inputs
    planned = _plan(policy, facts, record)
    kept = tuple(file for file in facts.files if data.draw(st.booleans()))
    now = replace(facts, files=kept, version=facts.version + 1)
    checked = recheck(planned, now, policy.digest)
    assert isinstance(checked, TablePlan)
    live = [bin_ for bin_ in _bins(planned) if all(file.key in now.file_keys for file in bin_.files)]
    assert _bins(checked) == live


@given(planning_inputs(), st.sampled_from(["table_id", "location", "schema_json", "partition_columns"]))
def test_a_plan_does_not_hold_on_another_table(inputs: Inputs, field: str) -> None:
    policy, facts, record = inputs
    planned = _plan(policy, facts, record)
    assume(planned.steps)  # a table with nothing to do cannot be refused
    other: dict[str, object] = {
        "table_id": "another",
        "location": "file:/elsewhere",
        "schema_json": '{"type":"struct","fields":[{"name":"id","type":"integer"}]}',
        "partition_columns": ("id",),
    }
    changed = replace(facts, **{field: other[field]})  # type: ignore[arg-type]  # one of four fields by name
    assert isinstance(recheck(planned, changed, policy.digest), StaleReasons)


def test_assembling_a_table_twice_is_refused() -> None:
    planned = _plan(make_policy(), make_facts())
    with pytest.raises(ValueError, match="planned twice"):
        assemble([planned, planned], created_at_ms=NOW_MS)
