"""Each state of a table comes from what is really so."""

from __future__ import annotations

import dataclasses
import os
from datetime import date
from pathlib import Path

import pytest

from maintainer.app.planning.make_plan import PlannedTable, known_tables
from maintainer.app.planning.policy_places import MAX_ENTRIES, neighbours, unmanaged_tables
from maintainer.app.project_folders import Project
from maintainer.app.status.status_look import status_row
from maintainer.errors import TableError
from maintainer.model.run.history_rows import HistoryRow, StatusRow
from maintainer.model.table.table_facts import DataFile, TableFacts, TableRecord
from maintainer.planning.plan_input import PlanOptions, TableInput
from maintainer.planning.planner import assemble, plan_table, problem_plan
from maintainer.policy.resolve.resolved import ResolvedPolicy, Suspension, WorthPolicy
from maintainer.report.plan.plan_text import PlanTextOptions, render_plan
from maintainer.report.status_text import render_status
from tests.support.policies.projects import write_project
from tests.support.tables.builders import (
    DAY_MS,
    HOUR_MS,
    NOW_MS,
    make_facts,
    make_file,
    make_files,
    make_optimize,
    make_policy,
)

TODAY = date(2026, 11, 21)


def row_of(
    policy: ResolvedPolicy, facts: TableFacts, *past: HistoryRow, record: TableRecord | None = None
) -> StatusRow:
    record = record or TableRecord()
    plan = plan_table(TableInput(policy, facts, record, NOW_MS, TODAY, PlanOptions()))
    return status_row(PlannedTable(policy, plan, facts, record, 1, 1), past)


def by_day(day: str, *sizes: int, age_ms: int) -> tuple[DataFile, ...]:
    return tuple(
        make_file(f"{day}-{number}", size=size, partition={"day": day}, modified_at_ms=NOW_MS - age_ms)
        for number, size in enumerate(sizes)
    )


def daily(*files: DataFile) -> TableFacts:
    return make_facts(files=files, partitioned_by=("day",))


QUIET = make_policy(optimize=make_optimize(quiet_for_seconds=3600))


def test_small_files_that_fit_together_are_due_and_figures_are_counted() -> None:
    files = (*make_files(10, 20, 80), make_file("d", size=90, records=100, deleted=4))
    row = row_of(make_policy(), make_facts(files=files))
    assert (row.state, row.small_files, row.small_bytes, row.num_files, row.size_bytes) == ("due", 2, 30, 4, 200)
    assert (row.deleted_rows_ratio, row.policy_file) == (0.01, "orders.yml")


@pytest.mark.parametrize(
    ("sizes", "state", "first"), [((10,), "ok", None), ((10, 20), "due", "compact"), ((), "ok", None)]
)
def test_files_without_a_partition_value_are_named_also_where_nothing_else_is_to_be_done(
    sizes: tuple[int, ...], state: str, first: str | None
) -> None:
    """One line says how many files and rows lack which column, and what their folder says: in status and in plan."""
    lost = [
        dataclasses.replace(make_file(f"day=7/{n}", size=5, partition={"day": None}, records=3), stored_values=())
        for n in range(2)
    ]
    facts = daily(*lost, *by_day("2026-11-21", *sizes, age_ms=DAY_MS))
    row = row_of(make_policy(), facts)
    said = "2 files (6 rows) without a value of day in the log, read as null; their folder says day=7"
    assert row.state == state
    printed = " ".join(render_status([row], NOW_MS).split())
    assert said in printed
    assert (first is None) == ("nothing to do" not in printed and "compact" not in printed)
    plan = plan_table(TableInput(make_policy(), facts, TableRecord(), NOW_MS, TODAY, PlanOptions()))
    printed = render_plan(assemble([plan], created_at_ms=NOW_MS), PlanTextOptions(project="lake"))
    assert sum(said in line for line in printed.splitlines()) == 1


def test_hot_are_small_files_that_only_wait_for_their_partition_to_rest() -> None:
    hot = by_day("2026-11-21", 10, 20, age_ms=60_000)
    row = row_of(QUIET, daily(*hot))
    assert row.state == "hot"
    assert row.next is not None
    assert "written less than 1h ago" in row.next
    assert row_of(QUIET, daily(*by_day("2026-11-21", 10, 20, age_ms=2 * HOUR_MS))).state == "due"


