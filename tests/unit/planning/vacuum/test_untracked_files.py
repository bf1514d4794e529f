"""Untracked files and trash: when the folder is listed, what goes, and what is said of the rest."""

from __future__ import annotations

from dataclasses import replace

import pytest

from maintainer.errors import TableError
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import VacuumStep
from maintainer.model.table.storage_facts import StorageLook, TrashedRun, VacuumHistory
from maintainer.model.table.table_facts import RemovedFile, TableRecord
from maintainer.planning.needs import RemovedFilesNeed, next_need
from maintainer.planning.plan_input import TableInput
from maintainer.planning.vacuum.deletion_limits import refuse_trash
from maintainer.policy.resolve.resolved import VacuumMode
from tests.support.tables.builders import (
    DAY_MS,
    DAY_SECONDS,
    NEVER_TOUCHED,
    NOW_MS,
    make_facts,
    make_policy,
    make_vacuum,
)
from tests.unit.planning.vacuum.vacuum_plans import TODAY, plan, policy_of, removed


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
    days = 30 if delete else 7  # where nothing may go, all that is older than the retention is counted
    assert question.untracked_before_ms == (NOW_MS - days * DAY_MS if listed else None)
    recent = TableRecord(last_listing_at_ms=NOW_MS - DAY_MS)
    question = next_need(TableInput(policy, facts, recent, NOW_MS, TODAY))
    assert isinstance(question, RemovedFilesNeed)
    assert (question.untracked_before_ms is not None) == (mode is VacuumMode.FULL)


@pytest.mark.parametrize(
    ("location", "mode", "first_version", "listed"),
    [
        ("file:/lake/orders", VacuumMode.AUTO, 9, True),
        ("file:/lake/orders", VacuumMode.AUTO, 0, False),
        ("file:/lake/orders", VacuumMode.LITE, 9, False),
        ("s3a://lake/orders", VacuumMode.AUTO, 9, False),
    ],
)
def test_a_cut_log_is_listed_where_that_costs_no_requests(
    location: str, mode: VacuumMode, first_version: int, listed: bool
) -> None:
    history = VacuumHistory(first_version=first_version)
    facts = replace(make_facts(), location=location, history=history)
    question = next_need(TableInput(policy_of(mode=mode), facts, NEVER_TOUCHED, NOW_MS, TODAY))
    assert isinstance(question, RemovedFilesNeed)
    assert (question.untracked_before_ms is not None) == listed


def test_untracked_files_need_the_policy_and_their_own_age() -> None:
    files = (untracked("new", days=6.9), untracked("young", days=29.9), untracked("old", days=30.1))
    planned = plan(policy_of(delete_untracked=True), make_facts(removed_files=files))
    (step,) = planned.steps
    assert isinstance(step, VacuumStep)
    assert (step.files, step.untracked_before_ms) == (files[2:], NOW_MS - 30 * DAY_MS)
    assert step.by_kind == (("untracked", 1, 100),)
    planned = plan(policy_of(), make_facts(removed_files=files))
    assert planned.steps == ()
    assert [(entry.reason.code, entry.reason.text) for entry in planned.left_alone] == [
        (
            ReasonCode.UNTRACKED,
            "2 files (200 B) that the log does not mention; "
            "`deleteUntracked: true` would delete those unchanged for 30d",
        )
    ]


def test_trash_past_its_time_is_emptied_even_where_nothing_else_is_due() -> None:
    trash = TrashedRun("run-1", "file:/lake/.maintainer-trash/orders-1/run-1", 4, 40, NOW_MS - 1)
    facts = replace(make_facts(removed_files=()), storage=StorageLook(trash=(trash,)))
    (step,) = plan(policy_of(trash_seconds=DAY_SECONDS), facts).steps
    assert isinstance(step, VacuumStep)
    assert (step.files, step.emptied, step.trash_seconds) == ((), (trash,), 0)
    assert [reason.code for reason in step.reasons] == [ReasonCode.TRASH_EXPIRED]


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


def test_a_refused_trash_says_where_there_may_be_one() -> None:
    with pytest.raises(TableError) as caught:
        refuse_trash("S3A://b/t", "orders.yml:14")
    assert (caught.value.found, caught.value.allowed) == ("S3A:", "file:, hdfs:, viewfs:")


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
            "2 files (300 B) that the log does not mention, not changed for more than 30d",
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
