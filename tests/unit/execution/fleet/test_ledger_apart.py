"""Our own ledger is shown on a line of its own, and counts neither as a table of the user's nor as a failure."""

from __future__ import annotations

import dataclasses
import io
from datetime import UTC
from pathlib import Path
from xml.etree import ElementTree

import pytest

from maintainer.app.project_folders import Project
from maintainer.app.running.apply_plan import check_run_limits
from maintainer.errors import CommitNotLanded, ExitCode, Refused
from maintainer.execution.fleet.fleet_bounds import FleetBounds
from maintainer.journal.journal import Journal
from maintainer.model.plan.plan import BUILT_IN_POLICY, Plan, Problem
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import StepKind
from maintainer.model.run.exit_codes import exit_code, plan_exit_code
from maintainer.model.run.history_rows import StatusRow
from maintainer.model.run.outcome import RunOutcome, StepOutcome, StepStatus, TableOutcome, TableStatus
from maintainer.model.run.progress import (
    BatchStarted,
    ProgressEvent,
    ProgressSink,
    RunStarted,
    StepFinished,
    StepStarted,
)
from maintainer.model.table.table_facts import TableRef
from maintainer.planning.budget.run_budget import Learned, expected_time, within_budget
from maintainer.policy.project.project_settings import LEDGER_POLICY, Budget, Budgets, ledger_resolution
from maintainer.report.document.blocks import Line, Span, spans
from maintainer.report.document.terminal_writer import plain
from maintainer.report.html.fleet_view import fleet_tables, fleet_view
from maintainer.report.html.run_view import run_view
from maintainer.report.plan.plan_markdown import render_plan_markdown
from maintainer.report.plan.plan_text import render_plan
from maintainer.report.run.progress_text import PlannedNames, ProgressText
from maintainer.report.run.run_findings import render_junit, run_findings
from maintainer.report.run.run_text import render_run, run_markdown
from maintainer.report.status_documents import status_prometheus
from maintainer.report.status_text import render_status
from maintainer.report.style import PLAIN, Role
from tests.support.policies.projects import write_project
from tests.support.runs.fake_lake import FakeLake, Station
from tests.support.runs.plain_verifier import PlainVerifier
from tests.support.runs.planned_steps import compact, plan_all, plan_of, run_fleet
from tests.support.tables.builders import NOW_MS

LEDGER = ".maintainer/ledger"


def test_only_the_ledger_is_kept_by_the_built_in_policy(tmp_path: Path) -> None:
    made = ledger_resolution(TableRef(LEDGER, str(tmp_path)), tmp_path, "UTC")
    assert made.policy is not None
    assert made.policy.file == LEDGER_POLICY == BUILT_IN_POLICY


class Night:
    """Two tables of a user's and the ledger, all with small files."""

    def __init__(self, runs_dir: Path) -> None:
        self.runs_dir = runs_dir
        self.lake = FakeLake()
        self.tables = {name: self.lake.table(name, (1, 2), (3,)) for name in (LEDGER, "a", "b")}

    def plan(self) -> Plan:
        made = [plan_of(table, compact(table)) for table in self.tables.values()]
        return plan_all(*(
            dataclasses.replace(entry, policy_file=BUILT_IN_POLICY) if entry.ref.identifier == LEDGER else entry
            for entry in made
        ))  # fmt: skip

    def run(
        self,
        plan: Plan | None = None,
        max_failures: int | None = None,
        batches: tuple[int, ...] = (),
        on_event: ProgressSink | None = None,
    ) -> RunOutcome:
        journal = Journal.open(self.runs_dir, "20261121T220000Z-7f3a", lambda: NOW_MS)
        return run_fleet(
            plan or self.plan(),
            self.lake,
            journal=journal,
            verifier=PlainVerifier(),
            bounds=FleetBounds(max_failures=max_failures, batches=batches),
            on_event=on_event,
        )


@pytest.fixture
def night(tmp_path: Path) -> Night:
    return Night(tmp_path / "runs")


