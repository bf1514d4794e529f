"""What others did counts for ``every``, and a table that others take care of, too, is named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from maintainer.model.plan.plan import LeftAlone, TablePlan
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import StepKind
from maintainer.model.table.commit_records import TableCommit
from maintainer.model.table.table_facts import RemovedFile, TableFacts, TableRecord
from maintainer.policy.resolve.resolved import AutoCompactPolicy, PurgePolicy, RewritePolicy, ZOrderMode, ZOrderPolicy
from tests.support.tables.builders import (
    DAY_MS,
    DAY_SECONDS,
    HOUR_MS,
    NEVER_TOUCHED,
    NOW_MS,
    make_facts,
    make_files,
    make_optimize,
    make_policy,
)
from tests.unit.planning.operations.compaction_plans import bins_of, plan
from tests.unit.planning.vacuum.vacuum_plans import plan as plan_vacuum
from tests.unit.planning.vacuum.vacuum_plans import policy_of

DAILY = make_policy(optimize=make_optimize(every_seconds=DAY_SECONDS), lines={"optimize.every": 8})
WEEKLY = policy_of(every_seconds=7 * DAY_SECONDS)


def facts_after(*commits: tuple[str, int], properties: tuple[tuple[str, str], ...] = ()) -> TableFacts:
    """A table with two small files and one that expired, after commits of others: operation and hours ago."""
    by_others = tuple(
        TableCommit(number, NOW_MS - hours_ago * HOUR_MS, operation, by="delta-rs:1")
        for number, (operation, hours_ago) in enumerate(commits)
    )
    expired = (RemovedFile("old", 1, NOW_MS - 30 * DAY_MS),)
    facts = make_facts(files=make_files(10, 20), removed_files=expired)
    return replace(facts, maintenance_by_others=by_others, properties=properties)


def twice(planned: TablePlan) -> list[str]:
    return [note.text for note in planned.notes if note.code is ReasonCode.MAINTAINED_TWICE]


@pytest.mark.parametrize("operation", ["OPTIMIZE", "REORG"])
@pytest.mark.parametrize(("hours_ago", "ours_hours_ago", "said"), [
    (22, None, "{} by delta-rs:1 ran 22h ago, at most every 1d: due in 1h"),
    (23, None, ""),
    (22, 30, "{} by delta-rs:1 ran 22h ago, at most every 1d: due in 1h"),
    (30, 22, "a run with a rewrite began 22h ago, at most every 1d: due in 1h"),
    (30, 26, ""),
    (-3, None, "{} by delta-rs:1 ran 0s ago, at most every 1d: due in 23h"),
])  # fmt: skip
def test_every_counts_from_the_last_rewrite_by_anybody(
    operation: str, hours_ago: int, ours_hours_ago: int | None, said: str
) -> None:
    record = TableRecord(last_optimize_at_ms=None if ours_hours_ago is None else NOW_MS - ours_hours_ago * HOUR_MS)
    planned = plan(DAILY, facts_after((operation, hours_ago)), record)
    if said:
        reason = Reason(ReasonCode.NOT_DUE, said.format(operation), "orders.yml:8")
        assert planned.left_alone == (LeftAlone(reason, 2, 30),)
    else:
        assert bins_of(planned) == [["f0", "f1"]]


@pytest.mark.parametrize("operation", ["VACUUM END", "VACUUM"])
def test_every_counts_from_the_last_vacuum_by_anybody(operation: str) -> None:
    assert plan_vacuum(WEEKLY, facts_after((operation, 7 * 24))).steps
    planned = plan_vacuum(WEEKLY, facts_after((operation, 2 * 24)))
    said = f"{operation} by delta-rs:1 ran 2d ago, at most every 7d: due in 4d 23h"
    assert LeftAlone(Reason(ReasonCode.NOT_DUE, said, "orders.yml:13")) in planned.left_alone
    assert not [step for step in planned.steps if step.kind == "vacuum"]


def test_one_kind_of_maintenance_says_nothing_of_the_other() -> None:
    assert bins_of(plan(DAILY, facts_after(("VACUUM END", 1)))) == [["f0", "f1"]]
    vacuums = [step.kind for step in plan_vacuum(WEEKLY, facts_after(("OPTIMIZE", 1))).steps]
    assert "vacuum" in vacuums


def test_a_table_that_others_maintain_is_named_by_what_they_did_in_a_week() -> None:
    week = 7 * 24
    planned = plan(DAILY, facts_after(("OPTIMIZE", week), ("VACUUM END", 1)))
    assert twice(planned) == ["maintained twice: OPTIMIZE by delta-rs:1"]
    assert twice(plan(DAILY, facts_after(("OPTIMIZE", week + 1)))) == []
    both = plan_vacuum(WEEKLY, facts_after(("OPTIMIZE", 1), ("VACUUM END", 1)))
    assert twice(both) == ["maintained twice: OPTIMIZE by delta-rs:1; VACUUM END by delta-rs:1"]


def test_an_optimize_that_followed_a_write_by_itself_is_called_auto_compaction() -> None:
    facts = facts_after(("OPTIMIZE", 1))
    (optimize,) = facts.maintenance_by_others
    auto = replace(facts, maintenance_by_others=(replace(optimize, is_auto=True),))
    planned = plan(DAILY, auto)
    assert twice(planned) == ["maintained twice: auto compaction by delta-rs:1"]
    said = "auto compaction by delta-rs:1 ran 1h ago, at most every 1d: due in 22h"
    assert [entry.reason.text for entry in planned.left_alone] == [said]


@pytest.mark.parametrize(("asked_for", "clustering_columns", "step"), [
    ({"zorder": ZOrderPolicy(("id",), mode=ZOrderMode.FULL)}, (), StepKind.ZORDER),
    ({"rewrite": RewritePolicy(num_files=1)}, (), StepKind.REWRITE),
    ({"purge": PurgePolicy()}, (), StepKind.COMPACT),
    ({}, ("id",), StepKind.CLUSTER),
])  # fmt: skip
def test_an_auto_compaction_puts_off_nothing_but_a_compaction(
    asked_for: dict[str, Any], clustering_columns: tuple[str, ...], step: StepKind
) -> None:
    """It comes each few minutes, orders nothing and purges nothing: else the policy's own step would never be due."""
    facts = replace(facts_after(("OPTIMIZE", 1)), clustering_columns=clustering_columns)
    (optimize,) = facts.maintenance_by_others
    auto = replace(facts, maintenance_by_others=(replace(optimize, is_auto=True),))
    policy = make_policy(optimize=make_optimize(every_seconds=DAY_SECONDS, **asked_for))
    assert [each.kind for each in plan(policy, auto).steps] == [step]
    assert plan(policy, facts).steps == ()


