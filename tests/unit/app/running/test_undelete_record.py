"""Undelete leaves the record of every other run: its folder, a row in the history, a row for the ledger."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from obstore.store import MemoryStore

from maintainer.app.engine_access import OpenedEngine
from maintainer.app.lookback.ledger_access import rebuild_ledger
from maintainer.app.lookback.run_history import HistoryQuery, history_row, recorded_rows
from maintainer.app.project_folders import Project
from maintainer.app.running.apply_plan import open_journal
from maintainer.app.running.restore_files import undelete_run
from maintainer.delta.vacuum.trash import undelete
from maintainer.engine.protocols import TableEngine
from maintainer.engine.store.object_storage import ObjectStorage
from maintainer.errors import TableError
from maintainer.journal.event_log import EVENTS_FILE, read_events
from maintainer.journal.folder.cache_home import HOME_VARIABLE
from maintainer.journal.journal import Journal
from maintainer.journal.ledger.ledger_pending import PENDING_FILE, read_pending
from maintainer.journal.ledger.ledger_rebuild import Rebuilt
from maintainer.journal.store import state_access, state_mirror
from maintainer.model.plan.plan_document import to_json
from maintainer.model.plan.steps import VacuumStep
from maintainer.model.run.receipts import UndeleteReceipt
from maintainer.model.run.run_events import Deleting
from maintainer.model.table.storage_facts import MarkedFile
from maintainer.model.table.table_facts import TableFacts, TableRef
from maintainer.report.status_text import render_history
from tests.support.runs import sample_plans, sample_runs
from tests.support.tables.aged_tables import AgedTable
from tests.support.tables.builders import DAY_SECONDS, NOW_MS
from tests.support.tables.local_vacuum import LocalReader, LocalTable, Vacuuming
from tests.support.tables.vacuum_cases import policies
from tests.unit.journal.ledger.test_ledger_rebuild import Store

OLD = ("a.parquet", "b.parquet", "c.parquet")
RUN_ID = "20261121T220001Z-0a0a"


class Writer:
    """Undelete as the engine does it, on a local disk."""

    def __init__(self) -> None:
        self.deleted: Sequence[MarkedFile] = ()

    def undelete(self, facts: TableFacts, run_id: str, deleted: Sequence[MarkedFile] = ()) -> UndeleteReceipt:
        """See ``TableWriter``."""
        self.deleted = deleted
        return undelete(LocalTable(Path(facts.ref.location)), facts.table_id, run_id, facts.ref.identifier)


class Case:
    """A project of one table whose three old files lie in the trash of ``run-1``."""

    def __init__(self, root: Path) -> None:
        (root / "policies").mkdir()
        (root / "policies" / "t.yml").write_text("version: 1\ntable: lake/t\nvacuum: {retention: 7d, trash: 7d}\n")
        self.table, self.writer = AgedTable(root / "lake" / "t"), Writer()
        self.table.append(60, *OLD)
        self.table.rewrite(20, "all.parquet", *OLD)
        work = Vacuuming(policies(trash_seconds=7 * DAY_SECONDS), run_id="run-1")
        step = work.step(self.table)
        assert step is not None
        work.delete(self.table, step)
        self.project = Project.load(root)
        self.runs_dir = self.project.runs_dir

    def undelete(self, of_run: str, run_id: str = RUN_ID) -> UndeleteReceipt:
        """As the command does it."""
        (policy,) = self.project.policies
        worker = cast("TableEngine", SimpleNamespace(reader=LocalReader(), writer=self.writer))
        journal = Journal.open(self.runs_dir, run_id, lambda: 1_795_298_400_000)
        try:
            return undelete_run(self.project, worker, journal, policy, of_run)
        finally:
            journal.close()

    def document(self) -> dict[str, Any]:
        """What the run folder keeps of it."""
        record: dict[str, Any] = json.loads((self.runs_dir / RUN_ID / "undelete.json").read_text())
        return record


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


def test_what_came_back_stands_in_the_run_folder_the_history_and_the_ledger(case: Case) -> None:
    size = sum(path.stat().st_size for path in (case.table.path.parent / ".maintainer-trash").rglob("*.parquet"))
    receipt = case.undelete("run-1")
    assert (receipt.num_files_restored, receipt.bytes_restored, receipt.refused) == (3, size, ())
    (row,) = read_pending(case.runs_dir / RUN_ID / PENDING_FILE)
    assert (row.kind, row.status, row.num_files_added, row.bytes_added) == ("undelete", "succeeded", 3, size)
    assert (row.table, row.table_id, row.policy_file) == ("lake/t", case.table.table_id, "policies/t.yml")
    assert (row.reason, row.run_id) == ("run run-1 had taken the files away", RUN_ID)
    assert case.document()["refused"] == []
    (recorded,), unread = recorded_rows(case.runs_dir, of_table=lambda row: row.table == "lake/t")
    history = history_row(recorded)
    assert (history.step, history.status, history.run_id, history.num_files_added, unread) == (
        "undelete",
        "succeeded",
        RUN_ID,
        3,
        [],
    )
    assert "3 files brought back" in render_history([history])
    kinds = [event["type"] for event in read_events(case.runs_dir / RUN_ID / EVENTS_FILE).events]
    assert kinds == ["record_opened", "note", "ledger_rows", "ledger_rows", "run_finished"]
    assert recorded_rows(case.runs_dir, HistoryQuery(failed=True)) == ([], [])
    assert recorded_rows(case.runs_dir, of_table=lambda row: row.table == "lake/other") == ([], [])


def test_files_that_stay_behind_are_incomplete(case: Case) -> None:
    (case.table.path / "b.parquet").write_bytes(b"somebody else's")
    receipt = case.undelete("run-1")
    assert receipt.refused == ("b.parquet (there is a file in its place)",)
    assert case.document()["refused"] == list(receipt.refused)
    ((recorded,), _) = recorded_rows(case.runs_dir, HistoryQuery(failed=True))
    history = history_row(recorded)
    assert (history.status, history.num_files_added) == ("incomplete", 2)
    assert "INCOMPLETE" in render_history([history])
    assert history.error == "1 file not brought back, such as b.parquet (there is a file in its place)"


def test_a_run_that_moved_nothing_is_recorded_as_failed(case: Case) -> None:
    with pytest.raises(TableError) as caught:
        case.undelete("20200101T000000Z-ffff")
    assert caught.value.code == "T430"
    ((recorded,), _) = recorded_rows(case.runs_dir)
    history = history_row(recorded)
    assert (history.status, history.error_code, history.num_files_added) == ("failed", "T430", 0)


def test_a_damaged_record_is_told_and_stops_nothing(case: Case) -> None:
    case.undelete("run-1")
    (case.runs_dir / RUN_ID / "undelete.json").write_text("{")
    rows, unread = recorded_rows(case.runs_dir)
    assert rows == []
    assert "undelete.json" in unread[0].what


def test_the_delete_markers_that_a_run_recorded_of_this_table_are_handed_over(case: Case) -> None:
    """Those of a request whose answer nobody recorded are missing: such a file is handed over without one.

    A copy of the table, which the same run vacuumed, has its id, the same names of files, and markers of its own.
    """
    orders = sample_plans.orders()
    copy = replace(orders, ref=TableRef("sales.copy"))
    step = next(step for step in orders.steps if isinstance(step, VacuumStep))
    paths = [file.path for file in step.files]
    run = Journal.open(case.runs_dir, sample_runs.RUN, lambda: 1_795_290_000_000)
    run.folder.write_plan(to_json(sample_plans.plan(orders, copy)))
    about, place = (1, len(paths)), case.table.path.as_uri()
    run.record(Deleting(1, "orders", case.table.table_id, place, orders.step_id(step), *about, ((paths[0], "m1"),)))
    run.record(Deleting(2, "other", "another-id", place, orders.step_id(step), *about, ((paths[1], "m2"),)))
    of_copy = (case.table.table_id, "s3://lake/copy", copy.step_id(step))
    run.record(Deleting(3, "copy", *of_copy, *about, tuple((path, "m3") for path in paths)))
    run.close()
    with pytest.raises(TableError):
        case.undelete(sample_runs.RUN)
    marks = {file.path: file.marker for file in case.writer.deleted}
    assert marks == {path: "m1" if path == paths[0] else None for path in paths}
    assert [file.size_bytes for file in case.writer.deleted] == [file.size_bytes for file in step.files]


def test_a_machine_that_fetched_only_what_a_run_must_know_finds_the_files_of_another_ones_run(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, storage = case.project.root, ObjectStorage(MemoryStore(), "memory://state")
    (root / "maintainer.yml").write_text("version: 1\nstate: s3://state\n")
    monkeypatch.setattr(ObjectStorage, "open", lambda uri, settings: storage)
    case.project, orders = Project.load(root), sample_plans.orders()
    step = next(step for step in orders.steps if isinstance(step, VacuumStep))

    def on_machine(name: str) -> None:
        monkeypatch.setenv(HOME_VARIABLE, str(root / name))
        monkeypatch.setattr(state_access, "_states", {})

    on_machine("first")
    with open_journal(case.project) as run:
        run.folder.write_plan(to_json(sample_plans.plan(orders)))
        about = (orders.step_id(step), len(step.files), len(step.files))
        table_id, place = case.table.table_id, case.table.path.as_uri()
        run.record(Deleting(1, "orders", table_id, place, *about, ((step.files[0].path, "m1"),)))
        run.finished()
        run.close()
        run.update_state()
    on_machine("second")
    monkeypatch.setattr(state_mirror, "MAX_RUNS", 0)  # however old the run is
    policy = next(policy for policy in case.project.policies if not policy.is_ledger)
    worker = cast("TableEngine", SimpleNamespace(reader=LocalReader(), writer=case.writer))
    with open_journal(case.project) as journal, pytest.raises(TableError):
        undelete_run(case.project, worker, journal, policy, run.run_id)
    assert [file.path for file in case.writer.deleted] == [file.path for file in step.files]


def test_a_ledger_that_is_made_again_has_what_came_back(case: Case) -> None:
    case.undelete("run-1")
    again = Store()
    opened = cast("OpenedEngine", SimpleNamespace(ledger_at=lambda location: again, history=nullcontext))

    def rebuilt() -> Rebuilt:
        return rebuild_ledger(
            case.project, opened, (), young_since_ms=NOW_MS - 86_400_000, dry_run=False, on_table=lambda policy: None
        )

    assert rebuilt().waiting == (RUN_ID,)
    (row,) = read_pending(case.runs_dir / RUN_ID / PENDING_FILE)
    (case.runs_dir / RUN_ID / PENDING_FILE).unlink()
    end = rebuilt()
    assert (end.from_folders, end.waiting) == (1, ())
    assert again.held == [replace(row, source="run folder")]
    assert rebuilt().already == 1
