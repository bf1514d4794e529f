"""Properties of a table that ask for Z-order: honoured where the policy says so, defaults, and requests by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from maintainer.model.plan.reasons import ReasonCode
from maintainer.model.plan.steps import ZOrderStep
from maintainer.model.plan.zorder_turn import Strategy
from maintainer.model.table.table_facts import DataFile
from maintainer.planning.plan_input import TableInput
from maintainer.planning.planner import plan_table
from maintainer.policy.resolve.resolved import ResolvedPolicy
from tests.support.tables.builders import NEVER_TOUCHED, NOW_MS, make_file
from tests.unit.planning.zorder.zorder_plans import (
    codes,
    counted,
    files,
    known,
    plan,
    policy_of,
    read,
    tagged,
    zorder_of,
)

AUTO = "use.optimization.autoOptimize."


def honoured(*files: DataFile, **zorder: Any) -> ResolvedPolicy:
    return policy_of(honour_table_properties=True, **zorder)


def test_properties_of_the_table_count_only_where_the_policy_says_so() -> None:
    facts = known(*files(100, 100), **{f"{AUTO}enabled": "false"})
    assert plan(policy_of(), facts).state == "changes"
    planned = plan(honoured(), facts)
    assert planned.state == "up_to_date"
    assert codes(planned) == [ReasonCode.OFF_ON_TABLE]


def test_the_example_of_the_guide() -> None:
    facts = known(
        make_file("old", size=100, modified_at_ms=1_672_531_199_999),
        make_file("new", size=100, modified_at_ms=1_672_531_200_000),
        **{
            f"{AUTO}enabled": "true",
            f"{AUTO}optimizeUnindexedFiles.enabled": "true",
            f"{AUTO}optimizeUnindexedFiles.prioritize": "true",
            f"{AUTO}optimizeUnindexedFiles.batchBytes": "5000000000",
            f"{AUTO}optimizeUnindexedFiles.fromTimestamp": "2023-01-01 00:00:00",
        },
    )
    planned = plan(honoured(strategies=(Strategy.LEVELED,)), facts)
    step = zorder_of(planned)
    assert [file.path for file in step.batches[0].files] == ["new"]
    assert step.settings is not None
    assert step.settings.strategies == (Strategy.UNINDEXED, Strategy.LEVELED)
    assert (step.settings.batch_bytes, step.settings.from_timestamp_ms) == (5_000_000_000, 1_672_531_200_000)
    assert ReasonCode.BEFORE_TIMESTAMP in codes(planned)
    counted(planned, facts)


@pytest.mark.parametrize(
    ("properties", "strategies"),
    [
        ({}, (Strategy.UNINDEXED, Strategy.LEVELED, Strategy.PIECES)),
        ({"prioritize": "false"}, (Strategy.LEVELED, Strategy.PIECES, Strategy.UNINDEXED)),
        ({"enabled": "FALSE"}, (Strategy.LEVELED, Strategy.PIECES)),
    ],
)
def test_documented_defaults_hold(properties: dict[str, str], strategies: tuple[Strategy, ...]) -> None:
    given = {f"{AUTO}optimizeUnindexedFiles.{name}": value for name, value in properties.items()}
    facts = known(
        *files(100, 100), *[tagged(f"r{n}", "01", 60) for n in range(2)], **{f"{AUTO}enabled": "true"}, **given
    )
    settings = zorder_of(plan(honoured(), facts)).settings
    assert settings is not None
    assert settings.strategies == strategies
    assert (settings.batch_bytes, settings.from_timestamp_ms) == (10_000_000_000, 0)


REQUEST = {"use.optimization.type": "LeveledCompaction", "use.optimization.bytes-per-iter": "5000000"}


def test_a_request_by_hand_is_one_round_of_leveled_compaction() -> None:
    facts = known(*files(100, 100), *[tagged(f"r{n}", "01", 60) for n in range(2)], **REQUEST)
    assert zorder_of(plan(policy_of(), facts)).settings.request is False  # type: ignore[union-attr]
    step = zorder_of(plan(honoured(), facts))
    assert step.settings is not None
    assert step.settings.strategies == (Strategy.LEVELED, Strategy.UNINDEXED, Strategy.PIECES)
    assert step.planned_turn is not None
    assert step.planned_turn.strategy is Strategy.LEVELED
    off = known(*[tagged(f"r{n}", "01", 60) for n in range(2)], **REQUEST, **{f"{AUTO}enabled": "false"})
    assert zorder_of(plan(honoured(), off)).settings.strategies == (Strategy.LEVELED,)  # type: ignore[union-attr]
    assert (step.settings.bytes_per_iteration, step.settings.request) == (5_000_000, True)


def test_a_request_is_ignored_with_a_note_under_automatic_optimization() -> None:
    facts = known(*files(100, 100), **REQUEST, **{f"{AUTO}enabled": "true"})
    planned = plan(honoured(), facts)
    assert zorder_of(planned).settings.request is False  # type: ignore[union-attr]
    (note,) = [left.reason for left in planned.left_alone if left.reason.code is ReasonCode.REQUEST_IGNORED]
    assert note.text == (
        "use.optimization.type is ignored: the table is under automatic optimization "
        "(use.optimization.autoOptimize.enabled)"
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (f"{AUTO}enabled", "yes"),
        (f"{AUTO}optimizeUnindexedFiles.batchBytes", "5GB"),
        (f"{AUTO}optimizeUnindexedFiles.fromTimestamp", "yesterday"),
        (f"{AUTO}revisionId", "-1"),
        ("use.optimization.type", "Everything"),
    ],
)
def test_a_property_that_cannot_be_read_is_refused_by_name(key: str, value: str) -> None:
    facts = known(*files(100, 100), **{f"{AUTO}enabled": "true", key: value})
    problem = plan(honoured(), facts).problem
    assert problem is not None
    assert problem.code == "T418"
    assert key in problem.what


@pytest.mark.parametrize(("spelled", "same_ms"), [("1767225600000", "2026-01-01 00:00:00"), (" 1767225600000 ", None)])
def test_a_timestamp_may_be_milliseconds(spelled: str, same_ms: str | None) -> None:
    key = f"{AUTO}optimizeUnindexedFiles.fromTimestamp"
    settings = []
    for text in (spelled, same_ms or "2026-01-01T00:00:00Z"):
        facts = known(*files(100, 100), **{f"{AUTO}enabled": "true", key: text})
        settings.append(zorder_of(plan(honoured(), facts)).settings)
    assert settings[0] is not None
    assert settings[0].from_timestamp_ms == 1_767_225_600_000
    assert settings[0] == settings[1]


def test_a_request_by_hand_is_due_whatever_the_pace() -> None:
    leveled = [tagged(f"r{n}", "01", 60) for n in range(2)]
    record = replace(NEVER_TOUCHED, last_optimize_at_ms=NOW_MS - 1000)
    policy = honoured()
    policy = replace(policy, optimize=replace(policy.optimize, every_seconds=86_400))
    # A request that finds no group waits for one: the policy's own work keeps its days meanwhile.
    for properties, on_curve, due in ((REQUEST, leveled, True), ({}, leveled, False), (REQUEST, leveled[:1], False)):
        facts = read(policy, known(*files(100, 100), *on_curve, **properties))
        planned = plan_table(TableInput(policy, facts, record, NOW_MS, date(2026, 11, 21)))
        assert any(isinstance(step, ZOrderStep) for step in planned.steps) is due
