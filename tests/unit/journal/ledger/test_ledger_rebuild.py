"""A lost ledger is filled up again: whole rows from run folders, what commits say from histories, nothing twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from maintainer.journal.event_log import EVENTS_FILE, EventLog
from maintainer.journal.folder.run_folder import RunFolder
from maintainer.journal.ledger.ledger_rebuild import (
    FROM_HISTORY,
    FROM_RUN_FOLDER,
    LedgerContents,
    Rebuilt,
    anew,
    fill_up,
    key_of,
    recorded_rows,
    rows_from_history,
    started_at_ms,
)
from maintainer.journal.ledger.ledger_rows import LedgerMark, LedgerRow, rows_of
from maintainer.journal.memory.past_runs import RunRecord, read_record
from maintainer.model.plan.plan import Plan
from maintainer.model.plan.plan_document import to_json
from maintainer.model.plan.steps import StepKind
from maintainer.model.run.history_rows import BY_HOOK
from maintainer.model.run.outcome import RunOutcome, StepOutcome, StepStatus, TableOutcome, TableStatus
from maintainer.model.run.progress import StepFinished, TableFinished
from maintainer.model.run.receipts import CommitReceipt
from maintainer.model.run.run_events import CommitEnd, Intent, LedgerRows, Result, RunEvent, Settled, line_of
from maintainer.model.table.commit_records import CommitsRead, CommitStamp, TableCommit
from tests.support.policies.projects import loaded
from tests.support.runs.fake_lake import FakeLake
from tests.support.runs.planned_steps import compact, plan_all, plan_of
from tests.support.tables.builders import NOW_MS

OLD, YOUNG = "20261120T220000Z-aaaa", "20261121T220000Z-bbbb"
YOUNG_MS = int(datetime(2026, 11, 21, 22, tzinfo=UTC).timestamp() * 1000)


class Store:
    """A ledger in memory that keeps Delta's promise: an append that was beaten to its number changes nothing."""

    def __init__(self, rows: Sequence[LedgerRow] = ()) -> None:
        self.held = list(rows)
        self.appends = 0
        self.beaten_by: list[LedgerRow] = []

    def contents(self) -> LedgerContents:
        return LedgerContents(self.appends, frozenset(map(key_of, self.held)))

    location = "ledger"

    def mark(self) -> LedgerMark | None:
        return None

    def steps_of(self, run_id: str) -> frozenset[str]:
        return frozenset()

    def append(self, run_id: str, rows: tuple[LedgerRow, ...]) -> None:
        raise AssertionError("a rebuild does not append as a run does")

    def rows(self, *, table: str | None = None, table_id: str | None = None, limit: int = 10) -> tuple[LedgerRow, ...]:
        raise AssertionError("a rebuild does not read whole rows")

    def append_missing(self, rows: Sequence[LedgerRow], *, after_version: int) -> None:
        if self.beaten_by:
            self.held += self.beaten_by
            self.appends += 1
            self.beaten_by = []
        if after_version < self.appends:
            return
        self.appends += 1
        self.held += rows


def stamp(run: str, step: str, batch: int = 0) -> CommitStamp:
    return CommitStamp(run, step, batch, "sha256:then")


def history_rows(tmp_path: Path, *commits: TableCommit) -> tuple[LedgerRow, ...]:
    project = loaded(tmp_path, {"policies/t.yml": "table: lake/t\nowner: team\n"})
    read = CommitsRead("file:/lake/t", tuple(sorted(commits, key=lambda commit: -commit.version)), 0)
    return rows_from_history(project.resolve_table("lake/t"), read)


def test_a_step_of_several_commits_is_one_row_with_what_they_say(tmp_path: Path) -> None:
    (row,) = history_rows(
        tmp_path,
        TableCommit(3, 3000, "WRITE", num_files_added=9),
        TableCommit(4, 9000, "OPTIMIZE", None, stamp(OLD, "lake/t/compact"), 5, 1, 50, 48, 2.0),
        TableCommit(6, 9500, "OPTIMIZE", None, stamp(OLD, "lake/t/compact", 1), 3, 1, 30, 28, 0.25),
    )
    assert (row.run_id, row.step_id, row.kind, row.table, row.location) == (
        OLD, "lake/t/compact", "compact", "lake/t", "file:/lake/t"
    )  # fmt: skip
    assert (row.version_before, row.version_after, row.started_at_ms, row.duration_seconds) == (3, 6, 7000, 2.25)
    assert (row.num_files_removed, row.num_files_added, row.bytes_removed, row.bytes_added) == (8, 2, 80, 76)
    assert (row.predicted_files_removed, row.predicted_bytes_added) == (None, None)
    assert (row.proof_level, row.proof_result, row.source) == ("none", "none", FROM_HISTORY)
    assert row.status == "unknown"  # no log says whether more batches were to come, or what the check found
    assert (row.policy_file, row.policy_digest, row.owner) == ("policies/t.yml", "sha256:then", "team")


