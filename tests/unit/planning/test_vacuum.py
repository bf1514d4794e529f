"""Vacuum: who decides the horizon, and which files it names."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from maintainer.model.plan import LeftAlone, TablePlan
from maintainer.model.reasons import Reason, ReasonCode
from maintainer.model.steps import SetPropertiesStep, VacuumStep
from maintainer.model.table import RemovedFile, TableFacts, TableRecord
from maintainer.planning.planner import PlanOptions, horizon_to_read, plan_table
from maintainer.planning.schedule import vacuum_wanted
from maintainer.planning.vacuum import Horizon, vacuum_horizon
from maintainer.policy.resolved import Consumer, ResolvedPolicy, Suspension
from tests.builders import (
    DAY_MS,
    DAY_SECONDS,
    HOUR_MS,
    NEVER_TOUCHED,
    NOW_MS,
    make_facts,
    make_file,
    make_policy,
    make_vacuum,
)

TODAY = date(2026, 11, 21)
LINES = {"vacuum": 11, "vacuum.retention": 12, "vacuum.every": 13, "consumers": 15}
FILES_PROPERTY = "delta.deletedFileRetentionDuration"


def policy_of(*, consumers: tuple[Consumer, ...] = (), **vacuum: Any) -> ResolvedPolicy:
    return make_policy(vacuum=make_vacuum(**vacuum), consumers=consumers, lines=LINES)


def removed(path: str, *, days_ago: float, version: int | None = 5, size: int = 100) -> RemovedFile:
    return RemovedFile(path, size, NOW_MS - int(days_ago * DAY_MS), removed_in_version=version)


def plan(policy: ResolvedPolicy, facts: TableFacts, record: TableRecord = NEVER_TOUCHED) -> TablePlan:
    return plan_table(policy, facts, record, NOW_MS, TODAY)


@pytest.mark.parametrize(
    ("vacuum", "property_", "consumers", "days", "decided_by"),
    [
        ({"retention_seconds": 14 * DAY_SECONDS}, None, (), 14, "vacuum.retention (orders.yml:12)"),
        ({}, "interval 30 days", (), 30, f"table property {FILES_PROPERTY}"),
        ({}, None, (), 7, "vacuum.retention (orders.yml:12)"),
        (
            {"retention_seconds": 3600, "allow_short_retention": True},
            None,
            (),
            7,
            f"table property {FILES_PROPERTY} (Delta's default)",
        ),
        (
            {"retention_seconds": 2 * DAY_SECONDS, "allow_short_retention": True},
            "interval 1 days",
            (),
            2,
            "vacuum.retention (orders.yml:12)",
        ),
        ({"retention_seconds": DAY_SECONDS}, "interval 2 days", (), 7, "the floor of seven days"),
        (
            {},
            None,
            (Consumer("a", 3 * DAY_SECONDS), Consumer("late", 10 * DAY_SECONDS)),
            10,
            "consumer late (orders.yml:15)",
        ),
    ],
)
def test_the_longest_wish_decides_and_is_named(
    vacuum: dict[str, Any], property_: str | None, consumers: tuple[Consumer, ...], days: int, decided_by: str
) -> None:
    facts = make_facts(properties={FILES_PROPERTY: property_} if property_ else {})
    horizon = vacuum_horizon(policy_of(consumers=consumers, **vacuum), facts, NOW_MS)
    assert horizon == Horizon(NOW_MS - days * DAY_MS, days * DAY_SECONDS, decided_by)


def test_files_removed_before_the_horizon_are_named_oldest_first() -> None:
    files = (removed("b", days_ago=8), removed("a", days_ago=9), removed("young", days_ago=7), removed("c", days_ago=8))
    planned = plan(policy_of(), make_facts(removed_files=files))
    assert planned.steps == (
        VacuumStep(
            files=(files[1], files[0], files[3]),
            removed_before_ms=NOW_MS - 7 * DAY_MS,
            retention_seconds=7 * DAY_SECONDS,
            decided_by="vacuum.retention (orders.yml:12)",
            reasons=(
                Reason(ReasonCode.REMOVED_FILES_EXPIRED, "3 files (300 B) removed more than 7d ago", "orders.yml:12"),
            ),
        ),
    )


def test_a_file_removed_exactly_at_the_horizon_stays() -> None:
    at_horizon = RemovedFile("at", 1, NOW_MS - 7 * DAY_MS)
    before = RemovedFile("before", 1, NOW_MS - 7 * DAY_MS - 1)
    (step,) = plan(policy_of(), make_facts(removed_files=(at_horizon, before))).steps
    assert isinstance(step, VacuumStep)
    assert step.files == (before,)


def test_nothing_expired_is_said() -> None:
    planned = plan(policy_of(), make_facts(removed_files=(removed("young", days_ago=1),)))
    text = "no file was removed more than 7d ago"
    assert planned.left_alone == (LeftAlone(Reason(ReasonCode.NOTHING_EXPIRED, text, "orders.yml:12")),)
    assert planned.state == "up_to_date"


def test_what_an_unproven_rewrite_replaced_is_kept() -> None:
    files = (
        removed("by-5", days_ago=9, version=5),
        removed("by-6", days_ago=9, version=6),
        removed("by-unknown", days_ago=9, version=None),
    )
    record = TableRecord(unproven_versions=(6,))
    planned = plan(policy_of(), make_facts(removed_files=files), record)
    (step,) = planned.steps
    assert isinstance(step, VacuumStep)
    assert step.files == files[:1]
    text = "2 files (200 B) kept: the rewrite of version 6 is not proven"
    assert planned.left_alone == (LeftAlone(Reason(ReasonCode.UNPROVEN_REWRITE, text, "orders.yml:11")),)


def test_a_file_that_is_live_again_is_never_named() -> None:
    facts = make_facts(files=[make_file("back", size=90)], removed_files=(removed("back", days_ago=9),))
    planned = plan(policy_of(), facts)
    assert planned.steps == ()
    assert [left.reason.code for left in planned.left_alone] == [ReasonCode.AT_TARGET, ReasonCode.LIVE_AGAIN]


def test_a_quarantined_table_is_blocked() -> None:
    facts = make_facts(removed_files=(removed("old", days_ago=9),))
    planned = plan(policy_of(), facts, TableRecord(quarantined="proof failed at version 5"))
    assert planned.blocked == (Reason(ReasonCode.QUARANTINED, "quarantined: proof failed at version 5"),)


def test_every_leaves_vacuum_for_another_day() -> None:
    record = TableRecord(last_vacuum_at_ms=NOW_MS - 2 * DAY_MS)
    planned = plan(policy_of(every_seconds=7 * DAY_SECONDS), make_facts(), record)
    reason = Reason(ReasonCode.NOT_DUE, "vacuum ran 2d ago, at most every 7d", "orders.yml:13")
    assert planned.left_alone == (LeftAlone(reason),)


@pytest.mark.parametrize(
    ("consumers", "vacuum", "what"),
    [
        (
            (Consumer("audit", None, "/chk/audit"),),
            {},
            "reading the checkpoint of consumer audit is not supported yet",
        ),
        ((), {"delete_untracked": True}, "deleting files that the log never knew is not supported yet"),
    ],
)
def test_what_would_have_to_be_honoured_and_is_not_built_is_refused(
    consumers: tuple[Consumer, ...], vacuum: dict[str, Any], what: str
) -> None:
    planned = plan(policy_of(consumers=consumers, **vacuum), make_facts(removed_files=()))
    assert planned.problem is not None
    assert (planned.problem.code, planned.problem.what) == ("E620", what)


def test_an_unreadable_table_property_is_a_problem() -> None:
    planned = plan(policy_of(), make_facts(properties={FILES_PROPERTY: "a while"}, removed_files=()))
    assert planned.problem is not None
    assert planned.problem.code == "T418"


def test_a_table_that_keeps_less_than_the_policy_is_raised_first_and_its_log_with_it() -> None:
    policy = policy_of(retention_seconds=45 * DAY_SECONDS)
    facts = make_facts(removed_files=(removed("old", days_ago=50),))
    properties, vacuum = plan(policy, facts).steps
    assert isinstance(vacuum, VacuumStep)
    text = "{} keeps {}, the policy needs 45d"
    assert properties == SetPropertiesStep(
        before=((FILES_PROPERTY, None), ("delta.logRetentionDuration", None)),
        after=((FILES_PROPERTY, "interval 45 days"), ("delta.logRetentionDuration", "interval 45 days")),
        reasons=(
            Reason(ReasonCode.RETENTION_TOO_SHORT_ON_TABLE, text.format(FILES_PROPERTY, "7d"), "orders.yml:12"),
            Reason(
                ReasonCode.RETENTION_TOO_SHORT_ON_TABLE,
                text.format("delta.logRetentionDuration", "30d"),
                "orders.yml:12",
            ),
        ),
    )


class TestWhatToRead:
    def horizon(self, policy: ResolvedPolicy, facts: TableFacts, record: TableRecord = NEVER_TOUCHED) -> Horizon | None:
        return horizon_to_read(policy, facts, record, NOW_MS, TODAY)

    def test_removed_files_are_read_up_to_the_horizon(self) -> None:
        horizon = self.horizon(policy_of(), make_facts())
        assert horizon is not None
        assert horizon.removed_before_ms == NOW_MS - 7 * DAY_MS

    def test_nothing_is_read_without_a_vacuum_that_is_due(self) -> None:
        facts = make_facts()
        recent = TableRecord(last_vacuum_at_ms=NOW_MS - HOUR_MS)
        weekly = policy_of(every_seconds=7 * DAY_SECONDS)
        suspended = replace(policy_of(), suspend=Suspension(None, "migration"))
        assert self.horizon(make_policy(), facts) is None
        assert self.horizon(weekly, facts, recent) is None
        assert self.horizon(suspended, facts) is None
        assert self.horizon(policy_of(), facts, TableRecord(quarantined="x")) is None
        assert horizon_to_read(weekly, facts, recent, NOW_MS, TODAY, PlanOptions(ignore_every=True)) is not None
        assert vacuum_wanted(weekly, NEVER_TOUCHED, now_ms=NOW_MS, today=TODAY)

    def test_nothing_is_read_where_planning_ends_in_a_problem(self) -> None:
        assert self.horizon(policy_of(), make_facts(properties={FILES_PROPERTY: "a while"})) is None

    def test_planning_without_what_it_needs_is_a_bug(self) -> None:
        with pytest.raises(ValueError, match="without removed files"):
            plan(policy_of(), make_facts())