def test_a_table_whose_writers_compact_or_vacuum_by_a_property_is_named_unless_the_policy_says_so() -> None:
    properties = (
        ("delta.AutoOptimize.autoCompact", "auto"),
        ("delta.autoVacuum.enabled", "true"),
        ("delta.enableDeletionVectors", "true"),
        ("delta.autoOptimize", "FALSE"),
        ("delta.autoOptimize.optimizeWrite", "true"),
    )
    facts = facts_after(properties=properties)
    named = "maintained twice: delta.AutoOptimize.autoCompact is auto; delta.autoVacuum.enabled is true"
    assert twice(plan(make_policy(), facts, NEVER_TOUCHED)) == [named]
    own = replace(make_policy(), auto_compact=AutoCompactPolicy(enabled=False))
    assert twice(plan(own, facts, NEVER_TOUCHED)) == ["maintained twice: delta.autoVacuum.enabled is true"]
    deprecated = facts_after(properties=(("delta.autoOptimize", "true"),))
    assert twice(plan(make_policy(), deprecated)) == ["maintained twice: delta.autoOptimize is true"]


def test_writers_that_join_rows_before_a_write_rewrite_no_file() -> None:
    """An optimized write (``optimizeWrite``) shuffles rows before they are written, and touches no older file."""
    facts = facts_after(properties=(("delta.autoOptimize.optimizeWrite", "true"),))
    assert twice(plan(make_policy(), facts)) == []