def test_a_vacuum_counts_what_it_did_and_not_what_it_meant_to(tmp_path: Path) -> None:
    (row,) = history_rows(
        tmp_path,
        TableCommit(4, 9000, "VACUUM START", None, stamp(OLD, "lake/t/vacuum"), 5, 0, 50),
        TableCommit(5, 9100, "VACUUM END", None, stamp(OLD, "lake/t/vacuum"), 4),
    )
    assert row.status == "succeeded"
    assert (row.kind, row.num_files_removed, row.bytes_removed) == ("vacuum", 4, 0)  # 50 bytes were those of five files
    assert (row.version_before, row.version_after) == (3, 5)


def test_stamps_that_are_no_run_are_left_out(tmp_path: Path) -> None:
    odd = TableCommit(5, 9000, "OPTIMIZE", None, stamp("20269999T220000Z-aaaa", "lake/t/compact"))
    assert history_rows(tmp_path, odd) == ()


def test_each_commit_of_the_hook_is_a_row_and_comes_once(tmp_path: Path) -> None:
    hook = "maintainer-auto-compact-0123abcd"
    commits = [
        TableCommit(version, 9000 + version, "OPTIMIZE", None, stamp(hook, "t/auto_compact", batch), 3, 1, 30, 25)
        for batch, version in enumerate((4, 6))
    ]
    rows = history_rows(tmp_path, *commits)
    assert [(row.run_id, row.step_id, row.kind, row.status, row.version_before, row.version_after) for row in rows] == [
        (hook, "t/auto_compact", "auto_compact", "succeeded", 3, 4),
        (hook, "t/auto_compact#2", "auto_compact", "succeeded", 5, 6),
    ]
    assert {(row.table, row.reason, row.num_files_removed, row.bytes_added, row.source) for row in rows} == {
        ("lake/t", BY_HOOK, 3, 25, FROM_HISTORY)
    }
    # It has no folder and appends nothing itself: however young it is, nobody needs to wait for it.
    store = Store()
    assert fill(store, rows[:1]) == Rebuilt(0, 1, 0)
    assert fill(store, rows) == Rebuilt(0, 1, 1)
    assert [key_of(row) for row in store.held] == [key_of(row) for row in rows]


def two_rows(tmp_path: Path) -> tuple[LedgerRow, LedgerRow]:
    old, young = history_rows(
        tmp_path,
        TableCommit(4, 9000, "OPTIMIZE", None, stamp(OLD, "lake/t/compact")),
        TableCommit(5, 9500, "OPTIMIZE", None, stamp(YOUNG, "lake/t/compact")),
    )
    return old, young


def fill(store: Store, rows: Sequence[LedgerRow], *, over: bool = False, dry_run: bool = False) -> Rebuilt:
    return fill_up(store, rows, young_since_ms=YOUNG_MS, is_over=lambda run: over, dry_run=dry_run)


def test_rebuilding_again_appends_nothing(tmp_path: Path) -> None:
    old, young = two_rows(tmp_path)
    store = Store()
    assert fill(store, [old, young], over=True) == Rebuilt(0, 2, 0)
    assert fill(store, [old, young], over=True) == Rebuilt(0, 0, 2)
    assert store.held == [old, young]
    assert store.appends == 1


def test_a_row_of_a_run_folder_wins_over_the_history(tmp_path: Path) -> None:
    old, _ = two_rows(tmp_path)
    whole = replace(old, source=FROM_RUN_FOLDER, proof_result="pass", predicted_files_removed=8)
    store = Store()
    assert fill(store, [whole, old]) == Rebuilt(1, 0, 0)
    assert store.held == [whole]


def test_a_run_that_may_still_append_its_rows_is_left_for_later(tmp_path: Path) -> None:
    assert started_at_ms(YOUNG) == YOUNG_MS
    old, young = two_rows(tmp_path)
    store = Store()
    assert fill(store, [old, young]) == Rebuilt(0, 1, 0, (YOUNG,))
    assert store.held == [old]


def test_a_dry_run_appends_nothing(tmp_path: Path) -> None:
    store = Store()
    assert fill(store, two_rows(tmp_path), over=True, dry_run=True) == Rebuilt(0, 2, 0)
    assert store.held == []


