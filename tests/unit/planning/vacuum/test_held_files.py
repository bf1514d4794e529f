"""What holds files back from a vacuum: unproven rewrites, checkpoints of streams, logs that cannot be read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from maintainer.model.plan.plan import LeftAlone
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import VacuumStep
from maintainer.model.table.storage_facts import (
    Protection,
    ProtectionReason,
    StorageLook,
    StreamPosition,
    VacuumHistory,
)
from maintainer.model.table.table_facts import TableFacts, TableRecord
from maintainer.planning.plan_input import TableInput
from maintainer.planning.vacuum.deletion_limits import Horizon, vacuum_horizon
from maintainer.policy.resolve.resolved import Consumer
from tests.support.tables.builders import DAY_MS, DAY_SECONDS, NEVER_TOUCHED, NOW_MS, make_facts, make_file
from tests.unit.planning.vacuum.vacuum_plans import TODAY, plan, policy_of, removed


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


CHECKPOINT = (Consumer("audit", None, "/chk/audit"),)


def test_a_checkpoint_holds_files_since_the_version_it_is_at() -> None:
    position = StreamPosition("audit", 12, NOW_MS - 20 * DAY_MS)
    facts = replace(make_facts(), history=VacuumHistory(positions=(position,)))
    horizon = vacuum_horizon(TableInput(policy_of(consumers=CHECKPOINT), facts, NEVER_TOUCHED, NOW_MS, TODAY))
    decided_by = "consumer audit, whose checkpoint is at version 12 (orders.yml:15)"
    assert horizon == Horizon(NOW_MS - 20 * DAY_MS, 20 * DAY_SECONDS, decided_by, "orders.yml:15")


def test_a_checkpoint_that_cannot_be_relied_on_holds_everything() -> None:
    position = StreamPosition("audit", problem="there is no such folder (file:/chk/audit)")
    facts = replace(
        make_facts(removed_files=(removed("old", days_ago=50),)), history=VacuumHistory(positions=(position,))
    )
    planned = plan(policy_of(consumers=CHECKPOINT), facts)
    text = (
        "the checkpoint of consumer audit does not say what it still needs: there is no such folder (file:/chk/audit)"
    )
    reason = Reason(ReasonCode.CANNOT_BE_SURE, text, "orders.yml:15")
    assert (planned.state, planned.blocked, planned.left_alone) == ("blocked", (reason,), (LeftAlone(reason),))


def test_a_checkpoint_that_nobody_read_holds_everything() -> None:
    planned = plan(policy_of(consumers=CHECKPOINT), make_facts(removed_files=(removed("old", days_ago=50),)))
    assert [reason.text for reason in planned.blocked] == ["the checkpoint of consumer audit was not read"]


def kept(why: ProtectionReason) -> TableFacts:
    look = StorageLook((Protection(why, f"kept by {why}", 3, 30),))
    return replace(make_facts(removed_files=(removed("old", days_ago=50),)), storage=look)


KEPT_CODES = {
    ProtectionReason.CLONE: ReasonCode.KEPT_FOR_CLONE,
    ProtectionReason.NEEDED: ReasonCode.LIVE_AGAIN,
    ProtectionReason.NESTED_TABLE: ReasonCode.NESTED_TABLE,
    ProtectionReason.SYMLINK: ReasonCode.BEHIND_SYMLINK,
}
UNSURE = sorted(set(ProtectionReason) - KEPT_CODES.keys())
"""What stops all deletion: every other word."""


@pytest.mark.parametrize(("why", "code"), KEPT_CODES.items())
def test_what_is_kept_is_told_and_the_rest_goes(why: ProtectionReason, code: ReasonCode) -> None:
    planned = plan(policy_of(), kept(why))
    assert [step.kind for step in planned.steps] == ["vacuum"]
    assert planned.left_alone == (LeftAlone(Reason(code, f"kept by {why}")),)


def test_a_log_that_cannot_be_read_elsewhere_holds_everything() -> None:
    planned = plan(policy_of(), kept(ProtectionReason.UNKNOWN_REFERENCE))
    assert planned.blocked == (Reason(ReasonCode.CANNOT_BE_SURE, "kept by unknown_reference"),)


@pytest.mark.parametrize(("why", "code"), KEPT_CODES.items())
def test_what_storage_keeps_is_named_by_its_reason(why: ProtectionReason, code: ReasonCode) -> None:
    facts = replace(make_facts(removed_files=()), storage=StorageLook(protections=(Protection(why, "so it is", 1),)))
    assert plan(policy_of(), facts).left_alone == (LeftAlone(Reason(code, "so it is")),)


@pytest.mark.parametrize("why", UNSURE)
def test_what_makes_it_unsure_stops_all_deletion(why: ProtectionReason) -> None:
    facts = replace(
        make_facts(removed_files=(removed("old", days_ago=9),)),
        storage=StorageLook(protections=(Protection(why, "who knows", 1),)),
    )
    planned = plan(policy_of(), facts)
    assert planned.steps == ()
    assert [(reason.code, reason.text) for reason in planned.blocked] == [(ReasonCode.CANNOT_BE_SURE, "who knows")]


def test_a_checkpoint_that_was_not_read_is_named_at_the_line_of_consumers() -> None:
    policy = policy_of(consumers=(Consumer("s", checkpoint="/c"),))
    facts = replace(make_facts(removed_files=(removed("old", days_ago=9),)), history=VacuumHistory())
    (reason,) = plan(policy, facts).blocked
    assert (reason.text, reason.origin) == ("the checkpoint of consumer s was not read", "orders.yml:15")


def test_what_is_live_again_and_what_is_unproven_is_said() -> None:
    live = make_file("back")
    files = (removed("back", days_ago=9), removed("by-5", days_ago=9, version=5))
    planned = plan(policy_of(), make_facts(files=(live,), removed_files=files), TableRecord(unproven_versions=(3, 5)))
    codes = (ReasonCode.LIVE_AGAIN, ReasonCode.UNPROVEN_REWRITE)
    assert [left.reason.text for left in planned.left_alone if left.reason.code in codes] == [
        "1 file (100 B) removed once and live again",
        "1 file (100 B) kept: the rewrites of versions 3, 5 are not proven",
    ]
    assert not [step for step in planned.steps if isinstance(step, VacuumStep)]


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (20, "the rewrites of versions 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20"),
        (
            21,
            "the rewrites of versions 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21"
            " and of 1 older version",
        ),
        (
            22,
            "the rewrites of versions 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22"
            " and of 2 older versions",
        ),
    ],
)
def test_the_newest_twenty_of_many_unproven_rewrites_are_named(number: int, says: str) -> None:
    facts = make_facts(removed_files=(removed("by-1", days_ago=9, version=1),))
    planned = plan(policy_of(), facts, TableRecord(unproven_versions=tuple(range(1, number + 1))))
    (text,) = (left.reason.text for left in planned.left_alone if left.reason.code is ReasonCode.UNPROVEN_REWRITE)
    assert text == f"1 file (100 B) kept: {says} are not proven"
