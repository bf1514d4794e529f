"""A whole run against a lake in memory: isolation of tables, bounds of failures, refusals, and counts that add up."""

from __future__ import annotations

import threading
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from typing import Any

import pytest

from maintainer.errors import (
    CommitNotLanded,
    EnvironmentUnfit,
    ExitCode,
    ProjectError,
    VerificationFailed,
    VerifierUnfit,
)
from maintainer.execution.cancellation import StopSwitch
from maintainer.execution.table.table_run import TableRun
from maintainer.model.plan.plan import CheckedExpectation, LeftAlone, Problem, TablePlan
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.run.exit_codes import exit_code
from maintainer.model.run.outcome import TableStatus
from maintainer.model.run.progress import TableFinished
from maintainer.model.run.receipts import Verdict
from maintainer.model.table.table_facts import TableRef
from maintainer.report.run.run_findings import render_junit
from maintainer.report.run.run_text import render_run
from tests.support.runs.fake_lake import Station
from tests.support.runs.planned_steps import plan_all, plan_of, vacuum
from tests.unit.execution.fleet.run_in_memory import Run, by_table


def test_one_bad_table_never_stops_the_others(run: Run) -> None:
    plans = run.small_tables("a", "b", "c", "d", "e")

    def fail(at: Station) -> None:
        raise {"b": CommitNotLanded("disk full"), "d": ZeroDivisionError("bug")}[at.table.name]

    run.lake.at("write", fail, table="b")
    run.lake.at("write", fail, table="d")
    outcome = run(plan_all(*plans), jobs=2)
    assert by_table(outcome) == {"a": "done", "b": "failed", "c": "done", "d": "failed", "e": "done"}
    assert exit_code(outcome) is ExitCode.BUG
    assert [run.lake.tables[name].rows for name in "abcde"] == [[1, 2, 3]] * 5
    assert sorted(run.lake.workers) == ["20261121T220001Z-0000-w0", "20261121T220001Z-0000-w1"]


def test_planned_ends_end_as_what_they_are_and_need_no_worker(run: Run) -> None:
    blocked = Reason(ReasonCode.OVER_LIMIT, "812 GiB are over 500 GiB", "policies/c.yml:9")
    waits = LeftAlone(Reason(ReasonCode.OVER_BUDGET, "waits: place 1 of 1 in the queue"), 2, 10)
    plan = plan_all(
        plan_of(run.lake.table("a", (1,))),
        TablePlan(TableRef("b"), "b.yml", "d", problem=Problem("T401", "no such table")),
        plan_of(run.lake.table("c", (1,)), blocked=(blocked,)),
        plan_of(run.lake.table("d", (1,)), left_alone=(waits,)),
    )
    outcome = run(plan)
    assert by_table(outcome) == {"a": "up_to_date", "b": "failed", "c": "blocked", "d": "waiting"}
    assert [table.problem.what if table.problem else None for table in outcome.tables] == [
        None, "no such table", "812 GiB are over 500 GiB", None
    ]  # fmt: skip
    assert run.lake.workers == []


def test_tables_run_beside_one_another(run: Run) -> None:
    plans = run.small_tables("a", "b")
    both = threading.Barrier(2, timeout=10)
    run.lake.at("write", lambda at: both.wait())
    assert by_table(run(plan_all(*plans), jobs=2)) == {"a": "done", "b": "done"}


def with_old_file(run: Run, *names: str) -> list[TablePlan]:
    """Tables with two small files to compact and an old file to delete."""
    plans = run.small_tables(*names)
    for name in names:
        run.lake.tables[name].storage.add(f"old-{name}")
    return [replace(plan, steps=(*plan.steps, vacuum(f"old-{plan.ref.identifier}"))) for plan in plans]


