"""One table's plan against a lake in memory: order, stamps, events, what is written down, and what is not touched."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from maintainer.errors import ExitCode
from maintainer.model.plan.plan import Checks, LeftAlone
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.run.exit_codes import exit_code
from maintainer.model.run.outcome import RunOutcome, TableStatus
from maintainer.model.run.progress import StepFinished, StepStarted, Verified
from tests.support.runs.fake_table import FakeTable
from tests.support.runs.planned_steps import compact, plan_of, properties, vacuum
from tests.support.tables.builders import NOW_MS
from tests.support.writers.recorded_events import unfinished
from tests.unit.execution.table.table_bench import Bench, statuses, three_files


def test_steps_run_in_the_order_of_the_plan_and_everything_is_written_down(bench: Bench) -> None:
    table = three_files(bench)
    table.storage.add("old")
    outcome = bench.run(plan_of(table, properties(**{"delta.x": "1"}), compact(table), vacuum("old")))

    assert outcome.status is TableStatus.DONE
    assert statuses(outcome) == ["set_properties: succeeded", "compact: succeeded", "vacuum: succeeded"]
    assert (table.properties, table.rows, list(table.live)) == ({"delta.x": "1"}, [1, 2, 3, 4, 5], ["packed-1"])
    assert "old" not in table.storage
    assert [(e["step"], e["batch"], e["proven"]) for e in bench.recorded("intent")] == [
        ("t/set_properties", 0, False), ("t/compact", 0, True), ("t/vacuum", 0, False)
    ]  # fmt: skip
    # The vacuum of this lake writes no commits, and says so.
    assert [e["fate"] for e in bench.recorded("result")] == ["landed", "landed", "no_commit"]
    assert [(e["version"], e["result"]) for e in bench.recorded("verified")] == [(3, "pass"), (None, "pass")]
    assert unfinished(bench.runs_dir) == ()
    record = bench.record(plan_of(table))
    assert (record.unproven_versions, record.quarantined) == ((), None)
    assert record.last_optimize_at_ms == record.last_vacuum_at_ms == NOW_MS + 1


def test_what_a_budget_cut_short_does_not_count_for_every_and_its_vacuum_does(bench: Bench) -> None:
    table = three_files(bench)
    table.storage.add("old")
    rest = LeftAlone(Reason(ReasonCode.OVER_BUDGET, "waits for the next run"), 1, 10)
    plan = replace(plan_of(table, compact(table, ("f0", "f1")), vacuum("old")), left_alone=(rest,))
    outcome = bench.run(plan)
    assert [(step.kind, step.status, step.goes_on) for step in outcome.steps] == [
        ("compact", "succeeded", True), ("vacuum", "succeeded", False)
    ]  # fmt: skip
    record = bench.record(plan)
    assert (record.last_optimize_at_ms, record.last_vacuum_at_ms) == (None, NOW_MS + 1)
    assert record.last_rewrite_at_ms is not None


def test_the_stamp_of_each_commit_names_run_step_batch_and_policy(bench: Bench) -> None:
    table = three_files(bench)
    bench.run(plan_of(table, compact(table, ("f0", "f1"), ("f2",))))
    stamps = [version.stamp for version in table.versions if version.stamp]
    assert [(s.run_id, s.step_id, s.batch, s.policy_digest) for s in stamps] == [
        ("20261121T220001Z-0000", "t/compact", 0, "sha256:policy"),
        ("20261121T220001Z-0000", "t/compact", 1, "sha256:policy"),
    ]


def test_events_tell_of_each_step_and_check(bench: Bench) -> None:
    table = three_files(bench)
    bench.run(plan_of(table, compact(table, ("f0", "f1"), ("f2",))))
    assert [type(event) for event in bench.events] == [StepStarted, Verified, Verified, StepFinished]
    verified = bench.events[1]
    assert isinstance(verified, Verified)
    assert (verified.version_before, verified.version_after) == (1, 2)
    assert (verified.rows_before, verified.rows_after, verified.result) == (5, 5, "pass")


@pytest.mark.parametrize("files", [True, False])
def test_a_deletion_whose_check_is_off_tells_of_no_check(bench: Bench, files: bool) -> None:
    table = three_files(bench)
    table.storage.add("old")
    outcome = bench.run(plan_of(table, vacuum("old"), checks=Checks(files=files)))
    assert outcome.status is TableStatus.DONE
    assert "old" not in table.storage
    assert [event.result for event in bench.events if isinstance(event, Verified)] == ["pass"] * files
    assert [event["result"] for event in bench.recorded("verified")] == ["pass"] * files


def made_again_with_fewer_versions(table: FakeTable) -> None:
    table.table_id = "another"
    table.versions.pop()


@pytest.mark.parametrize(
    ("change", "code", "status", "ends_with"),
    [
        (lambda table: setattr(table, "exists", False), "T401", TableStatus.FAILED, ExitCode.FINDINGS),
        (lambda table: setattr(table, "table_id", "another"), "A403", TableStatus.YIELDED, ExitCode.OK),
        (
            lambda table: setattr(table, "columns", {"id": "long", "new": "string"}),
            "A403", TableStatus.YIELDED, ExitCode.OK,
        ),
        (made_again_with_fewer_versions, "A403", TableStatus.YIELDED, ExitCode.OK),
        (lambda table: table.versions.pop(), "A403", TableStatus.FAILED, ExitCode.FINDINGS),
    ],
    ids=["gone", "made again", "altered", "made again with fewer versions", "without its newest version"],
)  # fmt: skip
def test_a_table_that_is_not_the_planned_one_is_not_touched(
    bench: Bench, change: Any, code: str, status: TableStatus, ends_with: ExitCode
) -> None:
    """A writer that alters it came first, as one that commits during the rewrite: no failure. One that lost versions
    is another thing."""
    table = three_files(bench)
    plan = plan_of(table, compact(table))
    change(table)
    version = table.version
    outcome = bench.run(plan)
    assert outcome.status is status
    assert exit_code(RunOutcome("r", NOW_MS, 1.0, (outcome,))) is ends_with
    assert outcome.steps[0].error is not None
    assert outcome.steps[0].error.code == code
    assert table.version == version


def test_a_plan_that_was_done_already_has_nothing_left(bench: Bench) -> None:
    table = three_files(bench)
    plan = plan_of(table, properties(**{"delta.x": "1"}), compact(table))
    bench.run(plan)
    version = table.version
    outcome = bench.run(plan)
    assert outcome.status is TableStatus.UP_TO_DATE
    assert statuses(outcome) == ["set_properties: nothing_left", "compact: nothing_left"]
    assert table.version == version