def test_a_good_run_counts_the_tables_of_the_user_and_names_the_ledger(night: Night) -> None:
    plan = night.plan()
    text = render_plan(plan)
    assert "Plan: 2 tables to change, 2 steps (compact 2); 0 up to date.\n" in text
    assert "Also our own ledger: compact.\n" in text
    assert "2 tables to change, 2 steps" in render_plan_markdown(plan)
    outcome = night.run(plan)
    said = render_run(outcome)
    assert "2 steps succeeded, 0 failed; 2 commits proven" in said
    assert "2 tables: 2 done." in said
    assert f"The ledger ({LEDGER}): compact succeeded." in said
    assert "2 tables: 2 done" in run_markdown(outcome)
    assert outcome.count(TableStatus.DONE) == 2


def test_a_ledger_that_cannot_be_maintained_is_a_warning_and_no_failed_table(night: Night) -> None:
    def full(at: Station) -> None:
        raise CommitNotLanded("no space left on device")

    night.lake.at("commit", full, table=LEDGER)
    outcome = night.run(max_failures=1)
    assert {table.ref.identifier: table.status.value for table in outcome.tables} == {
        LEDGER: "failed", "a": "done", "b": "done",
    }  # fmt: skip
    assert exit_code(outcome) is ExitCode.OK
    assert [(finding.severity.value, finding.table) for finding in run_findings(outcome)] == [("warning", LEDGER)]
    said = render_run(outcome)
    assert "2 steps succeeded, 0 failed" in said
    assert "2 tables: 2 done.\n" in said
    assert f"The ledger ({LEDGER}): compact failed." in said
    assert "maintainer retry" not in said
    assert 'failures="0" errors="0" skipped="1"' in render_junit(outcome)


def test_junit_has_the_ledger_only_where_something_is_wrong_with_it(night: Night) -> None:
    plan = night.plan()
    suites = ElementTree.fromstring(render_junit(night.run(plan)).encode())
    assert [suite.get("name") for suite in suites] == ["a", "b"]
    assert suites.get("tests") == str(len(suites.findall(".//testcase")))

    def full(at: Station) -> None:
        raise CommitNotLanded("no space left on device")

    later = Night(night.runs_dir.parent / "later")
    later.lake.at("commit", full, table=LEDGER)
    suites = ElementTree.fromstring(render_junit(later.run()).encode())
    (of_ledger,) = [suite for suite in suites if suite.get("name") == LEDGER]
    assert [case.find("skipped") is not None for case in of_ledger] == [True]


def test_limits_and_budgets_of_a_run_are_about_the_tables_of_the_user(night: Night, tmp_path: Path) -> None:
    plan = night.plan()
    num_files = sum(step.num_files for table in plan.user_tables for step in table.rewrites)
    size_bytes = sum(step.size_bytes for table in plan.user_tables for step in table.rewrites)

    def project(max_files: int) -> Project:
        settings = f"version: 1\nlimits: {{maxFiles: {max_files}, maxBytes: {size_bytes}B}}\n"
        root = tmp_path / str(max_files)
        return Project.load(write_project(root, {"maintainer.yml": settings, "policies/a.yml": "table: a\n"}))

    check_run_limits(project(num_files), plan)
    with pytest.raises(Refused, match="more than the project allows"):
        check_run_limits(project(num_files - 1), plan)
    budgets = Budgets(run=Budget(size_bytes=size_bytes, num_files=num_files))
    assert within_budget(plan, budgets, Learned())[0] == plan
    learned = Learned(bytes_per_second={"compact": 1.0})
    expected = expected_time(plan, learned)
    assert expected is not None
    assert expected.seconds == size_bytes


def test_progress_numbers_and_counts_the_steps_of_the_user(night: Night) -> None:
    out = io.StringIO()
    printer = ProgressText(out, PLAIN, live=False, planned=PlannedNames([LEDGER, "a", "b"]))
    events: list[ProgressEvent] = []

    def sink(event: ProgressEvent) -> None:
        events.append(event)
        printer(event)

    night.run(on_event=sink)
    (started,) = [event for event in events if isinstance(event, RunStarted)]
    planned = sum(step.size_bytes for table in night.plan().user_tables for step in table.rewrites)
    assert (started.num_tables, started.num_steps, started.planned_bytes) == (2, 2, planned)
    numbers = {event.table: event.number for event in events if isinstance(event, StepFinished)}
    assert numbers == {"a": 1, "b": 2, LEDGER: 0}
    lines = out.getvalue().splitlines()
    assert "2 tables, 2 steps" in lines[0]
    assert [("[1/2]" in line, "[2/2]" in line) for line in lines if " OK " in line and "compact" in line] == [
        (True, False), (False, True), (False, False),
    ]  # fmt: skip