@pytest.mark.parametrize("sizes", [(10, 90), (80, 90), (10,)])
def test_a_partition_at_rest_or_not_that_has_nothing_to_gain_is_ok(sizes: tuple[int, ...]) -> None:
    assert row_of(QUIET, daily(*by_day("2026-11-21", *sizes, age_ms=60_000))).state == "ok"


def test_a_partition_whose_writers_won_lately_is_hot_as_well() -> None:
    lost = TableRecord(lost_in_a_row=1, last_lost_at_ms=NOW_MS - HOUR_MS)
    row = row_of(make_policy(), daily(*by_day("2026-11-21", 10, 20, age_ms=60_000)), record=lost)
    assert (row.state, row.next) == (
        "hot", "2 files where data was written less than 1h ago, and another writer won in 1 run in a row"
    )  # fmt: skip


def test_the_newest_partition_is_hot_as_well() -> None:
    policy = make_policy(optimize=make_optimize(skip_newest_partitions=1))
    facts = daily(*by_day("2026-11-20", 90, age_ms=0), *by_day("2026-11-21", 10, 20, age_ms=0))
    assert row_of(policy, facts).state == "hot"


def test_states_that_people_or_past_runs_made() -> None:
    facts = make_facts(files=make_files(90))
    suspended = make_policy(suspend=Suspension(None, "migration"))
    assert row_of(suspended, facts).state == "suspended"
    assert row_of(make_policy(), facts, record=TableRecord(quarantined="v7 lost a row")).state == "quarantined"
    failed = HistoryRow(NOW_MS, "sales.orders", "compact", "failed", "r")
    assert row_of(make_policy(), facts, failed).state == "failed"
    assert row_of(make_policy(), facts).state == "ok"
    drift = make_policy(properties=(("delta.logRetentionDuration", "interval 30 days"),))
    assert row_of(drift, facts).state == "drift"


def test_what_cannot_be_maintained_is_told_from_what_cannot_be_read() -> None:
    for code, state in (("T404", "unsupported"), ("T403", "problem")):
        plan = problem_plan(make_policy(), TableError("cannot", code=code))
        row = status_row(PlannedTable(make_policy(), plan, None, TableRecord(), 1, 1), [])
        assert (row.state, row.next) == (state, f"cannot [{code}]")


def test_what_is_next_for_a_table_that_waits() -> None:
    worth = make_policy(optimize=make_optimize(when=WorthPolicy(min_small_files=20)))
    row = row_of(worth, make_facts(files=make_files(*[5] * 12)))
    assert (row.state, row.next) == ("ok", "not worth it yet: 12 small files, less than 20 (8 more are needed)")
    daily_only = make_policy(optimize=make_optimize(every_seconds=86_400))
    record = dataclasses.replace(TableRecord(), last_optimize_at_ms=NOW_MS - 5 * HOUR_MS)
    row = row_of(daily_only, make_facts(files=make_files(10, 20)), record=record)
    assert (row.state, row.next) == ("ok", "a run with a rewrite began 5h ago, at most every 1d: due in 18h")


def test_a_table_with_nothing_to_do_says_why_small_files_stay() -> None:
    row = row_of(make_policy(), make_facts(files=make_files(10, 95)))
    assert (row.state, row.next) == (
        "ok", "nothing to do: 1 small file with no other left that fits beside it within 100 B"
    )  # fmt: skip
    assert row_of(make_policy(), make_facts(files=make_files(90, 95))).next == "nothing to do"
    stopped = HistoryRow(NOW_MS, "sales.orders", "compact", "interrupted", "r")
    assert row_of(make_policy(), make_facts(files=make_files(90)), stopped).next == "nothing to do"
    failed = HistoryRow(NOW_MS, "sales.orders", "compact", "failed", "r")
    assert row_of(make_policy(), make_facts(files=make_files(90)), failed).next == (
        "last compact failed: maintainer history"
    )


@pytest.mark.parametrize("ended", ["succeeded", "interrupted"])
def test_files_that_came_back_from_the_trash_make_no_failed_step_good(ended: str) -> None:
    facts = make_facts(files=make_files(90))
    failed = HistoryRow(NOW_MS, "sales.orders", "vacuum", "verify_failed", "r1")
    undelete = HistoryRow(NOW_MS + 1, "sales.orders", "undelete", ended, "r2")
    row = row_of(make_policy(), facts, undelete, failed)
    assert (row.state, row.next) == ("failed", "last vacuum verify failed: maintainer history")
    assert row_of(make_policy(), facts, undelete).state == "ok"
    # One that failed is said, until one that did not or the next step.
    refused = dataclasses.replace(undelete, status="incomplete")
    assert row_of(make_policy(), facts, refused).next == "last undelete incomplete: maintainer history"
    assert row_of(make_policy(), facts, undelete, refused).state == "ok"


