"""Which removed files a vacuum names, when it is due, and what is read for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from maintainer.model.plan.plan import LeftAlone
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import VacuumStep
from maintainer.model.table.storage_facts import VacuumHistory
from maintainer.model.table.table_facts import RemovedFile, TableFacts, TableRecord
from maintainer.planning.needs import Need, RemovalHistoryNeed, RemovedFilesNeed, next_need
from maintainer.planning.plan_input import PlanOptions, TableInput
from maintainer.policy.resolve.resolved import ResolvedPolicy, Suspension
from tests.support.tables.builders import DAY_MS, DAY_SECONDS, HOUR_MS, NEVER_TOUCHED, NOW_MS, make_facts, make_policy
from tests.unit.planning.vacuum.vacuum_plans import FILES_PROPERTY, TODAY, plan, policy_of, removed


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
    text = "nothing removed more than 7d ago is left on storage"
    assert planned.left_alone == (LeftAlone(Reason(ReasonCode.NOTHING_EXPIRED, text, "orders.yml:12")),)
    assert planned.state == "up_to_date"


def test_every_leaves_vacuum_for_another_day() -> None:
    record = TableRecord(last_vacuum_at_ms=NOW_MS - 2 * DAY_MS)
    planned = plan(policy_of(every_seconds=7 * DAY_SECONDS), make_facts(), record)
    reason = Reason(
        ReasonCode.NOT_DUE, "a run with a vacuum began 2d ago, at most every 7d: due in 4d 23h", "orders.yml:13"
    )
    assert planned.left_alone == (LeftAlone(reason),)


class TestWhatToRead:
    def need(self, policy: ResolvedPolicy, facts: TableFacts, record: TableRecord = NEVER_TOUCHED) -> Need | None:
        return next_need(TableInput(policy, facts, record, NOW_MS, TODAY))

    def test_removed_files_are_read_up_to_the_horizon_after_the_history(self) -> None:
        facts, before_ms = make_facts(), NOW_MS - 7 * DAY_MS
        assert self.need(policy_of(), facts) == RemovalHistoryNeed((), before_ms)
        facts = replace(facts, history=VacuumHistory())
        assert self.need(policy_of(), facts) == RemovedFilesNeed(before_ms, None)
        longer = replace(facts, history=VacuumHistory(5 * DAY_MS, 41))
        assert self.need(policy_of(), longer) == RemovedFilesNeed(NOW_MS - 10 * DAY_MS, None)
        assert self.need(policy_of(), replace(facts, removed_files=())) is None

    def test_nothing_is_read_without_a_vacuum_that_is_due(self) -> None:
        facts = make_facts()
        recent = TableRecord(last_vacuum_at_ms=NOW_MS - HOUR_MS)
        weekly = policy_of(every_seconds=7 * DAY_SECONDS)
        suspended = replace(policy_of(), suspend=Suspension(None, "migration"))
        assert self.need(make_policy(), facts) is None
        assert self.need(weekly, facts, recent) is None
        assert self.need(suspended, facts) is None
        assert self.need(policy_of(), facts, TableRecord(quarantined="x")) is None
        at_once = PlanOptions(ignore_every=True)
        assert next_need(TableInput(weekly, facts, recent, NOW_MS, TODAY, at_once)) is not None
        assert self.need(weekly, facts) is not None

    def test_nothing_is_read_where_planning_ends_in_a_problem(self) -> None:
        assert self.need(policy_of(), make_facts(properties={FILES_PROPERTY: "a while"})) is None

    def test_planning_without_what_it_needs_is_a_bug(self) -> None:
        with pytest.raises(ValueError, match="without removed files"):
            plan(policy_of(), make_facts())
