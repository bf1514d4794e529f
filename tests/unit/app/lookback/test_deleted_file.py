"""`history --file`: which run deleted a data file, when, and by which rule; from the records of runs alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from maintainer.app.lookback.run_history import HistoryQuery, recorded_rows
from maintainer.journal.journal import Journal
from maintainer.model.plan.plan import TablePlan
from maintainer.model.plan.plan_document import to_json
from maintainer.model.plan.steps import VacuumStep
from maintainer.model.run.outcome import run_to_json
from maintainer.model.run.receipts import VacuumReceipt
from maintainer.model.run.run_events import CommitEnd, Deleting, Intent, Settled
from maintainer.model.table.commit_records import CommitStamp
from maintainer.model.table.table_facts import RemovedFile
from tests.support.runs import sample_plans, sample_runs

DAY_MS = 86_400_000
PLANNED = (
    RemovedFile("day=2026-11-01/a%20b.parquet", 100, sample_plans.TEN_PM - 9 * DAY_MS, removed_in_version=7),
    RemovedFile("x.parquet", 100, sample_plans.TEN_PM - 20 * DAY_MS, "untracked"),
)


def planned_deletion(trash_seconds: int = 0) -> TablePlan:
    """The vacuum of a table was to delete two files."""
    orders = sample_plans.orders()
    assert orders.observed is not None
    steps = tuple(
        replace(step, files=PLANNED, trash_seconds=trash_seconds, decided_by="vacuum.retention (policies/o.yml:3)")
        if isinstance(step, VacuumStep)
        else step
        for step in orders.steps
    )
    return replace(orders, steps=steps, observed=replace(orders.observed, location="s3://lake/sales/orders"))


def runs_with(runs: Path, receipt: VacuumReceipt | None, *, trash_seconds: int = 0) -> Path:
    """A folder of one run that came to its end."""
    run = sample_runs.good_run()
    done = replace(run.tables[0], steps=(replace(sample_runs.vacuum_done(), vacuum=receipt),))
    folder = runs / sample_runs.RUN
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text(to_json(sample_plans.plan(planned_deletion(trash_seconds))))
    (folder / "results.json").write_text(run_to_json(replace(run, tables=(done,))))
    return runs


def fates(runs: Path, file: str) -> list[str]:
    rows, unread = recorded_rows(runs, HistoryQuery(file=file))
    assert unread == []
    assert {(row.run_id, row.kind) for row in rows} <= {(sample_runs.RUN, "vacuum")}
    return [row.reason for row in rows]


@pytest.mark.parametrize(
    "file",
    [
        "a b.parquet",
        "a%20b.parquet",
        "./day=2026-11-01/a b.parquet",
        "orders/day=2026-11-01/a b.parquet",
        "s3://lake/sales/orders/day=2026-11-01/a b.parquet",
        "s3a://lake/sales/./orders/day=2026-11-01/a%20b.parquet",
    ],
)
def test_a_deleted_file_names_the_run_and_the_rule(tmp_path: Path, file: str) -> None:
    runs = runs_with(tmp_path, VacuumReceipt(2, 200, version_before=8, version_after=10))
    assert fates(runs, file) == [
        "deleted: day=2026-11-01/a%20b.parquet; removed from the table by version 7, 2026-11-12 22:00 UTC; "
        "decided by vacuum.retention (policies/o.yml:3), policy policies/sales/orders.yml"
    ]


@pytest.mark.parametrize("file", ["b.parquet", "parquet", "other/a b.parquet", "/x.parquet", "s3://other/x.parquet"])
def test_another_file_is_not_meant(tmp_path: Path, file: str) -> None:
    assert fates(runs_with(tmp_path, VacuumReceipt(2, 200)), file) == []


@pytest.mark.parametrize(
    ("receipt", "trash_seconds", "said"),
    [
        (VacuumReceipt(2, 200, trash="s3://t"), 14 * 86_400, "moved into the trash for 14d: x.parquet; last changed 2"),
        (VacuumReceipt(1, 100, stopped="SIGINT"), 0, "perhaps deleted, as 1 of 2 planned files: x.parquet; "),
        (VacuumReceipt(1, 100, ("x.parquet (busy)",)), 0, "was planned to be deleted and stayed: x.parquet (busy); "),
        (VacuumReceipt(1, 100, ("day=2026-11-01/a%20b.parquet",)), 0, "deleted: x.parquet; "),
        (VacuumReceipt(0, 0), 0, "was planned to be deleted and stayed: x.parquet; "),
        (None, 0, "was planned to be deleted and stayed: x.parquet; "),
    ],
)
def test_what_became_of_it_is_what_the_run_recorded(
    tmp_path: Path, receipt: VacuumReceipt | None, trash_seconds: int, said: str
) -> None:
    (fate,) = fates(runs_with(tmp_path, receipt, trash_seconds=trash_seconds), "x.parquet")
    assert fate.startswith(said)


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("goes on", "perhaps deleted (the deletion still goes on): x.parquet; last changed 2"),
        ("killed", "perhaps deleted (the deletion was broken off, and the next apply finds out): x.parquet; last chan"),
        ("looked up", "was planned to be deleted and stayed: x.parquet; "),
    ],
)
def test_of_a_deletion_that_was_broken_off_it_is_not_known(tmp_path: Path, state: str, said: str) -> None:
    journal = Journal.open(tmp_path, sample_runs.RUN, lambda: sample_plans.TEN_PM)
    table = planned_deletion()
    journal.folder.write_plan(to_json(sample_plans.plan(table)))
    journal.folder.write_results(run_to_json(replace(sample_runs.good_run(), tables=())))
    (step_id,) = (table.step_id(step) for step in table.steps if isinstance(step, VacuumStep))
    of_table = (sample_plans.TEN_PM, table.ref.identifier, "id", "s3://lake/sales/orders")
    stamp = CommitStamp(sample_runs.RUN, step_id, 0, "sha256:0")
    journal.record(Intent(*of_table, stamp, "vacuum", 8, proven=True, num_files=2))
    if state == "looked up":
        journal.record(Settled(*of_table, stamp, "vacuum", CommitEnd.NOT_LANDED, by="20261122T220000Z-0000"))
    else:
        journal.record(Deleting(*of_table, step_id, 1, 2))
    if state != "goes on":
        journal._log.close()
    (fate,) = fates(tmp_path, "x.parquet")
    assert fate.startswith(said)