def test_what_verify_found_is_the_newest_proof_and_no_failed_step() -> None:
    facts = make_facts(files=make_files(90))
    step = HistoryRow(NOW_MS, "sales.orders", "compact", "succeeded", "r1", proof="pass")
    wrong = HistoryRow(NOW_MS + 1, "sales.orders", "verify", "verify_failed", "r2", proof="fail")
    row = row_of(make_policy(), facts, wrong, step)
    assert (row.last_proof, row.last_proof_at_ms, row.state) == ("fail", NOW_MS, "ok")
    assert row_of(make_policy(), facts, wrong).last_proof == "fail"
    proven = dataclasses.replace(wrong, status="succeeded", proof="pass")
    failed = dataclasses.replace(step, status="failed", proof=None)
    row = row_of(make_policy(), facts, proven, failed)
    assert (row.last_proof, row.last_proof_at_ms, row.state) == ("pass", NOW_MS + 1, "failed")


def test_tables_beside_ours_that_no_policy_names_are_found(tmp_path: Path) -> None:
    for name in ("lake/a", "lake/b", "lake/by_rule", "lake/c/inner", "other/d", ".maintainer/ledger"):
        (tmp_path / name / "_delta_log").mkdir(parents=True)
    (tmp_path / "lake" / "plain").mkdir()
    (tmp_path / "lake" / "file").write_text("x")
    (tmp_path / "lake" / "link").symlink_to(tmp_path / "other" / "d")
    write_project(
        tmp_path,
        {
            "policies/a.yml": "table: lake/a\n",
            "policies/c.yml": "table: crm.leads\n",
            "policies/rule.yml": 'match: {tables: ["*/by_rule"]}\n',
        },
    )
    project = Project.load(tmp_path)
    assert [ref.identifier for ref in unmanaged_tables(project)] == ["lake/b"]
    assert [ref.identifier for ref in neighbours(project)] == ["lake/b", "lake/by_rule"]
    # A clone may lie beside its source: whatever is deleted, its log is asked.
    assert [ref.identifier for ref in known_tables(project)] == ["crm.leads", "lake/a", "lake/b", "lake/by_rule"]


def test_a_folder_that_may_not_be_entered_may_be_a_clone_and_is_no_table_for_sure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody but its owner looks into ``lost+found``, and no table is in it."""
    for name in ("lake/a", "lake/theirs", "lake/lost+found"):
        (tmp_path / name / "_delta_log").mkdir(parents=True)
    project = Project.load(write_project(tmp_path, {"policies/a.yml": "table: lake/a\n"}))
    stat = Path.stat

    def denied(path: Path, **how: bool) -> os.stat_result:
        if path.parent.name in ("theirs", "lost+found"):
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, **how)

    monkeypatch.setattr(Path, "stat", denied)
    assert [ref.identifier for ref in known_tables(project)] == ["lake/a", "lake/theirs"]
    assert unmanaged_tables(project) == []


def test_a_table_that_is_reached_through_a_link_has_neighbours_at_both_ends(tmp_path: Path) -> None:
    for name in ("disk/a", "disk/clone", "lake/other"):
        (tmp_path / name / "_delta_log").mkdir(parents=True)
    (tmp_path / "lake" / "a").symlink_to(tmp_path / "disk" / "a")
    project = Project.load(write_project(tmp_path, {"policies/a.yml": "table: lake/a\n"}))
    assert [ref.identifier for ref in neighbours(project)] == ["disk/clone", "lake/other"]


def test_a_folder_of_very_many_entries_is_not_read_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "lake" / "a" / "_delta_log").mkdir(parents=True)
    for number in range(MAX_ENTRIES + 10):
        (tmp_path / "lake" / f"f{number}").touch()
    (tmp_path / "lake" / "b" / "_delta_log").mkdir(parents=True)
    project = Project.load(write_project(tmp_path, {"policies/a.yml": "table: lake/a\n"}))
    assert len(unmanaged_tables(project)) <= 1