def test_a_failed_verification_costs_its_own_table_and_holds_back_the_vacuums_of_the_others(run: Run) -> None:
    run.verifier.order = [Verdict.PASS, Verdict.PASS, Verdict.FAIL]  # a's rewrite, a's vacuum, b's rewrite
    outcome = run(plan_all(*with_old_file(run, "a", "b", "c", "d", "e")), jobs=1)
    assert by_table(outcome) == {
        "a": "done", "b": "verify_failed", "c": "waiting", "d": "waiting", "e": "waiting"
    }  # fmt: skip
    assert exit_code(outcome) is ExitCode.VERIFICATION_FAILED
    assert [name for name in "abcde" if f"old-{name}" in run.lake.tables[name].storage] == ["b", "c", "d", "e"]
    for table in outcome.tables[2:]:
        assert [step.status.value for step in table.steps] == ["succeeded", "skipped"]
        error = table.steps[1].error
        assert error is not None
        assert (error.code, error.what) == (
            "C715", "the vacuum waits for the next run: a verification failed on b"
        )  # fmt: skip
    told = [line for line in render_run(outcome).splitlines() if "C715" in line]
    assert told == [
        "warning[C715]: 3 tables, vacuum: the vacuum waits for the next run: a verification failed on b"
    ]  # fmt: skip
    junit = ElementTree.fromstring(render_junit(outcome))
    assert (junit.get("failures"), junit.get("errors"), junit.get("skipped")) == ("1", "0", "4")


def test_the_run_after_a_failed_verification_deletes_what_waited(run: Run) -> None:
    run.verifier.order = [Verdict.FAIL]
    assert by_table(run(plan_all(*with_old_file(run, "a", "b"))))["b"] == "waiting"
    run.switch = StopSwitch()
    later = plan_of(run.lake.tables["b"], vacuum("old-b"))
    assert by_table(run(plan_all(later))) == {"b": "done"}
    assert "old-b" not in run.lake.tables["b"].storage


def test_a_second_failed_verification_starts_no_further_table(run: Run) -> None:
    run.verifier.order = [Verdict.FAIL, Verdict.PASS, Verdict.FAIL]
    outcome = run(plan_all(*run.small_tables("a", "b", "c", "d")), jobs=1)
    assert by_table(outcome) == {"a": "verify_failed", "b": "done", "c": "verify_failed", "d": "not_reached"}
    assert outcome.tables[3].problem is not None
    assert outcome.tables[3].problem.what == "not started: a verification failed on a, and on c"
    assert run.lake.tables["d"].version == 1


def test_one_failed_verification_starts_no_further_table_where_its_cause_is_every_tables(run: Run) -> None:
    def wrong(at: Station) -> None:
        error = VerificationFailed("the rows written are not the rows read")
        error.is_shared = True
        raise error

    run.lake.at("write", wrong, table="a")
    outcome = run(plan_all(*run.small_tables("a", "b")), jobs=1)
    assert by_table(outcome) == {"a": "verify_failed", "b": "not_reached"}


def test_tables_beside_a_failed_verification_go_on_and_delete_nothing_more(run: Run) -> None:
    plans = with_old_file(run, "a", "b")
    failed = threading.Event()

    def wrong(at: Station) -> None:
        failed.set()
        raise VerificationFailed("the rows written are not the rows read")

    def after_it(at: Station) -> None:
        assert failed.wait(60)
        run.wait_for(TableFinished)

    run.lake.at("write", wrong, table="a")
    run.lake.at("landed", after_it, table="b")
    outcome = run(plan_all(*plans), jobs=2)
    assert by_table(outcome) == {"a": "verify_failed", "b": "waiting"}
    assert (run.lake.tables["b"].version, "old-b" in run.lake.tables["b"].storage) == (2, True)


