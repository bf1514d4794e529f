"""Two runs at once on one table: one works, the other is told who does; a sleeper commits nothing."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from maintainer.errors import CommitUnknown, ExitCode
from maintainer.execution.fleet.fleet_bounds import FleetBounds
from maintainer.execution.run_context import Clock
from maintainer.journal.event_log import EVENTS_FILE, read_events
from maintainer.journal.journal import Journal
from maintainer.journal.leases import Leases
from maintainer.journal.memory.table_records import Remembered, remembered
from maintainer.model.plan.plan import Plan
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.run.exit_codes import exit_code
from maintainer.model.run.outcome import RunOutcome, TableStatus
from maintainer.model.run.receipts import Verdict
from maintainer.report.plan.plan_text import render_plan
from maintainer.report.run.progress_text import PlannedNames, ProgressText
from maintainer.report.run.run_findings import render_junit
from maintainer.report.run.run_text import render_run
from tests.support.runs.fake_lake import FakeLake, Station
from tests.support.runs.plain_verifier import PlainVerifier
from tests.support.runs.planned_steps import compact, plan_all, plan_of, properties, run_fleet, vacuum
from tests.support.tables.builders import NOW_MS
from tests.unit.execution.fleet.run_in_memory import QUICK

FIRST, SECOND, THIRD = (f"20261121T22000{number}Z-0000" for number in (1, 2, 3))


def start(lake: FakeLake, runs: Path, run_id: str, plan: Plan, verifier: PlainVerifier | None = None) -> RunOutcome:
    journal = Journal.open(runs, run_id, lambda: NOW_MS)
    clock = Clock(now_ms=lambda: NOW_MS)  # that of the other run as well, whatever the time is
    verifier = verifier or PlainVerifier()
    return run_fleet(plan, lake, journal=journal, verifier=verifier, bounds=FleetBounds(**QUICK), clock=clock)


def test_the_second_run_leaves_the_table_alone_and_says_who_has_it(tmp_path: Path) -> None:
    lake, runs = FakeLake(), tmp_path / "runs"
    table, other = lake.table("a", (1, 2), (3,)), lake.table("b", (1,), (2,))
    plan = plan_all(plan_of(table, compact(table)), plan_of(other, compact(other)))
    versions = len(table.versions)
    beside: list[RunOutcome] = []

    def second(at: Station) -> None:
        if not beside:
            beside.append(start(lake, runs, SECOND, plan_all(plan_of(table, compact(table)))))

    lake.at("write", second, table="a")
    first = start(lake, runs, FIRST, plan)
    assert [table.status for table in first.tables] == [TableStatus.DONE, TableStatus.DONE]
    (refused,) = beside[0].tables
    assert (refused.status, exit_code(beside[0])) == (TableStatus.BLOCKED, ExitCode.REFUSED)
    assert refused.problem is not None
    assert refused.problem.code == "A406"
    assert f"run {FIRST}" in refused.problem.what
    assert [step.status.value for step in refused.steps] == ["skipped"]
    assert (table.rows, len(table.versions)) == ([1, 2, 3], versions + 1)
    # Given back: the next run may have it.
    third = start(lake, runs, THIRD, plan_all(plan_of(table)))
    assert third.tables[0].status is TableStatus.UP_TO_DATE


def test_a_refusal_is_said_in_full_once_while_it_runs_and_once_at_the_end(tmp_path: Path) -> None:
    """Not once more for each step that is left out because of it."""
    lake, runs = FakeLake(), tmp_path / "runs"
    table = lake.table("a", (1, 2), (3,))
    observed = plan_of(table).observed
    assert observed is not None
    beside = Leases(runs, FIRST, lambda: NOW_MS)
    beside.acquire(observed.table_id, "a")
    table.storage.add("old")
    plan = plan_all(plan_of(table, properties(**{"delta.x": "1"}), compact(table), vacuum("old")))
    screen = io.StringIO()
    journal = Journal.open(runs, SECOND, lambda: NOW_MS)
    outcome = run_fleet(
        plan, lake, journal=journal, verifier=PlainVerifier(), bounds=FleetBounds(**QUICK),
        clock=Clock(now_ms=lambda: NOW_MS), on_event=ProgressText(screen, planned=PlannedNames(["a"])),
    )  # fmt: skip
    beside.close()
    (refused,) = outcome.tables
    assert refused.problem is not None
    assert [step.note for step in refused.steps] == ["skipped: the table is blocked (A406)"] * 3
    texts = {"progress": screen.getvalue(), "end": render_run(outcome), "junit": render_junit(outcome)}
    assert {name: text.count(refused.problem.what) for name, text in texts.items()} == {
        "progress": 1,
        "end": 1,
        "junit": 2,  # the message of the case and its body
    }


def test_a_table_that_the_plan_refused_has_its_code_in_the_progress_and_the_reason_at_the_end(tmp_path: Path) -> None:
    lake = FakeLake()
    reason = Reason(ReasonCode.OVER_LIMIT, "would rewrite 9 files, limits.maxFiles is 8", "p.yml:3")
    plan = plan_all(plan_of(lake.table("a", (1,)), blocked=(reason,)))
    screen = io.StringIO()
    journal = Journal.open(tmp_path / "runs", SECOND, lambda: NOW_MS)
    printer = ProgressText(screen, planned=PlannedNames(["a"], ["a"]))
    outcome = run_fleet(plan, lake, journal=journal, verifier=PlainVerifier(), on_event=printer)
    assert "BLOCKED" in screen.getvalue()
    assert "A420, in full at the end" in screen.getvalue()
    shown = render_plan(plan), screen.getvalue(), render_run(outcome)
    assert [text.count(reason.text) for text in shown] == [1, 0, 1]


def test_a_table_that_came_into_quarantine_while_the_run_went_on_is_left_alone(tmp_path: Path) -> None:
    """A night takes hours: what another run found out about a later table counts."""
    lake, runs = FakeLake(), tmp_path / "runs"
    first, later = lake.table("a", (1, 2), (3,)), lake.table("b", (4,), (5,))
    plan = plan_all(plan_of(first, compact(first)), plan_of(later, compact(later)))
    beside: list[RunOutcome] = []

    def another_run_finds_it_wrong(at: Station) -> None:
        if not beside:
            verifier = PlainVerifier()
            verifier.order = [Verdict.FAIL]
            beside.append(start(lake, runs, SECOND, plan_all(plan_of(later, compact(later))), verifier))

    lake.at("write", another_run_finds_it_wrong, table="a")
    outcome = start(lake, runs, FIRST, plan)
    (quarantined,) = beside[0].tables
    assert quarantined.status is TableStatus.VERIFY_FAILED
    versions = len(later.versions)
    done, refused = outcome.tables
    assert (done.status, refused.status) == (TableStatus.DONE, TableStatus.BLOCKED)
    assert refused.problem is not None
    assert refused.problem.code == "A411"
    assert [step.status.value for step in refused.steps] == ["skipped"]
    assert len(later.versions) == versions
    # Its lease is given back.
    assert start(lake, runs, THIRD, plan_all(plan_of(later))).tables[0].status is not TableStatus.FAILED


def test_nothing_is_deleted_once_somebody_found_the_table_wrong(tmp_path: Path) -> None:
    """`maintainer verify` takes no lease: its quarantine may come while the table is rewritten."""
    lake, runs = FakeLake(), tmp_path / "runs"
    table = lake.table("a", (1, 2), (3,))
    table.storage.add("old")
    plan = plan_all(plan_of(table, compact(table), vacuum("old")))

    def verified(at: Station) -> None:
        journal = Journal.open(runs, SECOND, lambda: NOW_MS)
        journal.quarantine(table.facts(), "V507: version 1 was verified and is wrong", 1)
        journal.finished()
        journal.close()

    lake.at("write", verified, table="a", times=1)
    outcome = start(lake, runs, FIRST, plan)
    (ended,) = outcome.tables
    assert [step.status.value for step in ended.steps] == ["succeeded", "failed"]
    assert ended.steps[1].error is not None
    assert ended.steps[1].error.code == "A411"
    assert "old" in table.storage


def test_what_a_run_left_open_while_this_one_went_on_is_settled_first(tmp_path: Path) -> None:
    lake, runs = FakeLake(), tmp_path / "runs"
    first, later = lake.table("a", (1, 2), (3,)), lake.table("b", (4,), (5,))
    later.storage.add("old")
    plan = plan_all(plan_of(first, compact(first)), plan_of(later, vacuum("old")))
    dead: list[RunOutcome] = []

    def lost(at: Station) -> None:
        raise CommitUnknown("the answer was lost")

    def another_run_ends_without_an_answer(at: Station) -> None:
        if not dead:
            lake.at("landed", lost, table="b", times=1)
            dead.append(start(lake, runs, SECOND, plan_all(plan_of(later, compact(later)))))

    lake.at("write", another_run_ends_without_an_answer, table="a")
    start(lake, runs, FIRST, plan)
    assert dead[0].tables[0].steps[0].status.value == "unknown"
    events = tuple(read_events(runs / FIRST / EVENTS_FILE).events)
    settled = [event["fate"] for event in events if event["type"] == "settled_earlier"]
    assert settled == ["landed"]
    dead_run = [event["type"] for event in read_events(runs / SECOND / EVENTS_FILE).events]
    assert dead_run[-1] == "verified"


def test_records_are_read_again_only_where_another_run_may_have_recorded_something(tmp_path: Path) -> None:
    """A fleet has thousands of tables, and most nights nobody else is there."""
    lake, runs = FakeLake(), tmp_path / "runs"
    tables = [lake.table(f"t{number}", (1,), (2,)) for number in range(20)]
    start(lake, runs, FIRST, plan_all(*(plan_of(table, compact(table)) for table in tables)))
    for table in tables:
        table.append(3)
    reads: list[str] = []
    with pytest.MonkeyPatch.context() as patch:

        def counted(runs_dir: Path, *, except_run: str | None = None) -> Remembered:
            reads.append(str(except_run))
            return remembered(runs_dir, except_run=except_run)

        patch.setattr("maintainer.journal.memory.other_runs.remembered", counted)
        outcome = start(lake, runs, SECOND, plan_all(*(plan_of(table, compact(table)) for table in tables)))
    assert {table.status for table in outcome.tables} == {TableStatus.DONE}
    assert reads == [SECOND]


def test_a_run_that_slept_through_its_lease_commits_nothing(tmp_path: Path) -> None:
    lake, runs = FakeLake(), tmp_path / "runs"
    table = lake.table("a", (1, 2), (3,))
    plan = plan_all(plan_of(table, compact(table)))
    versions, observed = len(table.versions), plan.tables[0].observed
    assert observed is not None
    taken: list[int] = []

    def another_takes_it(at: Station) -> None:
        late = Leases(runs, SECOND, lambda: NOW_MS + 121_000)
        taken.append(late.acquire(observed.table_id, "a").token)

    lake.at("write", another_takes_it, table="a")
    outcome = start(lake, runs, FIRST, plan)
    (ended,) = outcome.tables
    assert ended.steps[0].error is not None
    assert (ended.status, ended.steps[0].error.code) == (TableStatus.FAILED, "A407")
    assert (table.rows, len(table.versions), taken) == ([1, 2, 3], versions, [2])
