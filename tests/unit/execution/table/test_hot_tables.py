"""A hot table is called hot, with its reason, wherever tables are spoken of."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date

from maintainer.app.planning.make_plan import PlannedTable
from maintainer.app.status.status_look import status_row
from maintainer.execution.table.planned_ends import planned_problem, status_without_steps
from maintainer.model.plan.plan_document import to_json
from maintainer.model.run.outcome import RunOutcome, TableOutcome, TableStatus, run_to_document
from maintainer.model.table.commit_records import OwnRewrites
from maintainer.model.table.table_facts import TableRecord, Update
from maintainer.planning.plan_input import TableInput
from maintainer.planning.planner import assemble, plan_table
from maintainer.report.findings import render_annotations
from maintainer.report.plan.plan_markdown import render_plan_markdown
from maintainer.report.plan.plan_text import render_plan
from maintainer.report.plan.why_text import render_why
from maintainer.report.run.run_findings import render_junit, run_findings
from maintainer.report.status_documents import status_prometheus
from tests.support.tables.builders import MINUTE_MS, NOW_MS, make_facts, make_files, make_optimize, make_policy

POLICY = make_policy(optimize=make_optimize(quiet_after_updates_seconds=600))
FACTS = replace(make_facts(files=make_files(10, 20)), updates=(Update(41, NOW_MS - 2 * MINUTE_MS, "MERGE"),))
TABLE = plan_table(TableInput(POLICY, FACTS, TableRecord(), NOW_MS, date(2026, 11, 21)))
PLAN = assemble([TABLE], created_at_ms=NOW_MS)
RUN = RunOutcome("r", NOW_MS, 1.0, (TableOutcome(TABLE.ref, TableStatus.WAITING, (), planned_problem(TABLE)),))
RESTING = plan_table(TableInput(
    POLICY,
    replace(make_facts(files=make_files(10, 20)), own_rewrites=OwnRewrites(2, NOW_MS - 4 * MINUTE_MS, False)),
    TableRecord(), NOW_MS, date(2026, 11, 21),
))  # fmt: skip
RESTS = (
    "resting: our last rewrite was 4m ago, 2 runs in a row; it rests for 20m, so that a writer who lost to us "
    "can finish (quietAfterUpdates 10m)"
)
WHY = "hot: MERGE by another writer 2m ago (quietAfterUpdates 10m)"


def test_in_the_plan_in_every_form() -> None:
    assert WHY in render_plan(PLAN)
    assert "0 up to date, 1 waiting" in render_plan(PLAN)
    assert WHY in render_why(TABLE, POLICY)
    assert "taken when nobody else updated the table for 10m, and no update by others is likely" in render_why(
        TABLE, POLICY
    )
    assert "hot: left to its writers" in render_plan_markdown(PLAN)
    assert WHY in to_json(PLAN)


def test_in_the_run_in_every_form() -> None:
    assert status_without_steps(TABLE) is TableStatus.WAITING
    assert [(finding.severity.value, finding.code, finding.what) for finding in run_findings(RUN)] == [
        ("warning", "C718", WHY)
    ]
    assert WHY in json.dumps(run_to_document(RUN))
    assert WHY in render_junit(RUN)
    assert WHY in render_annotations(run_findings(RUN))


def test_a_table_that_rests_after_our_rewrites_says_so_in_every_form() -> None:
    outcome = TableOutcome(RESTING.ref, TableStatus.WAITING, (), planned_problem(RESTING))
    plan, run = assemble([RESTING], created_at_ms=NOW_MS), RunOutcome("r", NOW_MS, 1.0, (outcome,))
    why = " ".join(render_why(RESTING, POLICY).split())
    assert RESTS in why
    assert "taken when that time has passed since our last rewrite" in why
    assert RESTS in " ".join(render_plan(plan).split())
    assert RESTS in to_json(plan)
    assert "resting after our own rewrites" in render_plan_markdown(plan)
    assert RESTING.hot is not None
    (finding,) = run_findings(run)
    assert (finding.what, finding.help.startswith("the first apply after that does it; ")) == (RESTS, True)
    assert RESTS in json.dumps(run_to_document(run))
    assert RESTS in render_junit(run)
    assert status_row(PlannedTable(POLICY, RESTING, FACTS, TableRecord(), 1, 1), ()).next == RESTS


def test_in_status_and_prometheus() -> None:
    row = status_row(PlannedTable(POLICY, TABLE, FACTS, TableRecord(), 1, 1), ())
    assert (row.state, row.next) == ("hot", WHY)
    assert 'maintainer_table_state{table="sales.orders",owner="",state="hot"} 1' in status_prometheus([row], NOW_MS)