def test_a_table_in_quarantine_is_not_checked_again_and_stops_no_later_run(run: Run) -> None:
    plans = run.small_tables("a", "b")
    run.verifier.order = [Verdict.FAIL]
    assert by_table(run(plan_all(*plans))) == {"a": "verify_failed", "b": "done"}
    run.switch = StopSwitch()
    asked = len(run.verifier.asked)
    reason = Reason(ReasonCode.QUARANTINED, "quarantined: V503", None)
    run.verifier.order = [Verdict.FAIL]  # what a second check of the same version would find
    table = run.lake.tables["a"]
    later = [plan_of(table, blocked=(reason,)), plan_of(run.lake.tables["b"])]
    assert by_table(run(plan_all(*later))) == {"a": "blocked", "b": "up_to_date"}
    assert run.switch.halt_reason is None
    assert len(run.verifier.asked) == asked


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ({"max_failures": 1}, ["failed", "not_reached", "not_reached"]),
        ({"max_failures": 2}, ["failed", "failed", "not_reached"]),
        ({}, ["failed", "failed", "failed"]),
    ],
)
def test_failures_are_bounded_on_request(run: Run, bounds: dict[str, Any], expected: list[str]) -> None:
    plans = run.small_tables("a", "b", "c")

    def fail(at: Station) -> None:
        raise CommitNotLanded("disk full")

    run.lake.at("write", fail)
    outcome = run(plan_all(*plans), **bounds)
    assert list(by_table(outcome).values()) == expected
    said = {table.problem.what for table in outcome.tables if table.problem and table.problem.code == "C713"}
    failed = {1: "1 table", 2: "2 tables"}.get(expected.count("failed"))
    assert said == ({f"not started: {failed} failed, and --max-failures is {failed[0]}"} if failed else set())


def test_tables_that_were_not_reached_are_no_success(run: Run) -> None:
    plans = run.small_tables("a", "b")
    run.lake.at("landed", lambda at: run.switch.halt("E651: the run folder can no longer be written"), table="a")
    outcome = run(plan_all(*plans))
    assert by_table(outcome) == {"a": "done", "b": "not_reached"}
    assert exit_code(outcome) is ExitCode.FINDINGS


def test_nothing_is_touched_when_verification_is_not_possible(run: Run) -> None:
    plans = run.small_tables("a", "b")
    run.verifier.broken = VerifierUnfit("Great Expectations cannot be imported")
    outcome = run(plan_all(*plans), jobs=1)
    assert by_table(outcome) == {"a": "failed", "b": "not_reached"}
    error = outcome.tables[0].steps[0].error
    assert error is not None
    assert error.code == "E653"
    assert [run.lake.tables[name].version for name in "ab"] == [1, 1]


def test_an_expectation_that_is_not_taken_refuses_the_run(run: Run) -> None:
    (plan,) = run.small_tables("a")
    checks = replace(plan.checks, expectations=(CheckedExpectation("expect_nothing", "{}"),))
    run.verifier.broken = ProjectError("Great Expectations does not take it", code="P316")
    with pytest.raises(ProjectError):
        run(plan_all(replace(plan, checks=checks)))
    assert run.lake.workers == []


def test_what_nobody_foresaw_on_a_thread_fails_its_table_and_ends_the_run(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def odd(table: TableRun) -> None:
        raise SystemExit(3)

    monkeypatch.setattr(TableRun, "run", odd)
    outcome = run(plan_all(*run.small_tables("a", "b")), jobs=1)
    assert by_table(outcome) == {"a": "failed", "b": "failed"}
    assert [table.problem.code for table in outcome.tables if table.problem] == ["E699", "E699"]


def test_workers_that_cannot_start_fail_their_tables_with_the_reason(run: Run) -> None:
    plans = run.small_tables("a", "b")
    run.lake.worker_error = EnvironmentUnfit("no session", code="E601")
    outcome = run(plan_all(*plans), jobs=2)
    assert by_table(outcome) == {"a": "failed", "b": "failed"}
    assert {table.problem.code if table.problem else None for table in outcome.tables} == {"E601"}


@pytest.mark.parametrize(
    ("reason", "code", "help_text"),
    [
        (ReasonCode.QUARANTINED, "A411", "verify"),
        (ReasonCode.OVER_LIMIT, "A420", "raise the limit"),
        (ReasonCode.LARGE_DELETE, "A420", "look first whether"),
        (ReasonCode.CANNOT_BE_SURE, "A420", "bring back what is named above"),
    ],
)
def test_a_blocked_table_says_what_a_person_has_to_do(run: Run, reason: ReasonCode, code: str, help_text: str) -> None:
    table = plan_of(run.lake.table("a", (1,)), blocked=(Reason(reason, "because", "policies/a.yml:3"),))
    outcome = run(plan_all(table))
    (ended,) = outcome.tables
    assert ended.status is TableStatus.BLOCKED
    assert ended.problem is not None
    assert (ended.problem.code, ended.problem.what) == (code, "because")
    assert help_text in (ended.problem.help or "")