def test_a_first_small_batch_tries_a_table_of_the_user(night: Night) -> None:
    events: list[ProgressEvent] = []
    night.run(batches=(1,), on_event=events.append)
    assert [(event.number, event.total, event.num_tables) for event in events if isinstance(event, BatchStarted)] == [
        (1, 2, 1), (2, 2, 1),
    ]  # fmt: skip
    assert next(event.table for event in events if isinstance(event, StepStarted)) == "a"


def test_reports_count_the_tables_of_the_user(night: Night) -> None:
    def full(at: Station) -> None:
        raise CommitNotLanded("no space left on device")

    night.lake.at("commit", full, table=LEDGER)
    plan = night.plan()
    outcome = night.run(plan)
    _, about, verdict = fleet_view([(plan, outcome)], UTC).head
    assert isinstance(about, Line)
    assert plain(about.text).startswith("2 tables, 1 run, ")
    assert verdict == Line(Span("All tables ended well in their last run.", Role.GOOD))
    assert {table.name for table in fleet_tables([(plan, outcome)], UTC)} == {LEDGER, "a", "b"}
    last = run_view(plan, outcome, {}, UTC, run_folder="").head[-1]
    assert isinstance(last, Line)
    assert [span.role for span in spans(last.text)] == [Role.GOOD]


def test_what_counts_of_the_ledger_for_the_exit_code() -> None:
    def run(status: TableStatus, of_step: StepStatus, code: str = "C702") -> ExitCode:
        step = StepOutcome("s", StepKind.COMPACT, of_step, 0, 0.0, error=Problem(code, "what"))
        of_ledger = TableOutcome(TableRef(LEDGER), status, (step,), policy_file=BUILT_IN_POLICY)
        return exit_code(RunOutcome("r", 0, 0.0, (of_ledger, TableOutcome(TableRef("a"), TableStatus.UP_TO_DATE))))

    assert run(TableStatus.FAILED, StepStatus.FAILED) is ExitCode.OK
    assert run(TableStatus.BLOCKED, StepStatus.SKIPPED) is ExitCode.OK
    assert run(TableStatus.FAILED, StepStatus.FAILED, "E699") is ExitCode.BUG
    assert run(TableStatus.VERIFY_FAILED, StepStatus.VERIFY_FAILED) is ExitCode.VERIFICATION_FAILED
    assert run(TableStatus.INTERRUPTED, StepStatus.INTERRUPTED) is ExitCode.OK


def test_a_plan_that_only_keeps_the_ledger_has_no_changes_to_report(night: Night) -> None:
    of_ledger = dataclasses.replace(night.plan().tables[0], policy_file=BUILT_IN_POLICY)
    assert of_ledger.ref.identifier == LEDGER
    assert plan_exit_code(plan_all(of_ledger), detailed=True) is ExitCode.OK
    reason = Reason(ReasonCode.OVER_LIMIT, "too much")
    blocked = dataclasses.replace(of_ledger, steps=(), blocked=(reason,))
    assert plan_exit_code(plan_all(blocked)) is ExitCode.OK
    assert plan_exit_code(night.plan(), detailed=True) is ExitCode.CHANGES_PENDING


def test_status_has_it_apart() -> None:
    rows = [
        StatusRow(LEDGER, "due", num_files=30, policy_file=BUILT_IN_POLICY),
        StatusRow("a", "ok", num_files=2, policy_file="p.yml"),
    ]
    assert render_status(rows, NOW_MS).splitlines()[-1] == "1 table: 1 ok; our own ledger: due"
    lines = status_prometheus(rows, NOW_MS).splitlines()
    assert 'maintainer_table_files{table="a",owner=""} 2' in lines
    assert f'maintainer_ledger_files{{table="{LEDGER}",owner=""}} 30' in lines
    assert not [line for line in lines if line.startswith("maintainer_table") and LEDGER in line]
    assert not [line for line in status_prometheus(rows[1:], NOW_MS).splitlines() if "maintainer_ledger" in line]