def test_two_that_rebuild_at_once_leave_each_row_once(tmp_path: Path) -> None:
    old, young = two_rows(tmp_path)
    store = Store()
    store.beaten_by = [old]
    fill(store, [old, young], over=True)
    assert sorted(store.held, key=key_of) == [old, young]


def recorded(runs_dir: Path, plan: Plan, *events: RunEvent) -> RunRecord:
    """A run with a plan and these events, read from its folder."""
    folder = RunFolder.create(runs_dir, OLD)
    folder.write_plan(to_json(plan))
    log = EventLog(folder.path / EVENTS_FILE)
    for event in events:
        log.append(line_of(event))
    log.close()
    return read_record(folder.path)


def test_what_a_later_run_settles_repeats_neither_the_prediction_nor_the_time(tmp_path: Path) -> None:
    table = FakeLake().table("t", (1,), (2, 3))
    plan = plan_all(plan_of(table, compact(table)))
    step = StepOutcome("t/compact", StepKind.COMPACT, StepStatus.UNKNOWN, NOW_MS, 2.5)
    results = RunOutcome(OLD, NOW_MS, 3.0, (TableOutcome(plan.tables[0].ref, TableStatus.FAILED, (step,)),))
    about = (NOW_MS, "t", "id-t", "mem:/lake/t", CommitStamp(OLD, "t/compact", 0, "sha256:p"), "compact")
    events = (
        Intent(*about, read_version=4, proven=True),
        Result(*about, CommitEnd.UNKNOWN),
        StepFinished(NOW_MS, "t", 1, step),
        TableFinished(NOW_MS, results.tables[0]),
        LedgerRows(NOW_MS, 1),
        Settled(*about, CommitEnd.LANDED, CommitReceipt(5, 4, num_files_removed=2), by="x"),
    )
    first, settled = recorded_rows(recorded(tmp_path, plan, *events))
    assert (first.step_id, first.version_after, first.num_files_removed) == ("t/compact", None, 0)
    assert (settled.step_id, settled.version_after, settled.num_files_removed) == ("t/compact#settled", 5, 2)
    assert (first.predicted_files_removed, first.duration_seconds) == (2, 2.5)
    assert (settled.predicted_files_removed, settled.predicted_bytes_added, settled.duration_seconds) == (None, None, 0)


@pytest.mark.parametrize("known", [(LedgerRows(NOW_MS, 2),), ()], ids=["", "killed before they were known"])
def test_rows_that_wait_stay_as_they_are_beside_one_that_is_made_anew(
    tmp_path: Path, known: tuple[LedgerRows, ...]
) -> None:
    lake = FakeLake()
    tables = lake.table("t", (1,), (2, 3)), lake.table("u", (4,), (5,))
    plan = plan_all(*(plan_of(table, compact(table)) for table in tables))
    of_t = StepOutcome("t/compact", StepKind.COMPACT, StepStatus.UNKNOWN, NOW_MS, 2.5)
    of_u = StepOutcome("u/compact", StepKind.COMPACT, StepStatus.NOTHING_LEFT, NOW_MS, 0.5)
    outcomes = (
        TableOutcome(plan.tables[0].ref, TableStatus.FAILED, (of_t,)),
        TableOutcome(plan.tables[1].ref, TableStatus.UP_TO_DATE, (of_u,)),
    )
    about = (NOW_MS, "t", "id-t", "mem:/lake/t", CommitStamp(OLD, "t/compact", 0, "sha256:p"), "compact")
    events = (
        Intent(*about, read_version=4, proven=True),
        Result(*about, CommitEnd.UNKNOWN),
        StepFinished(NOW_MS, "t", 1, of_t),
        TableFinished(NOW_MS, outcomes[0]),
        StepFinished(NOW_MS, "u", 1, of_u),
        TableFinished(NOW_MS, outcomes[1]),
    )
    settled = (Settled(*about, CommitEnd.LANDED, CommitReceipt(5, 4, num_files_removed=2), by="x"),)
    waiting = rows_of(plan, RunOutcome(OLD, NOW_MS, 3.0, outcomes))
    rows = {row.step_id: row for row in anew(recorded(tmp_path, plan, *events, *known, *settled), waiting)}
    assert rows.keys() == {"t/compact", "u/compact"}
    assert (rows["t/compact"].version_after, rows["t/compact"].source) == (5, FROM_RUN_FOLDER)
    assert rows["u/compact"] == waiting[1]
