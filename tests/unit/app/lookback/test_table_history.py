"""Our steps beside everyone else's commits: nothing told twice, nothing left out.

Commits of the writers' hook come into the ledger with the next apply: each once, also when a run dies before.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from maintainer.app.lookback import hook_commits
from maintainer.app.lookback.hook_commits import LOOKED_FILE, append_hook_commits
from maintainer.app.lookback.run_history import history_row
from maintainer.app.lookback.table_history import beside_ours
from maintainer.app.project_folders import Project
from maintainer.errors import LogUnreadable
from maintainer.journal.ledger.ledger_rebuild import key_of
from maintainer.model.run.history_rows import LOST, NOT_RECORDED, HistoryRow
from maintainer.model.run.outcome import StepStatus
from maintainer.model.table.commit_records import CommitStamp, TableCommit
from tests.support.policies.projects import write_project
from tests.support.runs.fake_lake import FakeLake
from tests.support.runs.fake_table import FakeTable
from tests.support.runs.planned_steps import compact, plan_all, plan_of
from tests.unit.journal.ledger.test_ledger_rebuild import Store
from tests.unit.journal.ledger.test_ledger_rows import turns_of as rows_of_turns

RUN = "20261121T220000Z-7f3a"


def ours(step: str, before: int | None, after: int | None, status: str = "succeeded") -> HistoryRow:
    return HistoryRow(5000, "lake/t", step, status, RUN, before, after)


def commit(version: int, kind: str, run: str = RUN) -> TableCommit:
    return TableCommit(version, 1000 * version, "OPTIMIZE", stamp=CommitStamp(run, f"lake/t/{kind}", 0, "sha256:p"))


def told(rows: list[HistoryRow]) -> list[tuple[str, str | None, int | None]]:
    return [(row.step, row.run_id, row.version_after) for row in rows]


def test_a_commit_of_a_step_is_told_once_and_others_stand_beside_it() -> None:
    rows = beside_ours(
        [ours("compact", 3, 5)],
        [
            TableCommit(6, 6000, "OPTIMIZE", by="ana", num_files_removed=4, num_files_added=1, detail="auto true"),
            commit(5, "compact"),
            commit(4, "compact"),
            TableCommit(3, 3000, "WRITE", by="etl"),
        ],
        "lake/t",
    )
    assert told(rows) == [("OPTIMIZE", None, 6), ("compact", RUN, 5), ("WRITE", None, 3)]
    assert (rows[0].by, rows[0].reason, rows[0].num_files_removed) == ("ana", "auto true", 4)


def test_the_request_that_a_z_order_removed_at_its_end_is_told_once() -> None:
    """Its row says what the commit did, and its stamp which step made it."""
    ended = rows_of_turns(StepStatus.SUCCEEDED, num_rest=1)
    stamp = CommitStamp("r", "t/compact", 3, "sha256:p")
    landed = [TableCommit(version, 1000 * version, "OPTIMIZE", stamp=stamp) for version in (9, 8, 7, 5)]
    rows = beside_ours([history_row(row) for row in ended], landed, "t", runs_here=lambda _: True)
    assert {(row.version_after, row.step) for row in rows} == {
        (9, "set_properties"), (8, "compact"), (7, "compact"), (5, "compact"),
    }  # fmt: skip
    assert len(rows) == 4


def test_a_commit_of_ours_that_no_run_folder_tells_of_is_not_lost() -> None:
    rows = beside_ours([], [commit(5, "purge", "20261120T220000Z-aaaa")], "lake/t")
    assert [(row.step, row.run_id, row.status, row.reason) for row in rows] == [
        ("purge", "20261120T220000Z-aaaa", "unknown", LOST)
    ]


def test_a_step_of_unknown_fate_does_not_hide_the_commit_that_landed() -> None:
    rows = beside_ours([ours("compact", None, None, "unknown")], [commit(5, "compact")], "lake/t")
    assert told(rows) == [("compact", RUN, 5), ("compact", RUN, None)]


def test_the_two_commits_of_a_vacuum_are_one_row() -> None:
    rows = beside_ours(
        [],
        [
            TableCommit(8, 8000, "VACUUM END", num_files_removed=2),
            TableCommit(7, 7000, "VACUUM START", num_files_removed=3, bytes_removed=300),
            TableCommit(6, 6000, "VACUUM START", num_files_removed=9),
        ],
        "lake/t",
    )
    assert [(row.step, row.version_after, row.num_files_removed, row.bytes_removed) for row in rows] == [
        ("VACUUM", 8, 2, 0),  # 300 bytes were planned of three files: of the two nobody knows
        ("VACUUM START", 6, 0, 0),
    ]
    assert rows[1].reason == "VACUUM START without VACUUM END: the log does not say what was deleted"


def test_a_deletion_of_ours_without_an_end_claims_nothing() -> None:
    start = replace(commit(7, "vacuum"), operation="VACUUM START", num_files_removed=60, bytes_removed=600)
    (row,) = beside_ours([], [start], "lake/t", runs_here=lambda run_id: run_id == RUN)
    assert (row.status, row.num_files_removed, row.bytes_removed) == ("unknown", 0, 0)
    assert row.reason is not None
    assert row.reason.endswith(NOT_RECORDED)


def test_a_commit_whose_run_folder_is_here_is_not_said_to_be_of_elsewhere() -> None:
    (row,) = beside_ours([], [commit(5, "compact")], "lake/t", runs_here=lambda run_id: run_id == RUN)
    assert row.reason == NOT_RECORDED


class Looks:
    """A table with a policy, a ledger, and hooks in writers."""

    def __init__(self, root: Path) -> None:
        write_project(root, {"maintainer.yml": "version: 1\n", "policies/t.yml": "version: 1\ntable: s.t\n"})
        self.project = Project.load(root)
        self.lake = FakeLake()
        self.table: FakeTable = self.lake.table("s.t", (1, 2), (3,))
        self.ledger = Store()
        self.looked = self.project.runs_dir.parent / LOOKED_FILE
        self.looked.parent.mkdir(parents=True)
        self._hooks = 0

    def hook(self, batches: int = 1) -> None:
        """A writer appends, and its hook compacts."""
        self._hooks += 1
        for batch in range(batches):
            self.table.append(7)
            self.table.versions[-1].stamp = CommitStamp(
                f"maintainer-auto-compact-{self._hooks}", "s.t/auto_compact", batch, ""
            )

    def look(self) -> list[tuple[str, int | None]]:
        """One apply: run and version of each row that came."""
        before = len(self.ledger.held)
        plan = plan_all(plan_of(self.table, compact(self.table)))
        problem = append_hook_commits(self.project, self.lake, plan, self.ledger)
        assert problem is None, problem
        return [(row.run_id[-1], row.version_after) for row in self.ledger.held[before:]]


@pytest.fixture
def looks(tmp_path: Path) -> Looks:
    return Looks(tmp_path)


def test_each_commit_comes_once(looks: Looks) -> None:
    assert looks.look() == []
    looks.table.append(5)
    looks.hook(batches=2)
    assert looks.look() == [("1", 3), ("1", 4)]
    assert looks.look() == []
    looks.hook()
    looks.table.append(6)
    assert looks.look() == [("2", 5)]
    row = looks.ledger.held[-1]
    assert (row.table, row.kind, row.step_id) == ("s.t", "auto_compact", "s.t/auto_compact")
    assert (row.table_id, row.location) == (looks.table.table_id, looks.table.location)


def test_logs_that_were_not_searched_for_long_are_forgotten(looks: Looks, monkeypatch: pytest.MonkeyPatch) -> None:
    looks.looked.write_text(json.dumps({f"gone-{number}": number for number in range(5)}))
    monkeypatch.setattr(hook_commits, "MAX_LOGS_REMEMBERED", 3)
    assert looks.look() == []
    kept = list(json.loads(looks.looked.read_text()))
    assert (len(kept), kept[:2]) == (3, ["gone-3", "gone-4"])
    looks.hook()
    assert looks.look() == [("1", 2)]
    assert list(json.loads(looks.looked.read_text())) == kept


def test_a_copy_with_the_id_of_its_original_is_looked_at_by_itself(looks: Looks) -> None:
    for _ in range(4):
        looks.table.append(5)
    assert looks.look() == []
    original = looks.table
    looks.table = looks.lake.table("s.copy", (1, 2), (3,))
    looks.table.table_id = original.table_id
    write_project(looks.project.root, {"policies/copy.yml": "version: 1\ntable: s.copy\n"})
    looks.project = Project.load(looks.project.root)
    looks.hook()
    assert looks.table.version < original.version
    assert looks.look() == [("1", 2)]


def test_a_log_that_was_put_back_to_an_older_version_is_looked_at_again(looks: Looks) -> None:
    for _ in range(4):
        looks.table.append(5)
    assert looks.look() == []
    del looks.table.versions[3:]
    looks.hook()
    assert looks.look() == [("1", 3)]


@pytest.mark.parametrize("damage", ["gone", "damaged"])
def test_a_run_that_dies_before_it_remembers_its_look_makes_no_row_twice(looks: Looks, damage: str) -> None:
    looks.hook()
    assert looks.look() == [("1", 2)]
    if damage == "gone":
        looks.looked.unlink()
    else:
        looks.looked.write_text("[")
    looks.hook()
    assert looks.look() == [("2", 3)]
    assert len({key_of(row) for row in looks.ledger.held}) == len(looks.ledger.held) == 2


def test_a_log_that_cannot_be_read_is_looked_at_again(looks: Looks, monkeypatch: pytest.MonkeyPatch) -> None:
    looks.hook()
    plan = plan_all(plan_of(looks.table, compact(looks.table)))

    def unreadable(*args: object, **more: object) -> None:
        raise LogUnreadable("its log cannot be read", where="s.t")

    with monkeypatch.context() as patch:
        patch.setattr("tests.support.runs.fake_lake._commit", unreadable)
        problem = append_hook_commits(looks.project, looks.lake, plan, looks.ledger)
    assert problem is not None
    assert (problem.code, problem.where) == ("E652", "s.t")
    assert looks.look() == [("1", 2)]
