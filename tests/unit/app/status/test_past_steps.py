"""A table has the steps that were done to it, and none of another that had its name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client import generate_latest

from maintainer.app.planning.make_plan import PlannedTable
from maintainer.app.project_folders import Project
from maintainer.app.status.run_metrics import RunMetrics
from maintainer.app.status.status_look import PastSteps, status_row
from maintainer.errors import TableError
from maintainer.journal.folder.run_folder import RunFolder
from maintainer.model.plan.plan_document import to_json
from maintainer.model.run.outcome import StepStatus, TableOutcome, TableStatus, run_to_json
from maintainer.model.run.receipts import Verdict
from maintainer.model.table.table_facts import TableRecord
from maintainer.planning.planner import problem_plan
from tests.support.policies.projects import write_project
from tests.support.runs import sample_plans
from tests.support.runs import sample_runs as samples
from tests.support.tables.builders import make_facts, make_files, make_policy

FIRST, SECOND = "20261120T220000Z-0000", "20261121T220000Z-0000"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_project(tmp_path, {"policies/orders.yml": "table: sales.orders\n"})


def compacted(
    root: Path, run_id: str, *, table_id: str, name: str = "sales.orders", status: StepStatus = StepStatus.SUCCEEDED
) -> None:
    """A run that compacted a table of this id."""
    sample = sample_plans.orders()
    assert sample.observed is not None
    observed = replace(sample.observed, table_id=table_id, location=f"s3://lake/{name}")
    plan = replace(sample, ref=replace(sample.ref, identifier=name), observed=observed)
    verdict = Verdict.PASS if status is StepStatus.SUCCEEDED else Verdict.ERROR
    done = samples.compact_done()
    step = replace(done, status=status, commits=tuple(replace(commit, verdict=verdict) for commit in done.commits))
    ended = TableOutcome(plan.ref, TableStatus.DONE, (step,))
    folder = RunFolder.create(root / ".maintainer" / "runs", run_id)
    folder.write_plan(to_json(sample_plans.plan(plan)))
    folder.write_results(run_to_json(replace(samples.good_run(), run_id=run_id, tables=(ended,))))


def look_at(table_id: str, *, name: str = "sales.orders") -> PlannedTable:
    policy = make_policy(name=name)
    facts = make_facts(files=make_files(90), name=name, table_id=table_id, location=f"s3://lake/{name}")
    return PlannedTable(policy, sample_plans.quiet(name), facts, TableRecord(), 1, 1)


def steps_of(root: Path, look: PlannedTable) -> list[str | None]:
    past, unread = PastSteps.read(Project.load(root))
    assert unread == []
    return [row.run_id for row in past.of(look)]


def test_a_table_that_was_made_anew_has_no_steps_of_the_one_before(root: Path) -> None:
    compacted(root, FIRST, table_id="old")
    assert steps_of(root, look_at("old")) == [FIRST]
    assert steps_of(root, look_at("new")) == []
    compacted(root, SECOND, table_id="new")
    assert steps_of(root, look_at("new")) == [SECOND]


def test_a_table_keeps_its_steps_under_another_name(root: Path) -> None:
    compacted(root, FIRST, table_id="one")
    look = look_at("one")
    renamed = replace(look, policy=make_policy(name="sales.all_orders"))
    assert steps_of(root, renamed) == [FIRST]


def test_a_table_that_cannot_be_read_now_has_the_steps_of_its_name(root: Path) -> None:
    compacted(root, FIRST, table_id="one")
    policy = make_policy()
    plan = problem_plan(policy, TableError("cannot", code="T403"))
    assert steps_of(root, PlannedTable(policy, plan, None, TableRecord(), 1, 1)) == [FIRST]


def test_metrics_say_nothing_of_proofs_of_the_table_before(root: Path) -> None:
    compacted(root, FIRST, table_id="old")
    metrics = RunMetrics(Project.load(root))
    metrics.table_planned(look_at("new"), 1000)
    served = generate_latest(metrics.registry).decode()
    assert "maintainer_table_last_proof_ok{" not in served
    metrics.table_planned(look_at("old"), 1000)
    assert "maintainer_table_last_proof_ok{" in generate_latest(metrics.registry).decode()


def test_the_time_of_the_last_proof_is_that_of_one_that_held(root: Path) -> None:
    compacted(root, FIRST, table_id="one")
    compacted(root, SECOND, table_id="one", status=StepStatus.UNKNOWN)
    past, _ = PastSteps.read(Project.load(root))
    newest, older = past.of(look_at("one"))
    row = status_row(look_at("one"), [replace(newest, at_ms=2), replace(older, at_ms=1)])
    assert (row.last_proof, row.last_proof_at_ms) == ("error", 1)
    assert status_row(look_at("one"), [newest]).last_proof_at_ms is None
