"""Vacuum: who decides the horizon, and which files it names."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from maintainer.model.plan.plan import LeftAlone, TablePlan
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import SetPropertiesStep, VacuumStep
from maintainer.model.table.storage_facts import Kept, StorageLook, StreamPosition, TrashedRun, VacuumHistory
from maintainer.model.table.table_facts import RemovedFile, TableFacts, TableRecord
from maintainer.planning.needs import Need, RemovalHistoryNeed, RemovedFilesNeed, next_need
from maintainer.planning.plan_input import PlanOptions, TableInput
from maintainer.planning.planner import plan_table
from maintainer.planning.schedule import vacuum_wanted
from maintainer.planning.vacuum.deletion_limits import Horizon, vacuum_horizon
from maintainer.policy.resolve.resolved import Consumer, ResolvedPolicy, Suspension, VacuumMode
from tests.support.tables.builders import (
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
    return plan_table(TableInput(policy, facts, record, NOW_MS, TODAY))


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
    horizon = vacuum_horizon(TableInput(policy_of(consumers=consumers, **vacuum), facts, NEVER_TOUCHED, NOW_MS, TODAY))
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
    text = "nothing removed more than 7d ago is left on storage"
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
    reason = Reason(ReasonCode.NOT_DUE, "vacuum ran 2d ago, at most every 7d: due in 4d 23h", "orders.yml:13")
    assert planned.left_alone == (LeftAlone(reason),)


CHECKPOINT = (Consumer("audit", None, "/chk/audit"),)


def test_a_checkpoint_holds_files_since_the_version_it_is_at() -> None:
    position = StreamPosition("audit", 12, NOW_MS - 20 * DAY_MS)
    facts = replace(make_facts(), history=VacuumHistory(positions=(position,)))
    horizon = vacuum_horizon(TableInput(policy_of(consumers=CHECKPOINT), facts, NEVER_TOUCHED, NOW_MS, TODAY))
    decided_by = "consumer audit, whose checkpoint is at version 12 (orders.yml:15)"
    assert horizon == Horizon(NOW_MS - 20 * DAY_MS, 20 * DAY_SECONDS, decided_by)


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


def test_twice_the_longest_write_is_kept() -> None:
    facts = replace(make_facts(), history=VacuumHistory(5 * DAY_MS, 41))
    horizon = vacuum_horizon(TableInput(policy_of(), facts, NEVER_TOUCHED, NOW_MS, TODAY))
    decided_by = "2 times the longest write in the log (5d, version 41)"
    assert horizon == Horizon(NOW_MS - 10 * DAY_MS, 10 * DAY_SECONDS, decided_by)


def kept(why: str) -> TableFacts:
    look = StorageLook((Kept(why, f"kept by {why}", 3, 30),))
    return replace(make_facts(removed_files=(removed("old", days_ago=50),)), storage=look)


@pytest.mark.parametrize(
    ("why", "code"),
    [
        ("clone", ReasonCode.KEPT_FOR_CLONE),
        ("nested_table", ReasonCode.NESTED_TABLE),
        ("symlink", ReasonCode.BEHIND_SYMLINK),
    ],
)
def test_what_is_kept_is_told_and_the_rest_goes(why: str, code: ReasonCode) -> None:
    planned = plan(policy_of(), kept(why))
    assert [step.kind for step in planned.steps] == ["vacuum"]
    assert planned.left_alone == (LeftAlone(Reason(code, f"kept by {why}")),)


def test_a_log_that_cannot_be_read_elsewhere_holds_everything() -> None:
    planned = plan(policy_of(), kept("unknown_reference"))
    assert planned.blocked == (Reason(ReasonCode.CANNOT_BE_SURE, "kept by unknown_reference"),)


def untracked(path: str, *, days: float, size: int = 100) -> RemovedFile:
    return RemovedFile(path, size, NOW_MS - int(days * DAY_MS), "untracked")


@pytest.mark.parametrize(
    ("delete", "mode", "listed"),
    [
        (True, VacuumMode.AUTO, True),
        (True, VacuumMode.FULL, True),
        (True, VacuumMode.LITE, False),
        (False, VacuumMode.AUTO, False),
        (False, VacuumMode.FULL, True),
        (False, VacuumMode.LITE, False),
    ],
)
def test_when_the_folder_is_listed(delete: bool, mode: VacuumMode, listed: bool) -> None:
    policy = policy_of(delete_untracked=delete, mode=mode, untracked_every_seconds=7 * DAY_SECONDS)
    facts = replace(make_facts(), history=VacuumHistory())
    question = next_need(TableInput(policy, facts, NEVER_TOUCHED, NOW_MS, TODAY))
    assert isinstance(question, RemovedFilesNeed)
    assert question.untracked_before_ms == (NOW_MS - 30 * DAY_MS if listed else None)
    recent = TableRecord(last_listing_at_ms=NOW_MS - DAY_MS)
    question = next_need(TableInput(policy, facts, recent, NOW_MS, TODAY))
    assert isinstance(question, RemovedFilesNeed)
    assert (question.untracked_before_ms is not None) == (mode is VacuumMode.FULL)


def test_untracked_files_need_the_policy_and_their_own_age() -> None:
    files = (untracked("young", days=29.9), untracked("old", days=30.1))
    planned = plan(policy_of(delete_untracked=True), make_facts(removed_files=files))
    (step,) = planned.steps
    assert isinstance(step, VacuumStep)
    assert (step.files, step.untracked_before_ms) == (files[1:], NOW_MS - 30 * DAY_MS)
    assert step.by_kind == (("untracked", 1, 100),)
    planned = plan(policy_of(), make_facts(removed_files=files))
    assert planned.steps == ()
    assert [(one.reason.code, one.reason.text) for one in planned.left_alone] == [
        (
            ReasonCode.UNTRACKED,
            "1 file (100 B) that the log never knew; `deleteUntracked: true` would delete them",
        )
    ]


def test_trash_past_its_time_is_emptied_even_where_nothing_else_is_due() -> None:
    trash = TrashedRun("run-1", "file:/lake/.maintainer-trash/orders-1/run-1", 4, 40, NOW_MS - 1)
    facts = replace(make_facts(removed_files=()), storage=StorageLook(trash=(trash,)))
    (step,) = plan(policy_of(trash_seconds=DAY_SECONDS), facts).steps
    assert isinstance(step, VacuumStep)
    assert (step.files, step.emptied, step.trash_seconds) == ((), (trash,), 0)
    assert [reason.code for reason in step.reasons] == [ReasonCode.TRASH_EXPIRED]


class TestCaps:
    """More than half of the bytes, more than the limit, more than three times the median."""

    def blocked(
        self, *sizes: int, replaced: bool = False, live: int = 0, past: tuple[int, ...] = (), **policy: Any
    ) -> list[str]:
        files = tuple(
            replace(removed(f"f{number}", days_ago=9, size=size), replaced=replaced)
            for number, size in enumerate(sizes)
        )
        alive = [make_file("live", size=live)] if live else []
        allowed = policy.pop("allow", False)
        vacuum = replace(make_vacuum(allow_large_delete=allowed is True), allow_rewritten=allowed == "rewritten")
        made = make_policy(vacuum=vacuum, lines=LINES, optimize=None, **policy)
        planned = plan(made, make_facts(files=alive, removed_files=files), TableRecord(vacuumed_bytes=past))
        assert (planned.state == "blocked") == bool(planned.blocked)
        assert all(reason.code is ReasonCode.LARGE_DELETE for reason in planned.blocked)
        return [reason.text for reason in planned.blocked]

    def test_half_of_the_bytes_may_go_and_one_more_may_not(self) -> None:
        assert self.blocked(60, 40, live=100) == []
        assert self.blocked(60, 41, live=100) == [
            "would delete 101 B, more than half of the 201 B that the table holds on storage; "
            "`vacuum.allowLargeDelete: true` allows it"
        ]

    def test_what_a_rewrite_replaced_counts_and_the_line_that_allows_it_is_named(self) -> None:
        assert self.blocked(60, 40, live=100, replaced=True) == []
        assert self.blocked(60, 41, live=100, replaced=True) == [
            "would delete 101 B (all of it replaced by rewrites), more than half of the 201 B that the table holds on "
            "storage; `vacuum.allowLargeDelete: rewritten` allows it"
        ]

    def test_the_line_that_is_named_is_the_one_that_helps(self) -> None:
        files = (
            *(replace(removed(f"f{number}", days_ago=9, size=40), replaced=True) for number in range(2)),
            removed("lost", days_ago=9, size=30),
        )
        made = make_policy(vacuum=make_vacuum(allow_large_delete=False), lines=LINES, optimize=None)
        planned = plan(made, make_facts(files=[make_file("live", size=10)], removed_files=files))
        assert [reason.text for reason in planned.blocked] == [
            "would delete 110 B (80 B of it replaced by rewrites), more than half of the 120 B that the table holds on "
            "storage; `vacuum.allowLargeDelete: rewritten` allows it"
        ]

    def test_a_line_allows_what_rewrites_replaced_and_nothing_else(self) -> None:
        assert self.blocked(60, 41, live=1, replaced=True, past=(1, 1, 1), allow="rewritten") == []
        assert self.blocked(60, 41, live=1, past=(1, 1, 1), allow="rewritten") == [
            "would delete 101 B that no rewrite replaced, more than half of the 102 B that the table holds on storage; "
            "`vacuum.allowLargeDelete: true` allows it",
            "would delete 101 B that no rewrite replaced, more than 3 times the median of the last 3 vacuums, 1 B; "
            "`vacuum.allowLargeDelete: true` allows it",
        ]
        (text,) = self.blocked(1, 1, 1, live=100, max_deletes=2, replaced=True, allow="rewritten")
        assert text == "would delete 3 files, limits.maxDeletes is 2; `vacuum.allowLargeDelete: true` allows it"

    def test_the_limit_counts_all_files(self) -> None:
        assert self.blocked(1, 1, live=100, max_deletes=2) == []
        (text,) = self.blocked(1, 1, 1, live=100, max_deletes=2, replaced=True)
        assert text == "would delete 3 files, limits.maxDeletes is 2; `vacuum.allowLargeDelete: true` allows it"

    def test_three_times_the_median_of_at_least_three_runs(self) -> None:
        assert self.blocked(30, live=100, past=(10, 10, 1000)) == []
        (text,) = self.blocked(31, live=100, past=(10, 10, 1000))
        assert text == (
            "would delete 31 B, more than 3 times the median of the last 3 vacuums, 10 B; "
            "`vacuum.allowLargeDelete: true` allows it"
        )
        (text,) = self.blocked(31, live=100, past=(10, 10, 1000), replaced=True)
        assert "all of it replaced by rewrites" in text
        assert self.blocked(31, live=100, past=(10, 10)) == []

    def test_a_line_in_the_policy_allows_all_of_it(self) -> None:
        assert self.blocked(500, live=1, past=(1, 1, 1), max_deletes=0, allow=True) == []

    def test_other_steps_are_not_held_up(self) -> None:
        files = [make_file(f"f{number}", size=10) for number in range(3)]
        facts = make_facts(files=files, removed_files=(removed("old", days_ago=9, size=500),))
        planned = plan(make_policy(vacuum=make_vacuum(allow_large_delete=False), lines=LINES), facts)
        assert ([step.kind for step in planned.steps], planned.state) == (["compact"], "changes")
        assert ReasonCode.LARGE_DELETE in {one.reason.code for one in planned.left_alone}


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
        assert vacuum_wanted(TableInput(weekly, facts, NEVER_TOUCHED, NOW_MS, TODAY))

    def test_nothing_is_read_where_planning_ends_in_a_problem(self) -> None:
        assert self.need(policy_of(), make_facts(properties={FILES_PROPERTY: "a while"})) is None

    def test_planning_without_what_it_needs_is_a_bug(self) -> None:
        with pytest.raises(ValueError, match="without removed files"):
            plan(policy_of(), make_facts())


@pytest.mark.parametrize(
    ("location", "refused"),
    [
        ("file:/lake/t", False), ("hdfs://nn/t", False), ("viewfs://c/t", False), ("FILE:/lake/t", False),
        ("s3a://lake/t", True), ("abfss://c@a/t", True), ("gs://b/t", True),
    ],
)  # fmt: skip
def test_a_trash_is_refused_where_moving_a_file_copies_it(location: str, refused: bool) -> None:
    facts = make_facts(location=location, removed_files=(removed("old", days_ago=9),))
    problem = plan(policy_of(trash_seconds=3600), facts).problem
    assert (problem.code if problem is not None else None) == ("T431" if refused else None)
    assert plan(policy_of(), facts).problem is None, "without a trash nothing is moved"


def test_a_trash_is_refused_at_its_line() -> None:
    policy = make_policy(vacuum=make_vacuum(trash_seconds=1), lines={"vacuum": 11, "vacuum.trash": 14})
    problem = plan(policy, make_facts(location="s3a://b/t", removed_files=())).problem
    assert problem is not None
    assert (problem.code, problem.where) == ("T431", "orders.yml:14")


def test_a_consumer_that_is_as_new_as_now_needs_nothing_longer() -> None:
    """A position that is ahead of our clock asks for no time, and one a second back for a second."""
    policy = policy_of(retention_seconds=0, allow_short_retention=True)
    facts = make_facts(properties={FILES_PROPERTY: "interval 0 seconds"})
    for ago_ms, seconds in ((-5_000, 0), (0, 0), (1, 1), (1000, 1), (1001, 2)):
        position = StreamPosition("s", version=3, needed_since_ms=NOW_MS - ago_ms)
        history = VacuumHistory(positions=(position,))
        asked = TableInput(policy, replace(facts, history=history), NEVER_TOUCHED, NOW_MS, TODAY)
        assert vacuum_horizon(asked).retention_seconds == seconds


@pytest.mark.parametrize(
    ("why", "code"),
    [("clone", ReasonCode.KEPT_FOR_CLONE), ("needed", ReasonCode.LIVE_AGAIN), ("nested_table", ReasonCode.NESTED_TABLE),
     ("symlink", ReasonCode.BEHIND_SYMLINK), ("untracked", ReasonCode.UNTRACKED)],
)  # fmt: skip
def test_what_storage_keeps_is_named_by_its_reason(why: Any, code: ReasonCode) -> None:
    facts = replace(make_facts(removed_files=()), storage=StorageLook(kept=(Kept(why, "so it is", 1),)))
    assert plan(policy_of(), facts).left_alone == (LeftAlone(Reason(code, "so it is")),)


@pytest.mark.parametrize("why", ["clock", "unknown_reference"])
def test_what_makes_it_unsure_stops_all_deletion(why: Any) -> None:
    facts = replace(
        make_facts(removed_files=(removed("old", days_ago=9),)), storage=StorageLook(kept=(Kept(why, "who knows", 1),))
    )
    planned = plan(policy_of(), facts)
    assert planned.steps == ()
    assert [(reason.code, reason.text) for reason in planned.blocked] == [(ReasonCode.CANNOT_BE_SURE, "who knows")]


def test_a_checkpoint_that_was_not_read_is_named_at_the_line_of_consumers() -> None:
    policy = policy_of(consumers=(Consumer("s", checkpoint="/c"),))
    facts = replace(make_facts(removed_files=(removed("old", days_ago=9),)), history=VacuumHistory())
    (reason,) = plan(policy, facts).blocked
    assert (reason.text, reason.origin) == ("the checkpoint of consumer s was not read", "orders.yml:15")


def test_untracked_files_and_trash_are_reasons_with_their_figures() -> None:
    policy = make_policy(vacuum=make_vacuum(delete_untracked=True), lines={"vacuum": 11, "vacuum.deleteUntracked": 16})
    files = (
        RemovedFile("u", 200, NOW_MS - 31 * DAY_MS, kind="untracked"),
        RemovedFile("v", 100, NOW_MS - 30 * DAY_MS - 1, kind="untracked"),
        RemovedFile("young", 100, NOW_MS - 30 * DAY_MS, kind="untracked"),
    )
    trash = (TrashedRun("r1", "file:/t/1", 3, 1000, 0), TrashedRun("r2", "file:/t/2", 4, 24, 0))
    facts = replace(make_facts(removed_files=files), storage=StorageLook(trash=trash))
    (step,) = plan(policy, facts).steps
    assert isinstance(step, VacuumStep)
    assert [file.path for file in step.files] == ["u", "v"]
    assert step.untracked_before_ms == NOW_MS - 30 * DAY_MS
    assert step.reasons == (
        Reason(
            ReasonCode.UNTRACKED_FILES_OLD,
            "2 files (300 B) that the log never knew, not changed for more than 30d",
            "orders.yml:16",
        ),
        Reason(ReasonCode.TRASH_EXPIRED, "7 files (1 KiB) in the trash past their time"),
    )


def test_untracked_files_that_stay_are_named_with_the_line_that_would_delete_them() -> None:
    policy = make_policy(vacuum=make_vacuum(), lines={"vacuum": 11, "vacuum.deleteUntracked": 16})
    file = RemovedFile("u", 200, NOW_MS - 31 * DAY_MS, kind="untracked")
    record = TableRecord(unproven_versions=(3, 5))
    (left,) = plan(policy, make_facts(removed_files=(file,)), record).left_alone
    assert (left.reason.code, left.reason.origin) == (ReasonCode.UNTRACKED, "orders.yml:16")


def test_what_is_live_again_and_what_is_unproven_is_said() -> None:
    live = make_file("back")
    files = (removed("back", days_ago=9), removed("by-5", days_ago=9, version=5))
    planned = plan(policy_of(), make_facts(files=(live,), removed_files=files), TableRecord(unproven_versions=(3, 5)))
    codes = (ReasonCode.LIVE_AGAIN, ReasonCode.UNPROVEN_REWRITE)
    assert [left.reason.text for left in planned.left_alone if left.reason.code in codes] == [
        "1 file (100 B) removed once and live again",
        "1 file (100 B) kept: the rewrite of version 3, 5 is not proven",
    ]
    assert not [step for step in planned.steps if isinstance(step, VacuumStep)]


def test_nothing_expired_names_who_decides() -> None:
    planned = plan(policy_of(retention_seconds=1), make_facts(removed_files=()))
    assert planned.left_alone[0].reason.text == (
        "nothing removed more than 7d ago is left on storage (table property delta.deletedFileRetentionDuration "
        "(Delta's default) decides)"
    )


def test_each_cap_that_is_broken_is_said_and_the_files_counted_once() -> None:
    policy = make_policy(
        vacuum=make_vacuum(allow_large_delete=False), max_deletes=1, lines={"vacuum": 11, "limits.maxDeletes": 20}
    )
    facts = make_facts(
        files=(make_file(size=100),), removed_files=tuple(removed(f"f{n}", days_ago=9) for n in range(3))
    )
    planned = plan(policy, facts, TableRecord(vacuumed_bytes=(10, 20, 30)))
    over = [left for left in planned.left_alone if left.reason.code is ReasonCode.LARGE_DELETE]
    assert [(left.num_files, left.size_bytes, left.reason.origin) for left in over] == [
        (3, 300, "orders.yml:20"), (0, 0, "orders.yml:11"), (0, 0, "orders.yml:11"),
    ]  # fmt: skip
    assert planned.blocked == tuple(left.reason for left in over)


@pytest.mark.parametrize(("lost", "line"), [(200, "rewritten"), (201, "true")])
def test_the_line_that_would_allow_it_is_the_least_that_does(lost: int, line: str) -> None:
    """Half of what storage holds may go; what a rewrite replaced is not lost."""
    policy = policy_of(allow_large_delete=False)
    files = (
        RemovedFile("l", lost, NOW_MS - 9 * DAY_MS, removed_in_version=5),
        RemovedFile("r", 200, NOW_MS - 9 * DAY_MS, removed_in_version=5, replaced=True),
    )
    (reason,) = plan(policy, make_facts(removed_files=files)).blocked
    assert reason.text.endswith(f"`vacuum.allowLargeDelete: {line}` allows it")
