"""What would change a decision, read from the sentence, set in the policy, and planned again: then it is so."""

from __future__ import annotations

import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from maintainer.model.plan.steps import CompactStep, VacuumStep
from maintainer.model.table.table_facts import RemovedFile, TableFacts, TableRecord
from maintainer.planning.plan_input import TableInput
from maintainer.planning.planner import plan_table
from maintainer.policy.resolve.resolved import OptimizePolicy, ResolvedPolicy
from maintainer.report.plan.counterfactuals import of_step
from maintainer.units import parse_duration, parse_size, round_duration_up, round_size_down
from tests.support.policies.strategies import TODAY, planning_inputs
from tests.support.tables.builders import (
    DAY_MS,
    NEVER_TOUCHED,
    NOW_MS,
    make_facts,
    make_files,
    make_policy,
    make_vacuum,
)

CLAUSE = re.compile(r"(optimize[.a-zA-Z]+) were (more than )?([0-9.,]+(?: [KMGTP]?i?B)?)")
ALWAYS = "rewritten whatever the sizes are: no statistics say how many rows of a file are deleted"

Inputs = tuple[ResolvedPolicy, TableFacts, TableRecord]


def _compaction(policy: ResolvedPolicy, facts: TableFacts, record: TableRecord) -> CompactStep | None:
    steps = plan_table(TableInput(policy, facts, record, NOW_MS, TODAY)).steps
    return next((step for step in steps if isinstance(step, CompactStep)), None)


def _set(optimize: OptimizePolicy, clause: str) -> OptimizePolicy:
    """Set what one clause asks for, to the value that is nearest to today's."""
    ((key, more, value),) = CLAUSE.findall(clause)
    match key:
        case "optimize.minFileSize":
            return replace(optimize, min_file_size_bytes=parse_size(value))
        case "optimize.maxDeletedRowsRatio":
            return replace(optimize, max_deleted_rows_ratio=float(value))
        case "optimize.when.minSmallFiles":
            assert more
            return replace(optimize, when=replace(optimize.when, min_small_files=int(value.replace(",", "")) + 1))
    raise AssertionError(key)


@st.composite
def compactions(draw: st.DrawFn) -> Inputs:
    """A table and a policy that compacts: most files have statistics, and sizes are not all round ones."""
    policy, facts, record = draw(planning_inputs())
    scale, records = draw(st.sampled_from([1, 1_000, 700_001])), draw(st.sampled_from([None, 150, 1000]))
    files = tuple(
        replace(file, size_bytes=file.size_bytes * scale, physical_records=file.physical_records or records)
        for file in facts.files
    )
    optimize = replace(
        policy.optimize,
        min_file_size_bytes=policy.optimize.min_file_size_bytes * scale,
        max_file_size_bytes=policy.optimize.max_file_size_bytes * scale,
        zorder=None,
        rewrite=None,
    )
    limits = replace(policy.limits, max_bytes=None, max_files=None)
    return replace(policy, optimize=optimize, limits=limits), replace(facts, files=files, clustering_columns=()), record


@given(compactions())
def test_each_way_out_of_a_compaction_is_one(inputs: Inputs) -> None:
    policy, facts, record = inputs
    optimize = policy.optimize
    step = _compaction(policy, facts, record)
    if step is None:
        return
    text = of_step(step, policy, NOW_MS)
    if text == ALWAYS:
        assert _compaction(replace(policy, optimize=replace(optimize, min_file_size_bytes=0)), facts, record)
        return
    for way in text.split(", or "):
        changed = optimize
        for clause in way.split(" and "):
            changed = _set(changed, clause)
        assert _compaction(replace(policy, optimize=changed), facts, record) is None, way


@given(st.lists(st.integers(6 * DAY_MS, 40 * DAY_MS), min_size=1, max_size=4), st.sampled_from(["data", "untracked"]))
def test_with_the_retention_that_is_named_nothing_is_deleted(ages_ms: list[int], kind: str) -> None:
    removed = tuple(RemovedFile(f"r{number}", 5, NOW_MS - age, kind) for number, age in enumerate(ages_ms))
    facts = replace(make_facts(files=make_files(90)), removed_files=removed)

    def deletion(retention_seconds: int) -> VacuumStep | None:
        vacuum = make_vacuum(retention_seconds=retention_seconds, delete_untracked=True)
        table = TableInput(make_policy(vacuum=vacuum), facts, NEVER_TOUCHED, NOW_MS, TODAY)
        return next((step for step in plan_table(table).steps if isinstance(step, VacuumStep)), None)

    step = deletion(7 * 86_400)
    if step is not None:
        match = re.search(r"vacuum\.retention were ([0-9dhms ]+) or more", of_step(step, make_policy(), NOW_MS))
        assert match is not None
        assert deletion(parse_duration(match[1])) is None


@given(st.integers(0, 1 << 50))
def test_round_sizes_are_below_and_near(size_bytes: int) -> None:
    rounded = round_size_down(size_bytes)
    assert rounded <= size_bytes <= rounded * 1.1
    assert rounded == size_bytes or rounded % 1024 == 0


@given(st.integers(0, 400 * 86_400))
def test_round_durations_are_above_and_near(seconds: int) -> None:
    rounded = round_duration_up(seconds)
    assert seconds <= rounded <= seconds * 1.05
    assert rounded - seconds < 3600
